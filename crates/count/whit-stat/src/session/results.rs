//! The counts of several runs, together.

use std::collections::HashMap;

use crate::statistics::Statistics;
use crate::table::{Label, Row, Table};

/// Rows of all runs, by counter and place.
#[derive(Debug, Default)]
pub(super) struct Results {
    index: HashMap<(usize, Label), usize>,
    rows: Vec<(Label, Row, Statistics)>,
}

impl Results {
    /// Takes the table of a run in. Counts and times as read are those of the last run, as in perf.
    pub(super) fn add(&mut self, table: &Table) {
        for row in &table.rows {
            let label = table.labels[row.label].clone();
            let next = self.rows.len();
            let at = *self.index.entry((row.counter, label.clone())).or_insert(next);
            if at == next {
                self.rows.push((label, row.clone(), Statistics::default()));
            }
            let (_, known, statistics) = &mut self.rows[at];
            statistics.add(row.count);
            known.reading = row.reading;
            known.places = row.places;
        }
    }

    /// The table of all runs: means, and how far they may be off.
    pub(super) fn table(&self) -> Table {
        let mut labels: Vec<Label> = Vec::new();
        let mut known: HashMap<&Label, usize> = HashMap::new();
        for (label, ..) in &self.rows {
            known.entry(label).or_insert_with(|| {
                labels.push(label.clone());
                labels.len() - 1
            });
        }
        let row = |(label, row, statistics): &(Label, Row, Statistics)| Row {
            label: known[label],
            count: statistics.mean(),
            noise_percent: statistics.percent(),
            ..row.clone()
        };
        let rows = self.rows.iter().map(row).collect();
        Table { labels, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::table;

    #[test]
    fn runs_become_means_with_their_spread() {
        let mut results = Results::default();
        results.add(&table(&[10.0, 7.0]));
        assert_eq!(results.table(), table(&[10.0, 7.0]), "one run is itself");
        results.add(&table(&[20.0, 7.0]));
        let rows = results.table().rows;
        assert_eq!((rows[0].count, rows[1].count), (15.0, 7.0));
        assert!((rows[0].noise_percent - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!((rows[1].noise_percent, rows[0].reading.value), (0.0, 20));
    }
}
