//! Single samples as text, as `perf script` prints them.
//!
//! A caller resolves each sample into a [`ScriptSample`] that borrows its strings, and
//! [`append_sample`] adds its text to a buffer. Nothing is allocated per sample, so threads can
//! each format a part of a recording into a buffer of their own.

mod branches;
mod fields;
mod instructions;
mod records;
mod registers;
mod sample;
mod text;
mod write;

pub use fields::{EventKind, EventTraits, FieldError, FieldSpec, Fields};
pub use records::append_record;
pub use sample::{CodeAt, CodeBytes, ScriptFrame, ScriptSample, TraceRecord};
pub use write::{Layout, LineStart, append_frame, append_line_start, append_sample, write_sample};
