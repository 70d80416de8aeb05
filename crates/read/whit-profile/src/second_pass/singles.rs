//! Samples one by one with their time, for forms that show time; too many of them share stretches of it.
//!
//! A kept sample takes some 40 bytes. A recording of any length has a bounded number of stretches, each with
//! the rows that a report would have.

use crate::first_pass::prepare::Prepared;
use crate::samples::{MAX_SINGLES, Samples, SinglesWanted};
use crate::sums::row_key::RowKey;
use std::num::NonZeroU64;
use whit_types::{CpuId, TimestampNs};

/// Stretches of time of a recording with more samples.
const SLICES: u64 = 200;

/// A sample, by the numbers of an aggregate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSingle {
    pub(crate) time: TimestampNs,
    pub(crate) cpu: Option<CpuId>,
    pub(crate) period: u64,
    pub(crate) row: RowKey,
}

/// Decides between single samples and stretches of time, now that the number of samples is known.
pub(crate) fn decide(question: Samples, prepared: &Prepared) -> Samples {
    let samples: u64 = prepared.scan.samples_by_event.iter().sum();
    let wanted = match question.singles {
        Some(SinglesWanted::Few) if samples <= MAX_SINGLES => SinglesWanted::Each,
        Some(SinglesWanted::UpTo(most)) if samples <= most => SinglesWanted::Each,
        Some(SinglesWanted::Few | SinglesWanted::UpTo(_) | SinglesWanted::Joined) => {
            SinglesWanted::Joined
        }
        None | Some(SinglesWanted::Each) => return question,
    };
    let mut decided = Samples { singles: Some(wanted), ..question };
    if wanted == SinglesWanted::Joined {
        decided.facets.time_quantum_ns = NonZeroU64::new(slice_ns(prepared));
    }
    decided
}

/// Length of a stretch; at least a millisecond.
fn slice_ns(prepared: &Prepared) -> u64 {
    let times = prepared.scan.plans.iter().flat_map(|plan| &plan.blocks).filter_map(|b| b.times);
    let span = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let span_ns = span.map_or(0, |(first, last)| last.since(first));
    (span_ns / SLICES).max(1_000_000)
}
