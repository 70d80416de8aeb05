//! The question of samples: what of them is summed up, and how.

use crate::facets::WantedFacets;
use crate::parallelism::ParallelismOf;

/// Samples up to which [`SinglesWanted::Few`] keeps each.
pub const MAX_SINGLES: u64 = 1_000_000;

/// The unit that the rows of a profile count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counted {
    /// Samples with their periods.
    #[default]
    Samples,
    /// Entries of branch stacks; each entry counts one. The call chain is the branch's target alone.
    Branches,
    /// Samples with their weights: the latencies of accesses to memory.
    Weights,
    /// Blocks of code between two branches, with the cycles that the CPU counted there. The branch of a row's facets has
    /// the end of the block as `from`, and its beginning as `to`.
    Blocks,
}

/// How the time of samples is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SinglesWanted {
    /// Each sample keeps its own, however many there are; memory grows with them.
    Each,
    /// Each sample keeps its own where there are at most [`MAX_SINGLES`], else as `Joined`.
    Few,
    /// Each sample keeps its own where there are at most so many, else as `Joined`.
    UpTo(u64),
    /// Samples of one row in a two-hundredth of the recorded time are joined.
    Joined,
}

/// The samples of a recording, summed up: a [`Profile`](crate::model::Profile).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Samples {
    /// By which parts of samples rows are told apart, beside thread, command and call chain.
    pub facets: WantedFacets,
    /// The unit of the rows' weights.
    pub count: Counted,
    /// Take of each sample only the place that was executing, which is all that the weights of instructions need: call
    /// chains are neither read nor unwound, and code has neither inlined functions nor lines.
    pub leaves: bool,
    /// Name the kernel's code. Its list of symbols takes longer than reading a small recording; without it, that code
    /// goes by addresses.
    pub names_kernel: bool,
    /// Keep the weights of blocks of time too, from which the errors of shares come.
    pub blocks: bool,
    /// Keep the time of samples, which is that of each one or of a stretch that it lies in.
    pub singles: Option<SinglesWanted>,
    /// Samples to keep of each row.
    pub examples: usize,
    /// Tell how many threads of a set ran at the time of each sample; takes reading in order of time.
    pub parallelism: Option<ParallelismOf>,
}

impl Default for Samples {
    /// Rows by thread, command and call chain.
    fn default() -> Samples {
        Samples {
            facets: WantedFacets::default(),
            count: Counted::Samples,
            leaves: false,
            names_kernel: true,
            blocks: false,
            singles: None,
            examples: 0,
            parallelism: None,
        }
    }
}

impl Samples {
    /// Whether frames have inlined functions. Lines of blocks are those of the addresses, in whichever function they were
    /// inlined from.
    pub(crate) fn shows_inlined(&self) -> bool {
        !self.leaves && self.count != Counted::Blocks
    }

    /// True where samples are kept one by one.
    pub(crate) fn keeps_singles(&self) -> bool {
        self.singles == Some(SinglesWanted::Each)
    }
}
