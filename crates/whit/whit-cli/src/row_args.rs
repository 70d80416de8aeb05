//! Options on rows of `whit report`: their unit, their keys, their columns.

use crate::failure::{bail_usage, usage};
use crate::heading;
use crate::latency::LatencyArgs;
use anyhow::{Result, bail};
use regex_lite::Regex;
use whit_perfdata::attr::SampleType;
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::{Counted, Samples, WantedTrace};
use whit_view::hists::{
    DEFAULT_PARENT, Field, Fields, Grouping, HistsOptions, Pattern, SortKey, hide_unresolved,
    ignore_callees,
};

/// Kind of the rows, and their columns.
#[derive(clap::Args, Debug)]
pub(crate) struct RowArgs {
    /// Make rows by these keys; +KEY,.. adds to the default. For samples: comm, comm_nodigit, dso, symbol, parent,
    /// srcline, srcfile, cpu, socket, tid, pid, tgid, cgroup, container, pod, unit, time, trace, symbol_size, dso_size,
    /// addr, weight, local_weight, ins_lat, local_ins_lat, transaction, code_page_size, parallelism. With -b: dso_from, dso_to,
    /// symbol_from, symbol_to, srcline_from, srcline_to, mispredict, in_tx, abort, cycles. With --mem-mode:
    /// symbol_daddr, dso_daddr, dcacheline, phys_daddr, mem, snoop, tlb, locked, blocked, data_page_size
    #[arg(short, long, value_name = "KEY,..", help_heading = heading::ROWS, add = crate::completion::sort_keys())]
    sort: Option<String>,
    /// Print these columns in this order: keys, overhead, overhead_children, overhead_sys, overhead_us, latency,
    /// latency_children, sample, period; +COLUMN,.. adds to the default
    #[arg(short = 'F', long, value_name = "COLUMN,..", help_heading = heading::ROWS, add = crate::completion::sort_keys())]
    fields: Option<String>,
    /// Print a tree: a level for each sort key, or for each group of keys as in -s '{comm,dso},symbol'
    #[arg(long, help_heading = heading::ROWS)]
    hierarchy: bool,
    /// Print the events of a group in one table; all events where no group was recorded
    #[arg(long, overrides_with = "no_group", help_heading = heading::ROWS)]
    group: bool,
    /// Print a table for each event (groups have one table; with --json, this is the default)
    #[arg(long, help_heading = heading::ROWS)]
    no_group: bool,
    /// Order the rows of a group by its event of this number; the leader is 0
    #[arg(long, value_name = "N", conflicts_with = "no_group", help_heading = heading::ROWS)]
    group_sort_idx: Option<usize>,
    /// Make rows of branches: each entry of the branch stacks counts one
    #[arg(short = 'b', long, conflicts_with = "mem_mode", help_heading = heading::ROWS)]
    branch_stack: bool,
    /// Print so many single samples of each row, with their times for whit script --time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), conflicts_with = "branch_stack", help_heading = heading::ROWS)]
    samples: Option<u16>,
    /// Print the blocks of code between branches by the cycles that the CPU counted in them
    #[arg(long, help_heading = heading::ROWS)]
    total_cycles: bool,
    /// Make rows of accesses to memory, which count their weights
    #[arg(long, help_heading = heading::ROWS)]
    mem_mode: bool,
    /// Make rows by the caller that this regular expression finds (key parent)
    #[arg(short = 'p', long, value_name = "REGEX", value_parser = Regex::new, help_heading = heading::ROWS)]
    parent: Option<Regex>,
    /// Use only samples with a caller that --parent finds
    #[arg(short = 'x', long, help_heading = heading::FILTER)]
    exclude_other: bool,
    /// Count what these functions call as their own
    #[arg(long, value_name = "REGEX", value_parser = Regex::new, help_heading = heading::ROWS)]
    ignore_callees: Option<Regex>,
    /// Print only functions with this text in their names
    #[arg(long, value_name = "TEXT", help_heading = heading::FILTER)]
    symbol_filter: Option<String>,
    /// Leave out samples in code without a symbol
    #[arg(short = 'U', long, help_heading = heading::FILTER)]
    hide_unresolved: bool,
    /// Use only samples on this socket
    #[arg(long, value_name = "SOCKET", help_heading = heading::FILTER)]
    socket_filter: Option<u32>,
    /// Print the shares of the kernel and of all else
    #[arg(long, alias = "showcpuutilization", help_heading = heading::ROWS)]
    show_cpu_utilization: bool,
    /// Give the columns these widths and cut longer texts; 0 leaves a column as it is
    #[arg(short = 'w', long, value_name = "WIDTH,..", value_delimiter = ',', help_heading = heading::OUTPUT)]
    pub(crate) column_widths: Vec<usize>,
    /// Print tracepoints field by field (key trace)
    #[arg(long, help_heading = heading::ROWS)]
    raw_trace: bool,
    /// Print times in nanoseconds (key time)
    #[arg(long, help_heading = heading::OUTPUT)]
    pub(crate) ns: bool,
    /// Print the number of samples
    #[arg(short = 'n', long, help_heading = heading::ROWS)]
    pub(crate) show_nr_samples: bool,
    /// Print the sum of the periods
    #[arg(long, help_heading = heading::ROWS)]
    pub(crate) show_total_period: bool,
}

