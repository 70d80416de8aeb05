//! Words of the C expressions in a `print fmt`.

/// A word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token<'t> {
    /// Name, keyword.
    Name(&'t str),
    /// Number with its suffix.
    Number(&'t str),
    /// String literals, adjacent ones joined, escapes resolved.
    Text(String),
    /// Character literal.
    Char(u8),
    /// Operator or other sign.
    Sign(&'t str),
    /// End of the text, or a character that C does not have.
    End,
}

/// Signs of two characters.
const PAIRS: [&str; 9] = ["->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"];

/// Cuts a text into words.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'t> {
    rest: &'t str,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Lexer { rest: text }
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Token<'t> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else { return Token::End };
        match first {
            '"' => Token::Text(self.text()),
            '\'' => self.char(),
            '0'..='9' => Token::Number(self.word()),
            c if c.is_ascii_alphabetic() || c == '_' => Token::Name(self.word()),
            c if c.is_ascii_graphic() => {
                let pair = PAIRS.iter().any(|pair| self.rest.starts_with(pair));
                Token::Sign(self.take(if pair { 2 } else { 1 }))
            }
            _ => {
                self.rest = "";
                Token::End
            }
        }
    }

    fn take(&mut self, len: usize) -> &'t str {
        let (head, tail) = self.rest.split_at(len);
        self.rest = tail;
        head
    }

    fn word(&mut self) -> &'t str {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.take(self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len()))
    }

    /// A row of string literals as one.
    fn text(&mut self) -> String {
        let mut out = String::new();
        while let Some(literal) = self.rest.strip_prefix('"') {
            let end = literal_end(literal, b'"');
            unescape(&literal[..end], &mut out);
            self.rest = literal[end..].strip_prefix('"').unwrap_or("").trim_start();
        }
        out
    }

    fn char(&mut self) -> Token<'t> {
        let literal = &self.rest[1..];
        let end = literal_end(literal, b'\'');
        let mut out = String::new();
        unescape(&literal[..end], &mut out);
        self.rest = literal[end..].strip_prefix('\'').unwrap_or("");
        out.bytes().next().map_or(Token::End, Token::Char)
    }
}

/// Length of the literal up to its quote, or to the end of the text.
fn literal_end(text: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if !escaped && byte == quote {
            return at;
        }
        escaped = !escaped && byte == b'\\';
    }
    text.len()
}

fn unescape(text: &str, out: &mut String) {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| Some(lexer.next()).filter(|token| *token != Token::End)).collect()
    }

    #[test]
    fn words_are_cut() {
        use Token::{Char, Name, Number, Sign, Text};
        assert_eq!(
            words("REC->a>>0x1fULL, 'x' \"a\\\"%s\\n\" \n\"b\" ~_y"),
            [
                Name("REC"),
                Sign("->"),
                Name("a"),
                Sign(">>"),
                Number("0x1fULL"),
                Sign(","),
                Char(b'x'),
                Text("a\"%s\nb".into()),
                Sign("~"),
                Name("_y"),
            ]
        );
        assert_eq!(words("\"open"), [Text("open".into())]);
        assert_eq!(words("a \u{e9} b"), [Name("a")]);
        assert_eq!(words("'"), []);
    }
}
