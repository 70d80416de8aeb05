//! The screen, drawn from the state.

mod flame;
mod strip;
mod style;
mod table;
mod waits;

use crate::live::Live;
use crate::state::{State, View};
use crate::text_view::TextView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use style::Theme;
use whit_view::stdio::loss_line;

/// Shown in the last line where nothing else is.
const HINTS: &str = "? keys  v view  / filter  Enter open  a code  q quit";

/// A part of the screen that text is put into.
pub(crate) struct Canvas<'b> {
    pub(crate) buffer: &'b mut Buffer,
    pub(crate) area: Rect,
    pub(crate) theme: Theme,
}

impl Canvas<'_> {
    /// Puts text at a place of the area, cut at its right edge; gives the column behind it.
    pub(crate) fn put(&mut self, x: usize, y: usize, text: &str, style: Style) -> usize {
        let (width, height) = (usize::from(self.area.width), usize::from(self.area.height));
        if x >= width || y >= height {
            return x;
        }
        let (left, top) = (self.area.x + x as u16, self.area.y + y as u16);
        let (end, _) = self.buffer.set_stringn(left, top, text, width - x, style);
        usize::from(end - self.area.x)
    }

    /// Puts text so that it ends in front of a column.
    pub(crate) fn put_right(&mut self, end: usize, y: usize, text: &str, style: Style) {
        self.put(end.saturating_sub(text.chars().count()), y, text, style);
    }

    /// Gives a whole line a style.
    pub(crate) fn paint(&mut self, y: usize, style: Style) {
        if y < usize::from(self.area.height) {
            let line = Rect { y: self.area.y + y as u16, height: 1, ..self.area };
            self.buffer.set_style(line, style);
        }
    }

    /// The same buffer, drawn on within an area.
    fn part(&mut self, area: Rect) -> Canvas<'_> {
        Canvas { buffer: self.buffer, area, theme: self.theme }
    }

    pub(crate) fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    pub(crate) fn height(&self) -> usize {
        usize::from(self.area.height)
    }
}

/// Draws the state.
pub(crate) fn draw(state: &State, area: Rect, buffer: &mut Buffer) {
    let theme = Theme::of(state.options.colour);
    let mut canvas = Canvas { buffer, area, theme };
    match &state.text {
        Some(text) => draw_text(state, text, &mut canvas),
        None => draw_view(state, &mut canvas),
    }
    draw_status(state, &mut canvas);
}

fn draw_view(state: &State, canvas: &mut Canvas<'_>) {
    draw_title(state, canvas);
    let mut y = 1;
    if let Some(line) = state.headline() {
        let style = canvas.theme.name();
        canvas.put(1, y, &line, style);
        y += 1;
    }
    if let Some(line) = loss_line(&state.profile.losses) {
        let style = canvas.theme.loss();
        canvas.put(0, y, &line, style);
        y += 1;
    }
    let names = state.name_lines();
    let body_height = state.body_height();
    let head = Rect { y: canvas.area.y + y as u16, height: 1, ..canvas.area };
    let body = Rect { y: head.y + 1, height: body_height as u16, ..canvas.area };
    let (head, body) = (head.intersection(canvas.area), body.intersection(canvas.area));
    match state.view {
        View::Table => {
            let layout = table::Layout::of(state, usize::from(head.width));
            layout.draw_head(state, &mut canvas.part(head));
            layout.draw(state, &mut canvas.part(body));
        }
        View::Flame => {
            flame::draw_head(state, &mut canvas.part(head));
            flame::draw(state, &mut canvas.part(body));
        }
        View::Waits => {
            waits::draw_head(state, &mut canvas.part(head));
            waits::draw(state, &mut canvas.part(body));
        }
        View::Strip => {
            strip::draw_head(state, &mut canvas.part(head));
            strip::draw(state, &mut canvas.part(body));
        }
    }
    let first = canvas.height().saturating_sub(1 + names.len());
    for (number, line) in names.iter().enumerate() {
        let style = canvas.theme.name();
        canvas.put(0, first + number, line, style);
    }
}

