//! The comparison as text.

use super::{Comparison, CounterKind, Estimate, Hops, Row, Table, Windows};
use crate::bench::Figures;
use crate::page::{Page, number, spread};
use whit_measure::summary::Spread;

const HEADINGS: [&str; 9] = [
    "counting",
    "CPU ns of a hop",
    "added ns",
    "of perf's",
    "median response ns",
    "99 % of responses ns",
    "counter's CPU %",
    "windows left out",
    "turns compared",
];
/// Columns of the table of costs. Times of programs are those of the kernel's statistics.
const PARTS: [&str; 8] = [
    "cgroups",
    "work",
    "whit adds",
    "its events alone add",
    "a program that does nothing adds",
    "whit's program takes",
    "one that does nothing takes",
    "whit's own",
];
/// The goal is at most this share of perf's added time,
const SHARE_AIMED_AT: f64 = 0.1;
/// and a cost that differs by no more than this from one number of cgroups to another.
const DIFFERENCE_AIMED_AT: f64 = 0.2;

impl Figures for Comparison {
    /// The machine, the counters, one table for each number of cgroups, and the verdict.
    fn show(&self, page: &mut Page) {
        self.absent.iter().for_each(|line| page.fact(line));
        for counter in &self.counters {
            page.fact(format_args!("{}: {}", counter.kind, counter.version));
        }
        let events = self.events.join(",");
        page.fact(format_args!("events: {events} in each cgroup, their parent, and everywhere"));
        for table in &self.tables {
            table_of(page, table);
        }
        parts_of(page, self);
        page.notes(conclusions(self));
    }

    fn succeeded(&self) -> bool {
        let rows = || self.tables.iter().flat_map(|table| &table.rows);
        let is_whit = |row: &&Row| !matches!(row.counter, CounterKind::Perf | CounterKind::Nothing);
        rows().filter(is_whit).all(|row| row.refused.is_none())
    }
}

fn table_of(page: &mut Page, table: &Table) {
    let work = match table.work_ns {
        0 => "no work in a hop".to_owned(),
        ns => format!("{} µs of work in a hop", number(ns as f64 / 1000.0)),
    };
    page.paragraph(format_args!("{}, {work}:", size_of(table)));
    let alone = table.rows.iter().flat_map(|row| row.runs.iter().flat_map(|run| &run.alone));
    let hops = of_hops(alone, ["–".to_owned(), String::new()]);
    let mut cells = [vec!["nobody".to_owned()], hops, vec![String::new()]].concat();
    cells.extend([left_out(table.alone), String::new()]);
    let rows = table.rows.iter().map(|row| row_of(table, row));
    page.table(HEADINGS, 1, [cells].into_iter().chain(rows));
}

/// How many cgroups are counted, and how many of them have something to count.
fn size_of(table: &Table) -> String {
    match table.active == table.cgroups {
        true => format!("{} cgroups", table.cgroups),
        false => format!("{} cgroups with the token in {}", table.cgroups, table.active),
    }
}

fn row_of(table: &Table, row: &Row) -> Vec<String> {
    let mut cells = vec![row.counter.to_string()];
    let (Some(added), None) = (table.added_ns(row.counter), &row.refused) else {
        let disturbed = || format!("no turn is left: {} windows left out", left_out(row.windows));
        cells.push(row.refused.clone().unwrap_or_else(disturbed));
        return cells;
    };
    let of_perfs = table
        .share_of_perfs(row.counter)
        .filter(|_| row.counter != CounterKind::Perf)
        .map_or_else(String::new, |share| estimate(&share));
    cells.extend(of_hops(row.runs.iter().map(|run| &run.hops), [estimate(&added), of_perfs]));
    let cpu = Spread::of(row.runs.iter().map(|run| run.counter_cpu * 100.0));
    cells.push(cpu.map_or_else(String::new, |cpu| number(cpu.median)));
    cells.push(left_out(row.windows));
    cells.push(format!("{} of {}", row.compared().len(), row.runs.len()));
    cells
}

