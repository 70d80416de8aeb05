//! Whether a recording was made on this machine: numbers of processes and files mean nothing on another.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use whit_perfdata::clocks::ClockReading;
use whit_perfdata::feature::{ClockData, Feature};
use whit_perfdata::reader::Recording;
use whit_perfdata::stream::Stream;
use whit_types::TimestampNs;

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
    /// The time of day of the recording's times.
    clock: Option<ClockData>,
}

impl RecordedMachine {
    /// By the recording's description of itself.
    pub(crate) fn of(
        recording: &Recording,
        this: Option<&ThisMachine>,
        clocks: &[ClockReading],
    ) -> RecordedMachine {
        let Some(this) = this else { return RecordedMachine::default() };
        let name = recording.features.string(Feature::HOSTNAME);
        RecordedMachine {
            is_this: name.as_deref() == Some(&this.hostname),
            recorded_until_ns: written_ns(recording).filter(|_| !this.is_live),
            clock: reference(recording, clocks),
        }
    }

    /// The time of day of a moment, where the recording says it.
    pub(crate) fn time_of_day(&self, time: TimestampNs) -> Option<SystemTime> {
        let clock = self.clock.as_ref()?;
        let since_reference = time.0.wrapping_sub(clock.clock_ns.0) as i64;
        let at_ns = clock.wall_clock_ns.checked_add_signed(since_reference)?;
        Some(UNIX_EPOCH + Duration::from_nanos(at_ns))
    }
}

/// A moment on the recording's clock and on the wall clock. perf states one where the user chose the clock.
pub(crate) fn reference(recording: &Recording, clocks: &[ClockReading]) -> Option<ClockData> {
    let read = |reading: &ClockReading| ClockData {
        clockid: 0,
        wall_clock_ns: reading.wall_clock_ns,
        clock_ns: reading.record,
    };
    recording.features.clock_data().or_else(|| clocks.first().map(read))
}

/// perf's recordings say nothing of the time of day. Their files do; those of a copy a later one, which refuses
/// less.
fn written_ns(recording: &Recording) -> Option<u64> {
    let times = recording.streams.iter().map(Stream::modified);
    let last = times.filter_map(Result::ok).max()?;
    Some(last.duration_since(UNIX_EPOCH).ok()?.as_nanos() as u64)
}
