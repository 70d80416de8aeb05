//! One pass over the samples of each context, which gives its rows.

use std::sync::Arc;

use whit_profile::model::{FunctionId, NodeId, Profile};

use super::chain_tree::Pruning;
use super::chains::{self, RowLists, Weights};
use super::code_location::{CodeLocation, Places};
use super::context::{ContextRows, has_part, listed, names_function};
use super::latency::Weigher;
use super::options::{ChainMode, ChainOrder, Filters, HistsOptions};
use super::parents::Parents;
use super::sort_key::SortKey;
use super::tree::{NONE, Tree};
use super::{ChainTree, HistRow, percent};

/// The inputs and tables that all contexts share. Tables have an entry for each node and are used again.
pub(super) struct Pass<'a> {
    pub(super) profile: &'a Profile,
    pub(super) tree: &'a Tree,
    pub(super) places: &'a Places,
    pub(super) options: &'a HistsOptions,
    pub(super) parents: &'a Parents,
    pub(super) cpu_modes: bool,
    pub(super) pruning: Pruning<'a>,
    pub(super) total_weight: u64,
    pub(super) weigher: Weigher,
    pub(super) children: bool,
    pub(super) draw: bool,
    pub(super) order: ChainOrder,
    pub(super) weights: Weights,
    pub(super) lists: RowLists,
    pub(super) row_of_place: Vec<u32>,
}

impl<'a> Pass<'a> {
    pub(super) fn profile(&self) -> &'a Profile {
        self.profile
    }

    pub(super) fn keys(&self) -> &'a [SortKey] {
        self.options.sort_keys()
    }

    pub(super) fn is_by_own(&self) -> bool {
        self.options.is_by_own()
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

    /// Adds the rows of a context.
    pub(super) fn add_context(&mut self, group: &ContextRows<'_>, out: &mut Vec<HistRow>) {
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
pub(super) fn passes(profile: &Profile, filters: &Filters, place: &CodeLocation) -> bool {
    let Filters { dsos, symbols, symbol_part, .. } = filters;
    let dso_passes = place.dso.is_none_or(|d| {
        let dso = &profile.dsos[d.index()];
        listed(dsos, &dso.short_name) || listed(dsos, &dso.path)
    });
    let passes = |function: FunctionId| {
        let function = &profile.functions[function.index()];
        names_function(symbols, profile, function) && has_part(symbol_part.as_deref(), function)
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
