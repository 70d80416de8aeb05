//! Cost of a switch between cgroups: groups that are looked at, registers that are written.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use whit_pmu::bus::Accesses;
use whit_pmu::counter::{CounterIndex, CounterMask};
use whit_pmu::driver::{Event, EventConfig};
use whit_pmu::known_models as models;
use whit_pmu::model::PmuModel;
use whit_pmu::sched::{
    CgroupId, Changes, CpuScheduler, EventId, FlatList, GroupId, GroupSpec, Hierarchy, Move,
};
use whit_pmu::sim::SimulationParameters;
use whit_pmu::sim::machine::Machine;

use super::traces::Trace;
use super::{PerOperation, SwitchArgs, cost_headings, cost_parameters_to, strings, times_ns};
use crate::bench::{Bench, Figures, Say};
use crate::page::{Page, number};

/// Cgroups in the table of visits.
const CGROUPS: [u64; 7] = [1, 3, 10, 30, 100, 300, 1000];
/// Events of each cgroup there, as in the published example of 20 cgroups (Kan Liang, 2019).
const EVENTS_EACH: u64 = 6;
/// Instructions and cycles, as the published example counts them.
const EVENTS: [u64; 2] = [0xc0, 0x3c];
const PARENT: CgroupId = CgroupId(u64::MAX);

const EXAMPLES: &str = "\
Example:
  whit bench sched --switches 1000000 --json result.json";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(flatten)]
    load: SwitchArgs,
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, _: Say<'_>) -> Result<Comparison> {
        Ok(compare(self.load.switches))
    }
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) switches: u64,
    /// Groups that one switch looks at.
    pub(crate) visits: Vec<Visits>,
    /// Register accesses of one switch.
    pub(crate) rows: Vec<Row>,
}

/// Groups that one switch looks at.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Visits {
    /// Cgroups, of six groups each.
    pub(crate) cgroups: u64,
    /// With one list of all groups.
    pub(crate) flat: f64,
    /// With one tree for each cgroup, as the kernel has them.
    pub(crate) trees: f64,
}

/// A way to switch.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    /// Name of the way to switch.
    pub(crate) way: String,
    pub(crate) accesses: PerOperation,
    /// Events that one switch takes off or puts on.
    pub(crate) moves: f64,
    /// Under each cost model.
    pub(crate) time_ns: Vec<f64>,
}

/// Measures both.
pub(crate) fn compare(switches: u64) -> Comparison {
    let visits = CGROUPS.iter().map(|cgroups| visits(*cgroups, switches.min(1000))).collect();
    let ways = [Way::Everything, Way::OfCgroups, Way::Difference];
    let rows = ways.iter().map(|way| row(*way, switches)).collect();
    Comparison { switches, visits, rows }
}

fn family(cgroups: u64) -> Hierarchy {
    let mut hierarchy = Hierarchy::new();
    // Distinct numbers below a parent that is there: this cannot fail.
    let _ = hierarchy.add(PARENT, None);
    for cgroup in 0..cgroups {
        let _ = hierarchy.add(CgroupId(cgroup), Some(PARENT));
    }
    hierarchy
}

fn visits(cgroups: u64, switches: u64) -> Visits {
    let model = models::sapphire_rapids();
    let mut cpu = CpuScheduler::new(model.counters(), family(cgroups));
    let mut flat = FlatList::new();
    for cgroup in (0..cgroups).map(CgroupId) {
        for _ in 0..EVENTS_EACH {
            let spec =
                GroupSpec { cgroup: Some(cgroup), pinned: false, events: vec![model.general] };
            flat.push(Some(cgroup), cpu.add(spec, 0).0);
        }
    }
    let before = cpu.statistics().visits;
    let mut flat_visits = 0;
    // With one cgroup: to it and to none.
    for turn in 0..switches {
        let to = (cgroups > 1 || turn % 2 == 0).then(|| CgroupId(turn % cgroups));
        cpu.switch(to, turn);
        flat_visits += flat.matching(to.as_slice()).1;
    }
    let mean = |count: u64| count as f64 / switches.max(1) as f64;
    Visits { cgroups, flat: mean(flat_visits), trees: mean(cpu.statistics().visits - before) }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Way {
    /// All events go off and on, also those of the whole machine.
    Everything,
    /// Events of cgroups do, as in the series of Kan Liang (2019).
    OfCgroups,
    /// Events that the two cgroups do not have in common do.
    Difference,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Everything => "all events go off and on",
            Way::OfCgroups => "seed: those of cgroups do",
            Way::Difference => "ours: those not in common do",
        }
    }
}

/// The hardware that one way drives.
struct Driven {
    machine: Machine,
    /// Events that are on no counter.
    off: BTreeMap<EventId, Event>,
    moves: u64,
}

