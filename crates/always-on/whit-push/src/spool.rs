//! Windows that wait for a receiver: files of a directory, and some memory for when the disk takes none.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whit_sys::FileLock;

use crate::parcel::Parcel;
use crate::settings::{Kind, SpoolSettings};
use crate::status::{Amount, Dropped};

#[cfg(test)]
mod tests;

/// The end of the name of a file that is whole.
const WHOLE: &str = ".window";
/// The beginning of the name of a file that is being written.
const PARTIAL: &str = ".partial-";
/// Requests over one window over which the receiver fails, before the window is dropped.
const FAILURES_MAX: u32 = 8;

/// A moment by both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Now {
    pub(crate) unix_ms: u64,
    /// By a clock that is never set.
    pub(crate) steady_ms: u64,
}

/// Why a spool cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The operating system refused.
    #[error("cannot use the spool {path}: {source}; name a directory that may be written")]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// Another process has it.
    #[error("the spool {0} is in use by another process: end that one, or name another directory")]
    InUse(PathBuf),
}

enum Place {
    Disk(PathBuf),
    Memory(Arc<Parcel>),
}

struct Entry {
    number: u64,
    place: Place,
    bytes: u64,
    /// When it came, by the steady clock; before the process began for those that were found.
    born_ms: i64,
    failures: u32,
    /// Windows that the receiver had taken at the first failure over this one.
    taken_before: u64,
}

impl Entry {
    fn new(number: u64, place: Place, bytes: u64, born_ms: i64) -> Entry {
        Entry { number, place, bytes, born_ms, failures: 0, taken_before: 0 }
    }
}

/// The windows of one destination, the oldest first.
pub(crate) struct Spool {
    folder: PathBuf,
    kind: Kind,
    bounds: SpoolSettings,
    entries: VecDeque<Entry>,
    next_number: u64,
    waiting: Amount,
    in_memory: Amount,
    dropped: Dropped,
    /// Windows that the receiver took.
    taken: u64,
    /// Held as long as the spool is used.
    lock: Option<FileLock>,
    is_closed: bool,
    disk_error: Option<String>,
}

impl Spool {
    /// Takes up what an earlier process left. A disk that is full is no reason to fail: windows wait in memory then.
    pub(crate) fn open(
        folder: &Path,
        kind: Kind,
        bounds: SpoolSettings,
        now: Now,
    ) -> Result<Spool, SpoolError> {
        let mut spool = Spool {
            folder: folder.to_owned(),
            kind,
            bounds,
            entries: VecDeque::new(),
            next_number: 1,
            waiting: Amount::default(),
            in_memory: Amount::default(),
            dropped: Dropped::default(),
            taken: 0,
            lock: None,
            is_closed: false,
            disk_error: None,
        };
        match spool.take_folder() {
            Err(SpoolError::Io { source, .. }) if is_full(&source) => {
                spool.disk_error = Some(source.to_string());
            }
            taken => {
                taken?;
                spool
                    .find(now)
                    .map_err(|source| SpoolError::Io { path: folder.to_owned(), source })?;
                spool.enforce(0, now);
            }
        }
        Ok(spool)
    }

