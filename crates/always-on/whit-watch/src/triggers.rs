//! Triggers see events and hand them to the service, which keeps the last seconds then.

use crate::recorder::LiveStream;
use serde::Serialize;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use whit_sys::Waker;

/// Events that wait for the service; more at a time are one event.
const EVENTS_MAX: usize = 16;

/// Something happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// The trigger's name: `signal`, `pressure`.
    pub trigger: String,
    /// For file names and messages.
    pub reason: String,
    /// When it was seen.
    pub at: Instant,
}

/// Hands events to the service, from any thread.
#[derive(Clone, Debug)]
pub struct Fire {
    events: SyncSender<Event>,
    waker: Waker,
    state: Arc<Mutex<FireCounts>>,
}

/// Counters of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FireCounts {
    /// Events that came.
    pub fired: u64,
    /// Events that came while others waited (`EVENTS_MAX`).
    pub dropped_by_queue: u64,
}

impl Fire {
    /// With the end that the service reads.
    pub fn new(waker: &Waker) -> (Fire, Receiver<Event>) {
        let (events, receiver) = sync_channel(EVENTS_MAX);
        (Fire { events, waker: waker.clone(), state: Arc::default() }, receiver)
    }

    /// The service acts on it at once.
    pub fn fire(&self, event: Event) {
        let mut counts = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        counts.fired += 1;
        if let Err(TrySendError::Full(_)) = self.events.try_send(event) {
            counts.dropped_by_queue += 1;
        }
        let _ = self.waker.wake();
    }

    /// The numbers by now.
    pub fn counts(&self) -> FireCounts {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches for events in threads of its own, which end when it is dropped.
pub trait Trigger: Send + Sync {
    /// In messages and figures.
    fn name(&self) -> String;
    /// Counters, for `whit watch status`.
    fn status(&self) -> serde_json::Value;
}

/// Keeps the last seconds when an event comes, in a thread of its own.
pub trait Keeper: Send + Sync {
    /// A recorder was started: this is its stream.
    fn follow(&self, stream: &LiveStream);
    /// Has the last seconds of the stream written.
    fn keep(&self, event: &Event);
    /// Counters, for `whit watch status`.
    fn status(&self) -> serde_json::Value;
}
