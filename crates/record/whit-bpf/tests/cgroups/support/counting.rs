//! Open events, for whole CPUs and for cgroups as the kernel counts them.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use whit_bpf::cgroup::{Cgroup, CgroupCounter, Count, Counts, How, Plan};
use whit_sys::{OpenFlags, PerfEventFd};
use whit_types::CpuId;

use super::group::Group;
use super::{Skip, probe};
pub(crate) use whit_testing::probe::cpus as cpu_list;

/// An event: its type and number in `include/uapi/linux/perf_event.h`, and how it is read.
pub(crate) type Event = (u32, u64, How);

pub(crate) const DUMMY: Event = (1, 9, How::TIMED);
const CPU_CLOCK: Event = (1, 0, How::CLOCK);
/// It is its own time; if it is not read in memory, its own value is taken.
pub(crate) const TIMED_CLOCK: Event = (1, 0, How { is_timed: true, ..How::CLOCK });
const CPU_CLOCK_READ: Event = (1, 0, How::TIMED);
const TASK_CLOCK: Event = (1, 1, How::CLOCK);
pub(crate) const PAGE_FAULTS: Event = (1, 2, How::UNTIMED);
pub(crate) const CONTEXT_SWITCHES: Event = (1, 3, How::UNTIMED.of_switches());
pub(crate) const TIMED_SWITCHES: Event = (1, 3, How::TIMED.of_switches());

/// The same event, read in the kernel's memory.
pub(crate) const fn in_memory(event: Event) -> Event {
    (event.0, event.1, event.2.in_software())
}

/// All kinds, with the time base first, as events of software are read.
pub(crate) const ALL: [Event; 6] = [
    in_memory(DUMMY),
    in_memory(CPU_CLOCK),
    in_memory(TASK_CLOCK),
    in_memory(PAGE_FAULTS),
    in_memory(CONTEXT_SWITCHES),
    in_memory(TIMED_CLOCK),
];
/// As events of a PMU are read.
pub(crate) const BY_CALL: [Event; 6] =
    [DUMMY, CPU_CLOCK, TASK_CLOCK, PAGE_FAULTS, CONTEXT_SWITCHES, CPU_CLOCK_READ];
/// As events of software behind one of a PMU are.
pub(crate) const MIXED: [Event; 6] =
    [DUMMY, CPU_CLOCK, TASK_CLOCK, ALL[FAULTS], ALL[SWITCHES], CPU_CLOCK_READ];
/// All ways of reading the same events.
pub(crate) const WAYS: [[Event; 6]; 3] = [ALL, BY_CALL, MIXED];
/// Indices into each of them.
pub(crate) const CLOCK: usize = 1;
pub(crate) const FAULTS: usize = 3;
pub(crate) const SWITCHES: usize = 4;
pub(crate) const CLOCK_READ: usize = 5;

/// A counter with its times; a leader is off, and its members with it.
fn attr(kind: u32, config: u64, is_leader: bool) -> Vec<u8> {
    let mut attr = vec![0u8; 112];
    attr[0..4].copy_from_slice(&kind.to_ne_bytes());
    attr[4..8].copy_from_slice(&112u32.to_ne_bytes());
    attr[8..16].copy_from_slice(&config.to_ne_bytes());
    attr[32..40].copy_from_slice(&3u64.to_ne_bytes());
    attr[40..48].copy_from_slice(&u64::from(is_leader).to_ne_bytes());
    attr
}

/// Events on one CPU, in a group, so that they are switched on at the same moment.
fn open(events: &[Event], cpu: u32, cgroup: Option<&File>) -> Vec<PerfEventFd> {
    let flags = OpenFlags { pid_is_cgroup: cgroup.is_some() };
    let whom = cgroup.map_or(-1, AsRawFd::as_raw_fd);
    let mut fds: Vec<PerfEventFd> = Vec::new();
    for event in events {
        let attr = attr(event.0, event.1, fds.is_empty());
        let fd = PerfEventFd::open(&attr, whom, cpu as i32, fds.first(), flags);
        fds.push(fd.unwrap_or_else(|errno| panic!("open event {event:?}: {errno}")));
    }
    fds
}

