//! The simulated PMU: counting, overflow, freezing, interrupts.

use super::apic::Apic;
use super::lbr::{Branch, Records};
use crate::bits::{debugctl, evtsel, fixed_ctrl, global_status, lbr_ctl};
use crate::counter::{COUNTERS_MAX, CounterIndex};
use crate::lbr::LbrKind;
use crate::model::{PmuKind, PmuModel};

/// Fate of an interrupt that comes while LVTPC is masked. Which it is on hardware differs and is
/// not documented; KVM drops.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum MaskedPmi {
    /// It is lost.
    Drop,
    /// It comes when the entry is unmasked.
    Latch,
}

/// Privilege of the running code.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Privilege {
    /// Ring 3.
    User,
    /// Ring 0.
    Kernel,
}

/// How the hardware behaves where implementations differ.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct SimulationParameters {
    /// Events of any kind between an overflow and its interrupt.
    pub skid: u32,
    /// Fate of interrupts while LVTPC is masked.
    pub masked: MaskedPmi,
    /// An event, and how often it occurs with each register access: what the driver itself costs.
    pub per_access: (u16, u64),
}

impl Default for SimulationParameters {
    fn default() -> SimulationParameters {
        SimulationParameters { skid: 0, masked: MaskedPmi::Drop, per_access: (0, 0) }
    }
}

/// Something that no driver may do.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Violation {
    /// Counter freezing was switched on or off while global control enabled a counter.
    FreezeToggledWhileEnabled,
    /// A register was accessed that this PMU does not have.
    NoSuchRegister(u32),
}

/// Facts that the simulation has and no driver can have: events of one counter.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct Truth {
    /// Occurred while the counter was enabled, frozen or not, outside interrupt handlers.
    pub workload: u64,
    /// Counted by the counter, within interrupt handlers too.
    pub counted: u64,
    /// Counted within interrupt handlers.
    pub counted_in_handler: u64,
    /// Not counted because counters were frozen, before the handler was entered.
    pub frozen_in_skid: u64,
    /// Not counted because counters were frozen, within the handler.
    pub frozen_in_handler: u64,
    /// Overflows that occurred, whether or not an interrupt came.
    pub overflows: u64,
}

/// A CPU's PMU, its APIC entry and its NMI line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulatedPmu {
    pub(super) model: PmuModel,
    pub(super) parameters: SimulationParameters,
    pub(super) privilege: Privilege,
    pub(super) counters: [u64; COUNTERS_MAX],
    pub(super) selects: [u64; COUNTERS_MAX],
    pub(super) fixed_control: u64,
    pub(super) global_control: u64,
    pub(super) status: u64,
    pub(super) pebs_enable: u64,
    pub(super) pebs_data_cfg: u64,
    pub(super) ds_area: u64,
    pub(super) debug_control: u64,
    pub(super) debug_extension: u64,
    pub(super) aperf: u64,
    pub(super) records: Option<Records>,
    pub(super) apic: Apic,
    /// Events left until a counter's interrupt is raised.
    raises: [Option<u32>; COUNTERS_MAX],
    pebs_reload: [u64; COUNTERS_MAX],
    pebs_records: [u32; COUNTERS_MAX],
    truth: [Truth; COUNTERS_MAX],
    pub(super) violation: Option<Violation>,
}

/// Event code of unhalted core cycles, which APERF counts too.
const CYCLES: u16 = 0x003c;

impl SimulatedPmu {
    /// A PMU after reset.
    #[must_use]
    pub fn new(model: PmuModel, parameters: SimulationParameters) -> SimulatedPmu {
        SimulatedPmu {
            model,
            parameters,
            privilege: Privilege::User,
            counters: [0; COUNTERS_MAX],
            selects: [0; COUNTERS_MAX],
            fixed_control: 0,
            global_control: 0,
            status: 0,
            pebs_enable: 0,
            pebs_data_cfg: 0,
            ds_area: 0,
            debug_control: 0,
            debug_extension: 0,
            aperf: 0,
            records: model.lbr.map(Records::new),
            apic: Apic::new(model.kind == PmuKind::Intel, parameters.masked),
            raises: [None; COUNTERS_MAX],
            pebs_reload: [0; COUNTERS_MAX],
            pebs_records: [0; COUNTERS_MAX],
            truth: [Truth::default(); COUNTERS_MAX],
            violation: None,
        }
    }

    /// The counters and features that are simulated.
    #[must_use]
    pub const fn model(&self) -> &PmuModel {
        &self.model
    }

