//! What the tests share: running programs, skipping aloud, reading what the tools print.

pub(crate) mod report;
pub(crate) mod script;
pub(crate) mod stats;
pub(crate) mod tools;

pub(crate) use whit_testing::{Skip, check};
