//! The time slice of the calling thread.

use crate::{Errno, check};

/// `struct sched_attr` of `linux/sched/types.h`, first version.
#[repr(C)]
#[derive(Default)]
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

/// Asks the scheduler for slices of this length, 0.1 to 100 ms; policy and nice value stay. A
/// thread with short slices gets the CPU soon after it has become ready, and no larger share of
/// it: what a reader of rings needs on a busy machine. Kernels before 6.12 take the value and do
/// nothing with it. `Errno::INVAL` for threads of a real-time policy, which have no slices.
pub fn set_slice(runtime_ns: u64) -> Result<(), Errno> {
    let mut attr = get()?;
    if attr.policy != libc::SCHED_OTHER as u32 {
        return Err(Errno::INVAL);
    }
    attr.runtime_ns = runtime_ns;
    // SAFETY: the kernel reads `size` bytes of a live struct; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attr, 0) };
    check(result).map(drop)
}

fn get() -> Result<SchedAttr, Errno> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>();
    // SAFETY: the kernel writes at most `size` bytes into a live struct of that size.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &mut attr, size, 0) };
    check(result)?;
    // Newer kernels state how much they would have had to say.
    attr.size = size as u32;
    Ok(attr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_thread_may_shorten_its_slices() {
        std::thread::spawn(|| {
            let before = rustix::process::nice(1).unwrap();
            set_slice(100_000).unwrap();
            let after = get().unwrap();
            assert_eq!(after.nice, before, "the nice value is none of its business");
            assert!(after.runtime_ns == 100_000 || after.runtime_ns == 0, "{}", after.runtime_ns);
        })
        .join()
        .unwrap();
    }
}
