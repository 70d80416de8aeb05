use std::fs;
use std::path::PathBuf;

use super::*;
use crate::MappedFile;
use crate::system::{self, page_size};

/// An answer that does not come by then never does.
const LATE: Duration = Duration::from_secs(20);
/// An answer without a wait, on a busy machine.
const AT_ONCE: Duration = Duration::from_millis(1500);

fn helper() -> Helper {
    Helper::start().unwrap()
}

fn directory(path: &Path) -> OwnedFd {
    openat(CWD, path, LOOK, Mode::empty()).unwrap()
}

fn look(helper: &Helper, path: &Path) -> Result<OwnedFd, Errno> {
    let request = Request { path, ..Request::of(Op::Look) };
    helper.ask(&request, &[directory(Path::new("/")).as_fd()], &mut [])?.file.ok_or(Errno::IO)
}

fn own_memory() -> OwnedFd {
    openat(CWD, "/proc/self/mem", READ, Mode::empty()).unwrap()
}

/// A file in a directory.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    fs::write(&path, text).unwrap();
    (place, path)
}

#[test]
fn files_are_found_opened_read_and_copied() {
    let helper = helper();
    let (place, path) = file("contents");
    std::os::unix::fs::symlink("file", place.path().join("link")).unwrap();
    let found = look(&helper, &place.path().join("link")).unwrap();
    let opened = helper.ask(&Request::of(Op::Open), &[found.as_fd()], &mut []).unwrap();
    let stated = helper.ask(&Request::of(Op::State), &[found.as_fd()], &mut []).unwrap();
    assert_eq!((stated.facts, opened.facts.size_bytes), (opened.facts, 8));
    assert_eq!(opened.facts, FileFacts::of(&fstat(fs::File::open(&path).unwrap()).unwrap()));
    let mut bytes = [0; 16];
    let read = Request { at: 3, size: 16, ..Request::of(Op::Read) };
    let size = helper.ask(&read, &[found.as_fd()], &mut bytes).unwrap().size;
    assert_eq!(&bytes[..size], b"tents");
    let copy = tempfile::tempfile().unwrap();
    let request = Request { size: 8, ..Request::of(Op::Copy) };
    helper.ask(&request, &[found.as_fd(), copy.as_fd()], &mut []).unwrap();
    let mut bytes = [0; 16];
    assert_eq!(rustix::io::pread(&copy, &mut bytes, 0), Ok(8));
    assert_eq!(&bytes[..8], b"contents");
    // One worker did all of it.
    assert_eq!(lock(&helper.idle).len(), 1);
}

#[test]
fn refusals_of_the_kernel_are_passed_on() {
    let helper = helper();
    let (place, path) = file("");
    assert_eq!(look(&helper, &place.path().join("none")).unwrap_err(), Errno::NOENT);
    assert_eq!(look(&helper, &path.join("below")).unwrap_err(), Errno::NOTDIR);
    let open = |place: &OwnedFd| helper.ask(&Request::of(Op::Open), &[place.as_fd()], &mut []);
    assert_eq!(open(&directory(place.path())).unwrap_err(), Errno::INVAL);
    let status = look(&helper, Path::new("/proc/uptime")).unwrap();
    assert_eq!(open(&status).unwrap_err(), Errno::INVAL);
    // Nothing is mapped there.
    let mut bytes = [0; 8];
    let read = helper.read_of_process(own_memory().as_fd(), 1, &mut bytes, 0);
    assert_eq!(read, Err(Errno::IO));
}

