//! Call-chain trees in text.
//!
//! The layout is perf's: a left margin of twelve columns; one chain alone hangs on `---`; each
//! branching moves eleven columns to the right, with a `|` where further branches follow.

use std::fmt::Write as _;

use whit_profile::model::Profile;
use whit_types::pad;

use super::StdioOptions;
use super::colour::Colour;
use crate::hists::{ChainEntry, ChainMode, ChainOptions, ChainTree, Hists, SortKey, percent};

const MARGIN: &str = "            ";
const FLAT_MARGIN: &str = "                ";
const BAR: &str = "|          ";
const GAP: &str = "           ";

/// The style of a row's tree.
pub(super) struct TreeStyle<'a> {
    pub(super) profile: &'a Profile,
    pub(super) chains: &'a ChainOptions,
    pub(super) colour: Colour,
    /// Sum of the weights by which rows are ordered.
    pub(super) total: u64,
    /// Smallest weight of a flat chain.
    pub(super) min_hit: u64,
    /// True where the first function of a lone chain repeats the row's first column.
    pub(super) skip_first: bool,
}

impl<'a> TreeStyle<'a> {
    /// That of the trees of an event.
    pub(super) fn of(profile: &'a Profile, hists: &Hists, options: &'a StdioOptions) -> Self {
        TreeStyle {
            profile,
            chains: &options.hists.chains,
            colour: options.colour,
            total: hists.total_weight(),
            min_hit: hists.chain_min_hit,
            skip_first: options.hists.sort_keys().first() == Some(&SortKey::Symbol),
        }
    }
}

impl TreeStyle<'_> {
    /// Appends the tree of a row of weight `row_period`.
    pub(super) fn write(&self, tree: &ChainTree, row_period: u64, out: &mut String) {
        match self.chains.mode {
            ChainMode::None => {}
            ChainMode::Graph | ChainMode::Fractal => self.write_graph(tree, row_period, out),
            ChainMode::Flat => self.write_flat(tree, out),
            ChainMode::Folded => self.write_folded(tree, out),
        }
    }

    fn write_graph(&self, tree: &ChainTree, row_period: u64, out: &mut String) {
        let before = out.len();
        let mut level = tree.roots.as_slice();
        let mut indent = 0;
        let lone = match level {
            [root] => Some(&tree.nodes[*root as usize]),
            _ => None,
        };
        if let Some(node) = lone.filter(|n| n.cumulative() == row_period) {
            if self.write_lone(&node.entries, out) {
                indent = 3;
            }
            level = &node.children;
        }
        let total = match self.chains.mode {
            ChainMode::Fractal => row_period,
            _ => self.total,
        };
        Drawing { style: self, tree, indent, bars: vec![true], out }.write(level, total);
        if out.len() > before {
            out.push('\n');
        }
    }

    /// A chain that holds all of the row needs no percentage. True where anything was written.
    fn write_lone(&self, entries: &[ChainEntry], out: &mut String) -> bool {
        let limit = match self.chains.print_limit {
            0 => usize::MAX,
            limit => limit as usize,
        };
        let mut begun = false;
        for entry in entries.iter().skip(usize::from(self.skip_first)).take(limit) {
            if begun {
                let _ = write!(out, "{MARGIN}   ");
            } else {
                let _ = write!(out, "{MARGIN}|\n{MARGIN}---");
                begun = true;
            }
            self.write_entry(*entry, out);
            out.push('\n');
        }
        begun
    }

    fn write_flat(&self, tree: &ChainTree, out: &mut String) {
        for node in self.limited_ends(tree) {
            let share = percent(tree.nodes[node as usize].cumulative(), self.total);
            let text = format_args!("{share:.2}%");
            let _ = writeln!(out, "{GAP}{}", self.colour.percent(share, text));
            for entry in tree.path(node) {
                out.push_str(FLAT_MARGIN);
                self.write_entry(entry, out);
                out.push('\n');
            }
            out.push('\n');
        }
    }

    fn write_folded(&self, tree: &ChainTree, out: &mut String) {
        for node in self.limited_ends(tree) {
            let share = percent(tree.nodes[node as usize].hit, self.total);
            let text = format_args!("{share:.2}%");
            let _ = write!(out, "{} ", self.colour.percent(share, text));
            for (i, entry) in tree.path(node).into_iter().enumerate() {
                if i > 0 {
                    out.push(';');
                }
                self.write_entry(entry, out);
            }
            out.push('\n');
        }
    }

    fn limited_ends(&self, tree: &ChainTree) -> Vec<u32> {
        let mut ends = tree.ends(self.min_hit);
        if self.chains.print_limit > 0 {
            ends.truncate(self.chains.print_limit as usize);
        }
        ends
    }

    fn write_entry(&self, entry: ChainEntry, out: &mut String) {
        let function = &self.profile.functions[entry.function.index()];
        match super::symbol_address(function) {
            // C's `%#x` gives zero no prefix.
            Some(0) => out.push('0'),
            Some(address) => {
                let _ = write!(out, "{address:#x}");
            }
            None => out.push_str(&function.name.escaped()),
        }
        if entry.inlined {
            out.push_str(" (inlined)");
        }
    }
}

