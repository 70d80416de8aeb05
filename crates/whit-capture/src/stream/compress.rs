//! Records in, COMPRESSED records out.
//!
//! The bytes of a block are one zstd frame, cut into COMPRESSED records of at most 64 KiB. A frame
//! begins with a whole record and ends behind one, so that a reader can start at any frame; perf's
//! reader, which decodes the whole stream in one go, takes frame after frame. The last record of a
//! frame is padded with a skippable frame, so that every record stays aligned to eight bytes.

use std::io;

use whit_perfdata::record::{HEADER_SIZE_BYTES, record_type};
use whit_sys::WriteBuffer;
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{self, CCtx, CParameter, InBuffer, OutBuffer};

/// A frame is ended when it holds this much: larger ones gain nothing (three percent from 512 KiB
/// to no limit at all, on stack dumps), smaller ones can be decoded by more threads.
pub(crate) const FRAME_BYTES: usize = 512 << 10;
/// Most that is added to a frame at once.
pub(crate) const CHUNK_BYTES_MAX: usize = 64 << 10;
/// The largest record that is added may reach over the end of a chunk.
const FRAME_BYTES_MAX: usize = FRAME_BYTES + CHUNK_BYTES_MAX + RECORD_BYTES_MAX;
/// Largest record whose size is a multiple of eight.
const RECORD_BYTES_MAX: usize = 65_528;
/// Magic number and size of a skippable frame; its content follows.
const SKIPPABLE_HEADER_BYTES: usize = 8;
const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;

/// What a reader must be able to hold of one record's content. perf's reader needs as much again
/// behind the frame that a skippable frame follows.
pub(crate) const DECODED_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// Room that a whole frame may need.
pub(crate) fn frame_room_bytes() -> usize {
    let bytes = zstd_safe::compress_bound(FRAME_BYTES_MAX) + SKIPPABLE_HEADER_BYTES;
    let records = bytes / (RECORD_BYTES_MAX - HEADER_SIZE_BYTES) + 2;
    bytes + records * (HEADER_SIZE_BYTES + 8)
}

/// Compresses records into a buffer.
pub(crate) struct Compressor {
    context: CCtx<'static>,
    /// Where in the buffer the record starts that is being filled.
    record: Option<usize>,
    /// Bytes that the frame has taken; none when there is no frame.
    frame_bytes: usize,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compressor({} bytes in the frame)", self.frame_bytes)
    }
}

impl Compressor {
    /// At a level from 1 to 22.
    pub(crate) fn new(level: i32) -> io::Result<Compressor> {
        let mut context = CCtx::create();
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(error)?;
        context.set_parameter(CParameter::ContentSizeFlag(false)).map_err(error)?;
        Ok(Compressor { context, record: None, frame_bytes: 0 })
    }

    /// Whether a frame is open.
    pub(crate) fn in_frame(&self) -> bool {
        self.frame_bytes > 0
    }

    /// Whether the frame is to be ended.
    pub(crate) fn is_full(&self) -> bool {
        self.frame_bytes >= FRAME_BYTES
    }

    /// Adds bytes to the frame. The buffer must have had [room](frame_room_bytes) when the frame
    /// began.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut WriteBuffer) -> io::Result<()> {
        let mut input = InBuffer::around(bytes);
        while input.pos < bytes.len() {
            self.step(&mut input, ZSTD_EndDirective::ZSTD_e_continue, out)?;
        }
        self.frame_bytes += bytes.len();
        Ok(())
    }

    /// Ends the frame, if there is one, and its last record.
    pub(crate) fn end_frame(&mut self, out: &mut WriteBuffer) -> io::Result<()> {
        if !self.in_frame() {
            return Ok(());
        }
        while self.step(&mut InBuffer::around(&[]), ZSTD_EndDirective::ZSTD_e_end, out)? > 0 {}
        self.frame_bytes = 0;
        let start = self.record.take().unwrap_or(out.used().len());
        let size = out.used().len() - start;
        if !size.is_multiple_of(8) && size + SKIPPABLE_HEADER_BYTES + 8 > RECORD_BYTES_MAX {
            // No room for the padding: the last bytes move into a record of their own.
            let keep = (size - SKIPPABLE_HEADER_BYTES - 8) / 8 * 8;
            let moved = out.used()[start + keep..].to_vec();
            out.truncate(start + keep);
            close_record(start, out);
            let start = open_record(out);
            out.push(&moved);
            pad(start, out);
        } else if size > 0 {
            pad(start, out);
        }
        Ok(())
    }

    /// One call of zstd, into the record that is being filled. Gives what zstd still holds back.
    fn step(
        &mut self,
        input: &mut InBuffer<'_>,
        directive: ZSTD_EndDirective,
        out: &mut WriteBuffer,
    ) -> io::Result<usize> {
        let start = match self.record {
            Some(start) => start,
            None => *self.record.insert(open_record(out)),
        };
        let room = RECORD_BYTES_MAX - (out.used().len() - start);
        let free = out.free();
        let room = room.min(free.len());
        if room == 0 {
            return Err(io::Error::other("a compressed frame is larger than zstd's bound for it"));
        }
        let mut output = OutBuffer::around(&mut free[..room]);
        let left = self.context.compress_stream2(&mut output, input, directive).map_err(error)?;
        let filled = output.pos();
        out.fill(filled);
        if out.used().len() - start == RECORD_BYTES_MAX {
            close_record(start, out);
            self.record = None;
        }
        Ok(left)
    }
}

