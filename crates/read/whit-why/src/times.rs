//! Parts of the recorded time.

use whit_profile::time_filter::TimeRange;
use whit_types::TimestampNs;

/// Parts in order of time, which do not overlap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Times(Vec<TimeRange>);

impl Times {
    /// From any parts.
    pub fn of(parts: impl IntoIterator<Item = TimeRange>) -> Times {
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_unstable_by_key(|part| (part.from, part.to));
        let mut joined: Vec<TimeRange> = Vec::new();
        for part in parts {
            match joined.last_mut() {
                Some(last) if part.from <= last.to => last.to = last.to.max(part.to),
                _ => joined.push(part),
            }
        }
        Times(joined)
    }

    /// Whether one of them has a moment of this time.
    pub(crate) fn touch(&self, from: TimestampNs, to: TimestampNs) -> bool {
        let next = self.0.partition_point(|part| part.to < from);
        self.0.get(next).is_some_and(|part| part.from <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_is_touched_that_has_a_common_moment(
            parts in proptest::collection::vec((0u64..100, 0u64..20), 0..10),
            from in 0u64..100,
            length in 0u64..20,
        ) {
            let range = |(from, length): &(u64, u64)| TimeRange {
                from: TimestampNs(*from),
                to: TimestampNs(from + length),
            };
            let times = Times::of(parts.iter().map(range));
            let (from, to) = (TimestampNs(from), TimestampNs(from + length));
            let wanted = parts.iter().map(range).any(|part| part.from <= to && from <= part.to);
            prop_assert_eq!(times.touch(from, to), wanted);
        }
    }
}
