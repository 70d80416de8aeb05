//! CPU time used so far, by this process or this thread.

use std::mem::MaybeUninit;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_never_goes_back_and_a_thread_uses_no_more_than_its_process() {
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
