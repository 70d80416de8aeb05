//! Branch records (LBR): reading them, and what becomes of them when a CPU changes its task.

mod model;
mod registers;

pub use model::{DEPTH_MAX, LbrKind, LbrModel};
pub use registers::{BranchFilter, BranchRecord, BranchStack, LbrRegisters, SavedRecords};
