//! A file of somebody else, found and to be read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, OFlags, Timespec, Timestamps, fstatfs, futimens, memfd_create};
use whit_types::FileId;

use super::file_facts::FileFacts;
use super::helper::{self, Found};
use super::{Miss, id_when_mapped};
use crate::{Errno, MappedFile};

/// Where copies have no name; the first that has room for such files.
const COPY_DIRECTORIES: [&str; 2] = ["/var/tmp", "/tmp"];
const SECOND_NS: u64 = 1_000_000_000;

/// A regular file that was opened for reading.
///
/// One on a file system that a program serves is never open in this process: a page of it, and even its closing, could
/// wait for that program for ever. A process apart reads it, and gives up its answer where that does not come.
#[derive(Debug)]
pub struct ForeignFile {
    content: Content,
    facts: FileFacts,
}

#[derive(Debug)]
enum Content {
    Open(File),
    Served {
        /// `O_PATH`: leads to the file, and asks nobody.
        place: OwnedFd,
        mapped: Option<FileId>,
    },
}

impl ForeignFile {
    /// The file behind an `O_PATH` descriptor.
    pub(super) fn open(place: OwnedFd) -> Result<ForeignFile, Miss> {
        let Found { facts, file, mapped } = helper::open(&place)?;
        let content = match file {
            Some(file) => Content::Open(file),
            None => Content::Served { place, mapped },
        };
        Ok(ForeignFile { content, facts })
    }

    /// The facts at the time of opening.
    pub fn facts(&self) -> &FileFacts {
        &self.facts
    }

    /// The same file with its present facts.
    ///
    /// # Errors
    ///
    /// Error of the kernel; `Errno::TIMEDOUT` where its file system does not answer.
    pub fn again(&self) -> Result<ForeignFile, Errno> {
        let open = |place: OwnedFd| ForeignFile::open(place).map_err(Miss::into_errno);
        match &self.content {
            Content::Open(file) => {
                let file = file.try_clone().map_err(errno_of)?;
                let facts = FileFacts::of(&rustix::fs::fstat(&file)?);
                Ok(ForeignFile { content: Content::Open(file), facts })
            }
            Content::Served { place, .. } => open(place.try_clone().map_err(errno_of)?),
        }
    }

    /// The kernel's name of the file in a mapping of it. Nothing for an empty one.
    pub fn id_when_mapped(&self) -> Option<FileId> {
        match &self.content {
            Content::Open(file) => id_when_mapped(file),
            Content::Served { mapped, .. } => *mapped,
        }
    }

    /// Whether it is shown by a layer above other file systems.
    pub(super) fn is_overlaid(&self) -> bool {
        match &self.content {
            Content::Open(file) => fstatfs(file).is_ok_and(|fs| fs.f_type == helper::OVERLAYFS),
            Content::Served { .. } => false,
        }
    }

    /// The number of the descriptor that it takes.
    pub fn descriptor(&self) -> i32 {
        match &self.content {
            Content::Open(file) => file.as_raw_fd(),
            Content::Served { place, .. } => place.as_raw_fd(),
        }
    }

    /// Reads it from the beginning, and only the parts that are asked for.
    pub fn reader(&self) -> Reader<'_> {
        Reader { file: self, at: 0 }
    }

    /// The file, or a copy that has its size and time where a program serves it.
    ///
    /// # Errors
    ///
    /// There is no room for a copy, or the file system does not answer.
    pub fn into_file(self) -> io::Result<File> {
        match self.content {
            Content::Open(file) => Ok(file),
            Content::Served { place, .. } => copy(&place, &self.facts),
        }
    }

    /// Maps it, or a copy where a program serves it.
    ///
    /// # Errors
    ///
    /// As those of [`into_file`](Self::into_file), and the kernel's.
    pub fn map(&self) -> io::Result<MappedFile> {
        match &self.content {
            Content::Open(file) => MappedFile::map(file),
            Content::Served { place, .. } => MappedFile::map(&copy(place, &self.facts)?),
        }
    }

    /// Reads from an offset. Fewer bytes than asked for are no end of the file.
    ///
    /// # Errors
    ///
    /// As those of [`again`](Self::again).
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.content {
            Content::Open(file) => file.read_at(bytes, offset),
            Content::Served { place, .. } => Ok(helper::read_at(place.as_fd(), bytes, offset)?),
        }
    }
}

/// Reads a [`ForeignFile`].
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a ForeignFile,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let size = self.file.read_at(bytes, self.at)?;
        self.at += size as u64;
        Ok(size)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.file.facts.size_bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

fn copy(place: &OwnedFd, facts: &FileFacts) -> io::Result<File> {
    let copy = unnamed()?;
    helper::copy(place.as_fd(), copy.as_fd(), facts.size_bytes)?;
    copy.set_len(facts.size_bytes)?;
    let time = Timespec {
        tv_sec: (facts.modified_ns / SECOND_NS) as i64,
        tv_nsec: (facts.modified_ns % SECOND_NS) as _,
    };
    futimens(&copy, &Timestamps { last_access: time, last_modification: time })?;
    Ok(copy)
}

/// A file on a disk, or in memory where no disk has room for one without a name.
fn unnamed() -> io::Result<File> {
    let on = |directory: &str| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::open(Path::new(directory), flags, Mode::RUSR | Mode::WUSR)
    };
    let found = COPY_DIRECTORIES.iter().find_map(|directory| on(directory).ok());
    let made = found.map_or_else(|| memfd_create("whit-copy", MemfdFlags::CLOEXEC), Ok)?;
    Ok(File::from(made))
}

fn errno_of(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
