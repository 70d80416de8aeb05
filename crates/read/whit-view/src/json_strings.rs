//! JSON whose strings are exact, and which still can be printed on a terminal.
//!
//! JSON escapes the control characters of ASCII but for DEL. Here all characters that text faces
//! escape ([`is_escaped`]) are written as `\u202e`, which means the same.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use whit_types::is_escaped;

/// Writes a value as JSON in one line, without a line end.
///
/// # Errors
/// The error of `out`.
pub fn write(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Strings(is_escaped));
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// The same, safe to stand in an HTML `<script>` block: without a `<` there is no `</script>` and
/// no `<!--` (HTML standard, "restrictions for contents of script elements").
///
/// # Errors
/// The error of `out`.
pub fn write_for_script(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    let special = |c| matches!(c, '<' | '>' | '&') || is_escaped(c);
    let mut serializer = serde_json::Serializer::with_formatter(out, Strings(special));
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// Compact JSON that escapes more characters than JSON demands.
struct Strings<F>(F);

impl<F: Fn(char) -> bool> Formatter for Strings<F> {
    /// Gets the parts of strings in which JSON has nothing to escape.
    fn write_string_fragment<W>(&mut self, out: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        let mut rest = fragment;
        while let Some(at) = rest.find(&self.0) {
            let (plain, special) = rest.split_at(at);
            CompactFormatter.write_string_fragment(out, plain)?;
            let mut characters = special.chars();
            let mut units = [0; 2];
            for unit in characters.next().map_or(&[][..], |c| c.encode_utf16(&mut units)) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        CompactFormatter.write_string_fragment(out, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json(text: &str) -> String {
        let mut out = Vec::new();
        write(&mut out, &text).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn script(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        write_for_script(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_exact_and_hold_no_control_characters() {
        let text = "a\x1b[2J\n\x7f\u{9b}\u{202e}\u{2028}\"é🦀<";
        let json = json(text);
        let escaped = r#""a\u001b[2J\n\u007f\u009b\u202e\u2028\"é🦀<""#;
        assert_eq!(json, escaped);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn nothing_can_end_the_script_block() {
        let hostile = r#"</script><img src=x onerror="x()"><!-- & ]]>"#;
        // As a name of a member, too.
        let safe = script(&std::collections::BTreeMap::from([(hostile, hostile)]));
        assert!(!safe.contains(['<', '>', '&']), "{safe}");
        let read: std::collections::BTreeMap<String, String> = serde_json::from_str(&safe).unwrap();
        assert_eq!(read[hostile], hostile);
    }

    proptest! {
        #[test]
        fn any_string_survives(text: String, controls in "[\u{0}-\u{ff}\u{2000}-\u{2070}]*") {
            for text in [text, controls] {
                for json in [json(&text), script(&text.as_str())] {
                    prop_assert!(!json.contains(is_escaped), "{:?}", json);
                    prop_assert_eq!(&serde_json::from_str::<String>(&json).unwrap(), &text);
                }
            }
        }
    }
}
