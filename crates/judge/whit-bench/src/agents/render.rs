//! The result as text.

use super::{Comparison, Run};
use crate::bench::Figures;
use crate::page::{MIB, NONE, Page, median, spread, whole};
use crate::rounds::{Column, headings};

const COLUMNS: [Column<Run>; 9] = [
    ("CPU %", |run| Some(run.cpu_percent), spread),
    ("BPF %", |run| run.bpf_percent, spread),
    ("names CPU s", |run| Some(run.end_cpu_s), median),
    ("MiB", |run| Some(run.resident_bytes as f64 / MIB), median),
    ("maps MiB", |run| Some(run.maps_bytes? as f64 / MIB), median),
    ("samples", |run| Some(run.samples?.all as f64), whole),
    ("of expected %", of_expected, median),
    ("whole stacks %", whole_stacks, median),
    ("losses told", |run| Some(run.reported_losses? as f64), |it| format!("{:.0}", it.max)),
];

impl Figures for Comparison {
    /// A table for each load.
    fn show(&self, page: &mut Page) {
        for (agent, version) in &self.versions {
            let own = agent.own_frequency_hz();
            page.fact(format_args!("`{agent}`: {version}; {own} Hz by itself"));
        }
        for (agent, why) in &self.missing {
            page.fact(format_args!("`{agent}` is missing: {why}"));
        }
        let (rate, seconds) = (self.frequency_hz, self.seconds);
        page.fact(format_args!("{rate} Hz; {seconds} s a run; percent of one CPU"));
        let mut rest = &self.rows[..];
        while let Some(first) = rest.first() {
            let load = first.case.load;
            let end = rest.iter().position(|row| row.case.load != load).unwrap_or(rest.len());
            page.paragraph(format_args!("`{load}`:"));
            let table = rest[..end].iter().map(|row| {
                let own = |run: &Run| Some(run.ns_a_sample(seconds)? / 1e3);
                let mut cells = row.cells(vec![row.case.agent.to_string()], &COLUMNS);
                if row.refused.is_none() {
                    let own = row.spread(own).as_ref().map_or_else(|| NONE.to_owned(), median);
                    cells.insert(cells.len().saturating_sub(1), own);
                }
                cells
            });
            let mut headings: Vec<&str> = headings(&["agent"], &COLUMNS).collect();
            headings.insert(headings.len() - 1, "µs a sample");
            page.table(headings, 1, table);
            rest = &rest[end..];
        }
    }

    fn succeeded(&self) -> bool {
        self.missing.iter().all(|(agent, _)| !agent.is_whit())
            && self.rows.iter().all(|row| !row.case.agent.is_whit() || row.refused.is_none())
    }
}

/// Samples of the load against its CPU time. A load that does nothing has none to expect.
fn of_expected(run: &Run) -> Option<f64> {
    let samples = run.samples.filter(|samples| samples.expected >= 1.0)?;
    Some(100.0 * samples.of_load as f64 / samples.expected)
}

fn whole_stacks(run: &Run) -> Option<f64> {
    let samples = run.samples?;
    (samples.of_load > 0)
        .then(|| Some(100.0 * samples.complete? as f64 / samples.of_load as f64))?
}
