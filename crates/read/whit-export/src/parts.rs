//! Parts of a file, written by several threads at the same time and put together in order.
//!
//! The parts go to the threads in turn. A thread that is ahead keeps its bytes in a bounded channel: the file is the same
//! with any number of threads, and memory does not grow with it.

use crate::ExportError;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes that go from thread to thread together, and more by the last write: a buffered output writes so many at once.
const BLOCK_BYTES: usize = 1 << 18;

/// Room for most last writes.
const BLOCK_ROOM_BYTES: usize = BLOCK_BYTES + (1 << 12);

/// Blocks that may wait for the parts before them: 8 MiB for each thread.
const MAX_WAITING_BLOCKS: usize = 32;

/// Bytes of a part, or its end.
enum Piece {
    Block(Vec<u8>),
    End(Result<(), ExportError>),
}

/// Blocks to be filled again.
#[derive(Default)]
struct Spare(Mutex<Vec<Vec<u8>>>);

/// The output of one thread.
struct Blocks<'s> {
    pieces: SyncSender<Piece>,
    spare: &'s Spare,
    block: Vec<u8>,
}

/// The output has an error, which ends the threads.
fn no_receiver() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Spare {
    fn block(&self) -> Vec<u8> {
        let spare = self.0.lock().ok().and_then(|mut blocks| blocks.pop());
        spare.unwrap_or_else(|| Vec::with_capacity(BLOCK_ROOM_BYTES))
    }

    fn give_back(&self, mut block: Vec<u8>) {
        block.clear();
        if let Ok(mut blocks) = self.0.lock() {
            blocks.push(block);
        }
    }
}

impl Blocks<'_> {
    fn hand_over(&mut self) -> io::Result<()> {
        let full = std::mem::replace(&mut self.block, self.spare.block());
        self.pieces.send(Piece::Block(full)).map_err(|_| no_receiver())
    }

    /// Ends a part. False where no receiver takes another.
    fn end(&mut self, written: Result<(), ExportError>) -> bool {
        let has_rest = written.is_ok() && !self.block.is_empty();
        let written = if has_rest { self.hand_over().map_err(Into::into) } else { written };
        self.pieces.send(Piece::End(written)).is_ok()
    }
}

impl Write for Blocks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.extend_from_slice(bytes);
        if self.block.len() >= BLOCK_BYTES {
            self.hand_over()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the next part of a thread.
fn copy_part(
    pieces: &Receiver<Piece>,
    spare: &Spare,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    loop {
        match pieces.recv() {
            Ok(Piece::Block(block)) => {
                out.write_all(&block)?;
                spare.give_back(block);
            }
            Ok(Piece::End(written)) => return written,
            Err(_) => return Err(io::Error::other("a writing thread ended unexpectedly").into()),
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
    let (write, spare) = (&write, &Spare::default());
    std::thread::scope(|scope| {
        let start = |number: usize| {
            let (sender, pieces) = sync_channel(MAX_WAITING_BLOCKS);
            let mut blocks = Blocks { pieces: sender, spare, block: spare.block() };
            let own = parts.iter().skip(number).step_by(threads);
            scope.spawn(move || {
                for part in own {
                    let written = write(part, &mut blocks);
                    if !blocks.end(written) {
                        break;
                    }
                }
            });
            pieces
        };
        let lines: Vec<_> = (0..threads).map(start).collect();
        let mut in_turn = lines.iter().cycle().take(parts.len());
        in_turn.try_for_each(|pieces| copy_part(pieces, spare, out))
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
    fn parts_are_in_order_on_any_number_of_threads() {
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
