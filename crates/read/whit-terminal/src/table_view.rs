//! Rows, some with open call chains.

use crate::cursor::Cursor;
use rustc_hash::FxHashSet;
use whit_profile::model::{FunctionId, Profile};
use whit_view::hists::{ChainEntry, ChainNode, HistRow, Hists, Repeats};

/// Lines that open call chains may make; further ones stay closed.
const MAX_LINES: usize = 200_000;

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// A row, by its place.
    Row(usize),
    /// A function of a row's call chains.
    Chain {
        row: usize,
        node: u32,
        /// Its place in the node, which is a run of functions without a branch.
        entry: usize,
        depth: usize,
    },
}

/// Whether a line has more below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    Open,
    Closed,
    None,
}

/// The table's lines, as far as they are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableView {
    pub(crate) cursor: Cursor,
    pub(crate) lines: Vec<Line>,
    pub(crate) open_rows: FxHashSet<usize>,
    pub(crate) open_nodes: FxHashSet<(usize, u32)>,
    /// Rows that others show.
    pub(crate) repeats: Repeats,
}

impl TableView {
    /// For new rows: all closed.
    pub(crate) fn reset(&mut self, hists: &Hists, repeats: Repeats, limit: f64, height: usize) {
        self.repeats = repeats;
        self.open_rows.clear();
        self.open_nodes.clear();
        self.arrange(hists, limit, height);
        self.cursor = Cursor::default();
    }

    /// Makes the lines anew; the chosen one stays chosen.
    pub(crate) fn arrange(&mut self, hists: &Hists, limit: f64, height: usize) {
        let chosen = self.lines.get(self.cursor.at).copied();
        self.lines.clear();
        let total = hists.total_weight();
        for (row, of_row) in hists.rows.iter().enumerate() {
            if whit_view::hists::percent(hists.weight(of_row), total) < limit
                || self.repeats.is_repeated(row)
            {
                continue;
            }
            self.lines.push(Line::Row(row));
            if self.open_rows.contains(&row) {
                self.push_chains(row, of_row);
            }
        }
        let at = chosen.and_then(|chosen| self.lines.iter().position(|line| *line == chosen));
        self.cursor.go(at.unwrap_or(0), self.lines.len(), height);
    }

    fn push_chains(&mut self, row: usize, of_row: &HistRow) {
        let chains = &of_row.chains;
        let mut work: Vec<(u32, usize)> =
            chains.roots.iter().rev().map(|root| (*root, 0)).collect();
        while let Some((node, depth)) = work.pop() {
            let of_node = &chains.nodes[node as usize];
            let is_open = self.open_nodes.contains(&(row, node));
            let shown = if is_open { of_node.entries.len() } else { 1 };
            for entry in 0..shown {
                if self.lines.len() >= MAX_LINES {
                    return;
                }
                self.lines.push(Line::Chain { row, node, entry, depth });
            }
            if is_open {
                work.extend(of_node.children.iter().rev().map(|child| (*child, depth + 1)));
            }
        }
    }

    pub(crate) fn chosen(&self) -> Option<Line> {
        self.lines.get(self.cursor.at).copied()
    }

    /// Whether a line can be opened.
    pub(crate) fn mark(&self, hists: &Hists, line: Line) -> Mark {
        let (has_more, is_open) = match line {
            Line::Row(row) => {
                (!hists.rows[row].chains.roots.is_empty(), self.open_rows.contains(&row))
            }
            Line::Chain { entry: 1.., .. } => (false, false),
            Line::Chain { row, node, .. } => {
                let of_node = node_of(hists, row, node);
                let has_more = of_node.entries.len() > 1 || !of_node.children.is_empty();
                (has_more, self.open_nodes.contains(&(row, node)))
            }
        };
        match (has_more, is_open) {
            (false, _) => Mark::None,
            (true, true) => Mark::Open,
            (true, false) => Mark::Closed,
        }
    }

    /// Opens or closes the chosen line. A chain without a branch opens as a whole.
    pub(crate) fn set_open(&mut self, hists: &Hists, limit: f64, height: usize, open: bool) {
        match self.chosen() {
            Some(Line::Row(row)) if open => {
                self.open_rows.insert(row);
                self.open_lone(hists, row, &hists.rows[row].chains.roots);
            }
            Some(Line::Row(row)) => drop(self.open_rows.remove(&row)),
            Some(Line::Chain { row, node, .. }) if open => {
                self.open_nodes.insert((row, node));
                self.open_lone(hists, row, &node_of(hists, row, node).children);
            }
            Some(Line::Chain { row, node, .. }) => {
                self.open_nodes.remove(&(row, node));
            }
            None => {}
        }
        self.arrange(hists, limit, height);
    }

