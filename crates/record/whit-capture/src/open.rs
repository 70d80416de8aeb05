//! Opening events, and bearing the kernel's refusals.
//!
//! Each event is opened for every CPU and thread of the plan. After a refusal, the opener tries a
//! form of the event that still gives a useful recording, and says so: a lower `precise_ip`, the
//! timer instead of cycles, user mode alone, a group in pieces. A refusal without such a form
//! becomes an error that names the way out.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;

use whit_engine_api::open_event::{ConfiguredEvent, Instance, OpenEvent};
use whit_events::PreciseIp;
use whit_host::advice::{Refusal, advice};
use whit_host::open::{
    self, EventTarget, Gone, OpenFiles, Opening, Refused, Tasks, give_up_guests,
    give_up_kernel_mode,
};
use whit_host::rights::Rights;
use whit_host::roots::Roots;
use whit_host::target::Plan;
use whit_host::tracepoint::filter_advice;
use whit_perfdata::attr::{AttrFlags, SampleType, pmu_type};
use whit_sys::limit::Limit;
use whit_sys::{Errno, PerfEventFd};
use whit_types::{CpuId, Tid};

use crate::error::CaptureError;
use crate::event::software;
use crate::notice::{Listener, Notice};

/// Times that a group is opened again because its leader is elsewhere for the moment.
const SWAPS_MAX: usize = 10;

/// Makes room for the descriptors that the plan needs. Where the limit cannot be raised far
/// enough, gives a plan that needs fewer.
pub fn fit_descriptors(
    plan: Plan,
    events: usize,
    listener: &mut dyn Listener,
) -> Result<Plan, CaptureError> {
    let all = plan.nr_descriptors(events);
    let files =
        OpenFiles::make_room(all).map_err(CaptureError::system("raise the limit of open files"))?;
    if let Some(from) = files.raised_from {
        listener.notice(Notice::OpenFilesRaised { from: Some(from), to: files.limit });
    }
    if files.fits(all) {
        return Ok(plan);
    }
    let (needed, limit) = (open::needed(all), files.limit.unwrap_or(u64::MAX));
    let fewer = plan.without_cpus();
    if plan.is_system_wide() || !files.fits(fewer.nr_descriptors(events)) {
        return Err(CaptureError::OpenFiles { needed, limit });
    }
    listener.notice(Notice::PerThreadRings { needed, limit });
    Ok(fewer)
}

/// Opens events of one plan.
pub struct Opener<'a> {
    /// CPUs and threads.
    pub plan: &'a Plan,
    /// Other CPUs; only their sideband is recorded.
    pub outside: &'a [CpuId],
    /// The rights of this process.
    pub rights: Rights,
    /// `/proc` and `/sys`.
    pub roots: &'a Roots,
    /// The directories of cgroups, by name.
    pub cgroups: &'a HashMap<String, File>,
    /// The directories of the cgroups that all sampled events are limited to; empty for none.
    pub chosen: &'a [File],
    /// Hears of everything that was not possible.
    pub listener: &'a mut dyn Listener,
}