fn switch(group: &[PerfEventFd], on: bool) {
    if on { group[0].enable() } else { group[0].disable() }.expect("switch events");
}

pub(crate) fn read(event: &PerfEventFd) -> Count {
    let mut words = [0; 3];
    event.read(&mut words).expect("read an event");
    Count { value: words[0], enabled_ns: words[1], running_ns: words[2] }
}

/// The counter under test with its events on all CPUs.
pub(crate) struct Counting {
    pub(crate) counter: CgroupCounter,
    /// By CPU and event.
    pub(crate) events: Vec<(u32, Vec<PerfEventFd>)>,
}

impl Counting {
    pub(crate) fn of(events: &[Event], cgroups: &[Cgroup]) -> Result<Counting, Skip> {
        let how: Vec<How> = events.iter().map(|event| event.2).collect();
        let possible_cpus = cpu_list("possible");
        let plan = Plan { events: &how, cgroups, possible_cpus: &possible_cpus };
        probe::bpf_cgroups()?;
        let counter = CgroupCounter::load(&plan).unwrap_or_else(|error| panic!("{error}"));
        let mut counting = Counting { counter, events: Vec::new() };
        for cpu in cpu_list("online") {
            counting.add_cpu(events, cpu);
        }
        counting.counter.attach().expect("attach");
        Ok(counting)
    }

    pub(crate) fn add_cpu(&mut self, events: &[Event], cpu: u32) {
        let opened = open(events, cpu, None);
        let fds: Vec<_> = opened.iter().map(|event| Some(event.as_fd())).collect();
        self.counter.add_cpu(CpuId(cpu), &fds).expect("add a CPU");
        self.events.push((cpu, opened));
    }

    pub(crate) fn switch(&self, on: bool) {
        self.events.iter().for_each(|(_, group)| switch(group, on));
    }

    pub(crate) fn read(&self) -> Totals<'_> {
        Totals { counts: self.counter.read().expect("read"), counting: self }
    }

    /// How many switches the kernel did not show.
    pub(crate) fn unseen(&self) -> u64 {
        self.counter.health().expect("health").unseen_switches
    }

    /// The values of the events themselves, which everything together has counted.
    pub(crate) fn shown(&self, event: usize) -> u64 {
        self.shown_with_times(event).value
    }

    /// The same with its times.
    pub(crate) fn shown_with_times(&self, event: usize) -> Count {
        let shown = self.events.iter().map(|(_, events)| read(&events[event]));
        shown.fold(Count::default(), Count::plus)
    }
}

/// Counts over all CPUs.
pub(crate) struct Totals<'a> {
    counts: Counts,
    counting: &'a Counting,
}

impl Totals<'_> {
    fn sum(&self, of: impl Fn(CpuId) -> Count) -> Count {
        let cpus = cpu_list("possible").into_iter().map(CpuId);
        debug_assert!(!self.counting.events.is_empty());
        cpus.map(of).fold(Count::default(), Count::plus)
    }

    pub(crate) fn cgroup(&self, cgroup: usize, event: usize) -> Count {
        self.sum(|cpu| self.counts.cgroup(cgroup, cpu, event))
    }

    pub(crate) fn remainder(&self, event: usize) -> Count {
        self.sum(|cpu| self.counts.remainder(cpu, event))
    }

    pub(crate) fn everything(&self, event: usize) -> Count {
        self.sum(|cpu| self.counts.everything(cpu, event))
    }
}

/// The kernel's own events of a cgroup, by CPU and event.
pub(crate) struct KernelEvents(Vec<Vec<PerfEventFd>>);

impl KernelEvents {
    pub(crate) fn of(events: &[Event], group: &Group) -> Result<KernelEvents, Skip> {
        probe::cgroup_events()?;
        let directory = File::open(group.directory()).expect("open a cgroup");
        let on = |cpu| open(events, cpu, Some(&directory));
        Ok(KernelEvents(cpu_list("online").into_iter().map(on).collect()))
    }

    pub(crate) fn switch(&self, on: bool) {
        self.0.iter().for_each(|group| switch(group, on));
    }

    pub(crate) fn count(&self, event: usize) -> Count {
        self.0.iter().map(|group| read(&group[event])).fold(Count::default(), Count::plus)
    }
}