    fn open_lone(&mut self, hists: &Hists, row: usize, nodes: &[u32]) {
        let mut below = nodes;
        while let [only] = below {
            self.open_nodes.insert((row, *only));
            below = &node_of(hists, row, *only).children;
        }
    }

    /// Opens or closes all of the chosen row.
    pub(crate) fn set_row_open(&mut self, hists: &Hists, limit: f64, height: usize, open: bool) {
        let Some(row) = self.chosen().map(row_of) else { return };
        self.choose_row(row, height);
        self.open_all_of(hists, row, open);
        self.arrange(hists, limit, height);
    }

    /// Opens or closes all rows.
    pub(crate) fn set_all_open(&mut self, hists: &Hists, limit: f64, height: usize, open: bool) {
        if let Some(row) = self.chosen().map(row_of) {
            self.choose_row(row, height);
        }
        self.open_rows.clear();
        self.open_nodes.clear();
        if open {
            (0..hists.rows.len()).for_each(|row| self.open_all_of(hists, row, true));
        }
        self.arrange(hists, limit, height);
    }

    pub(crate) fn is_row_open(&self, row: usize) -> bool {
        self.open_rows.contains(&row)
    }

    fn open_all_of(&mut self, hists: &Hists, row: usize, open: bool) {
        let nodes = 0..hists.rows[row].chains.nodes.len() as u32;
        if open {
            self.open_rows.insert(row);
            self.open_nodes.extend(nodes.map(|node| (row, node)));
        } else {
            self.open_rows.remove(&row);
            self.open_nodes.retain(|(of, _)| *of != row);
        }
    }

    fn choose_row(&mut self, row: usize, height: usize) {
        if let Some(at) = self.lines.iter().position(|line| *line == Line::Row(row)) {
            self.cursor.go(at, self.lines.len(), height);
        }
    }

    /// Chooses the line that the chosen one hangs below; false at a row.
    pub(crate) fn choose_parent(&mut self, hists: &Hists, height: usize) -> bool {
        let Some(Line::Chain { row, node, entry, .. }) = self.chosen() else { return false };
        let parent = match (entry, node_of(hists, row, node).parent) {
            (1.., _) => Some(node),
            (_, parent) => parent,
        };
        let is_parent = |line: &Line| match (*line, parent) {
            (Line::Row(of), None) => of == row,
            (Line::Chain { row: of, node, entry: 0, .. }, Some(parent)) => {
                of == row && node == parent
            }
            _ => false,
        };
        if let Some(at) = self.lines.iter().position(is_parent) {
            self.cursor.go(at, self.lines.len(), height);
        }
        true
    }

    /// The function of the chosen line.
    pub(crate) fn function(&self, hists: &Hists) -> Option<FunctionId> {
        match self.chosen()? {
            Line::Row(row) => hists.rows[row].place.function,
            Line::Chain { row, node, entry, .. } => {
                Some(entry_of(hists, row, node, entry).function)
            }
        }
    }

    /// The row of the chosen line.
    pub(crate) fn row<'h>(&self, hists: &'h Hists) -> Option<&'h HistRow> {
        hists.rows.get(row_of(self.chosen()?))
    }
}

fn row_of(line: Line) -> usize {
    match line {
        Line::Row(row) | Line::Chain { row, .. } => row,
    }
}

pub(crate) fn node_of(hists: &Hists, row: usize, node: u32) -> &ChainNode {
    &hists.rows[row].chains.nodes[node as usize]
}

pub(crate) fn entry_of(hists: &Hists, row: usize, node: u32, entry: usize) -> ChainEntry {
    node_of(hists, row, node).entries[entry]
}

/// The name of a function of a call chain, escaped.
pub(crate) fn entry_name(profile: &Profile, entry: ChainEntry) -> String {
    let name = profile.functions[entry.function.index()].name.escaped();
    let mark = if entry.inlined { " (inlined)" } else { "" };
    format!("{name}{mark}")
}
