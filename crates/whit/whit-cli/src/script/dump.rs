//! `whit script --per-event-dump`: a file for the samples of each event.

use super::{ScriptArgs, text_of};
use crate::failure::bail_usage;
use crate::message;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use whit_perfdata::reader::Recording;
use whit_profile::Reading;
use whit_profile::script::Script;
use whit_types::OutsideText;
use whit_view::script::FieldSpec;
use whit_view::warning::warning_text;

/// Writes the files, and says which.
pub(super) fn print(args: &ScriptArgs, recording: &Recording, specs: &[FieldSpec]) -> Result<u8> {
    let mut text = text_of(args, recording, specs)?;
    if !text.records.is_empty() {
        bail_usage!(
            "--per-event-dump has samples alone: leave out the options that show other records"
        );
    }
    let options = args.load.options(recording)?;
    let mut out = args.terminal.output();
    let mut warnings = Vec::new();
    for (event, described) in recording.events.iter().enumerate() {
        text.choice.event = Some(event);
        let path = path_of(recording, &described.name);
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut file = BufWriter::new(file);
        let script = Script { format: &text, out: &mut file };
        let summary = Reading::open(recording, &options).answer(script)?;
        let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let size =
            file.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
        let name = OutsideText::new(path.display().to_string());
        let megabytes = size as f64 / (1u64 << 20) as f64;
        writeln!(
            out,
            "[ whit script: Wrote {megabytes:.3} MB {name} ({} samples) ]",
            summary.samples
        )?;
        warnings = summary.warnings;
    }
    out.flush()?;
    warnings.iter().map(warning_text).for_each(message::error);
    Ok(0)
}

/// Beside the recording. An event's name may have any characters, but leads to no other folder.
fn path_of(recording: &Recording, event: &str) -> PathBuf {
    let mut path = recording.path.clone().into_os_string();
    let name = OutsideText::new(event).escaped().replace('/', "_");
    path.push(format!(".{name}.dump"));
    path.into()
}
