//! The state of a thread: it runs, or it waits.

use super::cpu_parts::CpuParts;
use super::interval::{Switch, TimedStack};
use super::object_key::ObjectKey;
use super::switch_event::{SourceSet, StackRef, TaskState, WaitKind};
use whit_types::{CpuId, TimestampNs};

#[derive(Debug)]
pub(super) struct RunState {
    pub(super) from: TimestampNs,
    /// The last moment at which it is known to have run.
    pub(super) last: TimestampNs,
    pub(super) cpu: Option<CpuId>,
    pub(super) sources: SourceSet,
    pub(super) samples: Vec<TimedStack>,
    pub(super) switch_stack: StackRef,
    pub(super) switch_state: Option<TaskState>,
    pub(super) switch_object: ObjectKey,
    pub(super) is_open: bool,
    /// When it came, where parts of the run were given out already.
    pub(super) came: TimestampNs,
    pub(super) parts: CpuParts,
}

#[derive(Debug)]
pub(super) struct WaitState {
    pub(super) switch: Switch,
    pub(super) sources: SourceSet,
}

#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing was said of it, or it has not run yet.
    Unknown,
    Running(RunState),
    Waiting(WaitState),
}

impl WaitState {
    /// Takes over what another source knows of the same switch.
    pub(super) fn join(&mut self, other: &Switch) {
        let switch = &mut self.switch;
        // Not runnable is what both have to say.
        switch.kind = switch.kind.max(other.kind);
        if switch.kind == WaitKind::Preempt {
            switch.woken = None;
        }
        switch.state = switch.state.or(other.state);
        switch.cpu = switch.cpu.or(other.cpu);
        if switch.stack == StackRef::NONE {
            switch.stack = other.stack;
        }
    }
}