    fn take_folder(&mut self) -> Result<(), SpoolError> {
        let path = self.folder.clone();
        let error = |source| SpoolError::Io { path: path.clone(), source };
        // Names of processes and functions are nobody else's.
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&path).map_err(error)?;
        match FileLock::try_take(File::open(&path).map_err(error)?) {
            Ok(lock) => self.lock = Some(lock),
            Err(TryLockError::WouldBlock) => return Err(SpoolError::InUse(path)),
            Err(TryLockError::Error(source)) => return Err(error(source)),
        }
        Ok(())
    }

    fn find(&mut self, now: Now) -> io::Result<()> {
        let mut found = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let file = file?;
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(PARTIAL) {
                // A process was killed while it wrote it.
                let _ = fs::remove_file(file.path());
            } else if let Some((unix_ms, number)) = parse_name(name) {
                found.push((number, unix_ms, file.path(), file.metadata()?.len()));
            }
        }
        found.sort();
        for (number, unix_ms, path, bytes) in found {
            // A clock that was set back makes no window older.
            let age_ms = now.unix_ms.saturating_sub(unix_ms);
            let born_ms =
                i64::try_from(now.steady_ms).unwrap_or(i64::MAX).saturating_sub_unsigned(age_ms);
            self.next_number = number + 1;
            self.push(Entry::new(number, Place::Disk(path), bytes, born_ms));
        }
        Ok(())
    }

    /// Adds a window; the oldest ones make room for it.
    pub(crate) fn put(&mut self, parcel: Parcel, now: Now) {
        let bytes = parcel.to_file();
        let size = bytes.len() as u64;
        if size > self.bounds.max_bytes.0 {
            self.dropped.too_large.add(size);
            return;
        }
        self.enforce(size, now);
        let number = self.next_number;
        self.next_number += 1;
        let place = match self.write(&bytes, number, now) {
            Ok(path) => {
                self.disk_error = None;
                Place::Disk(path)
            }
            Err(error) => {
                self.disk_error =
                    Some(format!("cannot write to the spool {}: {error}", self.folder.display()));
                Place::Memory(Arc::new(parcel))
            }
        };
        let born_ms = i64::try_from(now.steady_ms).unwrap_or(i64::MAX);
        self.push(Entry::new(number, place, size, born_ms));
        self.bound_memory();
    }

    /// Also into a directory that somebody has removed meanwhile.
    fn write(&mut self, bytes: &[u8], number: u64, now: Now) -> io::Result<PathBuf> {
        if self.lock.is_some() {
            match self.write_once(bytes, number, now) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                written => return written,
            }
        }
        self.take_folder().map_err(io::Error::other)?;
        self.write_once(bytes, number, now)
    }

    /// The file gets its name when it is whole and on the disk.
    fn write_once(&self, bytes: &[u8], number: u64, now: Now) -> io::Result<PathBuf> {
        let mut file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(&self.folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_data()?;
        let path = self.folder.join(file_name(now.unix_ms, number));
        file.persist(&path).map_err(|error| error.error)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(path)
    }

    fn push(&mut self, entry: Entry) {
        self.waiting.add(entry.bytes);
        if matches!(entry.place, Place::Memory(_)) {
            self.in_memory.add(entry.bytes);
        }
        self.entries.push_back(entry);
    }

    /// Lets old windows go, and as many of the oldest as `coming` bytes need.
    fn enforce(&mut self, coming: u64, now: Now) {
        let max_age_ms = i64::try_from(self.bounds.max_age.0.as_millis()).unwrap_or(i64::MAX);
        let now_ms = i64::try_from(now.steady_ms).unwrap_or(i64::MAX);
        while let Some(bytes) = self.oldest(|it| now_ms.saturating_sub(it.born_ms) >= max_age_ms) {
            self.dropped.too_old.add(bytes);
        }
        while self.waiting.bytes.saturating_add(coming) > self.bounds.max_bytes.0 {
            let Some(bytes) = self.oldest(|_| true) else { break };
            self.dropped.spool_full.add(bytes);
        }
    }

    /// Takes the oldest window out if it is so.
    fn oldest(&mut self, is_so: impl FnOnce(&Entry) -> bool) -> Option<u64> {
        let number = self.entries.front().filter(|entry| is_so(entry))?.number;
        self.remove(number)
    }

    fn bound_memory(&mut self) {
        while self.in_memory.bytes > self.bounds.max_memory.0 {
            let oldest = self.entries.iter().find(|entry| matches!(entry.place, Place::Memory(_)));
            let Some(bytes) = oldest.map(|entry| entry.number).and_then(|it| self.remove(it))
            else {
                break;
            };
            self.dropped.memory_full.add(bytes);
        }
    }

    /// Takes a window out; gives its bytes.
    fn remove(&mut self, number: u64) -> Option<u64> {
        let at = self.entries.iter().position(|entry| entry.number == number)?;
        let entry = self.entries.remove(at)?;
        self.waiting.remove(entry.bytes);
        match entry.place {
            Place::Memory(_) => self.in_memory.remove(entry.bytes),
            // A file that stays is sent once more after the next start.
            Place::Disk(path) => _ = fs::remove_file(path),
        }
        Some(entry.bytes)
    }

    /// The window whose turn it is, with its number: the oldest of those over which the receiver failed least often.
    pub(crate) fn next(&mut self, now: Now) -> Option<(u64, Arc<Parcel>)> {
        if self.is_closed {
            return None;
        }
        self.enforce(0, now);
        loop {
            let entry = self.entries.iter().min_by_key(|entry| (entry.failures, entry.number))?;
            let (number, kind) = (entry.number, self.kind);
            let parcel = match &entry.place {
                Place::Memory(parcel) => Some(parcel.clone()),
                Place::Disk(path) => {
                    let bytes = fs::read(path).unwrap_or_default();
                    Parcel::from_file(kind, &bytes).map(Arc::new)
                }
            };
            match parcel {
                Some(parcel) => return Some((number, parcel)),
                None => {
                    let bytes = self.remove(number).unwrap_or(0);
                    self.dropped.damaged.add(bytes);
                }
            }
        }
    }

    /// The receiver has it; gives its bytes.
    pub(crate) fn taken(&mut self, number: u64) -> Option<u64> {
        self.taken += 1;
        if self.is_closed { None } else { self.remove(number) }
    }

    /// The receiver will never take it.
    pub(crate) fn refused(&mut self, number: u64) {
        let bytes = if self.is_closed { None } else { self.remove(number) };
        if let Some(bytes) = bytes {
            self.dropped.refused.add(bytes);
        }
    }

    /// The receiver failed over it: others come first. It goes after several failures, if others were taken meanwhile:
    /// a receiver that fails over all windows is broken, and not one of them is the reason.
    pub(crate) fn failed(&mut self, number: u64) {
        let taken = self.taken;
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) else {
            return;
        };
        if entry.failures == 0 {
            entry.taken_before = taken;
        }
        entry.failures = entry.failures.saturating_add(1);
        let is_its_fault = entry.failures >= FAILURES_MAX && taken > entry.taken_before;
        if is_its_fault
            && !self.is_closed
            && let Some(bytes) = self.remove(number)
        {
            self.dropped.failed.add(bytes);
        }
    }

    pub(crate) fn not_encoded(&mut self) {
        self.dropped.not_encoded += 1;
    }

    /// Gives the directory up. Its windows stay, and those in memory join them if the disk takes them.
    pub(crate) fn close(&mut self, now: Now) {
        for at in 0..self.entries.len() {
            let Place::Memory(parcel) = &self.entries[at].place else { continue };
            let (number, bytes) = (self.entries[at].number, parcel.to_file());
            if let Ok(path) = self.write(&bytes, number, now) {
                self.in_memory.remove(self.entries[at].bytes);
                self.entries[at].place = Place::Disk(path);
            }
        }
        self.is_closed = true;
        self.lock = None;
    }

    pub(crate) fn waiting(&self) -> Amount {
        self.waiting
    }

    pub(crate) fn in_memory(&self) -> Amount {
        self.in_memory
    }

    pub(crate) fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Why the last window is in memory.
    pub(crate) fn disk_error(&self) -> Option<&str> {
        self.disk_error.as_deref()
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn file_name(unix_ms: u64, number: u64) -> String {
    format!("{unix_ms:013}-{number:010}{WHOLE}")
}

fn parse_name(name: &str) -> Option<(u64, u64)> {
    let (unix_ms, number) = name.strip_suffix(WHOLE)?.split_once('-')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = digits(unix_ms) && digits(number);
    is_number.then_some(())?;
    Some((unix_ms.parse().ok()?, number.parse().ok()?))
}
