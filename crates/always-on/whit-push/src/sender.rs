//! The thread of a destination: it takes window after window out of the spool and sends them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::answer::Verdict;
use crate::backoff::Backoff;
use crate::client::{Client, Outcome};
use crate::parcel::Parcel;
use crate::settings::Settings;
use crate::spool::{Now, Spool};
use crate::status::{Amount, State, Status};

/// The state of a destination, which its threads share.
pub(crate) struct Destination {
    begun: Instant,
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    spool: Spool,
    status: Status,
    backoff: Backoff,
    next_try: Option<Instant>,
    /// Nothing is waited for any more: each window has one try.
    is_ending: bool,
    is_over: bool,
}

impl Destination {
    pub(crate) fn new(
        name: &str,
        settings: &Settings,
        begun: Instant,
        spool: Spool,
    ) -> Destination {
        let status = Status {
            name: name.to_owned(),
            kind: settings.kind.name(),
            url: settings.shown_url(),
            found: spool.waiting(),
            ..Status::default()
        };
        let backoff = Backoff::new(settings.retry_first.0, settings.retry_longest.0);
        let inner =
            Inner { spool, status, backoff, next_try: None, is_ending: false, is_over: false };
        Destination { begun, inner: Mutex::new(inner), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A thread that panicked has changed nothing by halves.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Now {
        now(self.begun)
    }

    /// Puts a window into the spool; `None` is one that could not be put into the receiver's form.
    pub(crate) fn accept(&self, parcel: Option<Parcel>) {
        let now = self.now();
        let mut inner = self.lock();
        inner.status.accepted += 1;
        match parcel {
            Some(parcel) => inner.spool.put(parcel, now),
            None => inner.spool.not_encoded(),
        }
        self.changed.notify_all();
    }

    pub(crate) fn status(&self) -> Status {
        let inner = self.lock();
        let mut status = inner.status.clone();
        status.waiting = inner.spool.waiting();
        status.in_memory = inner.spool.in_memory();
        status.dropped = inner.spool.dropped();
        let disk_error = inner.spool.disk_error().map(str::to_owned);
        status.last_error = status.last_error.or(disk_error);
        let waits = inner.next_try.filter(|_| status.waiting != Amount::default());
        status.next_try_s =
            waits.map(|at| at.saturating_duration_since(Instant::now()).as_secs_f64());
        status
    }

    /// Asks the thread to send what waits, without waiting for a receiver that fails.
    pub(crate) fn end(&self) {
        self.lock().is_ending = true;
        self.changed.notify_all();
    }

    /// Waits for the thread, and takes the spool from it in any case.
    pub(crate) fn close(&self, until: Instant) -> Status {
        let mut inner = self.lock();
        while !inner.is_over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            inner =
                self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let now = self.now();
        inner.spool.close(now);
        inner.status.state = State::Stopped;
        inner.is_over = true;
        drop(inner);
        self.status()
    }

    /// Waits for a window and for its time; `None` ends the thread.
    fn next(&self) -> Option<(u64, Arc<Parcel>)> {
        let mut inner = self.lock();
        loop {
            let now = self.now();
            if inner.is_over {
                return None;
            }
            let wait = match inner.next_try.filter(|_| !inner.is_ending) {
                Some(at) => at.saturating_duration_since(Instant::now()),
                None => Duration::ZERO,
            };
            if wait.is_zero() {
                if let Some(next) = inner.spool.next(now) {
                    inner.status.state = State::Sending;
                    return Some(next);
                }
                inner.status.state = State::Idle;
                if inner.is_ending {
                    return None;
                }
                inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
            } else {
                inner = self
                    .changed
                    .wait_timeout(inner, wait)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        }
    }

    /// Books the result of a request; false ends the thread.
    fn book(&self, number: u64, outcome: Outcome) -> bool {
        let mut inner = self.lock();
        if let Some((profiles, _)) = &outcome.rejected {
            inner.status.rejected_profiles += profiles;
        }
        let chance = RandomState::new().build_hasher().finish();
        let (reason, wait) = match outcome.verdict {
            Verdict::Taken => {
                let bytes = inner.spool.taken(number).unwrap_or(0);
                inner.taken(bytes, outcome.rejected.map(|(_, reason)| reason));
                return true;
            }
            Verdict::Refused { reason } => {
                inner.spool.refused(number);
                // The next window may be fine, and the receiver is there.
                inner.next_try = None;
                inner.status.last_error = Some(reason);
                return true;
            }
            Verdict::Later { after, reason } => (reason, inner.backoff.failure(after, chance)),
            Verdict::Failed { reason } => {
                inner.spool.failed(number);
                (reason, inner.backoff.failure(None, chance))
            }
            Verdict::Misconfigured { reason } => {
                inner.status.state = State::Misconfigured;
                (reason, inner.backoff.hopeless(chance))
            }
        };
        inner.status.retries += 1;
        if inner.status.state != State::Misconfigured {
            inner.status.state = State::Waiting;
        }
        inner.status.last_error = Some(reason);
        inner.next_try = Instant::now().checked_add(wait);
        !inner.is_ending
    }
}

impl Inner {
    fn taken(&mut self, bytes: u64, rejected: Option<String>) {
        self.backoff.success();
        self.next_try = None;
        self.status.sent.add(bytes);
        self.status.last_error = rejected;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.status.last_success_unix_s = Some(since.as_secs());
    }
}

/// A moment by both clocks; `begun` is the zero of the steady one.
pub(crate) fn now(begun: Instant) -> Now {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Now { unix_ms: millis(unix), steady_ms: millis(begun.elapsed()) }
}

/// Sends until the destination ends.
pub(crate) fn run(destination: &Destination, client: &Client) {
    while let Some((number, parcel)) = destination.next() {
        let outcome = client.send(&parcel);
        if !destination.book(number, outcome) {
            break;
        }
    }
    destination.lock().is_over = true;
    destination.changed.notify_all();
}
