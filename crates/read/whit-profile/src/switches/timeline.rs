//! The time line of all threads, in bounded memory.
//!
//! Intervals are kept one by one until there are too many; then those shorter than a grain are joined
//! with short neighbours into mixed stretches that keep their sums, and the grain doubles as often as
//! it takes.

use super::interval::Trust;
use super::model::Activity;
use super::switch_event::StackRef;
use std::num::NonZeroU32;
use whit_perfdata::wait_object::Brings;
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
    /// The kind of news by the object of a wait.
    pub(crate) brings: Brings,
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
        Piece {
            start,
            duration_ns,
            activity,
            cpu,
            stack,
            waker: None,
            parts_ns,
            count: 1,
            trust,
            brings: Brings::Unknown,
        }
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
        let continues = same_kind && self.end() == next.start && self.cpu == next.cpu;
        if !continues {
            self.activity = Activity::Mixed;
            self.cpu = self.cpu.filter(|_| self.cpu == next.cpu);
            (self.stack, self.waker, self.brings) = (StackRef::NONE, None, Brings::Unknown);
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

/// A piece as it is kept. There may be a million, and most are one interval without a waker.
#[derive(Clone, Copy, Debug)]
struct Kept {
    start: TimestampNs,
    duration_ns: u64,
    stack: StackRef,
    cpu: Option<CpuId>,
    /// The place of the rest, from 1 on.
    rest: Option<NonZeroU32>,
    activity: Activity,
    trust: Trust,
    brings: Brings,
}

/// The rest of a piece that is several intervals or has a waker.
#[derive(Clone, Copy, Debug)]
struct Rest {
    waker: Option<PieceWaker>,
    parts_ns: [u64; 3],
    count: u64,
}

/// The time line of a thread.
#[derive(Debug, Default)]
pub(crate) struct Line {
    kept: Vec<Kept>,
    rests: Vec<Rest>,
}

impl Line {
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Its pieces, in order of time.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        self.kept.iter().map(|kept| self.piece(kept))
    }

    fn piece(&self, kept: &Kept) -> Piece {
        let Kept { start, duration_ns, stack, cpu, activity, trust, brings, .. } = *kept;
        let one = Piece::one(activity, (start, duration_ns), cpu, stack, trust);
        let one = Piece { brings, ..one };
        let at = kept.rest.map(|rest| rest.get() as usize - 1);
        match at.and_then(|at| self.rests.get(at)) {
            Some(Rest { waker, parts_ns, count }) => {
                Piece { waker: *waker, parts_ns: *parts_ns, count: *count, ..one }
            }
            None => one,
        }
    }

    /// The piece as it is kept, its rest at the place of that of another one which it replaces.
    fn keep(&mut self, piece: &Piece, place: Option<NonZeroU32>) -> Kept {
        let Piece { start, duration_ns, activity, cpu, stack, trust, brings, .. } = *piece;
        let one = Piece::one(activity, (start, duration_ns), cpu, stack, trust);
        let is_one = *piece == Piece { brings, ..one };
        let rest = (!is_one).then(|| {
            let rest = Rest { waker: piece.waker, parts_ns: piece.parts_ns, count: piece.count };
            match place.and_then(|at| self.rests.get_mut(at.get() as usize - 1)) {
                Some(before) => *before = rest,
                None => self.rests.push(rest),
            }
            place.or(NonZeroU32::new(self.rests.len() as u32))
        });
        let rest = rest.flatten();
        Kept { start, duration_ns, stack, cpu, rest, activity, trust, brings }
    }

    /// Adds the next interval, or joins it with the last one.
    fn push(&mut self, piece: Piece, grain_ns: u64) {
        let last = self.kept.last().copied().filter(|last| last.joins(&piece, grain_ns));
        match last {
            Some(last) => {
                let mut joined = self.piece(&last);
                joined.join(&piece);
                let joined = self.keep(&joined, last.rest);
                if let Some(last) = self.kept.last_mut() {
                    *last = joined;
                }
            }
            None => {
                let kept = self.keep(&piece, None);
                self.kept.push(kept);
            }
        }
    }
}

impl Kept {
    fn joins(&self, next: &Piece, grain_ns: u64) -> bool {
        let both_run = self.activity == Activity::Running && next.activity == Activity::Running;
        let end = TimestampNs(self.start.0.saturating_add(self.duration_ns));
        let continues = both_run && end == next.start && self.cpu == next.cpu;
        let is_short = self.activity == Activity::Mixed || self.duration_ns < grain_ns;
        continues || (is_short && next.is_short(grain_ns))
    }
}

