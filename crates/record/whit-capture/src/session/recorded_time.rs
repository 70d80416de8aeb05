//! When samples and switches are recorded: the spans that an output states.

use whit_perfdata::feature::RecordedSpan;
use whit_sys::clock::ClockId;
use whit_types::TimestampNs;

use crate::record_clock;

/// Follows events being switched on and off. Where the clock of the records cannot be read, the output
/// states no spans, and readers go by its records alone.
#[derive(Debug)]
pub(super) struct RecordedTime {
    clock: Option<ClockId>,
    spans: Vec<RecordedSpan>,
    /// The beginning of the span that has not ended.
    from: Option<TimestampNs>,
    is_known: bool,
}

impl RecordedTime {
    /// On the clock that stamps records; `None` for the kernel's default.
    pub(super) fn new(clock: Option<ClockId>) -> RecordedTime {
        RecordedTime { clock, spans: Vec::new(), from: None, is_known: true }
    }

    /// To be called once everything is on.
    pub(super) fn start(&mut self) {
        if self.from.is_none() {
            self.from = self.now();
        }
    }

    /// To be called while everything is still on.
    pub(super) fn stop(&mut self) {
        if self.from.is_some()
            && let Some(to) = self.now()
        {
            self.end(to);
        }
    }

    /// The spans of an output that ends; a span that is open goes on in the next one. No output has
    /// a single moment of change: its readers change one after the other.
    pub(super) fn lap(&mut self) -> Option<Vec<RecordedSpan>> {
        let continues = self.from.is_some();
        if continues {
            self.end(TimestampNs(u64::MAX));
            self.from = Some(TimestampNs(0));
        }
        let spans = std::mem::take(&mut self.spans);
        self.is_known.then_some(spans)
    }

    fn end(&mut self, to: TimestampNs) {
        if let Some(from) = self.from.take() {
            self.spans.push(RecordedSpan { from, to });
        }
    }

    fn now(&mut self) -> Option<TimestampNs> {
        let now = record_clock::now(self.clock);
        self.is_known &= now.is_ok();
        now.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> RecordedTime {
        RecordedTime::new(Some(ClockId::MONOTONIC))
    }

    #[test]
    fn every_time_that_events_are_on_is_a_span() {
        let mut time = recorded();
        time.stop();
        time.start();
        time.start();
        time.stop();
        time.start();
        time.stop();
        time.stop();
        let spans = time.lap().unwrap();
        assert_eq!(spans.len(), 2);
        assert!(spans[0].from.0 > 0 && spans[0].to <= spans[1].from && spans[1].from < spans[1].to);
        assert_eq!(time.lap(), Some(vec![]));
    }

    #[test]
    fn a_span_continues_in_the_next_output() {
        let mut time = recorded();
        time.start();
        let [first] = time.lap().unwrap()[..] else { panic!("one span") };
        assert!(first.from.0 > 0 && first.to.0 == u64::MAX);
        time.stop();
        let [next] = time.lap().unwrap()[..] else { panic!("one span") };
        assert!(next.from.0 == 0 && next.to > first.from && next.to.0 < u64::MAX);
    }

    #[test]
    fn without_a_clock_nothing_is_stated() {
        let mut time = RecordedTime::new(Some(ClockId(-1)));
        time.start();
        time.stop();
        assert_eq!(time.lap(), None);
    }
}
