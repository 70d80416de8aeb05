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

const ALWAYS: [CompactColumn; 3] = [
    CompactColumn { heading: "Waited", cell: |sums| duration(sums.wait_ns()) },
    CompactColumn { heading: "Longest", cell: |sums| duration(sums.longest_wait_ns()) },
    CompactColumn { heading: "Switches", cell: |sums| sums.count().to_string() },
];
const CPU: CompactColumn = CompactColumn { heading: "CPU", cell: |sums| duration(sums.cpu_ns) };
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
        columns.extend((total.cpu_ns > 0).then_some(CPU));
        columns.extend((total.lossy_count > 0).then_some(LOSSY));
        columns.extend((total.open_count > 0).then_some(OPEN));
        columns.extend((total.throughout_count > 0).then_some(THROUGHOUT));
        columns
    }

    /// The columns of these that leave `enough` of `width` to names, and the titles of the others. CPU time and waits of
    /// idle threads give way first, and waits that a loss touches last.
    pub fn fitting(
        mut columns: Vec<CompactColumn>,
        width: usize,
        enough: usize,
    ) -> (Vec<CompactColumn>, Vec<&'static str>) {
        let taken = |columns: &[CompactColumn]| {
            columns.iter().map(|column| column.width() + 1).sum::<usize>()
        };
        let mut left_out = Vec::new();
        for column in [CPU, THROUGHOUT, OPEN, ALWAYS[2], ALWAYS[1], LOSSY] {
            let place = columns.iter().position(|it| it.heading == column.heading);
            if let Some(place) = place.filter(|_| taken(&columns) + enough > width) {
                left_out.push(columns.remove(place).heading);
            }
        }
        (columns, left_out)
    }

    /// The width of its widest text.
    pub fn width(&self) -> usize {
        const NUMBER: usize = 8;
        self.heading.len().max(NUMBER)
    }
}
