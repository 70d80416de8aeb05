//! Where the recorded kernel lay in memory.

use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand};
use whit_perfdata::stream::StreamReader;
use whit_types::{Avma, Pid};

/// A symbol of the kernel and its address. The recorder names its first mapping after that symbol,
/// `[kernel.kallsyms]_text`, and gives the symbol's address as the mapping's offset. It writes this
/// before anything else, so only the first block is looked at.
pub(crate) fn kernel_reference(recording: &Recording) -> Option<(String, Avma)> {
    let mut block = Vec::new();
    StreamReader::new(recording.streams.first()?.clone()).next_block(&mut block).ok()??;
    let mut rest = &block[..];
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
