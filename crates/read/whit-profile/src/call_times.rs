//! The times of chosen calls, in the threads that made them.

use crate::time_filter::{TimeRange, TimeRanges};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_types::{Tid, TimestampNs};

/// Parts of the time of single threads. No other thread has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTimes(Arc<FxHashMap<Tid, TimeRanges>>);

impl CallTimes {
    /// The union of calls in any order.
    pub fn new(calls: impl IntoIterator<Item = (Tid, TimeRange)>) -> CallTimes {
        let mut threads: FxHashMap<Tid, Vec<TimeRange>> = FxHashMap::default();
        for (tid, range) in calls {
            threads.entry(tid).or_default().push(range);
        }
        let ranges = threads.into_iter().map(|(tid, ranges)| (tid, TimeRanges::new(ranges)));
        CallTimes(Arc::new(ranges.collect()))
    }

    /// Those of a thread.
    pub(crate) fn of(&self, tid: Tid) -> Option<&TimeRanges> {
        self.0.get(&tid)
    }

    /// The parts of spans of time in which a thread was in a call.
    pub(crate) fn within(
        &self,
        tid: Tid,
        spans: &[(TimestampNs, TimestampNs)],
    ) -> Vec<(TimestampNs, TimestampNs)> {
        let Some(ranges) = self.of(tid) else { return Vec::new() };
        let parts = spans.iter().flat_map(|&(from, to)| {
            let meeting = ranges.meeting(TimeRange { from, to });
            meeting.map(move |range| (range.from.max(from), range.to.min(to)))
        });
        parts.collect()
    }

    /// Whether a thread was in a call.
    pub(crate) fn contain(&self, tid: Tid, time: TimestampNs) -> bool {
        self.of(tid).is_some_and(|ranges| ranges.contains(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_union_of_its_own_calls() {
        let ns = TimestampNs;
        let call = |tid, from, to| (Tid(tid), TimeRange { from: ns(from), to: ns(to) });
        let calls =
            CallTimes::new([call(1, 30, 40), call(1, 10, 20), call(2, 0, 99), call(1, 15, 25)]);
        let inside = |tid| (0..100).filter(|at| calls.contain(Tid(tid), ns(*at))).count();
        assert_eq!([inside(1), inside(2), inside(3)], [16 + 11, 100, 0]);
        let spans = [(ns(0), ns(12)), (ns(22), ns(35)), (ns(50), ns(60))];
        let parts = [(ns(10), ns(12)), (ns(22), ns(25)), (ns(30), ns(35))];
        assert_eq!(calls.within(Tid(1), &spans), parts);
        assert_eq!(calls.within(Tid(3), &spans), []);
    }
}
