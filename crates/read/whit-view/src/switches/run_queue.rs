//! Run-queue delays of threads: the table, and the same for programs.

use super::columns::seconds;
use super::stacks::Stacks;
use crate::hists::percent;
use crate::units::counted;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use whit_profile::model::{Profile, ThreadId};
use whit_profile::switches::{Durations, RunQueueDelays, Switches};
use whit_types::pad;

/// Delays of a thread that passes the filters, with its CPU time and switches.
pub(super) struct Line<'a> {
    pub(super) of_thread: &'a RunQueueDelays,
    cpu_ns: u64,
    switches: u64,
}

/// The thread with the longest single delay first. Filters by stack choose threads that have such a stack.
pub(super) fn lines<'a>(stacks: Stacks<'a>, switches: &'a Switches) -> Vec<Line<'a>> {
    let mut sums: FxHashMap<ThreadId, (u64, u64)> = FxHashMap::default();
    for (_, row, _) in stacks.rows(switches) {
        let (cpu_ns, count) = sums.entry(row.thread).or_default();
        *cpu_ns = cpu_ns.saturating_add(row.sums.cpu_ns);
        *count += row.sums.count();
    }
    let lines = switches.run_queue.iter().filter_map(|of_thread| {
        let (cpu_ns, switches) = *sums.get(&of_thread.thread)?;
        Some(Line { of_thread, cpu_ns, switches })
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.of_thread.delays.max_ns));
    lines
}

/// The columns, as wide as a million seconds or a name.
const COLUMNS: [&str; 9] = [
    "CPU Time",
    "Switches",
    "Delays",
    "Total Delay",
    "Avg Delay",
    "p50",
    "p95",
    "p99",
    "Max Delay",
];
const WIDTH: usize = 14;

