//! Properties of rows over random profiles.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use whit_profile::model::{EventId, Profile};

use super::*;
use crate::builder::{At, Builder, Who, at};
use crate::folded::{FoldedOptions, write_folded};

/// Frames are few, so that recursion, shared prefixes and inlining are common.
fn frame() -> impl Strategy<Value = At> {
    (0..6u8, 0..2u64, any::<bool>(), 0..3u32).prop_map(|(f, site, inlined, line)| {
        let dso = if f < 4 { "/bin/app" } else { "/lib/libx.so" };
        let mut frame = at(&format!("f{f}"), dso, u64::from(f) * 0x100 + site);
        if line > 0 {
            frame = frame.line("app.c", line);
        }
        if inlined && f % 2 == 1 { frame.inlined() } else { frame }
    })
}

#[derive(Clone, Debug)]
pub(super) struct Sample {
    comm: u8,
    thread: u8,
    cpu: u8,
    chain: Vec<At>,
    period: u64,
}

fn sample() -> impl Strategy<Value = Sample> {
    let chain = (frame(), prop::collection::vec(frame(), 0..7)).prop_map(|(mut root, rest)| {
        root.inlined = false;
        [vec![root], rest].concat()
    });
    (0..2u8, 0..3u8, 0..2u8, chain, 1..100u64)
        .prop_map(|(comm, thread, cpu, chain, period)| Sample { comm, thread, cpu, chain, period })
}

pub(super) fn samples() -> impl Strategy<Value = Vec<Sample>> {
    prop::collection::vec(sample(), 1..40)
}

pub(super) fn profile(samples: &[Sample]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    for s in samples {
        let comm = ["alpha", "beta"][s.comm as usize];
        let tid = 10 + i32::from(s.thread);
        let who = Who { comm, pid: 10, tid, cpu: Some(s.cpu.into()) };
        builder.sample(event, who, &s.chain, s.period);
    }
    builder.profile.recording.has_callchains = true;
    builder.profile
}

pub(super) fn options() -> impl Strategy<Value = HistsOptions> {
    let keys = prop::sample::subsequence(SortKey::ALL.to_vec(), 1..=SortKey::ALL.len());
    let mode = prop::sample::select(vec![ChainMode::Graph, ChainMode::Flat, ChainMode::Folded]);
    let order =
        prop::option::of(prop::sample::select(vec![ChainOrder::Caller, ChainOrder::Callee]));
    let self_time = prop::sample::select(vec![SelfTime::Innermost, SelfTime::Outer]);
    (keys, any::<bool>(), any::<bool>(), mode, order, self_time).prop_map(
        |(sort, children, inline, mode, order, self_time)| HistsOptions {
            sort,
            children,
            inline,
            self_time,
            chains: ChainOptions { mode, order, min_percent: 0.0, print_limit: 0 },
            ..HistsOptions::default()
        },
    )
}

/// Children weights by the definition: each sample adds once to every distinct row of its chain.
fn children_by_definition(
    samples: &[Sample],
    inline: bool,
) -> HashMap<(String, String, bool), u64> {
    let mut weights = HashMap::new();
    for s in samples {
        let comm = ["alpha", "beta"][s.comm as usize].to_owned();
        let chain = s.chain.iter().filter(|a| inline || !a.inlined);
        let rows: HashSet<_> =
            chain.map(|a| (comm.clone(), a.function.clone(), a.inlined)).collect();
        for row in rows {
            *weights.entry(row).or_insert(0) += s.period;
        }
    }
    weights
}

