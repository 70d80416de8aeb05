//! Sums of rows over blocks of time, and the intervals of shares that come from them.

use rustc_hash::FxHashMap;
use whit_estimate::{Estimate, Loss, Parts, RatioSum};
use whit_profile::model::{Blocks, EventId, Profile, SampleRow};

use super::context::{Context, ContextMaker, SampleFilter, group};
use super::pass::Pass;
use super::{CodeLocation, HistRow, Hists};

/// The sums over blocks of a row's weights.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RowSums {
    /// Period of samples in the row itself.
    pub own: RatioSum,
    /// Period of samples with the row anywhere in their call chain.
    pub children: RatioSum,
}

/// An interval that holds the true share in 95 of 100 cases, lost samples included. In percent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ShareInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The intervals of a row's shares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RowIntervals {
    /// That of the row itself.
    pub own: ShareInterval,
    /// That of the row with all functions that it calls.
    pub children: ShareInterval,
    /// Place in the order, from 1. Rows have one rank where their intervals overlap that of the first of them: which of
    /// them is heavier cannot be known.
    pub rank: u32,
}

impl ShareInterval {
    /// Half of its width.
    pub fn plus_minus(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    pub(crate) fn of(estimate: Estimate, samples: u64, loss: &Loss) -> ShareInterval {
        let (low, high) = loss.widen(estimate.share_interval(samples as f64));
        ShareInterval { low: 100.0 * low, high: 100.0 * high }
    }
}

/// The event's periods by block; empty where the profile has no blocks.
pub fn block_totals(profile: &Profile, event: EventId) -> Vec<f64> {
    let blocks = profile
        .blocks
        .iter()
        .flat_map(|blocks| (0..blocks.weights.len()).map(move |i| (blocks, i)));
    blocks
        .map(|(blocks, block)| rows_of(blocks, block, event).map(|row| row.period as f64).sum())
        .collect()
}

/// Samples of the event that may be missing: lost records may have been of any event.
pub fn lost_samples(profile: &Profile, event: EventId) -> u64 {
    let losses = &profile.losses;
    let of_all = losses.lost_records.saturating_add(losses.lost_samples);
    of_all.max(profile.events[event.index()].lost_samples)
}

/// The weight of the lost samples beside that of the others, if they were like them.
pub fn loss(profile: &Profile, hists: &Hists) -> Loss {
    let lost = lost_samples(profile, hists.event) as f64;
    let mean_period = hists.total_period as f64 / hists.total_samples.max(1) as f64;
    Loss::new(lost * mean_period, hists.total_period as f64)
}

/// Gives each row its intervals, where the profile has blocks enough.
pub(super) fn add_intervals(pass: &mut Pass<'_>, filter: &SampleFilter, hists: &mut Hists) {
    let Some(parts) = Parts::new(block_totals(pass.profile(), hists.event)) else { return };
    let sums = row_sums(pass, filter, hists, &parts);
    let loss = loss(pass.profile(), hists);
    let (samples, children) = (hists.total_samples, hists.children);
    let mut first = None;
    for ((row, sums), place) in hists.rows.iter_mut().zip(sums).zip(1..) {
        let interval = |sum: &RatioSum| ShareInterval::of(sum.estimate(&parts), samples, &loss);
        let (own, all) = (interval(&sums.own), interval(&sums.children));
        let weight = if children { all } else { own };
        let rank = match first {
            Some((rank, low)) if weight.high >= low => rank,
            _ => {
                first = Some((place, weight.low));
                place
            }
        };
        row.intervals = Some(Box::new(RowIntervals { own, children: all, rank }));
    }
}

/// The sums over blocks of the rows in `hists`. The parts are those of the profile's blocks.
pub(super) fn row_sums(
    pass: &mut Pass<'_>,
    filter: &SampleFilter,
    hists: &Hists,
    parts: &Parts,
) -> Vec<RowSums> {
    let profile = pass.profile();
    let mut sums = vec![RowSums::default(); hists.rows.len()];
    let Some(blocks) = &profile.blocks else { return sums };
    let key = |row: &HistRow| (*row.context, row.place);
    let places: FxHashMap<(Context, CodeLocation), usize> =
        hists.rows.iter().enumerate().map(|(place, row)| (key(row), place)).collect();
    let maker = ContextMaker::new(profile, pass.keys(), pass.parents());
    for block in 0..blocks.weights.len() {
        let rows: Vec<SampleRow> = rows_of(blocks, block, hists.event).collect();
        let groups = group(profile, rows.iter(), &maker, filter);
        for row in pass.rows_without_chains(&groups) {
            if let Some(place) = places.get(&key(&row)) {
                let sums = &mut sums[*place];
                sums.own.add(parts, block, row.self_period as f64);
                sums.children.add(parts, block, row.children_period as f64);
            }
        }
    }
    sums
}

/// A block's weights as rows of samples. Blocks do not count samples: each of these stands for one or more.
pub(crate) fn rows_of(
    blocks: &Blocks,
    block: usize,
    event: EventId,
) -> impl Iterator<Item = SampleRow> {
    blocks.weights[block].iter().filter_map(move |weight| {
        let context = blocks.contexts[weight.context as usize];
        (context.event == event).then_some(SampleRow {
            event,
            thread: context.thread,
            comm: context.comm,
            facets: context.facets,
            node: weight.node,
            samples: 1,
            period: weight.period,
        })
    })
}
