//! Branch records (LBR): reading them, and what becomes of them when a CPU changes its task.

mod model;

pub use model::{DEPTH_MAX, LbrKind, LbrModel};
