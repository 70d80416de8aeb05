use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use whit_types::{FileId, OpenFailure};

/// An ELF file with nothing but a build id, and `rest` behind it.
fn elf(id: &[u8; 4], rest: &[u8]) -> Vec<u8> {
    let mut note: Vec<u8> = [4u32, 4, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
    note.extend(b"GNU\0");
    note.extend(id);
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    elf.extend([3u16, 62].iter().flat_map(|half| half.to_le_bytes()));
    elf.extend(1u32.to_le_bytes());
    elf.extend([0u64, 64, 0].iter().flat_map(|word| word.to_le_bytes()));
    elf.extend(0u32.to_le_bytes());
    elf.extend([64u16, 56, 1, 64, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    // PT_NOTE.
    elf.extend([4u32, 4].iter().flat_map(|word| word.to_le_bytes()));
    let size = note.len() as u64;
    elf.extend([120u64, 0, 0, size, size, 4].iter().flat_map(|word| word.to_le_bytes()));
    elf.extend(note);
    elf.extend(rest);
    elf
}

fn described(path: &str, contents: &[u8]) -> (File, MappedFile) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(contents).unwrap();
    let metadata = file.metadata().unwrap();
    let found = FoundFile {
        size_bytes: contents.len() as u64,
        modified_ns: (metadata.mtime() * SECOND_NS + metadata.mtime_nsec()) as u64,
        build_id: build_id::of(&file).flatten(),
        is_elf: true,
        is_kept: false,
    };
    let id = FileId { device: (8, 1), inode: 7 };
    (file, MappedFile { id, path: path.into(), found: Ok(found) })
}

fn keep(kept: &mut KeptFiles, (file, description): &(File, MappedFile)) -> bool {
    kept.keep(description, || file.try_clone().ok())
}

struct Cache {
    home: tempfile::TempDir,
}

impl Cache {
    fn new() -> Cache {
        Cache { home: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.home.path().join(".debug")
    }

    fn open(&self) -> KeptFiles {
        KeptFiles::new(KeptFilesPlan::new(self.path()))
    }

    /// As if a copy had last been used so many hours ago.
    fn set_unused_hours(&self, name: &str, hours: u64) {
        let used = std::time::SystemTime::now() - std::time::Duration::from_secs(hours * 3600);
        let used = used.duration_since(std::time::UNIX_EPOCH).unwrap();
        let time = Timespec { tv_sec: used.as_secs() as i64, tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        let path = self.path().join(".whit-kept").join(name);
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path().join(".whit-kept")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn copies_are_where_perf_looks_for_them() {
    let cache = Cache::new();
    let mut kept = cache.open();
    let contents = elf(b"\xab\xcd\xef\x01", b"");
    let named = described("/opt/a b (deleted)", &contents);
    assert!(keep(&mut kept, &named));
    let copy = cache.path().join("opt/a b/abcdef01/elf");
    assert_eq!(std::fs::read(&copy).unwrap(), contents);
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let by_id = cache.path().join(".build-id/ab/cdef01");
    assert_eq!(std::fs::read_link(&by_id).unwrap(), Path::new("../../opt/a b/abcdef01"));
    let mut unnamed = described("/x", b"more");
    if let Ok(found) = &mut unnamed.1.found {
        found.build_id = None;
    }
    assert!(keep(&mut kept, &unnamed));
    let modified = unnamed.1.found.unwrap().modified_ns;
    let own = cache.path().join(format!(".whit-files/8-1-7-4-{modified:x}/elf"));
    assert_eq!(std::fs::read(own).unwrap(), b"more");
    // A copy with the right build id is not made again, whatever the path is.
    let again = described("/opt/moved", &contents);
    assert!(keep(&mut kept, &named) && keep(&mut kept, &again));
    assert!(!cache.path().join("opt/moved").exists());
    assert_eq!((kept.counts.copied, kept.counts.kept), (2, 4));
    assert!(kept.counts.failed.is_none());
}

#[test]
fn damaged_copies_are_made_anew() {
    let cache = Cache::new();
    let mut kept = cache.open();
    let contents = elf(&[1, 2, 3, 4], b"");
    let file = described("/opt/x", &contents);
    let by_id = cache.path().join(".build-id/01/020304");
    let damage: [&dyn Fn(); 4] = [
        &|| std::fs::write(by_id.join("elf"), elf(&[9; 4], b"")).unwrap(),
        &|| std::fs::write(by_id.join("elf"), &contents[..100]).unwrap(),
        &|| std::fs::write(by_id.join("elf"), vec![0; contents.len()]).unwrap(),
        &|| {
            std::fs::remove_file(&by_id).unwrap();
            symlink("../../gone", &by_id).unwrap();
        },
    ];
    assert!(keep(&mut kept, &file));
    for (number, damage) in damage.iter().enumerate() {
        damage();
        assert!(keep(&mut kept, &file));
        assert_eq!(std::fs::read(by_id.join("elf")).unwrap(), contents, "{number}");
        assert_eq!(kept.counts.copied, 2 + number as u64);
    }
}

#[test]
fn a_copy_does_not_change_with_its_file() {
    let cache = Cache::new();
    let contents = elf(&[1, 2, 3, 4], b"old");
    let mut file = described("/opt/x", &contents);
    assert!(keep(&mut cache.open(), &file));
    // As `cp` writes into a file that is there.
    file.0.set_len(0).unwrap();
    file.0.write_all(b"new").unwrap();
    let copy = cache.path().join(".build-id/01/020304/elf");
    assert_eq!(std::fs::read(copy).unwrap(), contents);
}

#[test]
fn a_file_that_was_written_since_is_not_copied() {
    let cache = Cache::new();
    let mut kept = cache.open();
    let mut file = described("/opt/x", &elf(&[1, 2, 3, 4], b""));
    file.0.write_all(b"more").unwrap();
    assert!(!keep(&mut kept, &file) && kept.counts.gone == 1);
    // The size and the time are right, and the build id is another one.
    let mut lying = described("/opt/x", &elf(&[1, 2, 3, 4], b""));
    if let Ok(found) = &mut lying.1.found {
        found.build_id = BuildId::new(&[7; 4]);
    }
    assert!(!keep(&mut kept, &lying) && kept.counts.gone == 2);
    assert!(!cache.path().join(".build-id").exists());
    assert!(cache.names().iter().all(|name| !name.ends_with(".part")));
}

#[test]
fn copies_stay_below_the_limit_of_a_recording() {
    let cache = Cache::new();
    let mut kept = cache.open();
    kept.left_bytes = 7;
    let file = described("/x", b"contents");
    assert!(!keep(&mut kept, &file) && kept.counts.without_room == 1);
    let missing = (file.0, MappedFile { found: Err(OpenFailure::Deleted), ..file.1 });
    assert!(!keep(&mut kept, &missing) && kept.counts.without_room == 1);
}

#[test]
fn the_copies_that_were_not_used_for_the_longest_time_go_first() {
    let cache = Cache::new();
    let size = elf(&[0; 4], b"").len() as u64;
    let file = |number: u8| described(&format!("/opt/{number}/x"), &elf(&[number; 4], b""));
    let keep_with = |max_copies: u64, files: &[u8]| {
        let mut plan = KeptFilesPlan::new(cache.path());
        plan.max_bytes = size * max_copies;
        let mut kept = KeptFiles::new(plan);
        for number in files {
            assert!(keep(&mut kept, &file(*number)), "{:?}", kept.counts);
        }
        kept.finish()
    };
    // perf's own, which is neither counted nor removed.
    let perfs = cache.path().join("opt/perf/0a0a0a0a");
    std::fs::create_dir_all(&perfs).unwrap();
    std::fs::write(perfs.join("elf"), elf(&[10; 4], b"")).unwrap();
    let killed = cache.path().join(".whit-kept/0b0b0b0b.7.part");
    keep_with(3, &[1, 2, 3]);
    for (name, hours) in [("01010101", 3), ("02020202", 2), ("03030303", 1)] {
        cache.set_unused_hours(name, hours);
    }
    std::fs::write(&killed, "a part").unwrap();
    // 1 is used again, so that 2 is the oldest.
    let counts = keep_with(3, &[1, 4]);
    assert_eq!((counts.evicted, counts.evicted_bytes), (1, size));
    assert_eq!(cache.names(), ["01010101", "03030303", "04040404"]);
    assert!(!cache.path().join("opt/2").exists());
    assert!(!cache.path().join(".build-id/02/020202").is_symlink());
    assert!(cache.path().join(".build-id/03/030303/elf").exists());
    assert!(perfs.join("elf").exists() && !killed.exists());
    // Nothing new, nothing to remove.
    assert_eq!(keep_with(1, &[3]).evicted, 0);
}

#[test]
fn recorders_at_the_same_time_share_the_cache() {
    let cache = Cache::new();
    let (mut one, mut other) = (cache.open(), cache.open());
    let file = described("/opt/x", &elf(&[1, 2, 3, 4], b""));
    assert!(keep(&mut one, &file) && keep(&mut other, &file));
    assert_eq!((one.counts.copied, other.counts.copied), (1, 0));
    // None removes copies while the other looks for some.
    one.plan.max_bytes = 0;
    assert_eq!(one.finish().evicted, 0);
    drop(other);
    let mut last = cache.open();
    assert!(keep(&mut last, &described("/opt/y", &elf(&[2; 4], b""))));
    last.plan.max_bytes = 0;
    assert_eq!(last.finish().evicted, 2);
}

#[test]
fn nothing_is_written_where_a_link_leads() {
    let (cache, other) = (Cache::new(), tempfile::tempdir().unwrap());
    std::fs::create_dir(cache.path()).unwrap();
    symlink(other.path(), cache.path().join("opt")).unwrap();
    symlink(other.path(), cache.path().join(".whit-files")).unwrap();
    let with_id = elf(&[1, 2, 3, 4], b"");
    let paths = ["/opt/x", "/../x", "/usr/../../x", "x"];
    let files = paths.map(|path| described(path, &with_id)).into_iter();
    for file in files.chain([described("/x", b"contents")]) {
        let mut kept = cache.open();
        assert!(!keep(&mut kept, &file), "{file:?}");
        assert!(kept.counts.failed.is_some(), "{file:?}");
    }
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    // As root in a user's home.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(cache.home.path(), Some(1), None).unwrap();
        let file = described("/y", &with_id);
        let mut kept = KeptFiles::new(KeptFilesPlan::new(cache.home.path().join("new")));
        assert!(!keep(&mut kept, &file) && kept.counts.failed.is_some());
        std::os::unix::fs::chown(cache.path(), Some(1), None).unwrap();
        let mut kept = cache.open();
        assert!(!keep(&mut kept, &file) && kept.counts.failed.is_some());
    }
}

#[test]
fn a_full_file_system_is_no_place() {
    let cache = Cache::new();
    let mut kept = cache.open();
    assert!(kept.store().unwrap().has_room(1));
    assert!(!kept.store().unwrap().has_room(u64::MAX / 2));
}
