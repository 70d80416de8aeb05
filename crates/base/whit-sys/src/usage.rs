//! CPU time used so far, by this process, this thread, or another process; and memory of processes.

use std::fs;
use std::mem::MaybeUninit;

use crate::clock::ClockId;
use crate::system::page_size;
use crate::{Errno, check};

/// CPU time and peak memory, as `getrusage(2)` counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in kernel mode.
    pub system_ns: u64,
    /// Peak resident memory.
    pub max_rss_bytes: u64,
}

impl CpuUsage {
    /// Usage of all threads of this process.
    pub fn of_process() -> Result<CpuUsage, Errno> {
        get(libc::RUSAGE_SELF)
    }

    /// Usage of the calling thread.
    pub fn of_thread() -> Result<CpuUsage, Errno> {
        get(libc::RUSAGE_THREAD)
    }

    /// CPU time spent since `earlier`; the peak of memory stays.
    pub fn since(&self, earlier: &CpuUsage) -> CpuUsage {
        CpuUsage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            max_rss_bytes: self.max_rss_bytes,
        }
    }

    /// CPU time in both modes.
    pub fn total_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    pub(crate) fn from_rusage(usage: &libc::rusage) -> CpuUsage {
        let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
        CpuUsage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            max_rss_bytes: usage.ru_maxrss as u64 * 1024,
        }
    }
}

fn get(who: i32) -> Result<CpuUsage, Errno> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the result points to a live, writable rusage.
    check(i64::from(unsafe { libc::getrusage(who, usage.as_mut_ptr()) }))?;
    // SAFETY: all-zero is a valid rusage, and getrusage has filled it.
    Ok(CpuUsage::from_rusage(unsafe { usage.assume_init_ref() }))
}

/// CPU time in nanoseconds of a process, its ended threads included, by its CPU-time clock (`clock_getcpuclockid(3)`);
/// 0 where it is gone. `/proc/PID/stat` has it in steps of 10 ms.
pub fn cpu_time_ns_of(pid: u32) -> u64 {
    // The clock's number has 29 bits for the process (`linux/posix-timers_types.h`); those of 0 and of a number that
    // does not fit are clocks of the caller.
    if !(1..1 << 28).contains(&pid) {
        return 0;
    }
    let mut clock = 0;
    // SAFETY: the result points to a live, writable clockid_t.
    if unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &mut clock) } != 0 {
        return 0;
    }
    ClockId(clock).now_ns().unwrap_or(0)
}

/// Resident memory of a process, by `/proc/PID/statm`; 0 where it is gone.
pub fn resident_bytes_of(pid: u32) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_and_memory_are_those_of_a_process() {
        let own = std::process::id();
        let before = cpu_time_ns_of(own);
        let begin = CpuUsage::of_thread().unwrap().total_ns();
        while CpuUsage::of_thread().unwrap().total_ns() < begin + 20_000_000 {}
        assert!(
            cpu_time_ns_of(own) >= before + 10_000_000,
            "other threads of these tests add to it, none takes away"
        );
        assert!(resident_bytes_of(own) > 1 << 20);
        assert_eq!((cpu_time_ns_of(u32::MAX), resident_bytes_of(u32::MAX)), (0, 0));
        assert_eq!((cpu_time_ns_of(0), cpu_time_ns_of(i32::MAX as u32)), (0, 0));
    }

    #[test]
    fn cpu_time_of_a_thread_that_ended_stays_in_its_process() {
        let own = std::process::id();
        let spend = move || {
            let begin = CpuUsage::of_thread().unwrap().total_ns();
            while CpuUsage::of_thread().unwrap().total_ns() < begin + 20_000_000 {}
            cpu_time_ns_of(own)
        };
        let in_the_thread = std::thread::spawn(spend).join().unwrap();
        assert!(cpu_time_ns_of(own) >= in_the_thread);
    }

    #[test]
    fn usage_never_falls_and_a_thread_uses_no_more_than_its_process() {
        let before = CpuUsage::of_process().unwrap();
        let mut sum = 0u64;
        while CpuUsage::of_thread().unwrap().user_ns == 0 && sum < 1 << 40 {
            sum = (0..1_000_000u64).fold(sum + 1, |a, b| std::hint::black_box(a + b));
        }
        let thread = CpuUsage::of_thread().unwrap();
        let after = CpuUsage::of_process().unwrap();
        assert!(after.user_ns >= before.user_ns);
        // The kernel splits the run time into user and kernel mode for the thread and for the
        // process separately, so only the sums compare.
        let total = |usage: CpuUsage| usage.user_ns + usage.system_ns;
        assert!(total(thread) <= total(after));
        assert!(after.max_rss_bytes > 0);
        assert_eq!(before.since(&after).user_ns, 0);
    }
}
