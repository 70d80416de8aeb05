//! Opening the output: private, never through a link, the old one kept.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use whit_sys::{Errno, wall_clock};

use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::options::{Files, Output};

/// An open output.
#[derive(Debug)]
pub struct OpenOutput {
    /// Where to write.
    pub file: File,
    /// As messages call it.
    pub name: OutputName,
    /// It cannot be sought in: the format for pipes is needed.
    pub is_pipe: bool,
    /// The directory whose `data` it is.
    pub directory: Option<PathBuf>,
}

/// What an output is called, and how to take it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputName {
    /// The file or directory that was created.
    created: Option<PathBuf>,
    /// Where the file that was there before is now.
    old: Option<PathBuf>,
    shown: String,
    is_stamped: bool,
}

/// Names that are tried when the one of the moment is taken: one for each hundredth of a second.
const STAMPS_TRIED_MAX: u32 = 1000;
const HUNDREDTH: Duration = Duration::from_millis(10);

impl OutputName {
    fn new(created: Option<PathBuf>, old: Option<PathBuf>, shown: String) -> OutputName {
        OutputName { created, old, shown, is_stamped: false }
    }

    /// The directory that holds the file or directory that was created.
    pub fn home(&self) -> Option<PathBuf> {
        let parent = self.created.as_ref()?.parent()?;
        let is_here = parent.as_os_str().is_empty();
        Some(if is_here { PathBuf::from(".") } else { parent.to_owned() })
    }

    /// Whether it is a file or directory that was created here.
    pub fn is_file(&self) -> bool {
        self.created.is_some()
    }

    /// Whether its name has a time.
    pub fn is_stamped(&self) -> bool {
        self.is_stamped
    }

    /// Gives it the name `NAME.TIME`, or that of the next hundredth of a second that is free. What
    /// is no file of ours keeps its name.
    pub fn stamp(&mut self, moment: SystemTime) -> io::Result<()> {
        let Some(path) = &self.created else { return Ok(()) };
        let cwd = rustix::fs::CWD;
        let mut last = Errno::EXIST;
        for turn in 0..STAMPS_TRIED_MAX {
            let mut name = OsString::from(path);
            name.push(format!(".{}", wall_clock::stamp(moment + HUNDREDTH * turn)));
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(cwd, path, cwd, &name, flags) {
                Ok(()) => {
                    let created = PathBuf::from(name);
                    let shown = created.display().to_string();
                    (self.created, self.shown, self.is_stamped) = (Some(created), shown, true);
                    return Ok(());
                }
                Err(Errno::EXIST) => {}
                Err(errno) => {
                    last = errno;
                    break;
                }
            }
        }
        Err(last.into())
    }

    /// Gives it back the name that it had.
    pub fn restore(&mut self, before: &OutputName) {
        if let (Some(now), Some(then)) = (&self.created, &before.created)
            && now != then
            && std::fs::rename(now, then).is_ok()
        {
            *self = before.clone();
        }
    }

    /// Removes it.
    pub fn remove(&self) -> io::Result<()> {
        match &self.created {
            Some(path) if path.is_dir() => remove_recording(path),
            Some(path) => std::fs::remove_file(path),
            None => Ok(()),
        }
    }

    /// Removes the output again and puts the old file back. A failure leaves both where they are.
    pub fn undo(&self) {
        let Some(path) = &self.created else { return };
        let is_directory = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
        let removed = match is_directory {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        };
        if removed.is_ok()
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
pub(crate) const OUTPUT_MODE: u32 = 0o600;
/// The directory of a recording.
const DIRECTORY_MODE: u32 = 0o700;
/// The file with the header in a directory.
const HEADER_FILE: &str = "data";

/// Refuses what would be refused later, before anything is touched.
pub fn check(output: &Output, files: &Files) -> Result<(), CaptureError> {
    match output {
        Output::Stdout if files.switch.is_some() || files.timestamp => {
            Err(CaptureError::PipeHasNoFiles)
        }
        Output::Stdout if io::stdout().is_terminal() => Err(CaptureError::OutputIsTerminal),
        _ => Ok(()),
    }
}

/// Opens the output, as a directory where that is asked for. What is there already becomes
/// `NAME.old`; devices and named pipes are written to as they are.
pub fn open(
    output: &Output,
    as_directory: bool,
    listener: &mut dyn Listener,
) -> Result<OpenOutput, CaptureError> {
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
    options
        .write(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NOCTTY).bits() as i32)
        .mode(OUTPUT_MODE);
    if special {
        let file = options.open(path).map_err(fail("open"))?;
        let is_pipe = existing.is_some_and(|t| t.is_fifo());
        let name = OutputName::new(None, None, shown);
        return Ok(OpenOutput { file, name, is_pipe, directory: None });
    }
    let mut old = None;
    if existing.is_some() {
        let kept = keep_old(path).map_err(fail("rename to .old the existing"))?;
        let to = kept.display().to_string();
        listener.notice(Notice::OutputRenamed { from: shown.clone(), to });
        old = Some(kept);
    }
    let name = OutputName::new(Some(path.clone()), old, shown.clone());
    if !as_directory {
        let file = options.create_new(true).open(path).map_err(fail("create"))?;
        return Ok(OpenOutput { file, name, is_pipe: false, directory: None });
    }
    std::fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path).map_err(fail("create"))?;
    let file = options.create_new(true).open(path.join(HEADER_FILE)).map_err(fail("write into"))?;
    Ok(OpenOutput { file, name, is_pipe: false, directory: Some(path.clone()) })
}

