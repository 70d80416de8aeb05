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
/// Smaller percentages print as zero.
const LEAST_PRINTED: f64 = 0.005;
/// Title of the column of ranks.
const RANK: &str = "Rank";

/// Numbers that only qualify the shares give way to names that have fewer columns.
const ENOUGH_FOR_NAMES: usize = 54;

/// The columns that are drawn, and their widths.
pub(super) struct Layout {
    columns: Vec<(usize, usize)>,
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
        let mut shown = columns_with_facts(state);
        let is_number = |place: &usize| columns[*place].is_number;
        let room = |shown: &[usize]| {
            let numbers = shown.iter().copied().filter(is_number);
            let taken: usize = numbers.map(|place| natural[place]).sum();
            width.saturating_sub(MARK + shown.len() + taken)
        };
        while room(&shown) < ENOUGH_FOR_NAMES
            && let Some(at) = shown.iter().position(|place| columns[*place].is_interval)
        {
            // The interval of the share that orders the rows stays longest.
            let last = shown.iter().rposition(|place| columns[*place].is_interval).unwrap_or(at);
            let is_rank = columns[shown[at]].heading == RANK;
            shown.remove(if is_rank { at } else { last });
        }
        let available = room(&shown);
        let names: Vec<usize> =
            shown.iter().copied().filter(|place| !columns[*place].is_number).collect();
        let wanted: Vec<usize> = names.iter().map(|place| natural[*place]).collect();
        let mut widths = natural;
        let given = share_out_before_last(&wanted, available);
        for (place, width) in names.iter().copied().zip(given) {
            widths[place] = width;
        }
        // The way to a row takes what its name leaves.
        let used: usize = names.iter().map(|place| widths[*place]).sum();
        if let Some(last) = shown.last().filter(|place| !is_number(place)) {
            widths[*last] += available.saturating_sub(used);
        }
        Layout { columns: shown.into_iter().map(|place| (place, widths[place])).collect() }
    }

    pub(super) fn draw_head(&self, state: &State, canvas: &mut Canvas<'_>) {
        let style = canvas.theme.head();
        canvas.paint(0, style);
        let mut x = MARK;
        for (place, width) in self.columns.iter().copied() {
            let column = &state.columns.columns()[place];
            let heading: String = column.heading.chars().take(width).collect();
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
        let above = state.table.repeats.above(place);
        let above: Vec<_> = above.into_iter().map(|place| &hists.rows[place]).collect();
        let mut x = MARK;
        for (number, width) in self.columns.iter().copied() {
            let cell = state.columns.cell_below(profile, hists, (&above, row), number, width);
            let share = state.columns.share(hists, row, number);
            let style = share.map_or(Style::new(), |share| canvas.theme.share(share));
            match state.columns.columns()[number].is_number {
                true => canvas.put_right(x + width, y, &cell, style),
                false => drop(canvas.put(x, y, &cell, style)),
            }
            x += width + 1;
        }
    }
}

/// The columns without shares that print as zero in each row, and without the intervals of these.
fn columns_with_facts(state: &State) -> Vec<usize> {
    let columns = state.columns.columns();
    let is_zero = |place: usize| {
        // The share of one event says nothing of the others of its group.
        if !state.hists.members.is_empty() {
            return false;
        }
        let shares =
            state.hists.rows.iter().map(|row| state.columns.share(&state.hists, row, place));
        let mut shares = shares.peekable();
        shares.peek().is_some()
            && shares.all(|share| share.is_some_and(|share| share < LEAST_PRINTED))
    };
    let mut shown: Vec<usize> = Vec::new();
    let mut is_left_out = false;
    for (place, column) in columns.iter().enumerate() {
        // An interval follows its share; the rank leads.
        let qualifies = column.is_interval && column.heading != RANK;
        is_left_out = if qualifies { is_left_out } else { is_zero(place) };
        shown.extend((!is_left_out).then_some(place));
    }
    shown
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
