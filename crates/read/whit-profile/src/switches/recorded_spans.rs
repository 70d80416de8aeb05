//! When switches were recorded. Sideband may be recorded before, behind and between: nobody's time on a
//! CPU is known there.

use whit_perfdata::feature::RecordedSpan;
use whit_types::TimestampNs;

/// Where a moment lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moment {
    /// Inside a span.
    Recorded,
    /// Between spans.
    Unrecorded,
}

/// A span that time has left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeftSpan {
    /// Absent where nothing proved that it had begun.
    pub(super) begin: Option<TimestampNs>,
    pub(super) end: TimestampNs,
}

/// The spans of a recording, walked through in order of time.
#[derive(Clone, Debug)]
pub(crate) struct RecordedSpans {
    spans: Vec<RecordedSpan>,
    current: usize,
    begin: Option<TimestampNs>,
}

impl RecordedSpans {
    /// As the recorder states them. A recorder that states none has recorded from the first switch or sample
    /// on.
    pub(crate) fn new(stated: Option<Vec<RecordedSpan>>) -> RecordedSpans {
        let all = || vec![RecordedSpan { from: TimestampNs(0), to: TimestampNs(u64::MAX) }];
        let mut spans = stated.unwrap_or_else(all);
        spans.retain(|span| span.from <= span.to);
        spans.sort_unstable_by_key(|span| span.from);
        let mut spans = RecordedSpans { spans, current: 0, begin: None };
        spans.enter();
        spans
    }

    /// Since when switches are recorded without a gap; absent as long as that is not known.
    pub(super) fn begin(&self) -> Option<TimestampNs> {
        self.begin
    }

    /// A span that begins at zero goes on from an earlier output, or its recorder did not say.
    fn enter(&mut self) {
        let from = self.spans.get(self.current).map(|span| span.from);
        self.begin = from.filter(|from| *from > TimestampNs(0));
    }

    /// The current span, if it ends before `time`; the next one is the current one then.
    pub(super) fn leave_before(&mut self, time: TimestampNs) -> Option<LeftSpan> {
        let to = self.spans.get(self.current)?.to;
        if time <= to {
            return None;
        }
        let left = LeftSpan { begin: self.begin, end: to };
        self.current += 1;
        self.enter();
        Some(left)
    }

    /// The place of a moment that is not behind the current span. `is_proof` if only a recorder that
    /// recorded switches can have written the event.
    pub(super) fn moment(&mut self, time: TimestampNs, is_proof: bool) -> Moment {
        if self.begin.is_none() && is_proof && self.current < self.spans.len() {
            self.begin = Some(time);
        }
        match self.begin {
            Some(begin) if time >= begin => Moment::Recorded,
            _ => Moment::Unrecorded,
        }
    }

    /// The end of the current span; absent where its recorder did not say.
    pub(super) fn end(&self) -> Option<TimestampNs> {
        let to = self.spans.get(self.current)?.to;
        (to < TimestampNs(u64::MAX)).then_some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, to: u64) -> RecordedSpan {
        RecordedSpan { from: TimestampNs(from), to: TimestampNs(to) }
    }

    #[test]
    fn moments_lie_inside_or_between_the_spans_that_are_stated() {
        let mut spans = RecordedSpans::new(Some(vec![span(30, 40), span(10, 20), span(9, 3)]));
        assert_eq!(spans.begin(), Some(TimestampNs(10)));
        let of = |spans: &mut RecordedSpans, time| {
            let left = spans.leave_before(TimestampNs(time)).map(|left| left.end.0);
            (left, spans.moment(TimestampNs(time), true))
        };
        assert_eq!(of(&mut spans, 9), (None, Moment::Unrecorded));
        assert_eq!(of(&mut spans, 10), (None, Moment::Recorded));
        assert_eq!(of(&mut spans, 20), (None, Moment::Recorded));
        assert_eq!(of(&mut spans, 21), (Some(20), Moment::Unrecorded));
        assert_eq!(of(&mut spans, 35), (None, Moment::Recorded));
        assert_eq!(spans.end(), Some(TimestampNs(40)));
        assert_eq!(of(&mut spans, 41), (Some(40), Moment::Unrecorded));
        assert_eq!((of(&mut spans, 99), spans.end()), ((None, Moment::Unrecorded), None));
    }

    #[test]
    fn without_a_statement_the_first_proof_begins_the_span() {
        for stated in [None, Some(vec![span(0, u64::MAX)])] {
            let mut spans = RecordedSpans::new(stated);
            assert_eq!(spans.moment(TimestampNs(5), false), Moment::Unrecorded);
            assert_eq!(spans.moment(TimestampNs(7), true), Moment::Recorded);
            assert_eq!(spans.moment(TimestampNs(8), false), Moment::Recorded);
            assert_eq!((spans.begin(), spans.end()), (Some(TimestampNs(7)), None));
        }
        let mut never = RecordedSpans::new(Some(vec![]));
        assert_eq!(never.moment(TimestampNs(7), true), Moment::Unrecorded);
    }
}
