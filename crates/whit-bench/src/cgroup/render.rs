//! The comparison as text.

use super::{Comparison, CounterKind, Hops, Row, Table};
use crate::markdown::{line_to, number, spread, table_to};
use crate::summary::Spread;

const HEADINGS: [&str; 7] = [
    "counting",
    "median hop ns",
    "added ns",
    "of perf's",
    "mean hop ns",
    "99 % of hops ns",
    "counter's CPU %",
];

/// The machine, who took part, one table for each number of cgroups, what it comes to.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines().iter().chain(&comparison.absent) {
        line_to(&mut text, &format!("- {line}"));
    }
    for counter in &comparison.counters {
        line_to(&mut text, &format!("- {}: {}", counter.kind, counter.version));
    }
    let events = comparison.events.join(",");
    line_to(&mut text, &format!("- events: {events} in each cgroup, their parent, and everywhere"));
    for table in &comparison.tables {
        table_of(&mut text, table);
    }
    line_to(&mut text, "");
    for line in conclusions(comparison) {
        line_to(&mut text, &format!("- {line}"));
    }
    text
}

fn table_of(text: &mut String, table: &Table) {
    let work = match table.work_ns {
        0 => "no work in a hop".to_owned(),
        ns => format!("{} µs of work in a hop", number(ns as f64 / 1000.0)),
    };
    line_to(text, &format!("\n{} cgroups, {work}:\n", table.cgroups));
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    let mut cells = vec!["nobody".to_owned()];
    let alone = table.rows.iter().flat_map(|row| row.runs.iter().flat_map(|run| &run.alone));
    cells.extend(of_hops(alone, ["–".to_owned(), String::new()]));
    cells.push(String::new());
    rows.push(cells);
    rows.extend(table.rows.iter().map(|row| row_of(table, row)));
    table_to(text, &rows, 1);
}

fn row_of(table: &Table, row: &Row) -> Vec<String> {
    let mut cells = vec![row.counter.to_string()];
    let (Some(added), None) = (table.added_ns(row.counter), &row.refused) else {
        cells.push(row.refused.clone().unwrap_or_else(|| "was not run".into()));
        return cells;
    };
    let of_perfs = share_of_perfs(table, row.counter)
        .filter(|_| row.counter != CounterKind::Perf)
        .map_or_else(String::new, |share| format!("{share:.2}"));
    cells.extend(of_hops(row.runs.iter().map(|run| &run.hops), [spread(&added), of_perfs]));
    let cpu = Spread::of(row.runs.iter().map(|run| run.counter_cpu * 100.0));
    cells.push(cpu.map_or_else(String::new, |cpu| number(cpu.median)));
    cells
}

fn of_hops<'a>(hops: impl Iterator<Item = &'a Hops> + Clone, middle: [String; 2]) -> Vec<String> {
    let of = |field: fn(&Hops) -> f64| {
        Spread::of(hops.clone().map(field)).map_or_else(String::new, |values| spread(&values))
    };
    let [added, of_perfs] = middle;
    vec![of(|h| h.median_ns), added, of_perfs, of(|h| h.mean_ns), of(|h| h.p99_ns)]
}

/// What is added, of what `perf stat -G` adds; medians of both.
fn share_of_perfs(table: &Table, counter: CounterKind) -> Option<f64> {
    let perf = table.added_ns(CounterKind::Perf)?.median;
    (perf > 0.0).then(|| table.added_ns(counter).map(|added| added.median / perf))?
}

/// What was aimed at, and what it came to.
fn conclusions(comparison: &Comparison) -> Vec<String> {
    let bpf = CounterKind::WhitBpf;
    let mut lines = Vec::new();
    for table in &comparison.tables {
        if let Some(share) = share_of_perfs(table, bpf) {
            let of = format!("{} cgroups, {} ns of work", table.cgroups, table.work_ns);
            lines.push(format!("{of}: whit with BPF adds {share:.2} of what perf stat -G adds"));
        }
    }
    let first = comparison.tables.first();
    let same_work = |table: &&Table| first.is_some_and(|first| first.work_ns == table.work_ns);
    for table in comparison.tables.iter().filter(same_work).skip(1) {
        let added = |table: &Table| table.added_ns(bpf).map(|added| added.median);
        if let (Some(few), Some(many)) = (first.and_then(added), added(table)) {
            let (n, m) = (table.cgroups, first.map_or(0, |first| first.cgroups));
            lines.push(format!(
                "whit with BPF adds {:.2} at {n} cgroups of what it adds at {m}",
                many / few
            ));
        }
    }
    lines
}
