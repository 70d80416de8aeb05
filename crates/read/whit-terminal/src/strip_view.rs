//! Weight over time, by command.

use crate::input::Key;
use crate::source::Span;
use std::ops::Range;
use whit_profile::model::EventId;
use whit_types::TimestampNs;
use whit_view::strip::Strip;

/// Stretches of time; a screen shows each, or joins some.
pub(crate) const STRETCHES: usize = 400;

/// The strip and the chosen column.
#[derive(Debug, Default)]
pub(crate) struct StripView {
    pub(crate) event: Option<EventId>,
    pub(crate) strip: Option<Strip>,
    /// The chosen stretch.
    pub(crate) at: usize,
    /// The other end of a range that is being chosen.
    pub(crate) mark: Option<usize>,
    /// The mouse has moved with its button held.
    pub(crate) is_dragged: bool,
}

/// Joined stretches: a column of the screen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Column {
    pub(crate) weights: Vec<u64>,
    pub(crate) is_lossy: bool,
    pub(crate) stretches: Range<usize>,
}

impl StripView {
    /// The strip in at most `width` columns.
    pub(crate) fn columns(&self, width: usize) -> Vec<Column> {
        let Some(strip) = &self.strip else { return Vec::new() };
        let count = strip.stretches.len();
        let width = width.clamp(1, count);
        let column = |number: usize| {
            let stretches = number * count / width..(number + 1) * count / width;
            let mut column = Column { stretches: stretches.clone(), ..Column::default() };
            for stretch in &strip.stretches[stretches] {
                column.weights.resize(stretch.weights.len(), 0);
                column
                    .weights
                    .iter_mut()
                    .zip(&stretch.weights)
                    .for_each(|(sum, more)| *sum += more);
                column.is_lossy |= stretch.is_lossy;
            }
            column
        };
        (0..width).map(column).collect()
    }

    /// The chosen stretches: those of the chosen column, or of all columns from the mark to there.
    pub(crate) fn chosen(&self, width: usize) -> Option<Range<usize>> {
        let columns = self.columns(width);
        let column_of = |stretch: usize| {
            columns.iter().find(|it| it.stretches.contains(&stretch)).map(|it| it.stretches.clone())
        };
        let (one, other) = (column_of(self.at)?, column_of(self.mark.unwrap_or(self.at))?);
        Some(one.start.min(other.start)..one.end.max(other.end))
    }

    /// Their time.
    pub(crate) fn chosen_span(&self, width: usize) -> Option<Span> {
        let (strip, chosen) = (self.strip.as_ref()?, self.chosen(width)?);
        let (from, behind) = (strip.time_of(chosen.start), strip.time_of(chosen.end));
        // The last moment belongs to the range, the beginning of the next stretch does not.
        Some(Span { from, to: TimestampNs(behind.0.saturating_sub(1).max(from.0)) })
    }

    /// The stretches that a range of time touches.
    pub(crate) fn stretches_of(&self, span: Span) -> Range<usize> {
        let Some(strip) = &self.strip else { return 0..0 };
        let all = 0..strip.stretches.len();
        let begins_behind =
            |time: TimestampNs| all.clone().find(|at| strip.time_of(*at) > time).unwrap_or(all.end);
        begins_behind(span.from).saturating_sub(1)..begins_behind(span.to)
    }

    /// Begins a range at the chosen stretch; false where there is none.
    pub(crate) fn mark_here(&mut self) -> bool {
        self.mark = self.strip.as_ref().map(|_| self.at);
        self.mark.is_some()
    }

    /// Chooses a column of the screen.
    pub(crate) fn press(&mut self, x: usize, width: usize) {
        (self.mark, self.is_dragged) = (None, false);
        if let Some(column) = self.columns(width).get(x) {
            self.at = column.stretches.start;
        }
    }

    /// Draws a range from the pressed column to this one.
    pub(crate) fn drag_to(&mut self, x: usize, width: usize) {
        let columns = self.columns(width);
        let Some(column) = columns.get(x).or(columns.last()) else { return };
        self.mark.get_or_insert(self.at);
        (self.at, self.is_dragged) = (column.stretches.start, true);
    }

    /// True where the mouse has drawn a range.
    pub(crate) fn let_go(&mut self) -> bool {
        std::mem::take(&mut self.is_dragged)
    }

    /// Moves by a key; false for keys that do not move.
    pub(crate) fn key(&mut self, key: Key, width: usize) -> bool {
        let Some(strip) = &self.strip else { return false };
        let last = strip.stretches.len() - 1;
        let step = (strip.stretches.len() / width.max(1)).max(1);
        self.at = match key {
            Key::Left => self.at.saturating_sub(step),
            Key::Right => self.at + step,
            Key::PageUp => self.at.saturating_sub(10 * step),
            Key::PageDown => self.at + 10 * step,
            Key::Home => 0,
            Key::End => last,
            _ => return false,
        }
        .min(last);
        true
    }
}
