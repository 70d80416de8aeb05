//! The blocks of each stream that the second pass reads.

use crate::blocks::split_reads::SplitBlocks;
use crate::time_filter::TimeRange;
use whit_perfdata::record::record_type;
use whit_perfdata::stream::{Block, BlockInfo, BlockRange, Stream};
use whit_types::TimestampNs;

/// One block of a stream, to be read again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedBlock {
    pub(crate) info: BlockInfo,
    /// Earliest and latest sample; absent without samples.
    pub(crate) times: Option<(TimestampNs, TimestampNs)>,
    /// Holds samples, or other records that the second pass takes.
    pub(crate) has_samples: bool,
}

/// How to read one stream again.
#[derive(Debug)]
pub(crate) struct StreamPlan {
    pub(crate) stream: Stream,
    pub(crate) blocks: Vec<PlannedBlock>,
    /// Where samples have counts of other events.
    pub(crate) split: Option<SplitBlocks>,
}

impl StreamPlan {
    /// Makes the block at a position, as it was read, the one that the first pass met.
    pub(crate) fn split(&self, position: u64, block: &mut Block) {
        if let Some(split) = &self.split {
            split.split(position, block);
        }
    }

    /// Blocks with samples of a range of time that can be read in any order, and where they stand in the decoded
    /// stream.
    pub(crate) fn ranges(
        &self,
        range: Option<TimeRange>,
    ) -> impl Iterator<Item = (BlockRange, u64)> + '_ {
        self.blocks
            .iter()
            .filter(move |block| block.is_wanted(range))
            .filter_map(|block| Some((block.info.range?, block.info.position)))
    }

    /// Rows of blocks that have to be read in order, each from its first on.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &[PlannedBlock]> {
        let rows = self.blocks.chunk_by(PlannedBlock::is_followed_in_run);
        rows.filter(|row| row.iter().all(|block| block.info.range.is_none()))
    }
}

impl PlannedBlock {
    /// Whether it has samples that may lie in a range.
    pub(crate) fn is_wanted(&self, range: Option<TimeRange>) -> bool {
        let is_outside = |range: TimeRange, (first, last)| last < range.from || first > range.to;
        let outside = range.zip(self.times).is_some_and(|(range, times)| is_outside(range, times));
        self.has_samples && !outside
    }

    /// Whether the next block is read behind this one, in a row that has to be read in order.
    pub(crate) fn is_followed_in_run(&self, next: &PlannedBlock) -> bool {
        let in_order = self.info.range.is_none() && next.info.range.is_none();
        in_order && self.info.start == next.info.start
    }
}

/// Whether to note the times of each block's samples, which reading in order of time needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockTimes {
    Skip,
    Note,
    /// The second pass takes all records of context switches, too.
    NoteSwitches,
    /// The second pass takes these records, too.
    NoteRecords(RecordKinds),
}

/// Types of records, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordKinds(u64);

impl RecordKinds {
    /// Those in a list; numbers above 63 are none of the kernel's.
    pub fn of(kinds: &[u32]) -> RecordKinds {
        let bits = kinds.iter().filter_map(|kind| 1u64.checked_shl(*kind));
        RecordKinds(bits.fold(0, |all, bit| all | bit))
    }

    /// True where a type is one of them.
    pub fn contains(self, kind: u32) -> bool {
        1u64.checked_shl(kind).is_some_and(|bit| self.0 & bit != 0)
    }

    /// True without any.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BlockTimes {
    /// Whether reading in order of time takes records of a type.
    pub(crate) fn takes(self, kind: u32) -> bool {
        use record_type::{BPF_EVENT, COMM, EXIT, FORK, SAMPLE, SWITCH, SWITCH_CPU_WIDE};
        // Accounts of CPUs are records of the type of BPF programs.
        let of_switches = matches!(kind, SWITCH | SWITCH_CPU_WIDE | FORK | EXIT | COMM | BPF_EVENT);
        match self {
            _ if kind == SAMPLE => true,
            BlockTimes::NoteSwitches => of_switches,
            BlockTimes::NoteRecords(kinds) => kinds.contains(kind),
            BlockTimes::Skip | BlockTimes::Note => false,
        }
    }
}
