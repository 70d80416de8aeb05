//! Moments of trouble: the reasons to keep the last seconds of a recording.
//!
//! [`start`] watches for the [`Rule`]s of the [`Settings`] on a thread of its own, and sends a [`Trigger`] for each
//! event. Events are stalls of the machine or of a cgroup (PSI), throttled cgroups, slow requests that an application
//! reports over a socket or the recording has, a signal, and the end of a process. The [`Limiter`] says which triggers a dump may follow.
//!
//! ```
//! use whit_host::roots::Roots;
//! use whit_trigger::{Rule, Settings};
//!
//! let rule: Rule = "psi:memory:full:10%/2s@web.slice".parse()?;
//! let settings = Settings { on: vec![rule, "signal".parse()?], ..Settings::default() };
//! settings.validate()?;
//! let (triggers, receiver) = whit_trigger::start(&settings, Roots::default())?;
//! assert!(receiver.try_recv().is_err(), "nothing has happened");
//! assert_eq!(triggers.status().rules.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - One thread waits for all rules. It wakes up by itself only for rules that are polled, and says which those are.
//! - The channel is bounded: a trigger that finds it full is counted, and never waits.
//! - A cgroup that does not exist is waited for; one that is removed and made anew is watched again.
#![forbid(unsafe_code)]

mod cgroup;
mod channel;
mod limiter;
mod meter;
mod parse;
mod pressure;
mod rule;
mod settings;
mod sliding;
mod socket;
mod throttle;
mod trigger;
mod watched;
mod watcher;

pub use limiter::{Limiter, Suppressed, SuppressedCounts};
pub use rule::{Pressure, Rule, RuleError, Throttle};
pub use settings::{Settings, SettingsError};
pub use trigger::{Kind, Trigger};
pub use watched::State;
pub use watcher::{RecordedRequest, RuleStatus, StartError, Status, Triggers, start};
