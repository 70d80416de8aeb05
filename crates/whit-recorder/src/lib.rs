//! A recorder as a child: a process of its own, whose stream goes into a window of the last while.
//!
//! `whit top` and `whit watch` show and keep what a `whit record -o -` writes. The recorder alone needs privileges, and
//! ends where nobody reads its stream any more.
//!
//! Invariants:
//! - A recorder never outlives its [`Recorder`].
//! - Nobody waits for the recorder while a stream is locked.
#![forbid(unsafe_code)]

mod child;
mod messages;
mod stream;
#[cfg(test)]
mod tests;

pub use child::{Ended, Parts, Recorder};
pub use stream::LiveStream;
