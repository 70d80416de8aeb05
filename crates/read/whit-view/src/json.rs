//! The report as JSON: a stable form for programs.
//!
//! One object. `version` grows when a member changes its meaning or goes away; new members may
//! appear without that. Periods, counts, nanoseconds and bytes are whole numbers; percentages and
//! `data_loss` (0 to 1) are fractions. Unknown values are `null`. Names are exact, with all their
//! characters. `docs/schemas/report.json` is the schema; it comes from the types here.

use std::io::{self, Write};
use std::rc::Rc;

use serde::Serialize;
use whit_profile::handle;
use whit_profile::model::{DsoId, EventId, LossReport, Profile, RecordingInfo, StopReason};
use whit_profile::parallelism::{Parallelism, ParallelismInfo};
use whit_profile::precision::Precision;
use whit_profile::{Counted, ExampleSample};
use whit_types::OutsideText;

use crate::cgroup_tree::CgroupTree;
use crate::cycle_blocks::JsonBlock;
use crate::hists::{
    self, EventGroup, HistRow, Hists, HistsOptions, MemberTotal, MemberWeight, ShareInterval,
    SortKey, without_digits,
};
use crate::json_facets::FacetMembers;
use crate::json_list::{Counts, Each};
use crate::json_strings;
use crate::ledger_json::{LedgerJson, Names};
use crate::stdio::source_text;
use crate::warning::warning_text;

/// Version of the form; see the module's documentation.
pub const VERSION: u32 = 1;

/// Writes the report, without a line end after it.
///
/// # Errors
/// The error of `out`.
pub fn write_json(
    out: &mut impl Write,
    profile: &Profile,
    options: &HistsOptions,
) -> io::Result<()> {
    json_strings::write(out, &Report::of(profile, options))
}

/// `whit report --json`: one object. Members may be added; `version` grows when one changes its meaning or
/// goes away. Whole numbers are counts, nanoseconds or bytes, as their names say.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Report<'a> {
    /// `whit-report`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    recording: Recording<'a>,
    /// Keys by which rows are told apart.
    sort: Vec<&'static str>,
    /// The owner of own time in inlined code: `innermost` or `outer`.
    self_time: &'static str,
    /// For how long the number of running threads is known; only where a report asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parallelism: Option<ParallelismTimes>,
    events: Each<'a, Event<'a>>,
    losses: Losses,
    /// The recording's cost; `null` if the recorder kept no ledger.
    ledger: Option<LedgerJson<'a>>,
    stats: Stats<'a>,
    warnings: Vec<String>,
}

/// The recording and the machine that it comes from.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Recording<'a> {
    path: &'a str,
    size_bytes: u64,
    hostname: &'a str,
    os_release: &'a str,
    /// Version of the recorder.
    version: &'a str,
    arch: &'a str,
    nr_cpus_online: Option<u32>,
    nr_cpus_available: Option<u32>,
    cpu_desc: &'a str,
    cpuid: &'a str,
    total_mem_kib: Option<u64>,
    cmdline: Vec<&'a str>,
    /// On the recording's clock.
    first_sample_ns: Option<u64>,
    /// On the recording's clock.
    last_sample_ns: Option<u64>,
    /// Seconds since the epoch.
    captured_on_s: Option<u64>,
    has_callchains: bool,
}

/// Time by whether the number of running threads is known.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ParallelismTimes {
    /// The threads that count together: `all`, `process` or `cgroup`.
    of: &'static str,
    /// Time in which switches were recorded.
    recorded_ns: u64,
    /// Time in it in which any recorded thread ran.
    ran_ns: u64,
    /// Time in it in which the running threads are unknown.
    unknown_ns: u64,
}

/// One event with its rows.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Event<'a> {
    name: &'a str,
    samples: u64,
    period: u64,
    lost_samples: u64,
    /// Sum of the latencies of all samples, in units of the period; only where latency was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<f64>,
    /// Samples that have no latency, since nobody knows how many threads ran; likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_parallelism_samples: Option<u64>,
    /// Where samples stand.
    precision: EventPrecision,
    /// Blocks of time from which the intervals come; `null` where there are no intervals.
    interval_blocks: Option<usize>,
    /// The other events of its group, whose weights rows have in `members`; with `--group`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<Member<'a>>,
    /// Whether rows have a weight that includes their callees.
    children: bool,
    /// Heaviest first; empty with `cgroups` and `blocks`.
    rows: Each<'a, Row<'a>>,
    /// Blocks of code with the cycles that the CPU counted in them, the most first; with `--total-cycles`, where the
    /// event's samples and period are branch records and their cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<Vec<JsonBlock<'a>>>,
    /// Cgroups with the sums over all below, in depth-first order; with `--cgroup-tree`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroups: Option<Vec<Cgroup>>,
}

