//! perf-map files of any bytes.
#![no_main]

use whit_fuzz::fuzz_target;
use whit_symbolize::SymbolTable;
use whit_types::Svma;
use whit_unwind::Bytes;

fuzz_target!(|data| {
    let table = SymbolTable::parse_perf_map(Bytes::from(data.to_vec()));
    for symbol in table.iter() {
        let found = table.find(symbol.start).expect("a symbol at its own start");
        assert!(found.start <= symbol.start);
    }
    let _ = (table.find(Svma(0)), table.find(Svma(u64::MAX)));
});
