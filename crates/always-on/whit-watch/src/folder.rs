//! A folder of recordings: whole files under their names, and a manifest.

use crate::retention::{Entry, Kept, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use whit_sys::FileLock;
use whit_types::civil;

/// In front of names of files that are being written.
const WRITING: &str = ".writing-";
/// Names of recordings.
const PREFIX: &str = "whit-";
const SUFFIX: &str = ".data";
/// The list of recordings: a line of JSON for each.
pub(crate) const MANIFEST: &str = "manifest.jsonl";
/// Held while a service writes here.
const LOCK: &str = ".lock";
/// Lines of files that are gone, which the manifest may have beside the others.
const DEAD_LINES_MAX: usize = 1000;

/// A line of the manifest.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Line {
    /// The file in this folder.
    pub(crate) file: String,
    /// Seconds since 1970.
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    pub(crate) bytes: u64,
    /// Seconds of it without a recorder.
    pub(crate) gap_s: f64,
    /// Records that are not in it, by the bound `window-bytes`.
    pub(crate) records_lost: u64,
}

/// An error with its file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub(crate) struct FolderError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError + '_ {
    move |source| FolderError { path: path.to_owned(), source }
}

/// An open folder. One service at a time has it.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    kept: Kept,
    dead_lines: usize,
    lines: BTreeMap<String, Line>,
    _lock: FileLock,
}

impl Folder {
    /// Makes the folder where it is missing. Halves of files go, and the manifest is made to agree with the files.
    pub(crate) fn open(root: &Path) -> Result<Folder, FolderError> {
        fs::create_dir_all(root).map_err(failed(root))?;
        let lock = lock(root)?;
        let known = read_manifest(&root.join(MANIFEST));
        let (mut lines, mut entries) = (BTreeMap::new(), Vec::new());
        for found in fs::read_dir(root).map_err(failed(root))? {
            let found = found.map_err(failed(root))?;
            let Ok(name) = found.file_name().into_string() else { continue };
            if name.starts_with(WRITING) {
                // Another one may have removed it by now.
                let _ = fs::remove_file(found.path());
            }
            if !name.starts_with(PREFIX) || !name.ends_with(SUFFIX) {
                continue;
            }
            let metadata = found.metadata().map_err(failed(&found.path()))?;
            let modified = metadata.modified().map_err(failed(&found.path()))?;
            let line = known.get(&name).cloned().unwrap_or_else(|| Line {
                file: name.clone(),
                start_s: seconds(modified),
                end_s: seconds(modified),
                bytes: metadata.len(),
                ..Line::default()
            });
            let (end, bytes) = (time(line.end_s), metadata.len());
            entries.push(Entry { name: name.clone(), end, bytes });
            lines.insert(name, line);
        }
        let mut folder = Folder {
            root: root.to_owned(),
            kept: Kept::new(entries),
            dead_lines: 0,
            lines,
            _lock: lock,
        };
        folder.rewrite_manifest()?;
        Ok(folder)
    }

