//! The time line of all threads, in bounded memory.
//!
//! Intervals are kept one by one until there are too many; then those shorter than a grain are joined
//! with short neighbours into mixed stretches that keep their sums, and the grain doubles as often as
//! it takes.

use super::interval::Trust;
use super::model::Activity;
use super::switch_event::StackRef;
use rustc_hash::FxHashMap;
use whit_types::{CpuId, TimestampNs};

/// 1 µs: spans shorter than this are joined first.
const FIRST_GRAIN_NS: u64 = 1_000;

/// The waker of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PieceWaker {
    pub(crate) time: TimestampNs,
    pub(crate) thread: u32,
    pub(crate) stack: StackRef,
    pub(crate) from_interrupt: bool,
}

/// An interval, or several short ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) start: TimestampNs,
    pub(crate) duration_ns: u64,
    pub(crate) activity: Activity,
    pub(crate) cpu: Option<CpuId>,
    pub(crate) stack: StackRef,
    pub(crate) waker: Option<PieceWaker>,
    pub(crate) parts_ns: [u64; 3],
    pub(crate) count: u64,
    pub(crate) trust: Trust,
}

impl Piece {
    /// One interval, with no waker.
    pub(crate) fn one(
        activity: Activity,
        (start, duration_ns): (TimestampNs, u64),
        cpu: Option<CpuId>,
        stack: StackRef,
        trust: Trust,
    ) -> Piece {
        let mut parts_ns = [0; 3];
        if let Some(part) = parts_ns.get_mut(activity as usize) {
            *part = duration_ns;
        }
        let waker = None;
        Piece { start, duration_ns, activity, cpu, stack, waker, parts_ns, count: 1, trust }
    }

    fn end(&self) -> TimestampNs {
        TimestampNs(self.start.0.saturating_add(self.duration_ns))
    }

    fn is_short(&self, grain_ns: u64) -> bool {
        self.activity == Activity::Mixed || self.duration_ns < grain_ns
    }

    /// Takes over the piece behind.
    fn join(&mut self, next: &Piece) {
        let end = self.end().max(next.end());
        let same_kind = self.activity == next.activity && self.activity == Activity::Running;
        // A long run that was given out in parts is one run.
        let goes_on = same_kind && self.end() == next.start && self.cpu == next.cpu;
        if !goes_on {
            self.activity = Activity::Mixed;
            self.cpu = self.cpu.filter(|_| self.cpu == next.cpu);
            (self.stack, self.waker) = (StackRef::NONE, None);
            self.count += next.count;
        }
        self.duration_ns = end.since(self.start);
        for (part, more) in self.parts_ns.iter_mut().zip(next.parts_ns) {
            *part = part.saturating_add(more);
        }
        if next.trust == Trust::Lossy {
            self.trust = Trust::Lossy;
        }
    }
}

/// Time lines by thread.
#[derive(Debug)]
pub(crate) struct TimelineSums {
    by_thread: FxHashMap<u32, Vec<Piece>>,
    pieces: usize,
    max_pieces: usize,
    grain_ns: u64,
}

impl TimelineSums {
    /// With at most this many pieces, and one for each thread.
    pub(crate) fn new(max_pieces: usize) -> TimelineSums {
        TimelineSums { by_thread: FxHashMap::default(), pieces: 0, max_pieces, grain_ns: 0 }
    }

