//! Parts of a file, written by several threads at the same time and put together in order.
//!
//! The parts go to the threads in turn. A thread that is ahead keeps its bytes in a bounded channel: the file is the same
//! with any number of threads, and memory does not grow with it.

use crate::ExportError;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Bytes that go from thread to thread together.
const BLOCK_BYTES: usize = 1 << 17;

/// Blocks that may wait for the parts before them: 8 MiB for each thread.
const MAX_WAITING_BLOCKS: usize = 64;

/// Bytes of a part, or its end.
enum Piece {
    Block(Vec<u8>),
    End(Result<(), ExportError>),
}

/// The output of one thread.
struct Blocks {
    pieces: SyncSender<Piece>,
    /// Blocks to be filled again.
    spare: Receiver<Vec<u8>>,
    block: Vec<u8>,
}

/// Where one thread's parts arrive.
struct Line {
    pieces: Receiver<Piece>,
    spare: Sender<Vec<u8>>,
}

/// The output has an error, which ends the threads.
fn nobody_takes() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Blocks {
    fn hand_over(&mut self) -> io::Result<()> {
        let mut next = self.spare.try_recv().unwrap_or_default();
        next.clear();
        let full = std::mem::replace(&mut self.block, next);
        self.pieces.send(Piece::Block(full)).map_err(|_| nobody_takes())
    }

    /// Ends a part. False where nobody takes another.
    fn end(&mut self, written: Result<(), ExportError>) -> bool {
        let has_rest = written.is_ok() && !self.block.is_empty();
        let written = if has_rest { self.hand_over().map_err(Into::into) } else { written };
        self.pieces.send(Piece::End(written)).is_ok()
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() + bytes.len() > BLOCK_BYTES && !self.block.is_empty() {
            self.hand_over()?;
        }
        self.block.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Line {
    fn copy_part(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        loop {
            match self.pieces.recv() {
                Ok(Piece::Block(block)) => {
                    out.write_all(&block)?;
                    _ = self.spare.send(block);
                }
                Ok(Piece::End(written)) => return written,
                Err(_) => {
                    return Err(io::Error::other("a writing thread ended unexpectedly").into());
                }
            }
        }
    }
}

/// Writes parts in order, each by a call of `write`, on so many threads.
pub(crate) fn write_parts<P: Sync>(
    threads: usize,
    parts: &[P],
    write: impl Fn(&P, &mut dyn Write) -> Result<(), ExportError> + Sync,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let threads = threads.min(parts.len());
    if threads <= 1 {
        return parts.iter().try_for_each(|part| write(part, out));
    }
    let write = &write;
    std::thread::scope(|scope| {
        let start = |number: usize| {
            let (to_line, pieces) = sync_channel(MAX_WAITING_BLOCKS);
            let (spare, from_line) = channel();
            let mut blocks = Blocks { pieces: to_line, spare: from_line, block: Vec::new() };
            let own = parts.iter().skip(number).step_by(threads);
            scope.spawn(move || {
                for part in own {
                    let written = write(part, &mut blocks);
                    if !blocks.end(written) {
                        break;
                    }
                }
            });
            Line { pieces, spare }
        };
        let lines: Vec<_> = (0..threads).map(start).collect();
        let in_turn = lines.iter().cycle().take(parts.len());
        for line in in_turn {
            line.copy_part(out)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(part: &usize, out: &mut dyn Write) -> Result<(), ExportError> {
        // Parts of no bytes, of few, of a block, and of more than may wait.
        let lines = [0, 1, 3, 9_000, 1_000_000][part % 5];
        for line in 0..lines {
            writeln!(out, "part {part} {line}")?;
        }
        Ok(())
    }

    #[test]
    fn parts_stand_in_order_on_any_number_of_threads() {
        let parts: Vec<usize> = (0..12).collect();
        let mut one = Vec::new();
        write_parts(1, &parts, text, &mut one).unwrap();
        assert!(one.len() > 2 * MAX_WAITING_BLOCKS * BLOCK_BYTES);
        for threads in [2, 3, 40] {
            let mut all = Vec::new();
            write_parts(threads, &parts, text, &mut all).unwrap();
            assert!(all == one, "{threads} threads");
        }
        let mut nothing = Vec::new();
        write_parts(4, &[], text, &mut nothing).unwrap();
        assert!(nothing.is_empty());
    }

    #[test]
    fn an_error_of_a_part_or_of_the_output_ends_all() {
        let parts: Vec<usize> = (0..200).collect();
        let fails_at_7 = |part: &usize, out: &mut dyn Write| match part {
            7 => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
            _ => Ok(writeln!(out, "part {part}")?),
        };
        let mut written = Vec::new();
        let failed = write_parts(3, &parts, fails_at_7, &mut written);
        assert!(
            matches!(failed, Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::InvalidData)
        );
        assert_eq!(String::from_utf8(written).unwrap().lines().last(), Some("part 6"));

        /// A disk with some room.
        struct Small(usize);
        impl Write for Small {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let failed = write_parts(3, &parts, text, &mut Small(1 << 20));
        assert!(
            matches!(failed, Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::StorageFull)
        );
    }
}
