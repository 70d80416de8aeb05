//! Scheduling policy of the calling thread.

use crate::{Errno, check};

/// Priorities of `SCHED_FIFO` on Linux.
pub const FIFO_PRIORITIES: std::ops::RangeInclusive<i32> = 1..=99;

/// The slice of a thread that is in a hurry.
const HURRIED_SLICE_NS: u64 = 100_000;
/// Its nice value.
const HURRIED_NICE: i32 = -20;

/// Runs the calling thread as `SCHED_FIFO` with this priority; threads that it starts inherit that.
/// `Errno::PERM` without `CAP_SYS_NICE` and above `RLIMIT_RTPRIO`.
pub fn set_fifo(priority: i32) -> Result<(), Errno> {
    set(libc::SCHED_FIFO, priority)
}

/// Runs the calling thread as any other.
pub fn set_normal() -> Result<(), Errno> {
    set(libc::SCHED_OTHER, 0)
}

/// Gives the calling thread a share of the CPU by this nice value, from -20 (much) to 19. However much it is, the
/// others run, too. `Errno::PERM` or `Errno::ACCESS` for more without `CAP_SYS_NICE` and beyond `RLIMIT_NICE`.
pub fn set_nice(nice: i32) -> Result<(), Errno> {
    // SAFETY: takes numbers; 0 is the calling thread, on Linux.
    check(i64::from(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })).map(drop)
}

/// Has the calling thread run before others, which are not stopped by that: somebody waits for its little work. Without
/// the right to, it waits for its turn. Processes that it starts have the same.
pub fn hurry() {
    let _ = crate::take_short_slices(HURRIED_SLICE_NS);
    let _ = set_nice(HURRIED_NICE);
}

/// The nice value of the calling thread.
pub fn nice() -> i32 {
    // SAFETY: takes numbers. -1 is a value, too; the call cannot fail for the calling thread.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
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
    fn a_thread_in_a_hurry_has_the_least_nice_value_that_is_allowed() {
        let before = nice();
        let (hurried, after) = std::thread::spawn(move || {
            hurry();
            let hurried = nice();
            (hurried, set_nice(-20).map_or(before, |()| nice()))
        })
        .join()
        .unwrap();
        assert_eq!(hurried, after);
        assert_eq!(nice(), before);
    }

    #[test]
    fn a_thread_gets_another_share_and_others_none() {
        let before = nice();
        let thread = std::thread::spawn(move || {
            set_nice(before + 1).unwrap();
            assert_eq!(nice(), before + 1);
            set_nice(-20).map(|()| nice())
        });
        match thread.join().unwrap() {
            Ok(nice) => assert_eq!(nice, -20),
            Err(errno) => assert!([Errno::PERM, Errno::ACCESS].contains(&errno), "{errno}"),
        }
        assert_eq!(nice(), before);
    }

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
