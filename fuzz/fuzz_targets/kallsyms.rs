//! Lists of the kernel's symbols of any bytes.
#![no_main]

use whit_fuzz::fuzz_target;
use whit_symbolize::SymbolTable;
use whit_types::Svma;
use whit_unwind::Bytes;

fuzz_target!(|data| {
    let Some(table) = SymbolTable::parse_kallsyms(Bytes::from(data.to_vec())) else {
        return;
    };
    for symbol in table.iter() {
        let found = table.find(symbol.start).map(|found| found.start);
        assert!(found.is_none_or(|found| found <= symbol.start));
    }
    let _ = (table.find(Svma(0)), table.find(Svma(u64::MAX)));
});