    /// Adds the next interval of a thread.
    pub(crate) fn add(&mut self, thread: u32, piece: Piece) {
        if self.max_pieces == 0 {
            return;
        }
        let grain_ns = self.grain_ns;
        let pieces = self.by_thread.entry(thread).or_default();
        let before = pieces.len();
        push(pieces, piece, grain_ns);
        self.pieces += pieces.len() - before;
        while self.pieces > self.max_pieces.max(self.by_thread.len()) {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.grain_ns = self.grain_ns.saturating_mul(2).max(FIRST_GRAIN_NS);
        self.pieces = 0;
        for pieces in self.by_thread.values_mut() {
            let mut thinned = Vec::new();
            pieces.iter().for_each(|piece| push(&mut thinned, *piece, self.grain_ns));
            self.pieces += thinned.len();
            *pieces = thinned;
        }
    }

    /// Threads in order of their numbers, and the grain.
    pub(crate) fn finish(self) -> (Vec<(u32, Vec<Piece>)>, u64) {
        let mut all: Vec<_> = self.by_thread.into_iter().collect();
        all.sort_unstable_by_key(|(thread, _)| *thread);
        (all, self.grain_ns)
    }
}

fn push(pieces: &mut Vec<Piece>, piece: Piece, grain_ns: u64) {
    match pieces.last_mut() {
        Some(last) if joins(last, &piece, grain_ns) => last.join(&piece),
        _ => pieces.push(piece),
    }
}

fn joins(last: &Piece, next: &Piece, grain_ns: u64) -> bool {
    let both_run = last.activity == Activity::Running && next.activity == Activity::Running;
    let goes_on = both_run && last.end() == next.start && last.cpu == next.cpu;
    goes_on || (last.is_short(grain_ns) && next.is_short(grain_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(activity: Activity, start: u64, duration_ns: u64) -> Piece {
        let span = (TimestampNs(start), duration_ns);
        Piece::one(activity, span, Some(CpuId(0)), StackRef::NONE, Trust::Whole)
    }

    #[test]
    fn parts_of_a_run_are_one_run() {
        let mut line = TimelineSums::new(10);
        line.add(1, piece(Activity::Running, 10, 5));
        line.add(1, piece(Activity::Running, 15, 5));
        line.add(1, piece(Activity::Waiting, 20, 5));
        let (all, grain) = line.finish();
        let [(1, pieces)] = &all[..] else { panic!("{all:?}") };
        assert_eq!((pieces.len(), pieces[0].duration_ns, pieces[0].count, grain), (2, 10, 1, 0));
    }

    #[test]
    fn joined_spans_have_no_waker() {
        let waker = PieceWaker {
            time: TimestampNs(3),
            thread: 7,
            stack: StackRef::NONE,
            from_interrupt: false,
        };
        let mut line = TimelineSums::new(1);
        line.add(1, Piece { waker: Some(waker), ..piece(Activity::Waiting, 0, 5) });
        assert_eq!(line.by_thread[&1][0].waker, Some(waker));
        line.add(1, piece(Activity::Running, 5, 5));
        let (all, _) = line.finish();
        assert_eq!((all[0].1[0].activity, all[0].1[0].waker), (Activity::Mixed, None));
    }

    proptest! {
        /// However much is thinned, the bound holds, order stays, and the sums of each activity too.
        #[test]
        fn thinning_keeps_sums(
            lengths in prop::collection::vec((0u64..100_000, 0usize..3, 0u32..3), 1..300),
            max in 1usize..40,
        ) {
            let activities = [Activity::Running, Activity::Preempted, Activity::Waiting];
            let (mut line, mut sums, mut at) = (TimelineSums::new(max), [0u64; 3], 0);
            for (length, activity, thread) in &lengths {
                line.add(*thread, piece(activities[*activity], at, *length));
                sums[*activity] += length;
                at += length + 1;
            }
            let (all, grain) = line.finish();
            let pieces: usize = all.iter().map(|(_, pieces)| pieces.len()).sum();
            prop_assert!(pieces <= max.max(all.len()));
            prop_assert!(pieces == lengths.len() || grain > 0);
            let mut kept = [0u64; 3];
            for (_, pieces) in &all {
                prop_assert!(pieces.windows(2).all(|pair| pair[0].end() <= pair[1].start));
                for piece in pieces {
                    kept.iter_mut().zip(piece.parts_ns).for_each(|(sum, part)| *sum += part);
                    let parts: u64 = piece.parts_ns.iter().sum();
                    prop_assert!(parts <= piece.duration_ns);
                }
            }
            prop_assert_eq!(kept, sums);
        }
    }
}
