//! The CPU's PMU and local APIC, and the host's driver.

use crate::mediated::{HostCpu, Mediated};
use crate::model::{CounterIndex, PmuModel};
use crate::msr::{evtsel, fixed_ctrl};
use crate::register::Register;

/// Slots that a machine has room for.
pub(super) const SLOTS: usize = 4;
/// Instructions, which guests may count, and another event, which they may not.
pub(super) const INSTRUCTIONS: u64 = 0xc0;
pub(super) const FORBIDDEN: u64 = 0x41;
const NMI: u32 = 0x400;
const MASKED: u32 = 1 << 16;
const GUEST_ONLY: u64 = 1 << 40;
const HOST_ONLY: u64 = 1 << 41;

/// An event of the host on a counter of its choice.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub(super) struct HostEvent {
    pub(super) includes_guests: bool,
    /// On its counter now.
    pub(super) running: bool,
    /// Events that it has to have counted since it was put on its counter.
    pub(super) truth: u8,
}

#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub(super) struct Hardware {
    pub(super) model: PmuModel,
    pub(super) counters: [u64; SLOTS],
    pub(super) selects: [u64; SLOTS],
    pub(super) fixed_control: u64,
    pub(super) control: u64,
    pub(super) status: u64,
    lvtpc: u32,
    /// An interrupt with the guests' vector waits.
    pub(super) vector: bool,
    /// An NMI waits.
    pub(super) nmi: bool,
    pub(super) in_guest: bool,
    /// The VMCS of the loaded guest, and the value that an exit loads.
    pub(super) guest_field: u64,
    host_field: u64,
    pub(super) event: Option<HostEvent>,
    /// The slot that the host counts on.
    pub(super) host_slot: usize,
    host_used: bool,
    /// The bits of the counters that guests have.
    guest_bits: u64,
    /// The first broken promise.
    pub(super) broken: Option<&'static str>,
}

impl Hardware {
    pub(super) fn new(model: PmuModel, guest: PmuModel, host_slot: usize) -> Hardware {
        Hardware {
            model,
            counters: [0; SLOTS],
            selects: [0; SLOTS],
            fixed_control: 0,
            control: 0,
            status: 0,
            lvtpc: MASKED,
            vector: false,
            nmi: false,
            in_guest: false,
            guest_field: 0,
            host_field: 0,
            event: None,
            host_slot,
            host_used: false,
            guest_bits: guest.counter_bits(),
            broken: None,
        }
    }

    pub(super) fn mask(&self) -> u64 {
        self.model.counter_mask()
    }

    fn counts(&self, slot: usize, event: u64) -> bool {
        let select = if slot < usize::from(self.model.general) {
            self.selects[slot]
        } else {
            self.model.fixed_select(slot, self.fixed_control)
        };
        let modes = if self.in_guest { HOST_ONLY } else { GUEST_ONLY };
        self.control & self.model.status_bit(slot) != 0
            && select & evtsel::EN != 0
            && select & evtsel::OS != 0
            && select & evtsel::RAW == event
            && select & modes == 0
    }

    /// One event occurs in the kernel of the guest or of the host.
    pub(super) fn occur(&mut self, event: u64) {
        for slot in 0..self.model.slots() {
            if !self.counts(slot, event) {
                continue;
            }
            self.counters[slot] = (self.counters[slot] + 1) & self.mask();
            let general = usize::from(self.model.general);
            let interrupts = if slot < general {
                self.selects[slot] & evtsel::INT != 0
            } else {
                let shift = fixed_ctrl::BITS * (slot - general) as u32;
                self.fixed_control >> shift & fixed_ctrl::PMI != 0
            };
            if self.counters[slot] == 0 {
                self.status |= self.model.status_bit(slot);
                if interrupts {
                    self.interrupt();
                }
            }
        }
    }

    fn interrupt(&mut self) {
        if self.lvtpc & MASKED != 0 {
            return;
        }
        if self.lvtpc == u32::from(Mediated::VECTOR) {
            self.vector = true;
        } else {
            self.nmi = true;
        }
        if self.model.is_intel() {
            self.lvtpc |= MASKED;
        }
    }

