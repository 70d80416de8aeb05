//! Descriptors that become readable when a thread or process has ended (`pidfd_open(2)`).

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Errno;

/// The descriptor is of a thread, which need not lead its process (Linux 6.9). It has the value of
/// `O_EXCL`.
const PIDFD_THREAD: u32 = libc::O_EXCL as u32;

/// A descriptor of thread `tid` that is readable when that has ended: before Linux 6.9, when the
/// whole process has whose first thread it is. `Errno::INVAL` there for other threads, and
/// `Errno::NOSYS` before Linux 5.3; `Errno::SRCH` where nobody has that id.
pub fn of_thread(tid: i32) -> Result<OwnedFd, Errno> {
    let pid = Pid::from_raw(tid).ok_or(Errno::SRCH)?;
    match pidfd_open(pid, PidfdFlags::from_bits_retain(PIDFD_THREAD)) {
        Err(Errno::INVAL) => pidfd_open(pid, PidfdFlags::empty()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Poller;
    use std::time::Duration;

    #[test]
    fn it_is_readable_when_its_process_has_ended() {
        if let Err(whit_testing::Skip(reason)) = whit_testing::probe::pidfd() {
            return whit_testing::skip("whit-sys pidfd", &reason);
        }
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let fd = of_thread(child.id() as i32).unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&fd, 7).unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), []);
        child.kill().unwrap();
        assert_eq!(poller.wait(None).unwrap()[0].token, 7);
        child.wait().unwrap();
        assert_eq!(of_thread(child.id() as i32).unwrap_err(), Errno::SRCH);
        assert_eq!(of_thread(0).unwrap_err(), Errno::SRCH);
    }
}
