//! Text from outside: names that a recording, `/proc` or a file holds.
//!
//! A process names itself (`prctl`), its threads, its executable file and its functions. So a name may hold
//! escape sequences that a terminal obeys, line ends that make up a line of a report, or marks that turn
//! the direction of the text around it. [`OutsideText`] is the type of such names: it prints dangerous
//! characters escaped, and its exact text must be asked for by name.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// True for a character that is never printed as it is: the controls of ASCII (C0 and DEL) and of
/// Latin-1 (C1), the marks and controls of the direction of text, and the separators of lines and
/// paragraphs.
pub const fn is_escaped(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// `text` with each character that [`is_escaped`] written as `\x1b` (ASCII) or `\u{202e}`. A
/// backslash stays as it is: names that differ may look the same, but none can do harm.
#[inline]
pub fn escape(text: &str) -> Cow<'_, str> {
    if is_printable_ascii(text.as_bytes()) { Cow::Borrowed(text) } else { escape_others(text) }
}

fn escape_others(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    push_escaped(&mut escaped, text);
    Cow::Owned(escaped)
}

/// The same for bytes that were appended to `out` from `start` on; a byte that is no part of a
/// UTF-8 character becomes `\x9b`.
#[inline]
pub fn escape_appended(out: &mut Vec<u8>, start: usize) {
    if !out.get(start..).is_none_or(is_printable_ascii) {
        escape_bytes(out, start);
    }
}

/// A path as messages print it: bytes that are no part of a UTF-8 character are `\x9b`, too, so that names which differ stay
/// apart.
pub fn escape_path(path: &Path) -> String {
    let mut escaped = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        push_escaped(&mut escaped, chunk.valid());
        chunk.invalid().iter().for_each(|byte| push_byte(&mut escaped, *byte));
    }
    escaped
}

fn escape_bytes(out: &mut Vec<u8>, start: usize) {
    let mut escaped = String::with_capacity(out.len() - start + 16);
    for chunk in out[start..].utf8_chunks() {
        push_escaped(&mut escaped, chunk.valid());
        chunk.invalid().iter().for_each(|byte| push_byte(&mut escaped, *byte));
    }
    out.truncate(start);
    out.extend_from_slice(escaped.as_bytes());
}

/// JSON whose strings are exact and hold no raw character that [`is_escaped`]: JSON itself only
/// escapes C0. Line ends stay: they are layout, since JSON escapes those in strings.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let in_string = |c: char| c > '\x1f' && is_escaped(c);
    if !json.contains(in_string) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            // None lies outside the basic plane, so that one unit of UTF-16 is enough.
            c if in_string(c) => {
                write_infallibly(&mut escaped, format_args!("\\u{:04x}", c as u32))
            }
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Eight bytes at a time: names are looked at wherever they are printed.
#[inline]
fn is_printable_ascii(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let found = words.iter().fold(0, |found, word| found | unprintable(u64::from_le_bytes(*word)));
    let found = match (rest, bytes.last_chunk::<8>()) {
        ([], _) => found,
        // Some bytes once more.
        (_, Some(last)) => found | unprintable(u64::from_le_bytes(*last)),
        (rest, None) => u64::from(!rest.iter().all(|byte| matches!(byte, b' '..=b'~'))),
    };
    found == 0
}

/// Not zero where any of eight bytes is below a blank, DEL or above ASCII. Which one it is does
/// not show: subtractions borrow from higher bytes.
#[inline]
const fn unprintable(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH_BITS: u64 = ONES << 7;
    let below_blank = word.wrapping_sub(ONES * b' ' as u64) & !word;
    let unlike_delete = word ^ (ONES * 0x7f);
    let delete = unlike_delete.wrapping_sub(ONES) & !unlike_delete;
    (below_blank | delete | word) & HIGH_BITS
}

fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            c if !is_escaped(c) => out.push(c),
            c if c.is_ascii() => push_byte(out, c as u8),
            c => write_infallibly(out, format_args!("\\u{{{:x}}}", c as u32)),
        }
    }
}

