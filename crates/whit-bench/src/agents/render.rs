//! The result as text.

use super::{Comparison, Row, Run};
use crate::markdown::{line_to, number, spread, table_to};
use whit_measure::summary::Spread;

const MIB: f64 = (1u64 << 20) as f64;
/// Where there is no figure.
const NONE: &str = "-";

/// A table for each load.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in &comparison.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    for (agent, version) in &comparison.versions {
        let own = agent.own_frequency_hz();
        line_to(&mut text, &format!("- `{agent}`: {version}; {own} Hz by itself"));
    }
    for (agent, why) in &comparison.missing {
        line_to(&mut text, &format!("- `{agent}` is missing: {why}"));
    }
    let (rate, seconds) = (comparison.frequency_hz, comparison.seconds);
    line_to(&mut text, &format!("- {rate} Hz; {seconds} s a run; percent of one CPU"));
    let mut rest = &comparison.rows[..];
    while let Some(first) = rest.first() {
        let load = first.load;
        let end = rest.iter().position(|row| row.load != load).unwrap_or(rest.len());
        line_to(&mut text, &format!("\n`{load}`:\n"));
        let heading = [
            "agent",
            "CPU %",
            "BPF %",
            "names CPU s",
            "MiB",
            "maps MiB",
            "samples",
            "of expected %",
            "whole stacks %",
            "µs a sample",
            "losses told",
        ];
        let mut table = vec![heading.map(str::to_owned).to_vec()];
        table.extend(rest[..end].iter().map(|row| cells(row, seconds)));
        table_to(&mut text, &table, 1);
        rest = &rest[end..];
    }
    text
}

fn cells(row: &Row, seconds: f64) -> Vec<String> {
    let name = row.agent.to_string();
    if let Some(why) = &row.refused {
        return vec![name, why.0.clone()];
    }
    let runs = &row.runs[..];
    vec![
        name,
        median(runs, |run| Some(run.cpu_percent), spread),
        median(runs, |run| run.bpf_percent, spread),
        median(runs, |run| Some(run.end_cpu_s), middle),
        median(runs, |run| Some(run.resident_bytes as f64 / MIB), middle),
        median(runs, |run| Some(run.maps_bytes? as f64 / MIB), middle),
        median(runs, |run| Some(run.samples?.all as f64), |it| format!("{:.0}", it.median)),
        median(runs, of_expected, middle),
        median(runs, whole, middle),
        median(runs, |run| Some(run.ns_a_sample(seconds)? / 1e3), middle),
        median(runs, |run| Some(run.told_losses? as f64), |it| format!("{:.0}", it.max)),
    ]
}

fn middle(spread: &Spread) -> String {
    number(spread.median)
}

/// Samples of the load against its CPU time. A load that does nothing has none to expect.
fn of_expected(run: &Run) -> Option<f64> {
    let samples = run.samples.filter(|samples| samples.expected >= 1.0)?;
    Some(100.0 * samples.of_load as f64 / samples.expected)
}

fn whole(run: &Run) -> Option<f64> {
    let samples = run.samples?;
    (samples.of_load > 0)
        .then(|| Some(100.0 * samples.complete? as f64 / samples.of_load as f64))?
}

/// The median over the runs that have the figure.
fn median(
    runs: &[Run],
    of: impl Fn(&Run) -> Option<f64>,
    show: impl Fn(&Spread) -> String,
) -> String {
    let found = Spread::of(runs.iter().filter_map(of));
    found.map_or_else(|| NONE.to_owned(), |found| show(&found))
}
