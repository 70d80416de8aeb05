//! A record's fields one by one, for events whose `print fmt` cannot be evaluated.

use super::conversion::{Conversion, Count, Radix, append_byte, append_hex};
use super::span::{Span, c_string, load};
use crate::format_file::{TraceEvent, TraceField};

/// A field and how it is printed.
#[derive(Clone, Debug)]
pub(super) struct FieldText {
    name: Box<[u8]>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Array { bytes: Span, is_string: bool },
    Hex { at: usize, size: usize },
    Decimal { at: usize, size: usize, signed: bool },
}

impl FieldText {
    /// The event's own fields.
    pub(super) fn of_event(event: &TraceEvent) -> Box<[FieldText]> {
        let of = |field: &TraceField| FieldText {
            name: field.name.as_bytes().into(),
            kind: kind(field),
        };
        event.fields.iter().map(of).collect()
    }

    /// Appends ` name=value`.
    pub(super) fn append(&self, raw: &[u8], out: &mut Vec<u8>) {
        out.push(b' ');
        out.extend_from_slice(&self.name);
        out.push(b'=');
        match &self.kind {
            Kind::Array { bytes, is_string } => append_array(bytes.bytes(raw), *is_string, out),
            Kind::Hex { at, size } => append_hex(load(raw, *at, *size), out),
            Kind::Decimal { at, size, signed } => {
                let radix = if *signed { Radix::SignedDecimal } else { Radix::Decimal };
                // Small signed numbers stand in two columns.
                let width = (*signed && *size == 2).then_some(Count::Fixed(2));
                let conversion = Conversion { width, ..Conversion::default() };
                let bits = match size {
                    1 => 8,
                    2 => 16,
                    4 => 32,
                    _ => 64,
                };
                conversion.append_number(load(raw, *at, *size), bits, radix, raw, out);
            }
        }
    }
}

fn kind(field: &TraceField) -> Kind {
    let (at, size) = (field.offset, field.size_bytes);
    if field.is_array {
        Kind::Array { bytes: Span::of_field(field), is_string: field.is_string() }
    } else if field.is_pointer() || (field.is_long() && !(field.is_signed && size == 8)) {
        Kind::Hex { at, size }
    } else {
        Kind::Decimal { at, size, signed: field.is_signed }
    }
}

fn append_array(bytes: &[u8], is_string: bool, out: &mut Vec<u8>) {
    let text = c_string(bytes);
    let printable = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | 0x09..=0x0d);
    if is_string && text.iter().all(printable) {
        out.extend_from_slice(text);
        return;
    }
    out.extend_from_slice(b"ARRAY[");
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        append_byte(*byte, out);
    }
    out.push(b']');
}
