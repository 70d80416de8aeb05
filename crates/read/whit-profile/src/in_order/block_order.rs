//! Blocks of all streams, in the order in which their earliest samples come due.
//!
//! That order is known from the first pass, so blocks of compressed streams can be decompressed
//! before they are due, by several threads.

use crate::blocks::stream_plan::StreamPlan;
use crate::blocks::work::Run;
use crate::error::LoadError;
use crate::progress::Progress;
use crate::time_filter::TimeRange;
use std::collections::VecDeque;
use whit_perfdata::stream::{Block, BlockRange, ReadAhead, Stream};
use whit_types::TimestampNs;

/// Blocks that are looked at before they are due, whether they can be read ahead or not.
const MAX_PLANNED_BLOCKS: usize = 256;

/// Gives out blocks.
pub(crate) struct BlockOrder<'p> {
    sources: Vec<Source<'p>>,
    /// The next blocks, in order.
    planned: VecDeque<Planned>,
    /// Those of them that can be read on their own.
    ahead: ReadAhead,
    /// Blocks that lie outside are left out, where they can be read on their own.
    range: Option<TimeRange>,
    progress: &'p Progress<'p>,
}

/// One stream.
struct Source<'p> {
    plan: &'p StreamPlan,
    /// Per block: no sample in it or behind it is earlier than this.
    earliest: Vec<TimestampNs>,
    /// Number of blocks that have been planned.
    planned: usize,
    /// Blocks that are being read in order.
    run: Option<Run<'p>>,
}

/// A block that comes due.
struct Planned {
    earliest: TimestampNs,
    source: usize,
    block: usize,
}

impl<'p> Source<'p> {
    fn new(plan: &'p StreamPlan) -> Source<'p> {
        let mut earliest: Vec<_> = plan
            .blocks
            .iter()
            .map(|block| block.times.map_or(TimestampNs(u64::MAX), |(first, _)| first))
            .collect();
        for at in (1..earliest.len()).rev() {
            earliest[at - 1] = earliest[at - 1].min(earliest[at]);
        }
        Source { plan, earliest, planned: 0, run: None }
    }

    fn next_earliest(&self) -> Option<TimestampNs> {
        self.earliest.get(self.planned).copied()
    }

    fn range(&self, block: usize) -> Option<(&Stream, BlockRange)> {
        Some((&self.plan.stream, self.plan.blocks.get(block)?.info.range?))
    }

    /// The row of blocks to be read in order that begins with a block.
    fn run_from(&self, block: usize) -> Run<'p> {
        let mut runs = self.plan.blocks[block..].chunk_by(|a, b| a.is_followed_in_run(b));
        Run::new(self.plan, runs.next().unwrap_or_default())
    }
}

impl<'p> BlockOrder<'p> {
    /// Decompresses with up to so many threads.
    pub(crate) fn new(
        plans: &'p [StreamPlan],
        threads: usize,
        range: Option<TimeRange>,
        progress: &'p Progress<'p>,
    ) -> Self {
        let mut ranges = plans.iter().flat_map(|plan| plan.ranges(None));
        let is_compressed = ranges.any(|(range, _)| range.compressed);
        BlockOrder {
            sources: plans.iter().map(Source::new).collect(),
            planned: VecDeque::new(),
            // Plain blocks are only copied, which is as fast without handing them over.
            ahead: ReadAhead::new(if is_compressed { threads } else { 1 }),
            range,
            progress,
        }
    }

    /// No sample that has not been read is earlier than this. `None` when all have been.
    pub(crate) fn earliest_unread(&mut self) -> Option<TimestampNs> {
        self.plan();
        self.planned.front().map(|planned| planned.earliest)
    }

    /// Makes the next block the content of `out`, and gives back its position. `None` when it holds
    /// no sample, or there is none.
    pub(crate) fn next(&mut self, out: &mut Block) -> Result<Option<u64>, LoadError> {
        self.plan();
        let Some(Planned { source, block, .. }) = self.planned.pop_front() else {
            return Ok(None);
        };
        let source = &mut self.sources[source];
        let Some((_, range)) = source.range(block) else {
            let mut run = source.run.take().unwrap_or_else(|| source.run_from(block));
            let position = run.next(out, self.progress)?;
            source.run = Some(run).filter(|run| !run.is_read());
            return Ok(position);
        };
        self.progress.advance(u64::from(range.size_bytes));
        let planned = &source.plan.blocks[block];
        if !planned.is_wanted(self.range) {
            return Ok(None);
        }
        match self.ahead.next(out) {
            Some(read) => read?,
            None => return Ok(None),
        }
        source.plan.split(planned.info.position, out);
        Ok(Some(planned.info.position))
    }

    /// Looks at blocks that come due next.
    fn plan(&mut self) {
        while self.planned.is_empty()
            || (self.ahead.has_room() && self.planned.len() < MAX_PLANNED_BLOCKS)
        {
            // At equal times, the stream that stands earlier in the recording goes first.
            let next = self.sources.iter().enumerate();
            let next = next.filter_map(|(index, s)| Some((s.next_earliest()?, index))).min();
            let Some((earliest, index)) = next else { return };
            let source = &mut self.sources[index];
            let block = source.planned;
            source.planned += 1;
            if let Some((stream, range)) = source.range(block)
                && source.plan.blocks[block].is_wanted(self.range)
            {
                self.ahead.push(stream, range);
            }
            self.planned.push_back(Planned { earliest, source: index, block });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::stream_plan::PlannedBlock;
    use proptest::prelude::*;
    use whit_perfdata::stream::BlockInfo;

    proptest! {
        /// Both ends of a block and of a range belong to them.
        #[test]
        fn blocks_that_share_a_moment_with_the_range_are_read(
            (first, length) in (0u64..12, 0u64..6),
            (from, range_length) in (0u64..12, 0u64..6),
            has_samples: bool,
        ) {
            let times = Some((TimestampNs(first), TimestampNs(first + length)));
            let info = BlockInfo { position: 0, start: 0, range: None };
            let block = PlannedBlock { info, times, has_samples };
            let to = from + range_length;
            let range = TimeRange { from: TimestampNs(from), to: TimestampNs(to) };
            let shares = (first..=first + length).any(|moment| (from..=to).contains(&moment));
            prop_assert_eq!(block.is_wanted(Some(range)), has_samples && shares);
            prop_assert_eq!(block.is_wanted(None), has_samples);
            let untimed = PlannedBlock { times: None, ..block };
            prop_assert_eq!(untimed.is_wanted(Some(range)), has_samples);
        }
    }
}
