//! Handing out blocks of the recording to the threads of the second pass.

use crate::blocks::stream_plan::{PlannedBlock, StreamPlan};
use crate::error::LoadError;
use crate::progress::Progress;
use crate::time_filter::TimeRange;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use whit_perfdata::stream::{Block, BlockRange, BlockReader, StreamReader};

/// Blocks that any thread may read at any time, and rows of blocks that must be read in order.
///
/// A thread that takes a block of such a row decompresses it while it holds the row's lock, and
/// decodes it after that: while one thread decompresses, the others decode.
pub(crate) struct WorkQueue<'a> {
    ranges: Vec<(&'a StreamPlan, BlockRange, u64)>,
    next_range: AtomicUsize,
    runs: Vec<Mutex<Run<'a>>>,
    /// All rows before this one have been read.
    first_run: AtomicUsize,
}

/// Blocks of a stream; each can only be read behind the one before.
pub(crate) struct Run<'a> {
    plan: &'a StreamPlan,
    blocks: &'a [PlannedBlock],
    reader: Option<Box<StreamReader>>,
}

impl<'a> WorkQueue<'a> {
    pub(crate) fn new(plans: &'a [StreamPlan]) -> Self {
        WorkQueue::within(plans, None)
    }

    /// The blocks that may have samples in a range of time, as far as blocks can be read on their own.
    pub(crate) fn within(plans: &'a [StreamPlan], range: Option<TimeRange>) -> Self {
        let (mut ranges, mut runs) = (Vec::new(), Vec::new());
        for plan in plans {
            ranges.extend(plan.ranges(range).map(|(range, position)| (plan, range, position)));
            let rows = plan.runs().filter(|row| row.iter().any(|block| block.is_wanted(range)));
            runs.extend(rows.map(|blocks| Mutex::new(Run::new(plan, blocks))));
        }
        let (next_range, first_run) = (AtomicUsize::new(0), AtomicUsize::new(0));
        WorkQueue { ranges, next_range, runs, first_run }
    }

    /// Reads the next block and gives back its position; `None` when all is handed out.
    pub(crate) fn next(
        &self,
        reader: &mut BlockReader,
        block: &mut Block,
        progress: &Progress<'_>,
    ) -> Result<Option<u64>, LoadError> {
        let index = self.next_range.fetch_add(1, Ordering::Relaxed);
        if let Some((plan, range, position)) = self.ranges.get(index) {
            reader.read(&plan.stream, *range, block)?;
            plan.split(*position, block);
            progress.advance(u64::from(range.size_bytes));
            return Ok(Some(*position));
        }
        // First a row that nobody reads at the moment, then wait for one.
        for wait in [false, true] {
            let first = self.first_run.load(Ordering::Relaxed);
            for (index, run) in self.runs.iter().enumerate().skip(first) {
                let lock = if wait { run.lock().ok() } else { run.try_lock().ok() };
                let Some(mut run) = lock else { continue };
                if let Some(position) = run.next(block, progress)? {
                    return Ok(Some(position));
                }
                // Rows are left behind one after the other.
                let (now, order) = (index + 1, Ordering::Relaxed);
                let _ = self.first_run.compare_exchange(index, now, order, order);
            }
        }
        Ok(None)
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(plan: &'a StreamPlan, blocks: &'a [PlannedBlock]) -> Run<'a> {
        Run { plan, blocks, reader: None }
    }

    /// Whether nothing is left to be read.
    pub(crate) fn is_read(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Reads the next block and gives back its position; `None` behind the last.
    pub(crate) fn next(
        &mut self,
        block: &mut Block,
        progress: &Progress<'_>,
    ) -> Result<Option<u64>, LoadError> {
        let Some((planned, rest)) = self.blocks.split_first() else { return Ok(None) };
        let start = planned.info.start;
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => Box::new(StreamReader::resume(self.plan.stream.clone(), start)?),
        };
        let before_bytes = reader.consumed_bytes();
        // The first pass came just as far without an error.
        if !reader.fill(block)? {
            return Err(self.plan.stream.changed(start).into());
        }
        progress.advance(reader.consumed_bytes() - before_bytes);
        self.plan.split(planned.info.position, block);
        self.blocks = rest;
        self.reader = Some(reader).filter(|_| !rest.is_empty());
        Ok(Some(planned.info.position))
    }
}
