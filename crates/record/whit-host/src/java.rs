//! Names of compiled code, asked of a running Java virtual machine: `jcmd PID Compiler.perfmap`.
//!
//! HotSpot's attach protocol (`attachListener_posix.cpp`): a file `.attach_pidN` in the machine's `/tmp` and SIGQUIT
//! have it listen at the socket `.java_pidN` beside the file. A request is a version and a command with three arguments,
//! each ended by a zero byte. An answer is a number, zero for success, a line break, and text to the end of the stream.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat,
    unlinkat,
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::{PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
use thiserror::Error;
use whit_sys::Errno;
use whit_types::Pid;

use crate::processes::{effective_user, inner_pid};
use crate::roots::Roots;

/// Version 1 of the protocol, the command, and its three arguments.
const REQUEST: &[u8] = b"1\0jcmd\0Compiler.perfmap\0\0\0";
/// A virtual machine looks for the file between two safepoints: some 10 ms on an idle machine.
const LISTENS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 4096;
/// Bit of SIGQUIT in the masks of `/proc/PID/status`.
const QUIT_BIT: u64 = 1 << 2;

/// Why a virtual machine has written no names.
#[derive(Debug, Error)]
pub enum JavaError {
    /// The process has ended.
    #[error("it has ended")]
    Gone,
    /// A virtual machine obeys its own user and root.
    #[error("it runs as user {theirs}: record as that user, or as root")]
    OtherUser {
        /// The user with whose rights it runs.
        theirs: u32,
    },
    /// SIGQUIT would end it.
    #[error(
        "it neither listens nor handles SIGQUIT: java was started with -XX:+DisableAttachMechanism, or begins at this moment"
    )]
    NoHandler,
    /// It does not listen.
    #[error("it does not listen within {} s: java was started with -XX:+DisableAttachMechanism, or is stopped",
            LISTENS_WITHIN.as_secs())]
    Silent,
    /// The socket is of another process.
    #[error("the socket in its /tmp belongs to user {owner}, and not to it: remove the file")]
    Foreign {
        /// The owner of the socket.
        owner: u32,
    },
    /// It takes connections or sends bytes, and does not come to an end.
    #[error("it gave no whole answer in the time that all virtual machines have together")]
    Unfinished,
    /// The answer of the virtual machine.
    #[error("it refuses: {0} (JDK 17 and later know Compiler.perfmap)")]
    Refused(String),
    /// The kernel refuses.
    #[error("cannot {what}: {source}")]
    Kernel {
        /// The attempt.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Has a Java virtual machine write `/tmp/perf-PID.map`, as it sees `/tmp` and its own number. The process decides how
/// long it takes to listen, to accept and to answer: all of it ends at the deadline.
///
/// # Errors
///
/// See [`JavaError`].
pub fn write_perf_map(roots: &Roots, pid: Pid, deadline: Instant) -> Result<(), JavaError> {
    // From here on, the number cannot come to mean another process.
    let process = rustix::process::Pid::from_raw(pid.0).ok_or(JavaError::Gone)?;
    let process = pidfd_open(process, PidfdFlags::empty()).map_err(|_| JavaError::Gone)?;
    let theirs = effective_user(roots, pid).ok_or(JavaError::Gone)?;
    let own = geteuid().as_raw();
    if own != 0 && own != theirs {
        return Err(JavaError::OtherUser { theirs });
    }
    let inner = inner_pid(roots, pid).ok_or(JavaError::Gone)?;
    let folder = folder(roots, pid)?;
    let socket = format!(".java_pid{}", inner.0);
    if owner_of_socket(&folder, &socket).is_none() {
        let until = deadline.min(Instant::now() + LISTENS_WITHIN);
        listen(roots, (pid, inner), &process, &folder, &socket, until)?;
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = openat(&folder, &socket, flags, Mode::empty()).map_err(|_| JavaError::Silent)?;
    match owner_if_socket(&fstat(&socket).map_err(|_| JavaError::Silent)?) {
        Some(owner) if owner != theirs && owner != 0 => return Err(JavaError::Foreign { owner }),
        Some(_) => {}
        None => return Err(JavaError::Silent),
    }
    let answer = ask(&socket, deadline).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => JavaError::Unfinished,
        _ => JavaError::Kernel { what: "ask it", source },
    })?;
    judge(&answer)
}

