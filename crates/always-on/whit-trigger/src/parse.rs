//! Times in rules: `250ms`, `2s`.

use std::time::Duration;

/// Units with their nanoseconds, longest first.
const UNITS: [(&str, u64); 5] =
    [("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// Reads a whole number and a unit.
pub(crate) fn time(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some(Duration::from_nanos(number.parse::<u64>().ok()?.checked_mul(*factor)?))
}

/// The shortest text that [`time`] reads back.
pub(crate) fn time_text(time: Duration) -> String {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let fits = |(_, factor): &&(&str, u64)| ns.is_multiple_of(*factor);
    match UNITS.iter().skip(1).find(fits) {
        Some((name, factor)) => format!("{}{name}", ns / factor),
        None => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(time("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(time("2m"), Some(Duration::from_secs(120)));
        for text in ["", "5", "s", "1.5s", "-1s", "1 s", "1h", "99999999999999999999s"] {
            assert_eq!(time(text), None, "{text}");
        }
        assert_eq!(time_text(Duration::from_millis(1500)), "1500ms");
    }

    proptest! {
        #[test]
        fn times_are_read_as_they_are_written(ns: u64) {
            let it = Duration::from_nanos(ns);
            prop_assert_eq!(time(&time_text(it)), Some(it));
        }
    }
}