/// Standard output without the buffer that text goes through.
fn open_stdout() -> Result<OpenOutput, CaptureError> {
    let name = OutputName::new(None, None, "standard output".to_owned());
    let fd = io::stdout().as_fd().try_clone_to_owned().map_err(|source| CaptureError::Output {
        attempt: "open",
        output: name.to_string(),
        source,
    })?;
    Ok(OpenOutput { file: File::from(fd), name, is_pipe: true, directory: None })
}

/// Makes room for a new recording: what is at `path` becomes the old one, instead of the old one
/// that there may be.
fn keep_old(path: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(path);
    name.push(".old");
    let old = PathBuf::from(name);
    // Neither can a directory be renamed over, nor over a file.
    match std::fs::symlink_metadata(&old) {
        Ok(metadata) if metadata.is_dir() => remove_recording(&old)?,
        Ok(_) if path.is_dir() => std::fs::remove_file(&old)?,
        _ => {}
    }
    std::fs::rename(path, &old)?;
    Ok(old)
}

/// Removes a recording that is a directory, and nothing else.
fn remove_recording(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let is_stream = entry.file_name().as_encoded_bytes().starts_with(b"data");
        if !is_stream || !entry.file_type()?.is_file() {
            return Err(io::Error::other(format!(
                "{} is in the way and no recording: it holds {}",
                directory.display(),
                entry.file_name().display()
            )));
        }
    }
    std::fs::remove_dir_all(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn create(path: &Path) -> Result<OpenOutput, CaptureError> {
        open(&Output::File(path.to_owned()), false, &mut |_| ())
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
    fn outputs_get_the_time_and_never_replace_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        let now = SystemTime::now();
        let mut names: Vec<String> = Vec::new();
        for _ in 0..3 {
            let mut name = create(&path).unwrap().name;
            let before = name.clone();
            name.stamp(now).unwrap();
            assert!(name.is_stamped() && !path.exists());
            assert!(!names.contains(&name.to_string()));
            names.push(name.to_string());
            name.restore(&before);
            assert!(path.exists() && !name.is_stamped());
            name.stamp(now).unwrap();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
        assert_eq!(names[0], format!("{}.{}", path.display(), wall_clock::stamp(now)));
        let mut directory = open(&Output::File(path), true, &mut |_| ()).unwrap().name;
        directory.stamp(now).unwrap();
        directory.remove().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
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
    fn directories_are_private_and_replace_and_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        let old = dir.path().join("perf.data.old");
        let output = Output::File(path.clone());
        for (as_directory, before) in [(true, None), (true, Some(true)), (false, Some(true))] {
            let opened = open(&output, as_directory, &mut |_| ()).unwrap();
            assert_eq!(opened.directory.is_some(), as_directory);
            assert_eq!(path.is_dir(), as_directory);
            assert_eq!(old.exists().then(|| old.is_dir()), before);
        }
        open(&output, true, &mut |_| ()).unwrap();
        assert!(old.is_file() && path.is_dir());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let header = std::fs::metadata(path.join("data")).unwrap();
        assert_eq!(header.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_directory_that_is_no_recording_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        std::fs::create_dir(dir.path().join("perf.data.old")).unwrap();
        std::fs::write(dir.path().join("perf.data.old/thesis.tex"), "").unwrap();
        std::fs::write(&path, "").unwrap();
        let error = create(&path).unwrap_err();
        assert!(format!("{:?}", error).contains("thesis.tex"), "{error:?}");
        assert!(dir.path().join("perf.data.old/thesis.tex").exists());
    }

    #[test]
    fn devices_are_written_to_and_directories_that_are_not_there_are_named() {
        let null = create(Path::new("/dev/null")).unwrap();
        assert!(!null.is_pipe);
        let error = create(Path::new("/nonexistent/perf.data")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/perf.data"));
    }
}