impl Opener<'_> {
    /// Opens all events. Threads that have ended meanwhile are left out; it is an error when
    /// none is left.
    pub fn open_all(
        &mut self,
        events: Vec<ConfiguredEvent>,
    ) -> Result<Vec<OpenEvent>, CaptureError> {
        let mut pending: Vec<_> = events.into_iter().collect();
        let mut open: Vec<OpenEvent> = Vec::with_capacity(pending.len());
        let mut swaps = 0;
        while open.len() < pending.len() {
            let index = open.len();
            let leader = pending[index].spec.leader.filter(|&leader| leader != index);
            match self.open_event(&mut pending[index], &open, index).map_err(|e| e.at(index)) {
                Ok(Some(event)) => open.push(event),
                Err(error) => match leader {
                    Some(leader) if swaps < SWAPS_MAX && self.may_be_swapped(&error) => {
                        swaps += 1;
                        open.truncate(leader);
                    }
                    _ => return Err(error),
                },
                Ok(None) => {
                    let leader = break_group(&mut pending, index);
                    let name = pending[leader].spec.name().to_owned();
                    self.listener.notice(Notice::GroupBroken { leader: name });
                    open.truncate(leader);
                }
            }
        }
        if open.iter().any(|event| event.instances.is_empty()) {
            return Err(CaptureError::TargetGone);
        }
        Ok(open)
    }

    /// While threads that one inherited from the other follow each other on a CPU, the kernel lets
    /// them swap their events instead of reprogramming counters. A group's leader may then be with
    /// the other thread, and the kernel refuses it a new member.
    fn may_be_swapped(&self, error: &CaptureError) -> bool {
        !self.plan.is_system_wide() && error.errno() == Some(Errno::INVAL)
    }

    /// Opens one event everywhere. `None` asks for its weak group to be broken up.
    fn open_event(
        &mut self,
        event: &mut ConfiguredEvent,
        open: &[OpenEvent],
        index: usize,
    ) -> Result<Option<OpenEvent>, CaptureError> {
        let opening = EventOpening { opener: self, event, open, index };
        match open::open_with_fallbacks(opening) {
            Ok(slots) => {
                self.set_filter(event, &slots)?;
                Ok(Some(OpenEvent::new(event.clone(), slots)))
            }
            Err(Fallback::BreakGroup) => Ok(None),
            Err(Fallback::GiveUp(refused)) => Err(self.refusal(event, refused)),
        }
    }

    /// Where an event is opened, in the order of its slots, each with the leader of its group. `None` stands where it
    /// is not: the PMU counts on other CPUs, or the leader's thread has gone.
    fn targets<'a>(
        &'a self,
        event: &ConfiguredEvent,
        leader: Option<&'a OpenEvent>,
    ) -> Vec<Option<(EventTarget<'a>, Option<&'a PerfEventFd>)>> {
        let mut targets = Vec::with_capacity(self.plan.nr_descriptors(1));
        let cgroup = event.spec.cgroup.as_ref().and_then(|name| self.cgroups.get(name));
        for cpu in self.plan.cpus.iter() {
            if event.is_bpf_output || event.spec.is_of_cpus {
                targets.push(Some((EventTarget { cpu, tasks: Tasks::All }, None)));
                continue;
            }
            let of_thread =
                |tid: Option<Tid>| cgroup.map_or(tid.into(), |file| Tasks::Cgroup(file.as_fd()));
            let threads = self.plan.threads.iter().map(of_thread);
            let chosen = self.chosen.iter().map(|file| Tasks::Cgroup(file.as_fd()));
            let is_limited = !self.chosen.is_empty() && !event.is_side_band;
            let tasks: Vec<Tasks<'_>> =
                if is_limited { chosen.collect() } else { threads.collect() };
            for tasks in tasks {
                let target = EventTarget { cpu, tasks };
                let fd = leader.map(|leader| leader.in_slot(targets.len()).map(|one| &one.fd));
                let is_there = counts_on(event, cpu) && !matches!(fd, Some(None));
                targets.push(is_there.then_some((target, fd.flatten())));
            }
        }
        targets
    }

    /// One slot for each CPU and thread, and for each CPU beside. The first refusal ends it, with its CPU.
    fn open_everywhere(
        &mut self,
        event: &ConfiguredEvent,
        open: &[OpenEvent],
        index: usize,
    ) -> Result<Vec<Option<Instance>>, Refused> {
        let leader = event.spec.leader.filter(|&leader| leader != index).map(|l| &open[l]);
        let mut gone = Vec::new();
        let targets = self.targets(event, leader);
        let mut slots =
            slots(&event.attr.to_bytes(), &targets, self.roots, &mut |who| gone.push(who));
        if event.is_sideband() && slots.is_ok() {
            let target = |&cpu| Some((EventTarget { cpu: Some(cpu), tasks: Tasks::All }, None));
            let targets: Vec<_> = self.outside.iter().map(target).collect();
            let bytes = event.attr_of_sideband_ring().to_bytes();
            let outside = self::slots(&bytes, &targets, self.roots, &mut |who| gone.push(who));
            slots = slots.and_then(|slots| Ok([slots, outside?].into_iter().flatten().collect()));
        }
        for who in gone {
            self.listener.notice(match who {
                Gone::Thread(tid) => Notice::ThreadGone { tid },
                Gone::Cpu(cpu) => Notice::CpuGone { cpu },
            });
        }
        slots
    }

    /// The timer of the CPU stands in for its cycle counter, as in perf.
    fn replace_cycles(&mut self, event: &mut ConfiguredEvent, errno: Errno) {
        let asked = event.spec.name().to_owned();
        let spec = &mut event.spec.event;
        if !spec.name_given {
            spec.name = match spec.exclude.modifiers().as_str() {
                "" => "cpu-clock".to_owned(),
                modifiers => format!("cpu-clock:{modifiers}"),
            };
        }
        spec.pmu_type = pmu_type::SOFTWARE;
        spec.config[0] = software::CPU_CLOCK;
        spec.precise_ip = PreciseIp::Level(0);
        event.attr.pmu_type = pmu_type::SOFTWARE;
        event.attr.config = software::CPU_CLOCK;
        event.attr.set_precise_ip(0);
        event.attr.flags |= event.spec.exclusions();
        self.listener.notice(Notice::CyclesReplaced { event: asked, errno });
    }

    fn set_filter(
        &self,
        event: &ConfiguredEvent,
        slots: &[Option<Instance>],
    ) -> Result<(), CaptureError> {
        let Some(filter) = &event.spec.filter else { return Ok(()) };
        let error = |source| CaptureError::Filter {
            event: event.spec.name().to_owned(),
            filter: filter.clone(),
            advice: filter_advice(self.roots, event.attr.config, source),
            source,
        };
        let text = std::ffi::CString::new(filter.as_str()).map_err(|_| error(Errno::INVAL))?;
        slots.iter().flatten().try_for_each(|i| i.fd.set_filter(&text)).map_err(error)
    }

    fn refusal(&self, event: &ConfiguredEvent, refused: Refused) -> CaptureError {
        let errno = refused.errno;
        let wants_kernel = !event.attr.has(AttrFlags::EXCLUDE_KERNEL);
        let refusal = Refusal {
            wants_branches: event.attr.sample_type.contains(SampleType::BRANCH_STACK),
            ..Refusal::new("recording", errno, self.rights, event.attr.pmu_type)
        };
        let refusal = refusal.covering(self.plan.is_system_wide(), wants_kernel);
        let place = match (self.plan.is_system_wide(), refused.cpu) {
            (true, Some(cpu)) => format!("for everything on CPU {}", cpu.0),
            (false, Some(cpu)) => format!("for the target on CPU {}", cpu.0),
            (_, None) => "for the target's threads".to_owned(),
        };
        CaptureError::Open {
            event: event.spec.name().to_owned(),
            place,
            errno,
            advice: advice(&refusal),
        }
    }
}

