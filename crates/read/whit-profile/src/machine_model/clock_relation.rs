//! The recording's times on the clock of JIT compilers.

use whit_perfdata::attr::AttrFlags;
use whit_perfdata::clocks::ClockReading;
use whit_perfdata::feature::EventDesc;
use whit_types::TimestampNs;

/// Number of `CLOCK_MONOTONIC`.
const CLOCK_MONOTONIC: i32 = 1;
/// NTP slews clocks by a two-thousandth at most; calibration of the default clock errs by less. Clocks that differ more
/// between two readings were set, or one of them stood still while the machine was suspended.
const SLEW_PARTS: u64 = 1000;
/// The rate of clocks is taken from readings that are so far apart at least: a reading is exact to some microseconds.
const RATE_SPAN_NS: u64 = 1_000_000_000;

/// How the clock that stamps records is related to `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClockRelation {
    /// It is that clock.
    Same,
    /// Readings of both, ascending by the record's clock; at least one.
    Read(Vec<ClockReading>),
    /// The recording does not say.
    Unknown,
}

impl ClockRelation {
    /// By the clock of the events, and by the readings in the recording.
    pub(crate) fn new(events: &[EventDesc], mut readings: Vec<ClockReading>) -> ClockRelation {
        let is_monotonic = |event: &EventDesc| {
            event.attr.has(AttrFlags::USE_CLOCKID) && event.attr.clockid == CLOCK_MONOTONIC
        };
        if !events.is_empty() && events.iter().all(is_monotonic) {
            return ClockRelation::Same;
        }
        readings.sort_by_key(|reading| reading.record);
        readings.dedup_by_key(|reading| reading.record);
        if readings.is_empty() { ClockRelation::Unknown } else { ClockRelation::Read(readings) }
    }

    /// A moment of the recording on `CLOCK_MONOTONIC`, where that is known.
    pub(crate) fn monotonic(&self, time: TimestampNs) -> Option<TimestampNs> {
        let readings = match self {
            ClockRelation::Same => return Some(time),
            ClockRelation::Unknown => return None,
            ClockRelation::Read(readings) => readings,
        };
        let after = readings.partition_point(|reading| reading.record <= time);
        let ns = match (after.checked_sub(1).map(|at| &readings[at]), readings.get(after)) {
            (Some(before), Some(behind)) => between(before, behind, time)?,
            (Some(near), None) | (None, Some(near)) => outside(readings, near, time),
            (None, None) => return None,
        };
        u64::try_from(ns).ok().map(TimestampNs)
    }
}

/// `None` where a clock jumped between the readings.
fn between(before: &ClockReading, behind: &ClockReading, time: TimestampNs) -> Option<i128> {
    let (recorded, monotonic) = spans(before, behind);
    let reading = i128::from(before.within_ns) + i128::from(behind.within_ns);
    let allowed = recorded / i128::from(SLEW_PARTS) + reading;
    if (monotonic - recorded).abs() > allowed {
        return None;
    }
    let since = i128::from(time.0) - i128::from(before.record.0);
    Some(i128::from(before.monotonic_ns) + since * monotonic / recorded.max(1))
}

/// In front of the first reading and behind the last one, the clocks go on at the rate between these two.
fn outside(readings: &[ClockReading], near: &ClockReading, time: TimestampNs) -> i128 {
    let since = i128::from(time.0) - i128::from(near.record.0);
    let ends = readings.first().zip(readings.last());
    let slope = ends.map(|(first, last)| spans(first, last)).filter(|(recorded, monotonic)| {
        let differ = (monotonic - recorded).abs();
        *recorded >= i128::from(RATE_SPAN_NS) && differ <= recorded / i128::from(SLEW_PARTS)
    });
    let (recorded, monotonic) = slope.unwrap_or((1, 1));
    i128::from(near.monotonic_ns) + since * monotonic / recorded
}

