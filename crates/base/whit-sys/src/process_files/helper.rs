//! A process that waits for files of others, so that none of whit's threads has to.
//!
//! A file system may be a program of another user (FUSE), or a server. A call for a file on it lasts until that answers.
//! No signal but a fatal one ends it; where the program has taken the request and does not answer, not even that one,
//! and a process with such a thread cannot end. So all calls that may ask such a file system are made by a process that
//! can be left behind: those that look up a path, open and close a file, and read it. So are those that read the memory
//! of another process: its pages may be of such a file, and its list of mappings is locked while it waits for one.
//!
//! 1. [`start`] forks the helper while whit has one thread. It has no rights that whit was lent, no files, and no
//!    memory of a recorder, which a process that stays would keep.
//! 2. Whit asks it for workers, each with a socket of its own, as many as threads ask at a time. The helper itself
//!    touches no file.
//! 3. A worker that has not answered in time is killed and left behind. Its file system is not asked again for
//!    [`SILENT_TIME`]. While [`LEFT_MAX`] of them are there, no more are started.
//! 4. The helper and its workers end when whit does: their sockets are closed.
//!
//! Files on block devices are opened at once, without the helper: a disk answers. So are all files where the helper was
//! not started.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, FsWord, Mode, ResolveFlags, StatxFlags, fstat, fstatfs, openat, openat2, statx,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use whit_types::FileId;

use super::file_facts::FileFacts;
use super::walk::{LOOK, READ, is_kernels, is_regular, open_below, walk_below};
use super::{Miss, id_when_mapped};
use crate::memory::return_free_memory;
use crate::{Errno, check, privilege};

/// Time for one answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// Time for a copy of a file.
const COPY_TIME: Duration = Duration::from_secs(10);
/// Time that is waited in vain before answers have to come at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for an answer then.
const SHORT_TIME: Duration = Duration::from_millis(100);
/// Share of the time by which patience grows again.
const PATIENCE_SHARE: u32 = 60;
/// A file system that did not answer is not asked for so long.
const SILENT_TIME: Duration = Duration::from_secs(60);
/// File systems that are known not to answer.
const SILENT_MAX: usize = 64;
/// Workers that were left behind and have not ended.
const LEFT_MAX: usize = 32;
/// Largest file that is copied.
const COPY_MAX_BYTES: u64 = 1 << 30;
/// Most bytes of one read: a message holds them.
const READ_MAX_BYTES: usize = 64 << 10;
/// Longest path in a request. The kernel takes none that is longer.
const PATH_MAX_BYTES: usize = 4096;

/// `OVERLAYFS_SUPER_MAGIC` in `include/uapi/linux/magic.h`.
pub(super) const OVERLAYFS: FsWord = 0x794c_7630;
/// File systems that wait for nothing but this machine's memory and disks, by their numbers in
/// `include/uapi/linux/magic.h` and in their sources. A layer (overlayfs) is as its layers are, which root mounts.
const LOCAL: [FsWord; 24] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs, memfd, shared memory
    0x8584_58f6, // ramfs
    OVERLAYFS,
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
    0xf2f5_2010, // f2fs
    0x2fc1_2fc1, // zfs
    0xca45_1a4e, // bcachefs
    0x9584_58f6, // hugetlbfs
    0x9660,      // iso9660
    0x1501_3346, // udf
    0x4d44,      // vfat
    0x2011_bab0, // exfat
    0x7366_746e, // ntfs3
    0x3434,      // nilfs
    0x3153_464a, // jfs
    0x5265_4973, // reiserfs
    0x7275,      // romfs
    0x28cd_3d45, // cramfs
    0x6c6f_6f70, // binderfs
    0xf15f,      // ecryptfs
];
/// File systems of servers that root mounts. They are asked first, and trusted where they answer.
const NETWORK: [FsWord; 9] = [
    0x6969,      // nfs
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb2
    0x0102_1997, // 9p
    0x00c3_6400, // ceph
    0x5346_414f, // afs
    0x6b41_4653, // kafs
    0x0bd0_0bd0, // lustre
    0x4750_4653, // gpfs
];

