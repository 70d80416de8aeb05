//! Compressed bytes in, whole records out, in steps of bounded size.

use super::source::{WalkEnd, walk};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// How much one step of decompression may produce: the largest block of a zstd frame.
const STEP_BYTES: usize = 128 << 10;

/// A block that is being filled.
pub(super) struct Filling<'a> {
    /// May be longer than its contents: bytes that were zeroed once are not zeroed again.
    out: &'a mut Vec<u8>,
    len: usize,
}

impl<'a> Filling<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Filling<'a> {
        Filling { out, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Free bytes behind the contents.
    fn room(&mut self, len: usize) -> &mut [u8] {
        let end = self.len + len;
        if self.out.len() < end {
            self.out.resize(end, 0);
        }
        &mut self.out[self.len..end]
    }

    /// Ends the block with its first `len` bytes.
    pub(super) fn finish(self, len: usize) {
        self.out.truncate(len.min(self.len));
    }
}

/// Why a step failed.
pub(super) enum InflateError {
    /// zstd's reason.
    Zstd(std::io::Error),
    /// A record with a size that cannot be, or that wraps others, which are never compressed
    /// themselves.
    Record(u16),
}

/// Decompresses.
pub(super) struct Inflater {
    decoder: Decoder<'static>,
    /// Start of a record whose end is still to come.
    partial: Vec<u8>,
    /// zstd may hold output back until it is asked again.
    more_output: bool,
    at_frame_end: bool,
    produced_bytes: u64,
}

impl Inflater {
    pub(super) fn new() -> std::io::Result<Inflater> {
        let decoder = Decoder::new()?;
        Ok(Inflater {
            decoder,
            partial: Vec::new(),
            more_output: false,
            at_frame_end: true,
            produced_bytes: 0,
        })
    }

    /// Forgets all that it was given.
    pub(super) fn reset(&mut self) -> std::io::Result<()> {
        self.decoder.reinit()?;
        self.partial.clear();
        (self.more_output, self.at_frame_end) = (false, true);
        Ok(())
    }

    /// Whether output waits that a step without input would give.
    pub(super) fn has_more_output(&self) -> bool {
        self.more_output
    }

    /// Whether a frame and a record end here: later bytes do not depend on earlier ones.
    pub(super) fn is_clean(&self) -> bool {
        self.at_frame_end && !self.more_output && self.partial.is_empty()
    }

    /// All bytes that it ever produced.
    pub(super) fn produced_bytes(&self) -> u64 {
        self.produced_bytes
    }

    /// Bytes of a record whose end did not come.
    pub(super) fn partial_bytes(&self) -> usize {
        self.partial.len()
    }

    /// One bounded step: appends whole records to `filling`. Gives back how much of `input` was
    /// used.
    pub(super) fn step(
        &mut self,
        input: &[u8],
        filling: &mut Filling<'_>,
    ) -> Result<usize, InflateError> {
        let start = filling.len();
        filling.push(&self.partial);
        self.partial.clear();
        let decoded = self.decode(input, filling);
        let bytes = &filling.out[start..filling.len];
        let (whole, end) = walk(bytes);
        self.partial.extend(&bytes[whole..]);
        filling.len = start + whole;
        let used = decoded.map_err(InflateError::Zstd)?;
        match end {
            WalkEnd::Whole => Ok(used),
            WalkEnd::Bad(size) => Err(InflateError::Record(size)),
            WalkEnd::Special(header) => Err(InflateError::Record(header.size_bytes)),
        }
    }

    fn decode(&mut self, input: &[u8], filling: &mut Filling<'_>) -> std::io::Result<usize> {
        // After an error too, it is nowhere.
        self.at_frame_end = false;
        let mut source = InBuffer::around(input);
        let mut output = OutBuffer::around(filling.room(STEP_BYTES));
        let hint = self.decoder.run(&mut source, &mut output)?;
        let (used, produced) = (source.pos(), output.pos());
        filling.len += produced;
        self.produced_bytes += produced as u64;
        self.at_frame_end = hint == 0;
        // A full output buffer may mean that more is waiting inside the decoder.
        self.more_output = produced == STEP_BYTES && !self.at_frame_end;
        if used == 0 && produced == 0 && !input.is_empty() {
            return Err(std::io::Error::other("the decoder makes no progress"));
        }
        Ok(used)
    }
}