impl Driven {
    fn apply(&mut self, changes: &Changes) {
        let Machine { bus, driver, .. } = &mut self.machine;
        if changes.stop.is_empty() && changes.start.is_empty() {
            return;
        }
        self.moves += (changes.stop.len() + changes.start.len()) as u64;
        driver.disable(bus);
        for Move { event, counter } in &changes.stop {
            if let Some(stopped) = driver.stop(bus, *counter) {
                self.off.insert(*event, stopped);
            }
        }
        for Move { event, counter } in &changes.start {
            let fresh = || Event::new(EventConfig::counting(EVENTS[event.event]));
            let started = self.off.remove(event).unwrap_or_else(fresh);
            // The scheduler gave out a free counter that can count it.
            let _ = driver.start(bus, *counter, started);
        }
        driver.enable(bus);
    }
}

/// Six cgroups below a parent and the whole machine, with two events each.
fn scheduler(model: &PmuModel) -> (CpuScheduler, GroupId, Vec<Changes>) {
    let mut cpu = CpuScheduler::new(model.counters(), family(6));
    let events: Vec<CounterMask> = EVENTS.iter().map(|code| model.constraint(*code)).collect();
    let mut add = |cgroup| cpu.add(GroupSpec { cgroup, pinned: false, events: events.clone() }, 0);
    let (whole, first) = add(None);
    let mut changes = vec![first, add(Some(PARENT)).1];
    changes.extend((0..6).map(|cgroup| add(Some(CgroupId(cgroup))).1));
    (cpu, whole, changes)
}

fn row(way: Way, switches: u64) -> Row {
    let model = models::sapphire_rapids();
    let (mut cpu, whole, changes) = scheduler(&model);
    let machine = Machine::new(model, SimulationParameters::default());
    let mut driven = Driven { machine, off: BTreeMap::new(), moves: 0 };
    changes.iter().for_each(|changes| driven.apply(changes));
    let (before, moves) = (*driven.machine.bus.accesses(), driven.moves);
    for (now, switch) in (1..).zip(Trace::Cgroups.switches(switches)) {
        let to = switch.to.map(|(process, _)| CgroupId(process - 1));
        let old = on_counters(&cpu, &model);
        let changes = cpu.switch(to, now);
        if way == Way::Difference {
            driven.apply(&changes);
            continue;
        }
        let is_moved = |moved: &Move| way == Way::Everything || moved.event.group != whole;
        let new = on_counters(&cpu, &model);
        let stop = old.into_iter().filter(is_moved).collect();
        let start = new.into_iter().filter(is_moved).collect();
        // Between tasks of one cgroup nothing was ever done.
        if changes != Changes::default() {
            driven.apply(&Changes { stop, start });
        }
    }
    let accesses: Accesses = driven.machine.bus.accesses().since(&before);
    Row {
        way: way.name().to_owned(),
        accesses: PerOperation::of(accesses.total(), switches),
        moves: (driven.moves - moves) as f64 / switches.max(1) as f64,
        time_ns: times_ns(&accesses, switches),
    }
}

fn on_counters(cpu: &CpuScheduler, model: &PmuModel) -> Vec<Move> {
    let on = |counter: CounterIndex| cpu.on(counter).map(|event| Move { event, counter });
    model.counters().iter().filter_map(on).collect()
}

impl Figures for Comparison {
    fn show(&self, page: &mut Page) {
        page.line("Groups that one switch between cgroups of six looks at:");
        let rows = self.visits.iter().map(|visits| {
            vec![visits.cgroups.to_string(), number(visits.flat), number(visits.trees)]
        });
        page.table(["cgroups", "one list", "trees"], 0, rows);
        page.paragraph("Register accesses of one switch on simulated hardware (Sapphire Rapids):");
        let load = "6 cgroups of 8 threads with a common parent and idle; 2 events each for every cgroup, \
                    the parent and the whole machine";
        page.notes([format!("{} switches: {load}", self.switches)]);
        cost_parameters_to(page);
        let headings = ["at a switch", "events moved", "accesses"].map(str::to_owned);
        let rows = self.rows.iter().map(|row| {
            let cells = [row.way.clone(), number(row.moves), row.accesses.text()];
            cells.into_iter().chain(row.time_ns.iter().map(|ns| number(*ns))).collect()
        });
        page.table(headings.into_iter().chain(cost_headings()), 1, rows);
        page.paragraph(
            "Published, response time of specjbb in 6 cgroups under `perf stat -a -I 1000`:",
        );
        let rows = [
            ["without", "4286.9", ""],
            ["all events go off and on", "4537.1", "5.84%"],
            ["those of cgroups do", "4440.7", "3.59%"],
            ["the same, from trees", "4403.5", "2.72%"],
        ];
        page.table(["", "µs", "overhead"], 1, rows.map(strings));
    }

    fn of_this_machine(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_do_not_grow_and_ours_moves_least() {
        let comparison = compare(500);
        let visits: Vec<_> = comparison.visits.iter().map(|row| (row.flat, row.trees)).collect();
        assert!(visits.iter().all(|(_, trees)| *trees <= 12.0), "{visits:?}");
        assert_eq!(visits.last().map(|(flat, _)| *flat), Some(6000.0));
        let [everything, cgroups, ours] = &comparison.rows[..] else { panic!("three ways") };
        assert!(everything.moves > cgroups.moves && cgroups.moves > ours.moves);
        assert!(everything.time_ns > cgroups.time_ns && cgroups.time_ns > ours.time_ns);
    }
}
