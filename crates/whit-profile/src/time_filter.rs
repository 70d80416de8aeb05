//! `--time`: which part of the recording to look at.

use std::num::NonZeroU64;
use whit_types::TimestampNs;

/// A part of the recording, as the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFilter {
    /// From and to, each inclusive, in the recording's clock; open where absent.
    Absolute(Option<TimestampNs>, Option<TimestampNs>),
    /// Shares of the recorded time, in parts per million.
    Share(u64, u64),
}

/// Why a time filter could not be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot understand the time {text:?}: {problem}; give `START,STOP` in seconds of the \
     recording's clock (either may be empty), `START%-STOP%`, or `SHARE%/PART`"
)]
pub struct TimeFilterError {
    text: String,
    problem: &'static str,
}

const MILLION: u64 = 1_000_000;

impl TimeFilter {
    /// Understands `12.5,13`, `,13`, `12.5,`, `10%-20%`, `10%/2` (the second tenth) and `10%`.
    pub fn parse(text: &str) -> Result<TimeFilter, TimeFilterError> {
        let error = |problem| TimeFilterError { text: text.to_owned(), problem };
        let filter = if text.contains('%') { parse_share(text) } else { parse_absolute(text) };
        let filter = filter.map_err(error)?;
        let reversed = match &filter {
            TimeFilter::Absolute(Some(start), Some(stop)) => start > stop,
            TimeFilter::Share(start, stop) => start > stop,
            TimeFilter::Absolute(..) => false,
        };
        if reversed { Err(error("it ends before it starts")) } else { Ok(filter) }
    }

    /// True where the first and last time of the recording must be known to apply it.
    pub fn is_relative(&self) -> bool {
        matches!(self, TimeFilter::Share(..))
    }

    /// As times, given the first and the last one of the recording.
    pub fn resolve(&self, first: TimestampNs, last: TimestampNs) -> TimeRange {
        match *self {
            TimeFilter::Absolute(from, to) => TimeRange {
                from: from.unwrap_or(TimestampNs(0)),
                to: to.unwrap_or(TimestampNs(u64::MAX)),
            },
            TimeFilter::Share(from, to) => {
                let at = |share: u64| {
                    let part = u128::from(last.since(first)) * u128::from(share);
                    TimestampNs(first.0.saturating_add((part / u128::from(MILLION)) as u64))
                };
                TimeRange { from: at(from), to: at(to) }
            }
        }
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

fn parse_absolute(text: &str) -> Result<TimeFilter, &'static str> {
    let (from, to) = text.split_once(',').ok_or("there is no comma")?;
    let end = |text: &str| {
        if text.trim().is_empty() { Ok(None) } else { parse_seconds(text.trim()).map(Some) }
    };
    Ok(TimeFilter::Absolute(end(from)?, end(to)?))
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

fn parse_share(text: &str) -> Result<TimeFilter, &'static str> {
    if let Some((from, to)) = text.split_once('-') {
        return Ok(TimeFilter::Share(parse_percent(from)?, parse_percent(to)?));
    }
    let (share, part) = text.split_once('/').unwrap_or((text, "1"));
    let share = parse_percent(share)?;
    let part: u64 = part.trim().parse().map_err(|_| "the part is not a whole number")?;
    let from = part.checked_sub(1).ok_or("parts count from 1")?.saturating_mul(share);
    if from >= MILLION {
        return Err("that part lies past the end");
    }
    Ok(TimeFilter::Share(from, (from + share).min(MILLION)))
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

    fn range(text: &str) -> (u64, u64) {
        let first = TimestampNs(1_000_000_000);
        let range = TimeFilter::parse(text).unwrap().resolve(first, TimestampNs(2_000_000_000));
        (range.from.0, range.to.0)
    }

    #[test]
    fn the_forms() {
        assert_eq!(range("1.5,1.75"), (1_500_000_000, 1_750_000_000));
        assert_eq!(range("1.5,"), (1_500_000_000, u64::MAX));
        assert_eq!(range(",0.000000001"), (0, 1));
        assert_eq!(range("10%-20%"), (1_100_000_000, 1_200_000_000));
        assert_eq!(range("10%/2"), (1_100_000_000, 1_200_000_000));
        assert_eq!(range("50%"), (1_000_000_000, 1_500_000_000));
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
        for text in ["", "1", "2,1", "a,b", "1.0000000001,2", "101%", "20%-10%", "10%/0", "50%/9"] {
            assert!(TimeFilter::parse(text).is_err(), "{text}");
        }
    }
}
