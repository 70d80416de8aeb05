//! From samples to rows: one pass per context.

use std::sync::Arc;

use whit_estimate::Parts;
use whit_profile::Counted;
use whit_profile::model::{EventId, FunctionId, NodeId, Profile, SampleRow};
use whit_profile::parallelism::Parallelism;

use super::block_rows::{self, RowSums};
use super::chain_tree::{KeyOrder, Pruning};
use super::chains::{self, RowLists, Weights};
use super::code_location::{CodeLocation, Places};
use super::context::{
    self, ContextMaker, ContextRows, SampleFilter, has_part, listed, lists_function,
};
use super::examples;
use super::hierarchy::Nesting;
use super::latency::Weigher;
use super::options::{ChainMode, ChainOrder, Filters, HistsOptions};
use super::parents::Parents;
use super::row_order;
use super::sort_key::SortKey;
use super::tree::{NONE, Tree};
use super::{ChainTree, HistRow, Hists, percent};

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

/// The inputs and tables that all contexts share. Tables have an entry for each node and are used again.
pub(super) struct Pass<'a> {
    profile: &'a Profile,
    tree: &'a Tree,
    places: &'a Places,
    options: &'a HistsOptions,
    parents: &'a Parents,
    cpu_modes: bool,
    pruning: Pruning<'a>,
    total_weight: u64,
    weigher: Weigher,
    children: bool,
    draw: bool,
    order: ChainOrder,
    weights: Weights,
    lists: RowLists,
    row_of_place: Vec<u32>,
}

impl<'a> Pass<'a> {
    pub(super) fn profile(&self) -> &'a Profile {
        self.profile
    }

    pub(super) fn keys(&self) -> &'a [SortKey] {
        self.options.sort_keys()
    }

    pub(super) fn parents(&self) -> &'a Parents {
        self.parents
    }

    /// The row's part that the leaf of a call chain gives.
    pub(super) fn place_of(&self, node: NodeId) -> CodeLocation {
        let shown = self.tree.shown[node.index()];
        self.places.get(self.tree.self_place[shown as usize])
    }

    /// At most so many single samples are shown of a row.
    pub(super) fn max_examples(&self) -> usize {
        self.options.examples
    }

    /// The rows of other samples of the same profile, in no particular order.
    pub(super) fn rows_without_chains(&mut self, groups: &[ContextRows<'_>]) -> Vec<HistRow> {
        let drawn = std::mem::replace(&mut self.draw, false);
        let mut rows = Vec::new();
        for group in groups {
            self.add_context(group, &mut rows);
        }
        self.draw = drawn;
        rows
    }

    fn add_context(&mut self, group: &ContextRows<'_>, out: &mut Vec<HistRow>) {
        self.weights.load(self.tree, self.profile, self.weigher, &group.rows);
        let first = out.len();
        self.add_self(group, first, out);
        if self.children {
            self.add_children(group, first, out);
        }
        for row in &mut out[first..] {
            if !self.children {
                row.children_period = row.self_period;
                row.children_samples = row.self_samples;
                row.children_latency = row.self_latency;
            }
        }
        self.link_rows();
        for (i, row) in out[first..].iter_mut().enumerate() {
            if self.draw && self.is_drawn(row) {
                row.chains = self.draw_chains(i);
            }
        }
        self.forget_rows();
        if self.options.hides_rows() {
            return;
        }
        let mut at = first;
        for i in first..out.len() {
            if passes(self.profile, &self.options.filters, &out[i].place) {
                out.swap(at, i);
                at += 1;
            }
        }
        out.truncate(at);
    }

    fn add_self(&mut self, group: &ContextRows<'_>, first: usize, out: &mut Vec<HistRow>) {
        for &node in &self.weights.touched {
            let i = node as usize;
            if self.weights.own_samples[i] == 0 {
                continue;
            }
            let slot = row_slot(
                &mut self.row_of_place,
                self.tree.self_place[i],
                group,
                self.places,
                first,
                out,
            );
            let row = &mut out[slot];
            let (period, latency) = self.weigher.split(self.weights.own_pair(i));
            row.self_period += period;
            row.self_latency += latency;
            row.self_samples += self.weights.own_samples[i];
            if self.cpu_modes && self.profile.frames[self.profile.nodes[i].frame.index()].kernel {
                row.kernel_period += self.weights.own[i];
            }
            row.max_depth = row.max_depth.max(self.tree.depth[i]);
            row.first_thread = row.first_thread.min(self.weights.own_thread[i]);
            if self.tree.self_at[i] == NONE {
                row.children_period += period;
                row.children_latency += latency;
                row.children_samples += self.weights.own_samples[i];
            }
        }
    }

    /// Adds each subtree's weight to the row of its top frame, unless the same row stands further
    /// up: then the samples count there already.
    fn add_children(&mut self, group: &ContextRows<'_>, first: usize, out: &mut Vec<HistRow>) {
        for &node in &self.weights.touched {
            let i = node as usize;
            let slot = row_slot(
                &mut self.row_of_place,
                self.tree.place[i],
                group,
                self.places,
                first,
                out,
            );
            let row = &mut out[slot];
            row.first_thread = row.first_thread.min(self.weights.thread[i]);
            let outermost = self.tree.same_above[i] == NONE;
            let chain_length = match self.order {
                ChainOrder::Callee => self.tree.depth[i],
                ChainOrder::Caller if outermost => self.weights.deepest[i] - self.tree.depth[i] + 1,
                ChainOrder::Caller => 0,
            };
            row.max_depth = row.max_depth.max(chain_length);
            if outermost {
                let (period, latency) = self.weigher.split(self.weights.below_pair(i));
                row.children_period += period;
                row.children_latency += latency;
                row.children_samples += self.weights.below_samples[i];
            }
        }
    }

    /// Lists the nodes of each row, for drawing.
    fn link_rows(&mut self) {
        if self.draw {
            let rows_of = |place: u32| self.row_of_place[place as usize];
            self.lists.link(self.tree, &self.weights, self.children, rows_of);
        }
    }

    fn forget_rows(&mut self) {
        for node in &self.weights.touched {
            let i = *node as usize;
            self.row_of_place[self.tree.place[i] as usize] = NONE;
            self.row_of_place[self.tree.self_place[i] as usize] = NONE;
        }
        self.lists.clear();
    }

    fn is_drawn(&self, row: &HistRow) -> bool {
        let shares = self.options.shares;
        let weight = match self.children {
            true => row.children_weight(shares),
            false => row.self_weight(shares),
        };
        let heavy =
            self.options.chains.mode == ChainMode::Fractal || weight >= self.pruning.min_hit;
        heavy
            && percent(weight, self.total_weight) >= self.options.percent_limit
            && passes(self.profile, &self.options.filters, &row.place)
    }

    fn draw_chains(&mut self, row: usize) -> ChainTree {
        let input = chains::Input {
            tree: self.tree,
            weights: &mut self.weights,
            lists: &self.lists,
            row,
            children: self.children,
        };
        match self.order {
            ChainOrder::Caller => chains::from_callers(input, &self.pruning),
            ChainOrder::Callee => chains::from_callees(input, &self.pruning),
        }
    }
}