/// An event of a group.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Member<'a> {
    name: &'a str,
    samples: u64,
    period: u64,
    lost_samples: u64,
}

/// One sample.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Example {
    time_ns: u64,
    pid: i32,
    tid: i32,
    /// `null` where it was not recorded.
    cpu: Option<u32>,
}

/// A row's weights of an event of a group.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MemberShare {
    #[serde(rename = "self")]
    own: Weight,
    /// Weight with callees; `null` without `children`.
    children: Option<Weight>,
}

/// The distance between a sample and the counted event.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventPrecision {
    /// `timer` (where the timer's interrupt came), `exact` (at the event itself) or `pmu`; `null` where nothing is known.
    kind: Option<&'static str>,
    /// `precise_ip`, of events of a PMU.
    precise_ip: Option<u8>,
    /// Nanoseconds between samples, of timers.
    period_ns: Option<u64>,
    /// How often the recorder has drawn the period anew, of timers.
    redraws: Option<u64>,
    /// The same for people.
    text: String,
}

impl EventPrecision {
    pub(crate) fn of(precision: Precision) -> EventPrecision {
        let (precise_ip, timer) = match precision {
            Precision::Pmu(level) => (Some(level), None),
            Precision::Timer { period_ns, redraws } => (None, Some((period_ns, redraws))),
            _ => (None, None),
        };
        EventPrecision {
            kind: precision.name(),
            precise_ip,
            period_ns: timer.map(|(period_ns, _)| period_ns),
            redraws: timer.map(|(_, redraws)| redraws),
            text: precision.to_string(),
        }
    }

    /// For people.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// A cgroup and those below it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Cgroup {
    /// Path from the root of its hierarchy; `[cgroup NUMBER]` without a recorded one, and `N/A` for samples without a
    /// cgroup.
    path: String,
    /// Cgroups around it.
    depth: u32,
    #[serde(rename = "self")]
    own: Weight,
    /// With all cgroups below.
    total: Weight,
}

/// One combination of the keys of `sort`. Members without a key are left out.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row<'a> {
    /// Key `comm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    comm: Option<&'a str>,
    /// Key `comm_nodigit`: the command name with `<N>` in the place of numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    comm_nodigit: Option<String>,
    /// Key `tgid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<Option<i32>>,
    /// Keys `pid` and `tid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<Option<i32>>,
    /// Key `cpu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<Option<u32>>,
    /// Key `socket`.
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<Option<u32>>,
    /// Key `cgroup`: the path from the root of its hierarchy; of one whose path was not recorded,
    /// `[cgroup NUMBER]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<Option<&'a str>>,
    /// Key `container`: the whole id, or the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<Option<&'a str>>,
    /// Key `pod`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<Option<&'a str>>,
    /// Key `unit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<Option<&'a str>>,
    /// Key `time`: beginning of the stretch, on the recording's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<Option<u64>>,
    /// Keys `weight` and `local_weight`: of one sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<Option<u64>>,
    /// Key `parallelism`: threads that ran; `null` where that is unknown, and 0 at samples of the idle task.
    #[serde(skip_serializing_if = "Option::is_none")]
    parallelism: Option<Option<u32>>,
    /// Key `parent`: the caller that `--parent` chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Option<&'a str>>,
    #[serde(flatten)]
    facets: FacetMembers<'a>,
    /// Key `dso`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dso: Option<Option<Dso<'a>>>,
    /// Key `symbol`.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<Option<Symbol<'a>>>,
    /// Keys `srcline` (`file:line`) and `srcfile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// With `--hierarchy`, the number of rows around this one. It has the keys of its level, and sums the rows behind it
    /// that stand deeper; `chains` are at the innermost level.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<usize>,
    #[serde(rename = "self")]
    own: Weight,
    /// Place in the order, from 1; rows have the same where their intervals overlap, so that nobody knows which one is
    /// heavier. Only with intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    /// Weight with callees; `null` without `children`.
    children: Option<Weight>,
    /// Single samples of the row itself, in order of time; with `--samples`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    examples: Vec<Example>,
    /// Weights of the other events of a group, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberShare>,
    /// The call graph: each node is a run of functions.
    chains: Each<'a, Chain<'a>>,
}

