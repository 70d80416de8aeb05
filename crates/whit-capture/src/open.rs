//! Opening events, and bearing the kernel's refusals.
//!
//! Each event is opened for every CPU and thread of the plan. A refusal is answered with what
//! still gives a useful recording, and that is said: a lower `precise_ip`, the timer instead of
//! cycles, user mode alone, a group in pieces. What cannot be answered becomes an error that
//! names the way out.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;

use whit_host::advice::{Refusal, advice};
use whit_host::rights::Rights;
use whit_host::roots::Roots;
use whit_host::target::{ANY, Plan};
use whit_host::tracepoint::filter_advice;
use whit_perfdata::attr::{AttrFlags, SampleType, pmu_type};
use whit_sys::limit::Limit;
use whit_sys::{Errno, OpenFlags, PerfEventFd};

use crate::configure::ConfiguredEvent;
use crate::error::CaptureError;
use crate::event::{Precision, software};
use crate::notice::{Listener, Notice};

/// Descriptors that the recorder needs besides events: standard streams, output, epoll, pipes.
const SPARE_DESCRIPTORS: usize = 24;

/// One open instance of an event.
#[derive(Debug)]
pub struct Instance {
    /// The open event.
    pub fd: PerfEventFd,
    /// The kernel's id.
    pub id: u64,
    /// The CPU, or [`ANY`].
    pub cpu: i32,
    /// The thread, or [`ANY`].
    pub tid: i32,
}

/// An event with its instances.
#[derive(Debug)]
pub struct OpenEvent {
    /// The event as it was opened in the end.
    pub event: ConfiguredEvent,
    /// The instances, by CPU and thread.
    pub instances: Vec<Instance>,
    /// For each CPU and thread of the plan, in its order, the index of the instance; `None` where
    /// there is none. Those beside the recorded CPUs come behind.
    slots: Vec<Option<usize>>,
}

impl OpenEvent {
    fn new(event: ConfiguredEvent, slots: Vec<Option<Instance>>) -> OpenEvent {
        let mut instances = Vec::with_capacity(slots.len());
        let mut keep = |instance: Option<Instance>| {
            instances.extend(instance);
            instances.len().checked_sub(1)
        };
        let slots =
            slots.into_iter().map(|slot| if slot.is_some() { keep(slot) } else { None }).collect();
        OpenEvent { event, instances, slots }
    }

    fn in_slot(&self, slot: usize) -> Option<&Instance> {
        self.instances.get(self.slots.get(slot).copied().flatten()?)
    }
}

/// Times that a group is opened again because its leader is elsewhere for the moment.
const SWAPS_MAX: usize = 10;

/// Makes room for the descriptors that the plan needs. Where the limit cannot be raised far
/// enough, gives a plan that needs fewer.
pub fn fit_descriptors(
    plan: Plan,
    events: usize,
    listener: &mut dyn Listener,
) -> Result<Plan, CaptureError> {
    let needed = plan.nr_descriptors(events) + SPARE_DESCRIPTORS;
    let fits = |needed: usize, limit: Option<u64>| limit.is_none_or(|l| needed as u64 <= l);
    let from = Limit::OpenFiles.get().soft;
    if fits(needed, from) {
        return Ok(plan);
    }
    let to =
        Limit::OpenFiles.raise().map_err(CaptureError::system("raise the limit of open files"))?;
    if to != from {
        listener.notice(Notice::OpenFilesRaised { from, to });
    }
    let limit = to.unwrap_or(u64::MAX);
    if fits(needed, to) {
        return Ok(plan);
    }
    let fewer = plan.without_cpus();
    if plan.is_system_wide() || !fits(fewer.nr_descriptors(events) + SPARE_DESCRIPTORS, to) {
        return Err(CaptureError::OpenFiles { needed, limit });
    }
    listener.notice(Notice::PerThreadRings { needed, limit });
    Ok(fewer)
}