/// Time lines by thread.
#[derive(Debug)]
pub(crate) struct TimelineSums {
    /// By the thread's number; numbers have no gaps.
    by_thread: Vec<Line>,
    /// Threads with pieces.
    threads: usize,
    pieces: usize,
    max_pieces: usize,
    grain_ns: u64,
}

impl TimelineSums {
    /// With at most this many pieces, and one for each thread.
    pub(crate) fn new(max_pieces: usize) -> TimelineSums {
        TimelineSums { by_thread: Vec::new(), threads: 0, pieces: 0, max_pieces, grain_ns: 0 }
    }

    /// Adds the next interval of a thread.
    pub(crate) fn add(&mut self, thread: u32, piece: Piece) {
        if self.max_pieces == 0 {
            return;
        }
        let thread = thread as usize;
        if thread >= self.by_thread.len() {
            self.by_thread.resize_with(thread + 1, Line::default);
        }
        let line = &mut self.by_thread[thread];
        let before = line.len();
        line.push(piece, self.grain_ns);
        self.pieces += line.len() - before;
        self.threads += usize::from(before == 0);
        while self.pieces > self.max_pieces.max(self.threads) {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.grain_ns = self.grain_ns.saturating_mul(2).max(FIRST_GRAIN_NS);
        self.pieces = 0;
        for line in &mut self.by_thread {
            let mut thinned = Line::default();
            line.pieces().for_each(|piece| thinned.push(piece, self.grain_ns));
            self.pieces += thinned.len();
            *line = thinned;
        }
    }

    /// Threads in order of their numbers, and the grain.
    pub(crate) fn finish(self) -> (Vec<(u32, Line)>, u64) {
        let all = (0..).zip(self.by_thread).filter(|(_, line)| line.len() > 0);
        (all.collect(), self.grain_ns)
    }
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
        let [(1, line)] = &all[..] else { panic!("{all:?}") };
        let pieces: Vec<_> = line.pieces().collect();
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
        let waker_of_first = |line: &Line| line.pieces().next().and_then(|piece| piece.waker);
        assert_eq!(waker_of_first(&line.by_thread[1]), Some(waker));
        line.add(1, piece(Activity::Running, 5, 5));
        let (all, _) = line.finish();
        assert_eq!(waker_of_first(&all[0].1), None);
        assert_eq!(all[0].1.kept[0].activity, Activity::Mixed);
    }

    /// With and without a rest, joined or not.
    #[test]
    fn pieces_are_kept_as_they_are() {
        let waker = |thread| PieceWaker {
            time: TimestampNs(3),
            thread,
            stack: StackRef { worker: 1, node: 2 },
            from_interrupt: thread == 8,
        };
        let pieces = [
            piece(Activity::Running, 0, 5),
            Piece { waker: Some(waker(7)), ..piece(Activity::Waiting, 5, 2_000) },
            Piece { cpu: Some(CpuId(u32::MAX)), ..piece(Activity::Running, 2_005, 9_000) },
            Piece { cpu: None, trust: Trust::Lossy, ..piece(Activity::Preempted, 11_005, 3) },
            Piece { waker: Some(waker(8)), ..piece(Activity::Waiting, 11_008, 4) },
            Piece { parts_ns: [1, 2, 3], count: 9, ..piece(Activity::Mixed, 11_012, 7) },
        ];
        let mut line = Line::default();
        pieces.iter().for_each(|piece| line.push(*piece, 0));
        assert_eq!(line.pieces().collect::<Vec<_>>(), pieces);
        let mut thinned = Line::default();
        line.pieces().for_each(|piece| thinned.push(piece, 1_000));
        let thinned: Vec<_> = thinned.pieces().collect();
        let sums: Vec<_> = thinned.iter().map(|piece| (piece.activity, piece.count)).collect();
        assert_eq!(
            sums,
            [
                (Activity::Running, 1),
                (Activity::Waiting, 1),
                (Activity::Running, 1),
                (Activity::Mixed, 11)
            ]
        );
        assert_eq!((thinned[1].waker, thinned[3].parts_ns), (Some(waker(7)), [1, 5, 7]));
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
            for (_, line) in &all {
                let pieces: Vec<_> = line.pieces().collect();
                prop_assert!(pieces.windows(2).all(|pair| pair[0].end() <= pair[1].start));
                for piece in &pieces {
                    kept.iter_mut().zip(piece.parts_ns).for_each(|(sum, part)| *sum += part);
                    let parts: u64 = piece.parts_ns.iter().sum();
                    prop_assert!(parts <= piece.duration_ns);
                }
            }
            prop_assert_eq!(kept, sums);
        }
    }
}
