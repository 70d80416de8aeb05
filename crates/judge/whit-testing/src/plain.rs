//! Output that a terminal shows and does not obey.

/// Bytes of text that are quoted around the failure.
const CONTEXT_BYTES: usize = 60;

/// Characters that change how a terminal, or a reader of lines, shows others: controls, line and paragraph
/// separators, and marks of direction. This list is the tests' own; whit's is not asked.
fn is_obeyed(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Text for people: UTF-8, and of all characters that a terminal obeys only line ends and tabs.
///
/// # Panics
///
/// Where there is any other.
#[track_caller]
pub fn assert_plain(what: &str, output: &[u8]) {
    let text = match std::str::from_utf8(output) {
        Ok(text) => text,
        Err(error) => {
            panic!("{what}: no UTF-8: {:?}", around(output, error.valid_up_to()))
        }
    };
    if let Some(at) = text.find(|c| is_obeyed(c) && c != '\n' && c != '\t') {
        panic!("{what}: a raw control character: {:?}", around(output, at));
    }
}

fn around(output: &[u8], at: usize) -> String {
    let part = &output[at.saturating_sub(CONTEXT_BYTES)..output.len().min(at + CONTEXT_BYTES)];
    String::from_utf8_lossy(part).into_owned()
}