/// Opens events of one plan.
pub struct Opener<'a> {
    /// CPUs and threads.
    pub plan: &'a Plan,
    /// Other CPUs, of which the side band is recorded.
    pub beside: &'a [i32],
    /// What this process may do.
    pub rights: Rights,
    /// `/proc` and `/sys`.
    pub roots: &'a Roots,
    /// The directories of cgroups, by name.
    pub cgroups: &'a HashMap<String, File>,
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
                    let name = pending[leader].spec.name.clone();
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
        loop {
            match self.open_everywhere(event, open, index) {
                Ok(slots) => {
                    self.set_filter(event, &slots)?;
                    return Ok(Some(OpenEvent::new(event.clone(), slots)));
                }
                Err((errno, cpu)) => {
                    match self.fall_back(event, errno, event.spec.is_member(index)) {
                        Fallback::Retry => {}
                        Fallback::BreakGroup => return Ok(None),
                        Fallback::GiveUp => return Err(self.refusal(event, errno, cpu)),
                    }
                }
            }
        }
    }

    /// One slot for each CPU and thread, and for each CPU beside. The first refusal ends it, with its CPU.
    fn open_everywhere(
        &mut self,
        event: &ConfiguredEvent,
        open: &[OpenEvent],
        index: usize,
    ) -> Result<Vec<Option<Instance>>, (Errno, i32)> {
        let leader = event.spec.leader.filter(|&leader| leader != index).map(|l| &open[l]);
        let bytes = event.attr.to_bytes();
        let mut slots = Vec::with_capacity(self.plan.nr_descriptors(1));
        for &cpu in &self.plan.cpus {
            if event.is_bpf_output || event.is_of_cpus {
                slots.push(self.open_for_all(&bytes, cpu)?);
                continue;
            }
            for &tid in &self.plan.threads {
                let leader = leader.map(|leader| leader.in_slot(slots.len()));
                // Where the leader is not, the thread has gone.
                if !self.counts_on(event, cpu) || matches!(leader, Some(None)) {
                    slots.push(None);
                    continue;
                }
                let leader = leader.flatten().map(|leader| &leader.fd);
                let cgroup = event.spec.cgroup.as_ref().and_then(|name| self.cgroups.get(name));
                match open_one(&bytes, cpu, tid, cgroup, leader) {
                    Ok(instance) => slots.push(Some(instance)),
                    Err(errno) if self.is_gone(errno, cpu, tid) => slots.push(None),
                    Err(errno) => return Err((errno, cpu)),
                }
            }
        }
        if event.is_sideband() {
            let bytes = event.attr_of_sideband_ring().to_bytes();
            for &cpu in self.beside {
                slots.push(self.open_for_all(&bytes, cpu)?);
            }
        }
        Ok(slots)
    }

    /// For whoever runs on a CPU.
    fn open_for_all(&mut self, attr: &[u8], cpu: i32) -> Result<Option<Instance>, (Errno, i32)> {
        match open_one(attr, cpu, ANY, None, None) {
            Ok(instance) => Ok(Some(instance)),
            Err(errno) if self.is_gone(errno, cpu, ANY) => Ok(None),
            Err(errno) => Err((errno, cpu)),
        }
    }

    /// A PMU that counts on some CPUs only is opened on those of them that were asked for.
    fn counts_on(&self, event: &ConfiguredEvent, cpu: i32) -> bool {
        match &event.spec.cpus {
            Some(own) if cpu != ANY => own.iter().any(|&o| i64::from(o) == i64::from(cpu)),
            _ => true,
        }
    }

    fn is_gone(&mut self, errno: Errno, cpu: i32, tid: i32) -> bool {
        if errno == Errno::SRCH && tid != ANY {
            self.listener.notice(Notice::ThreadGone { tid });
            return true;
        }
        let offline = errno == Errno::NODEV
            && cpu != ANY
            && whit_host::cpus::online(self.roots).is_ok_and(|cpus| !cpus.contains(&(cpu as u32)));
        if offline {
            self.listener.notice(Notice::CpuGone { cpu });
        }
        offline
    }

    fn fall_back(&mut self, event: &mut ConfiguredEvent, errno: Errno, in_group: bool) -> Fallback {
        let name = event.spec.name.clone();
        if errno == Errno::MFILE && Limit::OpenFiles.get().soft != Limit::OpenFiles.get().hard {
            let from = Limit::OpenFiles.get().soft;
            if let Ok(to) = Limit::OpenFiles.raise() {
                self.listener.notice(Notice::OpenFilesRaised { from, to });
                return Fallback::Retry;
            }
        }
        let unsupported = matches!(
            errno,
            Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL
        );
        let level = event.attr.precise_ip();
        if unsupported && event.spec.precision == Precision::Max && level > 0 {
            event.attr.set_precise_ip(level - 1);
            self.listener.notice(Notice::PrecisionLowered { event: name, level: level - 1 });
            return Fallback::Retry;
        }
        // The timer has no branch records.
        let wants_branches = event.attr.sample_type.contains(SampleType::BRANCH_STACK);
        if unsupported && event.spec.is_cycles() && !wants_branches {
            self.replace_cycles(event, errno);
            return Fallback::Retry;
        }
        if errno == Errno::ACCESS && self.may_try_user_mode(event) {
            self.leave_kernel_out(event);
            return Fallback::Retry;
        }
        let hardware = event.attr.pmu_type != pmu_type::SOFTWARE;
        if matches!(errno, Errno::INVAL | Errno::OPNOTSUPP)
            && hardware
            && event.attr.has(AttrFlags::EXCLUDE_GUEST)
        {
            event.attr.flags = event.attr.flags.with(AttrFlags::EXCLUDE_GUEST, false);
            self.listener.notice(Notice::GuestsIncluded { event: name });
            return Fallback::Retry;
        }
        if in_group && event.spec.is_weak && matches!(errno, Errno::INVAL | Errno::NOSPC) {
            return Fallback::BreakGroup;
        }
        Fallback::GiveUp
    }

    /// The timer of the CPU stands in for its cycle counter, as in perf.
    fn replace_cycles(&mut self, event: &mut ConfiguredEvent, errno: Errno) {
        let asked = event.spec.name.clone();
        if !event.spec.is_name_given {
            event.spec.name = match event.spec.exclude.modifiers().as_str() {
                "" => "cpu-clock".to_owned(),
                modifiers => format!("cpu-clock:{modifiers}"),
            };
        }
        event.spec.pmu_type = pmu_type::SOFTWARE;
        event.spec.config = software::CPU_CLOCK;
        event.spec.precision = Precision::Level(0);
        event.attr.pmu_type = pmu_type::SOFTWARE;
        event.attr.config = software::CPU_CLOCK;
        event.attr.set_precise_ip(0);
        self.listener.notice(Notice::CyclesReplaced { event: asked, errno });
    }

    /// User mode of one's own processes is free up to level 2; all of a CPU is not.
    fn may_try_user_mode(&self, event: &ConfiguredEvent) -> bool {
        let attr = &event.attr;
        !attr.has(AttrFlags::EXCLUDE_KERNEL)
            && !attr.has(AttrFlags::EXCLUDE_USER)
            && self.rights.paranoid > 1
            && !self.plan.is_system_wide()
    }

    fn leave_kernel_out(&mut self, event: &mut ConfiguredEvent) {
        let asked = event.spec.name.clone();
        if !event.spec.is_name_given {
            let has_modifiers = !event.spec.is_tracepoint() && asked.contains(['/', ':']);
            event.spec.name = format!("{asked}{}u", if has_modifiers { "" } else { ":" });
        }
        event.spec.exclude.kernel = true;
        event.spec.exclude.hypervisor = true;
        event.attr.flags |= AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
        let paranoid = self.rights.paranoid;
        self.listener.notice(Notice::UserModeOnly { event: asked, paranoid });
    }

    fn set_filter(
        &self,
        event: &ConfiguredEvent,
        slots: &[Option<Instance>],
    ) -> Result<(), CaptureError> {
        let Some(filter) = &event.spec.filter else { return Ok(()) };
        let error = |source| CaptureError::Filter {
            event: event.spec.name.clone(),
            filter: filter.clone(),
            advice: filter_advice(self.roots, event.attr.config, source),
            source,
        };
        let text = std::ffi::CString::new(filter.as_str()).map_err(|_| error(Errno::INVAL))?;
        slots.iter().flatten().try_for_each(|i| i.fd.set_filter(&text)).map_err(error)
    }

    fn refusal(&self, event: &ConfiguredEvent, errno: Errno, cpu: i32) -> CaptureError {
        let refusal = Refusal {
            activity: "recording",
            errno,
            paranoid: self.rights.paranoid,
            is_system_wide: self.plan.is_system_wide(),
            wants_kernel: !event.attr.has(AttrFlags::EXCLUDE_KERNEL),
            wants_branches: event.attr.sample_type.contains(SampleType::BRANCH_STACK),
            pmu_type: event.attr.pmu_type,
        };
        let place = match (self.plan.is_system_wide(), cpu) {
            (true, cpu) => format!("for everything on CPU {cpu}"),
            (false, ANY) => "for the target's threads".to_owned(),
            (false, cpu) => format!("for the target on CPU {cpu}"),
        };
        CaptureError::Open {
            event: event.spec.name.clone(),
            place,
            errno,
            advice: advice(&refusal),
        }
    }
}

enum Fallback {
    Retry,
    BreakGroup,
    GiveUp,
}

pub(crate) fn open_one(
    attr: &[u8],
    cpu: i32,
    tid: i32,
    cgroup: Option<&File>,
    leader: Option<&PerfEventFd>,
) -> Result<Instance, Errno> {
    let flags = OpenFlags { pid_is_cgroup: cgroup.is_some() };
    let whom = cgroup.map_or(tid, AsRawFd::as_raw_fd);
    let fd = PerfEventFd::open(attr, whom, cpu, leader, flags)?;
    let id = fd.id()?;
    Ok(Instance { fd, id, cpu, tid })
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