/// A tree being drawn. `bars` says for each depth whether a bar still stands there.
struct Drawing<'a, 'o> {
    style: &'a TreeStyle<'a>,
    tree: &'a ChainTree,
    indent: usize,
    bars: Vec<bool>,
    out: &'o mut String,
}

/// One branching whose branches are being drawn.
struct Level<'a> {
    nodes: &'a [u32],
    next: usize,
    total: u64,
    remaining: u64,
}

impl<'a> Drawing<'a, '_> {
    /// Draws the branches and all below, with a stack of its own: chains can be thousands deep.
    fn write(&mut self, nodes: &'a [u32], total: u64) {
        let mut levels = vec![Level { nodes, next: 0, total, remaining: total }];
        while let Some(level) = levels.last_mut() {
            let depth = self.bars.len();
            let limit = self.style.chains.print_limit as usize;
            let at_limit = limit > 0 && level.next == limit;
            let Some(&id) = level.nodes.get(level.next).filter(|_| !at_limit) else {
                let (remaining, total) = (level.remaining, level.total);
                self.write_rest(remaining, total);
                levels.pop();
                self.bars.pop();
                continue;
            };
            level.next += 1;
            let node = &self.tree.nodes[id as usize];
            let cumulative = node.cumulative();
            level.remaining = level.remaining.saturating_sub(cumulative);
            let fractal = self.style.chains.mode == ChainMode::Fractal;
            let last = level.next == level.nodes.len() && !(fractal && level.remaining > 0);
            let share = percent(cumulative, level.total);
            let total = if fractal { node.children_hit } else { level.total };
            self.bars[depth - 1] = true;
            self.write_line_of_bars();
            self.bars[depth - 1] = !last;
            self.write_run(&node.entries, share);
            levels.push(Level { nodes: &node.children, next: 0, total, remaining: total });
            self.bars.push(true);
        }
    }

    fn write_margin(&mut self) {
        let _ = write!(self.out, "{MARGIN}{}", pad::blanks(self.indent));
    }

    fn write_line_of_bars(&mut self) {
        self.write_margin();
        for &bar in &self.bars {
            self.out.push_str(if bar { BAR } else { GAP });
        }
        self.out.push('\n');
    }

    fn write_run(&mut self, entries: &[ChainEntry], share: f64) {
        for (i, &entry) in entries.iter().enumerate() {
            self.write_branch_start((i == 0).then_some(share));
            self.style.write_entry(entry, self.out);
            self.out.push('\n');
        }
    }

    /// The bars, and for the first function of a branch the share in place of the last gap.
    fn write_branch_start(&mut self, share: Option<f64>) {
        self.write_margin();
        for (i, &bar) in self.bars.iter().enumerate() {
            self.out.push(if bar { '|' } else { ' ' });
            match share.filter(|_| i + 1 == self.bars.len()) {
                Some(share) => {
                    let text = format_args!("{share:.2}%");
                    let _ = write!(self.out, "--{}--", self.style.colour.percent(share, text));
                }
                None => self.out.push_str(&GAP[1..]),
            }
        }
    }

    /// With percentages of the parent, the omitted chains are shown as one more branch.
    fn write_rest(&mut self, remaining: u64, total: u64) {
        let fractal = self.style.chains.mode == ChainMode::Fractal;
        if fractal && remaining > 0 && remaining != total {
            if let Some(bar) = self.bars.last_mut() {
                *bar = false;
            }
            self.write_branch_start(Some(percent(remaining, total)));
            self.out.push_str("[...]\n");
        }
    }
}