fn error(code: usize) -> io::Error {
    io::Error::other(format!("zstd: {}", zstd_safe::get_error_name(code)))
}

fn open_record(out: &mut WriteBuffer) -> usize {
    let start = out.used().len();
    out.push(&u64::from(record_type::COMPRESSED).to_le_bytes());
    start
}

/// Writes the record's size into its header.
fn close_record(start: usize, out: &mut WriteBuffer) {
    let size = (out.used().len() - start) as u16;
    out.used_mut()[start + 6..start + 8].copy_from_slice(&size.to_le_bytes());
}

/// Closes a record at a multiple of eight bytes.
fn pad(start: usize, out: &mut WriteBuffer) {
    let size = out.used().len() - start;
    if !size.is_multiple_of(8) {
        let content = 8 - size % 8;
        out.push(&SKIPPABLE_MAGIC.to_le_bytes());
        out.push(&(content as u32).to_le_bytes());
        out.push(&[0; 8][..content]);
    }
    close_record(start, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The records' contents, each a whole number of words.
    fn contents(bytes: &[u8]) -> Vec<&[u8]> {
        let mut contents = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = usize::from(u16::from_le_bytes([rest[6], rest[7]]));
            assert_eq!(u32::from_le_bytes(rest[..4].try_into().unwrap()), record_type::COMPRESSED);
            assert!(size > 8 && size.is_multiple_of(8), "{size}");
            contents.push(&rest[8..size]);
            rest = &rest[size..];
        }
        contents
    }

    fn compress(frames: &[Vec<u8>], level: i32) -> WriteBuffer {
        let mut out = WriteBuffer::new(frame_room_bytes() * frames.len());
        let mut compressor = Compressor::new(level).unwrap();
        for frame in frames {
            for chunk in frame.chunks(CHUNK_BYTES_MAX) {
                compressor.push(chunk, &mut out).unwrap();
            }
            compressor.end_frame(&mut out).unwrap();
            assert!(!compressor.in_frame());
        }
        out
    }

    /// Bytes that zstd can do nothing with.
    fn noise(size: usize, mut seed: u64) -> Vec<u8> {
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as u8
        };
        (0..size).map(|_| next()).collect()
    }

    #[test]
    fn incompressible_frames_span_records_and_come_back() {
        let frame = noise(FRAME_BYTES_MAX, 88_172_645_463_325_252);
        let out = compress(&[frame.clone(), frame.clone()], 1);
        assert!(contents(out.used()).len() >= 20);
        let joined = contents(out.used()).concat();
        assert_eq!(zstd::stream::decode_all(&joined[..]).unwrap(), [&frame[..], &frame].concat());
    }

    #[test]
    fn an_empty_frame_writes_nothing() {
        assert!(compress(&[vec![], vec![]], 3).used().is_empty());
    }

    #[test]
    fn frames_that_just_fill_a_record_are_aligned_too() {
        for size in 65_440..65_540 {
            let out = compress(&[noise(size, size as u64)], 1);
            let joined = contents(out.used()).concat();
            assert_eq!(zstd::stream::decode_all(&joined[..]).unwrap().len(), size);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_goes_in_comes_out(
            sizes in proptest::collection::vec(0usize..200_000, 1..4),
            repeat in 1usize..5000,
            level in 1i32..6,
        ) {
            let frames: Vec<_> = sizes
                .iter()
                .map(|&size| (0..size).map(|i| (i % repeat * 7) as u8).collect::<Vec<u8>>())
                .collect();
            let out = compress(&frames, level);
            let joined = contents(out.used()).concat();
            prop_assert_eq!(zstd::stream::decode_all(&joined[..]).unwrap(), frames.concat());
        }
    }
}
