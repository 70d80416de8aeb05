//! Cost of counting per cgroup: the comparison behind `whit bench cgroup`.
//!
//! Processes in cgroups of their own pass a token around on one CPU, so that every hop is a switch
//! between cgroups. Meanwhile somebody counts two events in each cgroup, in their parent and in the
//! whole system, and prints them every second: the command line of the patches that made cgroup
//! switches cheaper in the kernel. The additional time of a hop over an uncounted one is the cost.
//!
//! The effect is small. So a round has everybody in turn, each in some short windows, with windows
//! of nobody counting before and after: the same processes all the time, since others would be a
//! little faster or slower. A hop's time is CPU time by the processes' own clocks, on a CPU where
//! counters do not run by themselves. Windows in which others had that CPU are left out and
//! counted, and so are turns in which the machine changed its speed, if enough others are left. A
//! figure is the median over rounds with the interval that it is in (`bootstrap.rs`).
//!
//! Two parts of the cost of BPF have their turns too: the events alone, and an empty program. Hops
//! differ by more than whit's program takes; so that one, and the empty one, are timed by the
//! kernel as well (`program_time.rs`).

mod bootstrap;
mod counter;
mod groups;
mod interruption;
mod load;
mod machine;
mod program_time;
mod render;
mod rounds;

use std::time::Duration;

use clap::Args;
use serde::Serialize;

pub(crate) use bootstrap::Estimate;
pub(crate) use counter::{Counter, CounterKind};
pub(crate) use load::Hops;

use crate::args::{count, heading, milliseconds, rounds, within};
use crate::bench::{Bench, Say};
use crate::core_pmu;
use crate::error::Error;
use crate::rounds::order;
use crate::scratch::Scratch;
use crate::setup::Setup;
use groups::Groups;
use interruption::Interruption;
use machine::LoadCpu;
use rounds::Setting;

/// By how much hops with nobody counting may differ from before a turn to after it.
const CHANGE_MAX: f64 = 0.1;
/// Fewer turns tell no interval: that the median is outside of all five is 1 in 16.
const STEADY_MIN: usize = 5;
/// The counted events where there is a PMU that counts, and where there is none.
const HARDWARE: [&str; 2] = ["cycles", "instructions"];
const SOFTWARE: [&str; 2] = ["cpu-clock", "page-faults"];

/// Most sibling cgroups: each has a process.
const CGROUPS_MAX: u64 = 4096;

const EXAMPLES: &str = "\
Examples:
  whit bench cgroup --cgroups 6,60 --rounds 3
  whit bench cgroup -e cpu-clock --markdown result.md";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Numbers of sibling cgroups, separated by commas
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "6,60,600",
          value_parser = count(CGROUPS_MAX), help_heading = heading::COMPARED)]
    cgroups: Vec<usize>,

    /// Work of a hop in nanoseconds, separated by commas: the first one with all numbers of cgroups,
    /// others with the first number
    #[arg(long = "work", value_name = "NS,..", value_delimiter = ',', default_value = "0",
          help_heading = heading::COMPARED)]
    work_ns: Vec<u64>,

    /// Numbers of cgroups in which the token goes around, separated by commas, in addition to all of
    /// them; with the last number of cgroups
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "6",
          value_parser = within(2..=CGROUPS_MAX),
          help_heading = heading::COMPARED)]
    active: Vec<usize>,

    /// Runs of each setting
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = rounds(),
          help_heading = heading::RUNS)]
    rounds: usize,

    /// Windows of a run
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = count(1000),
          help_heading = heading::RUNS)]
    windows: usize,

    /// Milliseconds of each window
    #[arg(long = "milliseconds", value_name = "MS", default_value = "60",
          value_parser = milliseconds(1..=600_000), help_heading = heading::RUNS)]
    duration: Duration,

    /// Events to count [default: cycles,instructions where there is a PMU, else cpu-clock,page-faults]
    #[arg(short, long, value_name = "EVENT,..", value_delimiter = ',',
          help_heading = heading::EVENTS)]
    events: Option<Vec<String>>,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) events: Vec<String>,
    /// The counters that took part.
    pub(crate) counters: Vec<Counter>,
    /// Absent counters, with the reason.
    pub(crate) absent: Vec<String>,
    /// One for each number of cgroups, of those with a process, and amount of work.
    pub(crate) tables: Vec<Table>,
}

