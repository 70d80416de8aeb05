//! A reader: owns rings and drains them into a stream of its own. It shares nothing, so that any
//! number of them run at the same time.

use whit_sys::affinity;

use crate::loss::{RingCounts, RingWatch, TimeLayout};
use crate::mapped_files::MappedFiles;
use crate::ring_set::MappedRing;
use crate::stream::{SinkError, StreamSink};

/// Rings that are drained from the same CPUs.
#[derive(Debug)]
struct Group {
    /// The CPUs to run on meanwhile; `None` where that is no matter.
    place: Option<Vec<u32>>,
    rings: Vec<(MappedRing, RingWatch)>,
}

/// Which rings a pass drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Those that hold at least `--mmap-flush` bytes.
    WorthWhile,
    /// All that hold something.
    Everything,
}

/// Drains a set of rings.
#[derive(Debug)]
pub struct Reader {
    groups: Vec<Group>,
    /// Where the thread runs now, as far as it was moved.
    here: Option<usize>,
    /// Least that is worth taking from a ring.
    min_bytes: usize,
    /// Whether passes are marked in the stream, for readers of recordings that sort by them. Only
    /// the one reader of a recording can do that.
    marks_rounds: bool,
}

/// What a reader is told.
#[derive(Clone, Copy, Debug)]
pub struct ReaderOptions {
    /// Least that is worth taking from a ring, `--mmap-flush`.
    pub min_bytes: usize,
    /// Whether to end each pass with a FINISHED_ROUND record.
    pub marks_rounds: bool,
}

impl Reader {
    /// A reader of these rings. `place` says on which CPUs to drain a ring.
    pub fn new(
        rings: Vec<MappedRing>,
        layout: TimeLayout,
        options: ReaderOptions,
        place: impl Fn(&MappedRing) -> Option<Vec<u32>>,
    ) -> Reader {
        let mut groups: Vec<Group> = Vec::new();
        for ring in rings {
            let place = place(&ring);
            let ring = (ring, RingWatch::new(layout));
            match groups.iter_mut().find(|group| group.place == place) {
                Some(group) => group.rings.push(ring),
                None => groups.push(Group { place, rings: vec![ring] }),
            }
        }
        let ReaderOptions { min_bytes, marks_rounds } = options;
        Reader { groups, here: None, min_bytes, marks_rounds }
    }

    /// Drains every ring once. Gives the number of bytes taken.
    pub fn pass(&mut self, sink: &mut StreamSink, which: Pass) -> Result<u64, SinkError> {
        let min_bytes = match which {
            Pass::WorthWhile => self.min_bytes.max(1),
            Pass::Everything => 1,
        };
        let mut bytes = 0;
        for index in 0..self.groups.len() {
            let group = &self.groups[index];
            if group.rings.iter().all(|(ring, _)| ring.ring.available_bytes() < min_bytes) {
                continue;
            }
            self.go_to(index);
            for (ring, watch) in &mut self.groups[index].rings {
                if ring.ring.available_bytes() >= min_bytes {
                    bytes += drain(ring, watch, sink)?;
                }
            }
        }
        if bytes > 0 {
            if self.marks_rounds {
                sink.round()?;
            }
            // The last passes are flushed by the end of the stream, together.
            if which == Pass::WorthWhile {
                sink.flush()?;
            }
        }
        Ok(bytes)
    }

    /// Moves the thread to the CPUs of a group. A CPU that has gone offline is drained from
    /// wherever the thread is.
    fn go_to(&mut self, index: usize) {
        if self.here == Some(index) {
            return;
        }
        if let Some(cpus) = &self.groups[index].place
            && affinity::set(0, cpus).is_ok()
        {
            self.here = Some(index);
        }
    }

    /// Files that were mapped as code, as far as these rings tell.
    pub fn mapped_files(&self) -> impl Iterator<Item = &MappedFiles> {
        self.groups.iter().flat_map(|group| &group.rings).map(|(_, watch)| &watch.mapped)
    }

    /// Each ring with what has passed through it.
    pub fn rings(&self) -> impl Iterator<Item = (&MappedRing, &RingCounts)> {
        let rings = self.groups.iter().flat_map(|group| &group.rings);
        rings.map(|(ring, watch)| (ring, &watch.counts))
    }
}

/// Takes everything that is in a ring now, in pieces that the sink likes; each gives its space
/// back at once.
fn drain(
    ring: &mut MappedRing,
    watch: &mut RingWatch,
    sink: &mut StreamSink,
) -> Result<u64, SinkError> {
    let mut read = ring.ring.read();
    let mut bytes = 0;
    while !read.is_empty() {
        let slices = read.slices();
        let look = watch.observe(slices, sink.chunk_bytes());
        let result = sink.take(first(slices, look.end), look.tally);
        read.release_bytes(look.end);
        bytes += look.end as u64;
        result?;
    }
    Ok(bytes)
}

/// The first `size` bytes of two slices.
fn first([front, back]: [&[u8]; 2], size: usize) -> [&[u8]; 2] {
    let in_front = size.min(front.len());
    [&front[..in_front], &back[..size - in_front]]
}