/// The `/tmp` that the process sees. Links lead nowhere outside of its view.
fn folder(roots: &Roots, pid: Pid) -> Result<OwnedFd, JavaError> {
    let failed = |what| move |errno: Errno| JavaError::Kernel { what, source: errno.into() };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, roots.living(pid, "root"), flags, Mode::empty());
    let root = root.map_err(failed("look at its files"))?;
    openat2(&root, "tmp", flags, Mode::empty(), ResolveFlags::IN_ROOT)
        .map_err(failed("open its /tmp"))
}

/// The owner of a socket of this name.
fn owner_of_socket(folder: &OwnedFd, name: &str) -> Option<u32> {
    owner_if_socket(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?)
}

fn owner_if_socket(found: &Stat) -> Option<u32> {
    (FileType::from_raw_mode(found.st_mode) == FileType::Socket).then_some(found.st_uid)
}

/// Has it listen.
fn listen(
    roots: &Roots,
    (pid, inner): (Pid, Pid),
    process: &OwnedFd,
    folder: &OwnedFd,
    socket: &str,
    until: Instant,
) -> Result<(), JavaError> {
    let status = std::fs::read_to_string(roots.process(pid, "status"));
    if !handles_quit(&status.map_err(|_| JavaError::Gone)?) {
        return Err(JavaError::NoHandler);
    }
    let request = format!(".attach_pid{}", inner.0);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |what| move |errno: Errno| JavaError::Kernel { what, source: errno.into() };
    let made = openat(folder, &request, flags, Mode::RUSR | Mode::WUSR);
    made.map_err(failed("make a file in its /tmp"))?;
    let sent = pidfd_send_signal(process.as_fd(), Signal::QUIT);
    while sent.is_ok()
        && owner_of_socket(folder, socket).is_none()
        && Instant::now() < until
        && roots.process(pid, "status").exists()
    {
        sleep(LOOK_AGAIN);
    }
    // The virtual machine may have removed it.
    let _ = unlinkat(folder, &request, AtFlags::empty());
    sent.map_err(failed("send it SIGQUIT"))
}

/// Whether the process has a handler for SIGQUIT, by `/proc/PID/status`.
fn handles_quit(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & QUIT_BIT != 0)
}

