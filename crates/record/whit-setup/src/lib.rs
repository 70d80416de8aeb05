//! Lets the members of a group profile without being root: gives the whit program a group, a mode
//! and file capabilities (`docs/privileges.md`).
//!
//! [`Program::inspect`] looks at the file and for reasons why the grant would fail or be unsafe,
//! [`Plan`] lists the steps as commands, and [`grant`] and [`undo`] do them.
//!
//! ```
//! use std::path::Path;
//! use whit_setup::{Group, GroupState, Plan};
//! use whit_sys::capability::{Capability, CapabilitySet};
//!
//! let group = Group::parse("perfusers")?;
//! let capabilities = CapabilitySet(1 << Capability::PerfMon as u64);
//! let program = Path::new("/usr/local/bin/whit");
//! let plan = Plan::to_grant(&group, GroupState::Missing, program, capabilities);
//! assert_eq!(plan.commands.last().unwrap(), "setcap cap_perfmon+ep /usr/local/bin/whit");
//! // A name that another program could take for an option is none.
//! assert!(Group::parse("-g").is_err());
//! # Ok::<(), whit_setup::SetupError>(())
//! ```
//!
//! The caller shows the plan and the obstacles of [`Program::inspect`], and asks before it grants.
//!
//! # Invariants
//!
//! - Everything is done through one descriptor of the file that was inspected, never through its
//!   name again.
//! - Capabilities are given last, when owner and mode are as they must be, and are read back. A
//!   failure leaves owner and mode as they were, and no capabilities.
//! - No program is run but `groupadd`, by its full path and with an empty environment.
//! - The use of the capabilities is the policy of `whit_host::borrowing`, not of this crate.
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
