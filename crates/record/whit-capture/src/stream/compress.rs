//! Records in, COMPRESSED records out.
//!
//! A zstd frame holds whole records, some MiB of them, and is cut into COMPRESSED records of at
//! most 64 KiB. It begins with a whole record and ends behind one, so that a reader can start at
//! any frame; perf's reader, which decodes the whole stream in one go, takes frame after frame.
//! After each added chunk the frame is flushed: the bytes on the disk can be decoded, and no block
//! of zstd is larger than a record. (perf gives up at a record that decodes to nothing, as one that
//! holds the first part of a block does.)
//!
//! Every record is aligned to eight bytes: after a flush zstd stands between two of its blocks, and
//! as many empty blocks of three bytes follow as it takes (at most seven, as three and eight have
//! no common divisor).

use std::io;

use whit_perfdata::record::{HEADER_SIZE_BYTES, record_type};
use whit_sys::WriteBuffer;
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{self, CCtx, CParameter, InBuffer, OutBuffer};

/// A frame is ended when it holds this much: smaller ones can be decoded by more threads, but begin
/// without history more often. Stack dumps of two threads, 100 MiB, level 3 and 4 MiB of window:
/// ratio 12.5 with frames of 512 KiB, 22.5 with 4 MiB, 24.5 with 8 MiB, 25.9 with 16 MiB.
pub(crate) const FRAME_BYTES: usize = 8 << 20;
/// The same for packed records; readers hold ten times as much of them.
pub(crate) const PACKED_FRAME_BYTES: usize = 1 << 20;
/// History that zstd searches at levels that would search less (level 1: 512 KiB, level 3: 2 MiB).
/// The same stacks come again later than that. With it, in frames of 8 MiB of the same data, the
/// ratio grows from 12.5 to 21.6 at level 1 and from 20.8 to 24.5 at level 3, in no more time:
/// repeated bytes need not be coded.
const WINDOW_LOG: u32 = 22;
/// From this level on zstd's own window is as large, or larger.
const LARGE_WINDOW_LEVEL: i32 = 9;
/// Most that is added to a frame at once.
pub(crate) const CHUNK_BYTES_MAX: usize = 64 << 10;
/// Largest record whose size is a multiple of eight.
const RECORD_BYTES_MAX: usize = 65_528;
/// Content of a record that zstd fills; what padding and a frame's end take is kept free.
const PAYLOAD_BYTES_MAX: usize = RECORD_BYTES_MAX - HEADER_SIZE_BYTES - 32;
/// A block of zstd's that holds nothing: raw, of no bytes, not the last one.
const EMPTY_BLOCK: [u8; 3] = [0; 3];
/// zstd ends a frame that was flushed with an empty block, and adds no checksum.
const FRAME_END_BYTES: usize = EMPTY_BLOCK.len();
/// Most bytes of padding.
const PADDING_BYTES_MAX: usize = 7 * EMPTY_BLOCK.len();
/// Most bytes of a flush: zstd's block header, padding, and the header of a new record.
const FLUSH_BYTES_MAX: usize = 2 * (EMPTY_BLOCK.len() + PADDING_BYTES_MAX + HEADER_SIZE_BYTES);

/// Most bytes of one record's content that a reader must be able to hold. It is closed behind each
/// chunk, whose last record may reach over the chunk's end.
pub(crate) const DECODED_BYTES_MAX: usize = CHUNK_BYTES_MAX + RECORD_BYTES_MAX;

/// Free bytes that one addition to a frame, and its end, may need.
pub(crate) fn chunk_room_bytes() -> usize {
    let bytes = zstd_safe::compress_bound(DECODED_BYTES_MAX) + 2 * FLUSH_BYTES_MAX;
    let records = bytes / (PAYLOAD_BYTES_MAX - PADDING_BYTES_MAX) + 2;
    bytes + records * (HEADER_SIZE_BYTES + PADDING_BYTES_MAX)
}

