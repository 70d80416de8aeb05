//! The samples on the path.

use crate::path::Piece;
use rustc_hash::FxHashMap;
use whit_profile::LoadError;
use whit_profile::tables::{SampleWanted, StreamEnd, TableSource, WantedFacts};
use whit_types::TimestampNs;

/// The time of a piece, with the number of the sum that it is part of.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: TimestampNs,
    pub(crate) to: TimestampNs,
    pub(crate) number: usize,
}

/// Time on a CPU, by thread and in order.
#[derive(Default)]
pub(crate) struct Runs(FxHashMap<u32, Vec<Span>>);

impl Runs {
    /// Adds a piece. Pieces come in order of time.
    pub(crate) fn add(&mut self, piece: &Piece, number: usize) {
        let span = Span { from: piece.from, to: piece.to, number };
        self.0.entry(piece.thread).or_default().push(span);
    }

    /// Hands the samples in these runs that distribute CPU time to `take`: number of the sum, weight and innermost call
    /// site.
    pub(crate) fn samples(
        &self,
        source: &TableSource,
        take: &mut dyn FnMut(usize, u64, Option<u32>),
    ) -> Result<(), LoadError> {
        let Some(event) = source.cpu_time_event() else { return Ok(()) };
        let wanted = SampleWanted {
            stacks: true,
            facts: WantedFacts { thread: true, ..WantedFacts::default() },
            ..SampleWanted::default()
        };
        let ended = source.samples(&wanted, &mut |batch| {
            for sample in batch.drain(..).filter(|sample| sample.event == event) {
                let spans = sample.thread.and_then(|thread| self.0.get(&thread));
                let spans = spans.map_or(&[][..], Vec::as_slice);
                let next = spans.partition_point(|run| run.to < sample.time);
                if let Some(run) = spans.get(next).filter(|run| run.from <= sample.time) {
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
