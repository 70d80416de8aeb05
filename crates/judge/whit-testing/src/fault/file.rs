//! A file that fails as disks do.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The ways in which writes fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The file holds this many bytes; writes behind them fail with this errno.
    pub full_at: Option<(u64, i32)>,
    /// No call writes more than this.
    pub most_bytes: Option<usize>,
    /// Each call whose number is a multiple of this is interrupted, and writes nothing.
    pub interrupt_each: Option<u64>,
}

/// A file with faults. Any thread may write it.
#[derive(Debug)]
pub struct FaultyFile {
    file: File,
    faults: Faults,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    /// Bytes that were appended.
    appended: u64,
    is_stalled: bool,
    /// Calls that wait for the stall to end.
    waiting: usize,
}

impl FaultyFile {
    /// Writes into `file`, as far as the faults let it.
    pub fn new(file: File, faults: Faults) -> FaultyFile {
        FaultyFile { file, faults, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Writes some of both pieces at `offset`, or fails.
    pub fn write_at(&self, offset: u64, [front, back]: [&[u8]; 2]) -> io::Result<usize> {
        let mut state = self.begin();
        let number = state.calls;
        state.calls += 1;
        if self.faults.interrupt_each.is_some_and(|each| number.is_multiple_of(each)) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut room = self.faults.most_bytes.unwrap_or(usize::MAX);
        if let Some((size, errno)) = self.faults.full_at {
            let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
            if left == 0 && !(front.is_empty() && back.is_empty()) {
                return Err(io::Error::from_raw_os_error(errno));
            }
            room = room.min(left);
        }
        let front = &front[..front.len().min(room)];
        let back = &back[..back.len().min(room - front.len())];
        self.file.write_all_at(front, offset)?;
        self.file.write_all_at(back, offset + front.len() as u64)?;
        Ok(front.len() + back.len())
    }

    /// The same behind everything that was appended before.
    pub fn append(&self, pieces: [&[u8]; 2]) -> io::Result<usize> {
        let offset = self.lock().appended;
        let written = self.write_at(offset, pieces)?;
        self.lock().appended += written as u64;
        Ok(written)
    }

    /// Cuts the file, or fills it with zeros.
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// The next writes wait until [`FaultyFile::resume`].
    pub fn stall(&self) {
        self.lock().is_stalled = true;
    }

    /// Lets all writes go on.
    pub fn resume(&self) {
        self.lock().is_stalled = false;
        self.changed.notify_all();
    }

    /// Waits until a write waits.
    pub fn wait_for_stalled_write(&self) {
        let state = self.lock();
        let waits = |state: &mut State| state.waiting == 0;
        drop(self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner));
    }

    /// The bytes that were written so far.
    pub fn contents(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.file.metadata()?.len()).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Waits while writes are stalled.
    fn begin(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if !state.is_stalled {
            return state;
        }
        state.waiting += 1;
        self.changed.notify_all();
        let stalled = |state: &mut State| state.is_stalled;
        let mut state =
            self.changed.wait_while(state, stalled).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counters are whole after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn file(faults: Faults) -> FaultyFile {
        FaultyFile::new(tempfile::tempfile().unwrap(), faults)
    }

    #[test]
    fn a_full_file_takes_what_fits_and_then_nothing() {
        let file = file(Faults { full_at: Some((7, libc::ENOSPC)), ..Faults::default() });
        assert_eq!(file.write_at(0, [b"four", b"more"]).unwrap(), 7);
        let error = file.write_at(7, [b"x", b""]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.write_at(2, [b"UR", b""]).unwrap(), 2);
        assert_eq!(file.contents().unwrap(), b"foURmor");
        file.set_len(3).unwrap();
        assert_eq!((file.contents().unwrap(), file.calls()), (b"foU".to_vec(), 3));
    }

    #[test]
    fn calls_are_short_and_interrupted_as_ordered() {
        let faults = Faults { most_bytes: Some(3), interrupt_each: Some(2), ..Faults::default() };
        let file = file(faults);
        let interrupted = |result: io::Result<usize>| {
            result.is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
        };
        assert!(interrupted(file.append([b"ab", b"cd"])));
        assert_eq!(file.append([b"ab", b"cd"]).unwrap(), 3);
        assert!(interrupted(file.append([b"d", b""])));
        assert_eq!(file.append([b"d", b""]).unwrap(), 1);
        assert_eq!(file.contents().unwrap(), b"abcd");
    }

    #[test]
    fn a_stalled_write_waits() {
        let file = Arc::new(file(Faults::default()));
        file.stall();
        let writer = std::thread::spawn({
            let file = file.clone();
            move || file.append([b"late", b""]).unwrap()
        });
        file.wait_for_stalled_write();
        assert!(file.contents().unwrap().is_empty());
        file.resume();
        assert_eq!(writer.join().unwrap(), 4);
        assert_eq!(file.contents().unwrap(), b"late");
    }
}
