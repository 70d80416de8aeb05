//! Handing out blocks of the recording to the threads of the second pass.

use crate::load::LoadError;
use crate::progress::Progress;
use crate::scan::StreamPlan;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use whit_perfdata::stream::{BlockRange, Stream, StreamReader};

/// Blocks that any thread may read at any time, and streams that must be read in order.
///
/// A thread that takes a block of a compressed stream decompresses it while it holds the stream's
/// lock, and decodes it after that: while one thread decompresses, the others decode.
pub(crate) struct WorkQueue<'a> {
    ranges: Vec<(&'a Stream, BlockRange, u64)>,
    next_range: AtomicUsize,
    sequential: Vec<Mutex<Sequential>>,
}

struct Sequential {
    reader: Option<StreamReader>,
    consumed_bytes: u64,
}

impl<'a> WorkQueue<'a> {
    pub(crate) fn new(plans: &'a [StreamPlan]) -> Self {
        let mut ranges = Vec::new();
        let mut sequential = Vec::new();
        for plan in plans {
            if plan.is_random_access() {
                ranges
                    .extend(plan.ranges().map(|(range, position)| (&plan.stream, range, position)));
            } else {
                let reader = Some(StreamReader::new(plan.stream.clone()));
                sequential.push(Mutex::new(Sequential { reader, consumed_bytes: 0 }));
            }
        }
        WorkQueue { ranges, next_range: AtomicUsize::new(0), sequential }
    }

    /// Reads the next block and gives back its position; `None` when all is handed out.
    pub(crate) fn next(
        &self,
        block: &mut Vec<u8>,
        progress: &Progress<'_>,
    ) -> Result<Option<u64>, LoadError> {
        let index = self.next_range.fetch_add(1, Ordering::Relaxed);
        if let Some((stream, range, position)) = self.ranges.get(index) {
            stream.read_block(*range, block)?;
            progress.advance(u64::from(range.size_bytes));
            return Ok(Some(*position));
        }
        // First a stream that nobody reads at the moment, then wait for one.
        for wait in [false, true] {
            for stream in &self.sequential {
                let lock = if wait { stream.lock().ok() } else { stream.try_lock().ok() };
                if let Some(mut stream) = lock
                    && let Some(position) = stream.next(block, progress)
                {
                    return Ok(Some(position));
                }
            }
        }
        Ok(None)
    }
}

impl Sequential {
    fn next(&mut self, block: &mut Vec<u8>, progress: &Progress<'_>) -> Option<u64> {
        let reader = self.reader.as_mut()?;
        // Errors were reported by the first pass, which came just as far.
        let info = reader.next_block(block).ok().flatten();
        progress.advance(reader.consumed_bytes() - self.consumed_bytes);
        self.consumed_bytes = reader.consumed_bytes();
        if info.is_none() {
            self.reader = None;
        }
        info.map(|info| info.position)
    }
}
