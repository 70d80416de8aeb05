//! Wall time: each moment of a thread's life in one of five kinds.
//!
//! The sums of context switches keep certain time and uncertain time apart, by cause. Here the same time is
//! arranged by the thread's state.

use crate::switches::SwitchSums;

/// Time of threads, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WallSums {
    /// The time between switch-in and switch-out.
    pub cpu_ns: u64,
    /// Off the CPU by the thread's own will, until the wake-up. Where that was not recorded, until the thread is
    /// back on a CPU.
    pub waiting_ns: u64,
    /// Taken off the CPU, and runnable.
    pub preempted_ns: u64,
    /// The part of `preempted_ns` that began as the cgroup had used its quota of CPU time up.
    pub throttled_ns: u64,
    /// From a wake-up, or from the beginning of the thread, until it comes onto a CPU.
    pub run_queue_ns: u64,
    /// In runs and waits that a loss touches.
    pub lossy_ns: u64,
}

impl WallSums {
    /// The time of switches and runs.
    pub fn of(sums: &SwitchSums) -> WallSums {
        let open_ns = sums.open_wait_ns.saturating_add(sums.throughout_wait_ns);
        let certain = [sums.open_blocked_ns, sums.open_runnable_ns, sums.open_preempt_ns];
        let lossy_open_ns = certain.into_iter().fold(open_ns, u64::saturating_sub);
        let sync_ns = sums.sync_wait_ns.saturating_sub(sums.runnable_ns);
        WallSums {
            cpu_ns: sums.cpu_ns,
            waiting_ns: sync_ns.saturating_add(sums.open_blocked_ns),
            preempted_ns: sums.preempt_wait_ns.saturating_add(sums.open_preempt_ns),
            throttled_ns: sums.throttled_wait_ns,
            run_queue_ns: [sums.runnable_ns, sums.new_wait_ns, sums.open_runnable_ns]
                .into_iter()
                .fold(0, u64::saturating_add),
            lossy_ns: [sums.lossy_cpu_ns, sums.lossy_wait_ns, lossy_open_ns]
                .into_iter()
                .fold(0, u64::saturating_add),
        }
    }

    /// Sum of all kinds of time, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        let WallSums { cpu_ns, waiting_ns, preempted_ns, run_queue_ns, lossy_ns, .. } = *self;
        [cpu_ns, waiting_ns, preempted_ns, run_queue_ns, lossy_ns]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_one_kind() {
        let sums = SwitchSums {
            cpu_ns: 1,
            lossy_cpu_ns: 2,
            sync_wait_ns: 70,
            blocked_ns: 20,
            runnable_ns: 10,
            preempt_wait_ns: 100,
            throttled_wait_ns: 60,
            new_wait_ns: 200,
            lossy_wait_ns: 400,
            open_wait_ns: 3_000,
            throughout_wait_ns: 1_000,
            open_blocked_ns: 1_500,
            open_runnable_ns: 300,
            open_preempt_ns: 800,
            ..SwitchSums::default()
        };
        let wall = WallSums::of(&sums);
        assert_eq!((wall.cpu_ns, wall.waiting_ns), (1, 60 + 1_500));
        assert_eq!((wall.preempted_ns, wall.run_queue_ns), (900, 10 + 200 + 300));
        assert_eq!(wall.throttled_ns, 60);
        assert_eq!(wall.lossy_ns, 2 + 400 + 1_400);
        assert_eq!(wall.total_ns(), 1 + 2 + 70 + 100 + 200 + 400 + 4_000);
    }
}