/// Runs with the same number of cgroups and the same work.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Table {
    /// Siblings that are counted.
    pub(crate) cgroups: usize,
    /// Those of them that the token goes around in.
    pub(crate) active: usize,
    pub(crate) work_ns: u64,
    /// Windows with nobody counting.
    pub(crate) alone: Windows,
    /// With somebody counting.
    pub(crate) rows: Vec<Row>,
}

/// Runs while one counter counted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) counter: CounterKind,
    /// One for each round but those in which others had the CPU all the time.
    pub(crate) runs: Vec<Run>,
    /// All windows with this counter, and those that were left out.
    pub(crate) windows: Windows,
    /// Why there are no runs, or fewer.
    pub(crate) refused: Option<String>,
}

/// One run: the medians of its windows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Run {
    /// The token's way.
    pub(crate) hops: Hops,
    /// The same with nobody counting, just before and just after.
    pub(crate) alone: [Hops; 2],
    /// CPU time of the counter in both modes, as a share of the time that it ran.
    pub(crate) counter_cpu: f64,
    /// Where a BPF program runs at switches: how long it takes by the kernel's statistics of such
    /// programs, which take time themselves; nothing where the kernel does not tell.
    pub(crate) program_ns: Option<f64>,
}

/// How many windows there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Windows {
    /// Windows in total, disturbed ones included.
    pub(crate) measured: usize,
    /// Left out: others had the CPU for more than a tenth of it, or the hypervisor took it away, or no
    /// hop came to an end.
    pub(crate) disturbed: usize,
}

impl Run {
    fn alone_ns(&self) -> f64 {
        self.alone.iter().map(|hops| hops.cpu_ns).sum::<f64>() / 2.0
    }

    fn added_ns(&self) -> f64 {
        self.hops.cpu_ns - self.alone_ns()
    }

    /// Whether hops with nobody counting took as long before as after. Where not, the machine has
    /// changed its speed at an unknown time, and the added time is unknown.
    fn is_steady(&self) -> bool {
        let [before, after] = self.alone;
        (before.cpu_ns - after.cpu_ns).abs() <= CHANGE_MAX * self.alone_ns()
    }
}

impl Row {
    /// The steady runs, or all where too few of them are.
    fn compared(&self) -> Vec<&Run> {
        let steady: Vec<_> = self.runs.iter().filter(|run| run.is_steady()).collect();
        if steady.len() < STEADY_MIN { self.runs.iter().collect() } else { steady }
    }

    fn added_ns(&self) -> Vec<f64> {
        self.compared().into_iter().map(Run::added_ns).collect()
    }

    fn program_ns(&self) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.program_ns).collect()
    }
}

impl Table {
    fn new(size: Size, counters: &[Counter]) -> Table {
        let row = |counter: &Counter| Row {
            counter: counter.kind,
            runs: Vec::new(),
            windows: Windows::default(),
            refused: None,
        };
        let rows = counters.iter().map(row).collect();
        let Size { cgroups, active, work_ns } = size;
        Table { cgroups, active, work_ns, alone: Windows::default(), rows }
    }

    fn row(&self, counter: CounterKind) -> Option<&Row> {
        self.rows.iter().find(|row| row.counter == counter)
    }

    /// Additional time of a hop over an uncounted one, in nanoseconds of CPU time. Uses the runs in
    /// which the machine kept its speed, if they are enough.
    pub(crate) fn added_ns(&self, counter: CounterKind) -> Option<Estimate> {
        bootstrap::median(&self.row(counter)?.added_ns())
    }

    /// Added time of a counter, as a share of that of `perf stat -G`.
    pub(crate) fn share_of_perfs(&self, counter: CounterKind) -> Option<Estimate> {
        let added = |counter| Some(self.row(counter)?.added_ns());
        bootstrap::ratio(&added(counter)?, &added(CounterKind::Perf)?)
    }

