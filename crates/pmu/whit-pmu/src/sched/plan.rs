//! The schedule of events, before anything is counted.
//!
//! The plan is made by the scheduler itself: it runs as many rotations as there are flexible groups,
//! after which the line is as it was, and counts who had its turn how often.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{CpuScheduler, GroupId, GroupSpec, GroupState, Hierarchy};
use crate::assign::{NoCounter, Request, assign};
use crate::counter::{CounterIndex, CounterMask};

/// One event with the counters that can count it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanEvent {
    /// Its name, for the reader.
    pub name: String,
    /// Counters that can count it ([`PmuModel::constraint`](crate::model::PmuModel::constraint)).
    pub allowed: CounterMask,
}

/// Events that are counted together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanGroup {
    /// They are on the PMU together or not at all.
    pub events: Vec<PlanEvent>,
    /// Before all that are not.
    pub pinned: bool,
}

/// The planned schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// One entry for each group, in order.
    pub groups: Vec<PlannedGroup>,
    /// Counters of the PMU.
    pub counters: CounterMask,
}

/// The planned schedule of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedGroup {
    /// How much of the time it counts.
    pub share: Share,
    /// For each event its name and the counters that it will be on.
    pub events: Vec<(String, CounterMask)>,
    /// Whether it is pinned.
    pub pinned: bool,
}

/// How much of the time a group counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Share {
    /// The group counts all the time.
    All,
    /// In so many turns of so many; its counts are estimates.
    Multiplexed {
        /// Turns in which it counts.
        running: u32,
        /// All turns.
        turns: u32,
    },
    /// The group cannot be on the PMU, for this reason.
    Never(Reason),
}

/// Why a group can never count.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// It has more events than there are counters.
    TooManyEvents {
        /// Events in the group.
        events: usize,
        /// Counters that the PMU has for them.
        counters: usize,
    },
    /// No counter of this PMU counts one of its events.
    NoCounter {
        /// Which, by its place in the group.
        event: usize,
    },
    /// Its events need the same counters.
    Conflict {
        /// The event that is left over.
        event: usize,
    },
    /// Pinned groups leave too little.
    Pinned,
}

/// Plans for a PMU's counters.
#[must_use]
pub fn plan(counters: CounterMask, groups: &[PlanGroup]) -> Plan {
    let everybody: Vec<_> = groups.iter().collect();
    let flexible = everybody.iter().filter(|group| !group.pinned).count() as u32;
    // Every group that can run at all has had a turn after that many rotations. The others would
    // stay in line.
    let can_run =
        run(counters, &everybody, flexible + 1).into_iter().map(|tally| tally.running > 0);
    let can_run: Vec<bool> = can_run.collect();
    let running: Vec<_> =
        groups.iter().zip(&can_run).filter_map(|(group, runs)| runs.then_some(group)).collect();
    let turns = running.iter().filter(|group| !group.pinned).count().max(1) as u32;
    let mut tallies = run(counters, &running, turns).into_iter();
    let planned = groups.iter().zip(can_run).map(|(group, runs)| {
        let tally = if runs { tallies.next() } else { None };
        let tally = tally.unwrap_or_else(|| Tally::new(group));
        let share = match tally.running {
            0 => Share::Never(reason(counters, group)),
            running if running == turns => Share::All,
            running => Share::Multiplexed { running, turns },
        };
        let names = group.events.iter().map(|event| event.name.clone());
        PlannedGroup { share, events: names.zip(tally.on).collect(), pinned: group.pinned }
    });
    Plan { groups: planned.collect(), counters }
}

/// So many turns, with a rotation after each.
fn run(counters: CounterMask, groups: &[&PlanGroup], turns: u32) -> Vec<Tally> {
    let mut scheduler = CpuScheduler::new(counters, Hierarchy::new());
    let mut ids = Vec::new();
    for group in groups {
        let events = group.events.iter().map(|event| event.allowed).collect();
        let spec = GroupSpec { cgroup: None, pinned: group.pinned, events };
        ids.push(scheduler.add(spec, 0).0);
    }
    let mut tallies: Vec<_> = groups.iter().map(|group| Tally::new(group)).collect();
    for turn in 0..turns {
        for (id, tally) in ids.iter().zip(&mut tallies) {
            tally.add_turn(&scheduler, *id);
        }
        scheduler.rotate(u64::from(turn) + 1);
    }
    tallies
}

/// Where a group was.
struct Tally {
    running: u32,
    on: Vec<CounterMask>,
}

impl Tally {
    fn new(group: &PlanGroup) -> Tally {
        Tally { running: 0, on: group.events.iter().map(|_| CounterMask::EMPTY).collect() }
    }

    fn add_turn(&mut self, scheduler: &CpuScheduler, id: GroupId) {
        if scheduler.state(id) != Some(GroupState::Active) {
            return;
        }
        self.running += 1;
        for counter in CounterMask::from_bits(u64::MAX).iter() {
            if let Some(event) = scheduler.on(counter).filter(|event| event.group == id) {
                self.on[event.event].insert(counter);
            }
        }
    }
}

fn reason(counters: CounterMask, group: &PlanGroup) -> Reason {
    let usable = |event: &PlanEvent| event.allowed.intersection(counters);
    if let Some(event) = group.events.iter().position(|event| usable(event).is_empty()) {
        return Reason::NoCounter { event };
    }
    if group.events.len() > counters.len() as usize {
        return Reason::TooManyEvents {
            events: group.events.len(),
            counters: counters.len() as usize,
        };
    }
    let request = |event: &PlanEvent| Request { allowed: event.allowed, previous: None };
    let requests: Vec<_> = group.events.iter().map(request).collect();
    let mut assigned = alloc::vec![CounterIndex::general(0); requests.len()];
    match assign(&requests, counters, &mut assigned) {
        Err(NoCounter { request }) => Reason::Conflict { event: request },
        Ok(()) => Reason::Pinned,
    }
}

