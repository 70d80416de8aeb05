//! Text of the recording outside the page's data block.

use whit_types::escape;

/// Text for an HTML element or a double-quoted attribute.
pub(crate) fn html_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in escape(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_text_has_no_markup_left() {
        assert_eq!(html_text("<a b=\"c\">&'\0"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\\x00");
        assert_eq!(html_text("\u{202e}gnp.exe\u{9b}"), "\\u{202e}gnp.exe\\u{9b}");
    }
}
