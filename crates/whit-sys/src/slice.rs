//! The time slice of the calling thread.

use crate::{Errno, check};

/// `struct sched_attr` of `linux/sched/types.h`, first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Keep policy and nice value as they are.
const KEEP_POLICY: u64 = 0x08;

/// Asks the scheduler for slices of this length, 0.1 to 100 ms. A thread with short slices gets
/// the CPU soon after it has become ready, and no larger share of it: what a reader of rings needs
/// on a busy machine. Kernels before 6.12 take the value and do nothing with it.
pub fn set_slice(runtime_ns: u64) -> Result<(), Errno> {
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: KEEP_POLICY,
        nice: 0,
        priority: 0,
        runtime_ns,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: the kernel reads `size` bytes of a live struct; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attr, 0) };
    check(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_thread_may_shorten_its_slices() {
        std::thread::spawn(|| set_slice(100_000).unwrap()).join().unwrap();
    }
}
