//! Parsing of terms and of their values, quoted and plain.

use crate::cursor::Cursor;
use crate::error::ParseError;
use crate::term::{COMMON_TERMS, CallGraph, Term, TermShape, TermValue, common_term_names};

/// Hexadecimal digits of a raw event: 64 bits.
const MAX_RAW_DIGITS: usize = 16;

/// Most terms that one event may have.
pub const MAX_TERMS: usize = 256;

/// Which names a term may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermScope {
    /// The event belongs to a PMU, whose own terms are known only once sysfs is read.
    Pmu,
    /// The event understands the common terms only.
    CommonOnly,
}

/// Terms with the byte offset at which each starts.
#[derive(Default)]
pub(crate) struct PlacedTerms {
    pub(crate) terms: Vec<Term>,
    pub(crate) offsets: Vec<usize>,
}

/// Parses the terms behind an opening slash, and the closing slash.
pub(crate) fn terms(at: &mut Cursor<'_>, scope: TermScope) -> Result<PlacedTerms, ParseError> {
    let open = at.offset() - 1;
    let mut terms = PlacedTerms::default();
    at.skip_blanks();
    if at.eat("/") {
        return Ok(terms);
    }
    loop {
        at.skip_blanks();
        if terms.terms.len() == MAX_TERMS {
            return Err(at.error(format!("at most {MAX_TERMS} terms in an event")));
        }
        terms.offsets.push(at.offset());
        terms.terms.push(term(at, scope)?);
        at.skip_blanks();
        if at.eat("/") {
            return Ok(terms);
        }
        if !at.eat(",") {
            return Err(match at.peek() {
                None => at.unclosed(open, "a closing `/` for the terms opened"),
                Some(_) => at.error("`,` or the closing `/`"),
            });
        }
    }
}

/// Parses a comma-separated list of terms that fills the whole text, as files under `events/` in
/// sysfs hold it.
pub(crate) fn term_list(text: &str) -> Result<Vec<Term>, ParseError> {
    let mut at = Cursor::new(text);
    let mut terms = Vec::new();
    loop {
        terms.push(term(&mut at, TermScope::Pmu)?);
        at.skip_blanks();
        if at.peek().is_none() {
            return Ok(terms);
        }
        if !at.eat(",") || terms.len() == MAX_TERMS {
            return Err(at.error("`,` or the end of the text"));
        }
    }
}

fn term(at: &mut Cursor<'_>, scope: TermScope) -> Result<Term, ParseError> {
    at.skip_blanks();
    let start = at.offset();
    if at.eat("@") {
        let setting = at.take_while(is_driver_char);
        return match setting {
            "" => Err(at.error("a driver setting after `@`")),
            _ => Ok(Term::DriverConfig(setting.to_owned())),
        };
    }
    let name = at.take_while(is_term_char);
    if name.is_empty() {
        return Err(at.error("a term"));
    }
    if let Some((_, shape)) = COMMON_TERMS.iter().find(|(known, _)| *known == name) {
        return common_term(at, name, *shape);
    }
    if scope == TermScope::CommonOnly {
        // Within terms, `rNNN` is the whole `config`, as in perf.
        if let Some(config) = raw_config(name) {
            return Ok(Term::Config(config));
        }
        let known = common_term_names().collect::<Vec<_>>().join(", ");
        let expected = format!("a term that this event understands ({known})");
        return Err(at.error_near(start, expected, name, common_term_names()));
    }
    let value = pmu_value(at, name)?;
    Ok(Term::Pmu { name: name.to_owned(), value })
}

fn common_term(at: &mut Cursor<'_>, name: &str, shape: TermShape) -> Result<Term, ParseError> {
    let assigned = assignment(at);
    if let TermShape::Switch(make) = shape
        && !assigned
    {
        return Ok(make(true));
    }
    if !assigned {
        return Err(at.error(format!("`=` and a value for `{name}`")));
    }
    let start = at.offset();
    let value = text_value(at, name)?;
    let number = || value.number().map_err(|why| bad_number(at, start, &value, why, name));
    match shape {
        TermShape::Number(make) => Ok(make(number()?)),
        TermShape::Text(make) => Ok(make(value.text)),
        TermShape::Switch(make) => match number()? {
            0 => Ok(make(false)),
            1 => Ok(make(true)),
            _ => Err(at.error_at(start, format!("0 or 1 for `{name}`"))),
        },
        TermShape::CallGraph => {
            CallGraph::from_name(&value.text).map(Term::CallGraph).ok_or_else(|| {
                let modes = CallGraph::ALL.iter().map(|mode| mode.name());
                at.error_near(start, "one of fp, dwarf, lbr, no", &value.text, modes)
            })
        }
    }
}

fn pmu_value(at: &mut Cursor<'_>, name: &str) -> Result<TermValue, ParseError> {
    if !assignment(at) {
        return Ok(TermValue::Flag);
    }
    let start = at.offset();
    let value = text_value(at, name)?;
    if value.quoted || !value.text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(TermValue::Text(value.text));
    }
    match value.number() {
        Ok(number) => Ok(TermValue::Number(number)),
        Err(why) => Err(bad_number(at, start, &value, why, name)),
    }
}

/// Points at the character that makes the value of `name`, which starts at `start`, no number.
fn bad_number(at: &Cursor<'_>, start: usize, value: &Value, why: &str, name: &str) -> ParseError {
    let digits = number_len(&value.text);
    match value.text[digits..].chars().next() {
        Some(c) if c.is_whitespace() && digits > 0 => {
            at.error_at(start + digits, "`,` or the closing `/` after the number")
        }
        Some(_) if !value.quoted => at.error_at(start + digits, format!("{why} for {name}")),
        _ => at.error_at(start, format!("{why} for {name}")),
    }
}

