//! A length of time as users write it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Units with their letters, largest first.
const UNITS: [(u64, char); 4] = [(86_400, 'd'), (3600, 'h'), (60, 'm'), (1, 's')];
/// Longest length, in the unit in which it is written.
const NUMBER_MAX: f64 = 1e9;

/// `30s`, `10m`, `12h`, `7d`, or a number of seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct TimeLength(pub Duration);

/// A text that is no length of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseTimeLengthError(String);

impl TimeLength {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> TimeLength {
        TimeLength(Duration::from_secs(seconds))
    }
}

impl fmt::Display for TimeLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if self.0.subsec_nanos() != 0 {
            return write!(f, "{}s", self.0.as_secs_f64());
        }
        let divides = |unit: &&(u64, char)| seconds >= unit.0 && seconds.is_multiple_of(unit.0);
        let (unit, letter) = UNITS.iter().find(divides).copied().unwrap_or((1, 's'));
        write!(f, "{}{letter}", seconds / unit)
    }
}

impl FromStr for TimeLength {
    type Err = ParseTimeLengthError;

    fn from_str(text: &str) -> Result<TimeLength, ParseTimeLengthError> {
        let letter = text.chars().next_back();
        let (digits, unit) = match UNITS.iter().find(|(_, unit)| Some(*unit) == letter) {
            Some((unit, _)) => (&text[..text.len() - 1], *unit),
            None => (text, 1),
        };
        let number: Option<f64> = digits.parse().ok().filter(|it| (0.0..=NUMBER_MAX).contains(it));
        let length = number.map(|number| TimeLength(Duration::from_secs_f64(number * unit as f64)));
        length.ok_or_else(|| ParseTimeLengthError(text.to_owned()))
    }
}

impl fmt::Display for ParseTimeLengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(f, "'{text}' is no length of time: write a number with s, m, h or d, such as 30s")
    }
}

impl std::error::Error for ParseTimeLengthError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_and_shown() {
        let of = |text: &str| text.parse::<TimeLength>();
        assert_eq!(of("30"), Ok(TimeLength::seconds(30)));
        assert_eq!(of("7d"), Ok(TimeLength::seconds(7 * 86_400)));
        assert_eq!(of("0.5m"), Ok(TimeLength::seconds(30)));
        for text in ["", "d", "-1s", "1w", "NaN", "1e30", "é"] {
            assert!(of(text).is_err_and(|it| it.to_string().contains("such as 30s")), "{text}");
        }
        let shown =
            [90, 120, 7200, 86_400, 0].map(|seconds| TimeLength::seconds(seconds).to_string());
        assert_eq!(shown, ["90s", "2m", "2h", "1d", "0s"]);
        assert_eq!(of("1.5").map(|it| it.to_string()), Ok("1.5s".to_owned()));
    }
}
