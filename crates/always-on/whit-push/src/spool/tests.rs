use super::*;
use proptest::prelude::*;
use tempfile::TempDir;
use whit_types::{ByteSize, TimeLength};

const START: Now = Now { unix_ms: 1_700_000_000_000, steady_ms: 5_000 };

fn bounds(max_bytes: u64) -> SpoolSettings {
    SpoolSettings {
        max_bytes: ByteSize(max_bytes),
        max_age: TimeLength::seconds(100),
        max_memory: ByteSize(700),
    }
}

fn after(seconds: u64) -> Now {
    Now { unix_ms: START.unix_ms + seconds * 1000, steady_ms: START.steady_ms + seconds * 1000 }
}

fn parcel(number: u64, size: usize) -> Parcel {
    Parcel { kind: Kind::Otlp, start_unix_ns: number, body: vec![number as u8; size] }
}

fn open(folder: &TempDir, max_bytes: u64, now: Now) -> Spool {
    Spool::open(folder.path(), Kind::Otlp, bounds(max_bytes), now).expect("open a spool")
}

/// Takes all windows out; gives their beginnings.
fn drain(spool: &mut Spool, now: Now) -> Vec<u64> {
    let mut starts = Vec::new();
    while let Some((number, parcel)) = spool.next(now) {
        starts.push(parcel.start_unix_ns);
        assert!(spool.taken(number).is_some());
    }
    starts
}

fn files(folder: &TempDir) -> usize {
    fs::read_dir(folder.path()).expect("list").count()
}

#[test]
fn windows_outlive_the_process_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder, 10_000, START);
    (1..=12).for_each(|number| spool.put(parcel(number, 10), START));
    drop(spool);
    // One that was killed while it wrote.
    fs::write(folder.path().join(".partial-x"), "half").unwrap();
    let mut spool = open(&folder, 10_000, after(1));
    assert_eq!(spool.waiting().windows, 12);
    spool.put(parcel(13, 10), after(1));
    assert_eq!(drain(&mut spool, after(2)), (1..=13).collect::<Vec<_>>());
    assert_eq!((files(&folder), spool.waiting()), (0, Amount::default()));
}

#[test]
fn a_spool_has_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder, 10_000, START);
    let second = Spool::open(folder.path(), Kind::Otlp, bounds(10_000), START);
    assert!(matches!(second, Err(SpoolError::InUse(_))));
    spool.put(parcel(1, 10), START);
    spool.close(START);
    assert!(spool.next(START).is_none(), "a closed spool gives nothing");
    assert_eq!(open(&folder, 10_000, START).waiting().windows, 1);
}

#[test]
fn the_oldest_windows_make_room_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let size = parcel(1, 100).to_file().len() as u64;
    let mut spool = open(&folder, 3 * size, START);
    (1..=5).for_each(|number| spool.put(parcel(number, 100), START));
    let full = spool.dropped().spool_full;
    assert_eq!(full, Amount { windows: 2, bytes: 2 * size });
    spool.put(parcel(6, 4 * size as usize), START);
    assert_eq!(spool.dropped().too_large.windows, 1);
    assert_eq!(drain(&mut spool, START), [3, 4, 5]);
    // The same bound holds for windows of an earlier process.
    (1..=3).for_each(|number| spool.put(parcel(number, 100), START));
    drop(spool);
    let mut spool = open(&folder, 2 * size, START);
    assert_eq!((spool.dropped().spool_full.windows, drain(&mut spool, START)), (1, vec![2, 3]));
}

#[test]
fn old_windows_are_dropped_by_a_clock_that_is_never_set() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder, 10_000, START);
    spool.put(parcel(1, 10), START);
    let a_year_ms = 365 * 86_400_000;
    let stepped = Now { unix_ms: START.unix_ms + a_year_ms, steady_ms: START.steady_ms + 99_000 };
    spool.put(parcel(2, 10), stepped);
    assert!(spool.next(stepped).is_some_and(|(_, it)| it.start_unix_ns == 1));
    let later = Now { steady_ms: START.steady_ms + 100_000, ..stepped };
    assert!(spool.next(later).is_some_and(|(_, it)| it.start_unix_ns == 2));
    assert_eq!(spool.dropped().too_old.windows, 1);
    drop(spool);
    // A clock that was set back makes no window older; one that goes on does.
    let back = Now { unix_ms: START.unix_ms - a_year_ms, steady_ms: 0 };
    assert_eq!(open(&folder, 10_000, back).waiting().windows, 1);
    let on = Now { unix_ms: stepped.unix_ms + 100_000, steady_ms: 0 };
    let spool = open(&folder, 10_000, on);
    assert_eq!((spool.waiting().windows, spool.dropped().too_old.windows), (0, 1));
}

