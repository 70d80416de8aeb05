//! Standard output, buffered, and the end of its reader.

use anyhow::{Result, bail};
use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;
use whit_perfdata::existing::{Existing, existing};
use whit_types::escape;

/// Standard output with a buffer.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Writes one line, with control characters escaped.
pub fn line(text: impl Display) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{}", escape(&text.to_string()))?;
    out.flush()
}

/// Refuses to write text over a recording, which somebody meant to read.
pub(crate) fn check_no_recording(path: &Path) -> Result<()> {
    if matches!(existing(path), Ok(Existing::Recording)) {
        bail!("{} is a recording: name another file", path.display());
    }
    Ok(())
}

/// True where the reader of our output has gone (`whit report | head`): no error to speak of.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// An error with its causes, each said once: many errors already quote their cause.
pub fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_is_quoted_is_not_repeated() {
        let error = anyhow::anyhow!("gone").context("cannot read x: gone").context("no report");
        assert_eq!(describe(&error), "no report: cannot read x: gone");
    }
}
