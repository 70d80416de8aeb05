//! `whit export`.

use crate::failure::bail_usage;
use crate::input::InputArgs;
use crate::message;
use crate::output;
use crate::progress::LoadProgress;
use anyhow::{Result, bail};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempDir};
use whit_perfdata::existing::remove_recording;
use whit_perfdata::export::{self, Exported};
use whit_perfdata::reader::{Form, Recording};

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Arguments of `whit export`.
#[derive(clap::Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Write a recording for stock perf: not packed, not compressed
    #[arg(long, required = true)]
    perf: bool,
    /// Output file; a directory if the recording is a directory
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
    /// Replace an existing output
    #[arg(short = 'f', long)]
    force: bool,
}

/// Runs `whit export`.
pub(crate) fn run(args: &ExportArgs) -> Result<u8> {
    let output = &args.output;
    if output == Path::new("-") {
        bail_usage!(
            "a recording is completed at its beginning, which a pipe does not allow: name a file"
        );
    }
    let recording = args.input.open()?;
    recording.warnings.iter().for_each(message::error);
    if output.symlink_metadata().is_ok() && !args.force {
        bail!("{} exists: choose another name, or replace it with -f", output.display());
    }
    if output.canonicalize().ok().is_some_and(|out| recording.path.canonicalize().ok() == Some(out))
    {
        bail!("{} is the recording itself: choose another name", output.display());
    }
    let beside = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let progress = LoadProgress::new("writing", false);
    let total = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    let mut done = 0;
    let mut advance = |bytes: u64| {
        done += bytes;
        progress.update(done, total);
    };
    let written = match recording.form {
        Form::Directory => directory(&recording, output, beside, &mut advance),
        Form::File | Form::Pipe => file(&recording, output, beside, &mut advance),
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

/// The remedy for an error.
fn way_out(error: &anyhow::Error) -> &'static str {
    let kind = error.chain().find_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    match kind {
        Some(ErrorKind::PermissionDenied) => " (name a place with -o where you may write)",
        Some(ErrorKind::StorageFull) => {
            " (make room there, or name a place with -o that has some: what is packed and compressed \
             takes ten times as much and more)"
        }
        Some(ErrorKind::NotFound) => " (make the folder first, or name another with -o)",
        Some(ErrorKind::IsADirectory) => " (a directory stands there: choose another name)",
        _ => "",
    }
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