pub(super) fn write(
    out: &mut impl Write,
    stacks: Stacks<'_>,
    switches: &Switches,
    (limit, quiet): (usize, bool),
) -> io::Result<()> {
    if !quiet {
        if !switches.sources.wakeups {
            writeln!(
                out,
                "# Delays after preemptions alone: no wake-ups were recorded, so that the end of a voluntary wait is \
                 unknown (add --wakeups)"
            )?;
        }
        let titles: String = COLUMNS.iter().map(|title| format!("{title:>WIDTH$}  ")).collect();
        let dots = format!("{}  ", ".".repeat(WIDTH)).repeat(COLUMNS.len() + 1);
        writeln!(out, "# {titles}{:>WIDTH$}      Tid:Command", "Max Delay At")?;
        writeln!(out, "# {dots}{}\n#", ".".repeat("    Tid:Command".len()))?;
    }
    let lines = lines(stacks, switches);
    let mut all = Durations::default();
    for line in &lines {
        all.merge(&line.of_thread.delays);
    }
    for line in lines.iter().take(limit) {
        let profile = stacks.profile();
        let info = &profile.threads[line.of_thread.thread.index()];
        let from = line.of_thread.longest_from.0;
        let at = format!("{}.{:06}", from / 1_000_000_000, from / 1000 % 1_000_000);
        let numbers = numbers(line.cpu_ns, line.switches, &line.of_thread.delays);
        writeln!(
            out,
            "  {numbers}{at:>WIDTH$}  {:>7}:{}",
            info.tid.0,
            profile.comms[info.comm.index()]
        )?;
    }
    if let more @ 1.. = lines.len().saturating_sub(limit) {
        let blank = (WIDTH + 2) * (COLUMNS.len() + 1) + 6;
        writeln!(out, "{}[{}: --limit]", pad::blanks(blank), counted(more as u64, "more thread"))?;
    }
    let sum = |of: fn(&Line<'_>) -> u64| lines.iter().map(of).fold(0u64, u64::saturating_add);
    let numbers = numbers(sum(|line| line.cpu_ns), sum(|line| line.switches), &all);
    writeln!(out, "  {numbers}{:>WIDTH$}      all {} threads", "", lines.len())?;
    let thread = |thread: ThreadId| thread_text(stacks.profile(), thread);
    pairs(out, "thread", &lines, &thread, (limit, quiet))?;
    if switches.cgroups.iter().all(Option::is_none) {
        return Ok(());
    }
    let cgroup = |thread: ThreadId| {
        let info = switches.cgroups.get(thread.index()).and_then(Option::as_ref);
        info.map_or_else(|| "[unknown cgroup]".to_owned(), |info| info.path.to_string())
    };
    pairs(out, "cgroup", &lines, &cgroup, (limit, quiet))
}

/// A thread as the tables name it.
fn thread_text(profile: &Profile, thread: ThreadId) -> String {
    let info = &profile.threads[thread.index()];
    format!("{}:{}", info.tid.0, profile.comms[info.comm.index()])
}

/// Writes who waited behind whom. Times of all lines add up to the total delay.
fn pairs(
    out: &mut impl Write,
    unit: &str,
    lines: &[Line<'_>],
    name: &dyn Fn(ThreadId) -> String,
    (limit, quiet): (usize, bool),
) -> io::Result<()> {
    let mut sums: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for Line { of_thread, .. } in lines {
        let waits = name(of_thread.thread);
        let known = of_thread.behind.iter().map(|(thread, ns)| (Some(name(*thread)), *ns));
        for (runs, ns) in known.chain([(None, of_thread.unattributed_ns())]) {
            let sum = sums.entry((waits.clone(), runs)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, ns)| *ns > 0).collect();
    sums.sort_by_key(|(_, ns)| Reverse(*ns));
    let total = sums.iter().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
    if !quiet {
        writeln!(
            out,
            "\n# Behind whom: the {unit} that ran on the CPU on which the waiting {unit} ran next\n#"
        )?;
        writeln!(out, "# {:>WIDTH$}  {:>8}  Waiting {unit}, running {unit}", "Delay", "Share")?;
        writeln!(out, "# {}  {}  {}\n#", ".".repeat(WIDTH), ".".repeat(8), ".".repeat(30))?;
    }
    for ((waits, runs), ns) in sums.iter().take(limit) {
        let runs = runs.as_deref().unwrap_or("[no recorded thread]");
        let share = percent(*ns, total);
        writeln!(out, "  {:>WIDTH$}  {share:>7.2}%  {waits} behind {runs}", seconds(*ns))?;
    }
    match sums.len().saturating_sub(limit) {
        0 => Ok(()),
        more => {
            let blank = pad::blanks(WIDTH + 14);
            writeln!(out, "{blank}[{}: --limit]", counted(more as u64, "more pair"))
        }
    }
}

fn numbers(cpu_ns: u64, switches: u64, delays: &Durations) -> String {
    let mut cells = vec![seconds(cpu_ns), switches.to_string(), delays.count.to_string()];
    let percentiles = [50, 95, 99].map(|percent| delays.percentile_ns(percent));
    let times = [delays.total_ns, delays.average_ns()].into_iter().chain(percentiles);
    cells.extend(times.chain([delays.max_ns]).map(seconds));
    cells.iter().map(|cell| format!("{cell:>WIDTH$}  ")).collect()
}

/// The run-queue delays of a thread: from the wake-up, the preemption or the beginning of the thread until it came onto
/// a CPU. Percentiles are at most 1/64 too long.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Delays {
    /// Index in `threads`.
    thread: u32,
    count: u64,
    total_ns: u64,
    average_ns: u64,
    p50_ns: u64,
    p95_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    /// When the longest began.
    max_from_ns: u64,
    /// Threads that ran meanwhile on the CPU on which the thread ran next, the longest first.
    behind: Vec<Behind>,
    /// The part of `total_ns` in which no recorded thread ran there.
    unattributed_ns: u64,
}

/// A thread that ran while another one waited for its CPU.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Behind {
    /// Index in `threads`.
    thread: u32,
    ns: u64,
}

impl Delays {
    pub(super) fn of(of_thread: &RunQueueDelays) -> Delays {
        let delays = &of_thread.delays;
        let [p50_ns, p95_ns, p99_ns] = [50, 95, 99].map(|percent| delays.percentile_ns(percent));
        Delays {
            thread: of_thread.thread.0,
            count: delays.count,
            total_ns: delays.total_ns,
            average_ns: delays.average_ns(),
            p50_ns,
            p95_ns,
            p99_ns,
            max_ns: delays.max_ns,
            max_from_ns: of_thread.longest_from.0,
            behind: of_thread
                .behind
                .iter()
                .map(|(thread, ns)| Behind { thread: thread.0, ns: *ns })
                .collect(),
            unattributed_ns: of_thread.unattributed_ns(),
        }
    }
}