/// The event and its samples on the left, zooms and filters on the right.
fn draw_title(state: &State, canvas: &mut Canvas<'_>) {
    let style = canvas.theme.title();
    canvas.paint(0, style);
    let mut title = match state.event_group() {
        Some(group) => {
            let samples = state.hists.samples_of_group();
            let live = state.live.as_ref().map(Live::title).unwrap_or_default();
            format!(" {samples} samples of '{}'{live}", group.name)
        }
        None => {
            let live = state.live.as_ref().map(Live::title).unwrap_or_default();
            format!(" no samples{live}")
        }
    };
    if state.event_groups() > 1 {
        title.push_str(&format!(" (event {} of {})", state.event_number(), state.event_groups()));
    }
    canvas.put(0, 0, &title, style);
    if !state.zooms.is_empty() {
        let zooms = format!(" {} ", state.zooms.join(", "));
        let room = canvas.width().saturating_sub(title.chars().count() + 1);
        let zooms = whit_view::short_name::shorten(&zooms, room).into_owned();
        let width = canvas.width();
        canvas.put_right(width, 0, &zooms, style);
    }
}

fn draw_text(state: &State, text: &TextView, canvas: &mut Canvas<'_>) {
    let style = canvas.theme.title();
    canvas.paint(0, style);
    canvas.put(0, 0, &format!(" {}", text.title), style);
    let lines = text.lines.iter().enumerate().skip(text.cursor.top).take(state.text_height());
    for (y, (number, line)) in lines.enumerate() {
        let shown: String = line.chars().skip(text.left).collect();
        let style = canvas.theme.of_code_line(line);
        canvas.put(0, y + 1, &shown, style);
        if text.has_cursor && number == text.cursor.at {
            let style = canvas.theme.chosen();
            canvas.paint(y + 1, style);
        }
    }
}

/// The last line: a question, a message, or the place in the view.
fn draw_status(state: &State, canvas: &mut Canvas<'_>) {
    let y = canvas.height().saturating_sub(1);
    let (plain, strong) = (canvas.theme.status(), canvas.theme.message());
    if let Some(prompt) = &state.prompt {
        let at = canvas.put(0, y, prompt.question(), strong);
        let text = whit_types::escape(&prompt.text).into_owned();
        // The end of a long text is where its user types.
        let room = canvas.width().saturating_sub(at + 2);
        let skipped = text.chars().count().saturating_sub(room);
        let shown: String = text.chars().skip(skipped).collect();
        let end = canvas.put(at, y, &shown, plain);
        canvas.put(end, y, "_", strong);
        return;
    }
    if let Some(message) = &state.message {
        canvas.put(0, y, &whit_types::escape(message), strong);
        return;
    }
    let (at, count, left) = match (&state.text, state.view) {
        (Some(text), _) => {
            let hints = match text.opens.is_empty() {
                true => "Esc back  Up Down PgUp PgDn scroll",
                false => "Esc back  Enter why  Up Down choose",
            };
            (text.cursor.at, text.lines.len(), hints)
        }
        (None, View::Table) => (state.table.cursor.at, state.table.lines.len(), HINTS),
        (None, View::Waits) => match &state.waits_view {
            Some(view) => (view.cursor.at, view.lines.len(), HINTS),
            None => (0, 0, HINTS),
        },
        (None, View::Flame | View::Strip) => (0, 0, HINTS),
    };
    let cost = state.live.as_ref().map(|live| live.status.cost.as_str()).unwrap_or_default();
    let place = match count {
        0 => format!("{cost} "),
        count => format!("{cost} {}/{count} ", at + 1),
    };
    let place = place.trim_start();
    canvas.put(0, y, left, plain);
    let width = canvas.width();
    // The cost stands there always; hints give way to it.
    if left.len() + place.len() < width || state.live.is_some() {
        canvas.put_right(width, y, place, plain);
    }
}

/// Draws how far a request has come, in the last line.
pub(crate) fn draw_progress(
    what: &str,
    share: f64,
    area: Rect,
    buffer: &mut Buffer,
    state: &State,
) {
    let theme = Theme::of(state.options.colour);
    let mut canvas = Canvas { buffer, area, theme };
    let y = canvas.height().saturating_sub(1);
    let blank = " ".repeat(canvas.width());
    canvas.put(0, y, &blank, Style::new());
    let label = format!("{what} {:3.0}% ", 100.0 * share.clamp(0.0, 1.0));
    let at = canvas.put(0, y, &label, theme.message());
    let room = canvas.width().saturating_sub(at + 1);
    let full = (room as f64 * share.clamp(0.0, 1.0)) as usize;
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(room - full));
    canvas.put(at, y, &bar, theme.status());
}
