//! The command to record: forked first, held before its exec until every event is open.
//!
//! The child blocks on a pipe until told to go, so that events can be opened on its pid with
//! `enable_on_exec` and nothing of the command is missed. It is forked before the recorder
//! raises its limits or moves between CPUs, so the command inherits none of that. A failed exec
//! comes back with its errno through a second pipe, which a successful exec closes.
//!
//! Where the recorder runs with capabilities that its user has not, the child gives them up before
//! anything else, and execs with the environment that the user gave (see [`crate::privilege`]).

use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::environment::GivenEnvironment;
use crate::usage::CpuUsage;
use crate::{Errno, SignalFd, check, privilege, signal};

/// Exit code of a child that could not exec, as shells use it.
const EXEC_FAILED: i32 = 127;

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// An argument cannot be passed on.
    #[error("cannot run '{argument}': it contains a nul byte")]
    NulByte {
        /// The argument, lossily decoded.
        argument: String,
    },
    /// There is nothing to run.
    #[error("cannot run an empty command")]
    Empty,
    /// Pipe or fork failed.
    #[error("cannot start a process for '{command}'")]
    Fork {
        /// The command's name.
        command: String,
        /// Error of the kernel.
        source: Errno,
    },
    /// The command could not be executed.
    #[error("cannot run '{command}'")]
    Exec {
        /// The command's name.
        command: String,
        /// Error of the kernel.
        source: Errno,
    },
    /// Waiting for the command failed.
    #[error("cannot wait for '{command}'")]
    Wait {
        /// The command's name.
        command: String,
        /// Error of the kernel.
        source: Errno,
    },
}

/// How the child is to start.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkloadOptions {
    /// The command's output goes to our standard error (the recording takes standard output).
    pub stdout_to_stderr: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl ExitStatus {
    /// As shells report it: the code, or 128 plus the signal.
    pub fn shell_code(self) -> i32 {
        match self {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal(number) => 128 + number,
        }
    }
}

/// A finished command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// How it ended.
    pub status: ExitStatus,
    /// Resources that it and its waited-for children used.
    pub usage: CpuUsage,
}

/// A forked child that waits to be started, runs, or has ended.
#[derive(Debug)]
pub struct Workload {
    command: String,
    pid: i32,
    go: Option<OwnedFd>,
    exec_error: Option<OwnedFd>,
    exit: Option<Exit>,
}

impl Workload {
    /// Forks the child. It runs `argv[0]`, looked up in `PATH`, once [`Workload::start`] is
    /// called, with the signal mask from before `signals` was made.
    pub fn prepare(
        argv: &[OsString],
        options: WorkloadOptions,
        signals: Option<&SignalFd>,
    ) -> Result<Workload, WorkloadError> {
        let command = argv.first().ok_or(WorkloadError::Empty)?.to_string_lossy().into_owned();
        let arguments = argv.iter().map(c_string).collect::<Result<Vec<_>, _>>()?;
        let mut pointers: Vec<_> = arguments.iter().map(|a| a.as_ptr()).collect();
        pointers.push(std::ptr::null());
        let fork_error = |source| WorkloadError::Fork { command: command.clone(), source };
        let mask = match signals {
            Some(signals) => signals.mask_before(),
            None => signal::current_mask().map_err(fork_error)?,
        };
        let (go_read, go_write) = pipe_with(PipeFlags::CLOEXEC).map_err(fork_error)?;
        let (error_read, error_write) = pipe_with(PipeFlags::CLOEXEC).map_err(fork_error)?;
        let environment = privilege::command_environment().map(GivenEnvironment::pointers);
        // SAFETY: the child only makes async-signal-safe calls until it execs or exits (see
        // `child`), so locks held by other threads at this moment do not matter.
        let pid = unsafe { libc::fork() };
        let pid = check(i64::from(pid)).map_err(fork_error)? as i32;
        if pid == 0 {
            drop(go_write);
            drop(error_read);
            let image = Image { argv: &pointers, environment: environment.as_deref() };
            child(&image, options, &mask, &go_read, &error_write);
        }
        Ok(Workload { command, pid, go: Some(go_write), exec_error: Some(error_read), exit: None })
    }

    /// The child's process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The command's name as given.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Lets the child exec, and waits until it has. Later calls do nothing.
    pub fn start(&mut self) -> Result<(), WorkloadError> {
        self.release()?;
        self.check_exec()
    }

