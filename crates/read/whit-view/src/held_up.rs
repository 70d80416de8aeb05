//! Waits that held work up: without idle loops, threads of the kernel, and the recorder.

use rustc_hash::FxHashSet;
use whit_profile::model::{NodeId, Profile, ThreadId};
use whit_profile::switches::{NodeClasses, SwitchRow, Switches, WaitClass, WaitClassSet};
use whit_types::{OutsideText, Pid};

/// Tells waits that held work up from others.
pub(crate) struct HeldUp<'p> {
    profile: &'p Profile,
    classes: NodeClasses,
    own: FxHashSet<Pid>,
    idle: WaitClassSet,
}

/// The waits of one row.
pub(crate) struct HeldUpWaits {
    pub(crate) class: WaitClass,
    pub(crate) ns: u64,
    pub(crate) count: u64,
}

impl<'p> HeldUp<'p> {
    pub(crate) fn new(profile: &'p Profile, switches: &Switches) -> HeldUp<'p> {
        let classes = NodeClasses::of(profile, switches.rows.iter().map(|row| row.node));
        let idle = WaitClassSet::parse("idle").unwrap_or_default();
        HeldUp { profile, classes, own: recorders(profile), idle }
    }

    /// Whether waits of a class, of a thread at a stack, hold work up.
    pub(crate) fn has(&self, class: WaitClass, thread: ThreadId, node: NodeId) -> bool {
        let pid = self.profile.threads[thread.index()].pid;
        !self.idle.has(class) && !self.own.contains(&pid) && !is_of_kernel(self.profile, node)
    }

    /// The voluntary waits of a row; `None` where a thread waited for work or for a time, which holds nothing up. Waits
    /// that the recording cuts count as far as it has them: in a hang, all are of these. A wait for anything but a lock
    /// that fills the whole recording is an idle thread.
    pub(crate) fn waits(&self, row: &SwitchRow) -> Option<HeldUpWaits> {
        let class = self.classes.get(row);
        if !self.has(class, row.thread, row.node) {
            return None;
        }
        let sums = &row.sums;
        // Voluntary waits alone, and without time that a loss touches.
        let open_ns = sums.open_blocked_ns.saturating_add(sums.open_runnable_ns);
        let (open_ns, open_count) = match class {
            WaitClass::Lock => (open_ns, sums.open_count + sums.throughout_count),
            _ => (open_ns.saturating_sub(sums.throughout_wait_ns), sums.open_count),
        };
        let ns = sums.sync_wait_ns.saturating_add(open_ns);
        let count = sums.sync_count + if open_ns > 0 { open_count } else { 0 };
        (ns > 0).then_some(HeldUpWaits { class, ns, count })
    }
}

/// Processes that recorded: they have a thread that drains rings.
pub(crate) fn recorders(profile: &Profile) -> FxHashSet<Pid> {
    let is_reader = |name: &OutsideText| {
        let number = name.exact().strip_prefix("whit-reader-");
        number.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let readers = profile.threads.iter().filter(|it| is_reader(&profile.comms[it.comm.index()]));
    readers.map(|thread| thread.pid).collect()
}

/// True for a stack that begins in the kernel: one of a thread of the kernel.
fn is_of_kernel(profile: &Profile, node: NodeId) -> bool {
    let next = |id: &NodeId| Some(profile.nodes.get(id.index())?.parent);
    let ids = std::iter::successors(Some(node), next);
    let last = ids.take_while(|id| id.index() < profile.nodes.len()).last();
    last.is_some_and(|id| profile.frames[profile.nodes[id.index()].frame.index()].kernel)
}