/// The answer. An error of the kind `TimedOut` or `WouldBlock` is the deadline's.
fn ask(socket: &OwnedFd, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut stream = connect(socket, deadline)?;
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    while answer.len() < ANSWER_BYTES_MAX {
        // A timeout is that of one read, and the other side may send byte after byte.
        stream.set_read_timeout(Some(left(deadline)?))?;
        let mut piece = [0; 512];
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(size) => answer.extend(&piece[..size]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

/// The time that is left, never zero: the kernel would take that for endless.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Connects by way of the opened socket: no link in its place is followed. Where the queue of the listener is full, a
/// blocking attempt would last as long as it likes.
fn connect(socket: &OwnedFd, deadline: Instant) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", socket.as_raw_fd()))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&stream, &address) {
            Err(Errno::AGAIN | Errno::INTR) => sleep(left(deadline)?.min(LOOK_AGAIN)),
            connected => break connected?,
        }
    }
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn judge(answer: &[u8]) -> Result<(), JavaError> {
    let text = String::from_utf8_lossy(answer);
    match text.split_once('\n') {
        Some(("0", _)) => Ok(()),
        Some((_, why)) => {
            Err(JavaError::Refused(why.lines().next().unwrap_or_default().to_owned()))
        }
        None => Err(JavaError::Refused("an answer without a line".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    /// A folder that stands for the root of this process, which plays the virtual machine.
    fn machine(root: &Path, caught: &str) -> Roots {
        let own = std::process::id();
        let process = root.join(format!("proc/{own}"));
        std::fs::create_dir_all(process.join("root/tmp")).unwrap();
        let user = geteuid().as_raw();
        let status =
            format!("Uid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t{own}\t7\nSigCgt:\t{caught}\n");
        std::fs::write(process.join("status"), status).unwrap();
        Roots { proc: root.join("proc"), ..Roots::default() }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    /// How long a machine is waited for whose socket `serve` serves.
    fn time_with(
        prepare: impl FnOnce(&UnixListener) -> Option<UnixStream>,
        serve: impl FnOnce(&UnixListener) + Send + 'static,
    ) -> Duration {
        let root = tempfile::tempdir().unwrap();
        let roots = machine(root.path(), "0");
        let own = Pid(std::process::id() as i32);
        let listener = UnixListener::bind(roots.process(own, "root/tmp/.java_pid7")).unwrap();
        let _queued = prepare(&listener);
        // It ends when the connection does, or with the test.
        let server = listener.try_clone().unwrap();
        std::thread::spawn(move || serve(&server));
        let begin = Instant::now();
        let outcome = write_perf_map(&roots, own, begin + Duration::from_millis(300));
        assert!(matches!(outcome, Err(JavaError::Unfinished)), "{outcome:?}");
        begin.elapsed()
    }

    #[test]
    fn a_machine_that_drips_or_never_answers_is_waited_for_until_the_deadline() {
        let drip = |listener: &UnixListener| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            // Reading is a pause that ends with the connection.
            let is_open = |stream: &mut UnixStream| !matches!(stream.read(&mut [0; 64]), Ok(0));
            while is_open(&mut stream) && stream.write_all(b"0").is_ok() {}
        };
        // One connection may wait, and does.
        let fill = |listener: &UnixListener| {
            rustix::net::listen(listener, 0).unwrap();
            let address = listener.local_addr().unwrap();
            Some(UnixStream::connect(address.as_pathname().unwrap()).unwrap())
        };
        let (drip, silent) = (time_with(|_| None, drip), time_with(|_| None, |_| ()));
        let full = time_with(fill, |_| ());
        for time in [drip, silent, full] {
            assert!((300..5000).contains(&time.as_millis()), "{drip:?} {silent:?} {full:?}");
        }
    }

    fn asked(answer: &'static [u8]) -> (Result<(), JavaError>, Vec<u8>) {
        let root = tempfile::tempdir().unwrap();
        let roots = machine(root.path(), "0");
        let own = Pid(std::process::id() as i32);
        let socket = roots.process(own, "root/tmp/.java_pid7");
        let listener = UnixListener::bind(socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; REQUEST.len()];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(answer).unwrap();
            request
        });
        (write_perf_map(&roots, own, soon()), server.join().unwrap())
    }

    #[test]
    fn a_virtual_machine_that_listens_is_asked_under_its_own_number() {
        let (outcome, request) = asked(b"0\nCommand executed successfully\n");
        outcome.unwrap();
        assert_eq!(request, b"1\0jcmd\0Compiler.perfmap\0\0\0");
    }

    #[test]
    fn a_virtual_machine_that_refuses_is_quoted() {
        let (outcome, _) =
            asked(b"1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n");
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("Unknown diagnostic command (JDK 17"), "{text}");
        assert!(matches!(asked(b"").0, Err(JavaError::Refused(_))));
    }

    #[test]
    fn a_process_that_sigquit_would_end_gets_no_signal() {
        let root = tempfile::tempdir().unwrap();
        // All signals but SIGQUIT.
        let roots = machine(root.path(), "fffffffffffffffb");
        let own = Pid(std::process::id() as i32);
        let outcome = write_perf_map(&roots, own, soon());
        assert!(matches!(outcome, Err(JavaError::NoHandler)), "{outcome:?}");
        assert_eq!(std::fs::read_dir(roots.process(own, "root/tmp")).unwrap().count(), 0);
        assert!(handles_quit("SigCgt:\t0000000000000004\n") && !handles_quit("SigIgn:\t4\n"));
    }

    #[test]
    fn a_tmp_that_leads_out_of_the_view_of_the_process_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let roots = machine(root.path(), "4");
        let own = Pid(std::process::id() as i32);
        let tmp = roots.process(own, "root/tmp");
        std::fs::remove_dir(&tmp).unwrap();
        std::os::unix::fs::symlink(root.path(), &tmp).unwrap();
        let outcome = write_perf_map(&roots, own, soon());
        assert!(
            matches!(outcome, Err(JavaError::Kernel { what: "open its /tmp", .. })),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_process_that_has_ended_is_gone() {
        let outcome = write_perf_map(&Roots::default(), Pid(i32::MAX), soon());
        assert!(matches!(outcome, Err(JavaError::Gone)));
    }
}
