//! Opening the recording that `-i` names.

use anyhow::{Context, Result, bail};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use whit_perfdata::reader::{OpenError, Recording};

/// What is read without `-i`.
const DEFAULT_INPUT: &str = "perf.data";

/// Which recording.
#[derive(clap::Args, Debug)]
pub(crate) struct InputArgs {
    /// Recording: a file, a directory, or `-` for standard input [default: perf.data, or standard
    /// input where that is a pipe]
    #[arg(short = 'i', long, value_name = "FILE")]
    input: Option<PathBuf>,
}

impl InputArgs {
    /// Opens it.
    pub(crate) fn open(&self) -> Result<Recording> {
        match &self.input {
            Some(path) if path == Path::new("-") => from_stdin(),
            Some(path) => open(path),
            None if stdin_is_pipe() => from_stdin(),
            None => open(Path::new(DEFAULT_INPUT)),
        }
    }
}

fn open(path: &Path) -> Result<Recording> {
    Recording::open(path).map_err(|error| {
        let advice = advice(path, &error);
        anyhow::Error::new(error).context(advice)
    })
}

/// What went wrong, and what helps.
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
            let owner = path.metadata().map_or_else(
                |_| "its directory is closed to you".to_owned(),
                |metadata| format!("it belongs to the user with ID {}", metadata.uid()),
            );
            let path = path.display();
            format!("the recording may not be read: {owner} (sudo chown $USER {path})")
        }
        _ => "the recording cannot be opened".to_owned(),
    }
}

fn stdin_is_pipe() -> bool {
    Path::new("/dev/stdin").metadata().is_ok_and(|m| m.file_type().is_fifo())
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
