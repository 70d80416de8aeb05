//! Wall time: CPU time, waits and run queue of threads in one call tree; as text and JSON.
//!
//! For each thread the parts add up to the time in which it existed. Time that a loss touches, and time that no
//! record covers, is *unknown*, and never spread over the others.

mod json;
mod text;
mod threads;

#[cfg(test)]
mod tests;

pub use json::{VERSION as JSON_VERSION, write_json};
pub use text::write_text;
pub use threads::{ThreadWall, WallTable, WallTimes};