/// A share of an event.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Weight {
    period: u64,
    samples: u64,
    percent: f64,
    /// The period, each sample divided by the number of threads that ran; only where latency was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<f64>,
    /// Its share of the event's latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_percent: Option<f64>,
    /// Lower end of the interval that holds the true share of latency in 95 of 100 recordings, lost samples and those of
    /// unknown parallelism included; only where latency orders the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_low_percent: Option<f64>,
    /// Its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_high_percent: Option<f64>,
    /// Lower end of the interval that holds the true share in 95 of 100 recordings, lost samples included; only where
    /// CPU time orders the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    low_percent: Option<f64>,
    /// Its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    high_percent: Option<f64>,
}

/// A binary.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Dso<'a> {
    name: &'a str,
    path: &'a str,
    build_id: Option<String>,
}

/// A function.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Symbol<'a> {
    name: &'a str,
    /// Other commands take it in place of the name.
    handle: String,
    /// Whether a symbol names it; else the name is an address.
    known: bool,
    inlined: bool,
    kernel: bool,
}

/// A node of the call graph.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Chain<'a> {
    /// Index in this list.
    parent: Option<u32>,
    functions: Vec<Function<'a>>,
    /// The weight of all chains through this node: periods, and latencies where rows are ordered by them.
    period: u64,
    /// The chains that end here.
    self_period: u64,
}

/// A function of a call chain.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Function<'a> {
    name: &'a str,
    inlined: bool,
}

/// Records and time that the recording lacks.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Losses {
    lost_records: u64,
    /// How often records were lost.
    lost_chunks: u64,
    lost_samples: u64,
    /// For how long rings were full, summed over rings.
    paused_ns: u64,
    /// For how long was recorded, summed over rings.
    elapsed_ns: u64,
    /// Bytes that hold no whole record.
    truncated_bytes: u64,
    /// Paused over elapsed time, 0 to 1; `null` where something was lost and nobody knows for how long.
    data_loss: Option<f64>,
}

/// Numbers of records.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Stats<'a> {
    /// By type of record.
    by_type: Counts<'a, String>,
    /// In the order of `events`.
    samples_by_event: &'a [u64],
    /// Samples by why unwinding of their dumped stacks ended.
    unwind_stops: Counts<'a, StopReason>,
    /// Dumped stacks that branch records continue.
    continued_chains: u64,
    /// Functions whose names stay mangled.
    mangled_functions: usize,
}

impl<'a> Report<'a> {
    fn of(profile: &'a Profile, options: &'a HistsOptions) -> Report<'a> {
        let groups = hists::groups(profile, options.grouping);
        Report {
            format: "whit-report",
            version: VERSION,
            recording: Recording::of(&profile.recording),
            sort: options.sort_keys().iter().map(|key| key.name()).collect(),
            self_time: options.self_time.name(),
            parallelism: profile.parallelism.as_ref().map(ParallelismTimes::of),
            events: Each::new(move || {
                groups.clone().into_iter().map(|group| Event::of(profile, options, &group))
            }),
            losses: Losses::of(&profile.losses),
            ledger: profile
                .ledger
                .as_ref()
                .map(|ledger| LedgerJson { ledger, names: Names::Snake }),
            stats: Stats::of(profile),
            warnings: profile.warnings.iter().map(|w| warning_text(w).into_exact()).collect(),
        }
    }
}

impl ParallelismTimes {
    fn of(info: &ParallelismInfo) -> ParallelismTimes {
        let ParallelismInfo { of, recorded_ns, ran_ns, unknown_ns } = *info;
        ParallelismTimes { of: of.name(), recorded_ns, ran_ns, unknown_ns }
    }
}

