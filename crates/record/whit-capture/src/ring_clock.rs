//! The time by the clock of the records, which only the kernel can read.

use std::time::{Duration, Instant};

use whit_types::TimestampNs;

/// Relates that clock to the recorder's. A record is older than the moment at which it is read; the youngest record
/// that was ever read says best how the clocks are related.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordClock(Option<(Instant, TimestampNs)>);

impl RecordClock {
    /// Notes the last record that was read until a moment.
    pub(crate) fn see(&mut self, now: Instant, record: TimestampNs) {
        let is_younger = self.time(now).is_none_or(|time| record > time);
        if is_younger {
            self.0 = Some((now, record));
        }
    }

    /// The time at a moment, less what the youngest record took to be read; `None` before the first.
    pub(crate) fn time(&self, at: Instant) -> Option<TimestampNs> {
        let (instant, time) = self.0?;
        let nanoseconds = |duration: Duration| duration.as_nanos() as u64;
        Some(TimestampNs(match at.checked_duration_since(instant) {
            Some(later) => time.0.saturating_add(nanoseconds(later)),
            None => time.0.saturating_sub(nanoseconds(instant.duration_since(at))),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_record_says_it_best() {
        let mut clock = RecordClock::default();
        let start = Instant::now();
        let at = |ns: u64| start + Duration::from_nanos(ns);
        assert_eq!(clock.time(start), None);
        // Read 400 late, 100 late, 300 late.
        for (now, record) in [(1_000, 70_600), (2_000, 71_900), (3_000, 72_700)] {
            clock.see(at(now), TimestampNs(record));
        }
        let times = [0, 2_000, 3_000].map(|now| clock.time(at(now)).map(|time| time.0));
        assert_eq!(times, [Some(69_900), Some(71_900), Some(72_900)]);
    }
}