/// Compresses records into a buffer.
pub(crate) struct Compressor {
    context: CCtx<'static>,
    /// Where in the buffer the record starts that is being filled.
    record: Option<usize>,
    /// Bytes that the frame has taken; none when there is no frame.
    frame_bytes: usize,
    /// As much as it may take.
    frame_bytes_max: usize,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compressor({} bytes in the frame)", self.frame_bytes)
    }
}

impl Compressor {
    /// At a level from 1 to 22. Frames end behind so much.
    pub(crate) fn new(level: i32, frame_bytes_max: usize) -> io::Result<Compressor> {
        let mut context = CCtx::create();
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(error)?;
        context.set_parameter(CParameter::ContentSizeFlag(false)).map_err(error)?;
        if level < LARGE_WINDOW_LEVEL {
            context.set_parameter(CParameter::WindowLog(WINDOW_LOG)).map_err(error)?;
        }
        Ok(Compressor { context, record: None, frame_bytes: 0, frame_bytes_max })
    }

    /// Adds whole records, no more than [`CHUNK_BYTES_MAX`] but for the last one; the buffer must
    /// have [room](chunk_room_bytes). Afterwards everything that was ever added can be decoded. The
    /// frame goes on, in another buffer if need be, until it is large; or it ends here, where that
    /// `must_end`.
    pub(crate) fn chunk(
        &mut self,
        ring_slices: [&[u8]; 2],
        must_end: bool,
        out: &mut WriteBuffer,
    ) -> io::Result<()> {
        let size = ring_slices[0].len() + ring_slices[1].len();
        if size == 0 {
            return Ok(());
        }
        for piece in ring_slices {
            let mut input = InBuffer::around(piece);
            while input.pos < piece.len() {
                self.step(&mut input, ZSTD_EndDirective::ZSTD_e_continue, out)?;
            }
        }
        while self.step(&mut InBuffer::around(&[]), ZSTD_EndDirective::ZSTD_e_flush, out)? > 0 {}
        self.frame_bytes += size;
        let is_full = self.frame_bytes >= self.frame_bytes_max;
        // Records filled to the last byte leave none open. A full frame then goes on, as perf takes
        // no record that decodes to nothing; where perf reads nothing, in pipes, the end may be one.
        match self.record {
            Some(start) if is_full || must_end => self.end_frame(start, out)?,
            None if must_end => {
                let start = open_record(out);
                self.record = Some(start);
                self.end_frame(start, out)?;
            }
            _ => {}
        }
        self.close_record(out);
        Ok(())
    }

    fn end_frame(&mut self, record: usize, out: &mut WriteBuffer) -> io::Result<()> {
        // The end itself is an empty block, to be counted with the padding in front of it.
        pad(record, FRAME_END_BYTES, out);
        while self.step(&mut InBuffer::around(&[]), ZSTD_EndDirective::ZSTD_e_end, out)? > 0 {}
        self.frame_bytes = 0;
        Ok(())
    }

    /// One call of zstd, into the record that is being filled. Gives what zstd still holds back.
    fn step(
        &mut self,
        input: &mut InBuffer<'_>,
        directive: ZSTD_EndDirective,
        out: &mut WriteBuffer,
    ) -> io::Result<usize> {
        let start = *self.record.get_or_insert_with(|| open_record(out));
        let filled = out.used().len() - start - HEADER_SIZE_BYTES;
        // Behind the padding stands the frame's end, for which the records have some room left.
        let is_end = directive == ZSTD_EndDirective::ZSTD_e_end;
        let limit = if is_end { RECORD_BYTES_MAX - HEADER_SIZE_BYTES } else { PAYLOAD_BYTES_MAX };
        let room = (limit - filled).min(out.free_bytes());
        if room == 0 {
            return Err(io::Error::other("a compressed frame is larger than zstd's bound for it"));
        }
        let mut output = OutBuffer::around(&mut out.free()[..room]);
        let left = self.context.compress_stream2(&mut output, input, directive).map_err(error)?;
        let filled = filled + output.pos();
        out.fill(filled + start + HEADER_SIZE_BYTES - out.used().len());
        if filled == PAYLOAD_BYTES_MAX && !is_end {
            // Full to the last byte, which keeps it aligned; zstd goes on in the next record.
            set_size(start, out);
            self.record = None;
        }
        Ok(left)
    }

