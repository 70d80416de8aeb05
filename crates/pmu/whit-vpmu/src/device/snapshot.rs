//! The device as a value, for snapshots and migration.

mod format;

use core::fmt;

use alloc::vec::Vec;

use super::Vpmu;
use crate::config::VpmuConfig;
use crate::interrupt::Interrupt;
use crate::model::PmuModel;
use crate::source::CounterSource;

pub use format::SnapshotError;

/// The device as a value. Host events are no part of it: a restored device opens its own. LVTPC is the
/// interrupt controller's.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct VpmuState {
    /// The PMU that the guest sees.
    pub model: PmuModel,
    /// Values of all counters, general-purpose ones first.
    pub counters: Vec<u64>,
    /// Event selects of the general-purpose counters.
    pub selects: Vec<u64>,
    /// IA32_FIXED_CTR_CTRL.
    pub fixed_control: u64,
    /// IA32_PERF_GLOBAL_CTRL.
    pub global_control: u64,
    /// IA32_PERF_GLOBAL_STATUS.
    pub global_status: u64,
    /// An interrupt was due.
    pub pmi_due: bool,
}

/// Why a state cannot be restored.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StateError {
    /// It is of another PMU than the one that is configured. A guest cannot change over.
    OtherModel,
    /// It is of no PMU that there is.
    NoSuchModel,
    /// It does not have as many counters or event selects as its PMU.
    Length,
    /// A register has bits that no guest can have written.
    ReservedBits,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StateError::OtherModel => {
                "the state is of another PMU: configure the one that the guest was started with"
            }
            StateError::NoSuchModel => "the state is of a PMU that there is not",
            StateError::Length => "the state has more or fewer counters than its PMU",
            StateError::ReservedBits => "the state has register bits that cannot be set",
        })
    }
}

impl core::error::Error for StateError {}

impl<S: CounterSource, I: Interrupt> Vpmu<S, I> {
    /// The device as a value. Counters run on.
    pub fn state(&mut self) -> VpmuState {
        for slot in 0..self.counters.len() {
            self.fold(slot);
        }
        let general = &self.counters[..usize::from(self.config.model.general)];
        VpmuState {
            model: self.config.model,
            counters: self.counters.iter().map(|counter| counter.value).collect(),
            selects: general.iter().map(|counter| counter.select).collect(),
            fixed_control: self.fixed_control,
            global_control: self.global_control,
            global_status: self.global_status,
            pmi_due: self.pmi_due,
        }
    }

    /// A device in a state that was saved. Counters count from the first [`Vpmu::on_vcpu_enter`] on.
    ///
    /// # Errors
    /// Where the state is not one of this PMU.
    pub fn from_state(
        config: VpmuConfig,
        source: S,
        interrupt: I,
        state: &VpmuState,
    ) -> Result<Vpmu<S, I>, StateError> {
        state.check(&config.model)?;
        let mut vpmu = Vpmu::new(config, source, interrupt);
        let selects = state.selects.iter().enumerate();
        selects.for_each(|(slot, select)| vpmu.write_select(slot, *select));
        vpmu.write_fixed_control(state.fixed_control);
        for (counter, value) in vpmu.counters.iter_mut().zip(&state.counters) {
            counter.value = *value;
        }
        vpmu.global_control = state.global_control;
        vpmu.global_status = state.global_status;
        vpmu.pmi_due = state.pmi_due;
        (0..vpmu.counters.len()).for_each(|slot| vpmu.pending.insert(slot));
        Ok(vpmu)
    }
}

impl VpmuState {
    /// Whether a guest with this PMU can have come into the self.
    pub(crate) fn check(&self, model: &PmuModel) -> Result<(), StateError> {
        if !self.model.is_valid() {
            return Err(StateError::NoSuchModel);
        }
        if self.model != *model {
            return Err(StateError::OtherModel);
        }
        if self.counters.len() != model.slots() || self.selects.len() != usize::from(model.general)
        {
            return Err(StateError::Length);
        }
        let controls = if model.has_global_control() { model.counter_bits() } else { 0 };
        let statuses = if model.has_global_control() { model.status_bits() } else { 0 };
        let sound = self.counters.iter().all(|value| value & !model.counter_mask() == 0)
            && self.selects.iter().all(|select| model.event_select(*select) == Some(*select))
            && self.global_control & !controls == 0
            && self.fixed_control & !model.fixed_control_bits() == 0
            && self.global_status & !statuses == 0;
        if sound { Ok(()) } else { Err(StateError::ReservedBits) }
    }
}
