//! Rows over blocks of time: sums, intervals and ranks.

use proptest::prelude::*;
use whit_estimate::Parts;
use whit_profile::model::{EventId, LossReport, Profile};
use whit_profile::parallelism::{Parallelism, ParallelismInfo};

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

/// As much CPU time alone as on four threads; with a third part of unknown parallelism, or without.
#[test]
fn intervals_of_latency_hold_its_shares_and_are_wider_for_what_is_unknown() {
    let interval_of_alone = |has_unknown: bool| {
        let mut builder = Builder::default();
        let event = builder.event("cpu-clock");
        let known = [("alone", Parallelism::Threads(1)), ("together", Parallelism::Threads(4))];
        let unknown = has_unknown.then_some(("unknown", Parallelism::Unknown));
        for ((name, parallelism), address) in known.into_iter().chain(unknown).zip(1..) {
            builder.next_facets.parallelism = Some(parallelism);
            let chain = [at("main", "/bin/app", 1), at(name, "/bin/app", 16 * address)];
            (0..1000).for_each(|_| builder.sample(event, MAIN, &chain, 1));
        }
        builder.profile.parallelism = Some(ParallelismInfo::default());
        let profile =
            with_blocks(builder.profile, 32, |row, block| 100 + 10 * ((row + block) as u64 % 2));
        let shares = WeightColumns::LatencyAndOverhead;
        let options =
            HistsOptions { intervals: true, children: false, shares, ..HistsOptions::default() };
        let hists = hists(&profile, EventId(0), &options);
        assert!((hists.latency_percent(hists.rows[0].self_latency) - 80.0).abs() < 0.1);
        hists.rows[0].intervals.as_deref().expect("intervals").own
    };
    let (narrow, wide) = (interval_of_alone(false), interval_of_alone(true));
    assert!(narrow.low < 80.0 && 80.0 < narrow.high && narrow.plus_minus() < 3.0, "{narrow:?}");
    // The unknown one of 2.25 parts may be all elsewhere, or all here.
    assert!(wide.low < 100.0 / 2.25 + 0.1 && wide.high > 200.0 / 2.25 - 0.1, "{wide:?}");
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
