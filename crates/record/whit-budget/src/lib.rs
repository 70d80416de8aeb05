//! Keeps the cost of a recording below a share of the recorded CPU time.
//!
//! The [`Controller`] knows no clock, no event and no file. It takes what a recording cost since the last
//! [`Reading`], and gives the [`Settings`] to record with from then on.
//!
//! It predicts: the cost of every setting follows from the cost of a sample and of a context switch, and from how many
//! of both there are. So one reading is enough to go from everything to nearly nothing, and a way back that would
//! cost too much is not tried.
//!
//! ```
//! use std::time::Duration;
//! use whit_budget::{Controller, Levers, Reading, Waits};
//!
//! // One percent of two CPUs, where the samples alone cost four percent.
//! let levers = Levers { stretch_max: 64, waits: vec![Waits::None], stack_divisor_max: 1 };
//! let mut controller = Controller::new(0.01, levers);
//! let elapsed = Duration::from_millis(100);
//! let capacity_ns = 2e8;
//! let reading = Reading { elapsed, capacity_ns, samples_ns: 8e6, ..Reading::default() };
//! let settings = controller.step(&reading).unwrap();
//! assert_eq!(settings.stretch, 8);
//! ```
#![forbid(unsafe_code)]

mod controller;
mod estimate;
mod settings;

pub use controller::Controller;
pub use settings::{Cause, Levers, Reading, Settings, Waits};