    /// Writes the recording of a window: it has its name when all of its bytes are on the disk.
    pub(crate) fn add(
        &mut self,
        window: Line,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, FolderError> {
        let (file, bytes) = self.put(&window, |path| write_whole(path, write))?;
        let path = self.root.join(&file);
        self.sync()?;
        self.enter(Line { file, bytes, ..window })?;
        Ok(path)
    }

    /// Writes a recording that has its name at once; its bytes reach the disk a little later. Gives its size, too.
    pub(crate) fn add_at_once(
        &mut self,
        line: Line,
        write: impl FnOnce(File) -> io::Result<File>,
    ) -> Result<(PathBuf, u64), FolderError> {
        let mut written = None;
        let put = self.put(&line, |path| {
            let file = write(File::create(path)?)?;
            let bytes = file.metadata()?.len();
            written = Some(file);
            Ok(bytes)
        });
        let (file, bytes) = put?;
        let (path, folder) = (self.root.join(&file), self.root.clone());
        std::thread::spawn(move || {
            // Where the machine stops first, the file is not whole, and says so to its readers.
            let _ = written.map(|file| file.sync_all());
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        });
        self.enter(Line { file, bytes, ..line })?;
        Ok((path, bytes))
    }

    /// Writes a file beside its place, and renames it; gives its name and size.
    fn put(
        &self,
        line: &Line,
        write: impl FnOnce(&Path) -> io::Result<u64>,
    ) -> Result<(String, u64), FolderError> {
        let name = self.free_name(time(line.start_s));
        let (writing, path) = (self.root.join(format!("{WRITING}{name}")), self.root.join(&name));
        let renamed = write(&writing).and_then(|bytes| fs::rename(&writing, &path).map(|()| bytes));
        let bytes = renamed.inspect_err(|_| {
            // Half of a file only takes room.
            let _ = fs::remove_file(&writing);
        });
        Ok((name, bytes.map_err(failed(&path))?))
    }

    fn enter(&mut self, line: Line) -> Result<(), FolderError> {
        let (name, end, bytes) = (line.file.clone(), time(line.end_s), line.bytes);
        self.kept.add(Entry { name: name.clone(), end, bytes });
        // The recording is there without it: the next start writes the manifest anew.
        let appended = self.append(&line);
        self.lines.insert(name, line);
        appended
    }

    /// Removes files that have to go; gives their number.
    pub(crate) fn retain(&mut self, limits: Limits, now: SystemTime) -> Result<u64, FolderError> {
        let mut removed = 0;
        while let Some(entry) = self.kept.next_due(limits, now) {
            let path = self.root.join(&entry.name);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    self.kept.put_back(entry);
                    return Err(FolderError { path, source });
                }
                _ => {}
            }
            self.lines.remove(&entry.name);
            self.dead_lines += 1;
            removed += 1;
        }
        if self.dead_lines > DEAD_LINES_MAX.min(self.lines.len() + 10) {
            self.rewrite_manifest()?;
        }
        Ok(removed)
    }

    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// The beginning, in UTC; several windows may have it where the clock was set back.
    fn free_name(&self, start: SystemTime) -> String {
        let stamp = utc_stamp(start);
        let names = std::iter::once(format!("{PREFIX}{stamp}{SUFFIX}"))
            .chain((2..).map(|number| format!("{PREFIX}{stamp}-{number}{SUFFIX}")));
        let mut free = names.filter(|name| !self.lines.contains_key(name));
        free.next().unwrap_or_default()
    }

    fn append(&self, line: &Line) -> Result<(), FolderError> {
        let path = self.root.join(MANIFEST);
        let append = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
            file.write_all(&text(line))
        };
        append().map_err(failed(&path))
    }

    fn rewrite_manifest(&mut self) -> Result<(), FolderError> {
        let (writing, path) =
            (self.root.join(format!("{WRITING}{MANIFEST}")), self.root.join(MANIFEST));
        let write = |out: &mut dyn Write| {
            let mut lines = self.kept.entries().filter_map(|entry| self.lines.get(&entry.name));
            lines.try_for_each(|line| out.write_all(&text(line)))
        };
        write_whole(&writing, write).map_err(failed(&writing))?;
        fs::rename(&writing, &path).map_err(failed(&path))?;
        self.dead_lines = 0;
        self.sync()
    }

    /// Names are on the disk.
    fn sync(&self) -> Result<(), FolderError> {
        let sync = || File::open(&self.root)?.sync_all();
        sync().map_err(failed(&self.root))
    }
}

/// Held while a service writes into this folder.
pub(crate) fn lock(root: &Path) -> Result<FileLock, FolderError> {
    let path = root.join(LOCK);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(failed(&path))?;
    FileLock::try_take(file).map_err(|error| match error {
        fs::TryLockError::WouldBlock => FolderError {
            path: root.to_owned(),
            source: io::Error::other("another whit watch writes here: give each its own folder"),
        },
        fs::TryLockError::Error(source) => FolderError { path, source },
    })
}

/// The bytes are on the disk when it comes back.
fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 16, File::create(path)?);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

fn text(line: &Line) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}

/// The last line may be half of one.
fn read_manifest(path: &Path) -> BTreeMap<String, Line> {
    let Ok(file) = File::open(path) else { return BTreeMap::new() };
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    let lines = lines.filter_map(|line| serde_json::from_slice::<Line>(&line).ok());
    lines.map(|line| (line.file.clone(), line)).collect()
}

fn time(seconds: f64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds.clamp(0.0, 1e11))
}

pub(crate) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// `20261126T021530Z`.
fn utc_stamp(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let second = seconds % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{:02}{day:02}T{hour:02}{minute:02}{second:02}Z", month + 1)
}

#[cfg(test)]
mod tests;