    /// The true events of a counter.
    #[must_use]
    pub const fn truth(&self, counter: CounterIndex) -> &Truth {
        &self.truth[counter.index()]
    }

    /// The first thing that no driver may do and that this one did.
    #[must_use]
    pub const fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// Overflow and freeze status, from the register that shows it; 0 before AMD PerfMonV2.
    #[must_use]
    pub const fn status(&self) -> u64 {
        self.status
    }

    /// Interrupts that came while LVTPC was masked and were lost, and those that collapsed.
    #[must_use]
    pub const fn lost_interrupts(&self) -> (u64, u64) {
        (self.apic.dropped, self.apic.collapsed)
    }

    /// Whether an interrupt is pending, latched or on its way.
    #[must_use]
    pub fn interrupt_is_due(&self) -> bool {
        self.apic.nmi_pending || self.apic.is_latched() || self.raises.iter().any(Option::is_some)
    }

    /// Enters the NMI handler where an NMI is pending and none runs.
    pub fn take_nmi(&mut self) -> bool {
        let taken = !self.apic.in_nmi && core::mem::take(&mut self.apic.nmi_pending);
        self.apic.in_nmi |= taken;
        taken
    }

    /// Leaves the NMI handler.
    pub fn iret(&mut self) {
        self.apic.in_nmi = false;
    }

    /// Sets the privilege of the code that runs outside of interrupt handlers.
    pub fn set_privilege(&mut self, privilege: Privilege) {
        self.privilege = privilege;
    }

    /// The period that a PEBS counter reloads itself with; the driver would write it to the DS area.
    pub fn set_pebs_reload(&mut self, counter: CounterIndex, period: u64) {
        let mask = self.model.counter_mask(counter);
        self.pebs_reload[counter.index()] = period.wrapping_neg() & mask;
    }

    /// PEBS records written for a counter since the last call.
    pub fn take_pebs_records(&mut self, counter: CounterIndex) -> u32 {
        core::mem::take(&mut self.pebs_records[counter.index()])
    }

    /// A branch is taken.
    pub fn branch(&mut self, branch: Branch) {
        let frozen = self.status & global_status::LBR_FRZ != 0;
        let privilege = self.running_privilege();
        let enabled = self.records_branches() && !frozen;
        let records = self.records.as_mut().filter(|records| enabled && records.wants(privilege));
        if let Some(records) = records {
            records.record(branch);
        }
    }

    /// The CPU sleeps in a deep C-state, which zeroes branch records on many models.
    pub fn deep_sleep(&mut self) {
        let zeroes = self.model.lbr.is_some_and(|lbr| lbr.deep_c_reset);
        if let Some(records) = self.records.as_mut().filter(|_| zeroes) {
            records.zero();
        }
    }

    /// An event occurs up to `count` times, until an NMI can be taken; the result is how many are left.
    pub fn occur_until_nmi(&mut self, event: u16, mut count: u64) -> u64 {
        while count > 0 && (self.apic.in_nmi || !self.apic.nmi_pending) {
            let step = self.longest_step(event, count);
            count -= step;
            self.advance(event, step);
        }
        count
    }

    /// An event occurs `count` times.
    pub fn occur(&mut self, event: u16, mut count: u64) {
        while count > 0 {
            let step = self.longest_step(event, count);
            count -= step;
            self.advance(event, step);
        }
    }

    fn running_privilege(&self) -> Privilege {
        if self.apic.in_nmi { Privilege::Kernel } else { self.privilege }
    }

    fn records_branches(&self) -> bool {
        match self.model.lbr.map(|lbr| lbr.kind) {
            None => false,
            Some(LbrKind::Architectural) => {
                self.records.as_ref().is_some_and(|records| records.control & lbr_ctl::LBREN != 0)
            }
            Some(LbrKind::AmdV2) => {
                self.debug_extension & crate::bits::dbg_extn_cfg::LBR_V2_EN != 0
            }
            Some(_) => self.debug_control & debugctl::LBR != 0,
        }
    }

    /// Whether a counter is enabled for an event, freezing aside.
    fn is_enabled(&self, counter: CounterIndex, event: u16) -> bool {
        if self.model.has_global_control() && self.global_control & counter.bit() == 0 {
            return false;
        }
        let kernel = self.running_privilege() == Privilege::Kernel;
        match counter.as_fixed() {
            Some(number) => {
                let control = self.fixed_control >> (fixed_ctrl::BITS * u32::from(number));
                let counts = if kernel { fixed_ctrl::OS } else { fixed_ctrl::USR };
                control & counts != 0 && fixed_event(number) == Some(event)
            }
            None => {
                let select = self.selects[counter.index()];
                let counts = if kernel { evtsel::OS } else { evtsel::USR };
                select & evtsel::EN != 0
                    && select & counts != 0
                    && select & evtsel::EVENT_CODE == u64::from(event)
            }
        }
    }

