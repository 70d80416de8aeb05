//! Names of futexes that lie in the data of binaries.
//!
//! Recordings have mappings of code alone, as a rule. A binary's code and data lie at the same distance from their stated
//! addresses, so that the mapping of the code tells where the data is.

use super::model::FutexSymbol;
use crate::first_pass::prepare::Prepared;
use crate::machine_model::address_map::Mapping;
use crate::machine_model::dso_table::RecordedKind;
use std::sync::Arc;
use whit_symbolize::{DsoSymbols, demangle};
use whit_types::{Avma, FileOffset, Pid, Svma, TimestampNs};

/// The symbol at an address of a process; `None` where no mapped binary has data there.
pub(super) fn find(
    prepared: &Prepared,
    pid: Pid,
    address: u64,
    time: TimestampNs,
) -> Option<FutexSymbol> {
    let space = prepared.model.space_at(pid, time)?;
    space.map.iter().find_map(|mapping| in_binary(prepared, mapping, Avma(address)))
}

fn in_binary(prepared: &Prepared, mapping: &Mapping, address: Avma) -> Option<FutexSymbol> {
    let dso = prepared.dsos.get(mapping.dso);
    if dso.kind != RecordedKind::File {
        return None;
    }
    in_data(&prepared.binaries.get(mapping.dso)?.symbols, &dso.path, mapping, address)
}

/// The symbol where an address lies in the data of a binary, one of whose mappings is known.
fn in_data(
    symbols: &DsoSymbols,
    path: &Arc<str>,
    mapping: &Mapping,
    address: Avma,
) -> Option<FutexSymbol> {
    let offset = FileOffset(mapping.file_offset);
    let size_bytes = mapping.end.0.checked_sub(mapping.start.0)?;
    let bias = symbols.bias_of_mapping(mapping.start, offset, size_bytes)?;
    let svma = bias.to_svma(address);
    let found = symbols.variable_at(svma)?;
    let name = found.as_ref().map(|variable| Arc::from(&*demangle(variable.raw.as_bytes())));
    let start = found.map_or(Svma(0), |variable| variable.start);
    Some(FutexSymbol { name, offset: svma.0 - start.0, binary: path.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_model::dso_index::DsoIndex;
    use std::path::PathBuf;
    use std::sync::Mutex;
    use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, Symbolizer, SymbolizerConfig};

    /// Locks of this program: with a value, and without.
    static INITIALISED: Mutex<[u32; 4]> = Mutex::new([1; 4]);
    static ZERO: Mutex<[u32; 4]> = Mutex::new([0; 4]);

    fn address_of<T>(value: &T) -> u64 {
        std::ptr::from_ref(value).addr() as u64
    }

    /// This program's file, and where the kernel mapped its code.
    fn own_code() -> (PathBuf, Mapping) {
        let path = std::env::current_exe().unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let is_code =
            |line: &&str| line.contains(" r-xp ") && line.ends_with(path.to_str().unwrap());
        let line = maps.lines().find(is_code).expect("the code is mapped");
        let words: Vec<_> = line.split_whitespace().collect();
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = words[0].split_once('-').unwrap();
        let mapping = Mapping {
            start: Avma(hex(start)),
            end: Avma(hex(end)),
            file_offset: hex(words[2]),
            dso: DsoIndex(0),
        };
        (path, mapping)
    }

    #[test]
    fn locks_in_data_have_the_names_of_their_symbols() {
        let (path, mapping) = own_code();
        let symbolizer = Symbolizer::new(SymbolizerConfig::new(DebugDirs::standard(None)));
        let symbols = symbolizer.open(&DsoSpec::new(DsoKind::Elf, path.clone()));
        let name: Arc<str> = path.to_str().unwrap().into();
        let find =
            |mapping: &Mapping, address: u64| in_data(&symbols, &name, mapping, Avma(address));
        for (address, wanted) in [
            (address_of(&INITIALISED), "futex_symbols::tests::INITIALISED"),
            (address_of(&ZERO), "futex_symbols::tests::ZERO"),
        ] {
            let found = find(&mapping, address).expect("it lies in data");
            let text = found.name.clone().expect("a symbol");
            assert!(text.ends_with(wanted), "{text}");
            assert_eq!((found.offset, &found.binary), (0, &name));
            let inside = find(&mapping, address + 4).expect("it lies in data");
            assert_eq!((&inside.name, inside.offset), (&found.name, 4));
            // Another process has the same binary elsewhere.
            const FURTHER: u64 = 0x7000_0000;
            let moved = Mapping {
                start: Avma(mapping.start.0 + FURTHER),
                end: Avma(mapping.end.0 + FURTHER),
                ..mapping
            };
            assert_eq!(find(&moved, address + FURTHER), Some(found));
            assert_eq!(find(&moved, address), None);
        }
        let (on_heap, on_stack) = (Box::new(Mutex::new(0)), Mutex::new(0));
        assert_eq!(find(&mapping, address_of(&*on_heap)), None);
        assert_eq!(find(&mapping, address_of(&on_stack)), None);
        assert_eq!(find(&mapping, mapping.start.0), None, "code");
    }
}
