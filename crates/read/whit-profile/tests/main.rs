//! All tests of `whit-profile` from outside, in one executable: each one more takes seconds to link.

mod compressed;
mod dumps;
mod golden;
mod leaves;
mod off_cpu;
mod questions;
mod support;
