//! When records of a recording were lost.

use rustc_hash::FxHashMap;
use whit_profile::tables::{LossRow, TableSource};
use whit_types::{Tid, TimestampNs};

/// The times in which records were lost.
#[derive(Default)]
pub(crate) struct Losses {
    /// Records of any thread.
    of_rings: Windows,
    /// Switches of one thread. Its other records are there.
    of_switches: FxHashMap<Tid, Windows>,
}

/// Beginnings in order, each with the latest end up to it.
#[derive(Default)]
struct Windows(Vec<(TimestampNs, TimestampNs)>);

impl Losses {
    pub(crate) fn of(source: &TableSource) -> Losses {
        (0..).map_while(|number| source.ring_loss(number)).collect()
    }

    /// Whether records of any thread were lost meanwhile.
    pub(crate) fn touch(&self, from: TimestampNs, to: TimestampNs) -> bool {
        self.of_rings.touch(from, to)
    }

    /// Whether switches of a thread were lost meanwhile.
    pub(crate) fn touch_switches(&self, thread: Tid, from: TimestampNs, to: TimestampNs) -> bool {
        let of_thread = self.of_switches.get(&thread);
        self.touch(from, to) || of_thread.is_some_and(|windows| windows.touch(from, to))
    }
}

impl FromIterator<LossRow> for Losses {
    fn from_iter<T: IntoIterator<Item = LossRow>>(rows: T) -> Losses {
        let mut losses = Losses::default();
        for row in rows {
            let window = (row.from, row.to.unwrap_or(TimestampNs(u64::MAX)));
            let windows = match row.thread {
                None => &mut losses.of_rings,
                Some(thread) => losses.of_switches.entry(thread).or_default(),
            };
            windows.0.push(window);
        }
        losses.of_rings.sort();
        losses.of_switches.values_mut().for_each(Windows::sort);
        losses
    }
}

impl Windows {
    fn sort(&mut self) {
        self.0.sort_unstable();
        let mut latest = TimestampNs(0);
        for (_, to) in &mut self.0 {
            latest = latest.max(*to);
            *to = latest;
        }
    }

    fn touch(&self, from: TimestampNs, to: TimestampNs) -> bool {
        let begun = self.0.partition_point(|(begin, _)| *begin < to);
        self.0[..begun].last().is_some_and(|(_, end)| *end > from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_thread_leaves_the_records_of_others_certain() {
        let row = |from, to: Option<u64>, thread: Option<i32>| LossRow {
            from: TimestampNs(from),
            to: to.map(TimestampNs),
            cpu: None,
            thread: thread.map(Tid),
            records: 0,
        };
        let losses: Losses =
            [row(100, Some(200), Some(7)), row(50, Some(60), None), row(10, Some(55), None)]
                .into_iter()
                .collect();
        let touch = |from, to| losses.touch(TimestampNs(from), TimestampNs(to));
        let touch_switches =
            |tid, from, to| losses.touch_switches(Tid(tid), TimestampNs(from), TimestampNs(to));
        assert!(!touch(0, 10) && touch(0, 11) && touch(59, 70) && !touch(60, 1000));
        assert!(touch_switches(7, 199, 300) && !touch_switches(7, 200, 300));
        assert!(!touch_switches(8, 100, 200) && touch_switches(8, 55, 56));
        let endless: Losses = [row(100, None, None)].into_iter().collect();
        assert!(endless.touch(TimestampNs(500), TimestampNs(501)));
    }
}
