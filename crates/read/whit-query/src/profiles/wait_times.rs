//! Waits in blocks of time.

use rusqlite::{Result, Row};
use std::collections::HashMap;
use whit_profile::switches::{SwitchSums, WaitKind};
use whit_profile::time_filter::{TimeRange, TimeRanges};
use whit_types::TimestampNs;

pub(super) struct Wait {
    kind: WaitKind,
    from: TimestampNs,
    /// Absent where the recording has no end of it.
    to: Option<TimestampNs>,
    woken: Option<TimestampNs>,
    is_certain: bool,
    /// The switch, or the end, is not in the recording.
    is_open: bool,
    begun_before: bool,
}

/// Times of one recording.
pub(super) struct Times {
    pub(super) blocks: TimeRanges,
    pub(super) losses: Vec<(u64, u64)>,
    /// Wake-ups of waits that are not certain, by thread, in order.
    pub(super) woken: HashMap<i64, Vec<u64>>,
}

pub(super) fn wait(row: &Row<'_>, woken: Option<&Vec<u64>>) -> Result<Wait> {
    let flag = |column: &str| -> Result<bool> { Ok(row.get::<_, i64>(column)? != 0) };
    let time = |column: &str| -> Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(|time| time.max(0) as u64))
    };
    let from = time("ts")?.unwrap_or_default();
    let kind = match row.get_ref("kind")?.as_str_or_null()? {
        Some("preempt") => WaitKind::Preempt,
        Some("new") => WaitKind::New,
        _ => WaitKind::Sync,
    };
    let to = time("dur")?.map(|dur| from.saturating_add(dur));
    let is_certain = flag("certain")?;
    let woken = match (to, time("runnable_dur")?) {
        _ if kind != WaitKind::Sync => None,
        (Some(to), Some(runnable)) => Some(to.saturating_sub(runnable)),
        (Some(to), None) if !is_certain => woken.and_then(|times| {
            let next = times.get(times.partition_point(|time| *time < from))?;
            (*next <= to).then_some(*next)
        }),
        _ => None,
    };
    Ok(Wait {
        kind,
        from: TimestampNs(from),
        to: to.map(TimestampNs),
        woken: woken.map(TimestampNs),
        is_certain,
        is_open: flag("is_open")?,
        begun_before: flag("begun_before")?,
    })
}

impl Times {
    pub(super) fn block(&self, at: TimestampNs) -> u16 {
        let before = self.blocks.iter().take_while(|block| block.to < at).count();
        before.min(self.blocks.iter().count().saturating_sub(1)) as u16
    }

    /// The sums of a wait, by block. It is counted in the block in which it began.
    pub(super) fn parts(&self, wait: &Wait) -> impl Iterator<Item = (u16, SwitchSums)> {
        let range = TimeRange { from: wait.from, to: wait.to.unwrap_or(wait.from) };
        let first = self.blocks.iter().take_while(|block| block.to < range.from).count();
        let is_lossy = wait.to.is_none()
            || self.losses.iter().any(|(from, to)| *from < range.to.0 && range.from.0 < *to);
        self.blocks.meeting(range).zip(first..).map(move |(block, number)| {
            let (from, to) = (block.from.max(range.from), block.to.min(range.to));
            let (ns, is_begin) = (to.since(from), from == range.from);
            let blocked_ns = wait.woken.map_or(ns, |woken| woken.since(from).min(ns));
            let mut sums = wait.count(is_begin);
            let is_bounded = !wait.is_open && !wait.begun_before;
            if wait.is_certain {
                wait.enter_certain(is_begin, (ns, blocked_ns), &mut sums);
            } else if !is_bounded && !is_lossy {
                (sums.open_count, sums.open_wait_ns) = (u64::from(is_begin), ns);
                match wait.kind {
                    WaitKind::Sync => {
                        sums.open_blocked_ns = blocked_ns;
                        sums.open_runnable_ns = ns - blocked_ns;
                    }
                    WaitKind::Preempt => sums.open_preempt_ns = ns,
                    WaitKind::New => {}
                }
            } else {
                (sums.lossy_count, sums.lossy_wait_ns) = (u64::from(is_begin), ns);
            }
            (number as u16, sums)
        })
    }
}

impl Wait {
    fn count(&self, is_begin: bool) -> SwitchSums {
        let count = u64::from(is_begin && !self.begun_before);
        let none = SwitchSums::default();
        match self.kind {
            WaitKind::Sync => SwitchSums { sync_count: count, ..none },
            WaitKind::Preempt => SwitchSums { preempt_count: count, ..none },
            WaitKind::New => SwitchSums { new_count: count, ..none },
        }
    }

