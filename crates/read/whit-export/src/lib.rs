//! Profiles in the formats of other tools: pprof, Firefox Profiler, Perfetto, speedscope, OTLP, folded stacks.
//!
//! [`Content`] is the one view of a recording that all writers share: rows, samples in order of time, code
//! locations with their inlined functions, units of events, time of day, and [notes](Content::notes) on
//! everything that is missing. Each format has a writer in a file of its own.
//!
//! ```
//! use std::path::Path;
//! use whit_export::{Content, Format, write};
//! use whit_perfdata::reader::Recording;
//! use whit_profile::{ReadOptions, Reading, Samples};
//! use whit_symbolize::{DebugDirs, SymbolizerConfig};
//!
//! let golden = Path::new("../../../tests/recordings/golden");
//! let recording = Recording::open(&golden.join("perf-fp/recording.data"))?;
//! let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
//! let options = ReadOptions::new(2, SymbolizerConfig::new(dirs));
//! let profile = Reading::open(&recording, &options).answer(Samples::default())?;
//!
//! let mut stacks = Vec::new();
//! write(Format::Folded, &Content::new(&recording, &profile, None), &mut stacks)?;
//! let stacks = String::from_utf8(stacks)?;
//! let periods = stacks.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
//! assert_eq!(periods.sum::<u64>(), profile.events[0].period);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - The sum of each function in a written file is that of `whit report`.
//! - Losses, the cost of recording and the ends of unwinding are in each file whose format has a place for them.
//! - Writers open no file and print nothing. Memory grows with the profile, not with the written bytes.
//! - The recorder does not depend on this crate.
#![forbid(unsafe_code)]

mod content;
mod delivery;
mod firefox;
mod folded;
mod format;
mod notes;
mod otlp;
mod parts;
mod perfetto;
mod pprof;
pub mod proto;
mod request;
mod speedscope;
#[cfg(test)]
mod test_support;

pub use content::Content;
pub use delivery::{Delivery, SampleLabels};
pub use firefox::debug_id;
pub use format::Format;
pub use notes::Note;
pub use request::{Request, Requests};

use perfetto::SampleForm;
use std::io::Write;

/// Why a profile could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output took no more.
    #[error(transparent)]
    Write(#[from] std::io::Error),
    /// The output took no more, or a value has no form in JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Writes a profile.
///
/// # Errors
/// The error of `out`.
pub fn write(
    format: Format,
    content: &Content<'_>,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    match format {
        Format::Pprof => pprof::write(content, None, out)?,
        Format::Firefox => firefox::write(content, out)?,
        Format::Perfetto => perfetto::write(content, SampleForm::Stack, out)?,
        Format::PerfettoV57 => perfetto::write(content, SampleForm::Perf, out)?,
        Format::Speedscope => speedscope::write(content, out)?,
        Format::Otlp => otlp::write(content, None, out)?,
        Format::Folded => folded::write(content, out)?,
    }
    Ok(())
}

/// Writes a window as OTLP (Alpha), for a receiver that keeps many: `ExportProfilesServiceRequest`.
///
/// # Errors
/// The error of `out`.
pub fn write_otlp_window(
    content: &Content<'_>,
    delivery: &Delivery,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    Ok(otlp::write(content, Some(delivery), out)?)
}

/// Writes a window as pprof in gzip, for a receiver that keeps many.
///
/// # Errors
/// The error of `out`.
pub fn write_pprof_window(
    content: &Content<'_>,
    delivery: &Delivery,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    Ok(pprof::write(content, Some(delivery), out)?)
}
