//! The calling thread's standing with the scheduler.

use crate::{Errno, check};

/// `struct sched_attr` of `linux/sched/types.h`, first version.
#[repr(C)]
#[derive(Clone, Copy, Default)]
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

/// Asks the scheduler to let the calling thread run soon when it becomes ready: with slices of
/// `slice_ns`, 0.1 to 100 ms, in return for which it runs no longer at a time. Its share of the CPU
/// stays the same. Kernels before 6.12 do nothing with it. `Errno::INVAL` for threads of a
/// real-time policy, which have no slices.
pub fn take_short_slices(slice_ns: u64) -> Result<(), Errno> {
    let mut attr = get()?;
    if attr.policy != libc::SCHED_OTHER as u32 {
        return Err(Errno::INVAL);
    }
    attr.runtime_ns = slice_ns;
    set(&attr)
}

fn set(attr: &SchedAttr) -> Result<(), Errno> {
    // SAFETY: the kernel reads `size` bytes of a live struct; 0 is the calling thread.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attr, 0) }).map(drop)
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
    fn a_thread_gets_its_slice_and_keeps_the_rest() {
        std::thread::spawn(|| {
            let before = get().unwrap();
            take_short_slices(100_000).unwrap();
            let after = get().unwrap();
            assert_eq!((after.nice, after.policy), (before.nice, before.policy));
            assert!(after.runtime_ns == 100_000 || after.runtime_ns == 0, "{}", after.runtime_ns);
        })
        .join()
        .unwrap();
    }
}
