//! Several recordings, each opened when it is first read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use whit_perfdata::reader::Recording;
use whit_profile::tables::{TableSource, Tables};
use whit_profile::warning::Warning;
use whit_profile::{ReadOptions, Reading};
use whit_types::OutsideText;

/// How soon a cursor that waits notices that it was cancelled.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Why a table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The recording cannot be read.
    #[error("{path}: {problem}")]
    Load {
        /// As it was named.
        path: String,
        /// The cause.
        problem: String,
    },
    /// A sum of weights is larger than SQL's numbers.
    #[error("integer overflow")]
    Overflow,
    /// Somebody cancelled.
    #[error("interrupted")]
    Cancelled,
}

/// Ends the reading of all tables.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cursors give an error from here on.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes that back.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A recording behind its first pass.
pub(crate) struct Opened {
    pub(crate) source: TableSource,
    pub(crate) events: Vec<Arc<str>>,
}

#[derive(Default)]
enum State {
    #[default]
    Untouched,
    Opening,
    Open(Result<Arc<Opened>, TableError>),
}

struct Slot {
    path: String,
    input: Mutex<Option<(Recording, ReadOptions)>>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Recordings whose tables are read together.
#[derive(Clone)]
pub struct Database {
    slots: Arc<[Arc<Slot>]>,
    first_id: i64,
    cancel: Cancel,
}

impl Database {
    /// The recordings, numbered in their order.
    pub fn new(recordings: Vec<(Recording, ReadOptions)>, cancel: Cancel) -> Database {
        let slot = |input: (Recording, ReadOptions)| {
            Arc::new(Slot {
                path: input.0.path.display().to_string(),
                input: Mutex::new(Some(input)),
                state: Mutex::default(),
                changed: Condvar::new(),
            })
        };
        Database { slots: recordings.into_iter().map(slot).collect(), first_id: 0, cancel }
    }

    /// The same recordings, numbered from this number on.
    #[must_use]
    pub fn numbered_from(&self, first_id: i64) -> Database {
        Database { first_id, ..self.clone() }
    }

    pub(crate) fn recording_id(&self, place: usize) -> i64 {
        self.first_id + place as i64
    }

    /// Number of recordings.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Ends the reading of tables.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Defects of the recordings that were read so far, each once for each recording.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for slot in &*self.slots {
            let State::Open(Ok(opened)) = &*slot.lock() else { continue };
            let found = opened.source.warnings().into_iter();
            match self.len() {
                1 => warnings.extend(found),
                _ => warnings.extend(found.map(|warning| Warning::OfRecording {
                    path: OutsideText::from(slot.path.clone()),
                    warning: Box::new(warning),
                })),
            }
        }
        warnings
    }

    /// Opens a recording, unless it is open. The first pass goes on behind a cancelled wait.
    pub(crate) fn open(&self, number: usize) -> Result<Arc<Opened>, TableError> {
        let slot = &self.slots[number];
        let mut state = slot.lock();
        loop {
            match &*state {
                State::Open(opened) => return opened.clone(),
                State::Untouched => {
                    *state = State::Opening;
                    let slot = slot.clone();
                    std::thread::spawn(move || slot.load());
                }
                State::Opening => {}
            }
            if self.cancel.is_cancelled() {
                return Err(TableError::Cancelled);
            }
            let waited = slot.changed.wait_timeout(state, POLL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The error for a stream of a recording.
    pub(crate) fn error(&self, number: usize, problem: String) -> TableError {
        TableError::Load { path: self.slots[number].path.clone(), problem }
    }
}

impl Slot {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self) {
        let died = || TableError::Load {
            path: self.path.clone(),
            problem: "the thread that read it ended unexpectedly; please report this".to_owned(),
        };
        let read = || {
            let input = self.input.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (recording, options) = input.ok_or_else(died)?;
            let events = recording.events.iter().map(|event| event.name.as_str().into()).collect();
            match Reading::open(&recording, &options).answer(Tables) {
                Ok(source) => Ok(Arc::new(Opened { source, events })),
                Err(error) => {
                    let (path, problem) = (self.path.clone(), error.to_string());
                    Err(TableError::Load { path, problem })
                }
            }
        };
        // A waiting cursor has to hear of a panic, too.
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
        *self.lock() = State::Open(read.unwrap_or_else(|_| Err(died())));
        self.changed.notify_all();
    }
}