    /// Lets the child exec, and does not wait for that: nothing disturbs its first steps. Where the
    /// exec fails, that is said when the child is waited for.
    pub fn release(&mut self) -> Result<(), WorkloadError> {
        let Some(go) = self.go.take() else { return Ok(()) };
        let error = |source| WorkloadError::Exec { command: self.command.clone(), source };
        rustix::io::retry_on_intr(|| rustix::io::write(&go, &[1])).map_err(error).map(drop)
    }

    /// Waits until the child has executed its program, or could not.
    fn check_exec(&mut self) -> Result<(), WorkloadError> {
        let Some(exec_error) = self.exec_error.take() else { return Ok(()) };
        let error = |source| WorkloadError::Exec { command: self.command.clone(), source };
        let mut errno = [0u8; 4];
        let size = rustix::io::retry_on_intr(|| rustix::io::read(&exec_error, &mut errno))
            .map_err(error)?;
        if size == errno.len() {
            return Err(error(Errno::from_raw_os_error(i32::from_ne_bytes(errno))));
        }
        Ok(())
    }

    /// Whether the child has ended, without waiting.
    pub fn try_wait(&mut self) -> Result<Option<Exit>, WorkloadError> {
        self.wait_with(libc::WNOHANG)
    }

    /// Waits until the child has ended.
    pub fn wait(&mut self) -> Result<Exit, WorkloadError> {
        loop {
            if let Some(exit) = self.wait_with(0)? {
                return Ok(exit);
            }
        }
    }

    /// Sends the child a signal unless it has been waited for.
    pub fn kill(&self, signal: i32) -> Result<(), Errno> {
        if self.exit.is_some() {
            return Ok(());
        }
        // SAFETY: our own child, not yet reaped, so the pid cannot have been reused.
        check(i64::from(unsafe { libc::kill(self.pid, signal) })).map(drop)
    }

    fn wait_with(&mut self, options: i32) -> Result<Option<Exit>, WorkloadError> {
        if self.exit.is_some() {
            return Ok(self.exit);
        }
        let mut status = 0;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both results point to live, writable values of the right type.
        let pid = unsafe { libc::wait4(self.pid, &mut status, options, usage.as_mut_ptr()) };
        match check(i64::from(pid)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(source) => {
                return Err(WorkloadError::Wait { command: self.command.clone(), source });
            }
        }
        let status = if libc::WIFSIGNALED(status) {
            ExitStatus::Signal(libc::WTERMSIG(status))
        } else {
            ExitStatus::Code(libc::WEXITSTATUS(status))
        };
        // SAFETY: all-zero is a valid rusage, and wait4 has filled it.
        let usage = CpuUsage::from_rusage(unsafe { usage.assume_init_ref() });
        self.exit = Some(Exit { status, usage });
        if self.go.is_none() {
            self.check_exec()?;
        }
        Ok(self.exit)
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // A child that was never started sees the end of the pipe and exits: reap it.
        if self.go.take().is_some() {
            let _ = self.wait();
        }
    }
}

fn c_string(argument: &OsString) -> Result<CString, WorkloadError> {
    CString::new(argument.clone().into_vec())
        .map_err(|_| WorkloadError::NulByte { argument: argument.to_string_lossy().into_owned() })
}

/// Arguments of the child's exec: arrays of pointers to strings, each closed by a null pointer.
struct Image<'a> {
    argv: &'a [*const libc::c_char],
    /// `None` stands for this process's own.
    environment: Option<&'a [*const libc::c_char]>,
}

impl Image<'_> {
    /// Looks `argv[0]` up in `PATH` and replaces this process; returns where that fails.
    fn exec(&self) {
        let argv = self.argv;
        match self.environment {
            // SAFETY: both are null-terminated arrays of nul-terminated strings that live on in
            // this copy of the address space.
            Some(environment) => unsafe {
                libc::execvpe(argv[0], argv.as_ptr(), environment.as_ptr());
            },
            // SAFETY: as above.
            None => unsafe {
                libc::execvp(argv[0], argv.as_ptr());
            },
        }
    }
}

