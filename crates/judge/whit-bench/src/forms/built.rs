//! Compiled programs.

use std::ops::Range;
use std::path::PathBuf;

use super::kinds::Compiler;
use super::programs::Worker;

/// The addresses of the loop of each function that takes time.
pub(super) type Places = Vec<(Worker, Range<u64>)>;

/// A program with the places of its loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Built {
    pub(super) compiler: Compiler,
    pub(super) program: PathBuf,
    /// As stated in the file.
    pub(super) places: Places,
    /// How much larger stated addresses of code are than its offsets in the file.
    pub(super) file_bias: u64,
    /// The first stated address.
    pub(super) image_base: u64,
}