/// An event on its way.
struct EventOpening<'a, 'o> {
    opener: &'a mut Opener<'o>,
    event: &'a mut ConfiguredEvent,
    open: &'a [OpenEvent],
    index: usize,
}

/// The outcome for an event that stays refused.
enum Fallback {
    BreakGroup,
    GiveUp(Refused),
}

impl Opening for EventOpening<'_, '_> {
    type Opened = Vec<Option<Instance>>;
    type Verdict = Fallback;

    fn open(&mut self) -> Result<Self::Opened, Refused> {
        self.opener.open_everywhere(self.event, self.open, self.index)
    }

    fn fall_back(&mut self, refused: Refused) -> Result<(), Fallback> {
        let EventOpening { opener, event, index, .. } = self;
        let errno = refused.errno;
        let name = event.spec.name().to_owned();
        let listener = &mut *opener.listener;
        if errno == Errno::MFILE
            && Limit::OpenFiles.get().soft != Limit::OpenFiles.get().hard
            && let Ok(files) = OpenFiles::raise()
        {
            listener.notice(Notice::OpenFilesRaised { from: files.raised_from, to: files.limit });
            return Ok(());
        }
        let unsupported = matches!(
            errno,
            Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL
        );
        let level = event.attr.precise_ip();
        if unsupported && event.spec.event.precise_ip == PreciseIp::Max && level > 0 {
            event.attr.set_precise_ip(level - 1);
            listener.notice(Notice::PrecisionLowered { event: name, level: level - 1 });
            return Ok(());
        }
        // The timer has no branch records.
        let wants_branches = event.attr.sample_type.contains(SampleType::BRANCH_STACK);
        if unsupported && event.spec.is_cycles() && !wants_branches {
            opener.replace_cycles(event, errno);
            return Ok(());
        }
        let is_system_wide = opener.plan.is_system_wide();
        if errno == Errno::ACCESS && give_up_kernel_mode(*event, opener.rights, is_system_wide) {
            let paranoid = opener.rights.paranoid;
            listener.notice(Notice::UserModeOnly { event: name, paranoid });
            return Ok(());
        }
        if give_up_guests(*event, errno) {
            listener.notice(Notice::GuestsIncluded { event: name });
            return Ok(());
        }
        let does_not_fit = matches!(errno, Errno::INVAL | Errno::NOSPC);
        match event.spec.is_member(*index) && event.spec.event.weak_group && does_not_fit {
            true => Err(Fallback::BreakGroup),
            false => Err(Fallback::GiveUp(refused)),
        }
    }
}

/// A PMU that counts on some CPUs only is opened on those of them that were asked for.
fn counts_on(event: &ConfiguredEvent, cpu: Option<CpuId>) -> bool {
    match (&event.spec.event.cpus, cpu) {
        (Some(own), Some(cpu)) => own.contains(&cpu),
        _ => true,
    }
}

/// An open instance for each target that is there.
fn slots(
    attr: &[u8],
    targets: &[Option<(EventTarget<'_>, Option<&PerfEventFd>)>],
    roots: &Roots,
    gone: &mut dyn FnMut(Gone),
) -> Result<Vec<Option<Instance>>, Refused> {
    let there = targets.iter().flatten().copied();
    let mut fds = open::open_everywhere(attr, there, roots, gone)?.into_iter();
    let slot = |target: &Option<(EventTarget<'_>, Option<&PerfEventFd>)>| {
        let Some((target, _)) = target else { return Ok(None) };
        let instance = fds.next().flatten().map(|fd| Instance::new(fd, *target));
        instance.transpose().map_err(|errno| Refused { errno, cpu: target.cpu })
    };
    targets.iter().map(slot).collect()
}

/// Makes the members of the group at `index` events of their own; gives the leader's index.
fn break_group(events: &mut [ConfiguredEvent], index: usize) -> usize {
    let Some(leader) = events[index].spec.leader else { return index };
    let (flags, attr) =
        (events[leader].attr.flags, AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC);
    for event in events.iter_mut().filter(|event| event.spec.leader == Some(leader)) {
        event.spec.leader = None;
        event.attr.flags |= AttrFlags(flags.0 & attr.0);
    }
    leader
}

#[cfg(test)]
mod tests;
