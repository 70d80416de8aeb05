//! Rows over blocks of time: sums, intervals and ranks.

use proptest::prelude::*;
use whit_estimate::Parts;
use whit_profile::model::{EventId, LossReport, Profile};

use super::*;
use crate::builder::{Builder, Who, at, with_blocks};

const MAIN: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: Some(0) };

/// Samples of `main` calling `names`, each with a weight in each of 32 blocks.
fn profile(names: &[&str], part: impl Fn(usize, usize) -> u64) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    for (index, name) in names.iter().enumerate() {
        let chain = [at("main", "/bin/app", 1), at(name, "/bin/app", 16 * (index as u64 + 1))];
        (0..1000).for_each(|_| builder.sample(event, MAIN, &chain, 1));
    }
    builder.profile.recording.has_callchains = true;
    with_blocks(builder.profile, 32, part)
}

fn intervals(profile: &Profile) -> Vec<(u32, f64, ShareInterval)> {
    let options = HistsOptions { intervals: true, children: false, ..HistsOptions::default() };
    let hists = hists(profile, EventId(0), &options);
    let row = |row: &HistRow| {
        let intervals = row.intervals.as_deref().unwrap();
        (intervals.rank, hists.percent(row.self_period), intervals.own)
    };
    hists.rows.iter().map(row).collect()
}

#[test]
fn rows_share_a_rank_where_their_order_cannot_be_known() {
    // Two that scatter around the same share, and one that is far above.
    let scatter = |row: usize, block: usize| match row {
        0 => 6000,
        1 => 1000 + 400 * (block as u64 % 2),
        _ => 1010 + 400 * ((block as u64 / 2) % 2),
    };
    let rows = intervals(&profile(&["heavy", "one", "other"], scatter));
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [1, 2, 2]);
    for (_, share, interval) in rows {
        assert!(interval.low < share && share < interval.high);
        assert!(interval.plus_minus() > 0.3 && interval.plus_minus() < 3.0, "{interval:?}");
    }
}

#[test]
fn lost_samples_widen_intervals_to_one_side_each() {
    let mut lossy = profile(&["a", "b"], |row, block| 100 + 10 * ((row + block) as u64 % 2));
    let narrow = intervals(&lossy);
    lossy.losses = LossReport { lost_records: 2000, ..LossReport::default() };
    let wide = intervals(&lossy);
    // As many lost as recorded: from half the share to half the share and a half.
    assert!((wide[0].2.low - narrow[0].2.low / 2.0).abs() < 1e-9);
    assert!((wide[0].2.high - narrow[0].2.high / 2.0 - 50.0).abs() < 1e-9);
}

#[test]
fn without_blocks_there_are_no_intervals() {
    let options = HistsOptions { intervals: true, ..HistsOptions::default() };
    let mut profile = profile(&["a"], |_, _| 5);
    assert!(hists(&profile, EventId(0), &options).has_intervals());
    assert!(!hists(&profile, EventId(0), &HistsOptions::default()).has_intervals());
    profile.blocks.as_mut().unwrap().weights.truncate(1);
    assert!(!hists(&profile, EventId(0), &options).has_intervals());
    profile.blocks = None;
    assert!(!hists(&profile, EventId(0), &options).has_intervals());
}

proptest! {
    /// The sums over blocks are the rows' weights, under any keys and rules.
    #[test]
    fn blocks_add_up_to_rows(
        samples in super::properties::samples(), options in super::properties::options(),
        parts in prop::collection::vec(0u64..50, 7),
    ) {
        let profile = super::properties::profile(&samples);
        let profile = with_blocks(profile, 5, |row, block| 1 + parts[(row + 3 * block) % 7]);
        let totals = Parts::new(block_totals(&profile, EventId(0))).unwrap();
        let (hists, sums) = hists_by_block(&profile, EventId(0), &options, &totals);
        prop_assert_eq!(totals.total(), hists.total_period as f64);
        for (row, sums) in hists.rows.iter().zip(&sums) {
            let weight = |sum: &whit_estimate::RatioSum| sum.estimate(&totals).value * totals.total();
            prop_assert!((weight(&sums.own) - row.self_period as f64).abs() < 1e-6);
            prop_assert!((weight(&sums.children) - row.children_period as f64).abs() < 1e-6);
        }
    }
}
