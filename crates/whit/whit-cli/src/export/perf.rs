//! `whit export --perf`: the recording itself, written for other readers of perf.data.

use super::destination::{folder_of, way_out};
use crate::failure::bail_usage;
use crate::message;
use crate::output;
use crate::progress::during;
use anyhow::Result;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tempfile::{NamedTempFile, TempDir};
use whit_perfdata::existing::remove_recording;
use whit_perfdata::export::{self, Exported};
use whit_perfdata::reader::{Form, Recording};
use whit_types::escape_path;

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
    let parent = folder_of(output);
    let total = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    let written = during("writing", false, |update| {
        let mut done = 0;
        let mut advance = |bytes: u64| {
            done += bytes;
            update(done, total);
        };
        match recording.form {
            Form::Directory => directory(recording, output, parent, &mut advance),
            Form::File | Form::Pipe => file(recording, output, parent, &mut advance),
        }
    });
    let written = written.map_err(|error| with_advice(output, error))?;
    for broken in written.iter().filter_map(|part| part.broken.as_ref()) {
        message::error(broken);
    }
    let records: u64 = written.iter().map(|part| part.records).sum();
    let bytes: u64 = written.iter().map(|part| part.bytes).sum();
    say_written(records, bytes, output)
}

/// Says the number of records and their bytes.
pub(super) fn say_written(records: u64, bytes: u64, output: &Path) -> Result<u8> {
    let mib = bytes as f64 / f64::from(1 << 20);
    let output = escape_path(output);
    output::line(format_args!("[ whit export: {records} records, {mib:.1} MiB in {output} ]"))?;
    Ok(0)
}

/// An error with its remedy.
pub(super) fn with_advice(output: &Path, error: anyhow::Error) -> anyhow::Error {
    let advice = format!("{} was not written{}", escape_path(output), way_out(&error));
    error.context(advice)
}

/// Writes under a temporary name: an existing file stays if this fails.
fn file(
    recording: &Recording,
    output: &Path,
    parent: &Path,
    advance: &mut dyn FnMut(u64),
) -> Result<Vec<Exported>> {
    whole_file(output, parent, |file| {
        Ok(vec![export::write_first(recording, buffered(file), advance)?])
    })
}

fn directory(
    recording: &Recording,
    output: &Path,
    parent: &Path,
    advance: &mut dyn FnMut(u64),
) -> Result<Vec<Exported>> {
    whole_directory(output, parent, |folder| {
        let mut data = File::create(folder.join(DATA))?;
        let mut written = vec![export::write_first(recording, buffered(&mut data), advance)?];
        for (number, stream) in recording.streams.iter().enumerate().skip(1) {
            let mut part = File::create(folder.join(part_name(number)))?;
            written.push(export::write_part(stream, buffered(&mut part), advance)?);
        }
        Ok(written)
    })
}

/// Writes a file under a temporary name: an existing one stays if this fails.
pub(super) fn whole_file<T>(
    output: &Path,
    parent: &Path,
    fill: impl FnOnce(&mut File) -> Result<T>,
) -> Result<T> {
    let mut new = NamedTempFile::new_in(parent)?;
    let written = fill(new.as_file_mut())?;
    new.persist(output)?;
    Ok(written)
}

/// Fills a directory that has its name when it is whole.
pub(super) fn whole_directory<T>(
    output: &Path,
    parent: &Path,
    fill: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    let new = TempDir::new_in(parent)?;
    let written = fill(new.path())?;
    if output.is_dir() {
        remove_recording(output)?;
    }
    std::fs::rename(new.path(), output)?;
    // It is not there any more under that name.
    let _ = new.keep();
    Ok(written)
}

/// The file of a directory's first stream.
pub(super) const DATA: &str = "data";

/// The file of another stream of a directory, by its number among all streams.
pub(super) fn part_name(stream: usize) -> String {
    format!("data.{}", stream - 1)
}

pub(super) fn buffered(file: &mut File) -> BufWriter<&mut File> {
    BufWriter::with_capacity(WRITE_BYTES, file)
}
