//! A line that the user types.

use crate::input::Key;

/// Longest line.
const MAX_LENGTH: usize = 1000;

/// The purpose of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Filter,
    Limit,
    Save,
}

/// A line being typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Prompt {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
}

/// The result of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Typed {
    More,
    Done,
    Given,
}

impl Prompt {
    pub(crate) fn new(purpose: Purpose, text: impl Into<String>) -> Prompt {
        Prompt { purpose, text: text.into() }
    }

    pub(crate) fn question(&self) -> &'static str {
        match self.purpose {
            Purpose::Filter => "Functions with this in their names (empty: all): ",
            Purpose::Limit => "Leave out rows below this percentage: ",
            Purpose::Save => "Write the report as text to this new file: ",
        }
    }

    pub(crate) fn key(&mut self, key: Key) -> Typed {
        match key {
            Key::Enter => return Typed::Given,
            Key::Esc | Key::Ctrl('c') => return Typed::Done,
            Key::Backspace => drop(self.text.pop()),
            Key::Ctrl('u') => self.text.clear(),
            Key::Char(c) if self.text.len() < MAX_LENGTH => self.text.push(c),
            _ => {}
        }
        Typed::More
    }
}
