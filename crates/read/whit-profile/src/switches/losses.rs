//! When something may be missing from a recording.
//!
//! The kernel writes a LOST record as soon as a record fits into the ring again: the lost ones lie
//! between the ring's record before and the LOST record. An interval that touches such a window may
//! in truth be several.

use crate::loss_window::{LossWindow, RingLoss};
use rustc_hash::FxHashMap;
use whit_types::{CpuId, Tid, TimestampNs};

/// Windows that are told apart, of each CPU and of all together; beyond, close ones are joined.
const MAX_WINDOWS: usize = 1 << 16;

/// All losses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    all: Windows,
    /// Windows in which records of any thread may be missing: on any CPU, on a known one, on an unknown one.
    any: Windows,
    by_cpu: FxHashMap<CpuId, Windows>,
    unknown_cpu: Windows,
    /// Windows in which records of one thread alone may be missing.
    by_thread: FxHashMap<Tid, Windows>,
}

impl Losses {
    pub(crate) fn new(losses: &[RingLoss]) -> Losses {
        let mut by_cpu: FxHashMap<CpuId, Vec<LossWindow>> = FxHashMap::default();
        let mut by_thread: FxHashMap<Tid, Vec<LossWindow>> = FxHashMap::default();
        let (mut any, mut unknown_cpu) = (Vec::new(), Vec::new());
        for loss in losses {
            if let Some(tid) = loss.thread {
                by_thread.entry(tid).or_default().push(loss.window);
                continue;
            }
            any.push(loss.window);
            match loss.cpu {
                Some(cpu) => by_cpu.entry(cpu).or_default().push(loss.window),
                None => unknown_cpu.push(loss.window),
            }
        }
        Losses {
            all: Windows::new(losses.iter().map(|loss| loss.window).collect(), MAX_WINDOWS),
            any: Windows::new(any, MAX_WINDOWS),
            by_cpu: joined(by_cpu),
            unknown_cpu: Windows::new(unknown_cpu, MAX_WINDOWS),
            by_thread: joined(by_thread),
        }
    }

    /// Whether records of an interval of the thread may be missing, on any CPU.
    pub(crate) fn touch(&self, tid: Tid, from: TimestampNs, to: TimestampNs) -> bool {
        self.any.touch(from, to) || self.touch_thread(tid, from, to)
    }

    /// Whether records of an interval of the thread may be missing on one CPU.
    pub(crate) fn touch_cpu(
        &self,
        cpu: Option<CpuId>,
        tid: Tid,
        from: TimestampNs,
        to: TimestampNs,
    ) -> bool {
        let Some(cpu) = cpu else { return self.touch(tid, from, to) };
        self.unknown_cpu.touch(from, to)
            || self.by_cpu.get(&cpu).is_some_and(|windows| windows.touch(from, to))
            || self.touch_thread(tid, from, to)
    }

    /// How long records of a CPU may be missing in these spans; windows of several causes may overlap.
    pub(crate) fn lost_ns(&self, cpu: CpuId, spans: &[(TimestampNs, TimestampNs)]) -> u64 {
        let windows = self.unknown_cpu.0.iter();
        let windows = windows.chain(self.by_cpu.get(&cpu).into_iter().flat_map(|own| &own.0));
        let within = |window: &LossWindow| {
            let part = |span: &(TimestampNs, TimestampNs)| {
                window.to.min(span.1).since(window.from.max(span.0))
            };
            spans.iter().map(part).fold(0, u64::saturating_add)
        };
        windows.map(within).fold(0, u64::saturating_add)
    }

    fn touch_thread(&self, tid: Tid, from: TimestampNs, to: TimestampNs) -> bool {
        self.by_thread.get(&tid).is_some_and(|windows| windows.touch(from, to))
    }

    /// All windows, joined over CPUs and threads: also those of late switch-ins.
    pub(crate) fn windows(&self) -> &[LossWindow] {
        &self.all.0
    }

    /// Windows in which records of any thread may be missing. A late switch-in makes intervals of its thread uncertain,
    /// and loses nothing.
    pub(crate) fn windows_of_all_threads(&self) -> &[LossWindow] {
        &self.any.0
    }
}

fn joined<K: Eq + std::hash::Hash>(
    windows: FxHashMap<K, Vec<LossWindow>>,
) -> FxHashMap<K, Windows> {
    windows.into_iter().map(|(key, windows)| (key, Windows::new(windows, MAX_WINDOWS))).collect()
}

/// Windows in order of time that do not touch each other.
#[derive(Clone, Debug, Default)]
struct Windows(Vec<LossWindow>);

