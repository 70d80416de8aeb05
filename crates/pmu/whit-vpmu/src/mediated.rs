//! The mediated virtual PMU: between load and put the guest owns the CPU's counters.
//!
//! [`Vpmu`](crate::Vpmu) backs a guest's counter by an event of the host. [`Mediated`] writes the guest's registers
//! into the hardware before the guest runs and takes them back before the host wants its PMU. In between the guest
//! reads and writes its counters without an exit. It is for hypervisors that own the CPU's registers: a kernel, not
//! a VMM in user space.
//!
//! ```text
//! mediated.load(cpu);                        // interrupts are off
//! mediated.deliver(apic);                    // a due interrupt reaches the guest's local APIC
//! loop {
//!     enter the guest
//!     RDMSR, WRMSR exit: mediated.rdmsr(cpu, msr), mediated.wrmsr(cpu, msr, value); the guest stays loaded
//!     VECTOR:            mediated.on_pmi(cpu)
//! }
//! mediated.put(cpu);                         // before interrupts are on, or another vCPU runs here
//! ```
//!
//! # Few accesses
//!
//! - **A guest that counts nothing costs nothing.** Its registers stay in memory and each access exits, until it
//!   enables a counter (lazy enable). The host keeps its PMU, and the entry's control value alone stops the host's
//!   counters while the guest runs.
//! - **Zeros are not written.** A put leaves zeros, so a load writes only other values, and counters that the host has used.
//! - **Counters in use alone are read.** Writes to the others exit, so memory has their values. A counter leaves
//!   this state when a put finds it disabled and the guest has not touched it since the last put.
//! - **An exit for a register keeps the guest loaded.** Hardware has stopped the counters at the exit.
//!
//! # Rules
//!
//! Each rule has a test that removes it: an exhaustive search over a small machine then finds a lost count, a leaked
//! one, or an interrupt without an owner (`mediated/tests`). `docs/vpmu.md` has the list.

mod access;
mod cpu;
mod rule;
mod share;
mod switch;

#[cfg(test)]
mod tests;

use core::fmt;

use crate::device::{StateError, VpmuState};
use crate::event::EventConfig;
use crate::filter::EventFilter;
use crate::interrupt::{Delivery, Interrupt};
use crate::model::{PmuKind, PmuModel};
use crate::msr::{evtsel, fixed_ctrl};

pub use access::Passing;
pub use cpu::HostCpu;
pub(crate) use rule::Rule;
pub use share::{HostShare, ShareError};

/// Counters that a state has room for.
const SLOTS_MAX: usize = 20;

/// Why a CPU's PMU cannot be given to a guest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MediatedError {
    /// The CPU lacks a register to set the overflow status with (Intel before version 4, AMD before PerfMonV2).
    NoStatusSet,
    /// The CPU's counters take 32 bits.
    NoFullWidthWrites,
    /// The guest's PMU is of another kind than the CPU's.
    OtherKind,
    /// The guest would have a counter that the CPU has not, or one of another width.
    Counters,
}

impl fmt::Display for MediatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MediatedError::NoStatusSet => {
                "this CPU cannot set its overflow status: a mediated PMU takes Intel's version 4 or AMD's PerfMonV2"
            }
            MediatedError::NoFullWidthWrites => {
                "counters of this CPU take 32 bits: a mediated PMU takes full-width writes"
            }
            MediatedError::OtherKind => {
                "the guest's PMU is of another kind than the CPU's: back its counters by events"
            }
            MediatedError::Counters => {
                "the guest's PMU has counters that the CPU has not: give it fewer, of the CPU's width"
            }
        })
    }
}

impl core::error::Error for MediatedError {}

/// A set of slots.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Hash)]
struct Slots(u32);

impl Slots {
    fn insert(&mut self, slot: usize) {
        self.0 |= 1 << slot;
    }

    const fn has(self, slot: usize) -> bool {
        self.0 & (1 << slot) != 0
    }

    const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The PMU of one vCPU.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq, Eq, Hash))]
pub struct Mediated {
    model: PmuModel,
    /// Bits of the CPU's counters in its control register.
    host_bits: u64,
    filter: Option<EventFilter>,
    /// The guest's registers. Those that it can change without an exit are the CPU's while it is resident.
    counters: [u64; SLOTS_MAX],
    selects: [u64; SLOTS_MAX],
    fixed_control: u64,
    global_control: u64,
    global_status: u64,
    /// Between load and put.
    loaded: bool,
    /// The guest's registers are in the CPU.
    resident: bool,
    /// Counters that the guest writes without an exit.
    in_use: Slots,
    /// Counters whose registers the guest has accessed by exits since the last put.
    touched: Slots,
    pmi_due: bool,
    /// A rule that does not hold.
    #[cfg(test)]
    removed: Option<Rule>,
}

impl Mediated {
    /// The vector that the CPU's LVTPC has while a guest is resident: an interrupt with it is a guest's. A hypervisor
    /// may choose another one.
    pub const VECTOR: u8 = 0xf5;

    /// A PMU after power-on.
    ///
    /// # Errors
    /// Where the CPU's PMU cannot be given to such a guest.
    pub fn new(
        cpu: &PmuModel,
        guest: PmuModel,
        filter: Option<EventFilter>,
    ) -> Result<Mediated, MediatedError> {
        check(cpu, &guest)?;
        let mut selects = [0; SLOTS_MAX];
        for (slot, select) in selects.iter_mut().enumerate().take(guest.slots()) {
            *select = guest.select_at_reset(slot);
        }
        Ok(Mediated {
            model: guest,
            host_bits: cpu.counter_bits(),
            filter,
            counters: [0; SLOTS_MAX],
            selects,
            fixed_control: 0,
            global_control: guest.global_control_at_reset(),
            global_status: 0,
            loaded: false,
            resident: false,
            in_use: Slots::default(),
            touched: Slots::default(),
            pmi_due: false,
            #[cfg(test)]
            removed: None,
        })
    }

