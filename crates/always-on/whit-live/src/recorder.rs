//! A recorder as a child: a process of its own, whose stream goes into a window of the last while.
//!
//! `whit top` and `whit watch` show and keep what a `whit record -o -` writes. The recorder alone needs privileges, and
//! ends where nobody reads its stream any more.
//!
//! Invariants:
//! - A recorder never outlives its [`Recorder`].
//! - Nobody waits for the recorder while a stream is locked.
//!
//! ```
//! use std::process::Command;
//! use std::time::{Duration, Instant};
//! use whit_live::Bounds;
//! use whit_live::recorder::{LiveStream, Parts, Recorder};
//!
//! let bounds = Bounds { keep_ns: 10_000_000_000, bytes_max: 64 << 20 };
//! let parts = Parts {
//!     stream: LiveStream::new(bounds, Instant::now()),
//!     changed: Box::new(|| ()),
//!     obeys: false,
//!     said: Box::new(|line| eprintln!("the recorder says: {line}")),
//!     is_hurried: false,
//!     end_timeout: Duration::from_secs(5),
//! };
//! // In the place of `whit record -a -o -`.
//! let mut command = Command::new("sh");
//! command.args(["-c", "echo no event can be opened >&2; exit 1"]);
//! let mut recorder = Recorder::start(command, parts)?;
//! while recorder.exit().is_none() {
//!     std::thread::sleep(Duration::from_millis(1));
//! }
//! let ended = recorder.end();
//! assert_eq!((ended.code, ended.messages.as_str()), (Some(1), "no event can be opened"));
//! # Ok::<(), std::io::Error>(())
//! ```
mod child;
mod messages;
mod stream;
#[cfg(test)]
mod tests;

pub use child::{Ended, Parts, Recorder};
pub use stream::LiveStream;
