//! Threads that waited for a mutex all the time, and the threads that hold it.

use super::keys::LockKey;
use super::table::LockTable;
use rustc_hash::FxHashMap;
use whit_profile::model::{Profile, ThreadId};

/// Threads that are listed; further ones are counted.
const MAX_LINES: usize = 10;

/// A thread that waited from the beginning of the recording to its end.
struct Held {
    waiter: ThreadId,
    lock: String,
    holder: ThreadId,
}

/// A line for each deadlock, then one for each thread that waited all the time for a mutex with a known holder. All
/// these waits overlap, so that a circle of them is a deadlock.
pub(super) fn lines(profile: &Profile, table: &LockTable<'_>) -> Vec<String> {
    let held = held(profile, table);
    let name = |thread: ThreadId| {
        let info = &profile.threads[thread.index()];
        format!("{}/{}", profile.comms[info.comm.index()], info.tid.0)
    };
    let next: FxHashMap<ThreadId, ThreadId> =
        held.iter().map(|held| (held.waiter, held.holder)).collect();
    let circles = circles(&held, &next);
    let mut lines: Vec<_> = circles.iter().map(|circle| deadlock(circle, &next, &name)).collect();
    let line = |held: &Held| {
        let Held { waiter, lock, holder } = held;
        format!("{} waits all the time for {lock}, which {} holds", name(*waiter), name(*holder))
    };
    lines.extend(held.iter().take(MAX_LINES).map(line));
    if let more @ 1.. = held.len().saturating_sub(MAX_LINES) {
        lines.push(format!("{more} more threads wait all the time for a lock with a known holder"));
    }
    lines
}

fn deadlock(
    circle: &[ThreadId],
    next: &FxHashMap<ThreadId, ThreadId>,
    name: &impl Fn(ThreadId) -> String,
) -> String {
    let waits = circle.iter().map(|thread| {
        let holder = next.get(thread).map(|holder| name(*holder)).unwrap_or_default();
        format!("{} waits for {holder}", name(*thread))
    });
    format!("Deadlock: {}", waits.collect::<Vec<_>>().join(", "))
}

fn held(profile: &Profile, table: &LockTable<'_>) -> Vec<Held> {
    let tasks = profile.threads.iter().enumerate();
    let numbers: FxHashMap<_, _> =
        tasks.map(|(number, task)| ((task.pid, task.tid), ThreadId(number as u32))).collect();
    let waits = table.rows.iter().flat_map(|row| &row.of);
    let held = waits.filter_map(|wait| {
        let site = table.sites.wait(wait.node).filter(|site| site.names_owner)?;
        let pid = profile.threads[wait.thread.index()].pid;
        let holder = *numbers.get(&(pid, wait.owner?))?;
        let lock = LockKey::of(profile, wait, site).name(profile);
        Some(Held { waiter: wait.thread, lock, holder })
    });
    let mut held: Vec<_> = held.collect();
    held.sort_by_key(|held| held.waiter);
    held.dedup_by_key(|held| held.waiter);
    held
}

/// Each circle once, from its first thread on. A thread waits for one lock, so no thread is in two.
fn circles(held: &[Held], next: &FxHashMap<ThreadId, ThreadId>) -> Vec<Vec<ThreadId>> {
    let mut circles = Vec::new();
    // The thread from which a walk first came to each thread.
    let mut seen: FxHashMap<ThreadId, ThreadId> = FxHashMap::default();
    for Held { waiter, .. } in held {
        let mut path = Vec::new();
        let mut at = Some(*waiter);
        while let Some(thread) = at.filter(|thread| !seen.contains_key(thread)) {
            seen.insert(thread, *waiter);
            path.push(thread);
            at = next.get(&thread).copied();
        }
        if let Some(end) = at.filter(|thread| seen[thread] == *waiter) {
            let from = path.iter().position(|thread| *thread == end).unwrap_or(path.len());
            circles.push(path.split_off(from));
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(edges: &[(u32, u32)]) -> Vec<Vec<u32>> {
        let held: Vec<_> = edges
            .iter()
            .map(|(waiter, holder)| Held {
                waiter: ThreadId(*waiter),
                lock: String::new(),
                holder: ThreadId(*holder),
            })
            .collect();
        let next = held.iter().map(|held| (held.waiter, held.holder)).collect();
        let circles = circles(&held, &next);
        circles.iter().map(|circle| circle.iter().map(|thread| thread.0).collect()).collect()
    }

    #[test]
    fn circles_are_found_once_and_chains_are_none() {
        assert_eq!(found(&[(1, 2), (2, 3)]), [[0u32; 0]; 0]);
        assert_eq!(found(&[(1, 2), (2, 1)]), [[1, 2]]);
        assert_eq!(found(&[(1, 1)]), [[1]]);
        // Two circles, and two threads before them.
        let edges = [(0, 4), (3, 5), (4, 5), (5, 4), (6, 7), (7, 8), (8, 6)];
        assert_eq!(found(&edges), [vec![4, 5], vec![6, 7, 8]]);
    }

    #[test]
    fn long_chains_take_one_walk() {
        let edges: Vec<_> = (0..200_000).map(|thread| (thread, (thread + 1) % 200_000)).collect();
        assert_eq!(found(&edges).concat().len(), 200_000);
    }
}
