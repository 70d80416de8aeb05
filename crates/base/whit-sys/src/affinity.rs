//! CPU affinity, for machines with any number of CPUs.

use whit_types::CpuId;

use crate::{Errno, check};

/// Most CPUs that a mask is sized for (the kernel's largest `NR_CPUS` is 8192).
const CPUS_MAX: usize = 65_536;
const WORD_BITS: usize = u64::BITS as usize;

/// The CPUs that thread `tid` may run on, ascending; 0 stands for the calling thread.
pub fn get(tid: i32) -> Result<Vec<CpuId>, Errno> {
    let mut mask = vec![0u64; 1024 / WORD_BITS];
    loop {
        let size = mask.len() * 8;
        // SAFETY: the kernel writes at most `size` bytes into a live buffer of that size.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, size, mask.as_mut_ptr()) };
        match check(result) {
            Ok(_) => return Ok(cpus_of(&mask)),
            // The kernel's mask is larger than ours.
            Err(Errno::INVAL) if mask.len() * WORD_BITS < CPUS_MAX => {
                mask = vec![0; mask.len() * 2];
            }
            Err(error) => return Err(error),
        }
    }
}

/// Lets thread `tid` (0: the calling one) run on `cpus` only. `Errno::INVAL` when none of them
/// is online and allowed.
pub fn set(tid: i32, cpus: &[CpuId]) -> Result<(), Errno> {
    let highest = cpus.iter().copied().max().unwrap_or_default().0 as usize;
    if highest >= CPUS_MAX {
        return Err(Errno::INVAL);
    }
    let mut mask = vec![0u64; highest / WORD_BITS + 1];
    for &CpuId(cpu) in cpus {
        mask[cpu as usize / WORD_BITS] |= 1 << (cpu as usize % WORD_BITS);
    }
    // SAFETY: the kernel reads `len * 8` bytes of a live buffer of that size.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, mask.len() * 8, mask.as_ptr()) };
    check(result).map(drop)
}

fn cpus_of(mask: &[u64]) -> Vec<CpuId> {
    let bit = |i: &usize| mask[i / WORD_BITS] >> (i % WORD_BITS) & 1 == 1;
    (0..mask.len() * WORD_BITS).filter(bit).map(|i| CpuId(i as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_affinity_that_was_set_is_read_back() {
        let all = get(0).unwrap();
        assert!(!all.is_empty());
        set(0, &all[..1]).unwrap();
        assert_eq!(get(0).unwrap(), &all[..1]);
        set(0, &all).unwrap();
        assert_eq!(get(0).unwrap(), all);
    }

    #[test]
    fn impossible_sets_are_refused() {
        assert_eq!(set(0, &[]), Err(Errno::INVAL));
        assert_eq!(set(0, &[CpuId(u32::MAX)]), Err(Errno::INVAL));
    }
}
