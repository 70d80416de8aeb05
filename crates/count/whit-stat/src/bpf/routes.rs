//! Where the reading of each slot comes from.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use whit_bpf::cgroup::Cgroup;
use whit_events::ResolvedEvent;
use whit_host::cgroup::Hierarchy;
use whit_host::roots::Roots;
use whit_types::CpuId;
use whit_types::OutsideText;

use super::layout::Layout;
use super::split::Split;
use crate::counter::Counter;
use crate::error::StatError;
use crate::perf::{Opened, PerfSource};
use crate::source::{Slot, Source};

/// Where a reading comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// The count of an event in a cgroup on a CPU.
    Cgroup { cgroup: usize, event: usize, cpu: CpuId },
    /// The count of an event on a CPU, in all cgroups together.
    Everything { event: usize, cpu: CpuId },
    /// A slot of the kernel's own events.
    Kernel(usize),
    /// The event could not be opened.
    Nothing,
}

/// The cgroups that BPF watches.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    pub(super) all: Vec<Cgroup>,
    by_name: FxHashMap<OutsideText<Arc<str>>, usize>,
}

impl Cgroups {
    pub(super) fn of(
        counters: &[Counter],
        split: &Split,
        roots: &Roots,
    ) -> Result<Cgroups, StatError> {
        let hierarchy = Hierarchy::find(roots)?;
        let mut cgroups = Cgroups::default();
        let served = counters.iter().zip(&split.counted_by).filter(|(_, by)| by.is_some());
        let names = served.filter_map(|(counter, _)| counter.cgroup.as_ref());
        hierarchy.check_states(names.clone().map(OutsideText::exact))?;
        for name in names {
            if !cgroups.by_name.contains_key(name) {
                let found = hierarchy.cgroup(name.exact())?;
                cgroups.by_name.insert(name.clone(), cgroups.all.len());
                cgroups.all.push(Cgroup { id: found.id, path: found.path });
            }
        }
        Ok(cgroups)
    }
}

/// The CPUs of each different event.
pub(super) fn places(opened: &Opened) -> Vec<Vec<CpuId>> {
    let mut places = vec![Vec::new(); opened.counters.len()];
    for slot in &opened.slots {
        places[slot.counter].extend(slot.cpu);
    }
    places
}

/// The counters as they were opened, their slots, and the route of each slot.
#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) counters: Vec<Counter>,
    pub(super) slots: Vec<Slot>,
    pub(super) routes: Vec<Route>,
}

/// The opened events and the layout from which routes follow.
pub(super) struct Routing<'a> {
    pub(super) split: &'a Split,
    pub(super) distinct: &'a [Counter],
    pub(super) layout: &'a Layout,
    pub(super) cgroups: &'a Cgroups,
}

impl Routing<'_> {
    /// The routes of all counters; `places` are the CPUs of the different events.
    pub(super) fn of(
        &self,
        counters: &[Counter],
        places: &[Vec<CpuId>],
        rest: Option<&PerfSource>,
    ) -> Routes {
        let mut all = Routes::default();
        let mut rest_counters = rest.map_or(&[][..], |rest| rest.counters()).iter().enumerate();
        let rest_slots = rest.map_or(&[][..], |rest| rest.slots());
        for (index, counter) in counters.iter().enumerate() {
            let mut push = |slot: Slot, route| {
                all.slots.push(Slot { counter: index, ..slot });
                all.routes.push(route);
            };
            let opened = if let Some(by) = self.split.counted_by[index] {
                for &cpu in &places[by] {
                    let slot = Slot { counter: index, cpu: Some(cpu), thread: None };
                    push(slot, self.route(by, counter, cpu));
                }
                &self.distinct[by]
            } else {
                let Some((number, opened)) = rest_counters.next() else { continue };
                let begin = rest_slots.partition_point(|slot| slot.counter < number);
                let own = rest_slots.iter().enumerate().skip(begin);
                own.take_while(|(_, slot)| slot.counter == number)
                    .for_each(|(at, slot)| push(*slot, Route::Kernel(at)));
                opened
            };
            all.counters.push(Counter {
                // Names and units may differ among those who share an event.
                event: ResolvedEvent { exclude: opened.event.exclude, ..counter.event.clone() },
                leader: counter.leader.filter(|_| opened.leader.is_some()),
                absence: opened.absence,
                ..counter.clone()
            });
        }
        all
    }

    fn route(&self, by: usize, counter: &Counter, cpu: CpuId) -> Route {
        let Some(event) = self.layout.place(by) else { return Route::Nothing };
        match &counter.cgroup {
            Some(name) => Route::Cgroup { cgroup: self.cgroups.by_name[name], event, cpu },
            None => Route::Everything { event, cpu },
        }
    }
}
