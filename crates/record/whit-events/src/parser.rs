//! The grammar above terms: lists, groups, events and modifiers.
//!
//! It accepts the language of perf (`tools/perf/util/parse-events.{l,y}`), and is stricter only
//! where perf ignores stray characters. The parser has no recursion: lists hold groups, groups hold
//! events, and that is all.

use whit_types::{HardwareEvent, SoftwareEvent, ToolEvent};

use crate::ast::{Access, Breakpoint, Event, EventKind, EventList, Group, Item};
use crate::cache::CacheEvent;
use crate::cursor::Cursor;
use crate::error::ParseError;
use crate::modifiers::{MODIFIER_LETTERS, ModifierError, Modifiers};
use crate::parse_term::{PlacedTerms, TermScope, number, raw_config, terms};

/// Longest text that is parsed, in bytes.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Parses the contents of one `-e` option.
///
/// # Errors
///
/// Where the text is no event list: the position, the expected element, and the nearest known name.
/// Words that are not built in are accepted, since only sysfs knows them: see [`crate::resolve`].
pub fn parse(text: &str) -> Result<EventList, ParseError> {
    let mut at = Cursor::new(text);
    if text.len() > MAX_TEXT_BYTES {
        return Err(at.error(format!("at most {MAX_TEXT_BYTES} bytes of text")));
    }
    let mut items = Vec::new();
    loop {
        items.push(item(&mut at)?);
        at.skip_blanks();
        if at.peek().is_none() {
            return Ok(EventList { text: text.to_owned(), items });
        }
        if !at.eat(",") {
            return Err(at.error("`,` or the end of the list"));
        }
    }
}

fn item(at: &mut Cursor<'_>) -> Result<Item, ParseError> {
    at.skip_blanks();
    let mut ahead = at.clone();
    let name = ahead.take_while(is_word_char);
    if ahead.eat("{") {
        *at = ahead;
        let name = (!name.is_empty()).then(|| name.to_owned());
        return group(at, name).map(Item::Group);
    }
    event(at).map(Item::Event)
}

fn group(at: &mut Cursor<'_>, name: Option<String>) -> Result<Group, ParseError> {
    let open = at.offset() - 1;
    let mut events = Vec::new();
    loop {
        events.push(event(at)?);
        at.skip_blanks();
        if at.eat("}") {
            break;
        }
        if at.peek().is_none() {
            return Err(at.unclosed(open, "a closing `}` for the group opened"));
        }
        if !at.eat(",") {
            return Err(at.error("`,` or `}`"));
        }
    }
    let modifiers = if at.eat(":") { modifiers(at)? } else { Modifiers::default() };
    Ok(Group { name, events, modifiers })
}

fn event(at: &mut Cursor<'_>) -> Result<Event, ParseError> {
    at.skip_blanks();
    let start = at.offset();
    let (kind, terms) = kind_and_terms(at)?;
    let modifiers = trailing_modifiers(at)?;
    let typed = at.slice_from(start).trim_end().to_owned();
    let PlacedTerms { terms, offsets: term_offsets } = terms;
    Ok(Event { kind, terms, modifiers, typed, offset: start, term_offsets })
}

type KindAndTerms = (EventKind, PlacedTerms);

fn kind_and_terms(at: &mut Cursor<'_>) -> Result<KindAndTerms, ParseError> {
    let start = at.offset();
    if at.eat("mem:") {
        return breakpoint(at);
    }
    let word = at.take_while(is_word_char);
    if word.is_empty() {
        return Err(at.error("an event"));
    }
    if let Some(kind) = built_in(at, start, word)? {
        let terms = optional_terms(at, TermScope::CommonOnly)?;
        return Ok((kind, terms));
    }
    match at.peek() {
        Some('/') => Ok((EventKind::Pmu(word.to_owned()), optional_terms(at, TermScope::Pmu)?)),
        Some(':') if number(word).is_ok() => numeric(at, start, word),
        Some(':') if !modifiers_follow(at) => tracepoint(at, word),
        _ if number(word).is_ok() => {
            at.skip_blanks();
            Err(at.error(format!("`:` and a config number after the event type {word}")))
        }
        _ => Ok((EventKind::Named(word.to_owned()), PlacedTerms::default())),
    }
}

/// A word that means the same on every machine.
fn built_in(at: &Cursor<'_>, start: usize, word: &str) -> Result<Option<EventKind>, ParseError> {
    let symbol = HardwareEvent::from_name(word)
        .map(EventKind::Hardware)
        .or_else(|| SoftwareEvent::from_name(word).map(EventKind::Software))
        .or_else(|| ToolEvent::from_name(word).map(EventKind::Tool));
    if symbol.is_some() {
        return Ok(symbol);
    }
    if let Some(event) = CacheEvent::from_name(word) {
        if event.cache.ops().contains(&event.op) {
            return Ok(Some(EventKind::Cache(event)));
        }
        let ops = event.cache.ops().iter().map(|op| op.names()[0]).collect::<Vec<_>>().join(" or ");
        let expected =
            format!("{ops} for {} (it has no {})", event.cache.names()[0], event.op.names()[0]);
        return Err(at.error_at(start, expected));
    }
    Ok(raw_config(word).map(EventKind::Raw))
}

