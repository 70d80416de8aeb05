//! How far the shares of a function's parts can be trusted.

use rustc_hash::FxHashMap;
use whit_annotate::{AnnotatedFunction, Weights};
use whit_estimate::{Loss, Parts, RatioSum, ShareIntervals};
use whit_profile::SourceLine;
use whit_profile::model::{EventId, NodeId, Profile};
use whit_types::Svma;

use crate::hists::{ShareInterval, block_totals, lost_samples, rows_of};

/// The intervals of one part; absent where too few blocks of time have weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PartIntervals {
    /// That of its share of the function.
    pub(super) local: Option<ShareInterval>,
    /// That of its share of the event.
    pub(super) global: Option<ShareInterval>,
}

/// The intervals of a function for one event.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionIntervals {
    /// That of the whole function.
    pub(super) own: Option<ShareInterval>,
    /// By instruction, by its address.
    rows: FxHashMap<Svma, PartIntervals>,
    /// Those of the sums of instructions.
    lines: FxHashMap<Option<SourceLine>, PartIntervals>,
}

impl FunctionIntervals {
    /// From the profile's blocks of time, where it has them.
    pub(super) fn new(
        profile: &Profile,
        weights: &Weights<'_>,
        function: &AnnotatedFunction,
        event: EventId,
    ) -> FunctionIntervals {
        let rows = function.code.as_ref().map_or(&[][..], |code| &code.rows);
        let row_at = |address: Svma| {
            let behind = rows.partition_point(|row| row.instruction.address <= address);
            rows.get(behind.checked_sub(1)?)
        };
        let instruction = |address| row_at(address).map_or(address, |row| row.instruction.address);
        let line = |address| row_at(address).and_then(|row| row.source.line.clone());
        let mut sums = Sums::new(profile, weights, function, event);
        let rows = sums.by(instruction);
        FunctionIntervals { own: sums.own(), rows, lines: sums.by(line) }
    }

    pub(super) fn row(&self, address: Svma) -> PartIntervals {
        self.rows.get(&address).copied().unwrap_or_default()
    }

    pub(super) fn line(&self, line: &Option<SourceLine>) -> PartIntervals {
        self.lines.get(line).copied().unwrap_or_default()
    }
}

/// The weights of a function's addresses in blocks of time.
struct Sums {
    /// The weights of each block.
    blocks: Vec<Vec<(Svma, f64)>>,
    /// The event's blocks, and the function's.
    global: Option<Parts>,
    local: Option<Parts>,
    /// The intervals of shares of either.
    shares: (Option<ShareIntervals>, Option<ShareIntervals>),
    loss: (Loss, Loss),
}

impl Sums {
    fn new(
        profile: &Profile,
        weights: &Weights<'_>,
        function: &AnnotatedFunction,
        event: EventId,
    ) -> Sums {
        let chosen = &function.chosen;
        let mut known: FxHashMap<NodeId, Option<Svma>> = FxHashMap::default();
        let mut address_of = |node: NodeId| {
            *known.entry(node).or_insert_with(|| {
                let (dso, address, of) = weights.address_of(node)?;
                let is_own = (dso, of) == (chosen.dso, chosen.function);
                (is_own && chosen.range.contains(&address)).then_some(address)
            })
        };
        let mut blocks = Vec::new();
        for (block, blocks_of) in profile
            .blocks
            .iter()
            .flat_map(|all| (0..all.weights.len()).map(move |block| (block, all)))
        {
            let own = rows_of(blocks_of, block, event)
                .filter_map(|row| Some((address_of(row.node)?, row.period as f64)));
            blocks.push(own.collect::<Vec<_>>());
        }
        let totals = blocks.iter().map(|block| block.iter().map(|(_, period)| period).sum());
        let own = chosen.weights.of(event);
        let info = &profile.events[event.index()];
        let lost =
            lost_samples(profile, event) as f64 * info.period as f64 / info.samples.max(1) as f64;
        let (local, global) =
            (Parts::new(totals.collect()), Parts::new(block_totals(profile, event)));
        let shares = |parts: &Option<Parts>, samples: u64| {
            parts.as_ref().map(|parts| parts.share_intervals(samples as f64))
        };
        Sums {
            shares: (shares(&local, own.samples), shares(&global, info.samples)),
            local,
            global,
            blocks,
            // All lost samples may have been in this function.
            loss: (Loss::new(lost, own.period as f64), Loss::new(lost, info.period as f64)),
        }
    }

    fn own(&self) -> Option<ShareInterval> {
        let parts = self.global.as_ref()?;
        let mut sum = RatioSum::default();
        for (number, block) in self.blocks.iter().enumerate() {
            sum.add(parts, number, block.iter().map(|(_, period)| period).sum());
        }
        Some(ShareInterval::of(&self.shares.1?, &sum.estimate(parts), &self.loss.1))
    }

    /// The intervals of parts that are told apart by `key`.
    fn by<K: Eq + std::hash::Hash>(
        &mut self,
        key: impl Fn(Svma) -> K,
    ) -> FxHashMap<K, PartIntervals> {
        let mut sums: FxHashMap<K, (RatioSum, RatioSum)> = FxHashMap::default();
        for (number, block) in self.blocks.iter().enumerate() {
            let mut of_block: FxHashMap<K, f64> = FxHashMap::default();
            for (address, period) in block {
                *of_block.entry(key(*address)).or_default() += period;
            }
            for (key, period) in of_block {
                let (local, global) = sums.entry(key).or_default();
                if let Some(parts) = &self.local {
                    local.add(parts, number, period);
                }
                if let Some(parts) = &self.global {
                    global.add(parts, number, period);
                }
            }
        }
        let intervals = |(local, global): (RatioSum, RatioSum)| {
            let of = |sum: RatioSum,
                      parts: &Option<Parts>,
                      shares: &Option<ShareIntervals>,
                      loss: &Loss| {
                Some(ShareInterval::of(shares.as_ref()?, &sum.estimate(parts.as_ref()?), loss))
            };
            PartIntervals {
                local: of(local, &self.local, &self.shares.0, &self.loss.0),
                global: of(global, &self.global, &self.shares.1, &self.loss.1),
            }
        };
        sums.into_iter().map(|(key, sums)| (key, intervals(sums))).collect()
    }
}
