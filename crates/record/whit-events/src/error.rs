//! Where in the text something is wrong, shown with a caret.

use std::fmt;

use whit_types::pad;

/// Characters shown on each side of the position in a message.
const CONTEXT_CHARS: usize = 60;

/// A position in event text and the line around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Position in characters from the start of the whole text, from 0.
    pub position: usize,
    line: String,
    caret: usize,
}

impl Excerpt {
    /// The line of `text` that holds the character number `position`, cut to the width of a
    /// terminal. Control characters are shown as `?`, so that a message stays on its line.
    pub(crate) fn new(text: &str, position: usize) -> Excerpt {
        let chars: Vec<char> = text.chars().collect();
        let position = position.min(chars.len());
        let line_start =
            chars[..position].iter().rposition(|&c| c == '\n').map_or(0, |newline| newline + 1);
        let line_end = chars[position..]
            .iter()
            .position(|&c| c == '\n')
            .map_or(chars.len(), |newline| position + newline);
        let start = line_start.max(position.saturating_sub(CONTEXT_CHARS));
        let end = line_end.min(position + CONTEXT_CHARS);
        let mut line = String::new();
        if start > line_start {
            line.push('…');
        }
        let caret = position - start + usize::from(start > line_start);
        line.extend(chars[start..end].iter().map(|&c| if c.is_control() { '?' } else { c }));
        if end < line_end {
            line.push('…');
        }
        Excerpt { position, line, caret }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}\n  {}^", self.line, pad::blanks(self.caret))
    }
}

/// Why a text is no event list, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The place in the text.
    pub excerpt: Excerpt,
    /// The expected element, as a phrase.
    pub expected: String,
    /// The character that stands there; `None` at the end of the text.
    pub found: Option<char>,
    /// The known name closest to the written one, where one is close enough.
    pub nearest: Option<String>,
}

impl ParseError {
    /// Position in characters from the start of the text, from 0.
    pub fn position(&self) -> usize {
        self.excerpt.position
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at character {}", self.expected, self.position() + 1)?;
        match self.found {
            Some(c @ ('\'' | '"')) => write!(f, ", found `{c}`")?,
            Some(c) => write!(f, ", found `{}`", c.escape_debug())?,
            None => write!(f, ", found the end of the text")?,
        }
        write!(f, "\n{}", self.excerpt)?;
        match &self.nearest {
            Some(name) => write!(f, "\ndid you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_under_the_character_in_its_line() {
        let shown = Excerpt::new("one\ntwo,three", 8).to_string();
        assert_eq!(shown, "  two,three\n      ^");
    }

    #[test]
    fn long_lines_are_cut_around_the_position() {
        let text = format!("{}X{}", "a".repeat(200), "b".repeat(200));
        let shown = Excerpt::new(&text, 200).to_string();
        let (line, caret) = shown.split_once('\n').unwrap();
        assert!(line.chars().count() < 130, "{line}");
        assert_eq!(line.chars().nth(caret.chars().count() - 1), Some('X'));
    }

    #[test]
    fn a_position_at_the_end_points_behind_the_text() {
        assert_eq!(Excerpt::new("ab", 2).to_string(), "  ab\n    ^");
    }
}
