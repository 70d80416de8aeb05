//! Opening events, and bearing the kernel's refusals.
//!
//! What this machine does not have is no error here, as it is none in perf: the counter says that
//! it is not supported, and the others count. As an ordinary user, events count user mode alone
//! where the kernel's part is refused, and that is said.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use whit_events::{ResolvedEvent, TYPE_SOFTWARE};
use whit_host::advice::{Refusal, advice};
use whit_host::rights::Rights;
use whit_host::roots::Roots;
use whit_host::target::{ANY, Plan};
use whit_host::tracepoint::filter_advice;
use whit_sys::{Errno, OpenFlags, PerfEventFd};

use super::attr::{self, Common, Role};
use super::open_group::{OpenEvent, OpenGroup};
use super::open_targets::{OpenTarget, Places};
use super::sets::{self, Set};
use crate::counter::{Absence, Counter};
use crate::error::StatError;
use crate::notice::{Listener, Notice};

/// Opens counters.
pub(super) struct Opener<'a> {
    pub(super) plan: &'a Plan,
    pub(super) rights: Rights,
    pub(super) roots: &'a Roots,
    pub(super) cgroups: &'a HashMap<Arc<str>, File>,
    pub(super) common: Common,
    pub(super) places: &'a Places,
    pub(super) listener: &'a mut dyn Listener,
    pub(super) refusals: Refusals,
}

/// What was refused, to be said once for all events.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Of these, the kernel's part.
    kernel_mode: Vec<String>,
    /// These, with what would allow them.
    events: Vec<(String, Vec<String>)>,
}

impl Refusals {
    fn tell(self, paranoid: i64, listener: &mut dyn Listener) {
        if !self.kernel_mode.is_empty() {
            listener.notice(Notice::UserModeOnly { events: self.kernel_mode, paranoid });
        }
        for (advice, events) in self.events {
            listener.notice(Notice::NotPermitted { events, advice });
        }
    }

    fn add(&mut self, event: String, advice: String) {
        match self.events.iter_mut().find(|(known, _)| *known == advice) {
            Some((_, events)) => events.push(event),
            None => self.events.push((advice, vec![event])),
        }
    }
}

/// A set on its way: a unit for each place.
struct Opening<'a> {
    set: &'a Set,
    places: &'a [OpenTarget],
    groups: Vec<OpenGroup>,
    cgroup: Option<&'a File>,
    /// Whether an event leads already.
    has_leader: bool,
    /// Pinned, exclusive.
    scheduling: (bool, bool),
}

/// What becomes of an event that was refused.
enum Fallback {
    Retry,
    /// It counts nothing.
    Absent(Absence),
    /// It is to be opened outside of its set.
    Apart,
    /// The whole set is to be opened event by event.
    BreakUp,
}

