//! The kernel's perf events as a source of counts.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::Arc;

use whit_events::ResolvedEvent;
use whit_host::cgroup::Hierarchy;
use whit_host::open::{OpenFiles, needed};
use whit_host::rights::Rights;
use whit_host::roots::Roots;
use whit_host::target::Plan;
use whit_sys::Errno;

use crate::counter::Counter;
use crate::error::StatError;
use crate::note::Note;
use crate::notice::{Listener, Notice};
use crate::reading::Reading;
use crate::source::{Slot, Source, ThreadSlot};

mod attr;
mod open;
mod open_group;
mod open_targets;
mod sets;
mod shared_time;

use attr::Common;
use open::{Opener, Refusals};
#[cfg(test)]
pub(crate) use open_group::OpenEvent;
pub(crate) use open_group::OpenGroup;
use open_group::ReadOutcome;
use open_targets::{OpenTarget, Places};
use shared_time::SharedTime;

/// The events to open and their targets.
#[derive(Clone)]
pub struct Request<'a> {
    /// The events, in the order in which they are shown.
    pub counters: Vec<Counter>,
    /// CPUs and threads.
    pub plan: &'a Plan,
    /// The exec of the command switches events on.
    pub on_exec: bool,
    /// `/proc` and `/sys`.
    pub roots: &'a Roots,
}

/// Open perf events, and where their readings go.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) counters: Vec<Counter>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) groups: Vec<OpenGroup>,
}

impl Opened {
    /// Opens what can be opened; see [`PerfSource::open`].
    pub(crate) fn open(
        request: Request<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Opened, StatError> {
        let Request { mut counters, plan, on_exec, roots } = request;
        let cgroups = cgroups(&counters, plan, roots)?;
        let places = Places::of(&mut counters, plan);
        fit_descriptors(&counters, &places, listener)?;
        let mut opener = Opener {
            plan,
            rights: Rights::of_process(roots),
            roots,
            cgroups: &cgroups,
            common: Common { inherit: plan.inherit, on_exec },
            places: &places,
            listener,
            refusals: Refusals::default(),
        };
        let groups = opener.open_all(&mut counters)?;
        let slots = slots(&counters, &places);
        Ok(Opened { counters, slots, groups })
    }
}

/// Switches events on or off.
pub(crate) fn switch<'a>(
    groups: impl IntoIterator<Item = &'a OpenGroup>,
    on: bool,
) -> Result<(), StatError> {
    let attempt = if on { "switch events on" } else { "switch events off" };
    for group in groups {
        match group.switch(on) {
            // The task has exited, or its CPU is offline.
            Ok(()) | Err(Errno::SRCH | Errno::NODEV) => {}
            Err(errno) => return Err(StatError::system(attempt)(errno)),
        }
    }
    Ok(())
}

/// An event that any CPU may share among those who want it, as the kernel takes it: two that are
/// equal count the same.
pub(crate) fn shared_attr(event: &ResolvedEvent) -> Vec<u8> {
    let common = Common { inherit: false, on_exec: false };
    attr::of_event(event, attr::Role::Alone, (event.pinned, event.exclusive), common).to_bytes()
}

/// Open perf events.
#[derive(Debug)]
pub struct PerfSource {
    counters: Vec<Counter>,
    slots: Vec<Slot>,
    groups: Vec<OpenGroup>,
    /// Buffer for the result of one system call.
    words: Vec<u64>,
    /// The last readings.
    readings: Vec<Reading>,
    /// Slots of threads that are counted CPU by CPU.
    shared: SharedTime,
    /// Groups that are read no longer, to be said once.
    broken: Vec<Notice>,
}

impl PerfSource {
    /// Opens what can be opened. Counters that cannot say why ([`Counter::absence`]).
    ///
    /// # Errors
    ///
    /// Where the target or a cgroup is not there, where none of the events is allowed to this user,
    /// and where there are more than descriptors.
    pub fn open(
        request: Request<'_>,
        listener: &mut dyn Listener,
    ) -> Result<PerfSource, StatError> {
        let Opened { counters, slots, groups } = Opened::open(request, listener)?;
        let words =
            groups.iter().map(OpenGroup::words).max().unwrap_or(0).max(open_group::SINGLE_WORDS);
        Ok(PerfSource {
            readings: vec![Reading::ZERO; slots.len()],
            shared: SharedTime::of(&counters, &slots),
            counters,
            slots,
            groups,
            words: vec![0; words],
            broken: Vec::new(),
        })
    }
}