impl<'a> Recording<'a> {
    pub(crate) fn of(info: &'a RecordingInfo) -> Recording<'a> {
        Recording {
            path: info.path.exact(),
            size_bytes: info.size_bytes,
            hostname: info.hostname.exact(),
            os_release: info.os_release.exact(),
            version: info.version.exact(),
            arch: info.arch.exact(),
            nr_cpus_online: info.nr_cpus.map(|n| n.0),
            nr_cpus_available: info.nr_cpus.map(|n| n.1),
            cpu_desc: info.cpu_desc.exact(),
            cpuid: info.cpuid.exact(),
            total_mem_kib: info.total_mem_kib,
            cmdline: info.cmdline.iter().map(OutsideText::exact).collect(),
            first_sample_ns: info.first_sample.map(|t| t.0),
            last_sample_ns: info.last_sample.map(|t| t.0),
            captured_on_s: info.captured_on_s,
            has_callchains: info.has_callchains,
        }
    }
}

impl Losses {
    pub(crate) fn of(losses: &LossReport) -> Losses {
        Losses {
            lost_records: losses.lost_records,
            lost_chunks: losses.lost_chunks,
            lost_samples: losses.lost_samples,
            paused_ns: losses.paused_ns,
            elapsed_ns: losses.elapsed_ns,
            truncated_bytes: losses.truncated_bytes,
            data_loss: losses.data_loss().share(),
        }
    }
}

impl<'a> Stats<'a> {
    fn of(profile: &'a Profile) -> Stats<'a> {
        let stats = &profile.stats;
        Stats {
            by_type: Counts(&stats.by_type),
            samples_by_event: &stats.samples_by_event,
            unwind_stops: Counts(&stats.unwind_stops),
            continued_chains: stats.continued_chains,
            mangled_functions: profile.mangled_functions(),
        }
    }
}

impl<'a> Event<'a> {
    fn of(profile: &'a Profile, options: &'a HistsOptions, group: &EventGroup) -> Event<'a> {
        let id = group.leader;
        let info = &profile.events[id.index()];
        let hists = Rc::new(hists::group_hists(profile, group, options));
        let member = |member: &MemberTotal| {
            let info = &profile.events[member.event.index()];
            let &MemberTotal { samples, period, .. } = member;
            Member { name: info.name.exact(), samples, period, lost_samples: info.lost_samples }
        };
        let members = hists.members.iter().map(member).collect();
        let (samples, period, children) = (hists.total_samples, hists.total_period, hists.children);
        let shown: Rc<[usize]> = hists.shown_places(options.percent_limit).into();
        let has_blocks = options.count == Counted::Blocks;
        let rows = if options.cgroup_tree || has_blocks { 0 } else { shown.len() };
        let code_blocks = has_blocks.then(|| JsonBlock::all(profile, id, options.percent_limit));
        let cgroups = options.cgroup_tree.then(|| Cgroup::all(profile, id, options));
        let blocks = profile.blocks.as_ref().map(|blocks| blocks.weights.len());
        let interval_blocks = blocks.filter(|_| hists.has_intervals());
        let has_latency = hists.shares.has_latency();
        let latency = has_latency.then(|| hists.latency_in_periods(hists.total_latency));
        let unknown_parallelism_samples = has_latency.then_some(hists.unknown.0);
        let row = move |place| Row::of(profile, options, &hists, shown[place]);
        Event {
            name: info.name.exact(),
            samples,
            period,
            lost_samples: info.lost_samples,
            latency,
            unknown_parallelism_samples,
            precision: EventPrecision::of(info.precision),
            interval_blocks,
            members,
            children,
            rows: Each::new(move || (0..rows).map(row.clone())),
            blocks: code_blocks,
            cgroups,
        }
    }
}

impl Cgroup {
    fn all(profile: &Profile, event: EventId, options: &HistsOptions) -> Vec<Cgroup> {
        let tree = CgroupTree::new(profile, event, options);
        let weight = |period, samples| Weight {
            period,
            samples,
            percent: hists::percent(period, tree.event_period),
            latency: None,
            latency_percent: None,
            latency_low_percent: None,
            latency_high_percent: None,
            low_percent: None,
            high_percent: None,
        };
        let cgroups = tree.shown(options.percent_limit).map(|node| Cgroup {
            path: node.path.exact().to_owned(),
            depth: node.depth as u32,
            own: weight(node.self_period, node.self_samples),
            total: weight(node.total_period, node.total_samples),
        });
        cgroups.collect()
    }
}

impl<'a> Row<'a> {
    /// A row of those that are shown.
    fn of(
        profile: &'a Profile,
        options: &'a HistsOptions,
        hists: &Rc<Hists>,
        index: usize,
    ) -> Row<'a> {
        let row = &hists.rows[index];
        let place = hists.places.as_ref().map(|places| places[index]);
        let intervals = row.intervals.as_deref();
        let has_latency = hists.shares.has_latency();
        let is_of_latency = |_: &ShareInterval| hists.shares.by_latency();
        let is_of_period = |_: &ShareInterval| !hists.shares.by_latency();
        let weight = |period, samples, latency, interval: Option<ShareInterval>| Weight {
            period,
            samples,
            percent: hists.percent(period),
            latency: has_latency.then(|| hists.latency_in_periods(latency)),
            latency_percent: has_latency.then(|| hists.latency_percent(latency)),
            latency_low_percent: interval.filter(is_of_latency).map(|interval| interval.low),
            latency_high_percent: interval.filter(is_of_latency).map(|interval| interval.high),
            low_percent: interval.filter(is_of_period).map(|interval| interval.low),
            high_percent: interval.filter(is_of_period).map(|interval| interval.high),
        };
        let of_children = intervals.map(|intervals| intervals.children);
        let children =
            weight(row.children_period, row.children_samples, row.children_latency, of_children);
        let own = weight(
            row.self_period,
            row.self_samples,
            row.self_latency,
            intervals.map(|intervals| intervals.own),
        );
        let nodes = row.chains.nodes.len();
        let chains = {
            let hists = Rc::clone(hists);
            let unit = if hists.shares.by_latency() { hists.latency_unit } else { 1 };
            move |node| Chain::of(profile, &hists.rows[index], node, unit)
        };
        let mut shown = Row {
            comm: None,
            comm_nodigit: None,
            pid: None,
            tid: None,
            cpu: None,
            socket: None,
            cgroup: None,
            container: None,
            pod: None,
            unit: None,
            time_ns: None,
            weight: None,
            parallelism: None,
            parent: None,
            facets: FacetMembers::default(),
            dso: None,
            symbol: None,
            source: None,
            depth: place.map(|place| place.depth),
            own,
            rank: intervals.map(|intervals| intervals.rank),
            children: hists.children.then_some(children),
            examples: row.examples.iter().map(Example::of).collect(),
            members: members_of(hists, row),
            chains: Each::new(move || (0..nodes).map(chains.clone())),
        };
        let level = place.and_then(|place| options.levels.get(place.depth));
        for &key in level.map_or(options.sort_keys(), |keys| keys) {
            shown.set(profile, key, row);
        }
        shown
    }