impl Plan {
    /// Counters that more than one event will be on, with those events' names.
    #[must_use]
    pub fn shared(&self) -> Vec<(CounterIndex, Vec<&str>)> {
        let events = || self.groups.iter().flat_map(|group| &group.events);
        let on = |counter| -> Vec<&str> {
            events()
                .filter(|(_, counters)| counters.contains(counter))
                .map(|(name, _)| name.as_str())
                .collect()
        };
        self.counters
            .iter()
            .map(|counter| (counter, on(counter)))
            .filter(|(_, on)| on.len() > 1)
            .collect()
    }

    /// True where every event counts all the time.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.groups.iter().all(|group| group.share == Share::All)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for group in &self.groups {
            let pinned = if group.pinned { ", pinned" } else { "" };
            writeln!(f, "{}{pinned}", group.share_text())?;
            for (name, counters) in &group.events {
                write!(f, "    {name}")?;
                for (number, counter) in counters.iter().enumerate() {
                    write!(f, "{} {counter}", if number == 0 { " on" } else { "," })?;
                }
                writeln!(f)?;
            }
        }
        for (counter, events) in self.shared() {
            writeln!(f, "{counter} is shared by {}", events.join(", "))?;
        }
        Ok(())
    }
}

impl PlannedGroup {
    fn share_text(&self) -> String {
        use alloc::format;
        let name = |event: usize| self.events.get(event).map_or("?", |(name, _)| name.as_str());
        match self.share {
            Share::All => "all of the time".into(),
            Share::Multiplexed { running, turns } => {
                let percent = f64::from(running) * 100.0 / f64::from(turns);
                format!("{percent:.0}% of the time ({running} of {turns} turns)")
            }
            Share::Never(Reason::TooManyEvents { events, counters }) => {
                format!("never: {events} events in one group and {counters} counters")
            }
            Share::Never(Reason::NoCounter { event }) => {
                format!("never: no counter of this PMU counts {}", name(event))
            }
            Share::Never(Reason::Conflict { event }) => {
                format!("never: other events of the group need all counters of {}", name(event))
            }
            Share::Never(Reason::Pinned) => "never: pinned groups leave too few counters".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;

    fn event(name: &str, bits: u64) -> PlanEvent {
        PlanEvent { name: name.into(), allowed: CounterMask::from_bits(bits) }
    }

    fn group(events: &[PlanEvent]) -> PlanGroup {
        PlanGroup { events: events.to_vec(), pinned: false }
    }

    const TWO: CounterMask = CounterMask::first_general(2);

    fn shares(groups: &[PlanGroup]) -> Vec<Share> {
        plan(TWO, groups).groups.iter().map(|group| group.share).collect()
    }

    #[test]
    fn everything_fits() {
        let groups = [group(&[event("a", 3)]), group(&[event("b", 1)])];
        let plan = plan(TWO, &groups);
        assert!(plan.fits() && plan.shared().is_empty());
        assert_eq!(
            plan.to_string(),
            "all of the time\n    a on pmc1\nall of the time\n    b on pmc0\n"
        );
    }

    #[test]
    fn shares_of_a_rotation() {
        let groups: Vec<_> = ["a", "b", "c"].iter().map(|name| group(&[event(name, 3)])).collect();
        assert_eq!(shares(&groups), [Share::Multiplexed { running: 2, turns: 3 }; 3]);
        let plan = plan(TWO, &groups);
        assert_eq!(plan.shared().len(), 2);
        assert!(plan.to_string().starts_with("67% of the time (2 of 3 turns)\n"), "{plan}");
    }

    #[test]
    fn groups_that_never_run_have_a_reason() {
        let pair = |first, second| group(&[event("a", first), event("b", second)]);
        assert_eq!(shares(&[pair(3, 4)]), [Share::Never(Reason::NoCounter { event: 1 })]);
        assert_eq!(shares(&[pair(1, 1)]), [Share::Never(Reason::Conflict { event: 1 })]);
        let three = group(&[event("a", 3), event("b", 3), event("c", 3)]);
        let too_many = Reason::TooManyEvents { events: 3, counters: 2 };
        assert_eq!(shares(core::slice::from_ref(&three)), [Share::Never(too_many)]);
        let pinned = PlanGroup { pinned: true, ..pair(3, 3) };
        let shares = shares(&[pinned, group(&[event("c", 3)])]);
        assert_eq!(shares, [Share::All, Share::Never(Reason::Pinned)]);
        let plan = plan(TWO, &[pair(1, 1), three]);
        assert!(
            plan.to_string().contains("never: other events of the group need all counters of b")
        );
    }

    #[test]
    fn groups_that_never_run_take_no_turn() {
        let single = |name| group(&[event(name, 1)]);
        let impossible = group(&[event("x", 1), event("y", 1)]);
        let half = Share::Multiplexed { running: 1, turns: 2 };
        let never = Share::Never(Reason::Conflict { event: 1 });
        assert_eq!(shares(&[single("a"), impossible, single("b")]), [half, never, half]);
    }

    #[test]
    fn no_group_at_all() {
        assert_eq!(shares(&[]), vec![]);
        assert!(plan(TWO, &[]).fits());
    }
}