/// The number of a file system, or of a process that may wait for one.
type Device = (u32, u32);
/// The major number that stands for processes. Those of devices have 12 bits.
const PROCESS: u32 = u32::MAX;

/// A file that was opened.
pub(super) struct Found {
    pub(super) facts: FileFacts,
    /// `None` where a program serves it.
    pub(super) file: Option<File>,
    /// The kernel's name of it in mappings, where a program serves it.
    pub(super) mapped: Option<FileId>,
}

static HELPER: OnceLock<Helper> = OnceLock::new();

#[derive(Debug)]
struct Helper {
    /// Takes sockets of new workers.
    control: Mutex<OwnedFd>,
    idle: Mutex<Vec<Worker>>,
    waits: Mutex<Waits>,
}

#[derive(Debug)]
struct Worker {
    socket: OwnedFd,
    pid: Pid,
}

/// The waits in vain.
#[derive(Debug)]
struct Waits {
    /// Until when they are not asked.
    silent: Vec<(Device, Instant)>,
    /// Descriptors of the processes that were left behind.
    left: Vec<OwnedFd>,
    patience: Duration,
    last: Instant,
}

/// Starts the helper. Without it, or where the kernel refuses, files are opened by the thread that wants them.
///
/// To be called once, after borrowed rights are settled and before the first thread.
pub fn start() {
    let started = Helper::start();
    if let Ok(helper) = started {
        // A second one ends by itself.
        let _ = HELPER.set(helper);
    }
}

impl Helper {
    fn start() -> Result<Helper, Errno> {
        let (ours, theirs) = sockets()?;
        // Each page that both have is copied at its next use, with a signal to all CPUs.
        return_free_memory();
        // SAFETY: the process has one thread, so that the child may do all that the parent may.
        let pid = check(i64::from(unsafe { libc::fork() }))?;
        if pid == 0 {
            drop(ours);
            serve(theirs);
        }
        let waits = Waits {
            silent: Vec::new(),
            left: Vec::new(),
            patience: PATIENCE,
            last: Instant::now(),
        };
        Ok(Helper {
            control: Mutex::new(ours),
            idle: Mutex::new(Vec::new()),
            waits: Mutex::new(waits),
        })
    }

    fn worker(&self) -> Result<Worker, Errno> {
        if let Some(worker) = lock(&self.idle).pop() {
            return Ok(worker);
        }
        lock(&self.waits).may_start()?;
        let (socket, theirs) = sockets()?;
        let control = lock(&self.control);
        send(&control, &[&[0]], &[theirs.as_fd()])?;
        let mut pid = [0; 4];
        let (size, _) = receive(&control, &mut pid)?;
        let pid = (size == pid.len()).then_some(i32::from_ne_bytes(pid));
        let pid = pid.and_then(Pid::from_raw).ok_or(Errno::AGAIN)?;
        Ok(Worker { socket, pid })
    }

    fn ask(
        &self,
        request: &Request<'_>,
        files: &[BorrowedFd<'_>],
        data: &mut [u8],
    ) -> Result<Answer, Errno> {
        let (silent, time) = lock(&self.waits).before(request.time());
        if request.device.is_some_and(|device| silent.contains(&device)) {
            return Err(Errno::TIMEDOUT);
        }
        let begin = Instant::now();
        let worker = self.worker()?;
        send(&worker.socket, &request.parts(&silent).each_ref().map(Vec::as_slice), files)?;
        let mut device = request.device;
        loop {
            let left = time.saturating_sub(begin.elapsed());
            if !is_readable(worker.socket.as_fd(), left)? {
                lock(&self.waits).give_up(&worker, device, begin.elapsed());
                return Err(Errno::TIMEDOUT);
            }
            match Answer::receive(&worker.socket, data)? {
                Message::Enters(entered) => device = Some(entered),
                Message::Answer(answer) => {
                    lock(&self.idle).push(worker);
                    return answer;
                }
            }
        }
    }
}

impl Helper {
    fn read_of_process(
        &self,
        file: BorrowedFd<'_>,
        pid: i32,
        bytes: &mut [u8],
        offset: u64,
    ) -> Result<usize, Errno> {
        let size = bytes.len().min(READ_MAX_BYTES);
        let device = Some((PROCESS, pid as u32));
        let request =
            Request { device, at: offset, size: size as u64, ..Request::of(Op::ReadProcess) };
        Ok(self.ask(&request, &[file], &mut bytes[..size])?.size)
    }
}

impl Waits {
    /// The file systems that are silent, and the time that an answer may take.
    fn before(&mut self, time: Duration) -> (Vec<Device>, Duration) {
        let now = Instant::now();
        let grown = now.saturating_duration_since(self.last) / PATIENCE_SHARE;
        (self.patience, self.last) = ((self.patience + grown).min(PATIENCE), now);
        self.silent.retain(|(_, until)| *until > now);
        let silent = self.silent.iter().map(|(device, _)| *device).collect();
        (silent, time.min(self.patience).max(SHORT_TIME))
    }

