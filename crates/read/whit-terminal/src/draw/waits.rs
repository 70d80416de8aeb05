//! Call stacks with the time that threads waited in them.

use super::Canvas;
use crate::state::State;
use crate::waits_view::WaitsView;
use ratatui::style::Style;
use whit_view::short_name::shorten;
use whit_view::switches::CompactColumn;

/// Columns in front of a row, for the mark that it can be opened.
const MARK: usize = 2;
const INDENT: usize = 2;

/// Columns of numbers leave so many to names, where there are so many.
const ENOUGH_FOR_NAMES: usize = 40;

pub(super) fn draw_head(state: &State, canvas: &mut Canvas<'_>) {
    let style = canvas.theme.head();
    canvas.paint(0, style);
    let Some(view) = &state.waits_view else { return };
    let (columns, left_out) = columns(view, canvas.width());
    let mut x = MARK;
    for column in columns {
        canvas.put_right(x + column.width(), 0, column.heading, style);
        x += column.width() + 1;
    }
    let end = canvas.put(x, 0, "Waits in, called from", style);
    let wider = format!("wider: {}", left_out.join(", "));
    let width = canvas.width();
    if !left_out.is_empty() && end + 1 + wider.len() <= width {
        canvas.put_right(width, 0, &wider, style);
    }
}

/// The columns that fit, and the titles of the others.
fn columns(view: &WaitsView, width: usize) -> (Vec<CompactColumn>, Vec<&'static str>) {
    CompactColumn::fitting(view.columns.clone(), width.saturating_sub(MARK), ENOUGH_FOR_NAMES)
}

pub(super) fn draw(state: &State, canvas: &mut Canvas<'_>) {
    let Some(view) = &state.waits_view else { return };
    let profile = state.shown_profile();
    if view.lines.is_empty() {
        canvas.put(MARK, 1, "No wait passes the filters.", Style::new());
        return;
    }
    let (columns, _) = columns(view, canvas.width());
    let shown = view.lines.iter().enumerate().skip(view.cursor.top).take(canvas.height());
    for (y, (number, line)) in shown.enumerate() {
        let node = view.node(line.node);
        let mut x = MARK;
        for column in &columns {
            let cell = (column.cell)(&node.sums);
            canvas.put_right(x + column.width(), y, &cell, Style::new());
            x += column.width() + 1;
        }
        x += INDENT * line.depth;
        let mark = match (view.has_more(*line), view.is_open(*line)) {
            (false, _) => " ",
            (true, true) => "-",
            (true, false) => "+",
        };
        canvas.put(x, y, mark, Style::new());
        x += INDENT;
        let class = match node.classes.only() {
            Some(class) if line.depth == 0 => format!(" [{}]", class.name()),
            _ => String::new(),
        };
        let name = node.place.name(profile).to_string();
        let room = canvas.width().saturating_sub(x + class.len());
        let end = canvas.put(x, y, &shorten(&name, room), Style::new());
        let style = canvas.theme.name();
        canvas.put(end, y, &class, style);
        if number == view.cursor.at {
            let style = canvas.theme.chosen();
            canvas.paint(y, style);
        }
    }
}
