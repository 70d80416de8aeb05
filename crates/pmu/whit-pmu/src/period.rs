//! How far a counter is from its next sample.

/// Longest period that is accepted, so that no sum of periods leaves 64 bits.
pub const PERIOD_MAX: u64 = 1 << 62;
/// A counter that is written closer to its overflow may overflow before the write is complete.
const LEFT_MIN: u64 = 2;

/// A sampling period and the rest of the current one.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Period {
    length: u64,
    left: i64,
}

/// Value to write to a counter.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Reload {
    /// Events until the next overflow; the counter is written with its negative.
    pub left: u64,
    /// True where a period ended: a sample is due.
    pub due: bool,
}

impl Period {
    /// A whole period, from 1 to [`PERIOD_MAX`]; others are taken as the nearest of these.
    #[must_use]
    pub const fn new(length: u64) -> Period {
        let length = if length == 0 { 1 } else { length };
        let length = if length > PERIOD_MAX { PERIOD_MAX } else { length };
        Period { length, left: length as i64 }
    }

    /// Its length in events.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Another length from the next period on.
    pub const fn set_length(&mut self, length: u64) {
        self.length = Period::new(length).length;
    }

    /// `events` occurred.
    pub const fn consume(&mut self, events: u64) {
        let events = if events > i64::MAX as u64 { i64::MAX } else { events as i64 };
        self.left = self.left.saturating_sub(events);
    }

    /// Value to write to a counter that takes periods up to `max`.
    ///
    /// A period that was overrun by less than its length is shortened by the excess; one that was
    /// overrun by more begins anew.
    pub fn reload(&mut self, max: u64) -> Reload {
        let length = self.length as i64;
        let due = self.left <= 0;
        if self.left <= -length {
            self.left = length;
        } else if due {
            self.left += length;
        }
        // A short rest is lengthened; what that adds is taken from the period after it.
        Reload { left: (self.left as u64).max(LEFT_MIN).min(max), due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn overruns_are_made_up_for_up_to_one_period() {
        let reload = |overrun| {
            let mut period = Period::new(100);
            period.consume(100_u64.saturating_add(overrun));
            period.reload(1 << 31)
        };
        assert_eq!(reload(0), Reload { left: 100, due: true });
        assert_eq!(reload(30), Reload { left: 70, due: true });
        assert_eq!(reload(99), Reload { left: 2, due: true }, "at least 2");
        assert_eq!(reload(100), Reload { left: 100, due: true });
        assert_eq!(reload(u64::MAX), Reload { left: 100, due: true });
    }

    #[test]
    fn long_periods_take_several_overflows() {
        let mut period = Period::new(250);
        assert_eq!(period.reload(100), Reload { left: 100, due: false });
        period.consume(100);
        assert_eq!(period.reload(100), Reload { left: 100, due: false });
        period.consume(100);
        assert_eq!(period.reload(100), Reload { left: 50, due: false });
        period.consume(50);
        assert_eq!(period.reload(100), Reload { left: 100, due: true });
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]

        #[test]
        fn written_values_fit_and_move_on(
            length in 0..=u64::MAX,
            events in prop::collection::vec(0..=u64::MAX, 0..8),
            max in 2..1_u64 << 47,
        ) {
            let mut period = Period::new(length);
            for events in events {
                period.consume(events);
                let reload = period.reload(max);
                prop_assert!((2..=max).contains(&reload.left));
                prop_assert!(reload.left <= period.length().max(2));
                prop_assert!(!period.reload(max).due, "due once");
            }
        }

        /// Without skid the samples are exactly a period apart, whatever the counter's width.
        #[test]
        fn samples_are_a_period_apart(length in 2..5000_u64, max in 2..3000_u64) {
            let mut period = Period::new(length);
            let (mut events, mut samples) = (0, 0);
            let mut left = period.reload(max).left;
            while samples < 5 {
                events += left;
                period.consume(left);
                let reload = period.reload(max);
                if reload.due {
                    samples += 1;
                    prop_assert!(events.abs_diff(samples * length) < 2);
                }
                left = reload.left;
            }
        }
    }
}
