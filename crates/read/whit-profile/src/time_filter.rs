//! `--time`: which part of the recording to look at.

use std::num::NonZeroU64;
use std::sync::Arc;
use whit_types::TimestampNs;

/// Parts of the recording, as the user gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFilter {
    /// From and to, each inclusive, in the recording's clock; open where absent.
    Absolute(Vec<(Option<TimestampNs>, Option<TimestampNs>)>),
    /// From and to in parts per million of the recorded time; the next part begins where one ends.
    Share(Vec<(u64, u64)>),
}

/// Why a time filter could not be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot understand the time {text:?}: {problem}; give `START,STOP` in seconds of the \
     recording's clock (either may be empty), `START%-STOP%`, or `SHARE%/PART`; several are \
     `START,STOP START,STOP`, or shares with commas between them"
)]
pub struct TimeFilterError {
    text: String,
    problem: &'static str,
}

const MILLION: u64 = 1_000_000;

impl TimeFilter {
    /// Understands `12.5,13`, `,13`, `12.5,`, `10%-20%`, `10%/2` (the second tenth), `10%`, and lists of them:
    /// `1,2 5,6` and `10%/1,10%/10`.
    pub fn parse(text: &str) -> Result<TimeFilter, TimeFilterError> {
        let filter = if text.contains('%') {
            text.split(',').map(parse_share).collect::<Result<_, _>>().map(TimeFilter::Share)
        } else {
            parse_absolutes(text).map(TimeFilter::Absolute)
        };
        filter.map_err(|problem| TimeFilterError { text: text.to_owned(), problem })
    }

    /// A single range of the recording's clock.
    pub fn span(from: TimestampNs, to: TimestampNs) -> TimeFilter {
        TimeFilter::Absolute(vec![(Some(from), Some(to))])
    }

    /// As times, given the first and the last one of the recording.
    pub fn resolve(&self, first: TimestampNs, last: TimestampNs) -> TimeRanges {
        match self {
            TimeFilter::Absolute(spans) => TimeRanges::new(spans.iter().map(|(from, to)| {
                let to = to.unwrap_or(TimestampNs(u64::MAX));
                TimeRange { from: from.unwrap_or(TimestampNs(0)), to }
            })),
            TimeFilter::Share(shares) => {
                TimeRanges::new(shares.iter().map(|share| part_of(first, last, *share)))
            }
        }
    }
}

/// A part of the recorded time. Neighbours share no moment, so that the parts of a recording add up to it.
fn part_of(first: TimestampNs, last: TimestampNs, (from, to): (u64, u64)) -> TimeRange {
    let at = |share: u64| {
        let part = u128::from(last.since(first)) * u128::from(share);
        TimestampNs(first.0.saturating_add((part / u128::from(MILLION)) as u64))
    };
    let (from, to) = (at(from), at(to));
    let is_followed = to > from && to < last;
    TimeRange { from, to: TimestampNs(to.0 - u64::from(is_followed)) }
}

/// Ranges of time in order, without a moment in two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeRanges(Arc<[TimeRange]>);

impl TimeRanges {
    /// The union of ranges in any order.
    pub fn new(ranges: impl IntoIterator<Item = TimeRange>) -> TimeRanges {
        let mut sorted: Vec<_> = ranges.into_iter().collect();
        sorted.sort_unstable_by_key(|range| (range.from, range.to));
        sorted.dedup_by(|next, before| {
            let meets = next.from <= before.to;
            if meets {
                before.to = before.to.max(next.to);
            }
            meets
        });
        TimeRanges(sorted.into())
    }

    /// True for a moment inside of any.
    pub fn contains(&self, time: TimestampNs) -> bool {
        let next = self.0.partition_point(|range| range.to < time);
        self.0.get(next).is_some_and(|range| range.contains(time))
    }