#[test]
fn damaged_files_are_counted_and_hold_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder, 10_000, START);
    (1..=3).for_each(|number| spool.put(parcel(number, 10), START));
    drop(spool);
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
    names.sort();
    let bytes = fs::read(&names[0]).unwrap();
    fs::write(&names[0], &bytes[..bytes.len() - 1]).unwrap();
    fs::write(folder.path().join("notes.txt"), "of somebody else").unwrap();
    let mut spool = open(&folder, 10_000, START);
    assert_eq!(drain(&mut spool, START), [2, 3]);
    assert_eq!(spool.dropped().damaged.windows, 1);
    assert!(folder.path().join("notes.txt").exists());
}

#[test]
fn windows_of_another_kind_of_receiver_are_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    open(&folder, 10_000, START).put(parcel(1, 10), START);
    let mut spool = Spool::open(folder.path(), Kind::Parca, bounds(10_000), START).unwrap();
    assert!(spool.next(START).is_none());
    assert_eq!(spool.dropped().damaged.windows, 1);
}

/// Puts a file where the directory was: nothing can be written then.
fn block(folder: &TempDir) {
    fs::remove_dir_all(folder.path()).unwrap();
    fs::write(folder.path(), "").unwrap();
}

fn unblock(folder: &TempDir) {
    fs::remove_file(folder.path()).unwrap();
}

#[test]
fn a_disk_that_takes_nothing_leaves_the_memory_within_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder, 10_000, START);
    spool.put(parcel(1, 10), START);
    block(&folder);
    let size = parcel(2, 300).to_file().len() as u64;
    (2..=6).for_each(|number| spool.put(parcel(number, 300), START));
    assert_eq!(spool.in_memory(), Amount { windows: 2, bytes: 2 * size });
    assert_eq!(spool.dropped().memory_full.windows, 3);
    assert!(spool.disk_error().is_some_and(|error| error.contains("cannot write to the spool")));
    unblock(&folder);
    spool.put(parcel(7, 10), START);
    assert_eq!((spool.disk_error(), files(&folder)), (None, 1));
    // The file of the first window went with the directory.
    assert_eq!(drain(&mut spool, START), [5, 6, 7]);
    assert_eq!(spool.dropped().damaged.windows, 1);
}

#[test]
fn what_waits_in_memory_is_kept_at_the_end_where_the_disk_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder, 10_000, START);
    block(&folder);
    spool.put(parcel(1, 10), START);
    unblock(&folder);
    spool.close(START);
    assert_eq!((spool.in_memory().windows, spool.waiting().windows), (0, 1));
    assert_eq!(drain(&mut open(&folder, 10_000, START), START), [1]);
}

#[test]
fn a_window_that_breaks_the_receiver_is_sent_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder, 10_000, START);
    (1..=2).for_each(|number| spool.put(parcel(number, 10), START));
    // The receiver fails over all: none of them is the reason.
    for _ in 0..10 * FAILURES_MAX {
        let (number, _) = spool.next(START).expect("a window");
        spool.failed(number);
    }
    assert_eq!((spool.waiting().windows, spool.dropped().windows()), (2, 0));
    // It fails over the first one alone: the other is taken, and the first goes.
    while let Some((number, parcel)) = spool.next(START) {
        match parcel.start_unix_ns {
            1 => spool.failed(number),
            _ => assert!(spool.taken(number).is_some()),
        }
    }
    assert_eq!(spool.dropped().failed.windows, 1);
}

proptest! {
    // Each window is written through to the disk.
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Every window that comes is given out, waits, or is counted; the bounds hold at any time, and after restarts.
    #[test]
    fn no_window_is_lost_in_silence(
        steps in proptest::collection::vec((0u8..6, 1usize..400, 0u64..40), 1..60),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut now, max_bytes) = (START, 1_000);
        let mut spool = open(&folder, max_bytes, now);
        let (mut came, mut given, mut dropped) = (0u64, 0u64, 0u64);
        for (step, size, seconds) in steps {
            now = Now { unix_ms: now.unix_ms + seconds * 1000, steady_ms: now.steady_ms + seconds * 1000 };
            match step {
                0..=2 => {
                    came += 1;
                    spool.put(parcel(came, size), now);
                }
                3 => if let Some((number, _)) = spool.next(now) {
                    given += 1;
                    spool.taken(number);
                },
                4 => if let Some((number, _)) = spool.next(now) { spool.failed(number) },
                _ => {
                    dropped += spool.dropped().windows();
                    drop(spool);
                    spool = open(&folder, max_bytes, now);
                }
            }
            prop_assert!(spool.waiting().bytes <= max_bytes);
            prop_assert_eq!(files(&folder) as u64, spool.waiting().windows);
            let lost = dropped + spool.dropped().windows();
            prop_assert_eq!(came, given + lost + spool.waiting().windows);
        }
    }
}