    pub(super) fn enter(&mut self) {
        self.in_guest = true;
        if self.model.is_intel() {
            self.control = self.guest_field;
        }
    }

    pub(super) fn exit(&mut self) {
        self.in_guest = false;
        if self.model.is_intel() {
            (self.guest_field, self.control) = (self.control, self.host_field);
        }
    }

    pub(super) fn open(&mut self, includes_guests: bool) {
        self.event = Some(HostEvent { includes_guests, running: false, truth: 0 });
        self.program();
    }

    pub(super) fn close(&mut self) {
        self.take_off();
        self.event = None;
    }

    /// The host's driver: its counter is about to overflow, and does not interrupt.
    fn program(&mut self) {
        let start = self.mask();
        let slot = self.host_slot;
        let Some(event) = &mut self.event else { return };
        (event.running, event.truth, self.host_used) = (true, 0, true);
        let guests = if event.includes_guests || self.model.is_intel() { 0 } else { HOST_ONLY };
        self.counters[slot] = start;
        self.selects[slot] = INSTRUCTIONS | evtsel::OS | evtsel::EN | guests;
        self.status = 0;
        self.lvtpc = NMI;
        // As Linux: all counters may run, and those without a select do not.
        self.control = self.model.counter_bits();
        self.host_field = self.control;
    }

    /// The driver leaves values and the status behind.
    fn take_off(&mut self) {
        if let Some(event) = &mut self.event {
            event.running = false;
            self.selects[self.host_slot] = 0;
        }
    }

    /// The host's counter has counted each of its events, and no others.
    pub(super) fn host_count_is_right(&self) -> bool {
        let event = self.event.filter(|event| event.running);
        event.is_none_or(|event| {
            let expected = (self.mask() + u64::from(event.truth)) & self.mask();
            self.counters[self.host_slot] == expected
        })
    }

    pub(super) fn read(&self, register: Register) -> u64 {
        match register {
            Register::Counter(slot, _) => self.counters[slot],
            Register::Select(slot) => self.selects[slot],
            Register::FixedControl => self.fixed_control,
            Register::GlobalControl => self.control,
            Register::Status => self.status,
            _ => 0,
        }
    }

    pub(super) fn write(&mut self, register: Register, value: u64) {
        match register {
            Register::Counter(slot, _) => self.counters[slot] = value,
            Register::Select(slot) => self.selects[slot] = value,
            Register::FixedControl => self.fixed_control = value,
            Register::GlobalControl => self.control = value,
            Register::StatusClear => self.status &= !value,
            Register::StatusSet => self.status |= value,
            _ => self.broken = Some("a register was written that there is not"),
        }
    }
}

impl HostCpu for Hardware {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.model.register(msr).map_or(0, |register| self.read(register))
    }

    fn wrmsr(&mut self, msr: u32, value: u64) {
        match self.model.register(msr) {
            Some(register) => self.write(register, value),
            None => self.broken = Some("a register was written that there is not"),
        }
    }

    fn rdpmc(&mut self, counter: CounterIndex) -> u64 {
        let slot = (0..SLOTS).find(|slot| self.model.counter(*slot) == counter);
        slot.map_or(0, |slot| self.counters[slot])
    }

    fn write_lvtpc(&mut self, entry: u32) {
        self.lvtpc = entry;
    }

    fn exit_control(&mut self) -> u64 {
        self.guest_field
    }

    fn set_entry_control(&mut self, value: u64) {
        self.guest_field = value;
    }

    fn host_leaves(&mut self) -> u64 {
        self.take_off();
        self.host_field = 0;
        let used = std::mem::take(&mut self.host_used);
        if used { self.model.status_bit(self.host_slot) } else { 0 }
    }

    fn host_returns(&mut self) {
        let of_guests = |slot: &usize| self.guest_bits & self.model.status_bit(*slot) != 0;
        let mut slots = (0..self.model.slots()).filter(of_guests);
        let left = slots.any(|slot| self.counters[slot] | self.selects[slot] != 0);
        if left || self.fixed_control != 0 || self.status != 0 {
            self.broken = Some("the host sees a guest's registers");
        }
        self.program();
    }
}