fn push_byte(out: &mut String, byte: u8) {
    write_infallibly(out, format_args!("\\x{byte:02x}"));
}

fn write_infallibly(out: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(text);
}

/// Text from outside. `{}` prints it with [`escape`], padded to the width of the escaped text.
/// [`OutsideText::exact`] gives the text itself, for comparing, looking up, and forms that programs
/// read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OutsideText<S = String>(S);

impl<S: AsRef<str>> OutsideText<S> {
    /// The exact text: never for a face that people read.
    #[inline]
    pub fn exact(&self) -> &str {
        self.0.as_ref()
    }

    /// The text as it is printed.
    #[inline]
    pub fn escaped(&self) -> Cow<'_, str> {
        escape(self.exact())
    }

    /// Appends the text as it is printed.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.escaped().as_bytes());
    }

    /// True where there is no text.
    pub fn is_empty(&self) -> bool {
        self.exact().is_empty()
    }

    /// The same text, borrowed.
    pub fn borrowed(&self) -> OutsideText<&str> {
        OutsideText(self.exact())
    }

    /// The part behind the last slash: a path without its folder.
    pub fn base_name(&self) -> OutsideText<&str> {
        let exact = self.exact();
        OutsideText(exact.rsplit('/').next().unwrap_or(exact))
    }
}

impl<S: AsRef<str>> fmt::Display for OutsideText<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.escaped())
    }
}

/// As a quoted string, in which Rust escapes no less.
impl<S: AsRef<str>> fmt::Debug for OutsideText<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.exact(), f)
    }
}

impl<S> OutsideText<S> {
    /// From a string of any kind.
    pub const fn new(text: S) -> Self {
        OutsideText(text)
    }

    /// The exact text, as it was given.
    pub fn into_exact(self) -> S {
        self.0
    }
}

impl From<String> for OutsideText {
    fn from(text: String) -> Self {
        OutsideText(text)
    }
}

impl From<&str> for OutsideText {
    fn from(text: &str) -> Self {
        OutsideText(text.to_owned())
    }
}

impl From<&Arc<str>> for OutsideText {
    fn from(text: &Arc<str>) -> Self {
        OutsideText(text.to_string())
    }
}

impl<S: AsRef<str>> PartialEq<str> for OutsideText<S> {
    fn eq(&self, other: &str) -> bool {
        self.exact() == other
    }
}

