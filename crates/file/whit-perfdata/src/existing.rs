//! The object at an output path: a recording, which may be replaced, or another file, which may
//! not.

use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::header::{MAGIC, MAGIC_SWAPPED, MAGIC_V1};

/// The file with the header in a directory.
const HEADER_FILE: &str = "data";
/// The copy of the kernel that `perf record --kcore` keeps in a directory.
const KCORE_DIRECTORY: &str = "kcore_dir";

/// The object at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing, or a link to nothing.
    Nothing,
    /// A recording: a file, or a directory that holds nothing else.
    Recording,
    /// A regular file without content.
    EmptyFile,
    /// A regular file that is no recording, or that cannot be read.
    File,
    /// A directory without content.
    EmptyDirectory,
    /// A directory that is no recording: an entry that does not belong to one.
    Directory(OsString),
    /// A device or a named pipe: it can be written to as it is.
    Stream,
    /// A socket, or anything else.
    Other,
}

/// Inspects `path`. Links are followed.
///
/// # Errors
/// Where it cannot be looked at, for other reasons than that it is not there.
pub fn existing(path: &Path) -> io::Result<Existing> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Existing::Nothing),
        Err(error) => return Err(error),
    };
    match metadata.file_type() {
        kind if kind.is_dir() => directory(path),
        kind if kind.is_file() => Ok(regular(path, &metadata)),
        kind if is_stream(kind) => Ok(Existing::Stream),
        _ => Ok(Existing::Other),
    }
}

/// Removes a directory that is a recording, and nothing else.
///
/// # Errors
/// Where it holds anything else, or cannot be removed.
pub fn remove_recording(path: &Path) -> io::Result<()> {
    match directory(path)? {
        Existing::Directory(entry) => Err(io::Error::other(format!(
            "{} is no recording: it holds {}",
            path.display(),
            entry.display()
        ))),
        _ => std::fs::remove_dir_all(path),
    }
}

fn is_stream(kind: FileType) -> bool {
    kind.is_char_device() || kind.is_block_device() || kind.is_fifo()
}

fn regular(path: &Path, metadata: &Metadata) -> Existing {
    if metadata.len() == 0 {
        return Existing::EmptyFile;
    }
    let mut magic = [0; MAGIC.len()];
    let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok();
    match is_read && [MAGIC, MAGIC_SWAPPED, MAGIC_V1].contains(&&magic) {
        true => Existing::Recording,
        false => Existing::File,
    }
}

fn directory(path: &Path) -> io::Result<Existing> {
    let mut is_empty = true;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        is_empty = false;
        if !belongs(&entry.file_name(), entry.file_type()?) {
            return Ok(Existing::Directory(entry.file_name()));
        }
    }
    if is_empty {
        return Ok(Existing::EmptyDirectory);
    }
    // A recorder that was killed may have written nothing yet.
    let header = path.join(HEADER_FILE);
    match std::fs::metadata(&header).map(|metadata| regular(&header, &metadata)) {
        Ok(Existing::Recording | Existing::EmptyFile) => Ok(Existing::Recording),
        _ => Ok(Existing::Directory(HEADER_FILE.into())),
    }
}

/// Whether an entry is one of a recording's: `data`, `data.N`, `kcore_dir`.
fn belongs(name: &OsStr, kind: FileType) -> bool {
    let Some(name) = name.to_str() else { return false };
    let number = name.strip_prefix(HEADER_FILE).and_then(|rest| rest.strip_prefix('.'));
    let is_part = number.is_some_and(|number| number.parse::<u64>().is_ok());
    match kind.is_dir() {
        true => name == KCORE_DIRECTORY,
        false => kind.is_file() && (name == HEADER_FILE || is_part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn look(path: impl AsRef<Path>) -> Existing {
        existing(path.as_ref()).unwrap()
    }

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(look(&path), Existing::Nothing);
        for (content, what) in [
            (&b""[..], Existing::EmptyFile),
            (b"PERFILE2\x68\0", Existing::Recording),
            (b"PERFILE2", Existing::Recording),
            (b"2ELIFREP....", Existing::Recording),
            (b"PERFFILE....", Existing::Recording),
            (b"PERFILE", Existing::File),
            (b"PERFILE3....", Existing::File),
            (b"Dear diary", Existing::File),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(look(&path), what, "{content:?}");
        }
    }

    #[test]
    fn directories_are_recordings_where_they_hold_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dir");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(look(&path), Existing::EmptyDirectory);
        std::fs::write(path.join("data.0"), "").unwrap();
        assert_eq!(look(&path), Existing::Directory("data".into()), "no header");
        std::fs::write(path.join("data"), "text").unwrap();
        assert_eq!(look(&path), Existing::Directory("data".into()), "no recording's header");
        for header in ["", "PERFILE2"] {
            std::fs::write(path.join("data"), header).unwrap();
            assert_eq!(look(&path), Existing::Recording);
        }
        std::fs::create_dir(path.join("kcore_dir")).unwrap();
        assert_eq!(look(&path), Existing::Recording);
        for name in ["data.csv", "database", "data.", "thesis.tex"] {
            std::fs::write(path.join(name), "").unwrap();
            assert_eq!(look(&path), Existing::Directory(name.into()));
            let error = remove_recording(&path).unwrap_err().to_string();
            assert!(error.contains(name) && path.join(name).exists(), "{error}");
            std::fs::remove_file(path.join(name)).unwrap();
        }
        std::fs::create_dir(path.join("data.7")).unwrap();
        assert_eq!(look(&path), Existing::Directory("data.7".into()), "a directory");
        std::fs::remove_dir(path.join("data.7")).unwrap();
        symlink("/etc/passwd", path.join("data.8")).unwrap();
        assert_eq!(look(&path), Existing::Directory("data.8".into()), "a link");
        std::fs::remove_file(path.join("data.8")).unwrap();
        remove_recording(&path).unwrap();
        assert_eq!(look(&path), Existing::Nothing);
    }

    #[test]
    fn links_are_followed_and_devices_are_streams() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("link");
        symlink(dir.path().join("missing"), &path).unwrap();
        assert_eq!(look(&path), Existing::Nothing);
        std::fs::write(dir.path().join("missing"), "PERFILE2").unwrap();
        assert_eq!(look(&path), Existing::Recording);
        assert_eq!(look("/dev/null"), Existing::Stream);
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        assert_eq!(look(dir.path().join("socket")), Existing::Other);
    }
}