impl RowArgs {
    /// True where rows have a form that the interface does not have.
    pub(crate) fn are_text(&self) -> bool {
        self.hierarchy
            || self.total_cycles
            || self.samples.is_some()
            || !self.column_widths.is_empty()
    }

    fn count(&self) -> Counted {
        match (self.branch_stack, self.mem_mode) {
            _ if self.total_cycles => Counted::Blocks,
            (true, _) => Counted::Branches,
            (_, true) => Counted::Weights,
            _ => Counted::Samples,
        }
    }

    /// Fills in kind, keys and columns of the rows.
    ///
    /// # Errors
    /// Words that name no key, and keys of other rows.
    pub(crate) fn apply(&self, hists: &mut HistsOptions, latency: &LatencyArgs) -> Result<()> {
        hists.count = self.count();
        hists.cpu_modes = self.show_cpu_utilization;
        // Only rows of samples are sums over blocks of time, and only perf's columns leave room for the intervals.
        hists.intervals &=
            hists.count == Counted::Samples && !self.hide_unresolved && self.fields.is_none();
        hists.filters.symbol_part.clone_from(&self.symbol_filter);
        hists.filters.socket = self.socket_filter;
        hists.filters.with_parent = self.exclude_other;
        let named = Fields::named(self.sort.as_deref(), self.fields.as_deref()).map_err(usage)?;
        let lists_all = self.fields.as_ref().is_some_and(|list| !list.starts_with('+'));
        hists.shares = latency.shares(&named, lists_all, hists.count)?;
        hists.sort.clear();
        let default: Vec<SortKey> = hists.sort_keys().to_vec();
        let fields = Fields::parse(
            self.sort.as_deref(),
            self.fields.as_deref(),
            &default,
            &self.weights(hists),
        );
        let fields = fields.map_err(usage)?;
        hists.sort = fields.keys;
        let is_weight = |field: &Field| !matches!(field, Field::Key(_));
        let beyond_default = fields.order.iter().filter(|field| is_weight(field)).count()
            > self.weights(hists).len();
        if self.fields.is_some() || beyond_default {
            (hists.columns, hists.order) = (fields.columns, fields.order);
        }
        if let Some(pattern) = &self.parent {
            add_parent(hists);
            hists.parent = Some(Pattern(pattern.clone()));
        } else if self.exclude_other || hists.sort.contains(&SortKey::Parent) {
            hists.parent = Some(Pattern(Regex::new(DEFAULT_PARENT)?));
        }
        hists.examples = self.samples.map_or(0, usize::from);
        hists.group_sort = self.group_sort_idx.unwrap_or(0);
        hists.grouping = self.grouping(hists)?;
        if self.hierarchy {
            // Chains begin where they would without a hierarchy, as in perf.
            hists.chains.order = Some(hists.chain_order());
            (hists.children, hists.intervals) = (false, false);
            hists.levels = levels(&hists.sort, self.sort.as_deref().unwrap_or_default());
        }
        self.check_keys(hists)
    }

    /// Latency is known of single events alone, and JSON has an object for each event unless it is asked for groups.
    fn grouping(&self, hists: &HistsOptions) -> Result<Grouping> {
        let is_asked = self.group || self.group_sort_idx.is_some();
        if is_asked && hists.shares.has_latency() {
            bail_usage!("latency is that of one event: leave out --group and --group-sort-idx");
        }
        Ok(match (self.group, self.no_group) {
            (true, _) => Grouping::Always,
            _ if self.group_sort_idx.is_some() => Grouping::AsRecorded,
            (_, true) => Grouping::Apart,
            _ if self.total_cycles
                || hists.grouping == Grouping::Apart
                || hists.shares.has_latency() =>
            {
                Grouping::Apart
            }
            _ => Grouping::AsRecorded,
        })
    }

