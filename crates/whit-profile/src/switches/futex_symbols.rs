//! Names of futexes that lie in the data of binaries.
//!
//! Recordings have mappings of code alone, as a rule. A binary's code and data lie at the same distance from their stated
//! addresses, so that the mapping of the code tells where the data is.

use super::model::FutexSymbol;
use crate::address_map::Mapping;
use crate::dso_table::RecordedKind;
use crate::prepare::Prepared;
use std::sync::Arc;
use whit_symbolize::demangle;
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
    let symbols = &prepared.binaries.get(mapping.dso)?.symbols;
    let offset = FileOffset(mapping.file_offset);
    let size_bytes = mapping.end.0.checked_sub(mapping.start.0)?;
    let bias = symbols.bias_of_mapping(mapping.start, offset, size_bytes)?;
    let svma = bias.to_svma(address);
    let segments = symbols.elf()?.segments();
    let is_inside = segments.iter().any(|segment| {
        !segment.executable
            && svma.0.checked_sub(segment.svma.0).is_some_and(|at| at < segment.memory_size_bytes)
    });
    is_inside.then(|| {
        let found = symbols.symbol_table().and_then(|table| table.find(svma));
        let found = found.filter(|symbol| svma.0 - symbol.start.0 < symbol.size_bytes);
        let name = found.map(|symbol| Arc::from(&*demangle(symbol.name)));
        let start = found.map_or(Svma(0), |symbol| symbol.start);
        FutexSymbol { name, offset: svma.0 - start.0, binary: dso.path.clone() }
    })
}
