//! Whether a recording was made on this machine: numbers of processes and files mean nothing on another.

use std::time::UNIX_EPOCH;
use whit_perfdata::feature::Feature;
use whit_perfdata::reader::Recording;
use whit_perfdata::stream::Stream;

/// The machine that a recording is read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThisMachine {
    /// Its name.
    pub hostname: String,
    /// The recording is still being made: no file was changed after it.
    pub is_live: bool,
}

/// The machine that was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RecordedMachine {
    /// It is this one, as far as its name tells.
    pub(crate) is_this: bool,
    /// When the last byte of the recording was written, in nanoseconds since the epoch.
    pub(crate) recorded_until_ns: Option<u64>,
}

impl RecordedMachine {
    /// By the recording's description of itself.
    pub(crate) fn of(recording: &Recording, this: Option<&ThisMachine>) -> RecordedMachine {
        let Some(this) = this else { return RecordedMachine::default() };
        let name = recording.features.string(Feature::HOSTNAME);
        RecordedMachine {
            is_this: name.as_deref() == Some(&this.hostname),
            recorded_until_ns: written_ns(recording).filter(|_| !this.is_live),
        }
    }
}

/// perf's recordings say nothing of the time of day. Their files do; those of a copy a later one, which refuses
/// less.
fn written_ns(recording: &Recording) -> Option<u64> {
    let times = recording.streams.iter().map(Stream::modified);
    let last = times.filter_map(Result::ok).max()?;
    Some(last.duration_since(UNIX_EPOCH).ok()?.as_nanos() as u64)
}