    /// The ranges that have a moment of another one, in order.
    pub fn meeting(&self, other: TimeRange) -> impl Iterator<Item = TimeRange> + '_ {
        let first = self.0.partition_point(|range| range.to < other.from);
        self.0[first..].iter().copied().take_while(move |range| range.from <= other.to)
    }

    /// The ranges, each cut into parts of equal length, as many as given over all. Neighbours share no moment.
    #[must_use]
    pub fn cut_into(&self, parts: u16) -> TimeRanges {
        let length = |range: &TimeRange| range.to.since(range.from);
        let all = self.0.iter().map(length).fold(0, u64::saturating_add);
        let step = (all / u64::from(parts.max(1))).max(1);
        let mut cut = Vec::new();
        for range in self.iter() {
            let count = (length(&range) / step).max(1);
            let begin = |part: u64| TimestampNs(range.from.0 + part * (length(&range) / count));
            cut.extend((0..count).map(|part| {
                let is_last = part + 1 == count;
                let to = if is_last { range.to } else { TimestampNs(begin(part + 1).0 - 1) };
                TimeRange { from: begin(part), to }
            }));
        }
        TimeRanges::new(cut)
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = TimeRange> + '_ {
        self.0.iter().copied()
    }
}

impl From<TimeRange> for TimeRanges {
    fn from(range: TimeRange) -> TimeRanges {
        TimeRanges::new([range])
    }
}

/// A range of time, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First moment.
    pub from: TimestampNs,
    /// Last moment.
    pub to: TimestampNs,
}

impl TimeRange {
    /// True for a moment inside.
    pub fn contains(&self, time: TimestampNs) -> bool {
        self.from <= time && time <= self.to
    }
}

/// Length of a stretch of time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeQuantum(pub NonZeroU64);

/// Why a length of time could not be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot understand the length {0:?}: give a whole number and us, ms or s, as in 100ms")]
pub struct TimeQuantumError(String);

impl std::str::FromStr for TimeQuantum {
    type Err = TimeQuantumError;

    fn from_str(text: &str) -> Result<TimeQuantum, TimeQuantumError> {
        let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let length = units.into_iter().find_map(|(unit, ns)| {
            let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            NonZeroU64::new(number.checked_mul(ns)?)
        });
        length.map(TimeQuantum).ok_or_else(|| TimeQuantumError(text.to_owned()))
    }
}

type Span = (Option<TimestampNs>, Option<TimestampNs>);

fn parse_absolutes(text: &str) -> Result<Vec<Span>, &'static str> {
    // Blanks separate spans, and may also follow a comma.
    let (first, rest) = text.split_once(',').ok_or("there is no comma")?;
    let mut spans = Vec::new();
    let (mut from, mut rest) = (first, rest.trim_start());
    loop {
        let (to, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        spans.push(parse_span(from, to)?);
        let Some((next, more)) = behind.split_once(',') else {
            let is_all = behind.trim().is_empty();
            return if is_all { Ok(spans) } else { Err("there is no comma in its last part") };
        };
        (from, rest) = (next, more.trim_start());
    }
}

fn parse_span(from: &str, to: &str) -> Result<Span, &'static str> {
    let end = |text: &str| {
        if text.trim().is_empty() { Ok(None) } else { parse_seconds(text.trim()).map(Some) }
    };
    let (from, to) = (end(from)?, end(to)?);
    let is_reversed = from.zip(to).is_some_and(|(from, to)| from > to);
    if is_reversed { Err("it ends before it starts") } else { Ok((from, to)) }
}

fn parse_seconds(text: &str) -> Result<TimestampNs, &'static str> {
    const WRONG: &str = "not a number of seconds";
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return Err(WRONG);
    }
    let seconds: u64 = whole.parse().map_err(|_| WRONG)?;
    let nanos: u64 = format!("{fraction:0<9}").parse().map_err(|_| WRONG)?;
    let ns = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanos));
    ns.map(TimestampNs).ok_or(WRONG)
}

fn parse_share(text: &str) -> Result<(u64, u64), &'static str> {
    if let Some((from, to)) = text.split_once('-') {
        let (from, to) = (parse_percent(from)?, parse_percent(to)?);
        return if from > to { Err("it ends before it starts") } else { Ok((from, to)) };
    }
    let (share, part) = text.split_once('/').unwrap_or((text, "1"));
    let share = parse_percent(share)?;
    let part: u64 = part.trim().parse().map_err(|_| "the part is not a whole number")?;
    let from = part.checked_sub(1).ok_or("parts count from 1")?.saturating_mul(share);
    if from >= MILLION {
        return Err("that part lies past the end");
    }
    Ok((from, (from + share).min(MILLION)))
}

