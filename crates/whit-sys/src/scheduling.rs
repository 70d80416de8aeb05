//! Scheduling policy of the calling thread.

use crate::{Errno, check};

/// Priorities of `SCHED_FIFO` on Linux.
pub const FIFO_PRIORITIES: std::ops::RangeInclusive<i32> = 1..=99;

/// Runs the calling thread as `SCHED_FIFO` with this priority; threads that it starts inherit that.
/// `Errno::PERM` without `CAP_SYS_NICE` and above `RLIMIT_RTPRIO`.
pub fn set_fifo(priority: i32) -> Result<(), Errno> {
    set(libc::SCHED_FIFO, priority)
}

/// Runs the calling thread as any other.
pub fn set_normal() -> Result<(), Errno> {
    set(libc::SCHED_OTHER, 0)
}

/// Whether the calling thread runs as `SCHED_FIFO`.
pub fn is_fifo() -> bool {
    // SAFETY: takes a number; 0 is the calling thread.
    unsafe { libc::sched_getscheduler(0) == libc::SCHED_FIFO }
}

fn set(policy: libc::c_int, priority: i32) -> Result<(), Errno> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one live struct; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &param) };
    check(i64::from(result)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_becomes_real_time_and_its_threads_with_it_or_is_refused() {
        std::thread::spawn(|| match set_fifo(1) {
            Ok(()) => {
                assert!(std::thread::spawn(is_fifo).join().unwrap());
                set_normal().unwrap();
                assert!(!is_fifo());
            }
            Err(errno) => assert_eq!(errno, Errno::PERM),
        })
        .join()
        .unwrap();
        assert_eq!(set_fifo(100), Err(Errno::INVAL));
    }
}
