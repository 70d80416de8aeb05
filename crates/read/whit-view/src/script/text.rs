//! Numbers, padded text and names, as the fields of a sample have them.

use super::fields::Fields;
use whit_profile::script::ScriptedFrame;
use whit_types::OutsideText;

/// Digits of a decimal `u64`, at most.
const MAX_DECIMAL: usize = 20;
/// Digits of a hexadecimal `u64`, at most.
const MAX_HEX: usize = 16;

pub(super) fn append_symbol(out: &mut Vec<u8>, frame: &ScriptedFrame<'_>, fields: Fields) {
    if !fields.has(Fields::SYM) {
        return;
    }
    out.push(b' ');
    let Some(symbol) = frame.function else {
        out.extend_from_slice(b"[unknown]");
        return;
    };
    symbol.append_to(out);
    if fields.has(Fields::SYMOFF) {
        out.extend_from_slice(b"+0x");
        hex(out, frame.function_offset, 0);
    }
}

pub(super) fn append_dso(out: &mut Vec<u8>, frame: &ScriptedFrame<'_>, fields: Fields) {
    if fields.has(Fields::DSO) {
        out.extend_from_slice(b" (");
        frame.dso.unwrap_or(OutsideText::new("[unknown]")).append_to(out);
        out.push(b')');
    }
}

pub(super) fn pad(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}

pub(super) fn right(out: &mut Vec<u8>, text: &str, width: usize) {
    pad(out, width.saturating_sub(text.len()));
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn left(out: &mut Vec<u8>, text: &str, width: usize) {
    out.extend_from_slice(text.as_bytes());
    pad(out, width.saturating_sub(text.len()));
}

/// The digits of `value` in `base`, in the end of `digits`.
fn digits(mut value: u64, base: u64, digits: &mut [u8]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[(value % base) as usize];
        value /= base;
        if value == 0 {
            return &digits[at..];
        }
    }
}

pub(super) fn decimal(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut room = [0; MAX_DECIMAL];
    let text = digits(value, 10, &mut room);
    pad(out, width.saturating_sub(text.len()));
    out.extend_from_slice(text);
}

pub(super) fn zero_padded(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut room = [0; MAX_DECIMAL];
    let text = digits(value, 10, &mut room);
    out.resize(out.len() + width.saturating_sub(text.len()), b'0');
    out.extend_from_slice(text);
}

pub(super) fn signed(out: &mut Vec<u8>, value: i32, width: usize) {
    let mut room = [0; MAX_DECIMAL + 1];
    let count = digits(u64::from(value.unsigned_abs()), 10, &mut room).len();
    let mut at = room.len() - count;
    if value < 0 {
        at -= 1;
        room[at] = b'-';
    }
    pad(out, width.saturating_sub(room.len() - at));
    out.extend_from_slice(&room[at..]);
}

pub(super) fn hex(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut room = [0; MAX_HEX];
    let text = digits(value, 16, &mut room);
    pad(out, width.saturating_sub(text.len()));
    out.extend_from_slice(text);
}
