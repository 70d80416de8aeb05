//! Opening the recording that `-i` names.

use crate::failure::bail_usage;
use anyhow::{Context, Result, bail};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use whit_perfdata::reader::{OpenError, Recording};

/// The recording that is read without `-i`.
const DEFAULT_INPUT: &str = "perf.data";

/// Which recording.
#[derive(clap::Args, Debug)]
pub(crate) struct InputArgs {
    /// Recording to read: a file, a directory, or '-' for standard input [default: perf.data; standard
    /// input if it is a pipe]
    #[arg(short = 'i', long, value_name = "FILE")]
    input: Vec<PathBuf>,
}

/// Which recording, also without `-i`.
#[derive(clap::Args, Debug)]
pub(crate) struct RecordingArgs {
    /// The same as -i FILE
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
}

impl RecordingArgs {
    /// See [`InputArgs::open_all`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn open_all(&self) -> Result<Vec<Recording>> {
        open_all(self.names())
    }

    /// Opens the only one.
    pub(crate) fn open(&self) -> Result<Recording> {
        open_only(self.names())
    }

    fn names(&self) -> &[PathBuf] {
        match &self.file[..] {
            [] => &self.input.input,
            files => files,
        }
    }
}

impl InputArgs {
    /// Opens all that are named, one after the other.
    ///
    /// # Errors
    /// Standard input beside others, and recordings that cannot be opened.
    pub(crate) fn open_all(&self) -> Result<Vec<Recording>> {
        open_all(&self.input)
    }

    /// Opens all that are named, where standard input has something else.
    ///
    /// # Errors
    /// As `open_all`, and for standard input.
    pub(crate) fn open_all_files(&self) -> Result<Vec<Recording>> {
        if self.input.iter().any(|path| path == Path::new("-")) {
            bail_usage!(
                "standard input has the statements: name the recording with -i FILE, or give the statements with -c"
            );
        }
        match &self.input[..] {
            [] => Ok(vec![open(Path::new(DEFAULT_INPUT))?]),
            paths => paths.iter().map(|path| open(path)).collect(),
        }
    }

    /// Opens the only one.
    pub(crate) fn open(&self) -> Result<Recording> {
        open_only(&self.input)
    }
}

/// Opens all of these, one after the other.
fn open_all(names: &[PathBuf]) -> Result<Vec<Recording>> {
    if names.len() < 2 {
        return Ok(vec![open_only(names)?]);
    }
    if names.iter().any(|path| path == Path::new("-")) {
        bail_usage!("standard input is read alone: leave out `-i -`, or the other recordings");
    }
    names.iter().map(|path| open(path)).collect()
}

/// Opens the only one of these, or the recording that is read where there is none.
fn open_only(names: &[PathBuf]) -> Result<Recording> {
    match names {
        [path] if path == Path::new("-") => from_stdin(),
        [path] => open(path),
        [] if stdin_is_meant() => from_stdin(),
        [] => open(Path::new(DEFAULT_INPUT)),
        [_, ..] => bail_usage!(
            "one recording is read at a time, and the command line names {}: run whit once for each, or add them up \
             with whit report",
            names.len()
        ),
    }
}

/// Opens the recording of this name.
pub(crate) fn open(path: &Path) -> Result<Recording> {
    Recording::open(path).map_err(|error| {
        let advice = advice(path, &error);
        anyhow::Error::new(error).context(advice)
    })
}

/// The error and its remedy.
fn advice(path: &Path, error: &OpenError) -> String {
    let OpenError::Io { source, .. } = error else {
        return "the recording cannot be opened".to_owned();
    };
    match source.kind() {
        ErrorKind::NotFound => {
            let output = match path == Path::new(DEFAULT_INPUT) {
                true => String::new(),
                false => format!("-o {} ", path.display()),
            };
            format!(
                "there is no recording here: make one with `whit record {output}-- COMMAND`, or \
                 name one with -i FILE"
            )
        }
        ErrorKind::PermissionDenied => {
            let shown = path.display();
            match path.metadata() {
                Ok(metadata) => format!(
                    "the recording may not be read: it belongs to the user with ID {} (sudo chown $USER {shown})",
                    metadata.uid()
                ),
                Err(_) => format!(
                    "the recording may not be read: its directory is closed to you (sudo cp {shown} . copies it out, \
                     then sudo chown $USER makes it yours)"
                ),
            }
        }
        _ => "the recording cannot be opened".to_owned(),
    }
}

/// A loop in a shell may have a file for its standard input that is no recording: perf.data comes first.
fn stdin_is_meant() -> bool {
    let stdin = Path::new("/dev/stdin").metadata();
    let has_default = || Path::new(DEFAULT_INPUT).symlink_metadata().is_ok();
    stdin.is_ok_and(|stdin| stdin.file_type().is_fifo() || (stdin.is_file() && !has_default()))
}

/// A recording is read twice, which a pipe does not allow: it goes through a file without a name,
/// which vanishes with the process.
fn from_stdin() -> Result<Recording> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        bail!("`-i -` reads a recording from a pipe, but standard input is a terminal");
    }
    let directory = std::env::temp_dir();
    let mut file = tempfile::tempfile_in(&directory).with_context(|| {
        format!("cannot make a file in {} (set TMPDIR to another folder)", directory.display())
    })?;
    io::copy(&mut stdin.lock(), &mut file).with_context(|| {
        format!(
            "cannot keep the recording from standard input in {} (set TMPDIR to a folder with \
             more room)",
            directory.display()
        )
    })?;
    Ok(Recording::from_file(Path::new("-"), file)?)
}
