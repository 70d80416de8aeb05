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
use whit_perfdata::existing::{Existing, existing, remove_recording};
use whit_sys::{Errno, wall_clock};
use whit_types::escape_path;

use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::options::{Files, Output};

/// A file, folder or pipe that takes the recording.
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

/// The path of an output, and how to remove it.
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

    /// The file or directory that was created.
    pub fn created(&self) -> Option<&Path> {
        self.created.as_deref()
    }

    /// Whether it is a file or directory that was created here.
    pub fn is_file(&self) -> bool {
        self.created.is_some()
    }

    /// Whether its name has a time.
    pub fn is_stamped(&self) -> bool {
        self.is_stamped
    }

    /// Gives it the name `NAME.TIME`, or that of the next hundredth of a second that is free. A
    /// file that is not ours keeps its name.
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
                    let shown = escape_path(&created);
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

    /// Deletes the recording; used where it holds no record.
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
pub fn check(output: &Output, as_directory: bool, files: &Files) -> Result<(), CaptureError> {
    match output {
        Output::Stdout if files.are_stamped() => Err(CaptureError::PipeHasNoFiles),
        Output::Stdout if io::stdout().is_terminal() => Err(CaptureError::OutputIsTerminal),
        Output::Stdout => Ok(()),
        Output::File(path) => match room(path, as_directory)? {
            Room::Keep | Room::KeepAloud => replaceable_old(path, &old_name(path)).map(drop),
            Room::Free | Room::WriteTo | Room::Remove => Ok(()),
        },
    }
}

/// The action on an existing object at the place of a new recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Nothing stands there.
    Free,
    /// It is written to as it is.
    WriteTo,
    /// It is removed: nothing is in it.
    Remove,
    /// It becomes `NAME.old`: a recording, or a link.
    Keep,
    /// The same, aloud: a file that is no recording.
    KeepAloud,
}

/// Only recordings, files and empty folders are replaced: somebody's folder never is.
fn room(path: &Path, as_directory: bool) -> Result<Room, CaptureError> {
    let in_the_way = |what: String| Err(CaptureError::InTheWay { output: path.to_owned(), what });
    let look = |source| {
        let output = escape_path(path);
        CaptureError::Output { attempt: "look at", output, source }
    };
    let link = std::fs::read_link(path);
    let is_link = link.is_ok();
    if link.is_ok_and(|target| target.starts_with("/proc")) {
        return in_the_way("a link to an open file".to_owned());
    }
    match existing(path).map_err(look)? {
        Existing::Nothing if is_link => Ok(Room::Keep),
        Existing::Nothing => Ok(Room::Free),
        Existing::Recording => Ok(Room::Keep),
        Existing::File => Ok(Room::KeepAloud),
        Existing::EmptyFile if is_link => Ok(Room::Keep),
        Existing::EmptyFile => Ok(Room::Remove),
        Existing::Stream if is_link => in_the_way("a link to a device or pipe".to_owned()),
        Existing::Stream => Ok(Room::WriteTo),
        Existing::EmptyDirectory if as_directory && !is_link => Ok(Room::Remove),
        Existing::EmptyDirectory => in_the_way("a directory".to_owned()),
        Existing::Directory(entry) => in_the_way(format!(
            "a directory that is no recording (it holds {})",
            escape_path(entry.as_ref())
        )),
        Existing::Other => in_the_way("no file".to_owned()),
    }
}

/// Opens the output, as a directory where that is asked for. The recording that is there already
/// becomes `NAME.old`; devices and named pipes are written to as they are.
pub fn open(
    output: &Output,
    as_directory: bool,
    listener: &mut dyn Listener,
) -> Result<OpenOutput, CaptureError> {
    let path = match output {
        Output::Stdout => return open_stdout(),
        Output::File(path) => path,
    };
    let shown = escape_path(path);
    let fail = |attempt| {
        let output = shown.clone();
        move |source| CaptureError::Output { attempt, output, source }
    };
    let room = room(path, as_directory)?;
    let mut options = File::options();
    options
        .write(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NOCTTY).bits() as i32)
        .mode(OUTPUT_MODE);
    if room == Room::WriteTo {
        let file = options.open(path).map_err(fail("open"))?;
        let is_pipe = file.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo());
        let name = OutputName::new(None, None, shown);
        return Ok(OpenOutput { file, name, is_pipe, directory: None });
    }
    let old = make_room(path, room, listener)?;
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

/// Frees `path`; gives the new place of the old recording.
fn make_room(
    path: &Path,
    room: Room,
    listener: &mut dyn Listener,
) -> Result<Option<PathBuf>, CaptureError> {
    let output = || escape_path(path);
    if room == Room::Remove {
        let removed = match path.is_dir() {
            true => std::fs::remove_dir(path),
            false => std::fs::remove_file(path),
        };
        let fail = |source| CaptureError::Output { attempt: "replace", output: output(), source };
        return removed.map(|()| None).map_err(fail);
    }
    if room == Room::Free {
        return Ok(None);
    }
    let old = old_name(path);
    let fail = |source| CaptureError::Output {
        attempt: "rename to .old the existing",
        output: output(),
        source,
    };
    remove_old(path, &old)?;
    std::fs::rename(path, &old).map_err(fail)?;
    let (from, to) = (output(), escape_path(&old));
    listener.notice(match room {
        Room::KeepAloud => Notice::FileRenamed { from, to },
        _ => Notice::OutputRenamed { from, to },
    });
    Ok(Some(old))
}

