//! Numbers as people read them.

use whit_types::{ByteSize, civil, pad};

/// A count cut to thousands as perf's header has it: `234 `, `2K`, `5M`.
pub(crate) fn thousands(mut value: u64) -> (u64, char) {
    let mut unit = ' ';
    for next in ['K', 'M', 'G'] {
        if value > 1000 {
            value /= 1000;
            unit = next;
        }
    }
    (value, unit)
}

/// A size in binary units: `17 B`, `1.5 KiB`, `2.0 GiB`.
pub(crate) fn bytes(value: u64) -> String {
    ByteSize(value).in_words()
}

/// A duration: `0 ns`, `12.3 us`, `4.0 ms`, `1.50 s`.
pub(crate) fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

/// A number with four significant digits: `0.01234`, `12.34`, `123400`, `1.234e9`.
pub(crate) fn significant(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    if value == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if (-4.0..7.0).contains(&magnitude) {
        pad::decimals(value, (3.0 - magnitude).max(0.0) as usize)
    } else {
        format!("{value:.3e}")
    }
}

/// `singular` or its plural after a count: `1 record`, `2 records`.
pub(crate) fn counted(count: u64, singular: &str) -> String {
    format!("{count} {singular}{}", if count == 1 { "" } else { "s" })
}

/// A date as `ctime` prints it, in UTC: the time zone of the recording is not in it.
pub(crate) fn date(epoch_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let days = epoch_s / 86_400;
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (epoch_s / 3600 % 24, epoch_s / 60 % 60, epoch_s % 60);
    format!(
        "{} {} {day:>2} {hour:02}:{minute:02}:{second:02} {year} UTC",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_cut_above_a_thousand() {
        assert_eq!(thousands(1000), (1000, ' '));
        assert_eq!(thousands(1001), (1, 'K'));
        assert_eq!(thousands(2_345_678), (2, 'M'));
        assert_eq!(thousands(u64::MAX).1, 'G');
    }

    #[test]
    fn four_digits_are_significant() {
        let texts = [0.0, 0.012_344, -12.3456, 123_456.0, 1.2345e9, 1e-9].map(significant);
        assert_eq!(texts, ["0", "0.01234", "-12.35", "123456", "1.234e9", "1.000e-9"]);
    }

    #[test]
    fn durations_change_units() {
        assert_eq!((duration(999), duration(1_500_000)), ("999 ns".into(), "1.5 ms".into()));
        assert_eq!(duration(90_000_000_000), "90.00 s");
        assert_eq!(
            (counted(1, "sample"), counted(0, "sample")),
            ("1 sample".into(), "0 samples".into())
        );
    }

    #[test]
    fn dates_are_those_of_date_u() {
        assert_eq!(date(0), "Thu Jan  1 00:00:00 1970 UTC");
        assert_eq!(date(951_782_400), "Tue Feb 29 00:00:00 2000 UTC");
        assert_eq!(date(1_709_251_199), "Thu Feb 29 23:59:59 2024 UTC");
        assert_eq!(date(4_107_542_400), "Mon Mar  1 00:00:00 2100 UTC");
        assert_eq!(date(1_795_291_532), "Sat Nov 21 20:05:32 2026 UTC");
    }
}