    fn give_up(&mut self, worker: &Worker, device: Option<Device>, waited: Duration) {
        // Its descriptor shows when it has ended: only then is its number another's.
        self.left.extend(pidfd_open(worker.pid, PidfdFlags::empty()));
        let _ = kill_process(worker.pid, Signal::KILL);
        self.patience = self.patience.saturating_sub(waited);
        let until = Instant::now() + SILENT_TIME;
        self.silent.extend(device.filter(|_| self.silent.len() < SILENT_MAX).map(|it| (it, until)));
    }

    fn may_start(&mut self) -> Result<(), Errno> {
        let ended = |left: &OwnedFd| is_readable(left.as_fd(), Duration::ZERO).unwrap_or(true);
        self.left.retain(|left| !ended(left));
        if self.left.len() < LEFT_MAX { Ok(()) } else { Err(Errno::TIMEDOUT) }
    }
}

/// Finds a file by its path: below a root, or as whit sees it. The descriptor is one of `O_PATH`.
pub(super) fn look(root: Option<&OwnedFd>, path: &Path) -> Result<OwnedFd, Errno> {
    let Some(helper) = HELPER.get() else {
        return match root {
            Some(root) => open_below(root, path),
            None => openat(CWD, path, LOOK, Mode::empty()),
        };
    };
    // Procfs asks nobody, and shows each process itself.
    if root.is_none() && path.starts_with("/proc/self") {
        return openat(CWD, path, LOOK, Mode::empty());
    }
    match within_a_mount(root, path) {
        Err(Errno::XDEV | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
        found => return found,
    }
    let path = match root {
        Some(_) => path.to_owned(),
        None => std::path::absolute(path).map_err(|_| Errno::NOENT)?,
    };
    let request = Request { op: Op::Look, device: None, at: 0, size: 0, path: &path };
    let slash;
    let root = match root {
        Some(root) => root,
        None => {
            slash = openat(CWD, "/", LOOK, Mode::empty())?;
            &slash
        }
    };
    helper.ask(&request, &[root.as_fd()], &mut [])?.file.ok_or(Errno::IO)
}

/// The same, where the way begins on a disk and stays there; `Errno::XDEV` elsewhere.
fn within_a_mount(root: Option<&OwnedFd>, path: &Path) -> Result<OwnedFd, Errno> {
    let slash;
    let (root, start) = match root {
        Some(root) => (ResolveFlags::IN_ROOT, root.as_fd()),
        None if path.is_absolute() => {
            slash = openat(CWD, "/", LOOK, Mode::empty())?;
            (ResolveFlags::IN_ROOT, slash.as_fd())
        }
        None => (ResolveFlags::empty(), CWD),
    };
    if !is_on_disk(device_of(start)?) {
        return Err(Errno::XDEV);
    }
    openat2(start, path, LOOK, Mode::empty(), root | ResolveFlags::NO_XDEV)
}

/// Opens the regular file behind an `O_PATH` descriptor for reading.
pub(super) fn open(place: &OwnedFd) -> Result<Found, Miss> {
    let device = device_of(place.as_fd())?;
    let Some(helper) = HELPER.get().filter(|_| !is_on_disk(device)) else {
        return open_here(place);
    };
    let request = Request { device: Some(device), ..Request::of(Op::Open) };
    match helper.ask(&request, &[place.as_fd()], &mut []) {
        Ok(Answer { facts, file, mapped, .. }) => {
            Ok(Found { facts, file: file.map(File::from), mapped })
        }
        Err(Errno::INVAL) => Err(Miss::NotRegular),
        Err(errno) => Err(errno.into()),
    }
}

/// The facts of the file behind an `O_PATH` descriptor.
pub(super) fn state(place: BorrowedFd<'_>) -> Result<FileFacts, Errno> {
    let device = device_of(place)?;
    let Some(helper) = HELPER.get().filter(|_| !is_on_disk(device)) else {
        return Ok(FileFacts::of(&fstat(place)?));
    };
    let request = Request { device: Some(device), ..Request::of(Op::State) };
    Ok(helper.ask(&request, &[place], &mut [])?.facts)
}

/// Reads from a file that a program serves.
pub(super) fn read_at(
    place: BorrowedFd<'_>,
    bytes: &mut [u8],
    offset: u64,
) -> Result<usize, Errno> {
    let size = bytes.len().min(READ_MAX_BYTES);
    let Some(helper) = HELPER.get() else {
        return rustix::io::pread(reopen(place)?, bytes, offset);
    };
    let device = Some(device_of(place)?);
    let request = Request { device, at: offset, size: size as u64, ..Request::of(Op::Read) };
    Ok(helper.ask(&request, &[place], &mut bytes[..size])?.size)
}

/// Reads from an open file of procfs that shows the memory of a process.
pub(super) fn read_of_process(
    file: BorrowedFd<'_>,
    pid: i32,
    bytes: &mut [u8],
    offset: u64,
) -> Result<usize, Errno> {
    let Some(helper) = HELPER.get() else { return rustix::io::pread(file, bytes, offset) };
    helper.read_of_process(file, pid, bytes, offset)
}

/// Follows a link in the directory of a process in procfs. The descriptor is one of `O_PATH`.
pub(super) fn follow_of_process(
    directory: &OwnedFd,
    pid: i32,
    link: &Path,
) -> Result<OwnedFd, Errno> {
    let Some(helper) = HELPER.get() else { return follow_here(directory, link) };
    let device = Some((PROCESS, pid as u32));
    let request = Request { device, path: link, ..Request::of(Op::Follow) };
    helper.ask(&request, &[directory.as_fd()], &mut [])?.file.ok_or(Errno::IO)
}

fn follow_here(directory: &OwnedFd, link: &Path) -> Result<OwnedFd, Errno> {
    openat(directory, link, LOOK, Mode::empty())
}

/// Copies a file that a program serves.
pub(super) fn copy(
    place: BorrowedFd<'_>,
    copy: BorrowedFd<'_>,
    size_bytes: u64,
) -> Result<(), Errno> {
    if size_bytes > COPY_MAX_BYTES {
        return Err(Errno::FBIG);
    }
    let Some(helper) = HELPER.get() else { return copy_here(place, copy, size_bytes) };
    let device = Some(device_of(place)?);
    let request = Request { device, size: size_bytes, ..Request::of(Op::Copy) };
    helper.ask(&request, &[place, copy], &mut []).map(drop)
}

/// The number of the file system, which the kernel knows without asking it.
fn device_of(place: BorrowedFd<'_>) -> Result<Device, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let stated = statx(place, c"", flags, StatxFlags::empty())?;
    Ok((stated.stx_dev_major, stated.stx_dev_minor))
}

/// File systems without a device have the major number 0.
fn is_on_disk(device: Device) -> bool {
    device.0 != 0
}

fn open_here(place: &OwnedFd) -> Result<Found, Miss> {
    let system = fstatfs(place)?.f_type;
    let stat = fstat(place)?;
    if is_kernels(system) || !is_regular(&stat) {
        return Err(Miss::NotRegular);
    }
    let file = File::from(reopen(place.as_fd())?);
    if LOCAL.contains(&system) {
        return Ok(Found { facts: FileFacts::of(&stat), file: Some(file), mapped: None });
    }
    // A file system that answers this has the file.
    rustix::io::pread(&file, &mut [0; 64], 0)?;
    let is_trusted = NETWORK.contains(&system);
    let mapped = if is_trusted { None } else { id_when_mapped(&file) };
    Ok(Found { facts: FileFacts::of(&stat), file: is_trusted.then_some(file), mapped })
}

/// The same file, for reading.
pub(super) fn reopen(place: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    openat(CWD, format!("/proc/self/fd/{}", place.as_raw_fd()), READ, Mode::empty())
}

fn copy_here(place: BorrowedFd<'_>, copy: BorrowedFd<'_>, size_bytes: u64) -> Result<(), Errno> {
    let file = reopen(place)?;
    let mut bytes = vec![0; 256 << 10];
    let mut at = 0;
    while at < size_bytes {
        let size = rustix::io::pread(&file, &mut bytes, at)?;
        if size == 0 {
            break;
        }
        // Holes stay holes.
        let mut rest =
            if bytes[..size].iter().any(|byte| *byte != 0) { &bytes[..size] } else { &[] };
        at += size as u64;
        while !rest.is_empty() {
            let written = rustix::io::pwrite(copy, rest, at - rest.len() as u64)?;
            rest = &rest[written..];
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one step: a panic elsewhere does not matter.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The work that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Look,
    State,
    Open,
    Read,
    Copy,
    ReadProcess,
    Follow,
}

impl Op {
    const ALL: [Op; 7] =
        [Op::Look, Op::State, Op::Open, Op::Read, Op::Copy, Op::ReadProcess, Op::Follow];
}

#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    op: Op,
    /// The file system, where it is known.
    device: Option<Device>,
    at: u64,
    size: u64,
    path: &'a Path,
}

impl Request<'_> {
    fn of(op: Op) -> Request<'static> {
        Request { op, device: None, at: 0, size: 0, path: Path::new("") }
    }

    fn time(&self) -> Duration {
        if self.op == Op::Copy { COPY_TIME } else { ANSWER_TIME }
    }

    /// The bytes of a message. File systems that are silent are not entered.
    fn parts(&self, silent: &[Device]) -> [Vec<u8>; 2] {
        let words = [self.op as u64, self.at, self.size, silent.len() as u64];
        let devices = silent.iter().copied().map(device_word);
        let words = words.into_iter().chain(devices).flat_map(u64::to_ne_bytes).collect();
        [words, self.path.as_os_str().as_bytes().to_vec()]
    }
}

/// The result of a request.
#[derive(Debug, Default)]
struct Answer {
    facts: FileFacts,
    file: Option<OwnedFd>,
    mapped: Option<FileId>,
    size: usize,
}

enum Message {
    /// The worker goes on to this file system.
    Enters(Device),
    Answer(Result<Answer, Errno>),
}

const WORDS: usize = 12;
const ENTERS: u64 = u64::MAX;

impl Answer {
    fn words(&self) -> [u64; WORDS] {
        let FileFacts { id, size_bytes, modified_ns, changed_ns, user, mode } = self.facts;
        let mapped = self.mapped.unwrap_or_default();
        let modes = device_word((user, mode));
        let device = device_word(id.device);
        let (has_mapped, of_mapped) =
            (u64::from(self.mapped.is_some()), device_word(mapped.device));
        let size = self.size as u64;
        [
            0,
            device,
            id.inode,
            size_bytes,
            modified_ns,
            changed_ns,
            modes,
            has_mapped,
            of_mapped,
            mapped.inode,
            size,
            0,
        ]
    }