fn old_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".old");
    PathBuf::from(name)
}

/// Inspects the file that would be replaced by keeping the one at `path`. A file that is no
/// recording stays, though renaming a file would replace it.
fn replaceable_old(path: &Path, old: &Path) -> Result<Existing, CaptureError> {
    let fail = |source| {
        let output = escape_path(old);
        CaptureError::Output { attempt: "look at", output, source }
    };
    match existing(old).map_err(fail)? {
        Existing::File | Existing::Directory(_) | Existing::Stream | Existing::Other => {
            let (output, old) = (path.to_owned(), old.to_owned());
            Err(CaptureError::OldInTheWay { output, old })
        }
        replaceable => Ok(replaceable),
    }
}

/// Removes the recording before the last: neither can a directory be renamed over, nor over a file.
fn remove_old(path: &Path, old: &Path) -> Result<(), CaptureError> {
    let replaceable = replaceable_old(path, old)?;
    let metadata = std::fs::symlink_metadata(old);
    let removed = match metadata.map(|metadata| metadata.is_dir()) {
        Err(_) => Ok(()),
        Ok(false) => std::fs::remove_file(old),
        Ok(true) if replaceable == Existing::EmptyDirectory => std::fs::remove_dir(old),
        Ok(true) => remove_recording(old),
    };
    let output = || escape_path(old);
    removed.map_err(|source| CaptureError::Output { attempt: "remove", output: output(), source })
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
        for content in [b"PERFILE2 0", b"PERFILE2 1", b"PERFILE2 2"] {
            create(&path).unwrap().file.write_all(content).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"PERFILE2 2");
        assert_eq!(std::fs::read(dir.path().join("perf.data.old")).unwrap(), b"PERFILE2 1");
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
            let mut opened = open(&output, as_directory, &mut |_| ()).unwrap();
            opened.file.write_all(b"PERFILE2").unwrap();
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
    fn an_old_file_that_is_no_recording_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("perf.data"), dir.path().join("perf.data.old"));
        std::fs::write(&path, "PERFILE2").unwrap();
        std::fs::create_dir(&old).unwrap();
        std::fs::write(old.join("thesis.tex"), "").unwrap();
        let refused = |shown: &str| {
            let error = create(&path).unwrap_err().to_string();
            assert!(error.contains(shown) && error.contains("name another place"), "{error}");
            let early = check(&Output::File(path.clone()), false, &Files::default()).unwrap_err();
            assert_eq!(early.to_string(), error);
            assert_eq!(std::fs::read(&path).unwrap(), b"PERFILE2");
        };
        refused("perf.data.old, which is no recording");
        assert!(old.join("thesis.tex").exists());
        std::fs::remove_dir_all(&old).unwrap();
        std::fs::write(&old, "Dear diary").unwrap();
        refused("perf.data.old, which is no recording");
        assert_eq!(std::fs::read(&old).unwrap(), b"Dear diary");
        std::fs::write(&old, "PERFILE2 older").unwrap();
        create(&path).unwrap();
        assert_eq!(std::fs::read(&old).unwrap(), b"PERFILE2");
    }

    #[test]
    fn a_directory_that_is_no_recording_stays() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("thesis.tex"), "").unwrap();
        std::os::unix::fs::symlink(&home, dir.path().join("link")).unwrap();
        for path in [home.clone(), dir.path().join("link")] {
            for as_directory in [false, true] {
                let output = Output::File(path.clone());
                let early = check(&output, as_directory, &Files::default()).unwrap_err();
                let error = open(&output, as_directory, &mut |_| ()).unwrap_err();
                assert_eq!(early.to_string(), error.to_string());
                let advice = format!(
                    "(it holds thesis.tex): name a place that is free, such as -o {}",
                    path.join("perf.data").display()
                );
                assert!(error.to_string().ends_with(&advice), "{error}");
            }
        }
        assert!(home.join("thesis.tex").exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_empty_file_is_replaced_and_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        std::fs::write(&path, "").unwrap();
        create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(create(&path).unwrap_err().to_string().contains("which is a directory"));
        assert!(open(&Output::File(path), true, &mut |_| ()).unwrap().directory.is_some());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_no_recording_is_kept_aloud() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        std::fs::write(&path, "Dear diary").unwrap();
        let mut said = Vec::new();
        open(&Output::File(path), false, &mut |notice: Notice| said.push(notice)).unwrap();
        let [notice] = &said[..] else { panic!("{said:?}") };
        assert_eq!(notice.level(), whit_host::level::Level::Warning);
        assert!(notice.to_string().ends_with("notes.txt.old now"), "{notice}");
        assert_eq!(std::fs::read(dir.path().join("notes.txt.old")).unwrap(), b"Dear diary");
    }

    #[test]
    fn links_to_open_files_and_devices_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stdout");
        for target in ["/proc/self/fd/1", "/dev/null"] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let error = create(&path).unwrap_err().to_string();
            assert!(error.ends_with("name a place that is free, such as -o -"), "{error}");
            assert_eq!(std::fs::read_link(&path).unwrap(), Path::new(target));
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn devices_are_written_to_and_directories_that_are_not_there_are_named() {
        let null = create(Path::new("/dev/null")).unwrap();
        assert!(!null.is_pipe);
        let error = create(Path::new("/nonexistent/perf.data")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/perf.data"));
    }
}
