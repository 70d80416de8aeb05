//! Profiles of windows of time, pushed to receivers: OTLP (Alpha), Pyroscope, Parca (`docs/push.md`).
//!
//! Each destination has a spool on disk and a thread. A window is written into every spool, and leaves it when its
//! receiver has taken it. So a receiver that is slow, broken or away holds up no other one, and a window outlives the
//! process.
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use whit_export::{Content, Delivery};
//! use whit_push::{Kind, Pusher, Settings};
//!
//! # fn window() -> (whit_perfdata::reader::Recording, whit_profile::model::Profile) { unimplemented!() }
//! let settings = Settings::new(Kind::Otlp, "http://127.0.0.1:4318");
//! let destinations = BTreeMap::from([("collector".to_owned(), settings)]);
//! let pusher = Pusher::start(&destinations, "/var/lib/whit/spool".as_ref())?;
//! let (recording, profile) = window();
//! let delivery = Delivery { start_unix_ns: 1_700_000_000_000_000_000, duration_ns: 30_000_000_000, ..Delivery::default() };
//! pusher.accept(&Content::new(&recording, &profile, None), &delivery);
//! println!("{} windows were sent", pusher.status()[0].sent.windows);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - Every window that was accepted is sent, waits, or is counted under the bound or the answer that ended it
//!   ([`Dropped`]).
//! - A window that a receiver may have taken is sent again rather than lost: receivers see it at least once.
//! - A file of a spool has its name only when it is whole.
//! - No name or text of a header is in a status, a message or a file of a spool.
#![forbid(unsafe_code)]

mod answer;
mod backoff;
mod client;
mod parcel;
mod protocol;
mod pusher;
mod sender;
mod settings;
mod spool;
mod status;

pub use client::ClientError;
pub use pusher::{Pusher, StartError, StartReason, check};
pub use settings::{Kind, SampleLabel, Secret, Settings, SettingsError, SpoolSettings, Tls};
pub use spool::SpoolError;
pub use status::{Amount, Dropped, State, Status};
