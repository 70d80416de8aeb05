//! Single samples that stand for their rows: `whit report --samples`.
//!
//! A row keeps the samples with the smallest hashes of time and thread. So each sample has the same chance, and neither
//! the order of reading nor the number of threads changes the choice.

use crate::sums::row_key::RowKey;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// One sample of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ExampleSample {
    /// When it was taken.
    pub time: TimestampNs,
    /// Where, if that was recorded.
    pub cpu: Option<CpuId>,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
}

impl ExampleSample {
    /// The samples with the smallest ones are kept.
    pub fn rank(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u64(self.time.0);
        hasher.write_u32(self.tid.0 as u32);
        hasher.finish()
    }
}

/// The kept samples of each row.
#[derive(Debug, Default)]
pub(crate) struct Examples {
    per_row: usize,
    by_row: FxHashMap<RowKey, Vec<ExampleSample>>,
}

impl Examples {
    pub(crate) fn new(per_row: usize) -> Examples {
        Examples { per_row, by_row: FxHashMap::default() }
    }

    pub(crate) fn add(&mut self, key: RowKey, sample: ExampleSample) {
        let kept = self.by_row.entry(key).or_default();
        keep(kept, sample, self.per_row);
    }

    pub(crate) fn add_all(&mut self, key: RowKey, samples: Vec<ExampleSample>) {
        samples.into_iter().for_each(|sample| self.add(key, sample));
    }

    pub(crate) fn of(&self, key: &RowKey) -> &[ExampleSample] {
        self.by_row.get(key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_row.is_empty()
    }

    pub(crate) fn into_rows(self) -> (usize, FxHashMap<RowKey, Vec<ExampleSample>>) {
        (self.per_row, self.by_row)
    }
}

/// Adds a sample to at most `max` with the smallest ranks.
pub fn keep(kept: &mut Vec<ExampleSample>, sample: ExampleSample, max: usize) {
    let order = |sample: &ExampleSample| (sample.rank(), *sample);
    if kept.len() < max {
        return kept.push(sample);
    }
    let largest = kept.iter_mut().max_by_key(|kept| order(kept));
    if let Some(largest) = largest.filter(|largest| order(&sample) < order(largest)) {
        *largest = sample;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(times: &[u64], max: usize) -> Vec<u64> {
        let mut all = Vec::new();
        for time in times {
            let (pid, tid) = (Pid(1), Tid(1));
            let sample = ExampleSample { time: TimestampNs(*time), cpu: None, pid, tid };
            keep(&mut all, sample, max);
        }
        let mut times: Vec<_> = all.iter().map(|sample| sample.time.0).collect();
        times.sort_unstable();
        times
    }

    proptest! {
        #[test]
        fn the_order_of_samples_does_not_matter(
            mut times in prop::collection::hash_set(0u64..1_000_000, 0..40).prop_map(Vec::from_iter),
            max in 0usize..6,
        ) {
            let first = kept(&times, max);
            times.sort_unstable();
            prop_assert_eq!(&kept(&times, max), &first);
            prop_assert_eq!(first.len(), times.len().min(max));
        }
    }
}
