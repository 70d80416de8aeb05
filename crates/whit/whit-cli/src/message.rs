//! Messages: the one place that writes to standard error.
//!
//! A message may quote a name that others chose: a file, a thread, an event of a recording. So all of it is
//! escaped. A message may have several lines; those after the first are indented, so that no name can
//! begin a line of its own and look like another message.

use std::fmt::Display;
use std::io::{self, Write};
use whit_host::level::Level;
use whit_types::escape;

/// In front of lines after the first that are not indented already.
const INDENT: &str = "  ";

/// Prints the reason of a failure, or a missing part of a result.
pub fn error(text: impl Display) {
    say("whit: ", &text.to_string());
}

/// Says what the user should know of.
pub fn warning(text: impl Display) {
    say("whit: warning: ", &text.to_string());
}

/// Says something that nobody has to know.
pub fn note(text: impl Display) {
    say("whit: note: ", &text.to_string());
}

/// Says something that was asked for: lines without a prefix.
pub fn answer(text: impl Display) {
    text.to_string().lines().for_each(|line| say("", line));
}

/// Says it as loud as it is.
pub(crate) fn of_level(level: Level, text: impl Display) {
    match level {
        Level::Answer => answer(text),
        Level::Error => error(text),
        Level::Warning => warning(text),
        Level::Verbose => note(text),
    }
}

/// In one piece, so that messages of several processes do not mix. Where standard error is closed,
/// there is nobody to tell.
fn say(prefix: &str, text: &str) {
    let _ = io::stderr().write_all(formatted(prefix, text).as_bytes());
}

fn formatted(prefix: &str, text: &str) -> String {
    let mut message = prefix.to_owned();
    for (number, line) in text.trim_end().split('\n').enumerate() {
        if number > 0 && !line.is_empty() && !line.starts_with(' ') {
            message.push_str(INDENT);
        }
        message.push_str(&escape(line));
        message.push('\n');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quoted_name_is_no_message_of_its_own() {
        let text = "cannot open a\x1b[2J\nwhit: all is well\r\u{202e}\n  ^ here\n";
        assert_eq!(
            formatted("whit: ", text),
            "whit: cannot open a\\x1b[2J\n  whit: all is well\\x0d\\u{202e}\n  ^ here\n"
        );
    }

    proptest! {
        #[test]
        fn only_the_first_line_begins_at_the_margin(text: String, more in "[\n\r\t \x1bx]*") {
            let said = formatted("whit: ", &format!("{text}{more}"));
            let is_raw = |c| whit_types::is_escaped(c) && c != '\n';
            prop_assert!(!said.contains(is_raw) && said.ends_with('\n'), "{:?}", said);
                let is_apart = |line: &str| line.is_empty() || line.starts_with(' ');
            prop_assert!(said.lines().skip(1).all(is_apart), "{:?}", said);
        }
    }
}
