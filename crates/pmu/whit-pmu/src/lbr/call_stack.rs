//! Call stacks that the hardware keeps, over context switches.
//!
//! In call-stack mode a return takes the record of its call away, so records are not history that
//! anybody else's branches replace: they are saved with their task. To restore them is not needed where
//! they are still in the registers: nobody recorded or reset since they were saved on this CPU, the task
//! has not been saved elsewhere since, and no sleep has zeroed them.

use super::{LbrRegisters, MmId, SavedRecords};
use crate::bus::PmuBus;

/// A task's call stack while it does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskRecords {
    /// A number that no other task has or will have.
    id: u64,
    /// Counts saves, so that an older save cannot be taken for the last one.
    log_id: u64,
    saved: Option<Saved>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Saved {
    records: SavedRecords,
    cpu: u32,
    mm: MmId,
}

/// The save that a CPU's registers still are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LastSaved(Option<(u64, u64)>);

impl LastSaved {
    pub(super) const NONE: LastSaved = LastSaved(None);
}

/// Outcome of a call stack at its task's switch-in.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum CallStackSwitch {
    /// It was still in the registers.
    Skipped,
    /// It was written back.
    Restored,
    /// There is none of this address space.
    Nothing,
}

impl TaskRecords {
    /// A task without a call stack. `id` must be one that no other task has or will have: addresses of
    /// data structures come again.
    #[must_use]
    pub const fn new(id: u64) -> TaskRecords {
        TaskRecords { id, log_id: 0, saved: None }
    }

    /// Forgets the call stack, as a fork, an exec or the end of the task's event does.
    pub fn forget(&mut self) {
        self.saved = None;
    }

    pub(super) fn save(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        registers: &LbrRegisters,
        cpu: u32,
        mm: MmId,
    ) -> LastSaved {
        self.log_id += 1;
        self.saved = Some(Saved { records: registers.save(bus), cpu, mm });
        LastSaved(Some((self.id, self.log_id)))
    }

    pub(super) fn switch_in(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        registers: &LbrRegisters,
        cpu: u32,
        mm: MmId,
        last: LastSaved,
    ) -> CallStackSwitch {
        let Some(saved) = self.saved.take() else { return CallStackSwitch::Nothing };
        if saved.mm != mm {
            return CallStackSwitch::Nothing;
        }
        let is_last = saved.cpu == cpu && last == LastSaved(Some((self.id, self.log_id)));
        if is_last && !registers.is_zeroed(bus, &saved.records) {
            return CallStackSwitch::Skipped;
        }
        registers.restore(bus, &saved.records);
        CallStackSwitch::Restored
    }
}

#[cfg(test)]
mod tests;
