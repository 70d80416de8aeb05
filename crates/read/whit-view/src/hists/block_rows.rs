//! Sums of rows over blocks of time, and the intervals of shares that come from them.

use rustc_hash::FxHashMap;
use whit_estimate::{Estimate, Loss, Parts, RatioSum, ShareIntervals};
use whit_profile::model::{Blocks, EventId, Profile, SampleRow};

use super::Hists;
use super::code_location::PlaceIndex;
use super::context::{Context, ContextMaker, ContextRows, SampleFilter, group};
use super::pass::Pass;
use super::tree::NONE;

/// The sums over blocks of a row's weights by which rows are ordered.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RowSums {
    /// Weight of samples in the row itself.
    pub own: RatioSum,
    /// Weight of samples with the row anywhere in their call chain.
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

    pub(crate) fn of(shares: &ShareIntervals, estimate: &Estimate, loss: &Loss) -> ShareInterval {
        let (low, high) = loss.widen(shares.of(estimate));
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

/// The weight of the lost samples beside that of the others, if they were like them. A lost sample, and one at which an
/// unknown number of threads ran, has at most all of its period as latency.
pub fn loss(profile: &Profile, hists: &Hists) -> Loss {
    let lost = lost_samples(profile, hists.event) as f64;
    let mean_period = hists.total_period as f64 / hists.total_samples.max(1) as f64;
    let lost_period = lost * mean_period;
    match hists.shares.by_latency() {
        true => {
            let latency = hists.latency_in_periods(hists.total_latency);
            Loss::new(lost_period + hists.unknown.1 as f64, latency)
        }
        false => Loss::new(lost_period, hists.total_period as f64),
    }
}

/// The weights by which rows are ordered, by block.
fn weights_by_block(pass: &Pass<'_>, event: EventId) -> Vec<f64> {
    let (profile, weigher) = (pass.profile(), pass.weigher);
    let of_block = |blocks, block| {
        rows_of(blocks, block, event).map(|row| weigher.weigh(profile, &row).first as f64).sum()
    };
    let blocks = profile.blocks.iter();
    blocks.flat_map(|all| (0..all.weights.len()).map(move |block| of_block(all, block))).collect()
}

/// Gives each row its intervals, where the profile has blocks enough.
pub(super) fn add_intervals(pass: &mut Pass<'_>, filter: &SampleFilter, hists: &mut Hists) {
    let Some(parts) = Parts::new(weights_by_block(pass, hists.event)) else { return };
    let sums = row_sums(pass, filter, hists, &parts);
    let loss = loss(pass.profile(), hists);
    let shares =
        parts.share_intervals((hists.total_samples - hists.unknown_samples_left_out()) as f64);
    let children = hists.children && !pass.is_by_own();
    let mut first = None;
    for ((row, sums), place) in hists.rows.iter_mut().zip(sums).zip(1..) {
        let interval = |sum: &RatioSum| ShareInterval::of(&shares, &sum.estimate(&parts), &loss);
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
    let rows = rows_by_context(pass, hists);
    let maker = ContextMaker::new(profile, pass.keys(), pass.parents());
    let mut of_block = BlockWeights::new(hists.rows.len());
    for block in 0..blocks.weights.len() {
        let samples: Vec<SampleRow> = rows_of(blocks, block, hists.event).collect();
        for group in group(profile, samples.iter(), &maker, filter) {
            if let Some(rows) = rows.get(&*group.context) {
                weigh(pass, &group, rows, &mut of_block);
                of_block.add_to(&mut sums, parts, block);
            }
        }
    }
    sums
}

/// A row, and its place in the code.
type RowAt = (PlaceIndex, u32);

/// The rows of each context. Rows that are sums of others have no place of their own.
fn rows_by_context(pass: &Pass<'_>, hists: &Hists) -> FxHashMap<Context, Vec<RowAt>> {
    let mut rows: FxHashMap<Context, Vec<RowAt>> = FxHashMap::default();
    for (row, index) in hists.rows.iter().zip(0..) {
        if let Some(place) = pass.places.find(&row.place) {
            rows.entry(*row.context).or_default().push((place, index));
        }
    }
    rows
}

/// The weights of rows in one block: own ones, and those with all callees.
struct BlockWeights {
    by_row: Vec<(u64, u64)>,
    /// The rows with weight.
    rows: Vec<u32>,
}

impl BlockWeights {
    fn new(rows: usize) -> BlockWeights {
        BlockWeights { by_row: vec![(0, 0); rows], rows: Vec::new() }
    }

    fn add(&mut self, row: u32, own: u64, children: u64) {
        if own == 0 && children == 0 {
            return;
        }
        let weights = &mut self.by_row[row as usize];
        if *weights == (0, 0) {
            self.rows.push(row);
        }
        *weights = (weights.0 + own, weights.1 + children);
    }

    /// Adds them up, and begins anew.
    fn add_to(&mut self, sums: &mut [RowSums], parts: &Parts, block: usize) {
        for row in self.rows.drain(..) {
            let (own, children) = std::mem::take(&mut self.by_row[row as usize]);
            let sums = &mut sums[row as usize];
            sums.own.add(parts, block, own as f64);
            sums.children.add(parts, block, children as f64);
        }
    }
}

/// Adds the weights of a context's samples in one block to its rows, as the pass adds those of all.
fn weigh(pass: &mut Pass<'_>, group: &ContextRows<'_>, rows: &[RowAt], out: &mut BlockWeights) {
    let (tree, weigher, children) = (pass.tree, pass.weigher, pass.children);
    pass.weights.load(tree, pass.profile, weigher, &group.rows);
    for (place, row) in rows {
        pass.row_of_place[*place as usize] = *row;
    }
    let row_at = |place: PlaceIndex| pass.row_of_place[place as usize];
    for &node in &pass.weights.touched {
        let i = node as usize;
        let row = row_at(tree.self_place[i]);
        if pass.weights.own_samples[i] > 0 && row != NONE {
            let own = pass.weights.own_pair(i).first;
            let is_alone = !children || tree.self_at[i] == NONE;
            out.add(row, own, if is_alone { own } else { 0 });
        }
        let row = row_at(tree.place[i]);
        if children && row != NONE && tree.same_above[i] == NONE {
            out.add(row, 0, pass.weights.below_pair(i).first);
        }
    }
    for (place, _) in rows {
        pass.row_of_place[*place as usize] = NONE;
    }
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
