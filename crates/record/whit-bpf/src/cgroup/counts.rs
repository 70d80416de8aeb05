//! Counts: a number for each account, CPU and event.

/// A count with the times that tell how much of it was seen (`perf_event_open(2)`,
/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `_RUNNING`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Events.
    pub value: u64,
    /// How long the cgroup ran while the event was enabled.
    pub enabled_ns: u64,
    /// How much of that the event had a counter.
    pub running_ns: u64,
}

impl Count {
    /// Both together. Counters wrap.
    #[must_use]
    pub fn plus(self, other: Count) -> Count {
        Count {
            value: self.value.wrapping_add(other.value),
            enabled_ns: self.enabled_ns.wrapping_add(other.enabled_ns),
            running_ns: self.running_ns.wrapping_add(other.running_ns),
        }
    }

    /// The difference from `earlier`.
    #[must_use]
    pub fn since(self, earlier: Count) -> Count {
        Count {
            value: self.value.wrapping_sub(earlier.value),
            enabled_ns: self.enabled_ns.wrapping_sub(earlier.enabled_ns),
            running_ns: self.running_ns.wrapping_sub(earlier.running_ns),
        }
    }
}

/// A table of counts: rows for accounts, in each a cell for each CPU and event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    cells: Vec<Count>,
    cpus: usize,
    events: usize,
}

impl Table {
    pub(crate) fn new(rows: usize, cpus: usize, events: usize) -> Table {
        Table { cells: vec![Count::default(); rows * cpus * events], cpus, events }
    }

    pub(crate) fn cell(&self, row: usize, cpu: usize, event: usize) -> Count {
        self.cells[(row * self.cpus + cpu) * self.events + event]
    }

    pub(crate) fn cell_mut(&mut self, row: usize, cpu: usize, event: usize) -> &mut Count {
        &mut self.cells[(row * self.cpus + cpu) * self.events + event]
    }

    /// Merges an account into its parent, on all CPUs and for all events.
    pub(crate) fn add_row(&mut self, from: usize, to: usize) {
        let width = self.cpus * self.events;
        for i in 0..width {
            let sum = self.cells[to * width + i].plus(self.cells[from * width + i]);
            self.cells[to * width + i] = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_cell_by_cell() {
        let mut table = Table::new(3, 2, 2);
        let count = |value| Count { value, enabled_ns: 2 * value, running_ns: value };
        for row in 0..3 {
            for cpu in 0..2 {
                for event in 0..2 {
                    *table.cell_mut(row, cpu, event) = count((100 * row + 10 * cpu + event) as u64);
                }
            }
        }
        table.add_row(2, 1);
        assert_eq!(table.cell(1, 1, 0), count(110 + 210));
        assert_eq!((table.cell(2, 1, 0), table.cell(0, 1, 1)), (count(210), count(11)));
        assert_eq!(count(7).plus(count(3)).since(count(3)), count(7));
    }
}
