//! Open and chosen rows of a table, kept from one profile to the next.

use super::State;
use crate::table_view::{Line, entry_name, node_of};
use rustc_hash::FxHashSet;

/// Names that tell rows apart are cut at this width.
const LABEL_COLUMNS: usize = 1000;

/// Which rows and call chains are open, and the chosen line, by names: numbers change with each profile.
pub(crate) struct OpenRows {
    rows: FxHashSet<String>,
    /// Row, and the functions down to each open one.
    chains: FxHashSet<(String, Vec<String>)>,
    chosen: Option<(String, Vec<String>)>,
    top: usize,
}

impl OpenRows {
    /// Those of the table on the screen.
    pub(crate) fn of(state: &State) -> OpenRows {
        let (table, hists) = (&state.table, &state.hists);
        let mut open = OpenRows {
            rows: FxHashSet::default(),
            chains: FxHashSet::default(),
            chosen: None,
            top: table.cursor.top,
        };
        open.rows.extend(table.open_rows.iter().map(|row| label(state, *row)));
        for (row, node) in &table.open_nodes {
            let above = path_above(state, *row, *node);
            let count = node_of(hists, *row, *node).entries.len();
            let whole = (0..count).map(|entry| path_to(state, &above, *row, *node, entry));
            open.chains.extend(whole.map(|path| (label(state, *row), path)));
        }
        // People who stay at the top watch the top, whichever row is there.
        open.chosen = table.chosen().filter(|_| table.cursor.at > 0).map(|line| match line {
            Line::Row(row) => (label(state, row), Vec::new()),
            Line::Chain { row, node, entry, .. } => {
                let above = path_above(state, row, node);
                (label(state, row), path_to(state, &above, row, node, entry))
            }
        });
        open
    }

    /// Opens and chooses the same in the table of another profile.
    pub(crate) fn restore(self, state: &mut State) {
        let (mut rows, mut nodes) = (FxHashSet::default(), FxHashSet::default());
        let mut chosen_row = None;
        let is_wanted = self.chosen.is_some() || !self.rows.is_empty() || !self.chains.is_empty();
        let count = if is_wanted { state.hists.rows.len() } else { 0 };
        for row in 0..count {
            let name = label(state, row);
            if self.chosen.as_ref().is_some_and(|(chosen, _)| *chosen == name) {
                chosen_row = Some(row);
            }
            if !self.rows.contains(&name) {
                continue;
            }
            rows.insert(row);
            for node in 0..state.hists.rows[row].chains.nodes.len() as u32 {
                let path = path_to(state, &path_above(state, row, node), row, node, 0);
                if self.chains.contains(&(name.clone(), path)) {
                    nodes.insert((row, node));
                }
            }
        }
        let (limit, height) = (state.options.hists.percent_limit, state.body_height());
        (state.table.open_rows, state.table.open_nodes) = (rows, nodes);
        state.table.arrange(&state.hists, limit, height);
        let lines = &state.table.lines;
        let place = |line: &Line| match (line, &self.chosen) {
            (Line::Row(of), Some((_, path))) => Some(*of) == chosen_row && path.is_empty(),
            (Line::Chain { row, node, entry, .. }, Some((_, path))) => {
                Some(*row) == chosen_row
                    && path_to(state, &path_above(state, *row, *node), *row, *node, *entry) == *path
            }
            (_, None) => false,
        };
        let row_itself = || lines.iter().position(|line| Some(*line) == chosen_row.map(Line::Row));
        let at = lines.iter().position(place).or_else(row_itself).unwrap_or(0);
        let count = lines.len();
        state.table.cursor.top = if self.chosen.is_some() { self.top } else { 0 };
        state.table.cursor.go(at, count, height);
    }
}

/// The names in a row.
fn label(state: &State, row: usize) -> String {
    let Some(of_row) = state.hists.rows.get(row) else { return String::new() };
    let columns = state.columns.columns().iter().enumerate();
    let names = columns.filter(|(_, column)| !column.is_number);
    let cells = names
        .map(|(at, _)| state.columns.cell(&state.profile, &state.hists, of_row, at, LABEL_COLUMNS));
    cells.collect::<Vec<_>>().join("\n")
}

/// The functions above a node, from the row down.
fn path_above(state: &State, row: usize, node: u32) -> Vec<String> {
    let mut runs = Vec::new();
    let mut at = node_of(&state.hists, row, node).parent;
    while let Some(node) = at {
        let of_node = node_of(&state.hists, row, node);
        runs.push(of_node.entries.iter().map(|entry| entry_name(&state.profile, *entry)));
        at = of_node.parent;
    }
    runs.into_iter().rev().flatten().collect()
}

fn path_to(state: &State, above: &[String], row: usize, node: u32, entry: usize) -> Vec<String> {
    let entries = &node_of(&state.hists, row, node).entries[..=entry];
    let own = entries.iter().map(|entry| entry_name(&state.profile, *entry));
    above.iter().cloned().chain(own).collect()
}
