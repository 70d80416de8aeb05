//! A frame of a call chain, with its names.

use whit_types::{Avma, OutsideText};

/// A frame of a sample: one physical function, or one that was inlined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScriptedFrame<'a> {
    /// The address in the process, as recorded or unwound.
    pub address: Avma,
    /// Function, where known.
    pub function: Option<OutsideText<&'a str>>,
    /// Distance from the function's start; zero for inlined functions.
    pub function_offset: u64,
    /// Path of the binary; `None` where no mapping explains the address.
    pub dso: Option<OutsideText<&'a str>>,
    /// Source file and line.
    pub source: Option<(OutsideText<&'a str>, u32)>,
    /// True where the function was inlined into that of the next frame.
    pub inlined: bool,
}