/// Checks one tree and returns the period of its topmost nodes.
fn check_tree(tree: &ChainTree) -> u64 {
    for (i, node) in tree.nodes.iter().enumerate() {
        let below: u64 = node.children.iter().map(|&c| tree.nodes[c as usize].cumulative()).sum();
        assert_eq!(below, node.children_hit, "nothing is below a threshold of zero");
        assert!(!node.entries.is_empty() && node.cumulative() > 0);
        assert!(node.hit > 0 || node.children.len() > 1, "a run goes on to a branch or an end");
        let heaviest_first = node
            .children
            .is_sorted_by_key(|&c| std::cmp::Reverse(tree.nodes[c as usize].cumulative()));
        assert!(heaviest_first);
        assert!(node.parent.is_none_or(|p| (p as usize) < i));
    }
    let ends: u64 = tree.ends(0).iter().map(|&n| tree.nodes[n as usize].hit).sum();
    let roots = tree.roots.iter().map(|&r| tree.nodes[r as usize].cumulative()).sum();
    assert_eq!(ends, roots);
    roots
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn self_weights_add_up_to_the_total_under_any_keys(
        samples in prop::collection::vec(sample(), 1..40),
        options in options(),
    ) {
        let profile = profile(&samples);
        let hists = hists(&profile, EventId(0), &options);
        let total: u64 = samples.iter().map(|s| s.period).sum();
        prop_assert_eq!(hists.total_period, total);
        prop_assert_eq!(hists.rows.iter().map(|r| r.self_period).sum::<u64>(), total);
        let count = hists.rows.iter().map(|r| r.self_samples).sum::<u64>();
        prop_assert_eq!(count, samples.len() as u64);
    }

    #[test]
    fn children_weigh_at_least_as_much_as_self_and_at_most_all(
        samples in prop::collection::vec(sample(), 1..40),
        options in options(),
    ) {
        let profile = profile(&samples);
        let hists = hists(&profile, EventId(0), &options);
        for row in &hists.rows {
            prop_assert!(row.self_period <= row.children_period);
            prop_assert!(row.children_period <= hists.total_period);
            prop_assert!(row.self_samples <= row.children_samples);
        }
        let keys: HashSet<_> = hists.rows.iter().map(|r| (*r.context, r.place)).collect();
        prop_assert_eq!(keys.len(), hists.rows.len(), "rows are distinct");
        prop_assert!(hists.rows.is_sorted_by_key(|r| std::cmp::Reverse(hists.weight(r))));
    }

    #[test]
    fn children_are_those_of_the_definition(
        samples in prop::collection::vec(sample(), 1..40),
        inline in any::<bool>(),
    ) {
        let profile = profile(&samples);
        let options = HistsOptions { inline, ..HistsOptions::default() };
        let hists = hists(&profile, EventId(0), &options);
        let mut expected = children_by_definition(&samples, inline);
        for row in &hists.rows {
            let comm = profile.comms[row.context.comm.unwrap().index()].exact().to_owned();
            let name = profile.functions[row.place.function.unwrap().index()].name.exact().to_owned();
            let weight = expected.remove(&(comm, name, row.place.inlined));
            prop_assert_eq!(weight, Some(row.children_period));
        }
        prop_assert!(expected.is_empty(), "no row is missing: {:?}", expected);
    }

    /// The text says of each function what folded stacks say, which the page and tables of switches agree with.
    #[test]
    fn self_weights_are_those_of_folded_stacks(
        samples in prop::collection::vec(sample(), 1..40),
        inline in any::<bool>(),
    ) {
        let profile = profile(&samples);
        let mut folded = Vec::new();
        let options = FoldedOptions { inline, ..FoldedOptions::default() };
        write_folded(&mut folded, &profile, EventId(0), &options).unwrap();
        let mut expected = HashMap::<String, u64>::new();
        for line in String::from_utf8(folded).unwrap().lines() {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            let leaf = stack.rsplit(';').next().unwrap().to_owned();
            *expected.entry(leaf).or_default() += weight.parse::<u64>().unwrap();
        }
        let options = HistsOptions { inline, ..HistsOptions::default() };
        let mut shown = HashMap::<String, u64>::new();
        for row in hists(&profile, EventId(0), &options).rows {
            let function = &profile.functions[row.place.function.unwrap().index()];
            *shown.entry(function.name.exact().to_owned()).or_default() += row.self_period;
        }
        shown.retain(|_, period| *period > 0);
        prop_assert_eq!(shown, expected);
    }

    #[test]
    fn root_frames_weigh_the_total_together(samples in prop::collection::vec(sample(), 1..40)) {
        let mut samples = samples;
        for s in &mut samples {
            s.chain[0] = at(&format!("root{}", s.chain[0].function), "/bin/app", 0);
        }
        let profile = profile(&samples);
        let hists = hists(&profile, EventId(0), &HistsOptions::default());
        let name = |r: &HistRow| &profile.functions[r.place.function.unwrap().index()].name;
        let roots = hists.rows.iter().filter(|r| name(r).exact().starts_with("root"));
        let sum: u64 = roots.map(|r| r.children_period).sum();
        prop_assert_eq!(sum, hists.total_period);
    }

    #[test]
    fn the_chains_of_a_row_weigh_what_the_row_does(
        samples in prop::collection::vec(sample(), 1..40),
        options in options(),
    ) {
        let profile = profile(&samples);
        let hists = hists(&profile, EventId(0), &options);
        for row in &hists.rows {
            prop_assert_eq!(check_tree(&row.chains), hists.weight(row));
        }
    }

    #[test]
    fn a_threshold_only_takes_away(
        samples in prop::collection::vec(sample(), 1..40),
        options in options(),
        percent in 0.0..60.0f64,
    ) {
        let profile = profile(&samples);
        let all = hists(&profile, EventId(0), &options);
        let mut options = options;
        options.set_percent_limit(percent);
        let limited = hists(&profile, EventId(0), &options);
        prop_assert_eq!(all.rows.len(), limited.rows.len());
        for (all, some) in all.rows.iter().zip(limited.shown(percent)) {
            prop_assert_eq!((&all.context, all.place), (&some.context, some.place));
            // The branches above a heavy end are at least as heavy, so no such end is lost.
            let ends = |tree: &ChainTree| tree.ends(limited.chain_min_hit).len();
            prop_assert_eq!(ends(&all.chains), ends(&some.chains));
        }
    }
}