    /// Fills the member that a key asks for.
    fn set(&mut self, profile: &'a Profile, key: SortKey, row: &HistRow) {
        match key {
            SortKey::Comm => {
                let comm = row.context.comm.map(|comm| profile.comms[comm.index()].exact());
                self.comm = Some(comm.unwrap_or_default());
            }
            SortKey::CommNoDigit => {
                let comm = row.context.comm_no_digit.map(|comm| &profile.comms[comm.index()]);
                self.comm_nodigit =
                    Some(comm.map(|comm| without_digits(comm.exact())).unwrap_or_default());
            }
            SortKey::Pid | SortKey::Tid => self.tid = Some(row.context.tid.map(|tid| tid.0)),
            SortKey::Tgid => self.pid = Some(row.context.pid.map(|pid| pid.0)),
            SortKey::Cpu => self.cpu = Some(row.context.cpu.map(|cpu| cpu.0)),
            SortKey::Dso => self.dso = Some(row.place.dso.map(|id| Dso::of(profile, id))),
            SortKey::Symbol => self.symbol = Some(Symbol::of(profile, row)),
            SortKey::Socket => self.socket = Some(row.context.socket),
            SortKey::Cgroup => self.cgroup = Some(row.context.cgroup_name(profile, key)),
            SortKey::Container => self.container = Some(row.context.cgroup_name(profile, key)),
            SortKey::Pod => self.pod = Some(row.context.cgroup_name(profile, key)),
            SortKey::Unit => self.unit = Some(row.context.cgroup_name(profile, key)),
            SortKey::Time => self.time_ns = Some(row.context.time.map(|time| time.0)),
            SortKey::LocalWeight | SortKey::Weight => self.weight = Some(row.context.weight),
            SortKey::Parallelism => {
                self.parallelism = Some(match row.context.parallelism {
                    Some(Parallelism::Threads(count)) => Some(count),
                    Some(Parallelism::Unknown) | None => None,
                });
            }
            SortKey::SrcLine | SortKey::SrcFile => {
                self.source = Some(source_text(profile, key, row).exact().to_owned());
            }
            SortKey::Parent => {
                let function = row.context.parent.map(|id| &profile.functions[id.index()]);
                self.parent = Some(function.map(|function| function.name.exact()));
            }
            key => self.facets.set(profile, key, row),
        }
    }
}

