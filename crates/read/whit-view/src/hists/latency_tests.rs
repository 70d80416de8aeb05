//! Rows by latency.

use proptest::prelude::*;
use whit_profile::model::{EventId, Profile};
use whit_profile::parallelism::{Parallelism, ParallelismInfo};

use super::*;
use crate::builder::{Builder, Who, at};

const MAIN: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: None };

/// Samples of functions below `main`: name, threads that ran, period. Zero threads stand for an unknown number.
fn profile(samples: &[(&str, u32, u64)]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("cpu-clock");
    for (name, threads, period) in samples {
        let known = (*threads > 0).then_some(Parallelism::Threads(*threads));
        builder.next_facets.parallelism = known.or(Some(Parallelism::Unknown));
        let address = 16 * name.bytes().map(u64::from).sum::<u64>();
        builder.sample(
            event,
            MAIN,
            &[at("main", "/bin/app", 1), at(name, "/bin/app", address)],
            *period,
        );
    }
    builder.profile.parallelism = Some(ParallelismInfo::default());
    builder.profile
}

/// Nine parts alone, then one part on ten threads.
fn phases() -> Profile {
    let mut samples = vec![("alone", 1, 100); 9];
    samples.extend([("together", 10, 100); 10]);
    profile(&samples)
}

fn options(columns: WeightColumns) -> HistsOptions {
    HistsOptions { sort: vec![SortKey::Symbol], shares: columns, ..HistsOptions::default() }
}

/// Name, latency and CPU time in percent, of the row itself and with all that it calls.
fn rows(profile: &Profile, options: &HistsOptions) -> Vec<(String, [f64; 2], [f64; 2])> {
    let hists = hists(profile, EventId(0), options);
    let row = |row: &HistRow| {
        let name = profile.functions[row.place.function.unwrap().index()].name.to_string();
        let latency = [row.self_latency, row.children_latency].map(|it| hists.latency_percent(it));
        (name, latency, [row.self_period, row.children_period].map(|it| hists.percent(it)))
    };
    hists.rows.iter().map(row).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.01
}

#[test]
fn latency_divides_by_the_threads_that_ran() {
    for columns in [WeightColumns::LatencyAndOverhead, WeightColumns::OverheadAndLatency] {
        let rows = rows(&phases(), &options(columns));
        let names: Vec<_> = rows.iter().map(|row| row.0.as_str()).collect();
        let expected = match columns.by_latency() {
            true => ["main", "alone", "together"],
            false => ["main", "together", "alone"],
        };
        assert_eq!(names, expected);
        let of = |name: &str| rows.iter().find(|row| row.0 == name).unwrap();
        let (alone, together, main) = (of("alone"), of("together"), of("main"));
        assert!(near(alone.1[0], 90.0) && near(together.1[0], 10.0), "{rows:?}");
        assert!(near(alone.2[0], 900.0 / 19.0) && near(together.2[0], 1000.0 / 19.0));
        assert!(near(main.1[1], 100.0) && near(main.1[0], 0.0) && near(main.2[1], 100.0));
    }
    let plain = hists(&phases(), EventId(0), &options(WeightColumns::Overhead));
    assert_eq!((plain.total_latency, plain.rows[0].children_latency), (0, 0));
}

#[test]
fn call_chains_and_limits_go_by_what_orders_rows() {
    let mut by_latency = options(WeightColumns::Latency);
    by_latency.set_percent_limit(20.0);
    let profile = phases();
    let report = hists(&profile, EventId(0), &by_latency);
    let shown: Vec<_> = report.shown(20.0).collect();
    assert_eq!(shown.len(), 2, "together has 10 %");
    let main = &shown[0].chains;
    assert_eq!(main.nodes[main.roots[0] as usize].cumulative(), report.total_latency);
    assert_eq!(main.nodes.len(), 2, "{main:?}");
}

#[test]
fn unknown_parallelism_has_no_latency_and_is_counted() {
    let profile = profile(&[("a", 2, 10), ("a", 0, 30), ("b", 4, 20)]);
    let report = hists(&profile, EventId(0), &options(WeightColumns::LatencyAndOverhead));
    assert_eq!((report.unknown, report.total_period), ((1, 30), 60));
    assert_eq!(report.latency_in_periods(report.total_latency), 10.0);
    let mut levels = options(WeightColumns::LatencyAndOverhead);
    levels.filters.parallelism = "2-3".parse().unwrap();
    let names: Vec<_> = rows(&profile, &levels).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["a", "main"]);
    levels.relative = true;
    assert_eq!(hists(&profile, EventId(0), &levels).total_period, 10);
}