#[test]
fn memory_lists_and_links_of_processes_are_read() {
    let helper = helper();
    let pid = system::pid();
    let known: Vec<u8> = (0..200).collect();
    let mut bytes = vec![0; known.len()];
    let at = known.as_ptr() as u64;
    let size = helper.read_of_process(own_memory().as_fd(), pid, &mut bytes, at);
    assert_eq!((size, &bytes), (Ok(known.len()), &known));
    // By itself, the kernel gives a page of a list.
    let maps = openat(CWD, "/proc/self/maps", READ, Mode::empty()).unwrap();
    let mut list = vec![0; READ_MAX_BYTES];
    let _many: Vec<_> = (0..200)
        .map(|_| MappedFile::map(&fs::File::open("/proc/self/exe").unwrap()).unwrap())
        .collect();
    let size = helper.read_of_process(maps.as_fd(), pid, &mut list, 0).unwrap();
    assert!(size > 2 * page_size(), "{size}");
    let directory = directory(Path::new("/proc/self"));
    let request = Request { path: Path::new("exe"), ..Request::of(Op::Follow) };
    let found = helper.ask(&request, &[directory.as_fd()], &mut []).unwrap().file.unwrap();
    let of = |place: &OwnedFd| FileFacts::of(&fstat(place).unwrap()).id;
    assert_eq!(of(&found), of(&openat(CWD, "/proc/self/exe", LOOK, Mode::empty()).unwrap()));
}

/// Reads of a file wait for a listener (fanotify) that does not answer, until it ends.
fn make_silent(path: &Path) -> Option<OwnedFd> {
    use std::os::fd::FromRawFd;
    let flags = libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC;
    // SAFETY: takes numbers alone.
    let listener = unsafe { libc::fanotify_init(flags, libc::O_RDONLY as libc::c_uint) };
    if listener < 0 {
        return None;
    }
    // SAFETY: the descriptor is new, and nobody else's.
    let listener = unsafe { OwnedFd::from_raw_fd(listener) };
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let (add, reads) = (libc::FAN_MARK_ADD, libc::FAN_ACCESS_PERM);
    let at = libc::AT_FDCWD;
    // SAFETY: `path` is a live string.
    let done = unsafe { libc::fanotify_mark(listener.as_raw_fd(), add, reads, at, path.as_ptr()) };
    (done == 0).then_some(listener)
}

#[test]
fn a_read_without_an_answer_is_left_behind_with_its_worker() {
    let (_place, path) = file("contents");
    let Some(listener) = make_silent(&path) else {
        let why = "this user cannot make reads of a file wait (fanotify)";
        return whit_testing::skip("a_read_without_an_answer", why);
    };
    // The kernel asks the listener where it was there at the opening.
    let opened = OwnedFd::from(fs::File::open(&path).unwrap());
    let helper = helper();
    let mut bytes = [0; 8];
    let mut read = |pid| {
        let begin = Instant::now();
        (helper.read_of_process(opened.as_fd(), pid, &mut bytes, 0), begin.elapsed())
    };
    let (first, took) = read(1);
    assert_eq!(first, Err(Errno::TIMEDOUT));
    assert!((ANSWER_TIME..LATE).contains(&took), "{took:?}");
    // The process is not asked again for a while; another one is.
    let (second, took) = read(1);
    assert_eq!(second, Err(Errno::TIMEDOUT));
    assert!(took < AT_ONCE, "{took:?}");
    let (of_other, took) = read(2);
    assert_eq!(of_other, Err(Errno::TIMEDOUT));
    assert!((ANSWER_TIME..LATE).contains(&took), "{took:?}");
    assert!(lock(&helper.waits).patience <= PATIENCE - ANSWER_TIME);
    // Others are served, by a new worker.
    assert!(look(&helper, Path::new("/proc/self/status")).is_ok());
    assert_eq!(lock(&helper.idle).len(), 1);
    // Killed workers are forgotten when they have ended.
    drop(listener);
    let end = Instant::now() + LATE;
    while !lock(&helper.waits).left.is_empty() && Instant::now() < end {
        assert_eq!(lock(&helper.waits).may_start(), Ok(()));
        std::thread::yield_now();
    }
    assert!(lock(&helper.waits).left.is_empty());
    assert_eq!(read(3).0, Ok(8));
    assert_eq!(&bytes, b"contents");
}

fn waits(patience: Duration) -> Waits {
    Waits { silent: Vec::new(), left: Vec::new(), patience, last: Instant::now() }
}

