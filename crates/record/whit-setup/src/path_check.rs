//! Whether anybody but root can replace or change a file.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// Only its owner can remove an entry.
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

/// The users who can write a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The owner, who is not root.
    Owner(u32),
    /// A group, which is not root's.
    Group(u32),
    /// Every user of the machine.
    Others,
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Writer::Owner(uid) => write!(f, "belongs to user {uid}"),
            Writer::Group(gid) => write!(f, "can be written by group {gid}"),
            Writer::Others => f.write_str("can be written by everybody"),
        }
    }
}

/// Owner, group and mode of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mode: u32,
}

impl Access {
    pub(crate) fn of(metadata: &Metadata) -> Access {
        Access { uid: metadata.uid(), gid: metadata.gid(), mode: metadata.mode() }
    }

    /// The users besides root who can write it. Access control lists show in the group's bits.
    pub(crate) fn writer(self) -> Option<Writer> {
        let Access { uid, gid, mode } = self;
        if uid != ROOT {
            Some(Writer::Owner(uid))
        } else if mode & OTHERS_WRITE != 0 {
            Some(Writer::Others)
        } else if mode & GROUP_WRITES != 0 && gid != ROOT {
            Some(Writer::Group(gid))
        } else {
            None
        }
    }

    /// The same for a directory above one that root owns: with the sticky bit, nobody but root can
    /// remove that one.
    fn writer_above(self) -> Option<Writer> {
        let by_owner = self.uid != ROOT;
        if self.mode & STICKY != 0 && !by_owner { None } else { self.writer() }
    }
}

/// The directories on the way to `path`, which has no links in it, that somebody but root can
/// write.
pub(crate) fn replaceable(path: &Path) -> io::Result<Vec<(PathBuf, Writer)>> {
    let mut found = Vec::new();
    for (depth, directory) in path.ancestors().skip(1).enumerate() {
        let access = Access::of(&fs::symlink_metadata(directory)?);
        let writer = if depth == 0 { access.writer() } else { access.writer_above() };
        found.extend(writer.map(|writer| (directory.to_owned(), writer)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn access(uid: u32, gid: u32, mode: u32) -> Access {
        Access { uid, gid, mode }
    }

    #[test]
    fn only_roots_own_is_out_of_reach() {
        assert_eq!(access(0, 0, 0o755).writer(), None);
        assert_eq!(access(0, 0, 0o775).writer(), None, "the group is root's");
        assert_eq!(access(0, 50, 0o755).writer(), None);
        assert_eq!(access(0, 50, 0o2775).writer(), Some(Writer::Group(50)));
        assert_eq!(access(0, 0, 0o757).writer(), Some(Writer::Others));
        assert_eq!(access(1000, 0, 0o700).writer(), Some(Writer::Owner(1000)));
    }

    #[test]
    fn a_sticky_directory_protects_its_subfolders_but_not_its_own_files() {
        let tmp = access(0, 0, 0o1777);
        assert_eq!(tmp.writer(), Some(Writer::Others));
        assert_eq!(tmp.writer_above(), None);
        assert_eq!(access(7, 0, 0o1777).writer_above(), Some(Writer::Owner(7)));
        assert_eq!(access(0, 0, 0o777).writer_above(), Some(Writer::Others));
    }

    #[test]
    fn every_directory_on_the_way_is_looked_at() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("open/inner");
        fs::create_dir_all(&inner).unwrap();
        let open = dir.path().join("open");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let found = replaceable(&inner.join("whit")).unwrap();
        assert!(found.iter().any(|(directory, _)| *directory == open), "{found:?}");
        assert!(replaceable(Path::new("/nonexistent/whit")).is_err());
    }
}
