//! When records of a recording were lost.

use whit_profile::tables::TableSource;
use whit_types::TimestampNs;

/// The times in which records were lost: beginnings in order, each with the latest end up to it.
pub(crate) struct Losses(Vec<(TimestampNs, TimestampNs)>);

impl Losses {
    pub(crate) fn of(source: &TableSource) -> Losses {
        let rows = (0..).map_while(|number| source.ring_loss(number));
        let end = |to: Option<TimestampNs>| to.unwrap_or(TimestampNs(u64::MAX));
        let mut windows: Vec<_> = rows.map(|row| (row.from, end(row.to))).collect();
        windows.sort_unstable();
        let mut latest = TimestampNs(0);
        for (_, to) in &mut windows {
            latest = latest.max(*to);
            *to = latest;
        }
        Losses(windows)
    }

    pub(crate) fn touch(&self, from: TimestampNs, to: TimestampNs) -> bool {
        let begun = self.0.partition_point(|(begin, _)| *begin < to);
        self.0[..begun].last().is_some_and(|(_, end)| *end > from)
    }
}