#[test]
fn patience_is_used_up_and_comes_back() {
    let mut waits = waits(PATIENCE);
    assert_eq!(waits.before(ANSWER_TIME).1, ANSWER_TIME);
    waits.patience = Duration::from_secs(1);
    let (_, time) = waits.before(ANSWER_TIME);
    assert!((Duration::from_secs(1)..ANSWER_TIME).contains(&time), "{time:?}");
    waits.patience = Duration::ZERO;
    assert_eq!(waits.before(ANSWER_TIME).1, SHORT_TIME);
    // A minute gives a second.
    waits.last = Instant::now() - Duration::from_secs(60);
    let (_, time) = waits.before(ANSWER_TIME);
    assert!((Duration::from_millis(999)..ANSWER_TIME).contains(&time), "{time:?}");
    waits.last = Instant::now() - Duration::from_secs(100_000);
    waits.before(ANSWER_TIME);
    assert_eq!(waits.patience, PATIENCE);
}

#[test]
fn silence_ends_and_has_bounds() {
    let mut waits = waits(PATIENCE);
    let now = Instant::now();
    waits.silent = vec![((1, 2), now - Duration::from_secs(1)), ((3, 4), now + SILENT_TIME)];
    assert_eq!(waits.before(ANSWER_TIME).0, [(3, 4)]);
    let helper = helper();
    for number in 0..2 * SILENT_MAX as u32 {
        // Each of them is a worker that ends at once.
        let worker = if number < 3 { helper.worker().unwrap() } else { gone() };
        waits.give_up(&worker, Some((PROCESS, number)), Duration::from_millis(10));
    }
    assert_eq!(waits.silent.len(), SILENT_MAX);
    assert!(waits.patience < PATIENCE - Duration::from_secs(1));
    assert!(waits.before(ANSWER_TIME).0.contains(&(PROCESS, 1)));
}

/// A worker that has ended.
fn gone() -> Worker {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = Pid::from_child(&child);
    child.wait().unwrap();
    Worker { socket: sockets().unwrap().0, pid }
}

#[test]
fn workers_that_are_left_behind_are_bounded() {
    let mut waits = waits(PATIENCE);
    let own = || pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).unwrap();
    waits.left = (0..LEFT_MAX).map(|_| own()).collect();
    assert_eq!(waits.may_start(), Err(Errno::TIMEDOUT));
    waits.left.pop();
    assert_eq!(waits.may_start(), Ok(()));
}

#[test]
fn an_end_of_the_helper_is_an_error_and_no_wait() {
    let (ours, theirs) = sockets().unwrap();
    drop(theirs);
    let helper = Helper {
        control: Mutex::new(ours),
        idle: Mutex::new(Vec::new()),
        waits: Mutex::new(waits(PATIENCE)),
    };
    let begin = Instant::now();
    assert!(look(&helper, Path::new("/proc/self/status")).is_err());
    assert!(begin.elapsed() < ANSWER_TIME);
}

#[test]
fn requests_and_answers_keep_their_numbers() {
    let (ours, theirs) = sockets().unwrap();
    let facts = FileFacts {
        id: FileId { device: (8, 1), inode: u64::MAX },
        size_bytes: 1 << 40,
        modified_ns: 3,
        changed_ns: 4,
        user: u32::MAX,
        mode: 0o100_644,
    };
    let mapped = Some(FileId { device: (0, 77), inode: 5 });
    let answer = Answer { facts, file: None, mapped, size: 3 };
    let words = answer.words().map(u64::to_ne_bytes).concat();
    send(&theirs, &[&words, b"abc"], &[]).unwrap();
    let mut data = [0; 2];
    let Message::Answer(Ok(received)) = Answer::receive(&ours, &mut data).unwrap() else {
        panic!("no answer")
    };
    assert_eq!((received.facts, received.mapped, received.size), (facts, mapped, 2));
    assert_eq!(&data, b"ab");
    for (first, second) in [(Errno::LOOP.raw_os_error() as u64, 0), (ENTERS, device_word((7, 9)))] {
        send(&theirs, &[&first_words([first, second]).map(u64::to_ne_bytes).concat()], &[])
            .unwrap();
        match Answer::receive(&ours, &mut data).unwrap() {
            Message::Enters(device) => assert_eq!((first, device), (ENTERS, (7, 9))),
            Message::Answer(answer) => assert_eq!(answer.unwrap_err(), Errno::LOOP),
        }
    }
    // A message that is cut off is no answer.
    send(&theirs, &[&[0; 8]], &[]).unwrap();
    assert!(Answer::receive(&ours, &mut data).is_err());
}
