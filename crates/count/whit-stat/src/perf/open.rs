//! Opening events, and bearing the kernel's refusals.
//!
//! An event that this machine lacks is no error, as in perf: its counter is marked as not
//! supported, and the others count. If the kernel refuses kernel mode to an ordinary user, the
//! event counts user mode alone and a notice says so.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use whit_events::{ResolvedEvent, TYPE_SOFTWARE};
use whit_host::advice::{Refusal, advice};
use whit_host::open::{
    EventTarget, Gone, Opening, Reducible, Refused, Tasks, give_up_guests, give_up_kernel_mode,
    open_everywhere, open_with_fallbacks,
};
use whit_host::rights::Rights;
use whit_host::roots::Roots;
use whit_host::target::Plan;
use whit_host::tracepoint::filter_advice;
use whit_sys::{Errno, PerfEventFd};
use whit_types::CpuId;

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

/// Refusals, collected so that one notice covers all events.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Events that count user mode alone.
    kernel_mode: Vec<String>,
    /// Refused events by remedy.
    events: Vec<(String, Vec<String>)>,
}

impl Refusals {
    fn announce(self, paranoid: i64, listener: &mut dyn Listener) {
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
struct SetOpening<'a> {
    set: &'a Set,
    places: &'a [OpenTarget],
    groups: Vec<OpenGroup>,
    cgroup: Option<&'a File>,
    /// Whether an event leads already.
    has_leader: bool,
    /// Pinned, exclusive.
    scheduling: (bool, bool),
}

/// The next step for an event that stays refused.
enum Fallback {
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
        std::mem::take(&mut self.refusals).announce(self.rights.paranoid, self.listener);
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
            return Err(self.refusal(counter, errno, self.plan.cpus.iter().next().flatten()));
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
        let mut opening = SetOpening {
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
    fn open_dummy(&mut self, opening: &mut SetOpening<'_>, inherit: Option<bool>) -> bool {
        let bytes = attr::of_dummy(self.common, inherit).to_bytes();
        let targets = opening.places.iter().map(|place| (target(place, opening.cgroup), None));
        let Ok(fds) = open_everywhere(&bytes, targets, self.roots, &mut hear(self.listener)) else {
            return false;
        };
        for (group, fd) in opening.groups.iter_mut().zip(fds) {
            group.events.extend(fd.map(|fd| OpenEvent { fd, slot: None }));
        }
        opening.has_leader = true;
        true
    }

    /// Opens a counter in all places of its set. Gives the next step if that failed.
    fn open_counter(
        &mut self,
        counters: &mut [Counter],
        index: usize,
        set: &mut SetOpening<'_>,
    ) -> Result<Option<Fallback>, StatError> {
        let counter = &mut counters[index];
        let as_asked = counter.event.clone();
        let opening = CounterOpening { opener: self, counter, set, asked: &as_asked.name };
        match open_with_fallbacks(opening) {
            Ok(fds) => {
                self.set_filter(counter, &fds)?;
                for (place, fd) in fds {
                    let slot = Some(self.places.slot(index, place));
                    set.groups[place].events.push(OpenEvent { fd, slot });
                }
                set.has_leader = true;
                Ok(None)
            }
            Err(Verdict::Error(error)) => Err(error),
            Err(Verdict::Answer(Fallback::Absent(absence))) => {
                if matches!(absence, Absence::NotPermitted(_)) {
                    // Leaving the kernel out did not help.
                    self.refusals.kernel_mode.retain(|name| *name != as_asked.name);
                    counter.event = as_asked;
                }
                counter.absence = Some(absence);
                Ok(None)
            }
            Err(Verdict::Answer(other)) => Ok(Some(other)),
        }
    }

    /// The next step for an event that the kernel refuses in every mode.
    fn answer(
        &mut self,
        counter: &Counter,
        asked: &str,
        refused: Refused,
        is_member: bool,
    ) -> Result<Fallback, StatError> {
        let errno = refused.errno;
        if is_member && matches!(errno, Errno::INVAL | Errno::NOSPC) {
            let no_room = Fallback::Absent(Absence::DoesNotFitGroup(errno));
            return Ok(if counter.event.weak_group { Fallback::BreakUp } else { no_room });
        }
        use Errno as E;
        match errno {
            errno if self.is_no_right(errno) => {
                let advice = self.advice(counter, errno);
                self.refusals.add(asked.to_owned(), advice);
                Ok(Fallback::Absent(Absence::NotPermitted(errno)))
            }
            E::NOENT | E::NXIO | E::NODEV | E::OPNOTSUPP | E::NOSYS | E::INVAL | E::TOOBIG => {
                Ok(Fallback::Absent(Absence::NotSupported(errno)))
            }
            E::NOSPC | E::BUSY => Ok(Fallback::Absent(Absence::NoCounterLeft(errno))),
            _ => Err(self.refusal(counter, errno, refused.cpu)),
        }
    }

    /// The user may not, and the machine could. Some filters of system calls say `ENOSYS`.
    fn is_no_right(&self, errno: Errno) -> bool {
        let is_filter = errno == Errno::NOSYS && self.rights.is_filtered;
        is_filter || matches!(errno, Errno::ACCESS | Errno::PERM)
    }

    fn advice(&self, counter: &Counter, errno: Errno) -> String {
        let event = &counter.event;
        let refusal = Refusal::new("counting", errno, self.rights, event.pmu_type);
        advice(&refusal.covering(self.plan.is_system_wide(), event.counts_kernel()))
    }

    fn refusal(&self, counter: &Counter, errno: Errno, cpu: Option<CpuId>) -> StatError {
        let place = match (self.plan.is_system_wide(), cpu) {
            (true, Some(cpu)) => format!("for everything on CPU {}", cpu.0),
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

/// A counter on its way, in the places of its set.
struct CounterOpening<'a, 'o, 's> {
    opener: &'a mut Opener<'o>,
    counter: &'a mut Counter,
    set: &'a SetOpening<'s>,
    /// The event's name before any part of it was given up.
    asked: &'a str,
}

/// Why a counter is not open.
enum Verdict {
    Answer(Fallback),
    /// Nothing can be counted at all.
    Error(StatError),
}

impl Opening for CounterOpening<'_, '_, '_> {
    /// The open event of each place that still is there.
    type Opened = Vec<(usize, PerfEventFd)>;
    type Verdict = Verdict;

    fn open(&mut self) -> Result<Self::Opened, Refused> {
        let (opener, set) = (&mut *self.opener, self.set);
        let role = match (set.has_leader, set.set.counters.len()) {
            (true, _) => Role::Member,
            (false, 1) => Role::Alone,
            (false, _) => Role::Leader,
        };
        let attr = attr::of_event(&self.counter.event, role, set.scheduling, opener.common);
        let leader = |number: usize| set.groups[number].events.first().map(|event| &event.fd);
        // Where the leader is not, the target has gone.
        let is_there = |number: &usize| role != Role::Member || leader(*number).is_some();
        let numbers: Vec<usize> = (0..set.places.len()).filter(is_there).collect();
        let targets = numbers.iter().map(|&at| (target(&set.places[at], set.cgroup), leader(at)));
        let gone = &mut hear(opener.listener);
        let fds = open_everywhere(&attr.to_bytes(), targets, opener.roots, gone)?;
        Ok(numbers.into_iter().zip(fds).filter_map(|(at, fd)| Some((at, fd?))).collect())
    }

    fn fall_back(&mut self, refused: Refused) -> Result<(), Verdict> {
        let Refused { errno, .. } = refused;
        let (opener, event) = (&mut *self.opener, &mut self.counter.event);
        if self.set.set.is_ours && !matches!(errno, Errno::ACCESS | Errno::PERM | Errno::MFILE) {
            return Err(Verdict::Answer(Fallback::Apart));
        }
        if give_up_guests(&mut ByEvent(event), errno) {
            opener.listener.notice(Notice::GuestsIncluded { event: event.name.clone() });
            return Ok(());
        }
        let name = event.name.clone();
        if matches!(errno, Errno::ACCESS | Errno::PERM)
            && give_up_kernel_mode(&mut ByEvent(event), opener.rights, opener.plan.is_system_wide())
        {
            opener.refusals.kernel_mode.push(name);
            return Ok(());
        }
        let answer = opener.answer(self.counter, self.asked, refused, self.set.has_leader);
        Err(answer.map_or_else(Verdict::Error, Verdict::Answer))
    }
}

/// The event of a counter.
struct ByEvent<'a>(&'a mut ResolvedEvent);

impl Reducible for ByEvent<'_> {
    fn is_software(&self) -> bool {
        self.0.pmu_type == TYPE_SOFTWARE
    }

    fn leaves_guests_out(&self) -> bool {
        self.0.exclude.guest
    }

    fn covers_both_modes(&self) -> bool {
        self.0.counts_kernel() && !self.0.exclude.user
    }

    fn take_guests_in(&mut self) {
        self.0.exclude.guest = false;
    }

    fn leave_kernel_out(&mut self) {
        self.0.restrict_to_user();
    }
}

fn target<'a>(place: &OpenTarget, cgroup: Option<&'a File>) -> EventTarget<'a> {
    let tasks = cgroup.map_or(place.tid.into(), |directory| Tasks::Cgroup(directory.as_fd()));
    EventTarget { cpu: place.cpu, tasks }
}

/// Says which targets have gone.
fn hear(listener: &mut dyn Listener) -> impl FnMut(Gone) + '_ {
    |gone| {
        listener.notice(match gone {
            Gone::Thread(tid) => Notice::ThreadGone { tid },
            Gone::Cpu(cpu) => Notice::CpuGone { cpu },
        });
    }
}
