//! Counters of a destination.

use serde::Serialize;

/// Windows and the bytes of their bodies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Amount {
    /// Their number.
    pub windows: u64,
    /// Bytes, as they are sent.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.windows += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(crate) fn remove(&mut self, bytes: u64) {
        self.windows = self.windows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// Windows that no receiver will have, by the bound or answer that ended them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Dropped {
    /// `spool.max-bytes` was reached, and these were the oldest.
    pub spool_full: Amount,
    /// `spool.max-age` was reached.
    pub too_old: Amount,
    /// One window was larger than `spool.max-bytes`.
    pub too_large: Amount,
    /// The disk took none, and `spool.max-memory` was reached.
    pub memory_full: Amount,
    /// The receiver refused them for good.
    pub refused: Amount,
    /// The receiver failed over each of them several times.
    pub failed: Amount,
    /// Files of the spool that were cut, changed, or of another kind of receiver.
    pub damaged: Amount,
    /// They could not be put into the receiver's form.
    pub not_encoded: u64,
}

impl Dropped {
    /// Windows under all names.
    pub fn windows(&self) -> u64 {
        let amounts = [
            self.spool_full,
            self.too_old,
            self.too_large,
            self.memory_full,
            self.refused,
            self.failed,
            self.damaged,
        ];
        amounts.iter().map(|amount| amount.windows).sum::<u64>() + self.not_encoded
    }
}

/// The occupation of a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing waits.
    #[default]
    Idle,
    /// A request is under way.
    Sending,
    /// The last request failed, and the next one comes later.
    Waiting,
    /// Its address, token or certificate is wrong.
    Misconfigured,
    /// It was stopped.
    Stopped,
}

/// A destination.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Status {
    /// Its name in the configuration.
    pub name: String,
    /// `otlp`, `pyroscope` or `parca`.
    pub kind: &'static str,
    /// Its address, without a password.
    pub url: String,
    /// Its occupation at the moment.
    pub state: State,
    /// Windows that came since the start.
    pub accepted: u64,
    /// Windows of an earlier process that the spool had at the start.
    pub found: Amount,
    /// Windows that the receiver took.
    pub sent: Amount,
    /// Windows that wait on disk and in memory.
    pub waiting: Amount,
    /// Those of them that wait in memory alone, since the disk took them not.
    pub in_memory: Amount,
    /// Requests that failed and were or will be repeated.
    pub retries: u64,
    /// Profiles that the receiver left out of windows that it took.
    pub rejected_profiles: u64,
    /// Windows that are lost to the receiver.
    pub dropped: Dropped,
    /// Why the last request or write failed; `None` after a success.
    pub last_error: Option<String>,
    /// The last success, in seconds since the epoch.
    pub last_success_unix_s: Option<u64>,
    /// Until the next request, where one waits.
    pub next_try_s: Option<f64>,
}
