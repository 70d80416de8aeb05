//! Numbers as the user's language writes them.

use whit_types::pad;

/// How numbers are written in text. CSV and JSON always have a point and no groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberStyle {
    /// Between whole and broken part.
    pub decimal_point: String,
    /// Between groups of three digits; nothing for none.
    pub thousands_separator: String,
}

impl Default for NumberStyle {
    fn default() -> Self {
        NumberStyle { decimal_point: ".".to_owned(), thousands_separator: String::new() }
    }
}

impl NumberStyle {
    /// A number that is not negative, with so many digits behind the point, right-aligned.
    pub fn fixed(&self, value: f64, decimals: usize, width: usize) -> String {
        let plain = plain(value, decimals);
        let (whole, broken) = plain.split_once('.').unwrap_or((&plain, ""));
        let mut text = String::with_capacity(width);
        for (index, digit) in whole.char_indices() {
            let left = whole.len() - index;
            if index > 0 && left.is_multiple_of(3) {
                text.push_str(&self.thousands_separator);
            }
            text.push(digit);
        }
        if !broken.is_empty() {
            text.push_str(&self.decimal_point);
            text.push_str(broken);
        }
        pad::right(text, width).to_string()
    }
}

/// Largest number up to which every whole one is exact.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// With a point and without groups. Most counts and shares are whole, and whole numbers are quick to
/// write.
pub(super) fn plain(value: f64, decimals: usize) -> String {
    if value.fract() != 0.0 || !(0.0..=WHOLE_MAX).contains(&value) || value.is_sign_negative() {
        return pad::decimals(value, decimals);
    }
    let mut text = (value as u64).to_string();
    if decimals > 0 {
        text.push('.');
        text.extend(std::iter::repeat_n('0', decimals));
    }
    text
}

/// Digits behind the point of a count with this scale, as in perf.
pub(super) fn decimals(scale: f64) -> usize {
    if scale.floor() == scale { 0 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_as_the_style_says() {
        let point = NumberStyle::default();
        assert_eq!(point.fixed(1234567.0, 0, 10), "   1234567");
        let german = NumberStyle { decimal_point: ",".into(), thousands_separator: ".".into() };
        assert_eq!(german.fixed(1234567.891, 2, 0), "1.234.567,89");
        let english = NumberStyle { thousands_separator: ",".into(), ..point };
        for (value, text) in [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (1e6, "1,000,000")] {
            assert_eq!(english.fixed(value, 0, 0), text);
        }
        for value in [0.0, -0.0, 7.0, 100.0, 1e15, 1e18, 0.5, 2.5, -3.0, 1e300, f64::NAN] {
            assert_eq!(plain(value, 0), format!("{value:.0}"));
            assert_eq!(plain(value, 2), format!("{value:.2}"));
        }
        assert_eq!((decimals(1.0), decimals(1e-6), decimals(64.0)), (0, 2, 0));
    }
}
