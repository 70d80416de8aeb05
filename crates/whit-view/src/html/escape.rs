//! Escapes for the two places where text of the recording stands in the page.

use std::io::{self, Write};

/// Passes JSON on and escapes what could end or confuse an HTML `<script>` block.
///
/// In JSON, `<`, `>`, `&` and U+2028/U+2029 can only stand inside strings, where `\u003c` and so on
/// mean the same; so replacing them anywhere in the stream is right. Without a `<` there is no
/// `</script>` and no `<!--` (HTML standard, "restrictions for contents of script elements").
pub(super) struct ScriptJson<'a> {
    out: &'a mut dyn Write,
    /// First bytes of a U+2028 or U+2029 (`e2 80 a8`, `e2 80 a9`) that may be cut between writes.
    pending: usize,
}

const SEPARATOR_PREFIX: [u8; 2] = [0xe2, 0x80];

impl<'a> ScriptJson<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        ScriptJson { out, pending: 0 }
    }

    /// Writes what was held back; to be called once at the end.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.release()
    }

    fn release(&mut self) -> io::Result<()> {
        let held = &SEPARATOR_PREFIX[..std::mem::take(&mut self.pending)];
        self.out.write_all(held)
    }

    fn push(&mut self, byte: u8) -> io::Result<()> {
        if self.pending == SEPARATOR_PREFIX.len() && (byte == 0xa8 || byte == 0xa9) {
            self.pending = 0;
            return write!(self.out, "\\u202{:x}", byte - 0xa0);
        }
        if SEPARATOR_PREFIX.get(self.pending) == Some(&byte) {
            self.pending += 1;
            return Ok(());
        }
        self.release()?;
        match byte {
            b'<' | b'>' | b'&' => write!(self.out, "\\u{byte:04x}"),
            byte if byte == SEPARATOR_PREFIX[0] => {
                self.pending = 1;
                Ok(())
            }
            _ => self.out.write_all(&[byte]),
        }
    }
}

impl Write for ScriptJson<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let special = |b: &u8| matches!(b, b'<' | b'>' | b'&') || *b == SEPARATOR_PREFIX[0];
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.pending == 0 {
                let clean = rest.iter().position(special).unwrap_or(rest.len());
                self.out.write_all(&rest[..clean])?;
                rest = &rest[clean..];
            }
            if let [first, tail @ ..] = rest {
                self.push(*first)?;
                rest = tail;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Text for an HTML element or a double-quoted attribute.
pub(super) fn html_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn script_json(json: &[u8], piece: usize) -> String {
        let mut out = Vec::new();
        let mut escape = ScriptJson::new(&mut out);
        json.chunks(piece).for_each(|c| escape.write_all(c).unwrap());
        escape.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_can_end_the_script_block() {
        let hostile = r#"</script><img src=x onerror="x()"><!-- & ]]>"#;
        let json = serde_json::to_string(hostile).unwrap();
        for piece in [1, 2, 3, 1000] {
            let safe = script_json(json.as_bytes(), piece);
            assert!(!safe.contains(['<', '>', '&']), "{safe}");
            assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
        }
    }

    #[test]
    fn line_separators_are_escaped_even_when_cut_between_writes() {
        for piece in [1, 2, 4, 100] {
            let safe = script_json("\"a\u{2028}b\u{2029}\u{2026}\u{2014}é\"".as_bytes(), piece);
            assert_eq!(safe, "\"a\\u2028b\\u2029\u{2026}\u{2014}é\"");
        }
    }

    #[test]
    fn html_text_has_no_markup_left() {
        assert_eq!(html_text("<a b=\"c\">&'\0"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{fffd}");
    }

    proptest! {
        #[test]
        fn any_string_survives(text: String, piece in 1usize..9) {
            let safe = script_json(serde_json::to_string(&text).unwrap().as_bytes(), piece);
            prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        }
    }
}
