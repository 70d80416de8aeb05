//! Options for computing rows: sort keys, children, call chains, filters, limits.

use regex_lite::Regex;
use whit_profile::Counted;
use whit_types::Tid;

use super::field::Field;
use super::latency::{Levels, WeightColumns};
use super::sort_key::SortKey;

/// Which events share a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grouping {
    /// A recording without groups.
    #[default]
    Apart,
    /// Those that were recorded as a group.
    AsRecorded,
    /// Those; all events where no group was recorded.
    Always,
}

/// A regular expression; two are the same where their texts are.
#[derive(Clone, Debug)]
pub struct Pattern(pub Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// How call chains are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainMode {
    /// No call chains.
    None,
    /// A tree whose percentages are of the event's total (perf: `graph`).
    Graph,
    /// A tree whose percentages are of the parent (perf: `fractal`).
    Fractal,
    /// One list of functions per distinct chain.
    Flat,
    /// One line per distinct chain.
    Folded,
}

/// Where call chains begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainOrder {
    /// At the outermost caller.
    Caller,
    /// At the function that was executing.
    Callee,
}

/// The function that gets the own time of a sample in inlined code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SelfTime {
    /// That of the innermost function, inlined or not: the same rule as on the page, in folded stacks and in
    /// tables of context switches.
    #[default]
    Innermost,
    /// That of the function that the code was inlined into, which is the one that the symbol table names:
    /// perf's rule.
    Outer,
}

/// No rule of this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no rule for self time: give innermost, or outer for perf's rule")]
pub struct UnknownSelfTime(String);

impl std::str::FromStr for SelfTime {
    type Err = UnknownSelfTime;

    fn from_str(word: &str) -> Result<SelfTime, UnknownSelfTime> {
        match word {
            "innermost" => Ok(SelfTime::Innermost),
            "outer" => Ok(SelfTime::Outer),
            _ => Err(UnknownSelfTime(word.to_owned())),
        }
    }
}

impl SelfTime {
    /// As it is written in options and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SelfTime::Innermost => "innermost",
            SelfTime::Outer => "outer",
        }
    }
}

/// perf's default threshold for call chains, in percent.
pub const DEFAULT_CHAIN_PERCENT: f64 = 0.5;

/// Everything that `-g` says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChainOptions {
    /// How to draw.
    pub mode: ChainMode,
    /// Where to begin; `None` takes perf's default: callers first with children, else callees.
    pub order: Option<ChainOrder>,
    /// Branches below this share of the event (with [`ChainMode::Fractal`], of their parent) are
    /// left out. In percent.
    pub min_percent: f64,
    /// At most so many branches of one parent are printed; 0 prints all.
    pub print_limit: u32,
}

impl Default for ChainOptions {
    fn default() -> Self {
        ChainOptions {
            mode: ChainMode::Graph,
            order: None,
            min_percent: DEFAULT_CHAIN_PERCENT,
            print_limit: 0,
        }
    }
}

/// A word in a `-g` list that means nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "cannot draw call graphs as `{word}`: give a type (none, graph, fractal, flat, folded), an \
     order (caller, callee), a threshold in percent and a print limit, separated by commas, for \
     example `graph,0.5,caller`"
)]
pub struct BadChainOption {
    /// The rejected text.
    pub word: String,
}

impl ChainOptions {
    /// Parses the argument of `-g`: a comma-separated list of type, order, threshold in percent
    /// and print limit in any order, as perf takes it. The first number is the threshold, the
    /// second the limit. `function` and `percent` change nothing: whit always draws chains so.
    ///
    /// # Errors
    /// [`BadChainOption`] for anything else.
    pub fn parse(list: &str) -> Result<ChainOptions, BadChainOption> {
        let mut options = ChainOptions::default();
        let mut numbers = 0;
        for word in list.split(',').filter(|w| !w.is_empty()) {
            match word {
                "none" => options.mode = ChainMode::None,
                "graph" => options.mode = ChainMode::Graph,
                "fractal" => options.mode = ChainMode::Fractal,
                "flat" => options.mode = ChainMode::Flat,
                "folded" => options.mode = ChainMode::Folded,
                "caller" => options.order = Some(ChainOrder::Caller),
                "callee" => options.order = Some(ChainOrder::Callee),
                "function" | "percent" => {}
                _ => {
                    let bad = || BadChainOption { word: word.to_owned() };
                    match numbers {
                        0 => options.min_percent = parse_percent(word).ok_or_else(bad)?,
                        1 => options.print_limit = word.parse().map_err(|_| bad())?,
                        _ => return Err(bad()),
                    }
                    numbers += 1;
                }
            }
        }
        Ok(options)
    }

    /// The order of a list that has nothing else, for trees that are drawn in one way alone.
    ///
    /// # Errors
    /// The list as it was given, if it has a type, a threshold or a limit.
    pub fn parse_order(list: &str) -> Result<Option<ChainOrder>, BadChainOption> {
        let options = ChainOptions::parse(list)?;
        match options == (ChainOptions { order: options.order, ..ChainOptions::default() }) {
            true => Ok(options.order),
            false => Err(BadChainOption { word: list.to_owned() }),
        }
    }
}

fn parse_percent(word: &str) -> Option<f64> {
    word.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p))
}

/// Which rows to show. An empty list lets everything pass.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Filters {
    /// Command names.
    pub comms: Vec<String>,
    /// Threads.
    pub tids: Vec<Tid>,
    /// Binaries, by short name or full path.
    pub dsos: Vec<String>,
    /// Function names.
    pub symbols: Vec<String>,
    /// Numbers of threads that ran at the time of the sample.
    pub parallelism: Levels,
    /// A part of the function's name.
    pub symbol_part: Option<String>,
    /// The socket of the CPU.
    pub socket: Option<u32>,
    /// Only call chains with a caller that [`HistsOptions::parent`] chooses.
    pub with_parent: bool,
}

