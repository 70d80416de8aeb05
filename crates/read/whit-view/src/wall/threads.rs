//! The wall time of each thread.

use crate::switches::Stacks;
use std::cmp::Reverse;
use whit_profile::model::ThreadId;
use whit_profile::switches::{CpuParts, SwitchSums, Switches};
use whit_profile::wall::WallSums;

/// The wall time of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadWall {
    /// Id in the profile.
    pub thread: ThreadId,
    /// Parts and their sum.
    pub times: WallTimes,
}

/// The time of one thread, or of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WallTimes {
    /// The recorded time in which it existed, in nanoseconds.
    pub elapsed_ns: u64,
    /// The parts that the filters let pass.
    pub sums: WallSums,
    /// The parts that they leave out.
    pub left_out_ns: u64,
    /// No run and no wait covers this time.
    pub uncovered_ns: u64,
    /// The parts of the CPU time in which its CPUs did not execute it; absent where filters leave some CPU time out, since
    /// interrupts have no stack of the thread.
    pub cpu_parts: Option<CpuParts>,
    /// The parts exceed the elapsed time by this much, which no recording can truly say.
    pub excess_ns: u64,
}

impl WallTimes {
    /// Touched by a loss, or covered by nothing.
    pub fn unknown_ns(&self) -> u64 {
        self.sums.lossy_ns.saturating_add(self.uncovered_ns)
    }
}

/// All threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WallTable {
    /// Threads that have any time after the filters, the one with the most known time first.
    pub threads: Vec<ThreadWall>,
    /// Number of the other threads.
    pub left_out_threads: usize,
    /// Sums of the rows that the filters let pass.
    pub total: SwitchSums,
}

impl WallTable {
    /// Adds the rows of each thread up.
    pub fn new(stacks: Stacks<'_>, switches: &Switches) -> WallTable {
        let count = stacks.profile().threads.len();
        let (mut all, mut shown) =
            (vec![SwitchSums::default(); count], vec![SwitchSums::default(); count]);
        for row in &switches.rows {
            all[row.thread.index()].add(&row.sums);
        }
        let mut total = SwitchSums::default();
        for (_, row, _) in stacks.rows(switches) {
            shown[row.thread.index()].add(&row.sums);
            total.add(&row.sums);
        }
        let of_life = switches.lives.iter().map(|life| {
            let covered_ns = WallSums::of(&all[life.thread.index()]).total_ns();
            let sums = WallSums::of(&shown[life.thread.index()]);
            let has_all = sums.cpu_ns == all[life.thread.index()].cpu_ns;
            let by_stack = covered_ns.saturating_sub(sums.total_ns());
            let covered_ns = covered_ns.saturating_add(life.left_out_ns);
            let times = WallTimes {
                elapsed_ns: life.elapsed_ns,
                sums,
                left_out_ns: life.left_out_ns.saturating_add(by_stack),
                uncovered_ns: life.elapsed_ns.saturating_sub(covered_ns),
                cpu_parts: has_all.then_some(life.parts),
                excess_ns: covered_ns.saturating_sub(life.elapsed_ns),
            };
            ThreadWall { thread: life.thread, times }
        });
        let (mut threads, left_out): (Vec<_>, Vec<_>) = of_life
            .partition(|thread| thread.times.sums.total_ns() > 0 || thread.times.left_out_ns == 0);
        threads.sort_by_key(|thread| {
            let sums = &thread.times.sums;
            let known_ns = sums.total_ns().saturating_sub(sums.lossy_ns);
            (Reverse((sums.cpu_ns > 0, known_ns)), thread.thread)
        });
        WallTable { threads, left_out_threads: left_out.len(), total }
    }

    fn cpu_parts(&self) -> Option<CpuParts> {
        self.threads.iter().try_fold(CpuParts::default(), |mut sum, thread| {
            sum.add(&thread.times.cpu_parts?);
            Some(sum)
        })
    }

    /// Sums of all threads in the table.
    pub(super) fn sums(&self) -> WallTimes {
        let sum = |part: fn(&WallTimes) -> u64| {
            let parts = self.threads.iter().map(|thread| part(&thread.times));
            parts.fold(0u64, u64::saturating_add)
        };
        WallTimes {
            elapsed_ns: sum(|times| times.elapsed_ns),
            sums: WallSums {
                cpu_ns: sum(|times| times.sums.cpu_ns),
                waiting_ns: sum(|times| times.sums.waiting_ns),
                preempted_ns: sum(|times| times.sums.preempted_ns),
                throttled_ns: sum(|times| times.sums.throttled_ns),
                run_queue_ns: sum(|times| times.sums.run_queue_ns),
                lossy_ns: sum(|times| times.sums.lossy_ns),
            },
            left_out_ns: sum(|times| times.left_out_ns),
            uncovered_ns: sum(|times| times.uncovered_ns),
            cpu_parts: self.cpu_parts(),
            excess_ns: sum(|times| times.excess_ns),
        }
    }
}
