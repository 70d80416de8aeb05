//! From samples to rows, arranged and with everything that rows have.

use whit_estimate::Parts;
use whit_profile::Counted;
use whit_profile::model::{EventId, Profile, SampleRow};
use whit_profile::parallelism::Parallelism;

use super::block_rows::{self, RowSums};
use super::chain_tree::{KeyOrder, Pruning};
use super::chains::{RowLists, Weights};
use super::code_location::Places;
use super::context::{self, ContextMaker, SampleFilter, listed};
use super::examples;
use super::hierarchy::Nesting;
use super::latency::Weigher;
use super::options::{ChainMode, HistsOptions};
use super::parents::Parents;
use super::pass::{Pass, passes};
use super::row_order;
use super::sort_key::SortKey;
use super::tree::{NONE, Tree};
use super::{HistRow, Hists};

/// Computes the rows of `event`.
///
/// Call chains are built for the rows that pass the filters and the percent limit, and only there
/// can they hold a branch.
pub fn hists(profile: &Profile, event: EventId, options: &HistsOptions) -> Hists {
    hists_with(profile, event, options, true, |pass, filter, hists| {
        if options.intervals {
            block_rows::add_intervals(pass, filter, hists);
        }
    })
    .0
}

/// The same, with the sums of each row over the profile's blocks, whose weights are `parts`.
pub fn hists_by_block(
    profile: &Profile,
    event: EventId,
    options: &HistsOptions,
    parts: &Parts,
) -> (Hists, Vec<RowSums>) {
    hists_with(profile, event, options, true, |pass, filter, hists| {
        block_rows::row_sums(pass, filter, hists, parts)
    })
}

/// The same in no particular order, without intervals and levels.
pub(super) fn unordered(profile: &Profile, event: EventId, options: &HistsOptions) -> Hists {
    hists_with(profile, event, options, false, |_, _, _| ()).0
}

/// Orders rows, or arranges them in levels.
pub(super) fn arrange(profile: &Profile, options: &HistsOptions, hists: &mut Hists) {
    let order = row_order::RowOrder {
        keys: options.sort_keys(),
        shares: options.shares,
        fields: &options.order,
        children: hists.children,
        by_depth: hists.children && draws_chains(profile, options),
        order: options.chain_order(),
        group_sort: options.group_sort,
    };
    if !options.is_hierarchy() {
        row_order::sort(profile, &order, &mut hists.rows);
        return;
    }
    let is_shown = |row: &HistRow| {
        let comm = row.context.comm.map(|comm| &profile.comms[comm.index()]);
        passes(profile, &options.filters, &row.place)
            && comm.is_none_or(|comm| listed(&options.filters.comms, comm))
    };
    let nesting = Nesting { profile, order, levels: &options.levels, is_shown };
    hists.places = Some(nesting.nest(&mut hists.rows));
}

fn has_chains(profile: &Profile, options: &HistsOptions) -> bool {
    profile.recording.has_callchains && options.count != Counted::Branches
}

fn draws_chains(profile: &Profile, options: &HistsOptions) -> bool {
    has_chains(profile, options) && options.chains.mode != ChainMode::None
}

fn hists_with<T>(
    profile: &Profile,
    event: EventId,
    options: &HistsOptions,
    is_ordered: bool,
    more: impl FnOnce(&mut Pass<'_>, &SampleFilter, &mut Hists) -> T,
) -> (Hists, T) {
    let keys = options.sort_keys();
    let mut places = Places::new(profile, keys);
    let tree = Tree::new(profile, &mut places, options.inline, options.self_time);
    let of_event = || profile.rows.iter().filter(|r| r.event == event);
    // Without keys, each filter looks at samples.
    let filtered = SampleFilter::new(&options.filters, &[]);
    let pattern = options.parent.as_ref();
    let parents = pattern.map_or_else(Parents::default, |pattern| {
        Parents::new(profile, &pattern.0, options.chain_order())
    });
    let counted =
        || of_event().filter(|r| !options.relative || filtered.passes(profile, &parents, r));
    let total_period = counted().map(|r| r.period).sum();
    let weigher = Weigher::new(options.shares, of_event().map(|r| r.period).sum());
    let total_latency = match weigher.has_latency() {
        true => counted().map(|r| weigher.split(weigher.weigh(profile, r)).1).sum(),
        false => 0,
    };
    let total_weight = if options.shares.by_latency() { total_latency } else { total_period };
    let order = KeyOrder::new(profile);
    let pruning = Pruning::new(&order, &options.chains, total_weight);
    let mut hists = Hists {
        event,
        total_period,
        total_samples: counted().map(|r| r.samples).sum(),
        shares: options.shares,
        total_latency,
        latency_unit: weigher.latency_unit(),
        unknown: unknown_parallelism(profile, counted()),
        children: options.children
            && has_chains(profile, options)
            && options.count != Counted::Weights
            && !options.is_hierarchy(),
        chain_min_hit: pruning.min_hit,
        rows: Vec::new(),
        places: None,
        members: Vec::new(),
    };
    let mut filter = SampleFilter::new(&options.filters, keys);
    if options.hides_rows() && keys.contains(&SortKey::Comm) {
        filter.take_all_comms();
    }
    let maker = ContextMaker::new(profile, keys, &parents);
    let groups = context::group(profile, of_event(), &maker, &filter);
    let mut pass = Pass {
        profile,
        tree: &tree,
        places: &places,
        options,
        parents: &parents,
        cpu_modes: options.wants_cpu_modes(),
        pruning,
        total_weight,
        weigher,
        children: hists.children,
        draw: draws_chains(profile, options),
        order: options.chain_order(),
        weights: Weights::new(tree.len(), weigher),
        lists: RowLists::new(tree.len()),
        row_of_place: vec![NONE; places.len()],
    };
    for group in &groups {
        pass.add_context(group, &mut hists.rows);
    }
    if options.examples > 0 && !profile.examples.is_empty() {
        examples::add(&pass, event, &maker, &filter, &mut hists.rows);
    }
    if is_ordered {
        arrange(profile, options, &mut hists);
    }
    let more = more(&mut pass, &filter, &mut hists);
    (hists, more)
}

/// Samples of unknown parallelism, and the sum of their periods.
fn unknown_parallelism<'r>(
    profile: &Profile,
    rows: impl Iterator<Item = &'r SampleRow>,
) -> (u64, u64) {
    if profile.parallelism.is_none() {
        return (0, 0);
    }
    let unknown = rows.filter(|r| {
        profile.facets_of(r).and_then(|facets| facets.parallelism) == Some(Parallelism::Unknown)
    });
    unknown.fold((0, 0), |(samples, period), r| (samples + r.samples, period + r.period))
}