/// The rows to compute, and their columns and call chains.
#[derive(Clone, PartialEq, Debug)]
pub struct HistsOptions {
    /// The sort keys that make a row; empty stands for perf's default.
    pub sort: Vec<SortKey>,
    /// The keys of each level of a hierarchy, which are those of `sort` in their order; empty for a flat table. A
    /// hierarchy has no weights with callees.
    pub levels: Vec<Vec<SortKey>>,
    /// Single samples to show of each row.
    pub examples: usize,
    /// Which events share a table.
    pub grouping: Grouping,
    /// The event of a group by which rows are ordered; 0 is the leader.
    pub group_sort: usize,
    /// Which shares to show, and which of them order rows. Latency takes a profile that was loaded with parallelism.
    pub shares: WeightColumns,
    /// Weigh each function with its callees; has no effect on a recording without call chains.
    pub children: bool,
    /// Columns in their order; empty for the default ones.
    pub columns: Vec<Field>,
    /// Criteria of the rows' order, the first one first; empty for perf's default order.
    pub order: Vec<Field>,
    /// Add columns with the shares of the kernel and of all else.
    pub cpu_modes: bool,
    /// The unit that the rows count.
    pub count: Counted,
    /// Chooses the callers that key `parent` names.
    pub parent: Option<Pattern>,
    /// Call chains.
    pub chains: ChainOptions,
    /// Show inlined functions.
    pub inline: bool,
    /// The function that gets the own time of a sample in inlined code, where inlined functions are shown.
    pub self_time: SelfTime,
    /// Which rows to show.
    pub filters: Filters,
    /// Compute the intervals of shares, from a profile that has blocks of time.
    pub intervals: bool,
    /// Shares are of the samples that pass the filters, not of all of the event.
    pub relative: bool,
    /// Show the tree of cgroups in place of rows.
    pub cgroup_tree: bool,
    /// Leave out rows below this share of the event, in percent.
    pub percent_limit: f64,
}

impl Default for HistsOptions {
    fn default() -> Self {
        HistsOptions {
            sort: SortKey::DEFAULT.to_vec(),
            levels: Vec::new(),
            examples: 0,
            grouping: Grouping::default(),
            group_sort: 0,
            shares: WeightColumns::default(),
            children: true,
            columns: Vec::new(),
            order: Vec::new(),
            cpu_modes: false,
            count: Counted::Samples,
            parent: None,
            chains: ChainOptions::default(),
            inline: true,
            self_time: SelfTime::default(),
            filters: Filters::default(),
            intervals: false,
            relative: false,
            cgroup_tree: false,
            percent_limit: 0.0,
        }
    }
}

impl HistsOptions {
    /// Sets the limit of rows and, as perf's `--percent-limit` does, of call chains with it.
    pub fn set_percent_limit(&mut self, percent: f64) {
        self.percent_limit = percent;
        self.chains.min_percent = percent;
    }

    /// The order of call chains that is in force.
    pub fn chain_order(&self) -> ChainOrder {
        self.chains.order.unwrap_or(if self.children {
            ChainOrder::Caller
        } else {
            ChainOrder::Callee
        })
    }

    /// The sort keys that are in force.
    pub fn sort_keys(&self) -> &[SortKey] {
        if self.sort.is_empty() { SortKey::default_of(self.count) } else { &self.sort }
    }

    /// True where rows are ordered by their own weight, without that of their callees.
    pub fn is_by_own(&self) -> bool {
        matches!(self.order.first(), Some(Field::Overhead | Field::Latency))
    }

    /// True where rows stand in levels.
    pub fn is_hierarchy(&self) -> bool {
        !self.levels.is_empty()
    }

    /// True where filters that keys answer hide rows and leave the sums around them whole, as in perf.
    pub(super) fn hides_rows(&self) -> bool {
        self.is_hierarchy() && !self.relative
    }

    /// True where rows need their part that ran in the kernel.
    pub(crate) fn wants_cpu_modes(&self) -> bool {
        let of_modes = [Field::KernelOverhead, Field::UserOverhead];
        self.cpu_modes
            || self.sort.contains(&SortKey::PhysDaddr)
            || self.columns.iter().chain(&self.order).any(|f| of_modes.contains(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chain_options_come_in_any_order() {
        let options = ChainOptions::parse("caller,fractal,2.5,7").unwrap();
        assert_eq!(options.mode, ChainMode::Fractal);
        assert_eq!(options.order, Some(ChainOrder::Caller));
        assert_eq!((options.min_percent, options.print_limit), (2.5, 7));
        assert_eq!(ChainOptions::parse("").unwrap(), ChainOptions::default());
    }

    #[test]
    fn nonsense_is_refused_by_word() {
        for bad in ["tree", "graph,-1", "0.5,x", "1,2,3", "101"] {
            assert!(ChainOptions::parse(bad).is_err(), "{bad}");
        }
        assert!(ChainOptions::parse("tree").unwrap_err().to_string().contains("`tree`"));
    }

    #[test]
    fn the_order_follows_children_unless_given() {
        let mut options = HistsOptions::default();
        assert_eq!(options.chain_order(), ChainOrder::Caller);
        options.children = false;
        assert_eq!(options.chain_order(), ChainOrder::Callee);
        options.chains.order = Some(ChainOrder::Caller);
        assert_eq!(options.chain_order(), ChainOrder::Caller);
    }
}
