//! Where bytes stand in a tracepoint's record.

use super::syntax::Node;
use crate::format_file::{FieldLocation, TraceField};

/// A piece of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Span {
    /// At a fixed place; a size of zero means all that is left.
    Fixed {
        /// Offset.
        at: usize,
        /// Bytes; 0 takes the rest of the record.
        size: usize,
    },
    /// Where a field says.
    Dynamic {
        /// Offset of that field.
        at: usize,
        /// Its size: 4, or 2 in old kernels, which recorded no length.
        size: usize,
        /// Counted from the field's end.
        relative: bool,
    },
}

impl Span {
    /// The bytes of a field.
    pub(super) fn of_field(field: &TraceField) -> Span {
        let (at, size) = (field.offset, field.size_bytes);
        match field.location {
            FieldLocation::Fixed => Span::Fixed { at, size },
            FieldLocation::Dynamic => Span::Dynamic { at, size, relative: false },
            FieldLocation::RelativeDynamic => Span::Dynamic { at, size, relative: true },
        }
    }

    /// The bytes that an expression stands for, casts aside.
    pub(super) fn of(node: &Node<'_>) -> Option<Span> {
        match node {
            Node::Cast(_, of) => Span::of(of),
            Node::Field(field)
            | Node::DynamicArray(field)
            | Node::DynamicText(field)
            | Node::Bitmask(field)
            | Node::CpuMask(field) => Some(Span::of_field(field)),
            _ => None,
        }
    }

    /// The bytes; empty where the record does not have them.
    pub(super) fn bytes(self, raw: &[u8]) -> &[u8] {
        let found = match self {
            Span::Fixed { at, size: 0 } => raw.get(at..),
            Span::Fixed { at, size } => at.checked_add(size).and_then(|end| raw.get(at..end)),
            Span::Dynamic { at, size, relative } => dynamic(raw, at, size, relative),
        };
        found.unwrap_or_default()
    }

    /// The bytes before the first NUL.
    pub(super) fn c_string(self, raw: &[u8]) -> &[u8] {
        c_string(self.bytes(raw))
    }
}

/// Cuts at the first NUL.
pub(super) fn c_string(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

fn dynamic(raw: &[u8], at: usize, size: usize, relative: bool) -> Option<&[u8]> {
    let place = load(raw, at, size);
    let base = if relative { at.checked_add(size)? } else { 0 };
    let start = base.checked_add((place & 0xffff) as usize)?;
    if size == 2 {
        return raw.get(start..);
    }
    raw.get(start..)?.get(..(place >> 16 & 0xffff) as usize)
}

/// The little-endian number of that size, extended by zeros; zero where the record does not have
/// it, and for sizes that no number has.
#[inline]
pub(super) fn load(raw: &[u8], at: usize, size: usize) -> u64 {
    let bytes = raw.get(at..).unwrap_or_default();
    match size {
        1 => bytes.first().map(|byte| u64::from(*byte)),
        2 => bytes.first_chunk().map(|bytes| u64::from(u16::from_le_bytes(*bytes))),
        4 => bytes.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes))),
        8 => bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
        _ => None,
    }
    .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_places_are_followed_and_checked() {
        let mut raw = vec![0, 0, 0, 0];
        raw.extend([10, 0, 3, 0, 0, 0]);
        raw.extend(b"ab\0z");
        let dynamic = Span::Dynamic { at: 4, size: 4, relative: false };
        assert_eq!(dynamic.bytes(&raw), b"ab\0");
        assert_eq!(dynamic.c_string(&raw), b"ab");
        assert_eq!(Span::Dynamic { at: 4, size: 2, relative: false }.bytes(&raw), b"ab\0z");
        raw[4] = 2;
        assert_eq!(Span::Dynamic { at: 4, size: 4, relative: true }.c_string(&raw), b"ab");
        raw[6] = 200;
        assert_eq!(Span::Dynamic { at: 4, size: 4, relative: true }.bytes(&raw), b"");
        assert_eq!(Span::Fixed { at: 10, size: 0 }.bytes(&raw), b"ab\0z");
        assert_eq!(Span::Fixed { at: usize::MAX, size: 2 }.bytes(&raw), b"");
    }

    #[test]
    fn numbers_past_the_end_are_zero() {
        let raw = [1, 2, 3, 4, 5];
        assert_eq!(load(&raw, 1, 4), 0x0504_0302);
        assert_eq!([load(&raw, 2, 4), load(&raw, 9, 1), load(&raw, 0, 3)], [0; 3]);
    }
}
