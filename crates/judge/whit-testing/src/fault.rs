//! Faults on order: a file that fails as disks do, and a ring that a test writes as the kernel would.
//!
//! Neither knows whit. A test connects the file with the stream under test, and maps the ring as that of an event.

mod file;
mod ring;

pub use file::{Faults, FaultyFile};
pub use ring::FakeRing;
