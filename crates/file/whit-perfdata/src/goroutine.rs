//! Goroutines: threads that Go's own scheduler runs on those of the kernel.
//!
//! Samples of events say when a goroutine is made, parks, becomes ready, and runs again. Their names say which of
//! them an event is; their fields are below.

use crate::bytes::Cursor;
use crate::feature::{Feature, Features};

const VERSION: u32 = 1;
/// Go's own strings of reasons are shorter.
const NAME_BYTES_MAX: usize = 256;

/// In front of the names of the events.
const PREFIX: &str = "goroutine:";
/// The name of the event of the network's poller, which has found a file ready: waits for it end so.
pub const POLL_EVENT: &str = "goroutine:poll";

/// The field with the address of the goroutine's `runtime.g`: another one may have it once a goroutine has ended.
pub const ADDRESS: &str = "g";
/// The field with the goroutine's number; absent where the binary does not say where it is.
pub const NUMBER: &str = "goid";
/// The field with the reason of a park, a value of `runtime.waitReason`.
pub const REASON: &str = "reason";
/// The field with the address of the `runtime.sudog` that waits; zero where the goroutine waits for neither a channel
/// nor a lock. Where it is zero, [`CHANNEL`] and [`SEMAPHORE`] say nothing.
pub const SUDOG: &str = "sudog";
/// The field with the address of the channel; zero for locks.
pub const CHANNEL: &str = "channel";
/// The field with the address of the lock's word; that of the value where there is a channel.
pub const SEMAPHORE: &str = "semaphore";
/// The field with the number of the file that is waited for, where the goroutine reads.
pub const READ_FILE: &str = "read_fd";
/// The same where it writes.
pub const WRITE_FILE: &str = "write_fd";
/// The field with the address of the goroutine that makes another one, or makes it ready; zero for the scheduler itself.
pub const WAKER: &str = "waker";
/// The field with the number of that goroutine.
pub const WAKER_NUMBER: &str = "waker_goid";
/// The field with the address of the goroutine that reads from the file of a poll; a value up to [`NO_GOROUTINE`] for none.
pub const READER: &str = "reader";
/// The field with the number of that goroutine.
pub const READER_NUMBER: &str = "reader_goid";
/// The same of the one that writes.
pub const WRITER: &str = "writer";
/// The field with the number of that goroutine.
pub const WRITER_NUMBER: &str = "writer_goid";
/// The field with the reason of a poll: the byte `r` for data to read, `w` for room to write, their sum for both.
pub const MODE: &str = "mode";
/// The words of a file for its goroutines have states up to this value (`pdReady`, `pdWait`).
pub const NO_GOROUTINE: u64 = 2;

/// A change of a goroutine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// Another one makes it.
    Create,
    /// It waits from here on.
    Park,
    /// The wait has ended.
    Ready,
    /// A thread runs it.
    Run,
}

impl Change {
    /// In the order of a goroutine's life.
    pub const ALL: [Change; 4] = [Change::Create, Change::Park, Change::Ready, Change::Run];

    fn word(self) -> &'static str {
        match self {
            Change::Create => "create",
            Change::Park => "park",
            Change::Ready => "ready",
            Change::Run => "run",
        }
    }

    /// As recordings name the event of its samples.
    pub fn event_name(self) -> String {
        format!("{PREFIX}{}", self.word())
    }

    /// The change whose event has this name; `None` for other events.
    pub fn of(event: &str) -> Option<Change> {
        let word = event.strip_prefix(PREFIX)?;
        Change::ALL.into_iter().find(|change| change.word() == word)
    }
}

impl Features {
    /// WHIT_GOROUTINES: the reasons for which goroutines wait, by their numbers in the recorded program.
    pub fn wait_reasons(&self) -> Option<Vec<String>> {
        let mut c = Cursor::new(self.get(Feature::WHIT_GOROUTINES)?);
        let (VERSION.., count) = (c.u32()?, c.u32()?) else { return None };
        let mut reasons = Vec::new();
        for _ in 0..count {
            let size = usize::try_from(c.u32()?).ok().filter(|size| *size <= NAME_BYTES_MAX)?;
            reasons.push(String::from_utf8_lossy(c.take(size)?).into_owned());
        }
        Some(reasons)
    }

    /// Sets WHIT_GOROUTINES.
    pub fn set_wait_reasons(&mut self, reasons: &[String]) {
        let mut out = VERSION.to_le_bytes().to_vec();
        out.extend((reasons.len() as u32).to_le_bytes());
        for reason in reasons {
            out.extend((reason.len() as u32).to_le_bytes());
            out.extend(reason.as_bytes());
        }
        self.set(Feature::WHIT_GOROUTINES, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_reasons_are_read() {
        let mut features = Features::default();
        assert_eq!(features.wait_reasons(), None);
        let reasons = ["", "sleep", "chan receive"].map(str::to_owned);
        features.set_wait_reasons(&reasons);
        assert_eq!(features.wait_reasons().as_deref(), Some(&reasons[..]));
        let bytes = features.get(Feature::WHIT_GOROUTINES).unwrap().to_vec();
        for len in 0..bytes.len() {
            features.set(Feature::WHIT_GOROUTINES, bytes[..len].to_vec());
            assert_eq!(features.wait_reasons(), None);
        }
        // A length without its text, and a count without its lengths.
        for hostile in [[1, 1, u32::MAX], [1, u32::MAX, 0]] {
            let bytes = hostile.iter().flat_map(|word| word.to_le_bytes()).collect();
            features.set(Feature::WHIT_GOROUTINES, bytes);
            assert_eq!(features.wait_reasons(), None);
        }
    }

    #[test]
    fn names_of_events_name_the_change() {
        for change in Change::ALL {
            assert_eq!(Change::of(&change.event_name()), Some(change));
        }
        for other in [POLL_EVENT, "goroutine:", "park", "goroutine:parks", "cycles"] {
            assert_eq!(Change::of(other), None);
        }
    }
}
