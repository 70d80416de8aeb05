//! The writers of blocks: `io_uring`, or a thread.

use std::fs::File;
use std::io;
use std::sync::Arc;

use whit_sys::{AsyncWriter, Completion};
use whit_types::CpuId;

use super::blocks::{Block, Written};
use super::file::StreamFile;
use super::writer_thread::WriterThread;
use crate::loss::Tally;

/// How asynchronous writes are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEngine {
    /// By the kernel's workers.
    IoUring,
    /// By a thread of our own.
    Thread,
}

/// Writes blocks.
#[derive(Debug)]
pub(super) enum Engine {
    /// At once.
    Direct(Option<Written>),
    IoUring {
        writer: Box<AsyncWriter<Tally>>,
        file: Arc<File>,
        stream: StreamFile,
    },
    Thread(WriterThread),
}

impl Engine {
    /// Asynchronous writes of up to `depth` blocks at once. Pipes have to be written in order, which
    /// a thread does.
    pub(super) fn asynchronous(
        depth: usize,
        stream: &StreamFile,
        cpus: &[CpuId],
    ) -> io::Result<(Engine, AsyncEngine)> {
        if !stream.is_pipe()
            && let Some(file) = stream.file()
            && let Ok(writer) = AsyncWriter::new(depth as u32)
        {
            let (file, stream) = (file.clone(), stream.clone());
            let engine = Engine::IoUring { writer: Box::new(writer), file, stream };
            return Ok((engine, AsyncEngine::IoUring));
        }
        let thread = WriterThread::start(depth, cpus.to_vec())?;
        Ok((Engine::Thread(thread), AsyncEngine::Thread))
    }

    /// Whether a block can be written without waiting for another.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Engine::Direct(written) => written.is_none(),
            Engine::IoUring { writer, .. } => writer.has_room(),
            Engine::Thread(thread) => thread.has_room(),
        }
    }

    /// Starts a write. An error here means that the engine itself is broken.
    pub(super) fn submit(
        &mut self,
        stream: &StreamFile,
        offset: u64,
        block: Block,
    ) -> io::Result<()> {
        match self {
            Engine::Direct(written) => {
                let result = stream.write(offset, [block.buffer.used(), &[]]);
                *written = Some(Written { offset, block, result });
                Ok(())
            }
            Engine::IoUring { writer, file, .. } => {
                writer.submit(file, offset, block.buffer, block.tally)
            }
            Engine::Thread(thread) => thread.submit(stream, offset, block),
        }
    }

    /// A write that has ended, without waiting.
    pub(super) fn try_complete(&mut self) -> Option<Written> {
        match self {
            Engine::Direct(written) => written.take(),
            Engine::IoUring { writer, stream, .. } => {
                writer.try_complete().map(|done| written(done, stream))
            }
            Engine::Thread(thread) => thread.try_complete(),
        }
    }

    /// Waits for a write to end; `None` when none is under way.
    pub(super) fn complete(&mut self) -> io::Result<Option<Written>> {
        match self {
            Engine::Direct(written) => Ok(written.take()),
            Engine::IoUring { writer, stream, .. } => {
                Ok(writer.complete()?.map(|done| written(done, stream)))
            }
            Engine::Thread(thread) => thread.complete(),
        }
    }
}

/// A write that the kernel did in part is completed here: the next attempt also gives the reason.
fn written(done: Completion<Tally>, file: &StreamFile) -> Written {
    let Completion { buffer, tag, offset, result } = done;
    let size = buffer.used().len();
    let result = match result {
        Ok(all) if all == size => Ok(()),
        Ok(some) => file
            .write(offset + some as u64, [&buffer.used()[some..], &[]])
            .map_err(|(more, error)| (some + more, error)),
        Err(error) if is_transient(&error) => file.write(offset, [buffer.used(), &[]]),
        Err(error) => Err((0, error)),
    };
    Written { offset, block: Block { buffer, tally: tag }, result }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_sys::{Errno, WriteBuffer};
    use whit_testing::fault::{Faults, FaultyFile};

    const BYTES: &[u8] = b"sixteen bytes...";
    const AT: u64 = 4;

    /// Bytes before an error, and its number.
    type Failure = (usize, Option<i32>);

    /// The end of a write that the kernel ended with this result, on a disk with these faults.
    fn after(result: io::Result<usize>, faults: Faults) -> (Result<(), Failure>, Vec<u8>) {
        let disk = Arc::new(FaultyFile::new(tempfile::tempfile().unwrap(), faults));
        let kept = *result.as_ref().unwrap_or(&0);
        disk.write_at(0, [b"head", &BYTES[..kept]]).unwrap();
        let stream = StreamFile::seekable(Arc::new(tempfile::tempfile().unwrap()), 0);
        let mut buffer = WriteBuffer::new(BYTES.len());
        buffer.push(BYTES);
        let done = Completion { buffer, tag: Tally::default(), offset: AT, result };
        let result = written(done, &stream.on(disk.clone())).result;
        let result = result.map_err(|(size, error)| (size, error.raw_os_error()));
        (result, disk.contents().unwrap())
    }

    #[test]
    fn a_short_or_interrupted_write_of_the_kernel_is_completed() {
        let whole = [b"head", BYTES].concat();
        let again = [Errno::INTR, Errno::AGAIN].map(|errno| Err(io::Error::from(errno)));
        for result in again.into_iter().chain([0, 1, 15, 16].map(Ok)) {
            let short = Faults { most_bytes: Some(20), ..Faults::default() };
            assert_eq!(after(result, short), (Ok(()), whole.clone()));
        }
    }

    #[test]
    fn an_error_says_how_much_went_before_it() {
        let full = Faults { full_at: Some((AT + 10, 28)), ..Faults::default() };
        let (result, bytes) = after(Ok(3), full);
        assert_eq!((result, bytes.len()), (Err((10, Some(28))), 14));
        let broken = Err(Errno::IO.into());
        assert_eq!(after(broken, Faults::default()).0, Err((0, Some(Errno::IO.raw_os_error()))));
    }
}