    /// Closes the record that is being filled, aligned; one without content is taken back.
    fn close_record(&mut self, out: &mut WriteBuffer) {
        let Some(start) = self.record.take() else { return };
        if out.used().len() == start + HEADER_SIZE_BYTES {
            out.truncate(start);
            return;
        }
        pad(start, 0, out);
        set_size(start, out);
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
fn set_size(start: usize, out: &mut WriteBuffer) {
    let size = (out.used().len() - start) as u16;
    out.used_mut()[start + 6..start + 8].copy_from_slice(&size.to_le_bytes());
}

/// Adds empty blocks until the record, with `behind` more bytes, is aligned to eight bytes.
fn pad(start: usize, behind: usize, out: &mut WriteBuffer) {
    while !(out.used().len() - start + behind).is_multiple_of(8) {
        out.push(&EMPTY_BLOCK);
    }
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

    /// The output of a decoder that does not know whether more is to come.
    fn decoded(out: &WriteBuffer) -> Vec<u8> {
        let joined = contents(out.used()).concat();
        let mut decoded = Vec::new();
        let mut decoder = zstd::stream::read::Decoder::new(&joined[..]).unwrap();
        let _ = std::io::Read::read_to_end(&mut decoder, &mut decoded);
        decoded
    }

    fn compress(frames: &[Vec<u8>], level: i32) -> WriteBuffer {
        let chunks = frames.iter().map(|frame| frame.len() / CHUNK_BYTES_MAX + 1).sum::<usize>();
        let mut out = WriteBuffer::new(chunk_room_bytes() * chunks.max(1));
        let mut compressor = Compressor::new(level, FRAME_BYTES).unwrap();
        for frame in frames {
            for chunk in frame.chunks(CHUNK_BYTES_MAX) {
                let (front, back) = chunk.split_at(chunk.len() / 3);
                let is_last = chunk.as_ptr_range().end == frame.as_ptr_range().end;
                compressor.chunk([front, back], is_last, &mut out).unwrap();
            }
        }
        out
    }

    #[test]
    fn added_records_can_be_decoded() {
        let mut out = WriteBuffer::new(chunk_room_bytes() * 4);
        let mut compressor = Compressor::new(1, FRAME_BYTES).unwrap();
        let mut taken = Vec::new();
        for number in 0..40usize {
            let chunk = noise(number * 37 + 1, number as u64 + 1);
            compressor.chunk([&chunk, &[]], false, &mut out).unwrap();
            taken.extend(chunk);
            assert_eq!(decoded(&out), taken, "{number}");
        }
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
        let frame = noise(FRAME_BYTES + DECODED_BYTES_MAX, 88_172_645_463_325_252);
        let out = compress(&[frame.clone(), frame.clone()], 1);
        assert!(contents(out.used()).len() >= 20);
        assert_eq!(decoded(&out), [&frame[..], &frame].concat());
    }

    #[test]
    fn an_empty_frame_writes_nothing() {
        assert!(compress(&[vec![], vec![]], 3).used().is_empty());
    }

    #[test]
    fn frames_that_just_fill_a_record_are_aligned_too() {
        for size in 65_440..65_540 {
            let out = compress(&[noise(size, size as u64)], 1);
            assert_eq!(decoded(&out).len(), size);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_survive_a_round_trip(
            sizes in proptest::collection::vec(0usize..200_000, 1..4),
            repeat in 1usize..5000,
            level in 1i32..6,
        ) {
            let frames: Vec<_> = sizes
                .iter()
                .map(|&size| (0..size).map(|i| (i % repeat * 7) as u8).collect::<Vec<u8>>())
                .collect();
            let out = compress(&frames, level);
            prop_assert_eq!(decoded(&out), frames.concat());
        }
    }
}
