//! Tables as bytes, for the cache on disk. All numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`], the last byte of which is the version |
//! | 8 | stated address of the first bucket |
//! | 4 | number of words of the index, *i* |
//! | 4 | number of rows, *r* |
//! | 4 | number of rules, *u* |
//! | 4 | size of a bucket in bytes |
//! | 8 | checksum of everything else, this field taken as zero |
//! | 4 *i* | the index |
//! | 4 *r* | the rows |
//! | 8 *u* | the rules |

use super::{
    BUCKET_BYTES, CompactRule, ROWS_MAX, RULE_BITS, RULES_MAX, SPAN_MAX_BYTES, UnwindTable,
};

/// How a file begins.
pub const MAGIC: [u8; 8] = *b"whitUNW\x03";
/// Size of everything in front of the index.
pub const HEADER_BYTES: usize = 40;
/// Where the checksum stands.
const CHECKSUM_AT: usize = 32;
/// Multiplier of the checksum: 2^64 divided by the golden ratio, odd.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Why bytes are no table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Invalid {
    /// Another format, or another version of this one.
    Version,
    /// The length is not what the header says.
    Length,
    /// Bits have changed.
    Checksum,
    /// Numbers that no table has.
    Content,
}

/// The bytes of a table.
pub fn encode(table: &UnwindTable) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + table.size_bytes());
    out.extend(MAGIC);
    out.extend(table.start.to_le_bytes());
    for count in [table.index.len(), table.rows.len(), table.rules.len(), BUCKET_BYTES as usize] {
        out.extend((count as u32).to_le_bytes());
    }
    out.extend(0u64.to_le_bytes());
    table.index.iter().chain(&table.rows).for_each(|word| out.extend(word.to_le_bytes()));
    table.rules.iter().for_each(|rule| out.extend(rule.encode()));
    let sum = checksum(&out);
    out[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The table that these bytes hold.
///
/// # Errors
///
/// Any damage; only bytes that [`encode`] could have written are taken.
pub fn decode(bytes: &[u8]) -> Result<UnwindTable, Invalid> {
    if bytes.first_chunk() != Some(&MAGIC) {
        return Err(Invalid::Version);
    }
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(Invalid::Length)?;
    let long = |at: usize| word64(&header[at..]);
    let short = |at: usize| long(at) as u32 as usize;
    let (start, counts) = (long(8), [short(16), short(20), short(24)]);
    let [index, rows, rules] = counts;
    if short(28) as u64 != BUCKET_BYTES {
        return Err(Invalid::Version);
    }
    let size = HEADER_BYTES as u64 + 4 * (index as u64 + rows as u64) + 8 * rules as u64;
    if bytes.len() as u64 != size {
        return Err(Invalid::Length);
    }
    if checksum(bytes) != long(CHECKSUM_AT) {
        return Err(Invalid::Checksum);
    }
    let (words, rule_bytes) = bytes[HEADER_BYTES..].split_at(4 * (index + rows));
    let words = words.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let mut words: Vec<u32> = words.collect();
    let row_words = words.split_off(index);
    let decoded = rule_bytes.as_chunks::<8>().0.iter().map(|rule| CompactRule::decode(*rule));
    let decoded: Option<Vec<_>> = decoded.collect();
    let rules = decoded.ok_or(Invalid::Content)?;
    let table = UnwindTable { start, index: words, rows: row_words, rules };
    if is_sound(&table) { Ok(table) } else { Err(Invalid::Content) }
}

/// Whether every look-up ends at a rule that is there.
fn is_sound(table: &UnwindTable) -> bool {
    let UnwindTable { start, index, rows, rules } = table;
    let buckets = index.len() as u64;
    let ascends = index.windows(2).all(|pair| pair[0] <= pair[1]);
    let row_is_sound = |row: &u32| ((row & ((1 << RULE_BITS) - 1)) as usize) < rules.len();
    (2..=SPAN_MAX_BYTES / BUCKET_BYTES + 2).contains(&buckets)
        && start % BUCKET_BYTES == 0
        && start.checked_add(SPAN_MAX_BYTES + BUCKET_BYTES).is_some()
        && (1..=ROWS_MAX).contains(&rows.len())
        && (1..=RULES_MAX).contains(&rules.len())
        && index.first() == Some(&0)
        && index.last().is_some_and(|last| *last as usize == rows.len())
        && ascends
        && rows.iter().all(row_is_sound)
}

/// Mixes words of eight bytes, in order; finds accidents, not forgeries.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = bytes.len() as u64;
    for (number, word) in bytes.chunks(8).enumerate() {
        let word = if number == CHECKSUM_AT / 8 { 0 } else { word64(word) };
        sum = (sum.rotate_left(23) ^ word).wrapping_mul(MIX);
    }
    sum
}

/// Up to eight bytes; missing ones are zero.
fn word64(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
