//! The comparison as text.

use super::{Case, Comparison, Cost, Load, ProgramTime, Table, Way};
use crate::bench::Figures;
use crate::page::{MIB, Page, median, number, spread};
use crate::rounds::{Column, Row, headings};
use whit_measure::summary::Spread;

const COLUMNS: [Column<Cost>; 8] = [
    ("slowdown ×", |cost| Some(cost.slowdown), spread),
    ("load's CPU ×", |cost| Some(cost.load_cpu).filter(|times| times.is_finite()), spread),
    ("lost records %", |cost| Some(cost.recorded?.lost_share * 100.0), spread),
    ("samples", |cost| Some(cost.recorded?.samples as f64), median),
    ("MiB", |cost| Some(cost.size_bytes as f64 / MIB), median),
    ("bytes a sample", bytes_a_sample, median),
    ("recorder CPU s", |cost| Some(cost.recorder_cpu_s), median),
    ("BPF ns a run", bpf_ns, median),
];

impl Figures for Comparison {
    /// The machine, the recorders, a table for each load, and the verdict.
    fn show(&self, page: &mut Page) {
        self.versions.iter().for_each(|line| page.fact(line));
        for line in &self.absent {
            page.fact(format_args!("not here: {line}"));
        }
        page.fact(format_args!("event: {}", self.event));
        for table in &self.tables {
            table_of(page, table);
        }
    }

    fn succeeded(&self) -> bool {
        let rows = || self.tables.iter().flat_map(|table| &table.rows);
        rows().all(|row| !row.case.way.is_whit() || row.refused.is_none())
    }
}

fn table_of(page: &mut Page, table: &Table) {
    let title = match table.load {
        Load::Pingpong => "Ping-pong of 8 threads: samples, and every switch with its stacks",
        Load::Deep => "A deep C++ program on every CPU, at 5 kHz",
    };
    page.section(title);
    page.fact(format_args!("load: `{}`", table.command));
    let alone = |field: fn(&crate::record::workload::Alone) -> f64| {
        Spread::of(table.alone.iter().map(field))
    };
    if let (Some(seconds), Some(rate)) =
        (alone(|run| run.result.seconds), alone(|run| run.result.operations_per_s))
    {
        let (seconds, rate) = (spread(&seconds), rate.median);
        page.fact(format_args!("alone: {seconds} s, {rate:.0} operations a second"));
    }
    for row in &table.rows {
        page.fact(format_args!("{}: `{}`", row.case.way, row.case.options));
    }
    page.table(headings(&["recorder"], &COLUMNS), 1, table.rows.iter().map(row_of));
    for line in conclusion(table).into_iter().chain(of_programs(table)) {
        page.paragraph(line);
    }
}

/// The way into a program is not in the kernel's figure; the row's slowdown has it.
fn of_programs(table: &Table) -> Option<String> {
    let over = |of: fn(&ProgramTime) -> f64| Spread::of(table.program_times.iter().map(of));
    let programs = table.program_times.iter().map(|window| window.programs).max()?;
    Some(format!(
        "{}: a switch that is not sampled takes {} ns in {programs} programs, without the {} ns that the \
         kernel takes to time each.",
        Way::WhitOffCpu,
        spread(&over(|window| window.switch_ns)?),
        spread(&over(|window| window.empty_ns)?),
    ))
}

fn row_of(row: &Row<Case, Cost>) -> Vec<String> {
    let way = row.case.way.to_string();
    match &row.refused {
        Some(reason) => vec![way, format!("refused: {reason}")],
        None => row.cells(vec![way], &COLUMNS),
    }
}

fn bytes_a_sample(cost: &Cost) -> Option<f64> {
    Some(cost.size_bytes as f64 / cost.recorded?.samples.max(1) as f64)
}

fn bpf_ns(cost: &Cost) -> Option<f64> {
    let bpf = cost.recorded?.bpf?;
    Some(bpf.run_time_ns as f64 / bpf.runs.max(1) as f64)
}

/// Against perf's best: of those that lose the least, the one that slows down the least.
fn conclusion(table: &Table) -> Option<String> {
    let figures = |way: Way| {
        let of = |figure: fn(&Cost) -> Option<f64>| Some(table.spread(way, figure)?.median);
        let lost = of(|cost| Some(cost.recorded?.lost_share))?;
        Some((lost, of(|cost| Some(cost.slowdown))?, of(bytes_a_sample)?))
    };
    let whit = figures(Way::WhitBpf)?;
    let perfs = table.rows.iter().map(|row| row.case.way).filter(|way| way.is_perf());
    let best = perfs.filter_map(|way| Some((way, figures(way)?)));
    let (way, best) = best.min_by(|(_, a), (_, b)| {
        let loss = |of: &(f64, f64, f64)| (of.0 * 1000.0).round();
        loss(a).total_cmp(&loss(b)).then(a.1.total_cmp(&b.1))
    })?;
    Some(format!(
        "whit with BPF slows down {:.2}× and loses {:.2} %; perf's best ({way}) {:.2}× and {:.2} %. A \
         sample takes {} bytes where perf's takes {}: 1/{:.0}.",
        whit.1,
        whit.0 * 100.0,
        best.1,
        best.0 * 100.0,
        number(whit.2),
        number(best.2),
        best.2 / whit.2,
    ))
}
