//! Names, halves of files, full disks.

use super::*;

const WEEK: Limits = Limits { age: Duration::from_secs(7 * 86_400), bytes: 1 << 30 };

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_659_330 + second)
}

fn line(second: u64) -> Line {
    let (start_s, end_s) = (seconds(at(second)), seconds(at(second + 30)));
    Line { start_s, end_s, ..Line::default() }
}

fn add(folder: &mut Folder, second: u64, content: &str) -> Result<String, FolderError> {
    let path = folder.add(line(second), |out| out.write_all(content.as_bytes()));
    path.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
}

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|found| found.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != LOCK)
        .collect();
    names.sort();
    names
}

fn manifest(root: &Path) -> Vec<String> {
    read_manifest(&root.join(MANIFEST)).into_keys().collect()
}

#[test]
fn files_are_named_by_their_beginning_and_listed() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(root.path()).unwrap();
    assert_eq!(add(&mut folder, 0, "one").unwrap(), "whit-20261126T021530Z.data");
    // The clock was set back.
    assert_eq!(add(&mut folder, 0, "two").unwrap(), "whit-20261126T021530Z-2.data");
    assert_eq!(
        names(root.path()),
        ["manifest.jsonl", "whit-20261126T021530Z-2.data", "whit-20261126T021530Z.data"]
    );
    assert_eq!(manifest(root.path()).len(), 2);
    assert_eq!((folder.kept().len(), folder.kept().bytes()), (2, 6));
}

#[test]
fn a_killed_service_leaves_no_half_file_and_its_files_go_in_time() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(root.path()).unwrap();
    add(&mut folder, 0, "one").unwrap();
    add(&mut folder, 30, "two").unwrap();
    drop(folder);
    // Killed while it wrote a recording, and while it wrote a line; one file has no line.
    fs::write(root.path().join(".writing-whit-20261126T021630Z.data"), "ha").unwrap();
    let list = root.path().join(MANIFEST);
    let text = fs::read_to_string(&list).unwrap();
    fs::write(&list, &text[..text.len() - 20]).unwrap();
    fs::write(root.path().join("notes.txt"), "of others").unwrap();
    let mut folder = Folder::open(root.path()).unwrap();
    assert_eq!(manifest(root.path()), ["whit-20261126T021530Z.data", "whit-20261126T021600Z.data"]);
    assert_eq!(names(root.path()).len(), 4);
    let removed = folder.retain(Limits { age: Duration::from_secs(60), ..WEEK }, at(91));
    assert_eq!(removed.unwrap(), 1);
    assert_eq!(names(root.path()), ["manifest.jsonl", "notes.txt", "whit-20261126T021600Z.data"]);
}

#[test]
fn a_write_that_fails_leaves_nothing_and_the_next_one_succeeds() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(root.path()).unwrap();
    let full = folder.add(line(0), |out| {
        out.write_all(b"half")?;
        Err(io::Error::from_raw_os_error(28))
    });
    let error = full.unwrap_err().to_string();
    assert!(error.contains("whit-20261126T021530Z.data: No space left"), "{error}");
    assert_eq!(names(root.path()), ["manifest.jsonl"]);
    assert_eq!(folder.kept().len(), 0);
    assert_eq!(add(&mut folder, 0, "one").unwrap(), "whit-20261126T021530Z.data");
}

#[test]
fn one_service_at_a_time_has_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let first = Folder::open(root.path()).unwrap();
    let error = Folder::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("another whit watch writes here"), "{error}");
    drop(first);
    Folder::open(root.path()).unwrap();
}

#[test]
fn the_manifest_does_not_grow_with_files_that_are_gone() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(root.path()).unwrap();
    let two_files = Limits { bytes: 6, ..WEEK };
    for number in 0..100 {
        add(&mut folder, 30 * number, "one").unwrap();
        folder.retain(two_files, at(30 * number)).unwrap();
    }
    assert_eq!(manifest(root.path()).len().min(20), manifest(root.path()).len());
    assert_eq!(folder.kept().len(), 2);
}
