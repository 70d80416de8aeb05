//! Mutations of inputs.

use fastrand::Rng;

/// Numbers at the edges of their types, as bytes in little-endian order.
const EDGES: [u64; 9] = [
    0,
    1,
    i8::MAX as u64,
    u8::MAX as u64,
    u16::MAX as u64,
    i32::MAX as u64,
    u32::MAX as u64,
    i64::MAX as u64,
    u64::MAX,
];
/// Most mutations applied to one input.
const MAX_STACKED: usize = 6;
/// Longest piece that one mutation inserts, removes or repeats.
const MAX_PIECE_BYTES: usize = 32;

/// What mutations draw on beside the input itself.
pub(crate) struct Material<'a> {
    pub(crate) dictionary: &'a [&'a str],
    pub(crate) pool: &'a [Vec<u8>],
    pub(crate) max_len: usize,
}

/// Changes `input` in one to six random ways, and cuts it to the longest length allowed.
pub(crate) fn mutate(input: &mut Vec<u8>, material: &Material<'_>, rng: &mut Rng) {
    for _ in 0..rng.usize(1..=MAX_STACKED) {
        match rng.u8(0..8) {
            0 => flip_bit(input, rng),
            1 => set_byte(input, rng),
            2 => insert(input, &random_bytes(rng), rng),
            3 => remove(input, rng),
            4 => repeat(input, rng),
            5 => edge(input, rng),
            6 => token(input, material, rng),
            _ => splice(input, material, rng),
        }
    }
    input.truncate(material.max_len);
}

fn flip_bit(input: &mut [u8], rng: &mut Rng) {
    if let Some(byte) = pick(input, rng) {
        *byte ^= 1 << rng.u8(0..8);
    }
}

fn set_byte(input: &mut [u8], rng: &mut Rng) {
    if let Some(byte) = pick(input, rng) {
        *byte = rng.u8(..);
    }
}

fn pick<'a>(input: &'a mut [u8], rng: &mut Rng) -> Option<&'a mut u8> {
    let index = rng.usize(0..input.len().max(1));
    input.get_mut(index)
}

fn random_bytes(rng: &mut Rng) -> Vec<u8> {
    let len = rng.usize(1..=MAX_PIECE_BYTES);
    (0..len).map(|_| rng.u8(..)).collect()
}

fn insert(input: &mut Vec<u8>, piece: &[u8], rng: &mut Rng) {
    let at = rng.usize(0..=input.len());
    input.splice(at..at, piece.iter().copied());
}

fn piece(input: &[u8], rng: &mut Rng) -> std::ops::Range<usize> {
    let start = rng.usize(0..=input.len());
    let len = rng.usize(0..=MAX_PIECE_BYTES.min(input.len() - start));
    start..start + len
}

fn remove(input: &mut Vec<u8>, rng: &mut Rng) {
    let range = piece(input, rng);
    input.drain(range);
}

fn repeat(input: &mut Vec<u8>, rng: &mut Rng) {
    let copy = input[piece(input, rng)].to_vec();
    insert(input, &copy, rng);
}

/// Overwrites 1, 2, 4 or 8 bytes, as a field of a binary format.
fn edge(input: &mut [u8], rng: &mut Rng) {
    let width = 1 << rng.usize(0..4);
    let bytes = EDGES[rng.usize(0..EDGES.len())].to_le_bytes();
    if input.len() >= width {
        let at = rng.usize(0..=input.len() - width);
        input[at..at + width].copy_from_slice(&bytes[..width]);
    }
}

fn token(input: &mut Vec<u8>, material: &Material<'_>, rng: &mut Rng) {
    if let Some(token) = rng.choice(material.dictionary) {
        insert(input, token.as_bytes(), rng);
    }
}

/// The front of this input and the back of another.
fn splice(input: &mut Vec<u8>, material: &Material<'_>, rng: &mut Rng) {
    if let Some(other) = rng.choice(material.pool) {
        let keep = rng.usize(0..=input.len());
        let from = rng.usize(0..=other.len());
        input.truncate(keep);
        input.extend_from_slice(&other[from..]);
    }
}
