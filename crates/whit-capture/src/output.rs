//! Opening the output: private, never through a link, the old one kept.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::options::Output;

/// An open output.
#[derive(Debug)]
pub struct OpenOutput {
    /// Where to write.
    pub file: File,
    /// As messages call it.
    pub name: OutputName,
    /// It cannot be sought in: the format for pipes is needed.
    pub is_pipe: bool,
}

/// What an output is called, and how to take it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputName {
    /// The file that was created.
    created: Option<PathBuf>,
    /// Where the file that was there before is now.
    old: Option<PathBuf>,
    shown: String,
}

impl OutputName {
    /// Removes the output again and puts the old file back. A failure leaves both where they are.
    pub fn undo(&self) {
        let Some(path) = &self.created else { return };
        if std::fs::remove_file(path).is_ok()
            && let Some(old) = &self.old
        {
            let _ = std::fs::rename(old, path);
        }
    }
}

impl fmt::Display for OutputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Only the owner reads a recording: it holds addresses, and pieces of other programs' stacks.
const MODE: u32 = 0o600;

/// Refuses what would be refused later, before anything is touched.
pub fn check(output: &Output) -> Result<(), CaptureError> {
    match output {
        Output::Stdout if io::stdout().is_terminal() => Err(CaptureError::OutputIsTerminal),
        _ => Ok(()),
    }
}

/// Opens the output. A file that is there already becomes `NAME.old`; devices and named pipes are
/// written to as they are.
pub fn open(output: &Output, listener: &mut dyn Listener) -> Result<OpenOutput, CaptureError> {
    let path = match output {
        Output::Stdout => return open_stdout(),
        Output::File(path) => path,
    };
    let shown = path.display().to_string();
    let fail = |attempt| {
        let output = shown.clone();
        move |source| CaptureError::Output { attempt, output, source }
    };
    let existing = std::fs::symlink_metadata(path).ok().map(|m| m.file_type());
    let special =
        existing.is_some_and(|t| t.is_char_device() || t.is_fifo() || t.is_block_device());
    let mut options = File::options();
    options.write(true).custom_flags((OFlags::NOFOLLOW | OFlags::NOCTTY).bits() as i32).mode(MODE);
    if special {
        let file = options.open(path).map_err(fail("open"))?;
        let is_pipe = existing.is_some_and(|t| t.is_fifo());
        let name = OutputName { created: None, old: None, shown };
        return Ok(OpenOutput { file, name, is_pipe });
    }
    let mut old = None;
    if existing.is_some() {
        let kept = keep_old(path).map_err(fail("rename to .old the existing"))?;
        let to = kept.display().to_string();
        listener.notice(Notice::OutputRenamed { from: shown.clone(), to });
        old = Some(kept);
    }
    let file = options.create_new(true).open(path).map_err(fail("create"))?;
    let name = OutputName { created: Some(path.clone()), old, shown };
    Ok(OpenOutput { file, name, is_pipe: false })
}

/// Standard output without the buffer that text goes through.
fn open_stdout() -> Result<OpenOutput, CaptureError> {
    let name = OutputName { created: None, old: None, shown: "standard output".to_owned() };
    let fd = io::stdout().as_fd().try_clone_to_owned().map_err(|source| CaptureError::Output {
        attempt: "open",
        output: name.to_string(),
        source,
    })?;
    Ok(OpenOutput { file: File::from(fd), name, is_pipe: true })
}

fn keep_old(path: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(path);
    name.push(".old");
    let old = PathBuf::from(name);
    // A directory recording cannot be renamed over: it is taken away first.
    if std::fs::symlink_metadata(&old).is_ok_and(|m| m.is_dir()) {
        std::fs::remove_dir_all(&old)?;
    }
    std::fs::rename(path, &old)?;
    Ok(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn create(path: &Path) -> Result<OpenOutput, CaptureError> {
        open(&Output::File(path.to_owned()), &mut |_| ())
    }

    #[test]
    fn files_are_private_and_the_old_one_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        for content in [b"one", b"two"] {
            create(&path).unwrap().file.write_all(content).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read(dir.path().join("perf.data.old")).unwrap(), b"one");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_output_that_is_taken_back_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        create(&path).unwrap().name.undo();
        assert!(!path.exists());
        std::fs::write(&path, "before").unwrap();
        create(&path).unwrap().name.undo();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_are_moved_aside_and_never_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, path) = (dir.path().join("victim"), dir.path().join("perf.data"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        create(&path).unwrap().file.write_all(b"recording").unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert!(!std::fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    #[test]
    fn devices_are_written_to_and_directories_that_are_not_there_are_named() {
        let null = create(Path::new("/dev/null")).unwrap();
        assert!(!null.is_pipe);
        let error = create(Path::new("/nonexistent/perf.data")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/perf.data"));
    }
}
