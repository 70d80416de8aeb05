//! CPython's table of lines (3.11 and later): for each row of code units a line, in one to a few bytes.

/// Kinds of entries.
const SHORT_MAX: u8 = 9;
const ONE_LINE_FIRST: u8 = 10;
const ONE_LINE_MAX: u8 = 12;
const NO_COLUMNS: u8 = 13;
const LONG: u8 = 14;
/// The first byte of an entry has its upper bit set.
const FIRST: u8 = 0x80;

/// The same of the front of a table: behind it lines are unknown: line 0.
pub(super) fn decode_front(front: &[u8], first_line: u32) -> Vec<(u32, u32)> {
    // The last entry may be cut.
    let last = front.iter().rposition(|byte| byte & FIRST != 0).unwrap_or(0);
    let (whole, unit) = rows(&front[..last], first_line);
    whole.into_iter().chain([(unit, 0)]).collect()
}

/// Lines by the code unit that they begin at, ascending: each time that the line changes.
pub(super) fn decode(table: &[u8], first_line: u32) -> Vec<(u32, u32)> {
    rows(table, first_line).0
}

/// The lines, and the code unit behind the last.
fn rows(table: &[u8], first_line: u32) -> (Vec<(u32, u32)>, u32) {
    let mut lines: Vec<(u32, u32)> = Vec::new();
    let (mut rest, mut unit, mut line) = (table, 0u32, i64::from(first_line));
    while let Some((first, behind)) = rest.split_first() {
        if first & FIRST == 0 {
            break;
        }
        let end = behind.iter().position(|byte| byte & FIRST != 0).unwrap_or(behind.len());
        let (fields, next) = behind.split_at(end);
        let kind = first >> 3 & 15;
        line = line.saturating_add(match kind {
            0..=SHORT_MAX => 0,
            ONE_LINE_FIRST..=ONE_LINE_MAX => i64::from(kind - ONE_LINE_FIRST),
            NO_COLUMNS | LONG => signed(fields),
            // No line.
            _ => 0,
        });
        if let Ok(number) = u32::try_from(line)
            && kind <= LONG
            && lines.last().is_none_or(|(_, last)| *last != number)
        {
            lines.push((unit, number));
        }
        unit = unit.saturating_add(u32::from(first & 7) + 1);
        rest = next;
    }
    // Kept as long as the process lives.
    lines.shrink_to_fit();
    (lines, unit)
}

/// The number at the front: six bits a byte, the lowest first; the lowest bit of all is its sign.
fn signed(bytes: &[u8]) -> i64 {
    let mut value = 0u64;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 63) << (6 * place);
        if byte & 64 == 0 {
            break;
        }
    }
    let size = (value >> 1) as i64;
    if value & 1 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_entry_is_read() {
        let entry = |kind: u8, units: u8| FIRST | kind << 3 | (units - 1);
        // Line 100; the same; one line on; 40 lines back; 100 lines on, with columns; no line; two lines on.
        let table = [
            [entry(NO_COLUMNS, 1), 0].as_slice(),
            &[entry(3, 8), 0x11],
            &[entry(11, 2), 1, 2],
            &[entry(NO_COLUMNS, 1), 0x40 | 17, 1],
            &[entry(LONG, 1), 0x40 | 8, 3, 1, 1, 1],
            &[entry(15, 1)],
            &[entry(12, 3), 1, 2],
        ]
        .concat();
        let expected = [(0, 100), (9, 101), (11, 61), (12, 161), (14, 163)];
        assert_eq!(decode(&table, 100), expected);
        // A line in front of the first of all is none.
        assert_eq!(decode(&[entry(NO_COLUMNS, 1), 3], 0), []);
    }

    proptest! {
        #[test]
        fn arbitrary_tables_end(table in prop::collection::vec(any::<u8>(), 0..200), first: u32) {
            let lines = decode(&table, first);
            prop_assert!(lines.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
