//! Colours of percentages, as perf has them: red from 5 %, green from 0.5 %.

use std::fmt::{self, Display};

use anstyle::{AnsiColor, Style};

/// From here on a percentage is red.
const RED_FROM_PERCENT: f64 = 5.0;
/// From here on a percentage is green.
const GREEN_FROM_PERCENT: f64 = 0.5;

/// Whether to colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Colour {
    /// No escape sequences.
    #[default]
    Never,
    /// ANSI escape sequences.
    Ansi,
}

impl Colour {
    /// Colours for a terminal, unless the environment's `NO_COLOR` is set and not empty
    /// (<https://no-color.org>).
    pub fn for_output(is_terminal: bool, no_color: Option<&str>) -> Colour {
        if is_terminal && no_color.is_none_or(str::is_empty) { Colour::Ansi } else { Colour::Never }
    }

    /// `text`, coloured for `percent`.
    pub(crate) fn percent<T: Display>(self, percent: f64, text: T) -> Painted<T> {
        let style = match self {
            Colour::Never => Style::new(),
            Colour::Ansi if percent >= RED_FROM_PERCENT => AnsiColor::Red.on_default(),
            Colour::Ansi if percent >= GREEN_FROM_PERCENT => AnsiColor::Green.on_default(),
            Colour::Ansi => Style::new(),
        };
        Painted { style, text }
    }
}

/// Text in a style.
pub(crate) struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{:#}", self.style, self.text, self.style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_gets_colours() {
        assert_eq!(Colour::for_output(false, None), Colour::Never);
        assert_eq!(Colour::for_output(true, Some("1")), Colour::Never);
        assert_eq!(Colour::for_output(true, Some("")), Colour::Ansi);
        assert_eq!(Colour::Never.percent(50.0, "50").to_string(), "50");
        assert_eq!(Colour::Ansi.percent(50.0, "50").to_string(), "\u{1b}[31m50\u{1b}[0m");
        assert_eq!(Colour::Ansi.percent(1.0, "1").to_string(), "\u{1b}[32m1\u{1b}[0m");
        assert_eq!(Colour::Ansi.percent(0.1, "0").to_string(), "0");
    }
}