impl Windows {
    fn new(mut windows: Vec<LossWindow>, max: usize) -> Windows {
        windows.sort_unstable();
        // Joining close windows only makes more time uncertain.
        let mut gap_ns = 0;
        loop {
            windows.dedup_by(|next, kept| {
                let joins = next.from.since(kept.to) <= gap_ns;
                if joins {
                    kept.to = kept.to.max(next.to);
                }
                joins
            });
            if windows.len() <= max {
                return Windows(windows);
            }
            gap_ns = gap_ns.saturating_mul(2).max(1_000);
        }
    }

    fn touch(&self, from: TimestampNs, to: TimestampNs) -> bool {
        let after = self.0.partition_point(|window| window.to < from);
        self.0.get(after).is_some_and(|window| window.from <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(from: u64, to: u64) -> LossWindow {
        LossWindow { from: TimestampNs(from), to: TimestampNs(to) }
    }

    fn loss(cpu: Option<u32>, from: u64, to: u64) -> RingLoss {
        RingLoss { cpu: cpu.map(CpuId), thread: None, window: window(from, to), records: 0 }
    }

    const TID: Tid = Tid(7);

    #[test]
    fn a_cpu_has_its_own_losses_and_those_without_a_cpu() {
        let losses = Losses::new(&[loss(Some(1), 10, 20), loss(None, 100, 110)]);
        let touch = |cpu: u32, from, to| {
            losses.touch_cpu(Some(CpuId(cpu)), TID, TimestampNs(from), TimestampNs(to))
        };
        assert!(touch(1, 0, 10) && touch(1, 20, 30) && touch(1, 12, 13));
        assert!(!touch(0, 0, 99) && !touch(1, 21, 99));
        assert!(touch(0, 105, 106));
        assert!(losses.touch_cpu(None, TID, TimestampNs(15), TimestampNs(15)));
    }

    #[test]
    fn the_time_that_a_cpu_may_lack_lies_in_the_spans() {
        let losses =
            Losses::new(&[loss(Some(1), 10, 20), loss(None, 100, 110), loss(Some(2), 0, 9)]);
        let at = |(from, to): (u64, u64)| (TimestampNs(from), TimestampNs(to));
        let lost = |cpu, spans: &[(u64, u64)]| {
            losses.lost_ns(CpuId(cpu), &spans.iter().copied().map(at).collect::<Vec<_>>())
        };
        assert_eq!(
            (lost(1, &[(0, 200)]), lost(2, &[(0, 200)]), lost(3, &[(0, 200)])),
            (20, 19, 10)
        );
        assert_eq!(lost(1, &[(15, 50), (105, 106), (300, 400)]), 6);
    }

    #[test]
    fn a_late_switch_in_concerns_its_own_thread_on_every_cpu() {
        let late = RingLoss { thread: Some(TID), ..loss(Some(1), 10, 20) };
        let losses = Losses::new(&[late, loss(Some(1), 100, 110)]);
        let (from, to) = (TimestampNs(0), TimestampNs(15));
        for cpu in [None, Some(CpuId(0)), Some(CpuId(1))] {
            assert!(losses.touch_cpu(cpu, TID, from, to), "{cpu:?}");
            assert!(!losses.touch_cpu(cpu, Tid(8), from, to), "{cpu:?}");
        }
        assert!(losses.touch(TID, from, to) && !losses.touch(Tid(8), from, to));
        assert!(losses.touch(Tid(8), TimestampNs(105), TimestampNs(105)));
        assert_eq!(losses.windows(), [window(10, 20), window(100, 110)]);
        assert_eq!(losses.windows_of_all_threads(), [window(100, 110)]);
    }

    proptest! {
        /// Bounded or not, a lost window is found by each interval that touches it.
        #[test]
        fn no_loss_is_forgotten(
            starts in prop::collection::vec((0u64..100_000, 0u64..500), 1..80),
            max in 1usize..20,
            (from, len) in (0u64..110_000, 0u64..300),
        ) {
            let all: Vec<_> = starts.iter().map(|(at, len)| window(*at, at + len)).collect();
            let windows = Windows::new(all.clone(), max);
            prop_assert!(windows.0.len() <= max);
            prop_assert!(windows.0.windows(2).all(|pair| pair[0].to < pair[1].from));
            let to = from + len;
            let expected = all.iter().any(|w| w.from.0 <= to && from <= w.to.0);
            let touches = windows.touch(TimestampNs(from), TimestampNs(to));
            prop_assert!(touches || !expected);
            let exact = Windows::new(all, usize::MAX);
            prop_assert_eq!(exact.touch(TimestampNs(from), TimestampNs(to)), expected);
        }
    }
}