#[test]
fn parallelism_makes_rows() {
    let profile = profile(&[("a", 2, 10), ("a", 0, 30), ("b", 4, 20), ("b", 2, 1)]);
    let by_level = HistsOptions {
        sort: vec![SortKey::Parallelism],
        children: false,
        ..options(WeightColumns::Overhead)
    };
    let report = hists(&profile, EventId(0), &by_level);
    let rows = report.rows.iter().map(|row| (row.context.parallelism.unwrap(), row.self_period));
    let threads = Parallelism::Threads;
    let expected = [(Parallelism::Unknown, 30), (threads(4), 20), (threads(2), 11)];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

proptest! {
    /// However many threads ran at samples of unknown parallelism, the true share is inside the widened interval, and no
    /// farther from the shown one than the report says.
    #[test]
    fn unknown_parallelism_widens_shares_to_hold_the_true_ones(
        samples in prop::collection::vec((0u8..3, 1u32..9, 1u64..1000, any::<bool>()), 2..40),
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let of = |hides: bool| {
            let sample = |&(name, threads, period, is_unknown): &(u8, u32, u64, bool)| {
                (NAMES[usize::from(name)], if hides && is_unknown { 0 } else { threads }, period)
            };
            profile(&samples.iter().map(sample).collect::<Vec<_>>())
        };
        prop_assume!(samples.iter().any(|sample| !sample.3));
        let by_latency = options(WeightColumns::LatencyAndOverhead);
        let (truth, shown) = (of(false), of(true));
        let (truth, hidden) =
            (rows(&truth, &by_latency), hists(&shown, EventId(0), &by_latency));
        let loss = loss(&shown, &hidden);
        for (name, shares, _) in truth {
            let row = |row: &&HistRow| {
                shown.functions[row.place.function.unwrap().index()].name.to_string() == name
            };
            let found = hidden.rows.iter().find(row);
            let share = found.map_or(0.0, |row| hidden.latency_percent(row.self_latency));
            let (low, high) = loss.widen((share / 100.0, share / 100.0));
            let (low, high) = (100.0 * low - 1e-3, 100.0 * high + 1e-3);
            prop_assert!(low <= shares[0] && shares[0] <= high, "{} {} {}", shares[0], low, high);
            let most = hidden.latency_uncertainty_percent() + 1e-3;
            prop_assert!((share - shares[0]).abs() <= most, "{} {} {}", share, shares[0], most);
        }
    }

    /// The latencies of rows add up to the total, which is that of plain fractions, with small periods and large ones.
    #[test]
    fn latencies_add_up(
        samples in prop::collection::vec((0u8..4, 0u32..200, prop_oneof![1u64..9, 1u64..1 << 40]), 1..60),
        columns in prop::sample::select(vec![
            WeightColumns::Latency, WeightColumns::LatencyAndOverhead, WeightColumns::OverheadAndLatency,
        ]),
    ) {
        let names = ["a", "b", "c", "d"];
        let samples: Vec<_> =
            samples.iter().map(|(name, threads, period)| (names[*name as usize], *threads, *period)).collect();
        let profile = profile(&samples);
        let report = hists(&profile, EventId(0), &options(columns));
        let known = samples.iter().filter(|sample| sample.1 > 0);
        let expected: f64 = known.map(|(_, threads, period)| *period as f64 / f64::from(*threads)).sum();
        let latency = report.latency_in_periods(report.total_latency);
        prop_assert!((latency - expected).abs() <= 1e-3 * expected + 1e-3, "{} {}", latency, expected);
        let own: u64 = report.rows.iter().map(|row| row.self_latency).sum();
        prop_assert_eq!(own, report.total_latency);
        prop_assert!(report.rows.iter().all(|row| row.self_latency <= row.children_latency));
        prop_assert!(report.rows.is_sorted_by_key(|row| std::cmp::Reverse(report.weight(row))));
    }
}
