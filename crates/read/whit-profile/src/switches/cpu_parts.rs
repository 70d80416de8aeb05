//! The parts of time on a CPU in which the CPU did not execute the thread.

use whit_perfdata::cpu_account::CpuAccount;
use whit_types::CpuId;

/// Time that was charged to a thread, or to an idle CPU, and spent on something else; in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuParts {
    /// In handlers of interrupts.
    pub irq_ns: u64,
    /// In softirqs, without interrupts within these.
    pub softirq_ns: u64,
    /// Stolen by the hypervisor.
    pub stolen_ns: u64,
}

impl CpuParts {
    pub(crate) fn of(account: &CpuAccount) -> CpuParts {
        let interrupts = account.interrupts.unwrap_or_default();
        CpuParts {
            irq_ns: interrupts.irq_ns,
            softirq_ns: interrupts.softirq_ns,
            stolen_ns: account.stolen_ns.unwrap_or_default(),
        }
    }

    /// Sum of the parts, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.irq_ns.saturating_add(self.softirq_ns).saturating_add(self.stolen_ns)
    }

    /// Takes over others.
    pub fn add(&mut self, other: &CpuParts) {
        *self = self.with(other, u64::saturating_add);
    }

    fn with(&self, other: &CpuParts, join: fn(u64, u64) -> u64) -> CpuParts {
        CpuParts {
            irq_ns: join(self.irq_ns, other.irq_ns),
            softirq_ns: join(self.softirq_ns, other.softirq_ns),
            stolen_ns: join(self.stolen_ns, other.stolen_ns),
        }
    }

    /// No more than a time: the clocks of a run and of its interrupts are read at different moments.
    pub(crate) fn within(&self, ns: u64) -> CpuParts {
        let stolen_ns = self.stolen_ns.min(ns);
        let irq_ns = self.irq_ns.min(ns - stolen_ns);
        let softirq_ns = self.softirq_ns.min(ns - stolen_ns - irq_ns);
        CpuParts { irq_ns, softirq_ns, stolen_ns }
    }

    /// The share of a part of a run. When in the run an interrupt came was not recorded.
    pub(crate) fn share(&self, part_ns: u64, whole_ns: u64) -> CpuParts {
        let of = |ns: u64| {
            let share = u128::from(ns) * u128::from(part_ns) / u128::from(whole_ns.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        CpuParts {
            irq_ns: of(self.irq_ns),
            softirq_ns: of(self.softirq_ns),
            stolen_ns: of(self.stolen_ns),
        }
    }
}

/// The recorded time of one CPU. The times add up to `elapsed_ns` plus `excess_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuWall {
    /// Its number.
    pub cpu: CpuId,
    /// The recorded time.
    pub elapsed_ns: u64,
    /// In which it executed threads.
    pub threads_ns: u64,
    /// In which it did neither, of all threads and of the idle one.
    pub parts: CpuParts,
    /// In which no recorded thread was there, without the parts.
    pub idle_ns: u64,
    /// In which a loss may hide threads.
    pub unknown_ns: u64,
    /// Zero, unless the recording contradicts itself.
    pub excess_ns: u64,
}

/// Sums of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CpuSums {
    /// Runs that no loss touches, with their parts.
    pub(crate) runs_ns: u64,
    pub(crate) lossy_runs_ns: u64,
    /// Parts of those runs, and of the idle thread.
    pub(crate) parts: CpuParts,
    /// The part of `parts` that is the idle thread's.
    pub(crate) idle_parts_ns: u64,
}

impl CpuSums {
    /// `lost_ns`: how long records of the CPU may be missing.
    pub(crate) fn wall(&self, cpu: CpuId, elapsed_ns: u64, lost_ns: u64) -> CpuWall {
        let CpuSums { runs_ns, lossy_runs_ns, parts, idle_parts_ns } = *self;
        let of_runs_ns = parts.total_ns().saturating_sub(idle_parts_ns);
        let threads_ns = runs_ns.saturating_sub(of_runs_ns);
        let known_ns = [threads_ns, parts.total_ns(), lossy_runs_ns];
        let known_ns = known_ns.into_iter().fold(0, u64::saturating_add);
        let rest_ns = elapsed_ns.saturating_sub(known_ns);
        let uncertain_ns = lost_ns.min(rest_ns);
        CpuWall {
            cpu,
            elapsed_ns,
            threads_ns,
            parts,
            idle_ns: rest_ns - uncertain_ns,
            unknown_ns: lossy_runs_ns.saturating_add(uncertain_ns),
            excess_ns: known_ns.saturating_sub(elapsed_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(irq_ns: u64, softirq_ns: u64, stolen_ns: u64) -> CpuParts {
        CpuParts { irq_ns, softirq_ns, stolen_ns }
    }

    #[test]
    fn stolen_time_comes_first_where_parts_exceed_the_run() {
        assert_eq!(parts(5, 6, 7).within(18), parts(5, 6, 7));
        assert_eq!(parts(5, 6, 7).within(10), parts(3, 0, 7));
        assert_eq!(parts(5, 6, 7).within(6), parts(0, 0, 6));
        assert_eq!(parts(10, 4, u64::MAX).share(1, 4), parts(2, 1, u64::MAX / 4));
    }

    #[test]
    fn the_times_of_a_cpu_add_up() {
        let sums = CpuSums {
            runs_ns: 500,
            lossy_runs_ns: 40,
            parts: parts(30, 20, 10),
            idle_parts_ns: 25,
        };
        let wall = sums.wall(CpuId(1), 1000, 50);
        assert_eq!((wall.threads_ns, wall.parts), (500 - 35, parts(30, 20, 10)));
        assert_eq!((wall.unknown_ns, wall.idle_ns), (90, 1000 - 465 - 60 - 90));
        assert_eq!(sums.wall(CpuId(1), 560, 50).excess_ns, 465 + 60 + 40 - 560);
    }

    proptest! {
        #[test]
        fn no_time_is_lost_or_made(
            ns in 0u64..1000,
            of in (0u64..500, 0u64..500, 0u64..500),
            idle in (0u64..300, 0u64..300, 0u64..300),
            (lossy_runs_ns, lost_ns, elapsed_ns) in (0u64..300, 0u64..300, 0u64..3000),
        ) {
            let of_runs = parts(of.0, of.1, of.2).within(ns);
            prop_assert!(of_runs.total_ns() <= ns);
            let mut all = parts(idle.0, idle.1, idle.2);
            let idle_parts_ns = all.total_ns();
            all.add(&of_runs);
            let sums = CpuSums { runs_ns: ns, lossy_runs_ns, parts: all, idle_parts_ns };
            let wall = sums.wall(CpuId(0), elapsed_ns, lost_ns);
            let sum = wall.threads_ns + wall.parts.total_ns() + wall.idle_ns + wall.unknown_ns;
            prop_assert_eq!(sum, elapsed_ns + wall.excess_ns);
        }
    }
}
