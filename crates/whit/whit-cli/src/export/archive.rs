//! `whit export --archive`: the recording as one file that carries the names of its frames.

use super::ExportArgs;
use super::chains::keep_time;
use super::destination::folder_of;
use super::perf::{say_written, whole_file, with_advice};
use crate::message;
use crate::own_names::{Extent, write_with_names};
use crate::progress::during;
use anyhow::Result;
use std::path::Path;
use whit_perfdata::reader::Recording;
use whit_view::warning::warning_text;

/// Writes the recording.
pub(super) fn run(args: &ExportArgs, recording: &Recording, output: &Path) -> Result<u8> {
    let options = args.load.symbols.options(recording)?;
    let written = during("writing", false, |update| {
        whole_file(output, folder_of(output), |data| {
            write_with_names(recording, &options, Extent::All, data, update)
        })
    });
    let written = written.map_err(|error| with_advice(output, error))?;
    keep_time(recording, output);
    written.records.warnings.iter().map(warning_text).for_each(message::error);
    message::note(format_args!(
        "the names of frames take {} KiB",
        written.names_bytes.div_ceil(1 << 10)
    ));
    say_written(written.records.records, written.records.bytes, output)
}
