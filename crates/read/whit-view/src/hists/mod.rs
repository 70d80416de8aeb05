//! Rows of a report: samples grouped by sort keys, with self and children weights and call chains.
//!
//! The rules are perf's, but for the first (`perf-report(1)`; tools/perf/util/hist.c and callchain.c):
//! - A sample's own row names the innermost function, inlined or not, as all other faces do. With
//!   [`SelfTime::Outer`] it names the physical function, as the symbol table has it and as perf does; functions
//!   that were inlined then get rows of their own only as children.
//! - With children, a sample adds its period once to each distinct row of its call chain, however
//!   often recursion brings the row up.
//! - Percentages are of the event's total period. Filters change the total only with
//!   [`HistsOptions::relative`].
//! - A filter looks at the row where a sort key gives the filtered property, else at the sample.
//!
//! Where perf's result depends on heap addresses or on which sample came first, whit's does not:
//! see `row_order` and `chain_tree::KeyOrder`.
//!
//! Cost: linear in nodes, plus for each context (command, thread or CPU that the sort keys tell
//! apart) linear in the nodes that its samples reach.

mod block_rows;
mod build;
mod chain_tree;
mod chains;
mod code_location;
mod context;
pub(crate) mod data_source;
mod examples;
mod facet_key;
mod field;
mod group;
mod hierarchy;
mod latency;
mod options;
mod parents;
mod pass;
mod repeats;
mod row_order;
mod sort_key;
mod tree;

#[cfg(test)]
mod block_tests;
#[cfg(test)]
mod latency_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub(crate) use block_rows::rows_of;
pub use block_rows::{RowIntervals, RowSums, ShareInterval, block_totals, loss, lost_samples};
pub use build::{hists, hists_by_block};
pub use chain_tree::{ChainEntry, ChainNode, ChainTree};
pub use code_location::{CodeLocation, SourceKey};
pub use context::{Context, listed, lists_function, names_function};
pub(crate) use context::{cgroup_part, has_part, without_digits};
pub(crate) use facet_key::CACHE_LINE_BYTES;
pub use field::{Field, Fields, UnknownField};
pub use group::{EventGroup, MemberTotal, MemberWeight, group_hists, groups};
pub use hierarchy::Level;
pub use latency::{BadLevels, Levels, WeightColumn, WeightColumns};
pub use options::{
    BadChainOption, ChainMode, ChainOptions, ChainOrder, DEFAULT_CHAIN_PERCENT, Filters, Grouping,
    HistsOptions, Pattern, SelfTime, UnknownSelfTime,
};
pub use parents::{DEFAULT_PARENT, hide_unresolved, ignore_callees};
pub use repeats::Repeats;
pub use sort_key::{SortKey, UnknownSortKey};

use std::sync::Arc;

use whit_profile::ExampleSample;
use whit_profile::model::EventId;

/// The rows of one event.
#[derive(Clone, Debug)]
pub struct Hists {
    /// Index into the profile's events.
    pub event: EventId,
    /// Sum of periods of all its samples, filtered or not: what percentages refer to.
    pub total_period: u64,
    /// Number of all its samples, filtered or not.
    pub total_samples: u64,
    /// The columns of shares.
    pub shares: WeightColumns,
    /// Sum of the latency weights of all its samples; zero where they are not computed.
    pub total_latency: u64,
    /// Latency weights that make one unit of a period.
    pub latency_unit: u64,
    /// Samples whose parallelism is unknown, and the sum of their periods.
    pub unknown: (u64, u64),
    /// True where rows carry children weights: they were asked for and there are call chains.
    pub children: bool,
    /// Smallest weight of a branch in the call chains.
    pub chain_min_hit: u64,
    /// Rows that passed the filters, heaviest first.
    pub rows: Vec<HistRow>,
    /// Where each row stands, with [`HistsOptions::levels`]: rows are sums of those behind them that stand deeper.
    pub places: Option<Vec<Level>>,
    /// The other events of a group, whose leader is `event`.
    pub members: Vec<MemberTotal>,
}

