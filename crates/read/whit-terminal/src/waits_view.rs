//! Call stacks by the time that threads waited in them.

use crate::cursor::Cursor;
use crate::source::Waits;
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::hash::BuildHasher;
use whit_profile::model::Profile;
use whit_view::hists::Filters;
use whit_view::switches::{CompactColumn, StackNode, StackTree, Stacks, is_shown};

/// Lines that open stacks may make.
const MAX_LINES: usize = 200_000;

/// A function of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WaitLine {
    pub(crate) node: u32,
    pub(crate) depth: usize,
}

/// The tree of waits, as far as it is open.
#[derive(Debug, Default)]
pub(crate) struct WaitsView {
    pub(crate) tree: StackTree,
    pub(crate) columns: Vec<CompactColumn>,
    pub(crate) lines: Vec<WaitLine>,
    pub(crate) cursor: Cursor,
    open: FxHashSet<u32>,
    limit: f64,
}

impl WaitsView {
    /// The stacks that the filters let pass; rows below the limit in every column are left out.
    pub(crate) fn new(waits: &Waits, filters: &Filters, inline: bool, limit: f64) -> WaitsView {
        let stacks = Stacks::new(&waits.profile, filters, inline);
        let tree = StackTree::of_waits(stacks, &waits.switches);
        let columns = CompactColumn::shown(&tree.total);
        let mut view = WaitsView { tree, columns, limit, ..WaitsView::default() };
        view.arrange(0);
        view
    }

    pub(crate) fn node(&self, node: u32) -> &StackNode {
        &self.tree.nodes[node as usize]
    }

    fn shown(&self, nodes: &[u32]) -> impl DoubleEndedIterator<Item = u32> {
        let shown = |node: &u32| is_shown(&self.node(*node).sums, &self.tree.total, self.limit);
        nodes.iter().copied().filter(shown).collect::<Vec<_>>().into_iter()
    }

    fn arrange(&mut self, height: usize) {
        let chosen = self.lines.get(self.cursor.at).copied();
        let roots = self.shown(&self.tree.roots).rev();
        let mut work: Vec<WaitLine> = roots.map(|node| WaitLine { node, depth: 0 }).collect();
        let mut lines = Vec::new();
        while let Some(line) = work.pop().filter(|_| lines.len() < MAX_LINES) {
            lines.push(line);
            if self.open.contains(&line.node) {
                let below = self.shown(&self.node(line.node).children).rev();
                work.extend(below.map(|node| WaitLine { node, depth: line.depth + 1 }));
            }
        }
        self.lines = lines;
        let at = chosen.and_then(|chosen| self.lines.iter().position(|line| *line == chosen));
        self.cursor.go(at.unwrap_or(0), self.lines.len(), height);
    }

    pub(crate) fn chosen(&self) -> Option<WaitLine> {
        self.lines.get(self.cursor.at).copied()
    }

    /// True where the line has others below it.
    pub(crate) fn has_more(&self, line: WaitLine) -> bool {
        self.shown(&self.node(line.node).children).next().is_some()
    }

    pub(crate) fn is_open(&self, line: WaitLine) -> bool {
        self.open.contains(&line.node)
    }

    /// Opens or closes the chosen line. A chain without a branch opens as a whole.
    pub(crate) fn set_open(&mut self, height: usize, open: bool) {
        let Some(line) = self.chosen() else { return };
        if !open {
            self.open.remove(&line.node);
            return self.arrange(height);
        }
        let mut at = line.node;
        loop {
            self.open.insert(at);
            let below: Vec<u32> = self.shown(&self.node(at).children).collect();
            match below[..] {
                [only] => at = only,
                _ => break,
            }
        }
        self.arrange(height);
    }

    /// Opens or closes all lines.
    pub(crate) fn set_all_open(&mut self, height: usize, open: bool) {
        self.open.clear();
        if open {
            self.open.extend(0..self.tree.nodes.len() as u32);
        }
        self.arrange(height);
    }

    /// Opens or closes the chosen line and all below it.
    pub(crate) fn set_row_open(&mut self, height: usize, open: bool) {
        let mut work: Vec<u32> = self.chosen().map(|line| line.node).into_iter().collect();
        while let Some(node) = work.pop() {
            match open {
                true => self.open.insert(node),
                false => self.open.remove(&node),
            };
            work.extend(&self.node(node).children);
        }
        self.arrange(height);
    }

    /// Opens and chooses the same functions as another view, of an earlier profile.
    pub(crate) fn take_over(
        &mut self,
        profile: &Profile,
        other: &WaitsView,
        of_other: &Profile,
        height: usize,
    ) {
        let (paths, of_others) = (self.paths(profile), other.paths(of_other));
        let of = |paths: &[u64], node: u32| paths.get(node as usize).copied();
        let open: FxHashSet<_> = other.open.iter().map(|node| of(&of_others, *node)).collect();
        let nodes = 0..self.tree.nodes.len() as u32;
        self.open = nodes.filter(|node| open.contains(&of(&paths, *node))).collect();
        self.arrange(height);
        let chosen = other.chosen().filter(|_| other.cursor.at > 0);
        let chosen = chosen.and_then(|line| of(&of_others, line.node));
        let is_chosen = |line: &WaitLine| chosen.is_some() && of(&paths, line.node) == chosen;
        let at = self.lines.iter().position(is_chosen).unwrap_or(0);
        self.cursor.top = other.cursor.top;
        self.cursor.go(at, self.lines.len(), height);
    }

    /// A number for each node, which stands for the functions down to it.
    fn paths(&self, profile: &Profile) -> Vec<u64> {
        let mut above = vec![0; self.tree.nodes.len()];
        let mut paths = Vec::with_capacity(above.len());
        for (node, above_it) in self.tree.nodes.iter().zip(0..) {
            let name = node.place.0.map(|(it, _)| profile.functions[it.index()].name.exact());
            let path = FxBuildHasher.hash_one((above[above_it], name));
            paths.push(path);
            node.children.iter().for_each(|child| above[*child as usize] = path);
        }
        paths
    }

    /// Chooses the line above in the tree; false at the top.
    pub(crate) fn choose_parent(&mut self, height: usize) -> bool {
        let Some(line) = self.chosen().filter(|line| line.depth > 0) else { return false };
        let above = self.lines[..self.cursor.at].iter().rposition(|it| it.depth < line.depth);
        self.cursor.go(above.unwrap_or(0), self.lines.len(), height);
        true
    }
}