impl Example {
    fn of(sample: &ExampleSample) -> Example {
        let ExampleSample { time, cpu, pid, tid } = *sample;
        Example { time_ns: time.0, pid: pid.0, tid: tid.0, cpu: cpu.map(|cpu| cpu.0) }
    }
}

/// The weights of the other events of a group.
fn members_of(hists: &Hists, row: &HistRow) -> Vec<MemberShare> {
    let share = |(weight, total): (&MemberWeight, &MemberTotal)| {
        let of = |period, samples| Weight {
            period,
            samples,
            percent: hists::percent(period, total.period),
            latency: None,
            latency_percent: None,
            latency_low_percent: None,
            latency_high_percent: None,
            low_percent: None,
            high_percent: None,
        };
        let children = of(weight.children_period, weight.children_samples);
        MemberShare {
            own: of(weight.self_period, weight.self_samples),
            children: hists.children.then_some(children),
        }
    };
    row.members.iter().zip(&hists.members).map(share).collect()
}

impl<'a> Dso<'a> {
    pub(crate) fn of(profile: &'a Profile, id: DsoId) -> Dso<'a> {
        let dso = &profile.dsos[id.index()];
        Dso {
            name: dso.short_name.exact(),
            path: dso.path.exact(),
            build_id: dso.build_id.map(|id| id.to_string()),
        }
    }
}

impl<'a> Symbol<'a> {
    fn of(profile: &'a Profile, row: &HistRow) -> Option<Symbol<'a>> {
        let id = row.place.function?;
        let function = &profile.functions[id.index()];
        Some(Symbol {
            name: function.name.exact(),
            handle: handle::of_function(profile, id),
            known: function.known,
            inlined: row.place.inlined,
            kernel: row.place.kernel,
        })
    }
}

impl<'a> Chain<'a> {
    /// `unit` makes one of the period.
    fn of(profile: &'a Profile, row: &HistRow, index: usize, unit: u64) -> Chain<'a> {
        let node = &row.chains.nodes[index];
        let functions = node.entries.iter().map(|entry| Function {
            name: profile.functions[entry.function.index()].name.exact(),
            inlined: entry.inlined,
        });
        Chain {
            parent: node.parent,
            functions: functions.collect(),
            period: node.cumulative() / unit,
            self_period: node.hit / unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};
    use crate::hists::Grouping;
    use serde_json::Value;
    use whit_perfdata::ledger::{
        BpfLedger, BpfMeasurement, Ledger, PmiLedger, PmiMeasurement, StackLedger,
    };
    use whit_profile::warning::Warning;

    const MAIN: Who<'static> = Who { comm: "a \"b\"", pid: 7, tid: 8, cpu: Some(3) };

    fn json(profile: &Profile, options: &HistsOptions) -> Value {
        let mut out = Vec::new();
        write_json(&mut out, profile, options).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    fn profile() -> Profile {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        let main = at("main", "/bin/app", 1).line("src/a.c", 4);
        let leaf = at("leaf", "/bin/app", 2);
        let inner = at("inner", "/bin/app", 2).inlined().line("src/a.c", 9);
        builder.sample(event, MAIN, &[main.clone(), leaf, inner], 30);
        builder.sample(event, MAIN, &[main], 10);
        builder.profile.losses.lost_records = 5;
        builder.profile.ledger = Some(Ledger { samples: 2, ..Ledger::default() });
        builder.profile.stats.by_type = vec![("SAMPLE".into(), 2)];
        builder.profile.stats.unwind_stops = vec![(StopReason::EndOfStack, 2)];
        builder.profile.warnings = vec![Warning::MoreWithoutSymbols { binaries: 3 }];
        builder.profile
    }

    #[test]
    fn rows_carry_keys_weights_and_chains() {
        let report = json(&profile(), &HistsOptions::default());
        assert_eq!((&report["format"], &report["version"]), (&"whit-report".into(), &1.into()));
        assert_eq!(report["sort"], serde_json::json!(["comm", "dso", "symbol"]));
        let event = &report["events"][0];
        assert_eq!((&event["samples"], &event["period"]), (&2.into(), &40.into()));
        let rows = event["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0]["comm"], "a \"b\"");
        assert_eq!(rows[0]["symbol"]["name"], "main");
        assert_eq!(rows[0]["dso"]["path"], "/bin/app");
        let weight = |p: u64, s: u64, percent: f64| serde_json::json!({"period": p, "samples": s, "percent": percent});
        assert_eq!(rows[0]["self"], weight(10, 1, 25.0));
        assert_eq!(rows[0]["children"], weight(40, 2, 100.0));
        let chains = rows[0]["chains"].as_array().unwrap();
        assert_eq!(chains[0]["functions"][0]["name"], "main");
        assert_eq!((&chains[0]["period"], &chains[0]["self_period"]), (&40.into(), &10.into()));
        assert_eq!(chains[1]["parent"], 0);
        assert_eq!(
            chains[1]["functions"][1],
            serde_json::json!({"name": "inner", "inlined": true})
        );
    }

    #[test]
    fn losses_ledger_statistics_and_warnings_are_there() {
        let report = json(&profile(), &HistsOptions::default());
        assert_eq!(report["losses"]["lost_records"], 5);
        // Nobody knows for how long.
        assert!(report["losses"]["data_loss"].is_null(), "{report}");
        let mut without = profile();
        without.losses = LossReport::default();
        assert_eq!(json(&without, &HistsOptions::default())["losses"]["data_loss"], 0.0);
        assert_eq!(report["ledger"]["samples"], 2);
        let untold = "the recorder was of a version that did not";
        let nothing = serde_json::json!({
            "measurement": "untold", "reason": untold, "count": null, "time_ns": null,
            "longest_ns": null, "measured_ns": null,
        });
        assert_eq!(report["ledger"]["pmi"], nothing);
        let nothing = serde_json::json!({
            "measurement": "untold", "reason": untold, "programs": 0, "runs": null,
            "run_time_ns": null,
            "timed_ns": null,
        });
        assert_eq!(report["ledger"]["bpf"], nothing);
        assert_eq!(report["stats"]["by_type"]["SAMPLE"], 2);
        assert_eq!(report["stats"]["unwind_stops"]["the outermost frame was reached"], 2);
        assert_eq!(report["warnings"][0], "no symbols for 3 more binaries");
    }

    #[test]
    fn the_kernels_time_is_there_if_it_was_measured() {
        let mut profile = profile();
        let measurement = PmiMeasurement::AllHandlers;
        let pmi = PmiLedger { measurement, count: 3, time_ns: 9, longest_ns: 4, measured_ns: 50 };
        let measurement = BpfMeasurement::Statistics;
        let bpf = BpfLedger { measurement, programs: 1, runs: 6, run_time_ns: 2, timed_ns: 9 };
        profile.ledger = Some(Ledger { pmi, bpf, ..Ledger::default() });
        let report = json(&profile, &HistsOptions::default());
        let figures = serde_json::json!({
            "measurement": "all_handlers", "reason": null, "count": 3, "time_ns": 9,
            "longest_ns": 4, "measured_ns": 50,
        });
        assert_eq!(report["ledger"]["pmi"], figures);
        let figures = serde_json::json!({
            "measurement": "statistics", "reason": null, "programs": 1, "runs": 6,
            "run_time_ns": 2,
            "timed_ns": 9,
        });
        assert_eq!(report["ledger"]["bpf"], figures);
        assert_eq!(report["ledger"]["stacks"], serde_json::Value::Null);
    }

    #[test]
    fn stacks_that_the_kernel_walked_are_there() {
        let mut profile = profile();
        let mut stacks = StackLedger { walks: 9, tables: 2, rows: 30, ..StackLedger::default() };
        (stacks.ended[1], stacks.ended[5]) = (7, 2);
        stacks.not_opened[0] = 1;
        profile.ledger = Some(Ledger { stacks, ..Ledger::default() });
        let stacks = &json(&profile, &HistsOptions::default())["ledger"]["stacks"];
        assert_eq!((&stacks["walks"], &stacks["tables"]), (&9.into(), &2.into()));
        let ended = serde_json::json!({ "end_of_stack": 7, "no_table_yet": 2 });
        assert_eq!((&stacks["rows"], &stacks["ended"]), (&30.into(), &ended));
        assert_eq!(stacks["not_opened"], serde_json::json!({ "deleted": 1 }));
    }

    #[test]
    fn other_keys_and_limits() {
        let mut options = HistsOptions {
            sort: SortKey::parse_list("tid,tgid,cpu,srcline").unwrap(),
            children: false,
            ..HistsOptions::default()
        };
        options.set_percent_limit(30.0);
        let report = json(&profile(), &options);
        let rows = report["events"][0]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!((&row["tid"], &row["pid"], &row["cpu"]), (&8.into(), &7.into(), &3.into()));
        assert_eq!((&row["source"], &row["children"]), (&"a.c:9".into(), &Value::Null));
    }

    #[test]
    fn rows_of_a_hierarchy_have_the_keys_of_their_level() {
        let mut options = HistsOptions { children: false, ..HistsOptions::default() };
        options.levels = options.sort.iter().map(|key| vec![*key]).collect();
        let report = json(&profile(), &options);
        let rows = report["events"][0]["rows"].as_array().unwrap();
        let depths: Vec<_> = rows.iter().map(|row| row["depth"].as_u64().unwrap()).collect();
        assert_eq!(depths, [0, 1, 2, 2]);
        assert_eq!((&rows[0]["comm"], &rows[0]["dso"]), (&"a \"b\"".into(), &Value::Null));
        assert_eq!((&rows[1]["dso"]["name"], &rows[1]["comm"]), (&"app".into(), &Value::Null));
        assert_eq!(rows[0]["self"]["period"], 40);
        assert_eq!(rows[2]["symbol"]["name"], "inner");
        let has_chains = |row: &Value| !row["chains"].as_array().unwrap().is_empty();
        assert_eq!(rows.iter().map(has_chains).collect::<Vec<_>>(), [false, false, true, true]);
    }

    #[test]
    fn groups_have_the_weights_of_all_events() {
        let mut builder = Builder::default();
        let [first, second, third] = ["cycles", "faults", "none"].map(|name| builder.event(name));
        builder.sample(first, MAIN, &[at("leaf", "/bin/app", 2)], 30);
        builder.sample(first, MAIN, &[at("main", "/bin/app", 1)], 10);
        builder.sample(second, MAIN, &[at("main", "/bin/app", 1)], 6);
        // By its name, this row would stand in front of the next one.
        builder.sample(second, MAIN, &[at("a", "/bin/app", 5)], 1);
        builder.sample(second, MAIN, &[at("other", "/bin/app", 9)], 3);
        let mut profile = builder.profile;
        let options = HistsOptions { children: false, ..HistsOptions::default() };
        let grouping = |grouping| HistsOptions { grouping, ..options.clone() };
        assert_eq!(
            json(&profile, &grouping(Grouping::AsRecorded))["events"].as_array().unwrap().len(),
            3
        );
        let check = |report: Value| {
            let events = report["events"].as_array().unwrap();
            assert_eq!(events[0]["members"][0]["period"], 10);
            let row = |row: &Value| {
                let members = row["members"].as_array().unwrap().iter();
                let members: Vec<_> =
                    members.map(|of| of["self"]["percent"].as_f64().unwrap()).collect();
                (row["self"]["period"].as_u64().unwrap(), members)
            };
            let rows: Vec<_> = events[0]["rows"].as_array().unwrap().iter().map(row).collect();
            (events.len(), rows)
        };
        let rows = vec![
            (30, vec![0.0, 0.0]),
            (10, vec![60.0, 0.0]),
            (0, vec![30.0, 0.0]),
            (0, vec![10.0, 0.0]),
        ];
        assert_eq!(check(json(&profile, &grouping(Grouping::Always))), (1, rows));
        let events = vec![EventId(0), second];
        profile.groups = vec![whit_profile::model::RecordedGroup { name: None, events }];
        let rows = vec![(30, vec![0.0]), (10, vec![60.0]), (0, vec![30.0]), (0, vec![10.0])];
        assert_eq!(check(json(&profile, &grouping(Grouping::Always))), (2, rows));
        let by_second = HistsOptions { group_sort: 1, ..grouping(Grouping::AsRecorded) };
        let rows = vec![(10, vec![60.0]), (0, vec![30.0]), (0, vec![10.0]), (30, vec![0.0])];
        assert_eq!(check(json(&profile, &by_second)), (2, rows));
        assert_eq!(profile.events[third.index()].samples, 0);
    }

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Report<'_>>("docs/schemas/report.json");
    }

    #[test]
    fn an_empty_profile_is_a_whole_report() {
        let report = json(&Profile::default(), &HistsOptions::default());
        assert_eq!(report["events"], serde_json::json!([]));
        assert_eq!(report["ledger"], Value::Null);
        assert_eq!(report["recording"]["total_mem_kib"], Value::Null);
    }
}
