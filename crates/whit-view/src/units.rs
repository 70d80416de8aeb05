//! Numbers as people read them.

use whit_types::ByteSize;

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
        format!("{value:.*}", (3.0 - magnitude).max(0.0) as usize)
    } else {
        format!("{value:.3e}")
    }
}

/// `singular` or its plural after a count: `1 record`, `2 records`.
pub(crate) fn counted(count: u64, singular: &str) -> String {
    format!("{count} {singular}{}", if count == 1 { "" } else { "s" })
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
}
