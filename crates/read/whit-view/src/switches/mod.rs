//! Views of context switches: call trees, functions, threads, single waits, wakers; as text and JSON.
//!
//! All of them draw from [`Switches`](whit_profile::switches::Switches) and the profile that was loaded
//! with them. Waits that a loss touches, or whose end is not in the recording, never are in a wait
//! time: they have columns of their own, which appear where there are any.

mod columns;
mod compact;
mod flat;
mod head;
mod json;
mod run_queue;
mod stacks;
mod text;
mod tree;
mod waits;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use columns::seconds;
pub use compact::CompactColumn;
pub use flat::{FlatRow, FlatSort, FlatSortKey, FlatTable, UnsupportedSortKey};
pub use head::summary_lines;
pub(crate) use head::{chooses_a_part, doubts, facts};
pub(crate) use json::{Function, Functions, Misfits, Sources};
pub use json::{VERSION as JSON_VERSION, write_json};
pub use stacks::{ChainEntry, Stacks};
pub(crate) use text::{Preamble, TreeLines};
pub use text::{View, write_text};
pub use tree::{StackNode, StackTree, is_shown};

use crate::hists::{ChainOrder, Filters};

/// The views to print, and their limits.
#[derive(Clone, Debug)]
pub struct SwitchViewOptions {
    /// Which stacks: those of the commands, through any of the binaries and any of the functions.
    pub filters: Filters,
    /// Show inlined functions.
    pub inline: bool,
    /// Trees from where threads leave their CPUs outwards, or from where they start inwards.
    pub order: ChainOrder,
    /// Leave out rows that have less than this share of every column, in percent.
    pub percent_limit: f64,
    /// The keys of the table of functions.
    pub sort: FlatSort,
    /// Weigh each function with its callees.
    pub children: bool,
    /// Single waits, and wakers, to show.
    pub limit: usize,
    /// Threads in the table of run-queue delays.
    pub run_queue_limit: usize,
    /// Leave out all lines that begin with `#`, except reports of gaps.
    pub quiet: bool,
    /// Columns of the terminal: columns of numbers that leave too little of them to names are left out.
    pub width: Option<usize>,
}

impl Default for SwitchViewOptions {
    fn default() -> Self {
        SwitchViewOptions {
            filters: Filters::default(),
            inline: true,
            order: ChainOrder::Callee,
            percent_limit: DEFAULT_PERCENT_LIMIT,
            sort: FlatSort::default(),
            children: true,
            limit: DEFAULT_WORST,
            run_queue_limit: DEFAULT_RUN_QUEUE,
            quiet: false,
            width: None,
        }
    }
}

/// Rows below this share of every column are left out: that of perf's call graphs.
pub const DEFAULT_PERCENT_LIMIT: f64 = 0.5;

/// Single waits that are shown where no number is given.
pub const DEFAULT_WORST: usize = 10;

/// Threads with run-queue delays that are shown where no number is given.
pub const DEFAULT_RUN_QUEUE: usize = 50;
