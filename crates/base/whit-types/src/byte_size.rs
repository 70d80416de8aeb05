//! Sizes in bytes as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes; reads and prints `50M`, `2G`: powers of 1024, as perf's options use them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ByteSize(pub u64);

/// Units with their letters, largest first.
const UNITS: [(u64, char); 4] = [(1 << 40, 'T'), (1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];

/// The text is no size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseByteSizeError {
    text: String,
}

impl fmt::Display for ParseByteSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no size: write a number with K, M, G or T, such as 500M", self.text)
    }
}

impl std::error::Error for ParseByteSizeError {}

impl FromStr for ByteSize {
    type Err = ParseByteSizeError;

    fn from_str(text: &str) -> Result<ByteSize, ParseByteSizeError> {
        let error = || ParseByteSizeError { text: text.to_owned() };
        let number = text.strip_suffix(['B', 'b']).unwrap_or(text);
        let letter = number.chars().next_back().map(|c| c.to_ascii_uppercase());
        let (digits, factor) = match UNITS.iter().find(|(_, unit)| Some(*unit) == letter) {
            Some((factor, _)) => (&number[..number.len() - 1], *factor),
            None => (number, 1),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error());
        }
        let count: u64 = digits.parse().map_err(|_| error())?;
        count.checked_mul(factor).map(ByteSize).ok_or_else(error)
    }
}

impl fmt::Display for ByteSize {
    /// Exact where a unit divides the size, else with one decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (factor, letter) in UNITS {
            if self.0 >= factor {
                if self.0.is_multiple_of(factor) {
                    return write!(f, "{}{letter}", self.0 / factor);
                }
                return write!(f, "{:.1}{letter}", self.0 as f64 / factor as f64);
            }
        }
        write!(f, "{}B", self.0)
    }
}

impl ByteSize {
    /// With one decimal, as texts have it: `17 B`, `1.5 KiB`, `2.0 GiB`.
    pub fn in_words(self) -> String {
        const WORDS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let (mut scaled, mut unit) = (self.0 as f64, 0);
        while scaled >= 1024.0 && unit + 1 < WORDS.len() {
            (scaled, unit) = (scaled / 1024.0, unit + 1);
        }
        match unit {
            0 => format!("{} B", self.0),
            _ => format!("{scaled:.1} {}", WORDS[unit]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_usual_spellings() {
        for (text, bytes) in
            [("0", 0), ("17", 17), ("50M", 50 << 20), ("2G", 2 << 30), ("1k", 1024), ("3KB", 3072)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_texts_that_are_no_size() {
        for text in ["", "M", "B", "-1M", "+1M", "1.5G", "5 M", "5X", "99999999999999999999", "é"]
        {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert!("99999999T".parse::<ByteSize>().is_err(), "overflow");
    }

    #[test]
    fn prints_briefly() {
        assert_eq!(ByteSize(1536).to_string(), "1.5K");
        assert_eq!(ByteSize(500 << 20).to_string(), "500M");
        assert_eq!(ByteSize(12).to_string(), "12B");
    }

    #[test]
    fn texts_have_units_and_one_decimal() {
        let shown = |bytes| ByteSize(bytes).in_words();
        assert_eq!((shown(1023), shown(1536)), ("1023 B".into(), "1.5 KiB".into()));
        assert_eq!((shown(3 << 19), shown(2 << 30)), ("1.5 MiB".into(), "2.0 GiB".into()));
        assert_eq!(shown(u64::MAX), "16777216.0 TiB");
    }

    proptest! {
        #[test]
        fn whole_units_survive_printing_and_reading(count in 1u64..1024, unit in 0usize..4) {
            let size = ByteSize(count * UNITS[unit].0);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
