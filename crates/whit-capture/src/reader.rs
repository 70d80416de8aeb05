//! A reader: owns rings and drains them into a sink.
//!
//! There is one reader now, on the calling thread. Several, each with its own rings and sink, are
//! a matter of moving them to threads: a reader shares nothing.

use whit_sys::RingRead;

use crate::loss::{CutRecord, RingCounts, RingWatch, TimeLayout};
use crate::ring_set::MappedRing;
use crate::sink::{Sink, SinkError};

/// Drains a set of rings.
#[derive(Debug)]
pub struct Reader {
    rings: Vec<(MappedRing, RingWatch)>,
    /// Holds the one record that the end of a ring's data area may cut.
    scratch: Vec<u8>,
}

impl Reader {
    /// A reader of these rings.
    pub fn new(rings: Vec<MappedRing>, layout: TimeLayout) -> Reader {
        let rings = rings.into_iter().map(|ring| (ring, RingWatch::new(layout))).collect();
        Reader { rings, scratch: Vec::new() }
    }

    /// Drains every ring once, then ends the round. Gives the number of bytes taken; without any
    /// there is no round to end.
    pub fn pass(&mut self, sink: &mut dyn Sink) -> Result<u64, SinkError> {
        let mut bytes = 0;
        for (ring, watch) in &mut self.rings {
            let read = ring.ring.read();
            if read.is_empty() {
                continue;
            }
            bytes += read.len() as u64;
            let before = watch.counts;
            let cut = watch.observe(read.slices());
            if let Err(error) = write_out(&read, cut, &mut self.scratch, sink) {
                // What was not written is not counted as recorded.
                watch.counts = before;
                watch.observe(first(read.slices(), error.kept));
                return Err(error);
            }
            read.release();
        }
        if bytes > 0 {
            sink.round()?;
        }
        Ok(bytes)
    }

    /// Each ring with what has passed through it.
    pub fn rings(&self) -> impl Iterator<Item = (&MappedRing, &RingCounts)> {
        self.rings.iter().map(|(ring, watch)| (ring, &watch.counts))
    }

    /// Size of each ring's data area.
    pub fn ring_size_bytes(&self) -> usize {
        self.rings.first().map_or(0, |(ring, _)| ring.ring.data_size_bytes())
    }
}

/// Writes from the ring itself. The sink wants whole records, so that a failed write never leaves
/// half of one behind; the one that the end of the data area cuts is copied. An error says how
/// many bytes of the whole are kept.
fn write_out(
    read: &RingRead<'_>,
    cut: Option<CutRecord>,
    scratch: &mut Vec<u8>,
    sink: &mut dyn Sink,
) -> Result<(), SinkError> {
    let [front, back] = read.slices();
    let (start, behind) = match cut {
        None => (front.len(), 0),
        Some(cut) => (cut.start, cut.end - front.len()),
    };
    scratch.clear();
    scratch.extend_from_slice(&front[start..]);
    scratch.extend_from_slice(&back[..behind]);
    let mut written = 0;
    for piece in [&front[..start], scratch, &back[behind..]] {
        sink.records(piece).map_err(|error| SinkError { kept: written + error.kept, ..error })?;
        written += piece.len();
    }
    Ok(())
}

/// The first `size` bytes of two slices.
fn first([front, back]: [&[u8]; 2], size: usize) -> [&[u8]; 2] {
    let in_front = size.min(front.len());
    [&front[..in_front], &back[..size - in_front]]
}