impl<S: AsRef<str>> PartialEq<&str> for OutsideText<S> {
    fn eq(&self, other: &&str) -> bool {
        self.exact() == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_keep_their_bytes_apart() {
        let path = |bytes: &[u8]| escape_path(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(path("/tmp/größe.data".as_bytes()), "/tmp/größe.data");
        assert_eq!(path(b"/tmp/\xff\xfe\n.data"), "/tmp/\\xff\\xfe\\x0a.data");
    }

    /// Every character that is escaped, by the numbers of the Unicode Standard.
    fn all_escaped() -> impl Iterator<Item = char> {
        let ranges = [
            (0, 0x1f),
            (0x7f, 0x9f),
            (0x61c, 0x61c),
            (0x200e, 0x200f),
            (0x2028, 0x202e),
            (0x2066, 0x2069),
        ];
        ranges.into_iter().flat_map(|(from, to)| (from..=to).filter_map(char::from_u32))
    }

    /// Text in which such characters are as frequent as others.
    fn hostile_text() -> impl Strategy<Value = String> {
        let hostile = prop::sample::select(all_escaped().collect::<Vec<_>>());
        let character = prop_oneof![hostile, any::<char>(), prop::char::range(' ', '~')];
        prop::collection::vec(character, 0..40).prop_map(String::from_iter)
    }

    #[test]
    fn terminal_controls_are_written_in_letters() {
        assert_eq!(escape("\x1b]0;x\x07\n\t\x7f"), "\\x1b]0;x\\x07\\x0a\\x09\\x7f");
        assert_eq!(escape("a\u{9b}2J\u{202e}b\u{2028}"), "a\\u{9b}2J\\u{202e}b\\u{2028}");
        for c in all_escaped() {
            assert!(is_escaped(c) && escape(&c.to_string()).starts_with('\\'), "{c:?}");
        }
        assert_eq!(
            (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| is_escaped(*c)).count(),
            all_escaped().count()
        );
    }

    #[test]
    fn every_byte_is_seen_at_every_offset() {
        for byte in 0..=u8::MAX {
            for len in 1..20 {
                for at in 0..len {
                    let mut bytes = vec![b'~'; len];
                    bytes[at] = byte;
                    let is_printable = byte.is_ascii_graphic() || byte == b' ';
                    assert_eq!(is_printable_ascii(&bytes), is_printable, "{byte} at {at} of {len}");
                }
            }
        }
        assert!(is_printable_ascii(b""));
    }

    #[test]
    fn ordinary_names_are_not_copied() {
        for text in ["", "main", "operator<<(std::ostream&)", "größe", "日本語", "a\\x1b", "🦀 {c}"]
        {
            assert!(matches!(escape(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn widths_are_those_of_the_printed_text() {
        let name = OutsideText::from("a\x1b");
        assert_eq!(format!("{name:>7}|{name:<7}|{name}"), "  a\\x1b|a\\x1b  |a\\x1b");
        assert_eq!(name.exact(), "a\x1b");
        assert_eq!(OutsideText::from("/b\n/c\r").base_name().to_string(), "c\\x0d");
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped_one_by_one() {
        let mut out = b"\x1b\x9b".to_vec();
        out.extend_from_slice(b"a\x9b\xc3\xa9\xe2\x80\n");
        escape_appended(&mut out, 2);
        assert_eq!(out, b"\x1b\x9ba\\x9b\xc3\xa9\\xe2\\x80\\x0a");
        escape_appended(&mut out, usize::MAX);
    }

    proptest! {
        #[test]
        fn nothing_printed_is_obeyed(text in hostile_text()) {
            let printed = OutsideText::from(text.as_str()).to_string();
            prop_assert!(!printed.contains(is_escaped), "{:?}", printed);
            prop_assert_eq!(&escape(&printed), &printed);
            let quoted = format!("{:?}", OutsideText::from(text.as_str()));
            prop_assert!(!quoted.contains(is_escaped), "{:?}", quoted);
            let mut appended = b"\x1b".to_vec();
            OutsideText::from(text.as_str()).append_to(&mut appended);
            prop_assert_eq!(&appended[1..], printed.as_bytes());
        }

        #[test]
        fn any_bytes_become_text_that_is_not_obeyed(before: Vec<u8>, bytes: Vec<u8>, text in hostile_text()) {
            let mut out = [&before[..], &bytes[..], text.as_bytes()].concat();
            escape_appended(&mut out, before.len());
            prop_assert_eq!(&out[..before.len()], &before[..]);
            let printed = std::str::from_utf8(&out[before.len()..]).unwrap();
            prop_assert!(!printed.contains(is_escaped), "{:?}", printed);
        }

        #[test]
        fn text_without_such_characters_stays_as_it_is(text in hostile_text()) {
            let plain: String = text.chars().filter(|c| !is_escaped(*c)).collect();
            prop_assert_eq!(&*escape(&plain), &*plain);
            let mut out = plain.clone().into_bytes();
            escape_appended(&mut out, 0);
            prop_assert_eq!(out, plain.into_bytes());
        }

        /// JSON's own escaping covers C0 only; characters above it may stand in strings.
        #[test]
        fn json_keeps_its_meaning(text in hostile_text()) {
            let text: String = text.chars().filter(|c| *c > '\x1f').collect();
            let json = escape_json(&text).into_owned();
            prop_assert!(!json.contains(is_escaped));
            let mut read = String::new();
            let mut rest = json.as_str();
            // Only escapes of this module are read back; the text may hold `\u` of its own.
            for c in text.chars() {
                let written = if is_escaped(c) { format!("\\u{:04x}", c as u32) } else { c.to_string() };
                rest = rest.strip_prefix(&written).unwrap();
                read.push(c);
            }
            prop_assert_eq!((read, rest), (text, ""));
        }
    }
}
