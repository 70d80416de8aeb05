//! The slowest calls beside those of the middle: which part makes the difference.

use std::collections::BTreeMap;
use whit_estimate::{Difference, Estimate, Tested, compare};

use super::parts::{Part, Parts};

/// Hundredths of all calls that are the slowest.
pub(crate) const SLOWEST_PERCENT: usize = 1;

/// A part of both groups.
#[derive(Clone, PartialEq, Debug)]
pub struct TailPart {
    /// Activity and place.
    pub part: Part,
    /// Nanoseconds in all of the slowest calls.
    pub slow_ns: u64,
    /// Nanoseconds in all calls of the middle.
    pub middle_ns: u64,
    /// By how many nanoseconds a slow call has more of it than one of the middle; `None` where a group has one call.
    pub difference: Option<Difference>,
}

/// The slowest calls, taken apart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tail {
    /// How many calls are the slowest.
    pub slow: u64,
    /// How many are in the middle: neither among the fastest quarter nor among the slowest.
    pub middle: u64,
    /// The parts, those with the largest difference of means first. Sums add up to the durations.
    pub parts: Vec<TailPart>,
}

/// Sums of a part over the calls of a group.
#[derive(Clone, Copy, Default)]
struct Moments {
    sum: u64,
    squares: f64,
}

/// Parts of the calls of a group.
#[derive(Default)]
pub(crate) struct Group {
    calls: u64,
    parts: BTreeMap<Part, Moments>,
}

impl Group {
    pub(crate) fn add(&mut self, parts: &Parts) {
        self.calls += 1;
        for (part, ns) in &parts.0 {
            let moments = self.parts.entry(part.clone()).or_default();
            moments.sum += ns;
            moments.squares += (*ns as f64) * (*ns as f64);
        }
    }

    fn moments(&self, part: &Part) -> Moments {
        self.parts.get(part).copied().unwrap_or_default()
    }

    fn mean(&self, part: &Part) -> f64 {
        self.moments(part).sum as f64 / (self.calls.max(1)) as f64
    }

    /// The mean of a part, calls without it included; `None` for one call.
    fn estimate(&self, part: &Part) -> Option<Estimate> {
        let (calls, mean) = (self.calls as f64, self.mean(part));
        let freedom = (self.calls > 1).then_some(calls - 1.0)?;
        let scatter = (self.moments(part).squares - calls * mean * mean).max(0.0);
        Some(Estimate { value: mean, variance: scatter / freedom / calls, freedom })
    }
}

/// Compares the groups part by part.
pub(crate) fn tail(slow: &Group, middle: &Group) -> Tail {
    let mut names: Vec<&Part> = slow.parts.keys().chain(middle.parts.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut parts: Vec<(f64, TailPart)> = names
        .into_iter()
        .map(|part| {
            let both = middle.estimate(part).zip(slow.estimate(part));
            let row = TailPart {
                part: part.clone(),
                slow_ns: slow.moments(part).sum,
                middle_ns: middle.moments(part).sum,
                difference: both.map(|(m, s)| compare(&Tested::exact(m), &Tested::exact(s))),
            };
            (slow.mean(part) - middle.mean(part), row)
        })
        .collect();
    parts.sort_by(|one, other| other.0.total_cmp(&one.0));
    let parts = parts.into_iter().map(|(_, part)| part).collect();
    Tail { slow: slow.calls, middle: middle.calls, parts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Activity;
    use crate::place::Place;

    fn group(calls: &[u64]) -> Group {
        let part = Part { activity: Activity::Running, place: Place::default() };
        let mut group = Group::default();
        calls.iter().for_each(|ns| group.add(&Parts([(part.clone(), *ns)].into())));
        group
    }

    #[test]
    fn the_difference_of_means_has_an_interval_that_holds_it() {
        let tail = tail(&group(&[90, 110, 100]), &group(&[10, 12, 8, 10]));
        assert_eq!((tail.slow, tail.middle), (3, 4));
        let [part] = &tail.parts[..] else { panic!("{tail:?}") };
        assert_eq!((part.slow_ns, part.middle_ns), (300, 40));
        let difference = part.difference.expect("a difference");
        assert!((difference.change - 90.0).abs() < 1e-9, "{difference:?}");
        assert!(difference.interval.0 < 90.0 && difference.interval.1 > 90.0, "{difference:?}");
        assert!(difference.interval.0 > 60.0, "{difference:?}");
    }

    #[test]
    fn one_call_says_nothing_of_the_scatter() {
        let tail = tail(&group(&[90]), &group(&[10, 12]));
        assert_eq!(tail.parts[0].difference, None);
    }
}