    /// Checks a loaded profile against the options.
    ///
    /// # Errors
    /// Rows are to be ordered by an event that no group has.
    pub(crate) fn check(&self, profile: &Profile, hists: &HistsOptions) -> Result<()> {
        let Some(number) = self.group_sort_idx else { return Ok(()) };
        let groups = whit_view::hists::groups(profile, hists.grouping);
        let largest = groups.iter().map(|group| group.members.len()).max().unwrap_or(0);
        if largest == 0 {
            bail_usage!(
                "--group-sort-idx orders groups, and the recording has none: give --group, too"
            );
        }
        if number > largest {
            bail_usage!(
                "--group-sort-idx {number}: the largest group has the numbers 0 to {largest}"
            );
        }
        Ok(())
    }

    /// The columns of weights that stand in front by default.
    fn weights(&self, hists: &HistsOptions) -> Vec<Field> {
        let has_children = hists.children && hists.count == Counted::Samples;
        let shares = hists.shares.list().iter();
        let mut weights = Vec::new();
        if has_children {
            weights.extend(shares.clone().map(|share| Field::of_share(*share, true)));
        }
        weights.extend(shares.map(|share| Field::of_share(*share, false)));
        if self.show_cpu_utilization {
            weights.extend([Field::KernelOverhead, Field::UserOverhead]);
        }
        weights.extend(self.show_nr_samples.then_some(Field::Samples));
        weights.extend(self.show_total_period.then_some(Field::Period));
        weights
    }

    fn check_keys(&self, hists: &HistsOptions) -> Result<()> {
        let of = |keys: &[SortKey]| hists.sort.iter().find(|key| keys.contains(key)).copied();
        let has_branches = self.branch_stack || self.total_cycles;
        if let (false, Some(key)) = (has_branches, of(&SortKey::OF_BRANCHES)) {
            bail_usage!("rows by {} are branches: give --branch-stack, too", key.name());
        }
        if let (false, Some(key)) = (self.mem_mode, of(&SortKey::OF_MEMORY)) {
            bail_usage!("rows by {} are accesses to memory: give --mem-mode, too", key.name());
        }
        Ok(())
    }

    /// Fills in the question.
    ///
    /// # Errors
    /// The recording has nothing of the kind.
    pub(crate) fn ask(&self, recording: &Recording, samples: &mut Samples) -> Result<()> {
        samples.count = self.count();
        samples.examples = self.samples.map_or(0, usize::from);
        samples.facets.cpu |= self.socket_filter.is_some();
        if self.raw_trace && samples.facets.trace == WantedTrace::Text {
            samples.facets.trace = WantedTrace::Fields;
        }
        let lacks = |kind: SampleType| {
            !recording.events.iter().any(|event| event.attr.sample_type.contains(kind))
        };
        let path = recording.path.display();
        if self.branch_stack && lacks(SampleType::BRANCH_STACK) {
            bail!("--branch-stack needs branch records, and {path} has none: record again with -b");
        }
        if self.total_cycles && lacks(SampleType::BRANCH_STACK) {
            bail!(
                "--total-cycles needs branch records with cycles, and {path} has none: record again with -b"
            );
        }
        if self.mem_mode && lacks(SampleType::DATA_SRC) {
            bail!(
                "--mem-mode needs samples that say where data came from, and {path} has none: record \
                 again with -d"
            );
        }
        if self.socket_filter.is_some() && recording.features.sockets().is_none() {
            bail!("--socket-filter needs the topology of the CPUs, which {path} does not have");
        }
        Ok(())
    }

    /// Applies the options that change a loaded profile.
    pub(crate) fn change(&self, profile: &mut Profile) {
        if let Some(pattern) = &self.ignore_callees {
            ignore_callees(profile, pattern);
        }
        if self.hide_unresolved {
            hide_unresolved(profile);
        }
    }
}

/// The keys in levels: one for each, and one for keys that stand in one pair of braces of the list.
fn levels(keys: &[SortKey], list: &str) -> Vec<Vec<SortKey>> {
    let of_group = |group: &str| {
        let named = Fields::named(Some(group), None).unwrap_or_default();
        named
            .into_iter()
            .filter_map(|field| match field {
                Field::Key(key) => Some(key),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let groups =
        list.split('{').skip(1).map(|rest| of_group(rest.split('}').next().unwrap_or(rest)));
    let groups: Vec<_> = groups.collect();
    let group_of = |key: &SortKey| groups.iter().position(|group| group.contains(key));
    let is_one_level =
        |a: &SortKey, b: &SortKey| group_of(a).is_some() && group_of(a) == group_of(b);
    keys.chunk_by(is_one_level).map(<[SortKey]>::to_vec).collect()
}

/// perf puts the key behind the others.
fn add_parent(hists: &mut HistsOptions) {
    if hists.sort.contains(&SortKey::Parent) {
        return;
    }
    hists.sort.push(SortKey::Parent);
    if !hists.columns.is_empty() {
        hists.columns.push(Field::Key(SortKey::Parent));
        hists.order.push(Field::Key(SortKey::Parent));
    }
}
