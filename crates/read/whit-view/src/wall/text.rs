//! Text.

use super::threads::{WallTable, WallTimes};
use crate::switches::{
    Preamble, StackTree, Stacks, SwitchViewOptions, TreeLines, chooses_a_part, facts, seconds,
};
use crate::units::{counted, duration};
use std::io::{self, Write};
use whit_profile::model::Profile;
use whit_profile::switches::{CpuParts, CpuWall, Sources, SwitchSums, Switches};
use whit_profile::wall::WallSums;

/// Times take as much room as a million seconds.
const WIDTH: usize = 14;
/// The columns of the call tree.
const OF_STACKS: [&str; 6] =
    ["Wall Time", "CPU Time", "Waiting", "Preempted", "Run Queue", "Unknown"];
/// Stands in the call tree for the time that no record covers.
const NOT_COVERED: &str = "[nothing recorded]";

/// Prints the leading comment lines, the table of threads, and the call tree.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_text(
    out: &mut impl Write,
    profile: &Profile,
    switches: &Switches,
    options: &SwitchViewOptions,
) -> io::Result<()> {
    let stacks = Stacks::new(profile, &options.filters, options.inline);
    let table = WallTable::new(stacks, switches);
    let all = table.sums();
    let mut facts = facts(profile, switches, &options.filters, &table.total);
    facts.extend(summary(switches, &table, &all));
    let doubts = doubts(switches, &all);
    Preamble { profile, facts, doubts, quiet: options.quiet }.write(out)?;
    write_threads(out, profile, &table, switches.sources, options)?;
    writeln!(out)?;
    if !switches.cpus.is_empty()
        && (switches.sources.interrupts || switches.sources.stolen)
        && !chooses_a_part(profile, &options.filters)
    {
        write_cpus(out, switches, options.quiet)?;
        writeln!(out)?;
    }
    write_tree(out, stacks, switches, options, &all)?;
    writeln!(out)
}

fn summary(switches: &Switches, table: &WallTable, all: &WallTimes) -> Vec<String> {
    let mut lines = vec![format!(
        "Wall time: {} of {} in {} of recorded time",
        seconds(all.elapsed_ns),
        counted(table.threads.len() as u64, "thread"),
        duration(switches.recorded_ns),
    )];
    if !switches.sources.wakeups && table.total.sync_count > 0 {
        lines.push(
            "Waiting includes the time in the run queue after a wake-up: no wake-ups were recorded (add \
             --wakeups)"
                .to_owned(),
        );
    }
    lines.extend(of_cpu_time(switches.sources, all));
    if all.left_out_ns > 0 || table.left_out_threads > 0 {
        lines.push(format!(
            "Left out by the options: {} of these threads, and {} more",
            seconds(all.left_out_ns),
            counted(table.left_out_threads as u64, "thread"),
        ));
    }
    lines
}

/// The columns of the parts of CPU time that the recording has.
const OF_INTERRUPTS: [&str; 2] = ["Interrupts", "Softirqs"];
const STOLEN: &str = "Stolen";

/// Titles of the recorded parts.
fn part_titles(sources: Sources) -> Vec<&'static str> {
    let interrupts = OF_INTERRUPTS.into_iter().filter(|_| sources.interrupts);
    interrupts.chain(sources.stolen.then_some(STOLEN)).collect()
}

/// The recorded parts, in the order of their titles.
fn part_times(sources: Sources, parts: &CpuParts) -> Vec<u64> {
    let interrupts = [parts.irq_ns, parts.softirq_ns].into_iter().filter(|_| sources.interrupts);
    interrupts.chain(sources.stolen.then_some(parts.stolen_ns)).collect()
}

/// The parts of CPU time, and those that the recording lacks.
fn of_cpu_time(sources: Sources, all: &WallTimes) -> Option<String> {
    let lacking = match (sources.interrupts, sources.stolen) {
        (true, true) => None,
        (true, false) => Some("the time that the hypervisor stole was not recorded"),
        (false, true) => Some("the time of interrupts was not recorded"),
        (false, false) => {
            return sources.has_switches().then(|| {
                "CPU time has that of interrupts and of the hypervisor: neither was recorded (record with \
                 --engine=bpf)"
                    .to_owned()
            });
        }
    };
    let parts = all.cpu_parts?;
    let named = part_titles(sources).into_iter().zip(part_times(sources, &parts));
    let named: Vec<_> =
        named.map(|(title, ns)| format!("{} {}", title.to_lowercase(), seconds(ns))).collect();
    let lacking = lacking.map(|lacking| format!("; {lacking}")).unwrap_or_default();
    Some(format!("CPU time has parts that are not the threads': {}{lacking}", named.join(", ")))
}

/// The time of each CPU.
fn write_cpus(out: &mut impl Write, switches: &Switches, quiet: bool) -> io::Result<()> {
    let sources = switches.sources;
    let mut columns = vec!["Elapsed", "Threads"];
    columns.extend(part_titles(sources));
    columns.extend(["Idle", "Unknown"]);
    write_heading(out, &columns, "    CPU", quiet)?;
    for CpuWall { cpu, elapsed_ns, threads_ns, parts, idle_ns, unknown_ns, .. } in &switches.cpus {
        let mut cells = vec![*elapsed_ns, *threads_ns];
        cells.extend(part_times(sources, parts));
        cells.extend([*idle_ns, *unknown_ns]);
        writeln!(out, "{}{:>7}", numbers(cells), cpu.0)?;
    }
    Ok(())
}

