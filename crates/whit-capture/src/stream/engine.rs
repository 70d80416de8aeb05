//! The writers of blocks: `io_uring`, or a thread.

use std::io;

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
        file: StreamFile,
    },
    Thread(WriterThread),
}

impl Engine {
    /// Asynchronous writes of up to `depth` blocks at once. Pipes have to be written in order, which
    /// a thread does.
    pub(super) fn asynchronous(
        depth: usize,
        file: &StreamFile,
        cpus: &[CpuId],
    ) -> io::Result<(Engine, AsyncEngine)> {
        if !file.is_pipe()
            && let Ok(writer) = AsyncWriter::new(depth as u32)
        {
            let engine = Engine::IoUring { writer: Box::new(writer), file: file.clone() };
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
        file: &StreamFile,
        offset: u64,
        block: Block,
    ) -> io::Result<()> {
        match self {
            Engine::Direct(written) => {
                let result = file.write(offset, [block.buffer.used(), &[]]);
                *written = Some(Written { offset, block, result });
                Ok(())
            }
            Engine::IoUring { writer, .. } => {
                writer.submit(file.file(), offset, block.buffer, block.tally)
            }
            Engine::Thread(thread) => thread.submit(file, offset, block),
        }
    }

    /// A write that has ended, without waiting.
    pub(super) fn try_complete(&mut self) -> Option<Written> {
        match self {
            Engine::Direct(written) => written.take(),
            Engine::IoUring { writer, file } => {
                writer.try_complete().map(|done| written(done, file))
            }
            Engine::Thread(thread) => thread.try_complete(),
        }
    }

    /// Waits for a write to end; `None` when none is under way.
    pub(super) fn complete(&mut self) -> io::Result<Option<Written>> {
        match self {
            Engine::Direct(written) => Ok(written.take()),
            Engine::IoUring { writer, file } => {
                Ok(writer.complete()?.map(|done| written(done, file)))
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
