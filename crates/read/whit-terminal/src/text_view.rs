//! A text over the screen: help, header, code.

use crate::cursor::Cursor;
use crate::input::Key;
use crate::source::Explain;

/// A text with a title.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TextView {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    pub(crate) cursor: Cursor,
    /// Columns that are scrolled out to the left.
    pub(crate) left: usize,
    /// A line is marked as chosen.
    pub(crate) has_cursor: bool,
    /// Numbers of lines with something to explain.
    pub(crate) opens: Vec<(usize, Explain)>,
}

/// Columns that a key scrolls.
const STEP: usize = 8;

impl TextView {
    /// A text that is read from its beginning.
    pub(crate) fn new(title: impl Into<String>, lines: Vec<String>) -> TextView {
        TextView { title: title.into(), lines, ..TextView::default() }
    }

    /// The chosen line opens its explanation.
    pub(crate) fn opened(&self) -> Option<&Explain> {
        self.opens.iter().find(|(line, _)| *line == self.cursor.at).map(|(_, what)| what)
    }

    /// True for keys that close the text.
    pub(crate) fn key(&mut self, key: Key, height: usize) -> bool {
        match key {
            Key::Esc | Key::Char('q') => return true,
            Key::Left if self.left == 0 => return true,
            Key::Left => self.left = self.left.saturating_sub(STEP),
            Key::Right => {
                let longest = self.lines.iter().map(|line| line.chars().count()).max();
                let last = longest.unwrap_or(0).saturating_sub(STEP);
                self.left = (self.left + STEP).min(last.max(self.left));
            }
            Key::Up if !self.has_cursor => self.scroll(-1, height),
            Key::Down if !self.has_cursor => self.scroll(1, height),
            key => {
                self.cursor.key(key, self.lines.len(), height);
            }
        }
        false
    }

    /// Moves the text, and the chosen line only where it would leave the screen.
    pub(crate) fn scroll(&mut self, lines: isize, height: usize) {
        if self.has_cursor {
            return self.cursor.step(lines, self.lines.len(), height);
        }
        let last = self.lines.len().saturating_sub(height);
        self.cursor.top = self.cursor.top.saturating_add_signed(lines).min(last);
        self.cursor.at = self.cursor.top;
    }
}
