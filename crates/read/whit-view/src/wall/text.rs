//! Text.

use super::threads::{WallTable, WallTimes};
use crate::switches::{Preamble, StackTree, Stacks, SwitchViewOptions, TreeLines, facts, seconds};
use crate::units::{counted, duration};
use std::io::{self, Write};
use whit_profile::model::Profile;
use whit_profile::switches::{SwitchSums, Switches};
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
    write_threads(out, profile, &table, options)?;
    writeln!(out)?;
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
    if all.left_out_ns > 0 || table.left_out_threads > 0 {
        lines.push(format!(
            "Left out by the options: {} of these threads, and {} more",
            seconds(all.left_out_ns),
            counted(table.left_out_threads as u64, "thread"),
        ));
    }
    lines
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
    options: &SwitchViewOptions,
) -> io::Result<()> {
    let leaves_out = table.threads.iter().any(|thread| thread.times.left_out_ns > 0);
    let mut columns = vec!["Elapsed"];
    columns.extend(&OF_STACKS[1..]);
    columns.extend(leaves_out.then_some("Left Out"));
    write_heading(out, &columns, "    Tid:Command", options.quiet)?;
    for thread in &table.threads {
        let (times, sums) = (&thread.times, &thread.times.sums);
        let mut cells = vec![times.elapsed_ns, sums.cpu_ns, sums.waiting_ns, sums.preempted_ns];
        cells.extend([sums.run_queue_ns, times.unknown_ns()]);
        cells.extend(leaves_out.then_some(times.left_out_ns));
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
    let WallSums { cpu_ns, waiting_ns, preempted_ns, run_queue_ns, lossy_ns } = *sums;
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
