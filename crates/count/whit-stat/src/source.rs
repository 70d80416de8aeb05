//! The seam between counting and everything that is done with counts.
//!
//! A source has counters and, for each, slots: one for each CPU or thread that it is counted on. It
//! gives one [`Reading`] per slot, counted up from the moment it was started. Both lists may grow
//! while it counts (a cgroup is created). They never shrink or change order: an ended slot keeps
//! its last reading. The caller looks at their lengths again after each [`Source::read`].

use whit_types::{CpuId, Tid};

use crate::counter::Counter;
use crate::error::StatError;
use crate::note::Note;
use crate::notice::Notice;
use crate::reading::Reading;

/// Where a count is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index of its counter.
    pub counter: usize,
    /// The CPU; `None` where a thread is counted wherever it runs.
    pub cpu: Option<CpuId>,
    /// The thread, and its index among the threads that are counted; `None` for everything on a
    /// CPU.
    pub thread: Option<ThreadSlot>,
}

/// A thread that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSlot {
    /// Index in the list of threads.
    pub index: usize,
    /// Its id.
    pub tid: Tid,
}

/// Something that counts.
pub trait Source {
    /// The counters in the order of output. One that is absent says why, and may have slots all the
    /// same: their readings stay zero.
    fn counters(&self) -> &[Counter];

    /// Where, by counter or not.
    fn slots(&self) -> &[Slot];

    /// Begins to count, or goes on. Not called if the exec of the command switches the events on.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses for another reason than that the target is gone.
    fn start(&mut self) -> Result<(), StatError>;

    /// Counts no further.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses for another reason than that the target is gone.
    fn stop(&mut self) -> Result<(), StatError>;

    /// Reads all slots: `readings` has as many entries as there are slots afterwards, in their
    /// order. A slot that has ended (a thread, a CPU that went offline, a removed cgroup) keeps its
    /// last reading.
    ///
    /// # Errors
    ///
    /// Where a count cannot be had although its target is there.
    fn read(&mut self, readings: &mut Vec<Reading>) -> Result<(), StatError>;

    /// Messages about the readings, since the last call.
    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// Remarks on how the counts were taken, for their reader.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}