/// Bytes at the start of the text that could belong to a number.
fn number_len(text: &str) -> usize {
    let (prefix, radix) = if text.starts_with("0x") { (2, 16) } else { (0, 10) };
    let digits = text[prefix..].chars().take_while(|c| c.is_digit(radix)).count();
    prefix + digits
}

fn assignment(at: &mut Cursor<'_>) -> bool {
    let mut ahead = at.clone();
    ahead.skip_blanks();
    let assigned = ahead.eat("=");
    if assigned {
        *at = ahead;
    }
    assigned
}

/// A value whose type is not known yet.
struct Value {
    text: String,
    quoted: bool,
}

impl Value {
    fn number(&self) -> Result<u64, &'static str> {
        if self.quoted { Err("an unquoted number") } else { number(&self.text) }
    }
}

/// A decimal or `0x` hexadecimal number of up to 64 bits; the error names the expected form.
pub(crate) fn number(text: &str) -> Result<u64, &'static str> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err("a decimal or 0x-hexadecimal number");
    }
    u64::from_str_radix(digits, radix).map_err(|_| "a number of at most 64 bits")
}

/// How the quotes around a value were written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteStyle {
    /// `'…'`
    Plain,
    /// `\'…\'`: escaped for a shell that never saw it.
    Escaped,
    /// `\ '…\ '`: the same, as slides and documents typeset it.
    Spaced,
}

fn text_value(at: &mut Cursor<'_>, name: &str) -> Result<Value, ParseError> {
    at.take_while(char::is_whitespace);
    let start = at.offset();
    let mut quote = opening_quote(at);
    if quote.is_none() {
        at.skip_blanks();
        quote = opening_quote(at);
    }
    if let Some((quote, style)) = quote {
        let text = quoted(at, quote, style)
            .ok_or_else(|| at.unclosed(start, "a closing quote for the one opened"))?;
        at.skip_blanks();
        if !matches!(at.peek(), None | Some(',' | '/')) {
            return Err(at.error("`,` or `/` after the closing quote"));
        }
        return if text.is_empty() {
            Err(at.error_at(start, format!("a value for {name} that is not empty")))
        } else {
            Ok(Value { text, quoted: true })
        };
    }
    let (text, quoted) = plain(at);
    match text.is_empty() {
        true => Err(at.error(format!("a value for {name}"))),
        false => Ok(Value { text, quoted }),
    }
}

fn opening_quote(at: &mut Cursor<'_>) -> Option<(char, QuoteStyle)> {
    let styles =
        [("\\ ", QuoteStyle::Spaced), ("\\", QuoteStyle::Escaped), ("", QuoteStyle::Plain)];
    styles.into_iter().find_map(|(prefix, style)| {
        let mut ahead = at.clone();
        let quote = ahead.eat(prefix).then(|| ahead.bump()).flatten()?;
        matches!(quote, '\'' | '"').then(|| {
            *at = ahead;
            (quote, style)
        })
    })
}

/// Reads up to the closing quote. A backslash takes the next character as it is, unless it is
/// how this kind of quote ends. Quotes of the other kind around the whole content are dropped:
/// a name that reaches us as `'"NAME"'` was quoted once for the shell and once for us.
fn quoted(at: &mut Cursor<'_>, quote: char, style: QuoteStyle) -> Option<String> {
    let other = if quote == '\'' { '"' } else { '\'' };
    let mut text = String::new();
    let (mut first_is_other, mut last_is_other) = (false, false);
    loop {
        let at_start = text.is_empty();
        let ends_spaced = style == QuoteStyle::Spaced && at.eat(&format!("\\ {quote}"));
        let ends_escaped = style != QuoteStyle::Plain && at.eat(&format!("\\{quote}"));
        if ends_spaced || ends_escaped {
            break;
        }
        let c = at.bump()?;
        if c == quote {
            break;
        }
        let (c, literal) = if c == '\\' { (at.bump()?, true) } else { (c, false) };
        last_is_other = c == other && !literal;
        first_is_other |= at_start && last_is_other;
        text.push(c);
    }
    if first_is_other && last_is_other && text.len() > 2 {
        text.pop();
        text.remove(0);
    }
    Some(text)
}

/// Reads an unquoted value up to `,` or `/`, without the blanks around it. A backslash takes the
/// next character as it is; the flag says whether it made anything but a blank literal.
fn plain(at: &mut Cursor<'_>) -> (String, bool) {
    let mut text = String::new();
    let mut escaped = false;
    while let Some(c) = at.peek() {
        if matches!(c, ',' | '/') {
            break;
        }
        at.bump();
        let c = match (c, at.peek()) {
            ('\\', Some(literal)) => {
                at.bump();
                escaped |= !literal.is_whitespace();
                literal
            }
            _ => c,
        };
        text.push(c);
    }
    text.truncate(text.trim_end().len());
    (text, escaped)
}

/// Characters of a term's name. Hyphens, dots and colons occur in sysfs and in vendor names.
pub(crate) fn is_term_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.*?:".contains(c)
}

pub(crate) fn is_driver_char(c: char) -> bool {
    is_term_char(c) || c == '='
}

/// The number of `rNNN` (or `r0xNNN`), if the word is one.
pub(crate) fn raw_config(word: &str) -> Option<u64> {
    let digits = word.strip_prefix('r')?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let hex = !digits.is_empty()
        && digits.len() <= MAX_RAW_DIGITS
        && digits.chars().all(|c| c.is_ascii_hexdigit());
    hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}
