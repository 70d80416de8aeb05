//! Lets the members of a group profile without being root: gives the whit program a group, a mode
//! and file capabilities (`docs/privileges.md`).
//!
//! [`Program::inspect`] looks at the file and at what would make the grant fail or be unsafe,
//! [`Plan`] says what is to be done as commands, and [`grant`] and [`undo`] do it.
//!
//! # Invariants
//!
//! - Everything is done through one descriptor of the file that was inspected, never through its
//!   name again.
//! - Capabilities are given last, when owner and mode are as they must be, and are read back. A
//!   failure leaves owner and mode as they were, and no capabilities.
//! - No program is run but `groupadd`, by its full path and with an empty environment.
//! - What whit itself does with the capabilities is the policy of [`whit_sys::privilege`], not of
//!   this crate.
#![forbid(unsafe_code)]

mod apply;
mod error;
mod group;
mod obstacle;
mod path_check;
mod plan;
mod program;
mod system;

pub use apply::{Done, Undone, grant, undo};
pub use error::SetupError;
pub use group::{Group, GroupState};
pub use obstacle::Obstacle;
pub use plan::{Plan, join_command, shell_word};
pub use program::Program;
pub use system::System;
