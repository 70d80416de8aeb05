//! Columns of integers as text: LEB128 variable-length bytes, in base64.
//!
//! A column is one string of JSON. Small differences take one byte, so the arrays are turned into
//! differences before (each column's reader in `web/src/decode.js` does the reverse), and a page
//! with 200 000 nodes stays at some two megabytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Appends `value` as LEB128: seven bits a byte, least significant first, bit 7 set on all but the
/// last.
pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Unsigned numbers as they are.
pub(crate) fn plain(values: impl Iterator<Item = u64>) -> String {
    let mut bytes = Vec::new();
    values.for_each(|value| push_varint(&mut bytes, value));
    STANDARD.encode(bytes)
}

/// Differences to the number before (to 0 for the first), zigzag: 0, -1, 1, -2 become 0, 1, 2, 3.
pub(crate) fn deltas(values: impl Iterator<Item = u32>) -> String {
    let mut bytes = Vec::new();
    differences(values).for_each(|difference| push_varint(&mut bytes, difference));
    STANDARD.encode(bytes)
}

/// Differences in zigzag form.
pub(crate) fn differences(values: impl Iterator<Item = u32>) -> impl Iterator<Item = u64> {
    let mut before = 0i64;
    values.map(i64::from).map(move |value| {
        let delta = value - before;
        before = value;
        ((delta << 1) ^ (delta >> 63)) as u64
    })
}

/// The reverse, for the tests of the round trip.
#[cfg(test)]
pub(crate) mod decode {
    use super::*;

    pub(crate) fn plain(column: &str) -> Vec<u64> {
        let mut values = Vec::new();
        let (mut value, mut shift) = (0u64, 0);
        for byte in STANDARD.decode(column).expect("columns are base64") {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                values.push(value);
                (value, shift) = (0, 0);
            }
        }
        assert_eq!(shift, 0, "a column ends with a whole number");
        values
    }

    pub(crate) fn deltas(column: &str) -> Vec<u32> {
        let mut before = 0i64;
        let undo = |z: u64| {
            before += (z >> 1) as i64 ^ -((z & 1) as i64);
            u32::try_from(before).expect("values are u32")
        };
        plain(column).into_iter().map(undo).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_numbers_take_one_byte() {
        assert_eq!(plain([0, 1, 127].into_iter()), STANDARD.encode([0, 1, 127]));
        assert_eq!(plain([128].into_iter()), STANDARD.encode([0x80, 1]));
        assert_eq!(deltas([1, 0].into_iter()), STANDARD.encode([2, 1]));
    }

    proptest! {
        #[test]
        fn columns_come_back(values: Vec<u64>, small: Vec<u32>) {
            prop_assert_eq!(decode::plain(&plain(values.iter().copied())), values);
            prop_assert_eq!(decode::deltas(&deltas(small.iter().copied())), small);
        }
    }
}