/// One row.
#[derive(Clone, PartialEq, Debug)]
pub struct HistRow {
    /// The part of the key that the sample brings: command, thread, CPU. Many rows share one, and rows are many.
    pub context: Arc<Context>,
    /// The part of the key that the code location brings.
    pub place: CodeLocation,
    /// Period of samples in this row itself.
    pub self_period: u64,
    /// Number of samples in this row itself.
    pub self_samples: u64,
    /// Period of samples with this row anywhere in their call chain; equals `self_period` without
    /// children.
    pub children_period: u64,
    /// Number of samples with this row anywhere in their call chain.
    pub children_samples: u64,
    /// Latency weight of samples in this row itself; zero where it is not computed.
    pub self_latency: u64,
    /// The same with this row anywhere in the call chain.
    pub children_latency: u64,
    /// Period of samples in this row itself that ran in the kernel; where columns ask for it.
    pub kernel_period: u64,
    /// Longest chain in frames among those drawn for this row.
    pub max_depth: u32,
    /// First thread, in the profile's order, that has a sample in this row.
    pub first_thread: u32,
    /// Weights of the other events of a group; empty without one.
    pub members: Box<[MemberWeight]>,
    /// How far its shares can be trusted; where intervals were asked for and the profile has blocks enough.
    pub intervals: Option<Box<RowIntervals>>,
    /// Single samples of this row itself, in order of time; empty where none were asked for.
    pub examples: Box<[ExampleSample]>,
    /// Call chains; empty where none are asked for or all are below the threshold.
    pub chains: ChainTree,
}

impl Hists {
    /// The weight by which rows are ordered and limited: the children weight where there is one.
    pub fn weight(&self, row: &HistRow) -> u64 {
        match self.children {
            true => row.children_weight(self.shares),
            false => row.self_weight(self.shares),
        }
    }

    /// The sum of the weights by which rows are ordered.
    pub fn total_weight(&self) -> u64 {
        if self.shares.by_latency() { self.total_latency } else { self.total_period }
    }

    /// Share of the event's latency in percent.
    pub fn latency_percent(&self, latency: u64) -> f64 {
        percent(latency, self.total_latency)
    }

    /// A latency weight in units of the period.
    pub fn latency_in_periods(&self, latency: u64) -> f64 {
        latency as f64 / self.latency_unit as f64
    }

    /// Samples without the weight by which rows are ordered, because their parallelism is unknown.
    pub fn unknown_samples_left_out(&self) -> u64 {
        if self.shares.by_latency() { self.unknown.0 } else { 0 }
    }

    /// By how many percentage points a share of latency may be wrong, because samples have none.
    pub fn latency_uncertainty_percent(&self) -> f64 {
        let (unknown, known) = (self.unknown.1 as f64, self.latency_in_periods(self.total_latency));
        if unknown > 0.0 { 100.0 * unknown / (known + unknown) } else { 0.0 }
    }

    /// Samples of all events of the table.
    pub fn samples_of_group(&self) -> u64 {
        self.total_samples + self.members.iter().map(|member| member.samples).sum::<u64>()
    }

    /// Sum of the periods of all events of the table.
    pub fn period_of_group(&self) -> u64 {
        let members = self.members.iter().map(|member| member.period);
        members.fold(self.total_period, u64::saturating_add)
    }

    /// True where the rows have intervals.
    pub fn has_intervals(&self) -> bool {
        self.rows.first().is_some_and(|row| row.intervals.is_some())
    }

    /// Share of the event's total in percent.
    pub fn percent(&self, period: u64) -> f64 {
        percent(period, self.total_period)
    }

    /// The rows at or above the percent limit.
    pub fn shown(&self, percent_limit: f64) -> impl Iterator<Item = &HistRow> {
        self.rows.iter().filter(move |r| self.is_shown(r, percent_limit))
    }

    /// Their places in `rows`.
    pub(crate) fn shown_places(&self, percent_limit: f64) -> Vec<usize> {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, r)| self.is_shown(r, percent_limit)).map(|(place, _)| place).collect()
    }

    pub(crate) fn is_shown(&self, row: &HistRow, percent_limit: f64) -> bool {
        percent(self.weight(row), self.total_weight()) >= percent_limit
    }
}

impl HistRow {
    /// The weight of the row itself, by which rows are ordered.
    pub fn self_weight(&self, shares: WeightColumns) -> u64 {
        if shares.by_latency() { self.self_latency } else { self.self_period }
    }

    /// The same for the row with all that it calls.
    pub fn children_weight(&self, shares: WeightColumns) -> u64 {
        if shares.by_latency() { self.children_latency } else { self.children_period }
    }
}

/// The function that gets the own time of inlined code, worded for people.
pub(crate) fn self_time_line(self_time: SelfTime) -> &'static str {
    match self_time {
        SelfTime::Innermost => {
            "Self time: inlined code counts for the inlined function (perf's rule: --self-time=outer)"
        }
        SelfTime::Outer => {
            "Self time: inlined code counts for the function that it was inlined into, as in perf"
        }
    }
}

/// `part` of `total` in percent; 0 of nothing.
pub fn percent(part: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { 100.0 * part as f64 / total as f64 }
}