    fn receive(socket: &OwnedFd, data: &mut [u8]) -> Result<Message, Errno> {
        let mut bytes = vec![0; WORDS * 8 + data.len()];
        let (size, files) = receive(socket, &mut bytes)?;
        let words = bytes.get(..WORDS * 8).filter(|_| size >= WORDS * 8).ok_or(Errno::IO)?;
        let word =
            |at: usize| words[at * 8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        if word(0) == ENTERS {
            return Ok(Message::Enters(word_device(word(1))));
        }
        if word(0) != 0 {
            return Ok(Message::Answer(Err(Errno::from_raw_os_error(word(0) as i32))));
        }
        let (user, mode) = word_device(word(6));
        let facts = FileFacts {
            id: FileId { device: word_device(word(1)), inode: word(2) },
            size_bytes: word(3),
            modified_ns: word(4),
            changed_ns: word(5),
            user,
            mode,
        };
        let mapped = FileId { device: word_device(word(8)), inode: word(9) };
        let mapped = (word(7) != 0).then_some(mapped);
        let size = (word(10) as usize).min(data.len()).min(size - WORDS * 8);
        data[..size].copy_from_slice(&bytes[WORDS * 8..][..size]);
        let file = files.into_iter().next();
        Ok(Message::Answer(Ok(Answer { facts, file, mapped, size })))
    }
}

fn device_word((major, minor): Device) -> u64 {
    u64::from(major) << 32 | u64::from(minor)
}

fn word_device(word: u64) -> Device {
    ((word >> 32) as u32, word as u32)
}

fn sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Most descriptors of a message.
const FILES_MAX: usize = 2;

fn send(socket: &OwnedFd, parts: &[&[u8]], files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let parts: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
    rustix::io::retry_on_intr(|| sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL))
        .map(drop)
}

/// The size of a message, 0 where the other side has ended, and its descriptors.
fn receive(socket: &OwnedFd, bytes: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let size = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files = files.flatten().collect();
    Ok((size.bytes, files))
}

/// Whether something can be received within a time; the end of the other side counts.
fn is_readable(socket: BorrowedFd<'_>, time: Duration) -> Result<bool, Errno> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut wanted = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        match poll(&mut wanted, Some(&left)) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// The helper's whole life.
fn serve(control: OwnedFd) -> ! {
    // Without these, it has less to do it with, and does the same.
    let _ = privilege::give_up_in_child();
    let _ = rustix::thread::set_name(c"whit-helper");
    leave_everything(&control);
    let mut byte = [0];
    while let Ok((1, files)) = receive(&control, &mut byte) {
        let Some(socket) = files.into_iter().next() else { break };
        // SAFETY: this process has one thread.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(control);
            work(&socket);
        }
        drop(socket);
        // -1 where there is none.
        if send(&control, &[&pid.to_ne_bytes()], &[]).is_err() {
            break;
        }
    }
    exit()
}

/// Ends this process at once: what the parent does at its end is not the child's.
fn exit() -> ! {
    // SAFETY: runs no handlers and returns to nobody.
    unsafe { libc::_exit(0) }
}

/// Closes all files but one, and takes no signals: those of the terminal are whit's.
fn leave_everything(control: &OwnedFd) {
    let kept = control.as_raw_fd() as libc::c_uint;
    let close = |first: libc::c_uint, last: libc::c_uint| {
        // SAFETY: no object of this process uses these descriptors: it only serves from now on.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }
    };
    if close(kept + 1, libc::c_uint::MAX) != 0 || (kept > 0 && close(0, kept - 1) != 0) {
        // Linux before 5.9. Others than these are closed by the exec of nothing.
        for fd in (0..1024).filter(|fd| *fd != kept) {
            // SAFETY: as above.
            unsafe { libc::close(fd as libc::c_int) };
        }
    }
    // Numbers below 3 are taken for standard streams, into which a panic would be written.
    while openat(CWD, "/dev/null", rustix::fs::OFlags::RDWR, Mode::empty())
        .is_ok_and(|null| std::os::fd::IntoRawFd::into_raw_fd(null) < 2)
    {}
    // SAFETY: an all-zero set is a place for a set.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is live and writable.
    unsafe { libc::sigfillset(&mut all) };
    // SAFETY: `all` was filled.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut()) };
    // SAFETY: no handler runs; workers that end leave nothing to wait for.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// A worker's whole life.
fn work(socket: &OwnedFd) -> ! {
    let mut bytes = vec![0; (4 + SILENT_MAX) * 8 + PATH_MAX_BYTES];
    loop {
        match receive(socket, &mut bytes) {
            Ok((size, files)) if size > 0 => {
                let mut data = Vec::new();
                let answer = obey(socket, &bytes[..size], &files, &mut data);
                // The file of a silent program waits here, before the answer, and not behind it.
                drop(files);
                let words = match &answer {
                    Ok(answer) => answer.words(),
                    Err(errno) => first_words([errno.raw_os_error() as u64, 0]),
                };
                let file = answer.as_ref().ok().and_then(|answer| answer.file.as_ref());
                let files: Vec<_> = file.map(AsFd::as_fd).into_iter().collect();
                if send(socket, &[&words.map(u64::to_ne_bytes).concat(), &data], &files).is_err() {
                    exit();
                }
            }
            _ => exit(),
        }
    }
}

fn first_words([first, second]: [u64; 2]) -> [u64; WORDS] {
    std::array::from_fn(|at| [first, second].get(at).copied().unwrap_or(0))
}

fn obey(
    socket: &OwnedFd,
    request: &[u8],
    files: &[OwnedFd],
    data: &mut Vec<u8>,
) -> Result<Answer, Errno> {
    let word = |at: usize| {
        let bytes = request.get(at * 8..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    };
    let place = files.first().ok_or(Errno::INVAL)?;
    let silent = (word(3) as usize).min(SILENT_MAX);
    let path = request.get((4 + silent) * 8..).unwrap_or_default();
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    match Op::ALL.get(word(0) as usize).ok_or(Errno::INVAL)? {
        Op::Look => {
            let mut last = None;
            let enter = |place: &OwnedFd| {
                let device = device_of(place.as_fd())?;
                if is_on_disk(device) || last.replace(device) == Some(device) {
                    return Ok(());
                }
                if (0..silent).any(|at| word(4 + at) == device_word(device)) {
                    return Err(Errno::TIMEDOUT);
                }
                let words = first_words([ENTERS, device_word(device)]);
                send(socket, &[&words.map(u64::to_ne_bytes).concat()], &[])
            };
            Ok(Answer { file: Some(walk_below(place, path, enter)?), ..Answer::default() })
        }
        Op::State => Ok(Answer { facts: FileFacts::of(&fstat(place)?), ..Answer::default() }),
        Op::Open => {
            let Found { facts, file, mapped } = open_here(place).map_err(Miss::into_errno)?;
            Ok(Answer { facts, file: file.map(OwnedFd::from), mapped, size: 0 })
        }
        Op::Read => {
            data.resize((word(2) as usize).min(READ_MAX_BYTES), 0);
            let size = rustix::io::pread(reopen(place.as_fd())?, &mut data[..], word(1))?;
            data.truncate(size);
            Ok(Answer { size, ..Answer::default() })
        }
        Op::ReadProcess => {
            data.resize((word(2) as usize).min(READ_MAX_BYTES), 0);
            let size = read_whole(place, data, word(1))?;
            data.truncate(size);
            Ok(Answer { size, ..Answer::default() })
        }
        Op::Follow => Ok(Answer { file: Some(follow_here(place, path)?), ..Answer::default() }),
        Op::Copy => {
            let copy = files.get(1).ok_or(Errno::INVAL)?;
            copy_here(place.as_fd(), copy.as_fd(), word(2).min(COPY_MAX_BYTES))?;
            Ok(Answer::default())
        }
    }
}

/// Reads until there is no more: the kernel gives lists of mappings by the page. An error counts where nothing was read.
fn read_whole(file: &OwnedFd, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut size = 0;
    while size < bytes.len() {
        match rustix::io::pread(file, &mut bytes[size..], offset + size as u64) {
            Ok(0) => break,
            Ok(more) => size += more,
            Err(error) if size == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(size)
}

#[cfg(test)]
mod tests;
