use rustix::fs::{CWD, FileType};

use super::walk::{LOOK, open_below, walk_below};
use super::*;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::system;

const PROC: &str = "/proc";

fn id_of(file: &File) -> FileId {
    stated_id(&file.metadata().unwrap())
}

fn wanted(path: &Path, id: Option<FileId>) -> WantedFile<'_> {
    let identity = id.map_or(Identity::Path, Identity::Mapping);
    let path = path.as_os_str().as_bytes();
    WantedFile { pid: None, relatives: &[], range: None, identity, path }
}

fn failure(wanted: &WantedFile<'_>) -> OpenFailure {
    wanted.open(Path::new(PROC)).unwrap_err().failure
}

fn contents(file: &ForeignFile) -> String {
    let mut text = String::new();
    file.reader().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_deleted_file_is_opened_through_a_process_that_maps_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mapped");
    std::fs::write(&path, "contents").unwrap();
    let file = File::open(&path).unwrap();
    let map = MappedFile::map(&file).unwrap();
    let id = id_of(&file);
    let by_path = wanted(&path, Some(id));
    assert_eq!(contents(&by_path.open(Path::new(PROC)).unwrap()), "contents");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(failure(&by_path), OpenFailure::Missing);
    let marked = [path.as_os_str().as_bytes(), DELETED].concat();
    assert_eq!(failure(&WantedFile { path: &marked, ..by_path.clone() }), OpenFailure::Deleted);
    std::fs::write(&path, "another").unwrap();
    assert_eq!(failure(&by_path), OpenFailure::Replaced);
    let start = map.as_ptr() as u64;
    let is_allowed = File::open(format!("{PROC}/self/{}", link_of(&(start..start + 4096))));
    if is_allowed.is_err() {
        let why = "this user may not open files through mappings";
        return whit_testing::skip("a_deleted_file_is_opened_through_a_process", why);
    }
    let pid = Some(system::pid());
    // Where it is, where it is not, and without knowing where.
    for range in [Some(start..start + 4096), Some(start + 4096..start + 8192), None] {
        for path in [by_path.path, &marked] {
            let through = WantedFile { pid, range: range.clone(), path, ..by_path.clone() };
            assert_eq!(contents(&through.open(Path::new(PROC)).unwrap()), "contents");
        }
    }
    // By path alone: as the kernel marks it.
    let unnumbered = WantedFile { pid, identity: Identity::Path, path: &marked, ..by_path.clone() };
    assert_eq!(contents(&unnumbered.open(Path::new(PROC)).unwrap()), "contents");
    // Opened by a test, for any file at the path, and with or without the mark.
    let is_it = |file: &ForeignFile| contents(file) == "contents";
    for path in [by_path.path, &marked] {
        let tested = WantedFile { pid, identity: Identity::Test(&is_it), path, ..by_path.clone() };
        assert!(tested.open(Path::new(PROC)).is_ok());
        assert_eq!(failure(&WantedFile { pid: None, ..tested }), OpenFailure::Replaced);
    }
}

#[test]
fn only_regular_files_are_opened() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
    for path in [&pipe, Path::new("/dev/zero"), dir.path()] {
        assert_eq!(failure(&wanted(path, None)), OpenFailure::NotRegular);
        assert_eq!(open_regular(path).unwrap_err(), Errno::INVAL);
    }
    let looped = dir.path().join("loop");
    symlink(&looped, &looped).unwrap();
    let error = wanted(&looped, None).open(Path::new(PROC)).unwrap_err();
    assert_eq!((error.failure, error.errno), (OpenFailure::Unreadable, Some(Errno::LOOP)));
    assert!(error.to_string().contains("symbolic links"), "{error}");
}

#[test]
fn files_of_the_kernel_are_opened_only_where_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("perf-7.map");
    for file in ["/proc/self/status", "/sys/kernel/notes"] {
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(file, &link).unwrap();
        assert_eq!(open_regular(&link).unwrap_err(), Errno::INVAL, "{file}");
        assert!(open_regular_or_kernels(&link).is_ok(), "{file}");
        assert_eq!(failure(&wanted(&link, None)), OpenFailure::NotRegular, "{file}");
    }
}

#[test]
fn secrets_of_root_are_no_files_of_others() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let owner = file.as_file().metadata().unwrap().uid();
    for (mode, is_public) in [(0o600, false), (0o640, false), (0o644, true)] {
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let opened = open_foreign(file.path()).unwrap();
        assert!(may_be_written_for(owner, opened.facts()));
        // Files of a third user never are.
        let is_of_other = may_be_written_for(owner + 1, opened.facts());
        assert_eq!(is_of_other, owner == 0 && is_public, "{mode:o}");
    }
}

#[test]
fn links_lead_nowhere_but_below_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    let root = openat(CWD, dir.path(), LOOK, Mode::empty()).unwrap();
    symlink(outside.path(), dir.path().join("absolute")).unwrap();
    let up = Path::new("../../../../../../..").join(outside.path().strip_prefix("/").unwrap());
    symlink(up, dir.path().join("relative")).unwrap();
    let in_steps = |root: &OwnedFd, path: &Path| walk_below(root, path, |_| Ok(()));
    for open in [open_below, in_steps] {
        for name in ["/absolute", "relative", "/../../../../etc/passwd"] {
            assert_eq!(open(&root, Path::new(name)).unwrap_err(), Errno::NOENT, "{name}");
        }
    }
    let inside = dir.path().join(outside.path().strip_prefix("/").unwrap());
    std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
    File::create(inside).unwrap().write_all(b"inside").unwrap();
    symlink("loop", dir.path().join("loop")).unwrap();
    for open in [open_below, in_steps] {
        for name in ["/absolute", "relative", "./absolute", "../relative"] {
            let found = open(&root, Path::new(name)).unwrap();
            assert_eq!(contents(&ForeignFile::open(found).ok().unwrap()), "inside", "{name}");
        }
        assert_eq!(open(&root, Path::new("/loop")).unwrap_err(), Errno::LOOP);
        assert_eq!(open(&root, Path::new("/absolute/x")).unwrap_err(), Errno::NOTDIR);
        assert!(open(&root, Path::new("/")).is_ok());
    }
}

#[test]
fn the_kernel_names_own_mappings() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"x").unwrap();
    let map = MappedFile::map(&file).unwrap();
    let start = map.as_ptr() as u64;
    let ids = ids_of_own(&[start, start + 4095, 1, 0]);
    let inode = id_of(&file).inode;
    assert!(ids[..2].iter().all(|id| id.is_some_and(|id| id.inode == inode)), "{ids:?}");
    assert_eq!(ids[2..], [None, None]);
    assert_eq!(id_when_mapped(&file), ids[0]);
    assert_eq!(id_when_mapped(&tempfile::tempfile().unwrap()), None);
}
