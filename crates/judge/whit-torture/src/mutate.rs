//! Damage to recordings that knows their structure: a mutant gets past the first check and into the code behind.
//!
//! Offsets are those of `docs/format.md`.

use fastrand::Rng;

/// Bytes of the file header, and where its parts stand.
const HEADER_BYTES: usize = 104;
const HEADER_WORDS: [usize; 6] = [8, 16, 24, 32, 40, 48];
const BITMAP_AT: usize = 72;
const BITMAP_BYTES: usize = 32;
/// The word with the size of the records.
const DATA_SIZE_AT: usize = 48;
/// `PERF_RECORD_COMPRESSED`.
const COMPRESSED: u32 = 81;
/// Kinds of records that readers know.
const KINDS: [u32; 26] = [
    1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 64, 65, 66, 67, 68, 79, 81,
];
/// Records that one repetition adds.
const COPIES_MAX: usize = 2000;
/// Largest content of a record whose size is a multiple of eight.
const BODY_MAX: usize = 65_528 - 8;
/// Control characters, markup and direction marks.
const HOSTILE: [&[u8]; 6] = [
    b"\x1b[31m\x1b]0;x\x07",
    b"\r\n\x9b2J",
    b"</script><img src=x>",
    "\u{202e}\u{2066}".as_bytes(),
    b"\x00\xff\xfe",
    b"%s%n{{}}$(x)",
];

/// Damages a recording in one to four places. Gives a description.
pub(crate) fn mutate(bytes: &mut Vec<u8>, random: &mut Rng) -> String {
    let mut done = Vec::new();
    for _ in 0..random.usize(1..=4) {
        let what = match random.u8(0..10) {
            0 => header(bytes, random),
            1 => attribute(bytes, random),
            2 => feature(bytes, random),
            3 => cut(bytes, random),
            4 => text(bytes, random),
            _ => records(bytes, random),
        };
        done.push(what.unwrap_or("nothing"));
    }
    done.join(", ")
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put(bytes: &mut [u8], at: usize, value: u64, size: usize) -> Option<()> {
    bytes.get_mut(at..at.checked_add(size)?)?.copy_from_slice(&value.to_le_bytes()[..size]);
    Some(())
}

/// A number that breaks sums, products and indices.
fn number(random: &mut Rng, near: u64) -> u64 {
    match random.u8(0..12) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => 1 << 63,
        4 => u64::from(u32::MAX),
        5 => 1 << random.u32(0..64),
        6 => near.wrapping_add(1),
        7 => near.wrapping_sub(1),
        8 => near.wrapping_mul(2),
        9 => near.wrapping_add(8),
        10 => random.u64(0..70_000),
        _ => random.u64(..),
    }
}

fn header(bytes: &mut [u8], random: &mut Rng) -> Option<&'static str> {
    if random.u8(0..3) == 0 {
        let at = BITMAP_AT + random.usize(0..BITMAP_BYTES);
        *bytes.get_mut(at)? ^= 1 << random.u8(0..8);
        return Some("a feature bit");
    }
    let at = HEADER_WORDS[random.usize(0..HEADER_WORDS.len())];
    let value = number(random, word(bytes, at)?);
    put(bytes, at, value, 8)?;
    Some("a word of the header")
}

/// Offset and size of the attributes, and of the records.
fn sections(bytes: &[u8]) -> Option<[(usize, usize); 2]> {
    let pair = |at: usize| {
        let (offset, size) = (word(bytes, at)?, word(bytes, at + 8)?);
        let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
        let size = if size == 0 { bytes.len().checked_sub(offset)? } else { size };
        (offset.checked_add(size)? <= bytes.len()).then_some((offset, size))
    };
    Some([pair(24)?, pair(40)?])
}

fn attribute(bytes: &mut [u8], random: &mut Rng) -> Option<&'static str> {
    let [(offset, size), _] = sections(bytes)?;
    let at = offset + random.usize(0..size.max(4) / 4) * 4;
    let value = number(random, word(bytes, at)?);
    put(bytes, at, value, 4 << random.usize(0..2))?;
    Some("a word of an attribute")
}

fn feature(bytes: &mut [u8], random: &mut Rng) -> Option<&'static str> {
    let [_, (offset, size)] = sections(bytes)?;
    let bits: u32 =
        bytes.get(BITMAP_AT..BITMAP_AT + BITMAP_BYTES)?.iter().map(|byte| byte.count_ones()).sum();
    let entry = offset + size + 16 * random.usize(0..(bits as usize).max(1));
    let (at, length) = (word(bytes, entry)? as usize, word(bytes, entry + 8)? as usize);
    if random.bool() {
        let entry = entry + 8 * random.usize(0..2);
        let value = number(random, word(bytes, entry)?);
        put(bytes, entry, value, 8)?;
        return Some("the place of a feature");
    }
    let at = at.checked_add(random.usize(0..length.max(4) / 4) * 4)?;
    let value = number(random, word(bytes, at)?);
    put(bytes, at, value, 4 << random.usize(0..2))?;
    Some("a word of a feature")
}

fn cut(bytes: &mut Vec<u8>, random: &mut Rng) -> Option<&'static str> {
    let at = random.usize(HEADER_BYTES.min(bytes.len())..=bytes.len());
    if random.bool() {
        bytes.truncate(at);
        return Some("the end");
    }
    let end = (at + random.usize(0..4096)).min(bytes.len());
    bytes[at..end].fill(0);
    Some("a hole")
}

