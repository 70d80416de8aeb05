//! Few and narrow columns of numbers, for the width of a terminal.

use crate::units::duration;
use whit_profile::switches::SwitchSums;

/// Title and cells.
#[derive(Clone, Copy, Debug)]
pub struct CompactColumn {
    /// Its title.
    pub heading: &'static str,
    /// The text for sums.
    pub cell: fn(&SwitchSums) -> String,
}

const ALWAYS: [CompactColumn; 4] = [
    CompactColumn { heading: "Waited", cell: |sums| duration(sums.wait_ns()) },
    CompactColumn { heading: "Longest", cell: |sums| duration(sums.longest_wait_ns()) },
    CompactColumn { heading: "Switches", cell: |sums| sums.count().to_string() },
    CompactColumn { heading: "CPU", cell: |sums| duration(sums.cpu_ns) },
];
const LOSSY: CompactColumn =
    CompactColumn { heading: "Lossy", cell: |sums| duration(sums.lossy_wait_ns) };
const OPEN: CompactColumn =
    CompactColumn { heading: "Open", cell: |sums| duration(sums.open_wait_ns) };
const THROUGHOUT: CompactColumn =
    CompactColumn { heading: "Through", cell: |sums| duration(sums.throughout_wait_ns) };

impl CompactColumn {
    /// The columns that have anything in them: lossy and open waits are in no other.
    pub fn shown(total: &SwitchSums) -> Vec<CompactColumn> {
        let mut columns = ALWAYS.to_vec();
        columns.extend((total.lossy_count > 0).then_some(LOSSY));
        columns.extend((total.open_count > 0).then_some(OPEN));
        columns.extend((total.throughout_count > 0).then_some(THROUGHOUT));
        columns
    }

    /// The width of its widest text.
    pub fn width(&self) -> usize {
        const NUMBER: usize = 8;
        self.heading.len().max(NUMBER)
    }
}
