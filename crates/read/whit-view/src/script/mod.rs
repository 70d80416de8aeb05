//! Single samples as text, as `perf script` prints them.
//!
//! [`SampleText`] is the format that [`whit_profile::script::Script`] asks for: [`append_sample`] adds the text of a
//! sample to a buffer. Nothing is allocated per sample, so threads can each format a part of a recording into a buffer
//! of their own.

mod branches;
mod choice;
mod fields;
mod instructions;
mod records;
mod registers;
mod sample_text;
mod text;
mod write;

pub use choice::{Addresses, Choice};
pub use fields::{EventKind, EventTraits, FieldError, FieldSpec, Fields};
pub use sample_text::{InstructionsError, SampleText};
pub use write::{Layout, SampleContext, append_frame, append_sample};
