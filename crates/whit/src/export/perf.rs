//! `whit export --perf`: the recording itself, written for other readers of perf.data.

use super::destination::{beside, way_out};
use crate::failure::bail_usage;
use crate::message;
use crate::output;
use crate::progress::LoadProgress;
use anyhow::Result;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tempfile::{NamedTempFile, TempDir};
use whit_perfdata::existing::remove_recording;
use whit_perfdata::export::{self, Exported};
use whit_perfdata::reader::{Form, Recording};

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// A recording is completed at its beginning.
pub(super) fn refuse_pipe(output: &Path) -> Result<()> {
    if output == Path::new("-") {
        bail_usage!(
            "a recording is completed at its beginning, which a pipe does not allow: name a file"
        );
    }
    Ok(())
}

/// Writes the recording.
pub(super) fn run(recording: &Recording, output: &Path) -> Result<u8> {
    let beside = beside(output);
    let progress = LoadProgress::new("writing", false);
    let total = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    let mut done = 0;
    let mut advance = |bytes: u64| {
        done += bytes;
        progress.update(done, total);
    };
    let written = match recording.form {
        Form::Directory => directory(recording, output, beside, &mut advance),
        Form::File | Form::Pipe => file(recording, output, beside, &mut advance),
    };
    progress.finish();
    let written = written.map_err(|error| {
        let advice = format!("{} was not written{}", output.display(), way_out(&error));
        error.context(advice)
    })?;
    for broken in written.iter().filter_map(|part| part.broken.as_ref()) {
        message::error(broken);
    }
    let records: u64 = written.iter().map(|part| part.records).sum();
    let bytes: u64 = written.iter().map(|part| part.bytes).sum();
    let mib = bytes as f64 / f64::from(1 << 20);
    let output = output.display();
    output::line(format_args!("[ whit export: {records} records, {mib:.1} MiB in {output} ]"))?;
    Ok(0)
}

/// Writes under a temporary name: an existing file stays if this fails.
fn file(
    recording: &Recording,
    output: &Path,
    beside: &Path,
    advance: &mut dyn FnMut(u64),
) -> Result<Vec<Exported>> {
    let mut new = NamedTempFile::new_in(beside)?;
    let written = export::write_first(recording, buffered(new.as_file_mut()), advance)?;
    new.persist(output)?;
    Ok(vec![written])
}

fn directory(
    recording: &Recording,
    output: &Path,
    beside: &Path,
    advance: &mut dyn FnMut(u64),
) -> Result<Vec<Exported>> {
    let new = TempDir::new_in(beside)?;
    let mut data = File::create(new.path().join("data"))?;
    let mut written = vec![export::write_first(recording, buffered(&mut data), advance)?];
    for (number, stream) in recording.streams.iter().skip(1).enumerate() {
        let mut part = File::create(new.path().join(format!("data.{number}")))?;
        written.push(export::write_part(stream, buffered(&mut part), advance)?);
    }
    if output.is_dir() {
        remove_recording(output)?;
    }
    std::fs::rename(new.path(), output)?;
    // It is not there any more under that name.
    let _ = new.keep();
    Ok(written)
}

fn buffered(file: &mut File) -> BufWriter<&mut File> {
    BufWriter::with_capacity(WRITE_BYTES, file)
}
