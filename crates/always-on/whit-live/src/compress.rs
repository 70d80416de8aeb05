//! Pieces that are closed, as COMPRESSED records: call chains repeat, so that a window holds many times as much.

use std::io;
use whit_perfdata::encode::push_record;
use whit_perfdata::record::{HEADER_SIZE_BYTES, RawRecord, record_type};

/// The fastest level. Records of switches with their chains become a twentieth at 900 MB/s.
pub(crate) const LEVEL: i32 = 1;
/// Largest content of a COMPRESSED record: a piece, and the record that reaches over its bound.
pub(crate) const DECODED_BYTES_MAX: usize = 512 << 10;
/// Largest body of a record whose size is a multiple of eight.
const BODY_BYTES_MAX: usize = 65_528 - HEADER_SIZE_BYTES;
/// A frame that decoders skip fills a record up to a multiple of eight: eight bytes of head, and the padding.
const SKIPPED_MAGIC: u32 = 0x184D_2A50;

/// Makes COMPRESSED records. Each is one frame, so that it is read without those before: perf takes no record that holds
/// a part of one of zstd's blocks.
pub(crate) struct Compressor(zstd::bulk::Compressor<'static>);

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compressor")
    }
}

impl Compressor {
    pub(crate) fn new() -> io::Result<Compressor> {
        zstd::bulk::Compressor::new(LEVEL).map(Compressor)
    }

    /// Compresses whole records. Those that become no smaller stay as they are.
    pub(crate) fn records(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        self.add(bytes, &mut out)?;
        Ok(out)
    }

    fn add(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if bytes.len() <= DECODED_BYTES_MAX {
            let mut body = self.0.compress(bytes)?;
            pad(&mut body);
            if body.len() <= BODY_BYTES_MAX && body.len() < bytes.len() {
                push_record(out, record_type::COMPRESSED, 0, &body);
                return Ok(());
            }
        }
        match half(bytes) {
            Some(at) => {
                self.add(&bytes[..at], out)?;
                self.add(&bytes[at..], out)
            }
            None => {
                out.extend_from_slice(bytes);
                Ok(())
            }
        }
    }
}

/// The end of the first record behind the middle; `None` where there is only one record.
fn half(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    while let Some((_, behind)) = RawRecord::split(rest) {
        rest = behind;
        let at = bytes.len() - rest.len();
        if at >= bytes.len() / 2 {
            return Some(at).filter(|at| *at < bytes.len()).or_else(|| first_end(bytes));
        }
    }
    None
}

/// The end of the first record, where others follow.
fn first_end(bytes: &[u8]) -> Option<usize> {
    let (_, behind) = RawRecord::split(bytes)?;
    (!behind.is_empty()).then(|| bytes.len() - behind.len())
}

fn pad(body: &mut Vec<u8>) {
    let padding = body.len().next_multiple_of(8) - body.len();
    if padding > 0 {
        body.extend(SKIPPED_MAGIC.to_le_bytes());
        body.extend((padding as u32).to_le_bytes());
        body.resize(body.len() + padding, 0);
    }
}

/// The records, with those that are compressed unpacked.
pub(crate) fn decoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some((record, behind)) = RawRecord::split(rest) {
        match record.header.kind {
            record_type::COMPRESSED => zstd::stream::copy_decode(record.body, &mut out)?,
            _ => out.extend_from_slice(&rest[..rest.len() - behind.len()]),
        }
        rest = behind;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(size: usize, fill: impl FnMut() -> u8) -> Vec<u8> {
        let mut out = Vec::new();
        let body: Vec<u8> = std::iter::repeat_with(fill).take(size).collect();
        push_record(&mut out, record_type::SAMPLE, 0, &body);
        out
    }

    fn is_aligned(bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while let Some((record, behind)) = RawRecord::split(rest) {
            if !record.header.size_bytes.is_multiple_of(8) {
                return false;
            }
            rest = behind;
        }
        rest.is_empty()
    }

    #[test]
    fn repeated_records_become_one_small_record() {
        let all = sample(320, || 7).repeat(800);
        let small = Compressor::new().unwrap().records(&all).unwrap();
        assert!(small.len() < all.len() / 20, "{}", small.len());
        assert!(is_aligned(&small) && RawRecord::split(&small).unwrap().1.is_empty());
        assert_eq!(decoded(&small).unwrap(), all);
    }

    #[test]
    fn random_records_stay_as_they_are() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let all: Vec<u8> = (0..200).flat_map(|_| sample(2040, &mut random)).collect();
        let small = Compressor::new().unwrap().records(&all).unwrap();
        assert_eq!(decoded(&small).unwrap(), all);
        assert!(small.len() <= all.len() && is_aligned(&small));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn all_records_come_back(
            records in prop::collection::vec((0usize..3000, any::<u8>()), 0..100),
        ) {
            let one = |(words, fill): &(usize, u8)| {
                let mut byte = *fill;
                sample(words * 8, || { byte = byte.wrapping_mul(31).wrapping_add(*fill); byte })
            };
            let all: Vec<u8> = records.iter().flat_map(one).collect();
            let small = Compressor::new().unwrap().records(&all).unwrap();
            prop_assert!(is_aligned(&small));
            prop_assert_eq!(decoded(&small).unwrap(), all);
        }
    }
}