fn optional_terms(at: &mut Cursor<'_>, scope: TermScope) -> Result<PlacedTerms, ParseError> {
    if at.eat("/") { terms(at, scope) } else { Ok(PlacedTerms::default()) }
}

fn numeric(at: &mut Cursor<'_>, start: usize, word: &str) -> Result<KindAndTerms, ParseError> {
    let event_type = number(word)
        .ok()
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| at.error_at(start, "an event type of at most 32 bits"))?;
    at.eat(":");
    let config_start = at.offset();
    let config = number(at.take_while(|c| c.is_ascii_alphanumeric()))
        .map_err(|why| at.error_at(config_start, format!("{why} for the config")))?;
    let terms = optional_terms(at, TermScope::CommonOnly)?;
    Ok((EventKind::Numeric { event_type, config }, terms))
}

/// Whether only modifiers follow the colon: `mem-loads:pp`, but not `sched:sched_switch`.
fn modifiers_follow(at: &Cursor<'_>) -> bool {
    let mut ahead = at.clone();
    ahead.eat(":");
    let letters = ahead.take_while(|c| MODIFIER_LETTERS.contains(c));
    !letters.is_empty()
        && !matches!(ahead.peek(), Some(c) if is_word_char(c) || c == ':' || c == '/')
}

fn tracepoint(at: &mut Cursor<'_>, system: &str) -> Result<KindAndTerms, ParseError> {
    at.eat(":");
    let name = at.take_while(is_word_char);
    if name.is_empty() {
        return Err(at.error(format!("a tracepoint of {system}, or modifiers")));
    }
    let kind = EventKind::Tracepoint { system: system.to_owned(), name: name.to_owned() };
    Ok((kind, optional_terms(at, TermScope::CommonOnly)?))
}

fn breakpoint(at: &mut Cursor<'_>) -> Result<KindAndTerms, ParseError> {
    let address = breakpoint_number(at, "an address")?;
    let next =
        |at: &Cursor<'_>, accept: fn(char) -> bool| at.rest().chars().nth(1).is_some_and(accept);
    let mut len = None;
    if at.peek() == Some('/') && next(at, |c| c.is_ascii_digit()) {
        at.eat("/");
        len = Some(breakpoint_number(at, "a length in bytes")?);
    }
    let mut access = Access::default();
    if at.peek() == Some(':') && next(at, |c| "rwx".contains(c)) {
        at.eat(":");
        access = breakpoint_access(at)?;
    }
    let terms = optional_terms(at, TermScope::CommonOnly)?;
    Ok((EventKind::Breakpoint(Breakpoint { address, len, access }), terms))
}

fn breakpoint_number(at: &mut Cursor<'_>, what: &str) -> Result<u64, ParseError> {
    let start = at.offset();
    let digits = at.take_while(|c| c.is_ascii_alphanumeric());
    number(digits).map_err(|why| at.error_at(start, format!("{what} ({why})")))
}

fn breakpoint_access(at: &mut Cursor<'_>) -> Result<Access, ParseError> {
    let mut access = Access::default();
    while let Some(c) = at.peek().filter(char::is_ascii_alphabetic) {
        let flag = match c {
            'r' => &mut access.read,
            'w' => &mut access.write,
            'x' => &mut access.execute,
            _ => return Err(at.error("one of r, w, x")),
        };
        if std::mem::replace(flag, true) {
            return Err(at.error("each of r, w, x at most once"));
        }
        at.bump();
    }
    Ok(access)
}

fn trailing_modifiers(at: &mut Cursor<'_>) -> Result<Modifiers, ParseError> {
    let after_slash = at.just_passed('/');
    if at.eat(":") || after_slash { modifiers(at) } else { Ok(Modifiers::default()) }
}

fn modifiers(at: &mut Cursor<'_>) -> Result<Modifiers, ParseError> {
    let mut modifiers = Modifiers::default();
    while let Some(letter) = at.peek().filter(|&c| is_word_char(c)) {
        modifiers.add(letter).map_err(|why| match why {
            ModifierError::Unknown => at.error(format!(
                "a modifier (one of {MODIFIER_LETTERS}), `,` or the end of the list"
            )),
            ModifierError::Twice => at.error(format!("modifier {letter} only once")),
            ModifierError::TooPrecise => at.error(format!("at most {} p", Modifiers::MAX_PRECISE)),
        })?;
        at.bump();
    }
    Ok(modifiers)
}

/// Characters of PMU, event, tracepoint and group names, patterns included.
pub(crate) fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.*?[]!".contains(c)
}
