//! Asynchronous writes without `io_uring`, and for pipes: a thread that writes.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::{io, thread};

use whit_sys::affinity;
use whit_types::CpuId;

use super::blocks::{Block, Written};
use super::file::StreamFile;

struct Job {
    file: StreamFile,
    offset: u64,
    block: Block,
}

/// Writes blocks one after the other.
#[derive(Debug)]
pub(super) struct WriterThread {
    jobs: Option<SyncSender<Job>>,
    done: Receiver<Written>,
    in_flight: usize,
    depth: usize,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    /// For up to `depth` blocks at once. The thread runs on any of `cpus`: it must not compete
    /// with the reader for the one CPU that the reader may be pinned to.
    pub(super) fn start(depth: usize, cpus: Vec<CpuId>) -> io::Result<WriterThread> {
        let (jobs, todo) = sync_channel::<Job>(depth);
        let (report, done) = sync_channel(depth);
        let work = move || {
            // A refusal leaves it where its reader runs.
            let _ = affinity::set(0, &cpus);
            for job in todo {
                let ring_slices = [job.block.buffer.used(), &[]];
                let result = job.file.write(job.offset, ring_slices);
                if report.send(Written { offset: job.offset, block: job.block, result }).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("whit-writer".into()).spawn(work)?;
        Ok(WriterThread { jobs: Some(jobs), done, in_flight: 0, depth, thread: Some(thread) })
    }

    pub(super) fn has_room(&self) -> bool {
        self.in_flight < self.depth
    }

    pub(super) fn submit(
        &mut self,
        file: &StreamFile,
        offset: u64,
        block: Block,
    ) -> io::Result<()> {
        let gone = || io::Error::other("the writer thread has ended");
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(Job { file: file.clone(), offset, block }).map_err(|_| gone())?;
        self.in_flight += 1;
        Ok(())
    }

    pub(super) fn try_complete(&mut self) -> Option<Written> {
        let written = self.done.try_recv().ok()?;
        self.in_flight -= 1;
        Some(written)
    }

    pub(super) fn complete(&mut self) -> io::Result<Option<Written>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        let gone = |_| io::Error::other("the writer thread has ended");
        let written = self.done.recv().map_err(gone)?;
        self.in_flight -= 1;
        Ok(Some(written))
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It ends when the queue is empty; it has nothing to panic over.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Tally;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;
    use whit_sys::WriteBuffer;

    #[test]
    fn blocks_are_written_in_order_and_come_back() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let mut stream = StreamFile::seekable(file.clone(), 0);
        let mut writer = WriterThread::start(2, vec![CpuId(0)]).unwrap();
        for index in 0..10u8 {
            if !writer.has_room() {
                writer.complete().unwrap().unwrap().result.unwrap();
            }
            let mut block = Block { buffer: WriteBuffer::new(16), tally: Tally::default() };
            block.buffer.push(&[index; 16]);
            let offset = stream.reserve(16);
            writer.submit(&stream, offset, block).unwrap();
        }
        while let Some(written) = writer.complete().unwrap() {
            written.result.unwrap();
        }
        let mut bytes = [0; 160];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes.iter().enumerate().all(|(at, byte)| at / 16 == usize::from(*byte)));
    }
}