/// True for a place that the filters by binary and function let pass.
fn passes(profile: &Profile, filters: &Filters, place: &CodeLocation) -> bool {
    let Filters { dsos, symbols, symbol_part, .. } = filters;
    let dso_passes = place.dso.is_none_or(|d| {
        let dso = &profile.dsos[d.index()];
        listed(dsos, &dso.short_name) || listed(dsos, &dso.path)
    });
    let passes = |function: FunctionId| {
        let function = &profile.functions[function.index()];
        lists_function(symbols, &function.name) && has_part(symbol_part.as_deref(), function)
    };
    dso_passes && place.function.is_none_or(passes)
}

/// The index in `out` of the row for a place, made on first sight. `row_of_place` counts rows from
/// the context's `first`.
fn row_slot(
    row_of_place: &mut [u32],
    place: u32,
    group: &ContextRows<'_>,
    places: &Places,
    first: usize,
    out: &mut Vec<HistRow>,
) -> usize {
    let slot = &mut row_of_place[place as usize];
    if *slot == NONE {
        *slot = (out.len() - first) as u32;
        out.push(HistRow {
            context: Arc::clone(&group.context),
            place: places.get(place),
            self_period: 0,
            self_samples: 0,
            children_period: 0,
            children_samples: 0,
            self_latency: 0,
            children_latency: 0,
            kernel_period: 0,
            max_depth: 0,
            first_thread: u32::MAX,
            members: Box::default(),
            examples: Box::default(),
            intervals: None,
            chains: ChainTree::default(),
        });
    }
    first + *slot as usize
}
