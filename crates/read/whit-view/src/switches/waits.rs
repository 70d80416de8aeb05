//! Single waits, and who ended waits.

use super::SwitchViewOptions;
use super::stacks::{ChainEntry, Stacks};
use std::collections::BTreeMap;
use whit_profile::model::{CommId, Profile, ThreadId};
use whit_profile::switches::{NamedObject, Switches, TaskState, Wait, WaitClass, WaitKind};

/// Waits that the filters let pass, with their stacks, the longest first.
pub(super) fn worst<'a>(
    stacks: Stacks<'a>,
    switches: &'a Switches,
    options: &SwitchViewOptions,
) -> Vec<(&'a Wait, Vec<ChainEntry>)> {
    let all = switches.worst.iter().map(|wait| (wait, stacks.frames(wait.node)));
    let wanted = all
        .filter(|(wait, frames)| stacks.wants(&stacks.profile().comms[wait.comm.index()], frames));
    wanted.take(options.limit).collect()
}

/// Why a thread waits. The class is that of a voluntary wait at its stack.
pub(super) fn reason(kind: WaitKind, state: Option<TaskState>, class: WaitClass) -> String {
    let word = match kind {
        WaitKind::Sync if class != WaitClass::Unknown => class.name(),
        WaitKind::Sync => "sync",
        WaitKind::Preempt if state.is_some_and(TaskState::is_throttled) => "throttled",
        WaitKind::Preempt => "preemption",
        WaitKind::New => "new",
    };
    match state {
        Some(state) => format!("{word} ({})", state.letters()),
        None => word.to_owned(),
    }
}

/// The object of a wait; `None` where the recording does not have it.
pub(crate) fn object(switches: &Switches, number: Option<u32>) -> Option<&NamedObject> {
    switches.objects.get(number? as usize)
}

/// Wake-ups that share both threads' stacks and the waker's command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WakerLine {
    pub(super) waiter: Vec<ChainEntry>,
    pub(super) waker: Vec<ChainEntry>,
    pub(super) waker_comm: CommId,
    /// The thread, where it was always the same.
    pub(super) waker_thread: Option<ThreadId>,
    pub(super) from_interrupt: bool,
    pub(super) count: u64,
    pub(super) blocked_ns: u64,
}

/// The wakers of the waits that the filters let pass; the longest blocked first.
pub(super) fn wakers(stacks: Stacks<'_>, switches: &Switches) -> Vec<WakerLine> {
    let profile = stacks.profile();
    let wanted: BTreeMap<usize, Vec<ChainEntry>> =
        stacks.rows(switches).map(|(index, _, frames)| (index, frames)).collect();
    let mut lines: BTreeMap<_, WakerLine> = BTreeMap::new();
    for row in &switches.wakers {
        let Some(waiter) = wanted.get(&(row.row as usize)) else { continue };
        let waker = stacks.frames(row.waker.node);
        let waker_comm = profile.threads[row.waker.thread.index()].comm;
        let from_interrupt = row.waker.from_interrupt;
        let key = (waiter.clone(), waker.clone(), waker_comm, from_interrupt);
        let line = lines.entry(key).or_insert_with(|| WakerLine {
            waiter: waiter.clone(),
            waker,
            waker_comm,
            waker_thread: Some(row.waker.thread),
            from_interrupt,
            count: 0,
            blocked_ns: 0,
        });
        line.count += row.count;
        line.blocked_ns = line.blocked_ns.saturating_add(row.blocked_ns);
        line.waker_thread = line.waker_thread.filter(|thread| *thread == row.waker.thread);
    }
    let mut lines: Vec<_> = lines.into_values().collect();
    // Stable: of equal ones the order of the keys.
    lines.sort_by_key(|line| std::cmp::Reverse((line.blocked_ns, line.count)));
    lines
}

/// `comm/tid`.
pub(super) fn thread_name(profile: &Profile, thread: ThreadId, comm: CommId) -> String {
    let tid = profile.threads[thread.index()].tid.0;
    format!("{}/{tid}", profile.comms[comm.index()])
}