    /// A PMU in a state that was saved, here or of a [`Vpmu`](crate::Vpmu).
    ///
    /// # Errors
    /// Where the state is not one of this PMU.
    pub fn restore(&mut self, state: &VpmuState) -> Result<(), StateError> {
        state.check(&self.model)?;
        let general = usize::from(self.model.general);
        self.counters[..self.model.slots()].copy_from_slice(&state.counters);
        self.selects[..general].copy_from_slice(&state.selects);
        self.set_fixed_control(state.fixed_control);
        self.global_control = state.global_control;
        self.global_status = state.global_status;
        self.pmi_due = state.pmi_due;
        for slot in 0..self.model.slots() {
            if self.is_enabled(slot) {
                self.in_use.insert(slot);
            }
        }
        Ok(())
    }

    /// The PMU as a value; `None` while the guest is loaded.
    #[must_use]
    pub fn state(&self) -> Option<VpmuState> {
        if self.loaded {
            return None;
        }
        Some(VpmuState {
            model: self.model,
            counters: self.counters[..self.model.slots()].into(),
            selects: self.selects[..usize::from(self.model.general)].into(),
            fixed_control: self.fixed_control,
            global_control: self.global_control,
            global_status: self.global_status,
            pmi_due: self.pmi_due,
        })
    }

    /// The PMU that the guest sees.
    #[must_use]
    pub const fn model(&self) -> &PmuModel {
        &self.model
    }

    /// Whether the guest's registers are in the CPU.
    #[must_use]
    pub const fn is_resident(&self) -> bool {
        self.resident
    }

    /// Whether an interrupt is due, which [`Mediated::deliver`] delivers.
    #[must_use]
    pub const fn pmi_due(&self) -> bool {
        self.pmi_due
    }

    /// An interrupt with [`Mediated::VECTOR`] came, while this guest was loaded or after it was put and before another
    /// was loaded.
    pub fn on_pmi(&mut self, cpu: &mut impl HostCpu) {
        self.pmi_due = true;
        // Delivery masks the entry on Intel.
        if self.resident && self.model.is_intel() && self.keeps(Rule::UnmaskVector) {
            cpu.write_lvtpc(Mediated::VECTOR.into());
        }
    }

    /// Before the guest is entered: a due interrupt goes to its local APIC.
    pub fn deliver(&mut self, interrupt: &mut impl Interrupt) -> Option<Delivery> {
        core::mem::take(&mut self.pmi_due).then(|| interrupt.pmi(self.model.is_intel()))
    }

    /// Whether a rule holds: all of them do, but in tests.
    fn keeps(&self, rule: Rule) -> bool {
        #[cfg(test)]
        return self.removed != Some(rule);
        #[cfg(not(test))]
        {
            let _ = rule;
            true
        }
    }

    fn is_allowed(&self, slot: usize) -> bool {
        let config = EventConfig::of_select(self.model.counter(slot), self.selects[slot]);
        match (&self.filter, config) {
            (_, None) => false,
            (Some(filter), Some(config)) if self.keeps(Rule::Filter) => filter.allows(&config),
            _ => true,
        }
    }

    /// Whether the hardware is to count with this counter.
    fn is_enabled(&self, slot: usize) -> bool {
        self.selects[slot] & evtsel::EN != 0 && self.is_allowed(slot)
    }

    /// The event select for the hardware: it counts in the guest alone, and allowed events alone. One that counts
    /// nothing is 0 there: the guest reads its own.
    fn hardware_select(&self, slot: usize) -> u64 {
        if !self.is_enabled(slot) {
            return 0;
        }
        let marks_guest = !self.model.is_intel() && self.keeps(Rule::GuestOnly);
        self.selects[slot] | if marks_guest { evtsel::GUEST_ONLY } else { 0 }
    }

    /// The control register of fixed counters for the hardware.
    fn hardware_fixed_control(&self) -> u64 {
        let general = usize::from(self.model.general);
        let mut control = self.fixed_control;
        for slot in general..self.model.slots() {
            if !self.is_enabled(slot) {
                control &= !(fixed_ctrl::MASK << (fixed_ctrl::BITS * (slot - general) as u32));
            }
        }
        control
    }

    fn set_fixed_control(&mut self, value: u64) {
        self.fixed_control = value;
        for slot in usize::from(self.model.general)..self.model.slots() {
            self.selects[slot] = self.model.fixed_select(slot, value);
        }
    }

    /// The guest has every counter of the CPU, so that registers with bits of all of them can be its own.
    const fn is_whole(&self) -> bool {
        self.host_bits == self.model.counter_bits()
    }
}

fn check(cpu: &PmuModel, guest: &PmuModel) -> Result<(), MediatedError> {
    let settable = |model: &PmuModel| match model.kind {
        PmuKind::Intel { version } => version >= 4,
        kind => kind == PmuKind::AmdV2,
    };
    if !settable(cpu) {
        return Err(MediatedError::NoStatusSet);
    }
    if !cpu.full_width_writes {
        return Err(MediatedError::NoFullWidthWrites);
    }
    if cpu.is_intel() != guest.is_intel() || !settable(guest) {
        return Err(MediatedError::OtherKind);
    }
    let fewer = guest.general <= cpu.general && guest.fixed <= cpu.fixed;
    if !fewer || guest.width_bits != cpu.width_bits {
        return Err(MediatedError::Counters);
    }
    Ok(())
}
