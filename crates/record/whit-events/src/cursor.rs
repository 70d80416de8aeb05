//! A position in the text being parsed, and the few ways of moving it.

use crate::error::{Excerpt, ParseError};
use crate::names::nearest;

/// Walks over event text. Positions are byte offsets; they become characters only in errors.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Cursor { text, offset: 0 }
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    pub(crate) fn slice_from(&self, start: usize) -> &'a str {
        &self.text[start..self.offset]
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.offset += c.len_utf8();
        Some(c)
    }

    /// Moves past `token` if the text goes on with it.
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.offset += token.len();
        }
        found
    }

    /// Takes the longest run of characters that `accept`s.
    pub(crate) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }

    /// Skips blanks, and blanks and line ends that carry a shell's backslash: lists that were
    /// wrapped inside single quotes reach us with the backslashes still in them, and perf
    /// ignores both.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            let mut ahead = self.rest().chars();
            match (ahead.next(), ahead.next()) {
                (Some('\\'), Some(c)) if c.is_whitespace() => self.offset += 1 + c.len_utf8(),
                _ => return,
            }
        }
    }

    /// Whether the character just passed is `c`.
    pub(crate) fn just_passed(&self, c: char) -> bool {
        self.text[..self.offset].ends_with(c)
    }

    /// An error at the cursor.
    pub(crate) fn error(&self, expected: impl Into<String>) -> ParseError {
        self.error_at(self.offset, expected)
    }

    /// An error at byte `offset`, which lies on a character boundary.
    pub(crate) fn error_at(&self, offset: usize, expected: impl Into<String>) -> ParseError {
        let position = self.text[..offset].chars().count();
        ParseError {
            excerpt: Excerpt::new(self.text, position),
            expected: expected.into(),
            found: self.text[offset..].chars().next(),
            nearest: None,
        }
    }

    /// The error for a bracket at byte `offset` that is never closed.
    pub(crate) fn unclosed(&self, offset: usize, expected: &str) -> ParseError {
        ParseError { found: None, ..self.error_at(offset, expected) }
    }

    /// As [`Self::error_at`], with the nearest of `known` to `written` as a suggestion.
    pub(crate) fn error_near<'k>(
        &self,
        offset: usize,
        expected: impl Into<String>,
        written: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> ParseError {
        let nearest = nearest(written, known).map(str::to_owned);
        ParseError { nearest, ..self.error_at(offset, expected) }
    }
}