fn doubts(switches: &Switches, all: &WallTimes) -> Vec<String> {
    let mut lines = Vec::new();
    if all.unknown_ns() > 0 {
        lines.push(format!(
            "Unknown: {}. A loss touches {} of it ({}); no record covers {}",
            seconds(all.unknown_ns()),
            seconds(all.sums.lossy_ns),
            counted(switches.loss_windows.len() as u64, "loss window"),
            seconds(all.uncovered_ns),
        ));
    }
    if all.excess_ns > 0 {
        lines.push(format!(
            "Not fitting: threads have {} more than they existed",
            seconds(all.excess_ns)
        ));
    }
    lines
}

fn numbers(columns: impl IntoIterator<Item = u64>) -> String {
    let cells = columns.into_iter().map(|ns| format!("{:>WIDTH$}  ", seconds(ns)));
    format!("  {}", cells.collect::<String>())
}

fn write_heading(
    out: &mut impl Write,
    columns: &[&str],
    last: &str,
    quiet: bool,
) -> io::Result<()> {
    if quiet {
        return Ok(());
    }
    let titles: String = columns.iter().map(|title| format!("{title:>WIDTH$}  ")).collect();
    let dots = format!("{}  ", ".".repeat(WIDTH)).repeat(columns.len());
    writeln!(out, "# {titles}{last}\n# {dots}{}\n#", ".".repeat(last.len()))
}

fn write_threads(
    out: &mut impl Write,
    profile: &Profile,
    table: &WallTable,
    sources: Sources,
    options: &SwitchViewOptions,
) -> io::Result<()> {
    let leaves_out = table.threads.iter().any(|thread| thread.times.left_out_ns > 0);
    let mut columns = vec!["Elapsed"];
    columns.extend(&OF_STACKS[1..]);
    columns.extend(leaves_out.then_some("Left Out"));
    let is_throttled = table.threads.iter().any(|thread| thread.times.sums.throttled_ns > 0);
    columns.extend(is_throttled.then_some("Throttled"));
    let has_parts = table.threads.iter().all(|thread| thread.times.cpu_parts.is_some());
    if has_parts {
        columns.extend(part_titles(sources));
    }
    write_heading(out, &columns, "    Tid:Command", options.quiet)?;
    for thread in &table.threads {
        let (times, sums) = (&thread.times, &thread.times.sums);
        let mut cells = vec![times.elapsed_ns, sums.cpu_ns, sums.waiting_ns, sums.preempted_ns];
        cells.extend([sums.run_queue_ns, times.unknown_ns()]);
        cells.extend(leaves_out.then_some(times.left_out_ns));
        cells.extend(is_throttled.then_some(sums.throttled_ns));
        if has_parts {
            cells.extend(part_times(sources, &times.cpu_parts.unwrap_or_default()));
        }
        let info = &profile.threads[thread.thread.index()];
        let comm = &profile.comms[info.comm.index()];
        writeln!(out, "{}{:>7}:{comm}", numbers(cells), info.tid.0)?;
    }
    Ok(())
}

/// The heaviest first; of equal ones those with more CPU time.
fn weight(sums: &SwitchSums) -> (u64, u64) {
    let wall = WallSums::of(sums);
    (wall.total_ns(), wall.cpu_ns)
}

fn of_stack(sums: &WallSums) -> [u64; 6] {
    let WallSums { cpu_ns, waiting_ns, preempted_ns, run_queue_ns, lossy_ns, .. } = *sums;
    [sums.total_ns(), cpu_ns, waiting_ns, preempted_ns, run_queue_ns, lossy_ns]
}

fn write_tree(
    out: &mut impl Write,
    stacks: Stacks<'_>,
    switches: &Switches,
    options: &SwitchViewOptions,
    all: &WallTimes,
) -> io::Result<()> {
    let tree = StackTree::weighed(stacks, switches, options.order, weight);
    write_heading(out, &OF_STACKS, "Function / Call Stack", options.quiet)?;
    let whole = of_stack(&WallSums::of(&tree.total));
    let is_shown = |sums: &SwitchSums| {
        let parts = of_stack(&WallSums::of(sums));
        let is_large = |(part, whole): (&u64, &u64)| {
            *part > 0 && *part as f64 * 100.0 >= *whole as f64 * options.percent_limit
        };
        parts.iter().zip(&whole).any(is_large)
    };
    let lines = TreeLines {
        profile: stacks.profile(),
        tree: &tree,
        order: options.order,
        is_shown: &is_shown,
        numbers: &|sums| numbers(of_stack(&WallSums::of(sums))),
    };
    lines.write(out)?;
    if all.uncovered_ns > 0 {
        let ns = all.uncovered_ns;
        writeln!(out, "{}{NOT_COVERED}", numbers([ns, 0, 0, 0, 0, ns]))?;
    }
    Ok(())
}