fn spans(from: &ClockReading, to: &ClockReading) -> (i128, i128) {
    let recorded = i128::from(to.record.0) - i128::from(from.record.0);
    (recorded, i128::from(to.monotonic_ns) - i128::from(from.monotonic_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::attr::Attr;

    const SECOND: u64 = 1_000_000_000;

    fn reading(record: u64, monotonic_ns: u64) -> ClockReading {
        let record = TimestampNs(record);
        ClockReading { record, monotonic_ns, within_ns: 1000, ..ClockReading::default() }
    }

    fn relation(readings: &[ClockReading]) -> ClockRelation {
        ClockRelation::new(&[EventDesc::default()], readings.to_vec())
    }

    fn at(relation: &ClockRelation, time: u64) -> Option<u64> {
        relation.monotonic(TimestampNs(time)).map(|time| time.0)
    }

    #[test]
    fn drift_is_followed_between_and_beyond_readings() {
        // In whichever order they were written; the clock of records loses 100 µs a second.
        let drift = |seconds: u64| {
            reading(seconds * SECOND, 7 * SECOND + seconds * SECOND + seconds * 100_000)
        };
        let relation = relation(&[drift(20), drift(10), drift(30)]);
        assert_eq!(at(&relation, 15 * SECOND), Some(22 * SECOND + 1_500_000));
        assert_eq!(at(&relation, 30 * SECOND), Some(37 * SECOND + 3_000_000));
        assert_eq!(at(&relation, 40 * SECOND), Some(47 * SECOND + 4_000_000));
        assert_eq!(at(&relation, 5 * SECOND), Some(12 * SECOND + 500_000));
        assert_eq!(at(&relation, u64::MAX), None);
    }

    #[test]
    fn one_reading_or_two_near_ones_say_the_distance_alone() {
        let one = relation(&[reading(100, 5000)]);
        assert_eq!((at(&one, 90), at(&one, 300)), (Some(4990), Some(5200)));
        // A rate from two moments that are so near would be off by a tenth.
        let near = relation(&[reading(100_000, 500_000), reading(110_000, 511_000)]);
        assert_eq!(at(&near, SECOND + 110_000), Some(SECOND + 511_000));
        assert_eq!(at(&relation(&[reading(5000, 100)]), 10), None);
    }

    #[test]
    fn nothing_is_known_while_a_clock_jumps() {
        let jumps = relation(&[
            reading(SECOND, 10 * SECOND),
            reading(2 * SECOND, 11 * SECOND),
            reading(3 * SECOND, 15 * SECOND),
            reading(4 * SECOND, 16 * SECOND),
        ]);
        assert_eq!(at(&jumps, 3 * SECOND / 2), Some(21 * SECOND / 2));
        assert_eq!(at(&jumps, 5 * SECOND / 2), None);
        assert_eq!(at(&jumps, 7 * SECOND / 2), Some(31 * SECOND / 2));
        assert_eq!(at(&jumps, 5 * SECOND), Some(17 * SECOND));
    }

    #[test]
    fn the_clock_itself_needs_no_reading_and_others_do() {
        let event = |flags, clockid| EventDesc {
            attr: Attr { flags, clockid, ..Attr::default() },
            ..EventDesc::default()
        };
        let monotonic = event(AttrFlags::USE_CLOCKID, CLOCK_MONOTONIC);
        let relation = |events: &[EventDesc]| ClockRelation::new(events, Vec::new());
        assert_eq!(relation(std::slice::from_ref(&monotonic)), ClockRelation::Same);
        assert_eq!(at(&ClockRelation::Same, 7), Some(7));
        for other in [event(AttrFlags::USE_CLOCKID, 4), event(AttrFlags::default(), 1)] {
            assert_eq!(relation(&[monotonic.clone(), other]), ClockRelation::Unknown);
        }
        assert_eq!(at(&relation(&[]), 7), None);
    }
}
