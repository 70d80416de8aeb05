//! Names that a recording carries, of any bytes: packed, and unpacked.
#![no_main]

use std::sync::Arc;

use whit_fuzz::fuzz_target;
use whit_perfdata::names::unpack;
use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, EmbeddedNames, Symbolizer, SymbolizerConfig};
use whit_types::{Avma, FileOffset, Svma, TimestampNs};

/// Binaries and addresses that are looked into.
const MAX_BINARIES: u32 = 8;
const ADDRESSES: [u64; 6] = [0, 1, 0x1000, 0x40_0100, i64::MAX as u64, u64::MAX];

fn look_up(names: Arc<EmbeddedNames>) {
    let binaries = MAX_BINARIES.min(names.len() as u32);
    let config = SymbolizerConfig::new(DebugDirs::none());
    let symbolizer = Symbolizer::new(SymbolizerConfig { embedded: Some(names), ..config });
    for number in 0..binaries {
        let spec = DsoSpec::new(DsoKind::Elf, format!("/nowhere/{number}").into());
        let symbols = symbolizer.open(&DsoSpec { embedded: Some(number), ..spec });
        for address in ADDRESSES {
            let _ = symbols.resolve_in_full(Svma(address));
            let _ =
                (symbols.function_range(Svma(address)), symbols.code_at(Svma(address), address));
            let _ = symbols.bias_of_mapping(Avma(0x7000), FileOffset(address), 0x1000);
            let _ = (symbols.svma_of(FileOffset(address)), symbols.variable_at(Svma(address)));
            let _ = symbols.locate_jit(Avma(address), Some(TimestampNs(address)));
        }
    }
}

fuzz_target!(|data| {
    let unpacked = unpack(data);
    for bytes in [Some(data), unpacked.as_deref().ok()].into_iter().flatten() {
        if let Some(names) = EmbeddedNames::from_bytes(bytes) {
            look_up(Arc::new(names));
        }
    }
});
