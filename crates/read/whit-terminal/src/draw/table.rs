//! The table of rows.

use super::Canvas;
use crate::state::State;
use crate::table_view::{Line, Mark, entry_name, entry_of, node_of};
use ratatui::style::Style;
use whit_view::hists::percent;
use whit_view::short_name::shorten;
use whit_view::width::share_out_before_last;

/// Columns in front of a row, for the mark that it can be opened.
const MARK: usize = 2;
/// Columns by which a level of call chains stands further right.
const INDENT: usize = 2;
/// Rows that decide how wide numbers are.
const MEASURED_ROWS: usize = 500;
/// Width of the share of a call chain.
const SHARE: usize = 7;

/// Widths of the columns.
pub(super) struct Layout {
    widths: Vec<usize>,
}

impl Layout {
    pub(super) fn of(state: &State, width: usize) -> Layout {
        let columns = state.columns.columns();
        let natural: Vec<usize> = columns
            .iter()
            .enumerate()
            .map(|(place, column)| match column.is_number {
                true => number_width(state, place).max(column.heading.chars().count()),
                false => column.width,
            })
            .collect();
        let is_name = |place: &usize| !columns[*place].is_number;
        let names: Vec<usize> = (0..columns.len()).filter(is_name).collect();
        let wanted: Vec<usize> = names.iter().map(|place| natural[*place]).collect();
        let taken = natural.iter().sum::<usize>() - wanted.iter().sum::<usize>();
        let available = width.saturating_sub(MARK + columns.len() + taken);
        let mut widths = natural;
        let given = share_out_before_last(&wanted, available);
        for (place, width) in names.into_iter().zip(given) {
            widths[place] = width;
        }
        Layout { widths }
    }

    pub(super) fn draw_head(&self, state: &State, canvas: &mut Canvas<'_>) {
        let style = canvas.theme.head();
        canvas.paint(0, style);
        let mut x = MARK;
        for (column, width) in state.columns.columns().iter().zip(&self.widths) {
            let heading: String = column.heading.chars().take(*width).collect();
            match column.is_number {
                true => canvas.put_right(x + width, 0, &heading, style),
                false => drop(canvas.put(x, 0, &heading, style)),
            }
            x += width + 1;
        }
    }

    pub(super) fn draw(&self, state: &State, canvas: &mut Canvas<'_>) {
        let view = &state.table;
        if view.lines.is_empty() {
            return draw_empty(state, canvas);
        }
        let shown = view.lines.iter().enumerate().skip(view.cursor.top).take(canvas.height());
        for (y, (number, line)) in shown.enumerate() {
            match *line {
                Line::Row(row) => self.draw_row(state, canvas, y, row),
                Line::Chain { row, node, entry, depth } => {
                    draw_chain(state, canvas, y, (row, node, entry, depth));
                }
            }
            if number == view.cursor.at {
                let style = canvas.theme.chosen();
                canvas.paint(y, style);
            }
        }
    }

    fn draw_row(&self, state: &State, canvas: &mut Canvas<'_>, y: usize, place: usize) {
        let (profile, hists) = (&state.profile, &state.hists);
        let row = &hists.rows[place];
        let mark = state.table.mark(hists, Line::Row(place));
        canvas.put(0, y, sign(mark), Style::new());
        let mut x = MARK;
        for (number, (column, width)) in
            state.columns.columns().iter().zip(&self.widths).enumerate()
        {
            let cell = state.columns.cell(profile, hists, row, number, *width);
            let share = state.columns.share(hists, row, number);
            let style = share.map_or(Style::new(), |share| canvas.theme.share(share));
            match column.is_number {
                true => canvas.put_right(x + width, y, &cell, style),
                false => drop(canvas.put(x, y, &cell, style)),
            }
            x += width + 1;
        }
    }
}

fn number_width(state: &State, place: usize) -> usize {
    let rows = state.hists.rows.iter().take(MEASURED_ROWS);
    let cells = rows.map(|row| {
        state.columns.cell(&state.profile, &state.hists, row, place, usize::MAX).chars().count()
    });
    cells.max().unwrap_or(0)
}

fn sign(mark: Mark) -> &'static str {
    match mark {
        Mark::Open => "-",
        Mark::Closed => "+",
        Mark::None => " ",
    }
}

fn draw_chain(
    state: &State,
    canvas: &mut Canvas<'_>,
    y: usize,
    (row, node, entry, depth): (usize, u32, usize, usize),
) {
    let hists = &state.hists;
    let x = MARK + INDENT * (depth + 1);
    let mut name_at = x + INDENT + SHARE + 1;
    if entry == 0 {
        let mark = state.table.mark(hists, Line::Chain { row, node, entry, depth });
        canvas.put(x, y, sign(mark), Style::new());
        let share = percent(node_of(hists, row, node).cumulative(), hists.total_weight());
        let style = canvas.theme.share(share);
        canvas.put_right(x + INDENT + SHARE, y, &format!("{share:.2}%"), style);
    } else {
        name_at += INDENT;
    }
    let name = entry_name(&state.profile, entry_of(hists, row, node, entry));
    let room = canvas.width().saturating_sub(name_at);
    canvas.put(name_at, y, &shorten(&name, room), Style::new());
}

fn draw_empty(state: &State, canvas: &mut Canvas<'_>) {
    let limit = state.options.hists.percent_limit;
    let lines = match (state.event_group(), state.zooms.is_empty()) {
        (None, _) => vec![
            format!("The recording {} has no samples.", state.profile.recording.path),
            "Press i for its header and warnings, q to quit.".to_owned(),
        ],
        (Some(_), false) => {
            vec!["No row passes the filters: Esc takes the last one away.".to_owned()]
        }
        (Some(_), true) => vec![format!("No row reaches {limit}%: L changes the limit.")],
    };
    for (y, line) in lines.iter().enumerate() {
        canvas.put(MARK, y + 1, line, Style::new());
    }
}
