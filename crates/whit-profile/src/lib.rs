//! From a recording to a profile: process model over time, sample streams, call trees, losses.
#![forbid(unsafe_code)]

pub mod model;
