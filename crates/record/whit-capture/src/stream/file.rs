//! The file of a stream, or the pipe.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Takes the bytes of a stream. Each call may take a part of them, as `write(2)` does.
pub(crate) trait Medium: fmt::Debug + Send + Sync {
    /// Writes both pieces at `offset`.
    fn write_at(&self, offset: u64, pieces: [&[u8]; 2]) -> io::Result<usize>;

    /// Writes both pieces behind everything that was written before.
    fn append(&self, pieces: [&[u8]; 2]) -> io::Result<usize>;

    fn set_len(&self, size_bytes: u64) -> io::Result<()>;

    /// The file, where the kernel can write it by itself.
    fn file(&self) -> Option<&Arc<File>>;
}

impl Medium for Arc<File> {
    fn write_at(&self, offset: u64, [front, back]: [&[u8]; 2]) -> io::Result<usize> {
        if back.is_empty() {
            return FileExt::write_at(&**self, front, offset);
        }
        Ok(rustix::io::pwritev(&**self, &[IoSlice::new(front), IoSlice::new(back)], offset)?)
    }

    fn append(&self, [front, back]: [&[u8]; 2]) -> io::Result<usize> {
        Ok(rustix::io::writev(&**self, &[IoSlice::new(front), IoSlice::new(back)])?)
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        File::set_len(self, size_bytes)
    }

    fn file(&self) -> Option<&Arc<File>> {
        Some(self)
    }
}

/// An output that is written from some position on.
#[derive(Clone, Debug)]
pub struct StreamFile {
    medium: Arc<dyn Medium>,
    position: Position,
}

#[derive(Clone, Debug)]
enum Position {
    /// It can be sought in: every block has its own place.
    Seekable {
        /// Where the stream starts.
        start: u64,
        /// Where the next block goes.
        next: u64,
    },
    /// One block after the other; several readers may share the pipe.
    Pipe(Arc<Mutex<()>>),
}

impl StreamFile {
    /// A file that can be sought in, the stream starting at `start`.
    pub fn seekable(file: Arc<File>, start: u64) -> StreamFile {
        StreamFile { medium: Arc::new(file), position: Position::Seekable { start, next: start } }
    }

    /// A pipe. Clones share it: the bytes of one call stay together.
    pub fn pipe(file: Arc<File>) -> StreamFile {
        StreamFile { medium: Arc::new(file), position: Position::Pipe(Arc::default()) }
    }

    /// The same place in another medium.
    #[cfg(test)]
    pub(crate) fn on(self, medium: Arc<dyn Medium>) -> StreamFile {
        StreamFile { medium, ..self }
    }

    /// The file, where the kernel can write it by itself.
    pub(super) fn file(&self) -> Option<&Arc<File>> {
        self.medium.file()
    }

    pub(super) fn is_pipe(&self) -> bool {
        matches!(self.position, Position::Pipe(_))
    }

    /// Size of the stream; zero for pipes.
    pub fn size_bytes(&self) -> u64 {
        match self.position {
            Position::Seekable { start, next } => next - start,
            Position::Pipe(_) => 0,
        }
    }

    /// Takes the place of the next `size` bytes; zero for pipes.
    pub(super) fn reserve(&mut self, size: usize) -> u64 {
        match &mut self.position {
            Position::Seekable { next, .. } => {
                let offset = *next;
                *next += size as u64;
                offset
            }
            Position::Pipe(_) => 0,
        }
    }

    /// How much of `written` bytes stays when the disk has taken no more: what went into a pipe is
    /// cut by its reader.
    pub(super) fn kept_room(&self, written: usize) -> u64 {
        if self.is_pipe() { 0 } else { written as u64 }
    }

    /// Ends the stream at `end`, after a failed write behind it.
    pub(super) fn cut(&mut self, end: u64) {
        if let Position::Seekable { next, .. } = &mut self.position {
            *next = end;
            // A device cannot be cut. In a file, the bytes behind the end are written over, or lie
            // behind the size that the header states.
            let _ = self.medium.set_len(end);
        }
    }

    /// Writes both pieces at `offset`, in one system call as a rule. An error says how many bytes
    /// went before it.
    pub(super) fn write(
        &self,
        offset: u64,
        ring_slices: [&[u8]; 2],
    ) -> Result<(), (usize, io::Error)> {
        let _turn = match &self.position {
            Position::Pipe(turn) => Some(turn.lock().unwrap_or_else(PoisonError::into_inner)),
            Position::Seekable { .. } => None,
        };
        let size = ring_slices[0].len() + ring_slices[1].len();
        let mut written = 0;
        while written < size {
            match self.write_some(offset + written as u64, rest(ring_slices, written)) {
                Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
                Ok(some) => written += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((written, error)),
            }
        }
        Ok(())
    }

    fn write_some(&self, offset: u64, pieces: [&[u8]; 2]) -> io::Result<usize> {
        match self.position {
            Position::Pipe(_) => self.medium.append(pieces),
            Position::Seekable { .. } => self.medium.write_at(offset, pieces),
        }
    }
}

/// Two pieces without their first `skip` bytes.
fn rest([front, back]: [&[u8]; 2], skip: usize) -> [&[u8]; 2] {
    match skip.checked_sub(front.len()) {
        None => [&front[skip..], back],
        Some(skip) => [&back[skip..], &[]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_land_behind_each_other() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let mut stream = StreamFile::seekable(file.clone(), 3);
        for ring_slices in [[&b"one "[..], b"two "], [b"", b"three "], [b"four", b""]] {
            let offset = stream.reserve(ring_slices.concat().len());
            stream.write(offset, ring_slices).unwrap();
        }
        let mut text = [0; 21];
        file.read_exact_at(&mut text, 0).unwrap();
        assert_eq!(&text, b"\0\0\0one two three four");
        assert_eq!(stream.size_bytes(), 18);
        stream.cut(7);
        assert_eq!((stream.size_bytes(), file.metadata().unwrap().len()), (4, 7));
    }

    #[test]
    fn the_rest_of_two_pieces_begins_anywhere() {
        let all: [&[u8]; 2] = [b"abc", b"de"];
        for skip in 0..=5 {
            assert_eq!(rest(all, skip).concat(), b"abcde"[skip..]);
        }
    }
}
