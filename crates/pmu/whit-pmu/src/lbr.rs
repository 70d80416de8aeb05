//! Branch records (LBR): reading them, and keeping them apart when a CPU changes its task.
//!
//! [`LbrContext`] is what an operating system's scheduler calls; [`policy`] is how it decides. Its
//! invariants, with the default policy [`OwnerTag`]:
//!
//! 1. No record captured under one address space is visible in a sample of another.
//! 2. Context switches reset at most as often as the classic rule does, which is each time.
//! 3. Where restoring a call stack is skipped, the registers are bit for bit as they were saved.
//! 4. Address spaces have unique numbers that never come again ([`MmIds`]).
//! 5. A reader's privilege filter holds for every record that survived.
//!
//! `explore` (feature `sim`) tries every sequence of events on a small machine.

mod call_stack;
mod context;
#[cfg(feature = "sim")]
pub mod explore;
mod mm;
mod model;
pub mod policy;
mod registers;

pub use call_stack::{CallStackSwitch, TaskRecords};
pub use context::{LbrContext, LbrStatistics};
pub use mm::{MmId, MmIds};
pub use model::{DEPTH_MAX, LbrKind, LbrModel};
pub use policy::{
    Action, FlushAlways, LastOwnerRule, LbrEvent, LbrPolicy, OwnerTag, Running, View,
};
pub use registers::{BranchFilter, BranchRecord, BranchStack, LbrRegisters, SavedRecords};
