//! Lists of the kernel's symbols of any bytes.
#![cfg_attr(fuzzing, no_main)]

use whit_fuzz::{Verdict, fuzz_target};
use whit_symbolize::SymbolTable;
use whit_types::Svma;
use whit_unwind::Bytes;

const DICTIONARY: &[&str] = &["ffffffff81000000", " T ", " t ", "\t[", "]\n", "_text", " A ", "$x"];

fuzz_target!(DICTIONARY, |data| {
    let Some(table) = SymbolTable::parse_kallsyms(Bytes::from(data.to_vec())) else {
        return Verdict::Reject;
    };
    for symbol in table.iter() {
        let found = table.find(symbol.start).map(|found| found.start);
        assert!(found.is_none_or(|found| found <= symbol.start));
    }
    let _ = (table.find(Svma(0)), table.find(Svma(u64::MAX)));
    Verdict::Keep
});