/// Text that a reader may print.
fn text(bytes: &mut [u8], random: &mut Rng) -> Option<&'static str> {
    let start = random.usize(0..bytes.len().max(1));
    let is_text = |byte: &u8| byte.is_ascii_graphic();
    let found = bytes[start..].windows(4).position(|four| four.iter().all(is_text))?;
    let hostile = HOSTILE[random.usize(0..HOSTILE.len())];
    let at = start + found;
    let end = (at + hostile.len()).min(bytes.len());
    bytes[at..end].copy_from_slice(&hostile[..end - at]);
    Some("a text")
}

fn records(bytes: &mut Vec<u8>, random: &mut Rng) -> Option<&'static str> {
    let [_, (offset, size)] = sections(bytes)?;
    let mut records = bytes[offset..offset + size].to_vec();
    let what = in_records(&mut records, random, true)?;
    // Behind the records stand features, whose places would move: damage keeps sizes where it can.
    if records.len() == size {
        bytes[offset..offset + size].copy_from_slice(&records);
    } else {
        bytes.splice(offset..offset + size, records.iter().copied());
        put(bytes, DATA_SIZE_AT, records.len() as u64, 8)?;
    }
    Some(what)
}

/// Where records begin.
fn starts(records: &[u8]) -> Vec<usize> {
    let next = |at: usize| {
        let size = (word(records, at)? >> 48) as usize;
        (size >= 8 && at + size <= records.len()).then_some(at + size)
    };
    let all = std::iter::successors(Some(0), |at| next(*at));
    all.take_while(|at| next(*at).is_some()).collect()
}

fn in_records(records: &mut Vec<u8>, random: &mut Rng, may_open: bool) -> Option<&'static str> {
    let starts = starts(records);
    let at = *starts.get(random.usize(0..starts.len().max(1)))?;
    let size = (word(records, at)? >> 48) as usize;
    if may_open && word(records, at)? as u32 == COMPRESSED && random.u8(0..4) != 0 {
        return in_compressed(records, at, size, random);
    }
    match random.u8(0..8) {
        0 => {
            put(records, at, u64::from(KINDS[random.usize(0..KINDS.len())]), 4)?;
            Some("the kind of a record")
        }
        1 => {
            put(records, at + 4, number(random, 2), 2)?;
            Some("the misc bits of a record")
        }
        2 => {
            put(records, at + 6, number(random, size as u64), 2)?;
            Some("the size of a record")
        }
        3 => {
            let record = records[at..at + size].to_vec();
            let copies = random.usize(1..COPIES_MAX.min((16 << 20) / size.max(1)).max(2));
            records.splice(at..at, record.repeat(copies));
            Some("copies of a record")
        }
        4 => {
            let other = starts[random.usize(0..starts.len())];
            let record = records[at..at + size].to_vec();
            records.splice(other..other, record);
            Some("a record in another place")
        }
        5 => {
            records.drain(at..at + size);
            Some("a record left out")
        }
        _ => {
            let field = at + 8 + random.usize(0..size.saturating_sub(8).max(4) / 4) * 4;
            let value = number(random, word(records, field.min(records.len() - 8))?);
            put(records, field, value, 4 << random.usize(0..2))?;
            Some("a field of a record")
        }
    }
}

/// Damages the records inside of a compressed one.
fn in_compressed(
    records: &mut Vec<u8>,
    at: usize,
    size: usize,
    random: &mut Rng,
) -> Option<&'static str> {
    let mut inner = zstd::stream::decode_all(&records[at + 8..at + size]).ok()?;
    in_records(&mut inner, random, false)?;
    let packed = zstd::stream::encode_all(&inner[..], 1).ok()?;
    let padded = packed.len().next_multiple_of(8);
    if padded > BODY_MAX {
        return None;
    }
    // Zeros are an end of input that zstd's frames allow no decoder to miss; perf pads likewise.
    let mut body = packed;
    body.resize(padded, 0);
    let header = u64::from(COMPRESSED) | ((padded + 8) as u64) << 48;
    records.splice(at..at + size, header.to_le_bytes().into_iter().chain(body));
    Some("a record inside of a compressed one")
}

#[cfg(test)]
mod tests {
    use super::{Rng, mutate};
    use proptest::prelude::{any, prop, proptest};

    fn recording() -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/recordings/demo/demo.data");
        std::fs::read(path).unwrap()
    }

    #[test]
    fn every_kind_of_damage_changes_a_recording() {
        let whole = recording();
        let mut seen = std::collections::BTreeSet::new();
        let mut random = Rng::with_seed(1);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            let what = mutate(&mut bytes, &mut random);
            seen.extend(what.split(", ").map(str::to_owned));
        }
        // All but those of compressed records, which this recording has none of.
        assert!(seen.len() >= 14, "{seen:?}");
    }

    #[test]
    fn the_same_seed_makes_the_same_mutant() {
        let of = |seed| {
            let mut bytes = recording();
            mutate(&mut bytes, &mut Rng::with_seed(seed));
            bytes
        };
        assert!(of(7) == of(7) && of(7) != of(8));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..400), seed: u64) {
            mutate(&mut bytes, &mut Rng::with_seed(seed));
        }
    }
}
