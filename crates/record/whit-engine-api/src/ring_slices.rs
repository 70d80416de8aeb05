//! The bytes of a ring in up to two pieces, as one row of records.

use whit_perfdata::record::HEADER_SIZE_BYTES;

/// Bytes in two pieces, the second one following the first.
#[derive(Clone, Copy, Debug)]
pub struct RingSlices<'a>(pub [&'a [u8]; 2]);

/// A record in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef {
    /// Its first byte.
    pub at: usize,
    /// Its type.
    pub kind: u32,
    /// Its size, header included.
    pub size: usize,
}

impl<'a> RingSlices<'a> {
    /// Bytes of both pieces.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.0[0].len() + self.0[1].len()
    }

    /// The word at a position. Records are aligned to words, and so is the seam.
    #[inline]
    pub fn word(&self, at: usize) -> Option<u64> {
        let [front, back] = self.0;
        let bytes = match at.checked_sub(front.len()) {
            None => front.get(at..)?,
            Some(at) => back.get(at..)?,
        };
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    /// The bytes of a record, which the seam may cut; `scratch` holds them then.
    #[inline]
    pub fn bytes_of<'s>(&self, seen: RecordRef, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'a: 's,
    {
        let [front, back] = self.0;
        let end = seen.at + seen.size;
        if end <= front.len() {
            return &front[seen.at..end];
        }
        if let Some(start) = seen.at.checked_sub(front.len()) {
            return &back[start..end - front.len()];
        }
        scratch.clear();
        scratch.extend_from_slice(&front[seen.at..]);
        scratch.extend_from_slice(&back[..end - front.len()]);
        scratch
    }

    /// The record at a position; `None` where there is no whole one.
    #[inline]
    pub fn record_at(&self, at: usize) -> Option<RecordRef> {
        let header = self.word(at)?;
        let size = (header >> 48) as usize;
        let fits =
            size >= HEADER_SIZE_BYTES && size.is_multiple_of(8) && at + size <= self.size_bytes();
        fits.then_some(RecordRef { at, kind: header as u32, size })
    }

    /// The records from a position on, up to the first that is not whole.
    #[inline]
    pub fn records_from(self, at: usize) -> impl Iterator<Item = RecordRef> + use<'a> {
        let first = self.record_at(at);
        std::iter::successors(first, move |seen| self.record_at(seen.at + seen.size))
    }

    /// The bytes before a position.
    #[inline]
    pub fn first(&self, size: usize) -> [&'a [u8]; 2] {
        let [front, back] = self.0;
        let in_front = size.min(front.len());
        [&front[..in_front], &back[..size - in_front]]
    }

    /// Size of the whole records that fit into `room` bytes.
    #[inline]
    pub fn whole_records(self, room: u64) -> usize {
        let ends = self.records_from(0).map(|seen| seen.at + seen.size);
        ends.take_while(|end| *end as u64 <= room).last().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::encode::push_record;

    #[test]
    fn only_whole_records_are_kept() {
        let mut bytes = Vec::new();
        (0..4).for_each(|_| push_record(&mut bytes, 9, 0, &[0; 24]));
        for (room, kept) in [(0, 0), (31, 0), (32, 32), (100, 96), (1000, 128)] {
            for seam in (0..=bytes.len()).step_by(8) {
                let ring_slices = RingSlices([&bytes[..seam], &bytes[seam..]]);
                assert_eq!(ring_slices.whole_records(room), kept, "{room}");
                assert_eq!(ring_slices.first(kept).concat(), bytes[..kept]);
                for seen in ring_slices.records_from(0) {
                    let whole = &bytes[seen.at..seen.at + seen.size];
                    assert_eq!(ring_slices.bytes_of(seen, &mut Vec::new()), whole);
                }
            }
        }
        let none = RingSlices([&[0; 64], &[]]);
        assert_eq!(none.whole_records(64), 0, "records of size 0 are none");
    }
}