/// Work of the child: it gives up borrowed capabilities, waits, undoes the changes of Rust's
/// runtime and of the recorder, and execs. Nothing here allocates, locks or unwinds; every call is
/// async-signal-safe.
fn child(
    image: &Image<'_>,
    options: WorkloadOptions,
    mask: &libc::sigset_t,
    go: &OwnedFd,
    exec_error: &OwnedFd,
) -> ! {
    let given_up = privilege::give_up_in_child();
    if options.stdout_to_stderr {
        // SAFETY: plain descriptor numbers.
        unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) };
    }
    let mut byte = 0u8;
    loop {
        // SAFETY: one byte is read into one live byte.
        let size = unsafe { libc::read(go.as_raw_fd(), (&raw mut byte).cast(), 1) };
        if size == 1 {
            break;
        }
        if size == 0 || last_errno() != libc::EINTR {
            // SAFETY: ends this process at once, running no handlers of the parent's.
            unsafe { libc::_exit(0) };
        }
    }
    // SAFETY: the default disposition runs no code of ours (Rust's runtime ignores SIGPIPE,
    // and ignored signals would stay ignored after exec).
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // SAFETY: `mask` is an initialized set.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
    let errno = match given_up {
        Ok(()) => {
            image.exec();
            last_errno()
        }
        Err(errno) => errno.raw_os_error(),
    }
    .to_ne_bytes();
    // SAFETY: four live bytes are read from the buffer.
    unsafe { libc::write(exec_error.as_raw_fd(), errno.as_ptr().cast(), errno.len()) };
    // SAFETY: ends this process at once, running no handlers of the parent's.
    unsafe { libc::_exit(EXEC_FAILED) }
}

pub(crate) fn last_errno() -> i32 {
    // SAFETY: always returns the address of this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: a valid, aligned pointer to this thread's own errno.
    unsafe { *errno }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(argv: &[&str]) -> Workload {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        Workload::prepare(&argv, WorkloadOptions::default(), None).unwrap()
    }

    #[test]
    fn the_child_waits_until_it_is_started_and_its_code_is_passed_on() {
        let mut workload = prepare(&["sh", "-c", "exit 7"]);
        let comm = || std::fs::read_to_string(format!("/proc/{}/comm", workload.pid())).unwrap();
        assert_ne!(comm().trim(), "sh");
        assert_eq!(workload.try_wait().unwrap(), None);
        workload.start().unwrap();
        let exit = workload.wait().unwrap();
        assert_eq!(exit.status, ExitStatus::Code(7));
        assert_eq!(workload.wait().unwrap(), exit, "waiting again gives the same");
    }

    #[test]
    fn a_killed_child_has_the_shells_code() {
        let mut workload = prepare(&["sleep", "1000"]);
        workload.start().unwrap();
        workload.kill(libc::SIGTERM).unwrap();
        let status = workload.wait().unwrap().status;
        assert_eq!(status, ExitStatus::Signal(libc::SIGTERM));
        assert_eq!(status.shell_code(), 143);
    }

    #[test]
    fn a_command_that_is_not_there_gives_its_errno() {
        let mut workload = prepare(&["/nonexistent/command"]);
        match workload.start() {
            Err(WorkloadError::Exec { command, source }) => {
                assert_eq!(command, "/nonexistent/command");
                assert_eq!(source, Errno::NOENT);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(workload.wait().unwrap().status, ExitStatus::Code(EXEC_FAILED));
    }

    #[test]
    fn a_command_that_is_released_says_in_the_end_that_it_is_not_there() {
        let mut workload = prepare(&["/nonexistent/command"]);
        workload.release().unwrap();
        assert!(matches!(workload.wait(), Err(WorkloadError::Exec { source: Errno::NOENT, .. })));
        let mut workload = prepare(&["sh", "-c", "exit 7"]);
        workload.release().unwrap();
        assert_eq!(workload.wait().unwrap().status, ExitStatus::Code(7));
    }

    #[test]
    fn a_child_that_is_never_started_ends_with_its_owner() {
        let workload = prepare(&["sleep", "1000"]);
        let pid = workload.pid();
        drop(workload);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn arguments_with_nul_bytes_and_empty_commands_are_refused() {
        let options = WorkloadOptions::default();
        let nul = Workload::prepare(&["a\0b".into()], options, None);
        assert!(matches!(nul, Err(WorkloadError::NulByte { .. })));
        assert!(matches!(Workload::prepare(&[], options, None), Err(WorkloadError::Empty)));
    }
}