fn of_hops<'a>(hops: impl Iterator<Item = &'a Hops> + Clone, middle: [String; 2]) -> Vec<String> {
    let of = |field: fn(&Hops) -> f64| {
        Spread::of(hops.clone().map(field)).map_or_else(String::new, |values| spread(&values))
    };
    let [added, of_perfs] = middle;
    vec![of(|h| h.cpu_ns), added, of_perfs, of(|h| h.median_ns), of(|h| h.p99_ns)]
}

fn left_out(windows: Windows) -> String {
    format!("{} of {}", windows.disturbed, windows.measured)
}

/// The figure with its interval, which stands in brackets as that of [`spread`] stands in parentheses.
fn estimate(estimate: &Estimate) -> String {
    let Estimate { value, low, high } = *estimate;
    format!("{} [{}–{}]", number(value), number(low), number(high))
}

/// The goals, their results, and whether these are decidable.
fn conclusions(comparison: &Comparison) -> Vec<String> {
    let bpf = CounterKind::WhitBpf;
    let mut lines = vec![
        "medians of rounds, with the smallest and largest in parentheses, the 95 % interval in brackets".into(),
    ];
    for table in &comparison.tables {
        if let Some(share) = table.share_of_perfs(bpf) {
            let aim = verdict(&share, 0.0, SHARE_AIMED_AT);
            lines.push(format!(
                "{}, {} ns of work: whit with BPF adds {} of what perf stat -G adds; at most {}: {aim}",
                size_of(table),
                table.work_ns,
                estimate(&share),
                number(SHARE_AIMED_AT),
            ));
        }
    }
    let Some((first, others)) = comparison.tables.split_first() else { return lines };
    for table in others.iter().filter(|table| table.work_ns == first.work_ns) {
        let whole = table.share_of(first, bpf).map(|share| ("CPU time of a hop", share));
        let own = table.own_share_of(first).map(|share| ("the program's own time", share));
        let (low, high) = (1.0 - DIFFERENCE_AIMED_AT, 1.0 + DIFFERENCE_AIMED_AT);
        lines.extend(whole.into_iter().chain(own).map(|(what, share)| {
            format!(
                "by {what}, at {} it adds {} of what it adds at {}; {} to {}: {}",
                size_of(table),
                estimate(&share),
                first.cgroups,
                number(low),
                number(high),
                verdict(&share, low, high),
            )
        }));
    }
    lines
}

/// Where the time goes that whit with BPF adds to a hop; nothing where it added none.
fn parts_of(page: &mut Page, comparison: &Comparison) {
    let rows: Vec<_> = comparison.tables.iter().filter_map(parts).collect();
    if rows.is_empty() {
        return;
    }
    page.paragraph("Where the cost of whit with BPF is, in ns of a hop:");
    page.table(PARTS, 0, rows);
}

fn parts(table: &Table) -> Option<Vec<String>> {
    let added = |counter| table.added_ns(counter).as_ref().map(estimate);
    let time_ns = |counter| table.program_ns(counter).as_ref().map(estimate);
    let cells = [
        Some(number(table.work_ns as f64)),
        Some(added(CounterKind::WhitBpf)?),
        added(CounterKind::Events),
        added(CounterKind::Nothing),
        time_ns(CounterKind::WhitBpf),
        time_ns(CounterKind::Nothing),
        table.own_ns().as_ref().map(estimate),
    ];
    let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
    let cgroups = match table.active == table.cgroups {
        true => table.cgroups.to_string(),
        false => format!("{}, token in {}", table.cgroups, table.active),
    };
    Some([cgroups].into_iter().chain(cells).collect())
}

/// Whether a figure is between two bounds, as far as its interval tells. Below 0 is as good as 0.
fn verdict(estimate: &Estimate, low: f64, high: f64) -> &'static str {
    if estimate.high <= high && (estimate.low >= low || low == 0.0) {
        "yes"
    } else if estimate.low > high || (estimate.high < low) {
        "no"
    } else {
        "cannot be told"
    }
}
