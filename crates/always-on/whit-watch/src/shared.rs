//! The state that other threads may see.

use crate::cost::{Cost, CostMeter};
use crate::counters::Counters;
use crate::sinks::SinkStatuses;
use crate::triggers::{Fire, Keeper, Trigger};
use crate::window::HeldBytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The parts of a service by now.
#[derive(Clone, Default)]
pub struct Parts {
    /// Where windows go.
    pub sinks: SinkStatuses,
    /// They watch for events.
    pub triggers: Vec<Arc<dyn Trigger>>,
    /// It keeps the last seconds.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// Events that came.
    pub fire: Option<Fire>,
    /// Windows in memory.
    pub held: HeldBytes,
}

/// Counters, parts, and the recorder's process.
#[derive(Debug)]
pub struct Shared {
    /// Those of the service.
    pub counters: Counters,
    /// When the service began.
    pub begun: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    recorder: Option<u32>,
    cost: CostMeter,
    parts: Parts,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("recorder", &self.recorder).finish_non_exhaustive()
    }
}

impl Default for Shared {
    fn default() -> Shared {
        Shared { counters: Counters::default(), begun: Instant::now(), state: Mutex::default() }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process of the recorder that runs.
    pub fn recorder(&self) -> Option<u32> {
        self.lock().recorder
    }

    pub(crate) fn set_recorder(&self, pid: Option<u32>) {
        let mut state = self.lock();
        state.recorder = pid;
        state.cost.mark(pid);
    }

    /// The cost of the service and its recorder, over the last windows.
    pub fn cost(&self) -> Cost {
        let state = self.lock();
        state.cost.cost(state.recorder)
    }

    /// Sinks, triggers and all others.
    pub fn parts(&self) -> Parts {
        self.lock().parts.clone()
    }

    pub(crate) fn set_parts(&self, parts: Parts) {
        let mut state = self.lock();
        let recorder = state.recorder;
        state.cost.mark(recorder);
        state.parts = parts;
    }
}
