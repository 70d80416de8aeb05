//! Writes that run while the caller goes on, through `io_uring(7)`.
//!
//! A buffer is given away with its write and comes back with the result, so that nobody touches
//! it meanwhile. The kernel's own workers do the writing (`IOSQE_ASYNC`): writing into the page
//! cache takes several times as long as filling a buffer, and would otherwise be done within the
//! submitting system call.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::{IoUring, opcode, squeue, types};

/// A buffer for writes, filled from its start.
pub struct WriteBuffer {
    /// On the heap: the bytes stay where they are while the buffer is moved.
    bytes: Box<[u8]>,
    used: usize,
}

impl WriteBuffer {
    /// An empty buffer. Its memory is touched now, so that it lies on the NUMA node of the CPU
    /// that the calling thread runs on.
    pub fn new(size_bytes: usize) -> WriteBuffer {
        let mut bytes = vec![0u8; size_bytes].into_boxed_slice();
        for page in bytes.chunks_mut(crate::system::page_size()) {
            page[0] = std::hint::black_box(0);
        }
        WriteBuffer { bytes, used: 0 }
    }

    /// Its contents.
    pub fn used(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Free space.
    pub fn free(&mut self) -> &mut [u8] {
        &mut self.bytes[self.used..]
    }

    /// Bytes that still fit.
    pub fn free_bytes(&self) -> usize {
        self.bytes.len() - self.used
    }

    /// Says that `size` more bytes at the start of [`Self::free`] have been filled.
    ///
    /// # Panics
    /// Where there is less free.
    pub fn fill(&mut self, size: usize) {
        assert!(size <= self.free_bytes(), "a buffer holds what fits");
        self.used += size;
    }

    /// Appends bytes.
    ///
    /// # Panics
    /// Where they do not fit.
    pub fn push(&mut self, bytes: &[u8]) {
        self.free()[..bytes.len()].copy_from_slice(bytes);
        self.fill(bytes.len());
    }

    /// Bytes that it holds, to be changed.
    pub fn used_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.used]
    }

    /// Forgets what lies behind the first `size` bytes.
    pub fn truncate(&mut self, size: usize) {
        self.used = self.used.min(size);
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

impl std::fmt::Debug for WriteBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WriteBuffer({} of {} bytes)", self.used, self.bytes.len())
    }
}

/// A write that has ended.
#[derive(Debug)]
pub struct Completion<T> {
    /// The buffer that was given away.
    pub buffer: WriteBuffer,
    /// Value that the caller attached to the write.
    pub tag: T,
    /// Where in the file it was to go.
    pub offset: u64,
    /// How many of its bytes were written; fewer than all is for the caller to continue.
    pub result: io::Result<usize>,
}

struct InFlight<T> {
    buffer: WriteBuffer,
    tag: T,
    offset: u64,
    /// Keeps the descriptor open.
    _file: Arc<File>,
}

/// A queue of writes.
pub struct AsyncWriter<T> {
    uring: IoUring,
    in_flight: Vec<Option<InFlight<T>>>,
}

impl<T> std::fmt::Debug for AsyncWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AsyncWriter({} of {} in flight)", self.nr_in_flight(), self.in_flight.len())
    }
}

