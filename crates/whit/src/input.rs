//! Opening the recording that `-i` names.

use anyhow::{Context, Result, bail};
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use whit_perfdata::reader::Recording;

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
            None => open(Path::new("perf.data")),
        }
    }
}

fn open(path: &Path) -> Result<Recording> {
    Recording::open(path).with_context(|| {
        if path == Path::new("perf.data") && !path.exists() {
            "there is no recording here: make one with `whit record -- COMMAND`, or name one with \
             -i FILE"
        } else {
            "the recording cannot be opened"
        }
    })
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