    /// Time of a counter's program at a switch by the kernel's statistics of BPF programs, in
    /// nanoseconds. It includes a part of the statistics' own time.
    pub(crate) fn program_ns(&self, counter: CounterKind) -> Option<Estimate> {
        bootstrap::median(&self.row(counter)?.program_ns())
    }

    /// Times of whit's program and of an empty one.
    fn programs_ns(&self) -> Option<[Vec<f64>; 2]> {
        let of = |counter| Some(self.row(counter)?.program_ns());
        Some([of(CounterKind::WhitBpf)?, of(CounterKind::Nothing)?])
    }

    /// How much longer whit's program takes at a switch than one that does nothing, by the same
    /// statistics.
    pub(crate) fn own_ns(&self) -> Option<Estimate> {
        let [whole, nothing] = self.programs_ns()?;
        bootstrap::difference([&whole, &nothing])
    }

    /// The same, as a share of that in another table.
    pub(crate) fn own_share_of(&self, other: &Table) -> Option<Estimate> {
        let [whole, nothing] = self.programs_ns()?;
        let [others, others_nothing] = other.programs_ns()?;
        bootstrap::ratio_of_differences([&whole, &nothing], [&others, &others_nothing])
    }

    /// Added time of a counter, as a share of that in another table.
    pub(crate) fn share_of(&self, other: &Table, counter: CounterKind) -> Option<Estimate> {
        bootstrap::ratio(&self.row(counter)?.added_ns(), &other.row(counter)?.added_ns())
    }
}

impl Bench for Options {
    type Figures = Comparison;

    const SCHEMA: u32 = 4;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        self.setup.require(&["token"])?;
        let interruption = Interruption::watch()?;
        let events = self.events.clone().unwrap_or_else(default_events);
        let (counters, absent) = Counter::detect_all(&self.setup.whit);
        let scratch = Scratch::new(&self.setup.directory)?;
        for left in Groups::remove_left()? {
            say(&format!("removed {left}, which an earlier run has left"));
        }
        let cpu = LoadCpu::choose()?;
        let setting = Setting {
            counters: &counters,
            events: &events,
            options: self,
            output: scratch.path().join("counts"),
            cpu: cpu.number(),
            interruption: &interruption,
        };
        let mut sizes: Vec<(Groups, Table)> = Vec::new();
        for size in sizes_of(self) {
            let groups = Groups::make(size.cgroups, size.active)?;
            sizes.push((groups, Table::new(size, &counters)));
            interruption.check()?;
        }
        for round in 0..self.rounds {
            say(&format!("round {} of {}", round + 1, self.rounds));
            for size in order(round, sizes.len()) {
                let (groups, table) = &mut sizes[size];
                let result = setting.round(round, groups, table);
                // Ctrl-C ends counters and workloads too: that is why they failed.
                interruption.check()?;
                result?;
            }
        }
        let tables = sizes.into_iter().map(|(_, table)| table).collect();
        Ok(Comparison { events, counters, absent, tables })
    }
}

/// The counters that run together.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Size {
    cgroups: usize,
    active: usize,
    work_ns: u64,
}

/// All numbers of cgroups with the token in all of them; the last number with the token in fewer; the
/// first number with the other amounts of work.
fn sizes_of(options: &Options) -> Vec<Size> {
    let work_ns = options.work_ns.first().copied().unwrap_or(0);
    let numbers = &options.cgroups;
    let all = numbers.iter().map(|&cgroups| Size { cgroups, active: cgroups, work_ns });
    let last = numbers.last().copied().unwrap_or(0);
    let fewer = options.active.iter().filter(|&&active| active < last);
    let fewer = fewer.map(|&active| Size { cgroups: last, active, work_ns });
    let first = numbers.first().map(|&cgroups| (cgroups, options.work_ns.iter().skip(1)));
    let more = first.into_iter().flat_map(|(cgroups, work)| {
        work.map(move |&work_ns| Size { cgroups, active: cgroups, work_ns })
    });
    all.chain(fewer).chain(more).collect()
}

fn default_events() -> Vec<String> {
    if core_pmu::is_here() { HARDWARE } else { SOFTWARE }.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests;
