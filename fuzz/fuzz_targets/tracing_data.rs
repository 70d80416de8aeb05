//! TRACING_DATA sections of any kind, and records of any kind printed by their formats: no panic,
//! no endless text. The last bytes of the input serve as the record.
#![no_main]

use std::sync::Arc;

use whit_fuzz::fuzz_target;
use whit_perfdata::tracing_data::TracingData;
use whit_print_format::{TraceContext, TraceFormat};

/// Bytes of the input that are taken as a record.
const RECORD_BYTES: usize = 128;
/// Text that a record may give per byte of the input: a name is padded to 1024 columns at most.
const TEXT_PER_BYTE: usize = 1024;

fn function_at(address: u64) -> Option<(Arc<str>, u64)> {
    address.is_multiple_of(2).then(|| ("function".into(), address % 4096))
}

fuzz_target!(|data| {
    let Ok(section) = TracingData::parse(data) else { return };
    let record = &data[data.len().saturating_sub(RECORD_BYTES)..];
    let context = TraceContext { strings: &section, function_at: &function_at };
    let mut out = Vec::new();
    for event in section.events() {
        let format = TraceFormat::new(event, section.long_size_bytes);
        for len in [0, record.len() / 2, record.len()] {
            out.clear();
            format.append(&record[..len], &context, &mut out);
            assert!(out.len() <= (data.len() + 1) * TEXT_PER_BYTE, "{} bytes", out.len());
        }
    }
});
