//! Format specifications: the bits of a `config` word that a PMU's term sets.
//!
//! The text is that of `/sys/bus/event_source/devices/*/format/*`
//! (`Documentation/ABI/testing/sysfs-bus-event_source-devices-format`): `config:0-7,32-35`,
//! `config1:0-15`.

use std::fmt;

/// Number of `config` words in `perf_event_attr`.
pub const CONFIG_WORDS: usize = 4;

/// Where a term's value goes: its lowest bit into the lowest of these bits, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FormatSpec {
    /// Which word: 0 for `config`, 1 for `config1`, …
    pub word: usize,
    /// The bits of that word.
    pub mask: u64,
}

/// Why a format specification was not understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is no format specification such as config:0-7,32-35")]
pub struct FormatError {
    /// As sysfs has it: `config:0-7,32-35`.
    pub text: String,
}

impl FormatSpec {
    /// Parses the content of a `format/` file.
    ///
    /// # Errors
    ///
    /// Where the text is not `configN:bits`, a bit is beyond 63 or a range runs backwards.
    pub fn parse(text: &str) -> Result<FormatSpec, FormatError> {
        Self::parse_parts(text.trim()).ok_or_else(|| FormatError { text: text.trim().to_owned() })
    }

    fn parse_parts(text: &str) -> Option<FormatSpec> {
        let (word, bits) = text.split_once(':')?;
        let word = match word.strip_prefix("config")? {
            "" => 0,
            digits => digits.parse().ok().filter(|n| (1..CONFIG_WORDS).contains(n))?,
        };
        let mut mask = 0;
        for range in bits.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) =
                (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
            if first > last || last >= u64::BITS {
                return None;
            }
            mask |= (u64::MAX >> (u64::BITS - 1 - (last - first))) << first;
        }
        Some(FormatSpec { word, mask })
    }

    /// Number of bits of the field.
    pub const fn width(&self) -> u32 {
        self.mask.count_ones()
    }

    /// The largest value that fits.
    pub const fn max_value(&self) -> u64 {
        match self.width() {
            0 => 0,
            width => u64::MAX >> (u64::BITS - width),
        }
    }

    /// Sets the field in `config` to `value`, which replaces the old one. `false`, and nothing
    /// changed, where the value does not fit.
    #[must_use]
    pub fn set(&self, config: &mut [u64; CONFIG_WORDS], value: u64) -> bool {
        if value > self.max_value() {
            return false;
        }
        let Some(word) = config.get_mut(self.word) else { return false };
        *word &= !self.mask;
        let mut left = self.mask;
        let mut value = value;
        while left != 0 {
            let bit = left & left.wrapping_neg();
            *word |= if value & 1 == 1 { bit } else { 0 };
            value >>= 1;
            left ^= bit;
        }
        true
    }
}

impl fmt::Display for FormatSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("config")?;
        if self.word > 0 {
            write!(f, "{}", self.word)?;
        }
        let mut separator = ':';
        let mut left = self.mask;
        while left != 0 {
            let first = left.trailing_zeros();
            let last = first + (left >> first).trailing_ones() - 1;
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            left &= !(u64::MAX >> (u64::BITS - 1 - last));
            separator = ',';
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_split_over_the_ranges() {
        let event = FormatSpec::parse("config:0-7,32-35\n").unwrap();
        assert_eq!((event.word, event.width(), event.max_value()), (0, 12, 0xfff));
        let mut config = [0; CONFIG_WORDS];
        assert!(event.set(&mut config, 0xfab));
        assert_eq!(config[0], 0xf_0000_00ab);
        assert!(event.set(&mut config, 0x001));
        assert_eq!(config[0], 1, "a later value replaces an earlier one");
        assert!(!event.set(&mut config, 0x1000));
    }

    #[test]
    fn the_whole_word_and_other_words() {
        let whole = FormatSpec::parse("config1:0-63").unwrap();
        let mut config = [0; CONFIG_WORDS];
        assert!(whole.set(&mut config, u64::MAX));
        assert_eq!(config, [0, u64::MAX, 0, 0]);
        assert_eq!(FormatSpec::parse("config3:23").unwrap(), FormatSpec { word: 3, mask: 1 << 23 });
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "config",
            "config:",
            "config:64",
            "config:7-0",
            "config9:0",
            "conf:1",
            "config:a",
            "config0:1",
        ] {
            assert!(FormatSpec::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_reads_back_equal(word in 0..CONFIG_WORDS, mask in 1u64..) {
            let spec = FormatSpec { word, mask };
            prop_assert_eq!(FormatSpec::parse(&spec.to_string()), Ok(spec));
        }

        #[test]
        fn setting_touches_no_other_bit(mask in 1u64.., before: u64, value: u64) {
            let spec = FormatSpec { word: 0, mask };
            let mut config = [before, 0, 0, 0];
            prop_assert!(spec.set(&mut config, value & spec.max_value()));
            prop_assert_eq!(config[0] & !mask, before & !mask);
            let mut cleared = config;
            prop_assert!(spec.set(&mut cleared, 0));
            prop_assert_eq!(cleared[0], before & !mask);
        }
    }
}