    fn is_frozen(&self) -> bool {
        self.status & global_status::CTR_FRZ != 0
    }

    /// Events until something happens.
    fn longest_step(&self, event: u16, count: u64) -> u64 {
        let to_overflow = |counter: CounterIndex| {
            self.model.counter_mask(counter) - self.counters[counter.index()] + 1
        };
        let counting = self
            .model
            .counters()
            .iter()
            .filter(|counter| !self.is_frozen() && self.is_enabled(*counter, event));
        let overflows = counting.map(to_overflow);
        let raises = self.raises.iter().flatten().map(|left| u64::from(*left));
        overflows.chain(raises).fold(count, u64::min).max(1)
    }

    fn advance(&mut self, event: u16, step: u64) {
        if event == CYCLES {
            self.aperf = self.aperf.wrapping_add(step);
        }
        let frozen = self.is_frozen();
        let mut overflowed = 0;
        for counter in self.model.counters().iter() {
            if !self.is_enabled(counter, event) {
                continue;
            }
            let truth = &mut self.truth[counter.index()];
            match (self.apic.in_nmi, frozen) {
                (false, true) => truth.frozen_in_skid += step,
                (true, true) => truth.frozen_in_handler += step,
                (true, false) => truth.counted_in_handler += step,
                (false, false) => {}
            }
            truth.workload += if self.apic.in_nmi { 0 } else { step };
            if frozen {
                continue;
            }
            truth.counted += step;
            let mask = self.model.counter_mask(counter);
            let value = &mut self.counters[counter.index()];
            *value = (*value + step) & mask;
            if *value == 0 {
                overflowed |= counter.bit();
            }
        }
        self.skid(step);
        crate::counter::CounterMask::from_bits(overflowed)
            .iter()
            .for_each(|counter| self.overflow(counter));
    }

    fn skid(&mut self, step: u64) {
        for index in 0..COUNTERS_MAX {
            let Some(left) = self.raises[index] else { continue };
            let left = u64::from(left).saturating_sub(step) as u32;
            self.raises[index] = (left > 0).then_some(left);
            if left == 0 {
                self.apic.raise();
            }
        }
    }

    fn overflow(&mut self, counter: CounterIndex) {
        let index = counter.index();
        self.truth[index].overflows += 1;
        let interrupts = match counter.as_fixed() {
            Some(number) => {
                let control = self.fixed_control >> (fixed_ctrl::BITS * u32::from(number));
                control & fixed_ctrl::PMI != 0
            }
            None => self.selects[index] & evtsel::INT != 0,
        };
        let precise = self.pebs_enable & counter.bit() != 0;
        if precise {
            self.pebs_records[index] += 1;
            self.counters[index] = self.pebs_reload[index];
            self.status |= global_status::OVF_DS_BUFFER;
        } else if self.model.has_global_control() {
            self.status |= counter.bit();
        }
        if interrupts || precise {
            self.freeze();
            if self.parameters.skid == 0 {
                self.apic.raise();
            } else {
                self.raises[index] = Some(self.parameters.skid);
            }
        }
    }

    /// Counters that the hardware stops by itself: with version 4 by bits of the status, before for
    /// good.
    fn freeze(&mut self) {
        let freezes = |bit| self.debug_control & bit != 0;
        let intel = self.model.kind == PmuKind::Intel;
        let counters = intel && freezes(debugctl::FREEZE_PERFMON_ON_PMI);
        let branches = freezes(debugctl::FREEZE_LBRS_ON_PMI);
        if self.model.version >= 4 || !intel {
            self.status |= if counters { global_status::CTR_FRZ } else { 0 };
            self.status |= if branches { global_status::LBR_FRZ } else { 0 };
        } else {
            self.global_control &= if counters { 0 } else { u64::MAX };
            self.debug_control &= if branches { !debugctl::LBR } else { u64::MAX };
        }
    }
}

/// The event of a fixed counter.
const fn fixed_event(number: u8) -> Option<u16> {
    match number {
        0 => Some(0x00c0),
        1 => Some(CYCLES),
        2 => Some(0x0300),
        3 => Some(0x0400),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
