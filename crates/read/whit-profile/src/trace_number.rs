//! Whole numbers in the records of tracepoints.

use whit_perfdata::tracing_data::{FieldLocation, TraceEvent, TraceField};
use whit_types::Tid;

/// A whole number inside a tracepoint's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number {
    offset: usize,
    size_bytes: usize,
    is_signed: bool,
}

impl Number {
    pub(crate) fn of(event: &TraceEvent, name: &str) -> Option<Number> {
        let field: &TraceField = event.field(name)?;
        let is_number = field.location == FieldLocation::Fixed
            && !field.is_array
            && (1..=8).contains(&field.size_bytes);
        let TraceField { offset, size_bytes, is_signed, .. } = *field;
        is_number.then_some(Number { offset, size_bytes, is_signed })
    }

    pub(crate) fn read(self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size_bytes)?)?;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let value = u64::from_le_bytes(word);
        let unused_bits = 64 - 8 * self.size_bytes as u32;
        if self.is_signed {
            return Some(((value << unused_bits) as i64 >> unused_bits) as u64);
        }
        Some(value)
    }

    pub(crate) fn tid(self, raw: &[u8]) -> Option<Tid> {
        self.read(raw).map(|value| Tid(value as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_typed() {
        let raw = [0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0];
        let read =
            |offset, size_bytes, is_signed| Number { offset, size_bytes, is_signed }.read(&raw);
        assert_eq!(read(0, 4, true), Some(u64::MAX));
        assert_eq!(read(0, 4, false), Some(u64::from(u32::MAX)));
        assert_eq!(read(4, 4, true), Some(2));
        assert_eq!(read(0, 8, true), Some(0x2_ffff_ffff));
        assert_eq!(read(5, 4, true), None);
        assert_eq!(read(usize::MAX, 8, true), None);
    }
}
