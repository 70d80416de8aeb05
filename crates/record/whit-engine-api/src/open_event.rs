//! Events as they are opened, and open ones.

use whit_host::open::{self, EventTarget, Reducible, Tasks};
use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
use whit_sys::{Errno, PerfEventFd};
use whit_types::{CpuId, Tid};

use crate::event::EventSpec;

/// Size of the rings of CPUs that are not recorded, where others are not smaller: a few hundred execs.
pub const SIDEBAND_RING_BYTES: usize = 128 << 10;

/// An event with the attributes that it is opened with.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredEvent {
    /// The event.
    pub spec: EventSpec,
    /// Its attributes.
    pub attr: Attr,
    /// Whether it only carries the sideband: it runs even while all other events are off.
    pub is_side_band: bool,
    /// Whether BPF programs write by it (the engine). It is on whole CPUs for any target, and runs
    /// even while all other events are off.
    pub is_bpf_output: bool,
}

impl ConfiguredEvent {
    /// An event that is recorded as its attributes say.
    pub fn new(spec: EventSpec, attr: Attr) -> ConfiguredEvent {
        ConfiguredEvent { spec, attr, is_side_band: false, is_bpf_output: false }
    }

    /// Whether it is opened on CPUs that are not recorded, too.
    pub fn is_sideband(&self) -> bool {
        self.is_side_band && !self.is_bpf_output
    }

    /// How it is opened there: who runs when is not asked, and rings are smaller.
    pub fn attr_of_sideband_ring(&self) -> Attr {
        let mut attr = self.attr.clone();
        attr.flags = attr.flags.with(AttrFlags::CONTEXT_SWITCH, false);
        if attr.has(AttrFlags::WATERMARK) {
            attr.wakeup = attr.wakeup.min(watermark(SIDEBAND_RING_BYTES));
        }
        attr
    }
}

impl Reducible for ConfiguredEvent {
    fn is_software(&self) -> bool {
        self.attr.pmu_type == pmu_type::SOFTWARE
    }

    fn leaves_guests_out(&self) -> bool {
        self.attr.has(AttrFlags::EXCLUDE_GUEST)
    }

    fn covers_both_modes(&self) -> bool {
        !self.attr.has(AttrFlags::EXCLUDE_KERNEL) && !self.attr.has(AttrFlags::EXCLUDE_USER)
    }

    fn take_guests_in(&mut self) {
        self.spec.event.exclude.guest = false;
        self.attr.flags = self.attr.flags.with(AttrFlags::EXCLUDE_GUEST, false);
    }

    fn leave_kernel_out(&mut self) {
        self.spec.event.restrict_to_user();
        self.attr.flags |= self.spec.exclusions();
    }
}

/// One open instance of an event.
#[derive(Debug)]
pub struct Instance {
    /// The open event.
    pub fd: PerfEventFd,
    /// The kernel's id.
    pub id: u64,
    /// The CPU; `None` is any.
    pub cpu: Option<CpuId>,
    /// The thread; `None` for all threads, or the tasks of a cgroup.
    pub tid: Option<Tid>,
}

impl Instance {
    /// An open event, with the id that the kernel gave it.
    pub fn new(fd: PerfEventFd, target: EventTarget<'_>) -> Result<Instance, Errno> {
        let tid = match target.tasks {
            Tasks::Thread(tid) => Some(tid),
            Tasks::All | Tasks::Own | Tasks::Cgroup(_) => None,
        };
        Ok(Instance { id: fd.id()?, fd, cpu: target.cpu, tid })
    }
}

/// Where an instance stands among the open events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceIndex {
    /// Index of the event.
    pub event: usize,
    /// Index among the event's instances.
    pub instance: usize,
}

impl InstanceIndex {
    /// The instance.
    pub fn of(self, events: &[OpenEvent]) -> &Instance {
        &events[self.event].instances[self.instance]
    }
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
    /// The instances in these slots, and where each is.
    pub fn new(event: ConfiguredEvent, slots: Vec<Option<Instance>>) -> OpenEvent {
        let mut instances = Vec::with_capacity(slots.len());
        let mut keep = |instance: Option<Instance>| {
            instances.extend(instance);
            instances.len().checked_sub(1)
        };
        let slots =
            slots.into_iter().map(|slot| if slot.is_some() { keep(slot) } else { None }).collect();
        OpenEvent { event, instances, slots }
    }

    /// The instance in a slot.
    pub fn in_slot(&self, slot: usize) -> Option<&Instance> {
        self.instances.get(self.slots.get(slot).copied().flatten()?)
    }
}

/// Opens one instance.
pub fn open_one(attr: &[u8], target: EventTarget<'_>) -> Result<Instance, Errno> {
    Instance::new(open::open(attr, target, None)?, target)
}

/// How much a ring of this size holds when it wakes its reader: a quarter.
pub fn watermark(ring_size_bytes: usize) -> u32 {
    u32::try_from(ring_size_bytes / 4).unwrap_or(u32::MAX)
}