impl Opener<'_> {
    /// Opens all that can be opened.
    pub(super) fn open_all(
        &mut self,
        counters: &mut [Counter],
    ) -> Result<Vec<OpenGroup>, StatError> {
        let mut waiting = sets::partition(counters);
        waiting.reverse();
        let mut groups = Vec::new();
        while let Some(set) = waiting.pop() {
            let (opened, apart) = self.open_set(counters, &set)?;
            groups.extend(opened.into_iter().filter(|group| !group.events.is_empty()));
            waiting.extend(apart.into_iter().rev().map(Set::alone));
        }
        self.check(counters, &groups)?;
        std::mem::take(&mut self.refusals).tell(self.rights.paranoid, self.listener);
        Ok(groups)
    }

    /// It is an error where nothing at all is counted because nobody is there, or nothing is
    /// allowed.
    fn check(&self, counters: &[Counter], groups: &[OpenGroup]) -> Result<(), StatError> {
        let refused = counters.iter().find_map(|counter| match counter.absence {
            Some(Absence::NotPermitted(errno)) => Some((counter, errno)),
            _ => None,
        });
        let is_empty = groups.is_empty();
        if let Some((counter, errno)) = refused.filter(|_| is_empty) {
            return Err(self.refusal(counter, errno, self.plan.cpus.first().copied()));
        }
        let asked = counters.iter().any(|c| c.absence.is_none() && c.event.tool.is_none());
        if is_empty && asked { Err(StatError::TargetGone) } else { Ok(()) }
    }

    /// A unit for each place of the set, and the counters that are to be opened apart.
    fn open_set(
        &mut self,
        counters: &mut [Counter],
        set: &Set,
    ) -> Result<(Vec<OpenGroup>, Vec<usize>), StatError> {
        let first = &counters[set.counters[0]];
        let places = self.places.of_counter(set.counters[0]);
        let is_group = set.counters.len() > 1;
        let mut opening = Opening {
            set,
            places,
            groups: places.iter().map(|_| OpenGroup::new(is_group)).collect(),
            cgroup: first.cgroup.as_ref().and_then(|name| self.cgroups.get(name.exact())),
            has_leader: false,
            scheduling: (
                set.counters.iter().any(|&index| counters[index].event.pinned),
                set.counters.iter().any(|&index| counters[index].event.exclusive),
            ),
        };
        if set.is_ours && !self.open_dummy(&mut opening, first.event.terms.inherit) {
            return Ok((Vec::new(), set.counters.clone()));
        }
        let mut apart = Vec::new();
        for &index in &set.counters {
            match self.open_counter(counters, index, &mut opening)? {
                Some(Fallback::BreakUp) => {
                    let event = counters[set.counters[0]].event.name.clone();
                    self.listener.notice(Notice::GroupBroken { leader: event });
                    return Ok((Vec::new(), self.loosened(counters, set)));
                }
                Some(Fallback::Apart) => apart.push(index),
                _ => {}
            }
        }
        Ok((opening.groups, apart))
    }

    /// Takes the members of a weak group out of it.
    fn loosened(&self, counters: &mut [Counter], set: &Set) -> Vec<usize> {
        for &index in &set.counters {
            counters[index].leader = None;
            counters[index].event.weak_group = false;
            counters[index].absence = None;
        }
        set.counters.clone()
    }

    /// The leader of a set of ours. Where it cannot be had, the set is opened event by event.
    fn open_dummy(&mut self, opening: &mut Opening<'_>, inherit: Option<bool>) -> bool {
        let bytes = attr::of_dummy(self.common, inherit).to_bytes();
        for (number, place) in opening.places.iter().enumerate() {
            match self.open_one(&bytes, *place, opening.cgroup, None) {
                Ok(fd) => opening.groups[number].events.push(OpenEvent { fd, slot: None }),
                Err(errno) if self.is_gone(errno, *place) => {}
                Err(_) => return false,
            }
        }
        opening.has_leader = true;
        true
    }

    /// Opens a counter in all places of its set; gives what is to be done where that failed.
    fn open_counter(
        &mut self,
        counters: &mut [Counter],
        index: usize,
        opening: &mut Opening<'_>,
    ) -> Result<Option<Fallback>, StatError> {
        let counter = &mut counters[index];
        let as_asked = counter.event.clone();
        loop {
            match self.open_everywhere(counter, opening) {
                Ok(fds) => {
                    self.set_filter(counter, &fds)?;
                    for (place, fd) in fds {
                        let slot = Some(self.places.slot(index, place));
                        opening.groups[place].events.push(OpenEvent { fd, slot });
                    }
                    opening.has_leader = true;
                    return Ok(None);
                }
                Err((errno, cpu)) => {
                    match self.answer(counter, &as_asked.name, errno, cpu, opening)? {
                        Fallback::Retry => {}
                        Fallback::Absent(absence) => {
                            if matches!(absence, Absence::NotPermitted(_)) {
                                // Leaving the kernel out did not help.
                                self.refusals.kernel_mode.retain(|name| *name != as_asked.name);
                                counter.event = as_asked;
                            }
                            counter.absence = Some(absence);
                            return Ok(None);
                        }
                        other => return Ok(Some(other)),
                    }
                }
            }
        }
    }

    /// The open event of each place that still is there. The first refusal ends it, with its CPU.
    fn open_everywhere(
        &mut self,
        counter: &Counter,
        opening: &Opening<'_>,
    ) -> Result<Vec<(usize, PerfEventFd)>, (Errno, i32)> {
        let role = match (opening.has_leader, opening.set.counters.len()) {
            (true, _) => Role::Member,
            (false, 1) => Role::Alone,
            (false, _) => Role::Leader,
        };
        let attr = attr::of_event(&counter.event, role, opening.scheduling, self.common);
        let bytes = attr.to_bytes();
        let mut fds = Vec::with_capacity(opening.places.len());
        for (number, place) in opening.places.iter().enumerate() {
            let leader = opening.groups[number].events.first().map(|event| &event.fd);
            if role == Role::Member && leader.is_none() {
                // Where the leader is not, the target has gone.
                continue;
            }
            match self.open_one(&bytes, *place, opening.cgroup, leader) {
                Ok(fd) => fds.push((number, fd)),
                Err(errno) if self.is_gone(errno, *place) => {}
                Err(errno) => return Err((errno, place.cpu)),
            }
        }
        Ok(fds)
    }

    fn open_one(
        &self,
        attr: &[u8],
        place: OpenTarget,
        cgroup: Option<&File>,
        leader: Option<&PerfEventFd>,
    ) -> Result<PerfEventFd, Errno> {
        let flags = OpenFlags { pid_is_cgroup: cgroup.is_some() };
        let whom = cgroup.map_or(self.plan.threads[place.thread], AsRawFd::as_raw_fd);
        PerfEventFd::open(attr, whom, place.cpu, leader, flags)
    }

    fn is_gone(&mut self, errno: Errno, place: OpenTarget) -> bool {
        let tid = self.plan.threads[place.thread];
        if errno == Errno::SRCH && tid != ANY {
            self.listener.notice(Notice::ThreadGone { tid });
            return true;
        }
        let offline = errno == Errno::NODEV
            && place.cpu != ANY
            && whit_host::cpus::online(self.roots)
                .is_ok_and(|cpus| !cpus.contains(&(place.cpu as u32)));
        if offline {
            self.listener.notice(Notice::CpuGone { cpu: place.cpu });
        }
        offline
    }

    fn answer(
        &mut self,
        counter: &mut Counter,
        asked: &str,
        errno: Errno,
        cpu: i32,
        opening: &Opening<'_>,
    ) -> Result<Fallback, StatError> {
        let is_member = opening.has_leader;
        let event = &mut counter.event;
        if opening.set.is_ours && !matches!(errno, Errno::ACCESS | Errno::PERM | Errno::MFILE) {
            return Ok(Fallback::Apart);
        }
        let cannot_exclude = matches!(errno, Errno::INVAL | Errno::OPNOTSUPP);
        if cannot_exclude && event.exclude.guest && event.pmu_type != TYPE_SOFTWARE {
            event.exclude.guest = false;
            self.listener.notice(Notice::GuestsIncluded { event: event.name.clone() });
            return Ok(Fallback::Retry);
        }
        if is_member && matches!(errno, Errno::INVAL | Errno::NOSPC) {
            let no_room = Fallback::Absent(Absence::DoesNotFitGroup(errno));
            return Ok(if event.weak_group { Fallback::BreakUp } else { no_room });
        }
        use Errno as E;
        match errno {
            E::ACCESS | E::PERM if self.may_try_user_mode(event) => {
                self.leave_kernel_out(event);
                Ok(Fallback::Retry)
            }
            E::ACCESS | E::PERM => {
                let advice = self.advice(counter, errno);
                self.refusals.add(asked.to_owned(), advice);
                Ok(Fallback::Absent(Absence::NotPermitted(errno)))
            }
            E::NOENT | E::NXIO | E::NODEV | E::OPNOTSUPP | E::NOSYS | E::INVAL | E::TOOBIG => {
                Ok(Fallback::Absent(Absence::NotSupported(errno)))
            }
            E::NOSPC | E::BUSY => Ok(Fallback::Absent(Absence::NoCounterLeft(errno))),
            _ => Err(self.refusal(counter, errno, Some(cpu))),
        }
    }

    /// User mode of one's own processes is free up to level 2; all of a CPU is not.
    fn may_try_user_mode(&self, event: &ResolvedEvent) -> bool {
        event.counts_kernel()
            && !event.exclude.user
            && self.rights.paranoid > 1
            && !self.plan.is_system_wide()
    }

    fn leave_kernel_out(&mut self, event: &mut ResolvedEvent) {
        self.refusals.kernel_mode.push(event.name.clone());
        event.restrict_to_user();
    }

    fn advice(&self, counter: &Counter, errno: Errno) -> String {
        advice(&Refusal {
            activity: "counting",
            errno,
            paranoid: self.rights.paranoid,
            is_system_wide: self.plan.is_system_wide(),
            wants_kernel: counter.event.counts_kernel(),
            wants_branches: false,
            pmu_type: counter.event.pmu_type,
        })
    }

    fn refusal(&self, counter: &Counter, errno: Errno, cpu: Option<i32>) -> StatError {
        let place = match (self.plan.is_system_wide(), cpu) {
            (true, Some(cpu)) => format!("for everything on CPU {cpu}"),
            _ => "for the target's threads".to_owned(),
        };
        let advice = self.advice(counter, errno);
        StatError::Open { event: counter.event.name.clone(), place, errno, advice }
    }

    fn set_filter(&self, counter: &Counter, fds: &[(usize, PerfEventFd)]) -> Result<(), StatError> {
        let Some(filter) = &counter.filter else { return Ok(()) };
        let error = |source| StatError::Filter {
            event: counter.event.name.clone(),
            filter: filter.clone(),
            advice: filter_advice(self.roots, counter.event.config[0], source),
            source,
        };
        let text = std::ffi::CString::new(filter.as_str()).map_err(|_| error(Errno::INVAL))?;
        fds.iter().try_for_each(|(_, fd)| fd.set_filter(&text)).map_err(error)
    }
}
