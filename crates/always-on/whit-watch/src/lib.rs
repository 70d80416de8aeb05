//! `whit watch`: the recorder that runs all week.
//!
//! A recorder (`whit record -o -`) runs as a child. Its stream goes into a [`whit_live::Window`]. At each multiple of
//! `window`, the records of this time become a [`Window`]: a recording in memory, which [`sinks`] take. [`triggers`] keep
//! the last seconds when something happens.
//!
//! ```
//! use whit_watch::{Settings, Source};
//!
//! let options = vec![("window".to_owned(), "10s".to_owned())];
//! let settings = Source { options, ..Source::default() }.load()?;
//! assert_eq!(settings.window.0.as_secs(), 10);
//! assert!(Settings::keys().iter().any(|key| key.name == "keep-age"));
//! # Ok::<(), whit_watch::ConfigError>(())
//! ```
//!
//! Invariants:
//! - Each record is in one window, or counted as lost: by the bound that took it, or as time without a recorder.
//! - Everything is bounded, and each bound has a name and a counter: records of a window, windows that wait, files,
//!   lines of the log.
//! - The end of the recorder, a full disk, a slow sink or a wrong configuration ends nothing: they are said once, counted,
//!   and the service goes on.
//! - The lengths of windows are those of the monotonic clock; the clock of the machine only names them.
#![forbid(unsafe_code)]

mod cli;
mod clients;
pub mod clock;
mod completion;
mod config;
mod cost;
pub mod counters;
mod dataset_folder;
pub mod described;
mod flight;
mod folder;
mod log;
mod maker;
mod notify;
pub mod recorder;
mod retention;
pub mod server;
pub mod service;
mod settings;
mod shared;
pub mod sinks;
mod status;
mod store;
pub mod triggers;
mod window;

pub use cli::{command, main};
pub use config::{ConfigError, Source, keys_in_markdown};
pub use cost::Cost;
pub use log::Log;
pub use notify::Notify;
pub use settings::{Settings, WrongValue};
pub use shared::{Parts, Shared};
pub use status::Status;
pub use window::{HeldBytes, Window};
