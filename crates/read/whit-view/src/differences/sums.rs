//! The quantities of waits, and their values.

use super::{Divisor, Kind, Quantity, Unit};
use whit_profile::switches::SwitchSums;

const fn time(name: &'static str, words: [&'static str; 2]) -> Quantity {
    Quantity { name, unit: Unit::Time, per: Divisor::Time, words, is_cost: true }
}

pub(super) const WAITING: Quantity = time("waiting", ["waits less", "waits more"]);
pub(super) const WAITS: Quantity = Quantity {
    name: "waits",
    unit: Unit::Count,
    per: Divisor::Time,
    words: ["waits less often", "waits more often"],
    is_cost: false,
};
/// The divisor is [`WAITS`], which comes before.
pub(super) const LENGTH: Quantity = Quantity {
    name: "length",
    unit: Unit::Time,
    per: Divisor::Wait,
    words: ["waits are shorter", "waits are longer"],
    is_cost: true,
};
const RUNNING: Quantity = time("running", ["runs less", "runs more"]);
const WALL: Quantity = time("wall time", ["takes less time", "takes more time"]);
const SPINNING: Quantity = time("spinning", ["spins less", "spins more"]);
const QUEUED: Quantity = time("run queue", ["queues less", "queues more"]);

/// Voluntary waits that nothing makes uncertain, until the wake-up where one is recorded: the load of the machine is not in
/// them. Parts of open waits in the recorded time count, too.
pub(super) fn waiting_ns(sums: &SwitchSums) -> u64 {
    whole_ns(sums).saturating_add(sums.open_blocked_ns)
}

/// The same of the waits that have a length.
pub(super) fn whole_ns(sums: &SwitchSums) -> u64 {
    sums.sync_wait_ns.saturating_sub(sums.runnable_ns)
}

fn queued_ns(sums: &SwitchSums) -> u64 {
    let parts = [
        sums.runnable_ns,
        sums.preempt_wait_ns,
        sums.new_wait_ns,
        sums.open_runnable_ns,
        sums.open_preempt_ns,
    ];
    parts.into_iter().fold(0, u64::saturating_add)
}

pub(super) fn waits(sums: &SwitchSums) -> u64 {
    sums.sync_count
}

/// The quantities of rows of waits, wall time or locks.
pub fn quantities(kind: Kind) -> Vec<Quantity> {
    match kind {
        Kind::Wall => vec![WALL, WAITING, QUEUED, RUNNING],
        Kind::Locks => vec![WAITING, WAITS, LENGTH, SPINNING],
        _ => vec![WAITING, WAITS, LENGTH, RUNNING],
    }
}

/// The values of [`quantities`], each with the number of waits that it comes from; for CPU time at least one, since its
/// samples are not counted here.
pub(super) fn values(kind: Kind, sums: &SwitchSums) -> Vec<(f64, u64)> {
    let (waiting, queued) = (waiting_ns(sums), queued_ns(sums));
    let all = waits(sums).saturating_add(sums.preempt_count).saturating_add(sums.new_count);
    let of_cpu = (sums.cpu_ns, u64::from(sums.cpu_ns > 0));
    let values = match kind {
        Kind::Wall => {
            let wall = waiting.saturating_add(queued).saturating_add(sums.cpu_ns);
            vec![(wall, all.max(of_cpu.1)), (waiting, waits(sums)), (queued, all), of_cpu]
        }
        _ => {
            let count = waits(sums);
            let of_waits = [waiting, count, whole_ns(sums)].map(|value| (value, count));
            of_waits.into_iter().chain([of_cpu]).collect()
        }
    };
    values.into_iter().map(|(value, events)| (value as f64, events)).collect()
}
