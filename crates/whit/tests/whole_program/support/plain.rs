//! Output that a terminal shows and does not obey.

/// Bytes of text that are quoted around what is wrong.
const CONTEXT_BYTES: usize = 60;

/// Text for people: UTF-8, and of all characters that are escaped only line ends and, where whit
/// writes them, tabs.
#[track_caller]
pub(crate) fn assert_plain(what: &str, output: &[u8]) {
    let text = match std::str::from_utf8(output) {
        Ok(text) => text,
        Err(error) => {
            panic!("{what}: no UTF-8: {:?}", around(output, error.valid_up_to()))
        }
    };
    let raw = |c| whit_types::is_escaped(c) && c != '\n' && c != '\t';
    if let Some(at) = text.find(raw) {
        panic!("{what}: a raw control character: {:?}", around(output, at));
    }
}

fn around(output: &[u8], at: usize) -> String {
    let part = &output[at.saturating_sub(CONTEXT_BYTES)..output.len().min(at + CONTEXT_BYTES)];
    String::from_utf8_lossy(part).into_owned()
}
