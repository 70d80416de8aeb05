//! Counts as they are shown: rows of one counter in one place, added up.

use std::fmt;
use std::sync::Arc;

use whit_types::OutsideText;

use crate::counter::Counter;
use crate::reading::Reading;

/// The places that one row sums up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregation {
    /// One row for all CPUs and threads.
    #[default]
    Global,
    /// Each CPU by itself (`-A`).
    Cpu,
    /// The hardware threads of a core.
    Core,
    /// The CPUs that share the last cache.
    Cache,
    /// The CPUs of a die.
    Die,
    /// The CPUs of a package.
    Socket,
    /// The CPUs of a NUMA node.
    Node,
    /// Each thread by itself.
    Thread,
}

impl Aggregation {
    /// Whether events must be counted CPU by CPU for it.
    pub fn needs_cpus(self) -> bool {
        !matches!(self, Aggregation::Global | Aggregation::Thread)
    }

    /// Whether rows say how many CPUs they hold; these come place by place, the others counter by
    /// counter.
    pub fn counts_cpus(self) -> bool {
        self.needs_cpus() && self != Aggregation::Cpu
    }
}

/// The place that a row sums up. The order is that of the rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Label {
    Everything,
    Node(i64),
    Socket(i64),
    Die { socket: i64, die: i64 },
    Cache { socket: i64, die: i64, level: i64, id: i64 },
    Core { socket: i64, die: i64, core: i64 },
    Cpu(u32),
    Thread { index: usize, tid: i32, comm: OutsideText<Arc<str>> },
}

/// As perf writes it; nothing for everything.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Everything => Ok(()),
            Label::Node(node) => write!(f, "N{node}"),
            Label::Socket(socket) => write!(f, "S{socket}"),
            Label::Die { socket, die } => write!(f, "S{socket}-D{die}"),
            Label::Cache { socket, die, level, id } => {
                write!(f, "S{socket}-D{die}-L{level}-ID{id}")
            }
            Label::Core { socket, die, core } => write!(f, "S{socket}-D{die}-C{core}"),
            Label::Cpu(cpu) => write!(f, "CPU{cpu}"),
            Label::Thread { tid, comm, .. } => write!(f, "{comm}-{tid}"),
        }
    }
}

impl Label {
    /// The same with the exact name of the thread.
    pub fn exact(&self) -> String {
        match self {
            Label::Thread { tid, comm, .. } => format!("{}-{tid}", comm.exact()),
            label => label.to_string(),
        }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the counter.
    pub counter: usize,
    /// Index of the label.
    pub label: usize,
    /// CPUs, or other places, that were added up.
    pub places: usize,
    /// The sum as read.
    pub reading: Reading,
    /// The count for the whole time; of several runs, the mean.
    pub count: f64,
    /// How far that mean may be off, in percent.
    pub noise_percent: f64,
}

impl Row {
    /// Whether there is a count to show.
    pub fn is_counted(&self, counter: &Counter) -> bool {
        counter.absence.is_none() && self.reading.is_counted()
    }
}

/// Rows in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The places, one for each label of a row.
    pub labels: Vec<Label>,
    /// Sorted by label, then by counter.
    pub rows: Vec<Row>,
}

impl Table {
    /// Keeps only rows that counted, largest counts of each counter first: for tables of all
    /// threads.
    #[must_use]
    pub fn of_the_busy(mut self, counters: &[Counter]) -> Table {
        self.rows.retain(|row| row.is_counted(&counters[row.counter]));
        self.rows.sort_by(|a, b| a.counter.cmp(&b.counter).then(b.count.total_cmp(&a.count)));
        self
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::counter::tests::counters;

    /// A row of one place that was counted all the time; no row if the count is 0.
    pub(crate) fn row(counter: usize, count: f64) -> Row {
        let running_ns = u64::from(count > 0.0);
        let reading = Reading { value: count as u64, enabled_ns: 1, running_ns };
        Row { counter, label: 0, places: 1, reading, count, noise_percent: 0.0 }
    }

    /// A table with a row for each count.
    pub(crate) fn table(counts: &[f64]) -> Table {
        let rows = counts.iter().enumerate().map(|(counter, &count)| row(counter, count));
        Table { labels: vec![Label::Everything], rows: rows.collect() }
    }

    #[test]
    fn the_busiest_come_first_and_the_idle_not_at_all() {
        let rows = vec![row(0, 1.0), row(0, 0.0), row(0, 5.0), row(1, 3.0), row(1, 9.0)];
        let table = Table { labels: vec![Label::Everything], rows }.of_the_busy(&counters("cs,cs"));
        let order: Vec<_> = table.rows.iter().map(|row| (row.counter, row.count)).collect();
        assert_eq!(order, [(0, 5.0), (0, 1.0), (1, 9.0), (1, 3.0)]);
    }
}
