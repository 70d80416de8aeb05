//! The CPU that the token goes around on.

use std::fs;

use whit_sys::affinity;
use whit_types::CpuId;

use anyhow::anyhow;

use crate::error::Error;

/// File with the kernel's account of each CPU's time.
const STAT: &str = "/proc/stat";
/// `steal`, of the fields after a CPU's name (proc_stat(5)).
const STEAL_FIELD: usize = 7;

/// One CPU for the load; this thread and its children run on the others until this is dropped.
#[derive(Debug)]
pub(super) struct LoadCpu {
    number: u32,
    allowed: Vec<CpuId>,
}

impl LoadCpu {
    /// The last one that may be used, which has the fewest interrupts.
    pub(super) fn choose() -> Result<LoadCpu, Error> {
        let failed = |errno: whit_sys::Errno| {
            anyhow!("cannot choose CPUs for the load and for the counters: {errno}")
        };
        let allowed = affinity::get(0).map_err(failed)?;
        let Some((&number, others)) = allowed.split_last() else {
            return Err(failed(whit_sys::Errno::INVAL));
        };
        if !others.is_empty() {
            affinity::set(0, others).map_err(failed)?;
        }
        Ok(LoadCpu { number: number.0, allowed })
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for LoadCpu {
    fn drop(&mut self) {
        // It could be set, so it can be set back, and else only this thread is slower.
        let _ = affinity::set(0, &self.allowed);
    }
}

/// How long the hypervisor has run something else on a CPU that had work, in ticks; 0 where the kernel
/// does not say.
pub(super) fn stolen_ticks(cpu: u32) -> u64 {
    stolen(&fs::read_to_string(STAT).unwrap_or_default(), cpu).unwrap_or(0)
}

fn stolen(stat: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let mut lines = stat.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| {
        (words.next()? == name).then(|| words.nth(STEAL_FIELD)?.parse().ok())
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_that_of_the_cpu() {
        let stat =
            "cpu  9 9 9 9 9 9 9 99 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 9 0 0\n";
        assert_eq!((stolen(stat, 0), stolen(stat, 1), stolen(stat, 2)), (Some(8), Some(9), None));
        assert_eq!(stolen("cpu0 1 2", 0), None);
    }

    #[test]
    fn others_are_left_to_the_counters() {
        let before = affinity::get(0).unwrap();
        let chosen = LoadCpu::choose().unwrap();
        let left = affinity::get(0).unwrap();
        assert_eq!(chosen.number(), before.last().unwrap().0);
        assert_eq!(left.contains(&CpuId(chosen.number())), before.len() == 1);
        drop(chosen);
        assert_eq!(affinity::get(0).unwrap(), before);
    }
}