    /// Adds a part of a wait whose length is known: all of it, and until the wake-up.
    fn enter_certain(&self, is_begin: bool, (ns, blocked_ns): (u64, u64), sums: &mut SwitchSums) {
        match self.kind {
            WaitKind::Preempt => (sums.preempt_wait_ns, sums.longest_preempt_ns) = (ns, ns),
            WaitKind::New => (sums.new_wait_ns, sums.longest_new_ns) = (ns, ns),
            WaitKind::Sync => {
                (sums.sync_wait_ns, sums.longest_sync_ns) = (ns, ns);
                if self.woken.is_some() {
                    sums.woken_count = u64::from(is_begin);
                    (sums.blocked_ns, sums.runnable_ns) = (blocked_ns, ns - blocked_ns);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait from 10 to 30 in blocks of 16 ns from 0 on.
    fn sums(wait: Wait, losses: &[(u64, u64)]) -> Vec<SwitchSums> {
        let span = TimeRange { from: TimestampNs(0), to: TimestampNs(16 * 48) };
        let blocks = TimeRanges::new([span]).cut_into(48);
        let times = Times { blocks, losses: losses.to_vec(), woken: HashMap::new() };
        let parts: Vec<_> = times.parts(&wait).collect();
        assert!(parts.iter().map(|(block, _)| *block).eq(0..parts.len() as u16));
        parts.into_iter().map(|(_, sums)| sums).collect()
    }

    const SYNC: Wait = Wait {
        kind: WaitKind::Sync,
        from: TimestampNs(10),
        to: Some(TimestampNs(30)),
        woken: Some(TimestampNs(20)),
        is_certain: true,
        is_open: false,
        begun_before: false,
    };

    #[test]
    fn a_wait_belongs_to_its_blocks_and_is_counted_once() {
        let [first, second] = sums(SYNC, &[])[..] else { panic!("two blocks") };
        assert_eq!((first.sync_count, second.sync_count), (1, 0));
        assert_eq!((first.sync_wait_ns, first.runnable_ns), (5, 0));
        assert_eq!((second.sync_wait_ns, second.blocked_ns, second.runnable_ns), (14, 4, 10));
    }

    #[test]
    fn a_loss_makes_a_wait_uncertain() {
        for (is_open, losses) in [(false, &[][..]), (true, &[(25, 40)]), (false, &[(0, 11)])] {
            let parts = sums(Wait { is_certain: false, is_open, ..SYNC }, losses);
            let [first, second] = parts[..] else { panic!("two blocks") };
            assert_eq!((first.lossy_count, second.lossy_count), (1, 0));
            assert_eq!(first.lossy_wait_ns + second.lossy_wait_ns, 19);
            assert_eq!(first.sync_wait_ns + second.sync_wait_ns, 0);
        }
        // The end is missing: the switch is all.
        let [only] = sums(Wait { to: None, is_certain: false, ..SYNC }, &[])[..] else {
            panic!("one block")
        };
        assert_eq!((only.sync_count, only.lossy_count, only.lossy_wait_ns), (1, 1, 0));
    }

    #[test]
    fn an_open_wait_has_the_time_that_no_loss_touches() {
        let open = Wait { is_certain: false, is_open: true, ..SYNC };
        let [first, second] = sums(open, &[(31, 40)])[..] else { panic!("two blocks") };
        assert_eq!((first.open_count, first.open_blocked_ns), (1, 5));
        assert_eq!((second.open_blocked_ns, second.open_runnable_ns), (4, 10));
        let before = Wait { kind: WaitKind::Preempt, woken: None, begun_before: true, ..SYNC };
        let [first, second] = sums(Wait { is_certain: false, ..before }, &[])[..] else {
            panic!("two blocks")
        };
        assert_eq!((first.preempt_count, first.open_preempt_ns), (0, 5));
        assert_eq!(second.open_preempt_ns, 14);
    }

    #[test]
    fn a_thread_that_was_taken_off_or_made_waits_for_a_cpu() {
        let taken = Wait { kind: WaitKind::Preempt, woken: None, ..SYNC };
        let [first, second] = sums(taken, &[])[..] else { panic!("two blocks") };
        assert_eq!((first.preempt_count, first.preempt_wait_ns), (1, 5));
        assert_eq!((second.preempt_count, second.preempt_wait_ns), (0, 14));
        let made = Wait { kind: WaitKind::New, woken: None, ..SYNC };
        let [first, second] = sums(made, &[])[..] else { panic!("two blocks") };
        assert_eq!((first.new_count, first.new_wait_ns + second.new_wait_ns), (1, 19));
    }
}
