//! Weight over time, by command.

use crate::input::Key;
use whit_profile::model::EventId;
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
}

/// Joined stretches: a column of the screen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Column {
    pub(crate) weights: Vec<u64>,
    pub(crate) is_lossy: bool,
    pub(crate) stretches: std::ops::Range<usize>,
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
