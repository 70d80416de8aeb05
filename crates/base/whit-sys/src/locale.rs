//! How the user's language writes numbers (`LC_NUMERIC`).

use std::ffi::CStr;

/// Digits of a group, as `localeconv(3)` says them where groups are of three.
const THREE: libc::c_char = 3;

/// How numbers are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberFormat {
    /// Between whole and broken part.
    pub decimal_point: String,
    /// Between groups of three digits; empty where the language has none.
    pub thousands_separator: String,
}

/// As the environment asks for. Where the C library does not know that language, as in `C`: a
/// point, and no groups. Call it before other threads run: the C library keeps it for the process.
pub fn numbers() -> NumberFormat {
    // SAFETY: a nul-terminated string that lives for ever; no other thread formats numbers by way
    // of the C library (Rust does not).
    let known = unsafe { libc::setlocale(libc::LC_NUMERIC, c"".as_ptr()) };
    if known.is_null() {
        return NumberFormat { decimal_point: ".".to_owned(), thousands_separator: String::new() };
    }
    // SAFETY: always returns the address of a struct of the C library's.
    let conv = unsafe { libc::localeconv() };
    // SAFETY: a valid, aligned pointer; nobody changes the locale meanwhile.
    let conv = unsafe { &*conv };
    let grouping = first(conv.grouping);
    let separator = if grouping == Some(THREE) { text(conv.thousands_sep) } else { None };
    NumberFormat {
        decimal_point: text(conv.decimal_point).unwrap_or_else(|| ".".to_owned()),
        thousands_separator: separator.unwrap_or_default(),
    }
}

fn first(characters: *const libc::c_char) -> Option<libc::c_char> {
    if characters.is_null() {
        return None;
    }
    // SAFETY: a nul-terminated string of the locale has a first character.
    Some(unsafe { *characters })
}

/// A string of the locale, unless it is empty or no UTF-8.
fn text(characters: *const libc::c_char) -> Option<String> {
    if characters.is_null() {
        return None;
    }
    // SAFETY: a nul-terminated string of the locale, which is not changed meanwhile.
    let text = unsafe { CStr::from_ptr(characters) };
    text.to_str().ok().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_always_is_a_decimal_point() {
        let format = numbers();
        assert!(!format.decimal_point.is_empty());
        assert_ne!(format.decimal_point, format.thousands_separator);
    }
}
