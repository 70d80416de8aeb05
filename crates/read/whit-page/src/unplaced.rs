//! Waits of a thread that have a row, and no time: the time line has joined them with others, for they are short.
//!
//! A joined span has the sum of its waits. Each piece of it goes to one row, so that pages stay small: to the row that has
//! got the smallest share of its own sum so far. So over a while, rows have times as their sums are, and over all of the
//! time each row has exactly its sum.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whit_profile::model::{SingleSample, ThreadId};
use whit_profile::switches::TimelineSpan;
use whit_types::TimestampNs;

/// Parts of a row's sum, so that shares are whole numbers.
const WHOLE: u128 = 1 << 32;

/// The next bound of pieces of a thread's time. Threads have other bounds than their neighbours: at common ones, each would
/// begin a piece in the same moment, and a narrow column of the page would have all of them or none.
pub(crate) fn next_bound(at_ns: u64, piece_ns: u64, thread: ThreadId) -> u64 {
    /// The golden ratio, in parts of 2³²: multiples of it are spread evenly.
    const GOLDEN: u64 = 0x9e37_79b9;
    let place = u64::from(thread.0).wrapping_mul(GOLDEN) & u64::from(u32::MAX);
    let offset = u64::try_from((u128::from(place) * u128::from(piece_ns)) >> 32).unwrap_or(0);
    let bounds = at_ns.saturating_add(offset) / piece_ns + 1;
    bounds.saturating_mul(piece_ns).saturating_sub(offset)
}

/// A row, and how much of its sum has a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rest {
    /// The middle of its next part, in parts of its sum.
    next: u64,
    row: u32,
    sum_ns: u64,
    given_ns: u64,
}

impl Rest {
    fn after(self, given_ns: u64, piece_ns: u64) -> Rest {
        let middle = u128::from(given_ns) + u128::from(piece_ns / 2);
        let next = middle * WHOLE / u128::from(self.sum_ns.max(1));
        Rest { given_ns, next: u64::try_from(next).unwrap_or(u64::MAX), ..self }
    }
}

/// The rows of a thread, and the time that each lacks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unplaced {
    rows: BinaryHeap<Reverse<Rest>>,
}

impl Unplaced {
    /// A row that lacks the times of so much.
    pub(crate) fn add(&mut self, row: u32, sum_ns: u64) {
        if sum_ns > 0 {
            self.rows.push(Reverse(Rest { next: 0, row, sum_ns, given_ns: 0 }));
        }
    }

    /// Spreads so much of the rows evenly over a span, in pieces of `piece_ns`.
    pub(crate) fn share_out(
        &mut self,
        span: &TimelineSpan,
        ns: u64,
        piece_ns: u64,
    ) -> Vec<SingleSample> {
        let (mut pieces, mut at) = (Vec::new(), span.start.0);
        let end = at.saturating_add(span.duration_ns);
        let (mut given, mut passed) = (0, 0);
        while at < end {
            let next = next_bound(at, piece_ns, span.thread).min(end);
            passed += next - at;
            let until = u128::from(ns) * u128::from(passed) / u128::from(span.duration_ns.max(1));
            let until = u64::try_from(until).unwrap_or(u64::MAX);
            for (row, period) in self.take(until.saturating_sub(given)) {
                pieces.push(SingleSample { time: TimestampNs(at), row, cpu: span.cpu, period });
            }
            (given, at) = (until, next);
        }
        pieces
    }

    /// Takes so much from the rows that have got least.
    fn take(&mut self, mut ns: u64) -> Vec<(u32, u64)> {
        let mut taken = Vec::new();
        while ns > 0 {
            let Some(Reverse(rest)) = self.rows.pop() else { break };
            let part = ns.min(rest.sum_ns - rest.given_ns);
            taken.push((rest.row, part));
            ns -= part;
            if rest.given_ns + part < rest.sum_ns {
                self.rows.push(Reverse(rest.after(rest.given_ns + part, part)));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use whit_profile::model::NodeId;
    use whit_profile::switches::{Activity, Trust};

    fn span(start: u64, duration_ns: u64) -> TimelineSpan {
        TimelineSpan {
            thread: ThreadId(0),
            start: TimestampNs(start),
            duration_ns,
            activity: Activity::Mixed,
            cpu: None,
            node: NodeId::NONE,
            woken: None,
            parts_ns: [0; 3],
            count: 2,
            trust: Trust::Whole,
            brings: Default::default(),
        }
    }

    fn sums(pieces: &[SingleSample]) -> BTreeMap<u32, u64> {
        let mut sums = BTreeMap::new();
        for piece in pieces {
            *sums.entry(piece.row).or_default() += piece.period;
        }
        sums
    }

    #[test]
    fn rows_get_their_sums_and_their_shares_on_the_way() {
        let mut unplaced = Unplaced::default();
        [(1, 600), (2, 300), (3, 100), (4, 0)]
            .into_iter()
            .for_each(|(row, ns)| unplaced.add(row, ns));
        // Half of each span is waiting.
        let first = unplaced.share_out(&span(0, 1_000), 500, 10);
        assert_eq!(first.len(), 100);
        for (row, expected) in [(1, 300u64), (2, 150), (3, 50)] {
            let found = sums(&first)[&row];
            assert!(found.abs_diff(expected) <= 10, "{row}: {found}");
        }
        assert!(first.iter().all(|piece| piece.period == 5 && piece.time.0 % 10 == 0));
        let second = unplaced.share_out(&span(5_005, 1_000), 500, 10);
        assert_eq!(second[0].time.0, 5_005);
        assert_eq!(sums(&[first, second].concat()), BTreeMap::from([(1, 600), (2, 300), (3, 100)]));
        // Nothing is left.
        assert!(unplaced.share_out(&span(9_000, 100), 50, 10).is_empty());
    }

    #[test]
    fn bounds_of_threads_are_spread() {
        let bounds = |thread: u32| next_bound(5_000, 1_000, ThreadId(thread));
        let mut all: Vec<_> = (0..10).map(bounds).collect();
        assert_eq!(all[0], 6_000);
        all.sort_unstable();
        assert!(all.iter().all(|bound| (5_001..=6_000).contains(bound)), "{all:?}");
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 50), "{all:?}");
        // The next one is a whole piece behind.
        assert_eq!(next_bound(bounds(3), 1_000, ThreadId(3)), bounds(3) + 1_000);
        assert_eq!(next_bound(7, 1, ThreadId(9)), 8);
    }

    #[test]
    fn waits_that_no_row_has_get_no_time() {
        let mut unplaced = Unplaced::default();
        assert!(unplaced.share_out(&span(0, 100), 50, 10).is_empty());
        unplaced.add(1, 20);
        assert_eq!(sums(&unplaced.share_out(&span(0, 100), 50, 10)), BTreeMap::from([(1, 20)]));
    }
}
