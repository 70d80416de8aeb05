//! The text of the records of Linux tracepoints: `print fmt`, compiled once per event.
//!
//! [`TraceEvent::parse`] reads a tracepoint's `format` file of tracefs. A kernel describes each
//! tracepoint's text by a format string and C expressions over the record's fields.
//! [`TraceFormat::new`] compiles them; [`TraceFormat::append`] then prints a record without
//! allocating. Fields whose format only the kernel could evaluate are printed one by one behind
//! `[FAILED TO PARSE]`, as perf does.
//!
//! ```
//! use whit_print_format::{TraceContext, TraceEvent, TraceFormat};
//!
//! let format = "name: demo\nID: 7\nformat:\n\
//!     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
//!     \tfield:int cpu;\toffset:4;\tsize:4;\tsigned:1;\n\n\
//!     print fmt: \"on CPU %d\", REC->cpu\n";
//! let event = TraceEvent::parse("test", format, 8)?;
//! let text = TraceFormat::new(&event, 8);
//!
//! let mut out = Vec::new();
//! let context = TraceContext { strings: &(), function_at: &|_| None };
//! text.append(&[7, 0, 0, 0, 3, 0, 0, 0], &context, &mut out);
//! assert_eq!(out, b"on CPU 3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller keeps a [`TraceFormat`] for each event: compiling takes far longer than printing.
//!
//! It accepts the macros of `TRACE_EVENT`, and C's operators and casts. Source: the kernel's
//! `include/trace/stages/`; libtraceevent's `event-parse.c` for how perf reads them.
//!
//! Invariants: no `unsafe`, no panic on any format and any record; this crate knows neither recordings nor
//! symbols.
#![forbid(unsafe_code)]

mod address;
mod conversion;
mod ctype;
mod directive;
mod error;
mod fields;
mod format_file;
mod lexer;
mod number;
mod span;
mod syntax;
#[cfg(test)]
mod tests;
mod text;

pub use error::TraceFormatError;
pub use format_file::{EventFormatError, FieldLocation, TraceEvent, TraceField};

use directive::Step;
use fields::FieldText;
use std::fmt;
use std::sync::Arc;

/// perf prints this before the fields of an event whose format it cannot evaluate.
const FAILED: &[u8] = b"[FAILED TO PARSE]";

/// A tracepoint's text, compiled.
#[derive(Clone, Debug)]
pub struct TraceFormat {
    program: Program,
}

#[derive(Clone, Debug)]
enum Program {
    /// As the event's format says.
    Steps(Box<[Step]>),
    /// The format cannot be evaluated.
    Failed(Unevaluated),
    /// Each field, whatever the format says.
    Fields(Box<[FieldText]>),
}

#[derive(Clone, Debug)]
struct Unevaluated {
    fields: Box<[FieldText]>,
    error: TraceFormatError,
}

/// Data outside the record that a tracepoint's text refers to.
#[derive(Clone, Copy)]
pub struct TraceContext<'a> {
    /// The kernel's strings.
    pub strings: &'a dyn KernelStrings,
    /// Name of the kernel function at an address, and the distance from its start.
    pub function_at: &'a dyn Fn(u64) -> Option<(Arc<str>, u64)>,
}

/// Strings that records refer to by their address in the kernel.
pub trait KernelStrings {
    /// The string at an address.
    fn string_at(&self, address: u64) -> Option<&str>;
}

/// No string is known.
impl KernelStrings for () {
    fn string_at(&self, _address: u64) -> Option<&str> {
        None
    }
}

impl fmt::Debug for TraceContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceContext").finish_non_exhaustive()
    }
}

impl TraceFormat {
    /// Compiles an event's `print fmt`; `long_size_bytes` is that of the recorded kernel.
    pub fn new(event: &TraceEvent, long_size_bytes: u8) -> TraceFormat {
        let long_bits = if long_size_bytes == 4 { 32 } else { 64 };
        let program = syntax::parse(event, long_bits)
            .and_then(|(format, arguments)| directive::compile(&format, &arguments, long_bits))
            .map(Vec::into_boxed_slice);
        let program = program.map_or_else(
            |error| Program::Failed(Unevaluated { fields: FieldText::of_event(event), error }),
            Program::Steps,
        );
        TraceFormat { program }
    }

    /// Prints the fields one by one, as perf does with `--raw-trace`.
    pub fn of_fields(event: &TraceEvent) -> TraceFormat {
        TraceFormat { program: Program::Fields(FieldText::of_event(event)) }
    }

    /// Why the fields are printed one by one instead.
    pub fn error(&self) -> Option<&TraceFormatError> {
        match &self.program {
            Program::Failed(unevaluated) => Some(&unevaluated.error),
            Program::Steps(_) | Program::Fields(_) => None,
        }
    }

    /// Appends the text of a record: the raw bytes of a sample.
    pub fn append(&self, raw: &[u8], context: &TraceContext<'_>, out: &mut Vec<u8>) {
        match &self.program {
            Program::Steps(steps) => steps.iter().for_each(|step| step.append(raw, context, out)),
            Program::Failed(unevaluated) => {
                out.extend_from_slice(FAILED);
                unevaluated.fields.iter().for_each(|field| field.append(raw, out));
            }
            Program::Fields(fields) => fields.iter().for_each(|field| field.append(raw, out)),
        }
    }
}