fn parse_percent(text: &str) -> Result<u64, &'static str> {
    const WRONG: &str = "not a percentage";
    let number = text.trim().strip_suffix('%').ok_or(WRONG)?;
    let value: f64 = number.parse().map_err(|_| WRONG)?;
    if (0.0..=100.0).contains(&value) {
        Ok((value * (MILLION as f64) / 100.0).round() as u64)
    } else {
        Err("a share lies between 0% and 100%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> Vec<(u64, u64)> {
        let first = TimestampNs(1_000_000_000);
        let ranges = TimeFilter::parse(text).unwrap().resolve(first, TimestampNs(2_000_000_000));
        ranges.iter().map(|range| (range.from.0, range.to.0)).collect()
    }

    #[test]
    fn the_forms() {
        assert_eq!(ranges("1.5,1.75"), [(1_500_000_000, 1_750_000_000)]);
        assert_eq!(ranges("1.5,"), [(1_500_000_000, u64::MAX)]);
        assert_eq!(ranges(",0.000000001"), [(0, 1)]);
        assert_eq!(ranges("10%-20%"), [(1_100_000_000, 1_199_999_999)]);
        assert_eq!(ranges("10%/2"), [(1_100_000_000, 1_199_999_999)]);
        assert_eq!(ranges("50%"), [(1_000_000_000, 1_499_999_999)]);
        assert_eq!(ranges("50%/2"), [(1_500_000_000, 2_000_000_000)]);
    }

    #[test]
    fn lists_are_unions_in_order_of_time() {
        let ends = [(1_000_000_000, 1_099_999_999), (1_900_000_000, 2_000_000_000)];
        assert_eq!(ranges("10%/1,10%/10"), ends);
        assert_eq!(ranges("90%-100%, 10%/1"), ends);
        assert_eq!(ranges("0%-30%,20%-50%"), [(1_000_000_000, 1_499_999_999)]);
        assert_eq!(
            ranges("1,2 5, 6  8,"),
            [
                (1_000_000_000, 2_000_000_000),
                (5_000_000_000, 6_000_000_000),
                (8_000_000_000, u64::MAX),
            ]
        );
    }

    #[test]
    fn a_moment_is_inside_of_one_range_or_outside_of_all() {
        let range = |from, to| TimeRange { from: TimestampNs(from), to: TimestampNs(to) };
        let ranges = TimeRanges::new([range(8, 9), range(2, 4)]);
        let inside: Vec<u64> = (0..12).filter(|at| ranges.contains(TimestampNs(*at))).collect();
        assert_eq!(inside, [2, 3, 4, 8, 9]);
        assert!(!TimeRanges::new([]).contains(TimestampNs(0)));
    }

    #[test]
    fn ranges_are_cut_into_neighbours_of_equal_length() {
        let range = |from, to| TimeRange { from: TimestampNs(from), to: TimestampNs(to) };
        let cut = TimeRanges::new([range(0, 99), range(200, 299)]).cut_into(4);
        let found: Vec<_> = cut.iter().collect();
        assert_eq!(found, [range(0, 48), range(49, 99), range(200, 248), range(249, 299)]);
        let meeting: Vec<_> = cut.meeting(range(98, 210)).collect();
        assert_eq!(meeting, [range(49, 99), range(200, 248)]);
        assert_eq!(cut.meeting(range(100, 199)).count(), 0);
        // A short range is a part of its own, and one of a moment cannot be cut.
        assert_eq!(
            TimeRanges::new([range(0, 1000), range(2000, 2001)]).cut_into(2).iter().count(),
            3
        );
        assert_eq!(TimeRanges::from(range(7, 7)).cut_into(48).iter().count(), 1);
    }

    #[test]
    fn lengths_have_units() {
        let ns = |text: &str| text.parse::<TimeQuantum>().map(|quantum| quantum.0.get());
        assert_eq!(ns("5us"), Ok(5_000));
        assert_eq!(ns("100ms"), Ok(100_000_000));
        assert_eq!(ns("2 s"), Ok(2_000_000_000));
        for text in ["", "5", "0ms", "-1s", "1.5s", "99999999999999999s"] {
            assert!(ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "1",
            "2,1",
            "a,b",
            "1.0000000001,2",
            "101%",
            "20%-10%",
            "10%/0",
            "50%/9",
            "10%/1,",
            "10%/1,5",
            "1,2 3",
            "1,2,3",
            "4,3 5,6",
        ] {
            assert!(TimeFilter::parse(text).is_err(), "{text}");
        }
    }
}
