//! The samples on the path.

use crate::goroutines::{GoTasks, OnThread};
use crate::path::Piece;
use rustc_hash::FxHashMap;
use whit_profile::LoadError;
use whit_profile::tables::{SampleWanted, StreamEnd, TableSource, WantedFacts};
use whit_profile::time_filter::TimeRange;
use whit_types::TimestampNs;

/// Spans of one thread or CPU, in order. Those of one path do not overlap, those of several may.
#[derive(Clone, Default)]
pub(crate) struct Spans {
    spans: Vec<Span>,
    /// The latest end up to each, once they are sorted.
    ends: Vec<TimestampNs>,
}

impl Spans {
    pub(crate) fn push(&mut self, span: Span) {
        self.spans.push(span);
    }

    pub(crate) fn sort(&mut self) {
        self.spans.sort_unstable_by_key(|span| (span.from, span.to, span.number));
        let mut latest = TimestampNs(0);
        let ends = self.spans.iter().map(|span| {
            latest = latest.max(span.to);
            latest
        });
        self.ends = ends.collect();
    }

    /// Those that have a moment of this time, both ends included; after [`Spans::sort`].
    pub(crate) fn touched(
        &self,
        from: TimestampNs,
        to: TimestampNs,
    ) -> impl Iterator<Item = &Span> {
        let first = self.ends.partition_point(|end| *end < from);
        let begun = self.spans.partition_point(|span| span.from <= to);
        let spans = self.spans.get(first..begun).unwrap_or_default();
        spans.iter().filter(move |span| span.to >= from)
    }
}

/// The time of a piece, with the number of the sum that it is part of.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: TimestampNs,
    pub(crate) to: TimestampNs,
    pub(crate) number: usize,
}

/// Time on a CPU, by thread.
#[derive(Default)]
pub(crate) struct Runs(FxHashMap<u32, Spans>);

impl Runs {
    /// Adds a piece. That of a goroutine is time of the threads that ran it.
    pub(crate) fn add(&mut self, goroutines: &GoTasks, piece: &Piece, number: usize) {
        for OnThread { from, to, thread } in
            goroutines.on_threads(piece.thread, piece.from, piece.to)
        {
            self.0.entry(thread).or_default().push(Span { from, to, number });
        }
    }

    /// From the beginning of the first run to the end of the last one; after [`Spans::sort`].
    fn time(&self) -> Option<TimeRange> {
        let ends =
            self.0.values().filter_map(|of| Some((of.spans.first()?.from, *of.ends.last()?)));
        ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
            .map(|(from, to)| TimeRange { from, to })
    }

    /// Hands the samples in these runs that distribute CPU time to `take`: number of the sum, weight and innermost call
    /// site.
    pub(crate) fn samples(
        mut self,
        source: &TableSource,
        take: &mut dyn FnMut(usize, u64, Option<u32>),
    ) -> Result<(), LoadError> {
        let Some(event) = source.cpu_time_event() else { return Ok(()) };
        self.0.values_mut().for_each(Spans::sort);
        let Some(time) = self.time() else { return Ok(()) };
        let wanted = SampleWanted {
            time: Some(time),
            event: source.recording().events.get(event as usize).map(|event| event.name.clone()),
            stacks: true,
            facts: WantedFacts { thread: true, ..WantedFacts::default() },
            ..SampleWanted::default()
        };
        let ended = source.samples(&wanted, &mut |batch| {
            for sample in batch.drain(..).filter(|sample| sample.event == event) {
                let Some(spans) = sample.thread.and_then(|thread| self.0.get(&thread)) else {
                    continue;
                };
                // At the border of two runs of one path it is in one.
                let runs = spans.touched(sample.time, sample.time);
                for run in runs.filter(|run| sample.time < run.to) {
                    take(run.number, sample.weight, sample.callsite);
                }
            }
            true
        });
        match ended {
            Err(StreamEnd::Load(error)) => Err(error),
            Ok(()) | Err(StreamEnd::Stopped | StreamEnd::NoRoom) => Ok(()),
        }
    }
}
