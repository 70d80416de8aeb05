//! Where the recorded kernel lay in memory.

use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand};
use whit_perfdata::stream::StreamReader;
use whit_types::{Avma, Pid};

/// How much of the records is looked at.
const SEARCHED_BYTES: usize = 1 << 20;

/// A symbol of the kernel and its address. The recorder names its first mapping after that symbol,
/// `[kernel.kallsyms]_text`, and gives the symbol's address as the mapping's offset. It writes this
/// before anything else, so only the first [`SEARCHED_BYTES`] are looked at.
pub(crate) fn kernel_reference(recording: &Recording) -> Option<(String, Avma)> {
    let mut reader = StreamReader::new(recording.streams.first()?.clone());
    let (mut block, mut seen_bytes) = (Vec::new(), 0);
    while seen_bytes < SEARCHED_BYTES {
        reader.next_block(&mut block).ok()??;
        if let Some(reference) = reference_in(&block) {
            return Some(reference);
        }
        seen_bytes += block.len();
    }
    None
}

fn reference_in(block: &[u8]) -> Option<(String, Avma)> {
    let mut rest = block;
    while let Some((record, tail)) = RawRecord::split(rest) {
        if let Some(SideBand::Mmap(map)) = SideBand::parse(record)
            && map.pid == Pid(-1)
            && let Some(symbol) = map.path.strip_prefix(b"[kernel.kallsyms]")
            && !symbol.is_empty()
        {
            return Some((String::from_utf8_lossy(symbol).into_owned(), Avma(map.page_offset)));
        }
        rest = tail;
    }
    None
}