impl<T> AsyncWriter<T> {
    /// A queue for up to `depth` writes at once. Fails where the kernel has no `io_uring`, or a
    /// sandbox or `kernel.io_uring_disabled` forbids it.
    pub fn new(depth: u32) -> io::Result<AsyncWriter<T>> {
        let uring = IoUring::new(depth.max(1).next_power_of_two())?;
        let mut probe = io_uring::Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Write::CODE) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let in_flight = (0..depth.max(1)).map(|_| None).collect();
        Ok(AsyncWriter { uring, in_flight })
    }

    /// Number of writes that have not been given back.
    pub fn nr_in_flight(&self) -> usize {
        self.in_flight.iter().flatten().count()
    }

    /// Whether another write can be started without waiting.
    pub fn has_room(&self) -> bool {
        self.in_flight.iter().any(Option::is_none)
    }

    /// Starts a write of `buffer` at `offset` of `file`; there must be [room](Self::has_room).
    /// After an error the buffer does not come back.
    pub fn submit(
        &mut self,
        file: &Arc<File>,
        offset: u64,
        buffer: WriteBuffer,
        tag: T,
    ) -> io::Result<()> {
        let free = self.in_flight.iter().position(Option::is_none);
        let slot = free.ok_or(io::ErrorKind::WouldBlock)?;
        let bytes = buffer.used();
        let size = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let entry = opcode::Write::new(types::Fd(file.as_raw_fd()), bytes.as_ptr(), size)
            .offset(offset)
            .build()
            .flags(squeue::Flags::ASYNC)
            .user_data(slot as u64);
        self.in_flight[slot] = Some(InFlight { buffer, tag, offset, _file: file.clone() });
        // SAFETY: the bytes and the descriptor live in `in_flight[slot]`, which is emptied only
        // when the completion has come; `drop` waits for it, or leaks them.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        if pushed.is_err() {
            self.in_flight[slot] = None;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match self.uring.submit() {
            // Transient errors leave the entry queued: it goes with the next call.
            Err(error) if !is_transient(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes a write that has ended, without waiting.
    pub fn try_complete(&mut self) -> Option<Completion<T>> {
        let entry = self.uring.completion().next()?;
        let slot = entry.user_data() as usize;
        let InFlight { buffer, tag, offset, .. } = self.in_flight.get_mut(slot)?.take()?;
        let result = match entry.result() {
            size if size >= 0 => Ok(size as usize),
            errno => Err(io::Error::from_raw_os_error(-errno)),
        };
        Some(Completion { buffer, tag, offset, result })
    }

    /// Waits for a write to end. `None` when none is under way.
    pub fn complete(&mut self) -> io::Result<Option<Completion<T>>> {
        loop {
            if let Some(completion) = self.try_complete() {
                return Ok(Some(completion));
            }
            if self.nr_in_flight() == 0 {
                return Ok(None);
            }
            match self.uring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<T> Drop for AsyncWriter<T> {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.complete() {}
        // Where waiting failed the kernel may still read the buffers: they are never freed.
        for in_flight in self.in_flight.drain(..).flatten() {
            std::mem::forget(in_flight);
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
        || error.raw_os_error() == Some(libc::EBUSY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn filled(byte: u8, size: usize) -> WriteBuffer {
        let mut buffer = WriteBuffer::new(size + 1);
        buffer.push(&vec![byte; size]);
        buffer
    }

    fn writer(depth: u32) -> Option<AsyncWriter<u8>> {
        if let Err(whit_testing::Skip(reason)) = whit_testing::probe::io_uring() {
            whit_testing::skip("whit-sys io_uring", &reason);
            return None;
        }
        Some(AsyncWriter::new(depth).expect("the kernel gives an io_uring"))
    }

    #[test]
    fn buffers_come_back_and_their_bytes_are_in_the_file() {
        let Some(mut writer) = writer(3) else { return };
        let file = Arc::new(tempfile::tempfile().unwrap());
        let mut back = Vec::new();
        for index in 0..32u8 {
            if !writer.has_room() {
                back.push(writer.complete().unwrap().unwrap());
            }
            writer.submit(&file, u64::from(index) * 4096, filled(index, 4096), index).unwrap();
            assert!(writer.nr_in_flight() <= 3);
        }
        while let Some(completion) = writer.complete().unwrap() {
            back.push(completion);
        }
        assert_eq!(back.len(), 32);
        for completion in back {
            assert_eq!(completion.result.unwrap(), 4096);
            assert_eq!(completion.offset, u64::from(completion.tag) * 4096);
            let mut bytes = vec![0; 4096];
            file.read_exact_at(&mut bytes, completion.offset).unwrap();
            assert_eq!(bytes, completion.buffer.used());
            assert_eq!(bytes[0], completion.tag);
        }
        assert!(writer.try_complete().is_none());
    }

    #[test]
    fn errors_come_back_with_the_buffer() {
        let Some(mut writer) = writer(1) else { return };
        let read_only = Arc::new(File::open("/dev/null").unwrap());
        writer.submit(&read_only, 0, filled(1, 10), 0).unwrap();
        assert!(!writer.has_room());
        assert!(writer.submit(&read_only, 0, filled(1, 10), 0).is_err(), "one at a time");
        let completion = writer.complete().unwrap().unwrap();
        assert_eq!(completion.result.unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(completion.buffer.used(), [1; 10]);
    }

    #[test]
    fn dropping_waits_for_writes_under_way() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let Some(mut writer) = writer(4) else { return };
        (0..4).for_each(|i| writer.submit(&file, i << 20, filled(7, 1 << 20), 0).unwrap());
        drop(writer);
        assert_eq!(file.metadata().unwrap().len(), 4 << 20);
    }
}