impl Source for PerfSource {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }

    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn start(&mut self) -> Result<(), StatError> {
        switch(&self.groups, true)
    }

    fn stop(&mut self) -> Result<(), StatError> {
        switch(&self.groups, false)
    }

    fn read(&mut self, readings: &mut Vec<Reading>) -> Result<(), StatError> {
        for group in &mut self.groups {
            match group.read(&mut self.words, &mut self.readings) {
                Ok(ReadOutcome::Done) => {}
                Ok(ReadOutcome::Broken(slot)) => {
                    let lost = slot.map(|slot| &self.counters[self.slots[slot].counter]);
                    self.broken.extend(
                        lost.map(|c| Notice::GroupUnreadable { event: c.event.name.clone() }),
                    );
                }
                // A thread or CPU that has gone keeps its last reading.
                Err(Errno::SRCH | Errno::NODEV) => {}
                Err(source) => {
                    let slot = group.events.iter().find_map(|event| event.slot);
                    let counter = slot.map(|slot| &self.counters[self.slots[slot].counter]);
                    let event = counter.map(|c| c.event.name.clone()).unwrap_or_default();
                    return Err(StatError::Read { event, source });
                }
            }
        }
        readings.clone_from(&self.readings);
        self.shared.deal(readings);
        Ok(())
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.broken)
    }

    fn notes(&self) -> Vec<Note> {
        let cgroups: HashSet<_> = self.counters.iter().filter_map(|c| c.cgroup.as_ref()).collect();
        match cgroups.len() {
            0 => Vec::new(),
            cgroups => vec![Note::ByKernel { cgroups }],
        }
    }
}

/// The directories of the cgroups that counters name.
fn cgroups(
    counters: &[Counter],
    plan: &Plan,
    roots: &Roots,
) -> Result<HashMap<Arc<str>, File>, StatError> {
    check_cgroups(counters, plan)?;
    if counters.iter().all(|counter| counter.cgroup.is_none()) {
        return Ok(HashMap::new());
    }
    let names = counters.iter().filter_map(|counter| Some(counter.cgroup.clone()?.into_exact()));
    Ok(Hierarchy::find(roots)?.open_all(names)?)
}

/// Whether counters can be counted in the cgroups that they name.
pub(crate) fn check_cgroups(counters: &[Counter], plan: &Plan) -> Result<(), StatError> {
    if counters.iter().all(|counter| counter.cgroup.is_none()) {
        return Ok(());
    }
    if !plan.is_system_wide() {
        return Err(StatError::CgroupNeedsCpus);
    }
    for counter in counters {
        let leader = counter.leader.map_or(counter, |leader| &counters[leader]);
        if leader.cgroup != counter.cgroup {
            let event = leader.event.name.clone();
            return Err(StatError::GroupAcrossCgroups { event });
        }
    }
    Ok(())
}

/// Makes room for the descriptors that are needed.
fn fit_descriptors(
    counters: &[Counter],
    places: &Places,
    listener: &mut dyn Listener,
) -> Result<(), StatError> {
    let of_set = |set: &sets::Set| set.descriptors() * places.of_counter(set.counters[0]).len();
    let events: usize = sets::partition(counters).iter().map(of_set).sum();
    let files =
        OpenFiles::make_room(events).map_err(StatError::system("raise the limit of open files"))?;
    if let Some(from) = files.raised_from {
        listener.notice(Notice::OpenFilesRaised { from: Some(from), to: files.limit });
    }
    match files.fits(events) {
        true => Ok(()),
        false => Err(StatError::OpenFiles {
            needed: needed(events),
            limit: files.limit.unwrap_or(u64::MAX),
        }),
    }
}

fn slots(counters: &[Counter], places: &Places) -> Vec<Slot> {
    let slot = |counter: usize, place: &OpenTarget| Slot {
        counter,
        cpu: place.cpu,
        thread: place.tid.map(|tid| ThreadSlot { index: place.thread, tid }),
    };
    let of = |index| places.of_counter(index).iter().map(move |place| slot(index, place));
    (0..counters.len()).flat_map(of).collect()
}

#[cfg(test)]
mod tests;
