//! A comparison of recorders as text.

use super::recorder::RecorderKind;
use super::run::Run;
use super::summary::{RowFigures, RowSummary};
use super::tables::{EVERY_MODE, TableKind};
use super::{Comparison, Row, TableResult};
use crate::bench::Figures;
use crate::page::{Page, number, scaled, spread};
use whit_measure::summary::Spread;
use whit_types::ByteSize;

const HEADINGS: [&str; 10] = [
    "setting",
    "recorder",
    "run time +%",
    "wall time +%",
    "recorder CPU s",
    "data loss %",
    "lost records",
    "samples",
    "MiB",
    "ratio",
];
/// Columns that hold names.
const NAMES: usize = 2;

impl Figures for Comparison {
    /// The whole comparison: the machine, who took part, then the tables.
    fn show(&self, page: &mut Page) {
        let tuning = &self.tuning;
        page.fact(format_args!("event {}, rings of {}", tuning.event, tuning.ring_size));
        for recorder in &self.recorders {
            page.fact(format_args!("{}: {}", recorder.kind, recorder.version));
        }
        for absent in &self.absent {
            page.fact(format_args!("{}: not here ({})", absent.kind, absent.reason));
        }
        for table in &self.tables {
            one_table(page, table);
        }
    }

    fn succeeded(&self) -> bool {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        rows.filter(|row| row.recorder == RecorderKind::Whit).all(|row| {
            !matches!(row.summary, RowSummary::Failed { .. } | RowSummary::TimedOut { .. })
        })
    }
}

fn one_table(page: &mut Page, table: &TableResult) {
    let seconds = Spread::of(table.alone.iter().map(|alone| alone.result.seconds));
    let rate = Spread::of(table.alone.iter().map(|alone| alone.result.operations_per_s));
    page.section(format_args!("{}: {}", table.table, table.table.title()));
    page.fact(format_args!("workload: `{}`", table.workload_command));
    if let (Some(seconds), Some(rate)) = (seconds, rate) {
        let (seconds, rate) = (spread(&seconds), rate.median);
        page.fact(format_args!("alone: {seconds} s, {rate:.0} operations per second"));
    }
    page.fact(format_args!("all settings: `{}`", table.common_options.join(" ")));
    page.table(HEADINGS, NAMES, table.rows.iter().map(cells));
    page.notes(notes(table));
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.setting.name.clone(), row.recorder.to_string()];
    match row.summary.figures() {
        Some(figures) => cells.extend(figure_cells(figures)),
        None => cells.push(cell(&row.summary.to_string())),
    }
    cells
}

/// On one line, and without what ends a cell.
fn cell(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('|', "\\|")
}

fn figure_cells(figures: &RowFigures) -> [String; 8] {
    let percent = |s: &Spread| scaled(s, 100.0);
    [
        spread(&percent(&figures.run_overhead)),
        spread(&percent(&figures.wall_overhead)),
        spread(&figures.recorder_cpu_s),
        figures.data_loss.map_or_else(|| "–".to_owned(), |loss| spread(&percent(&loss))),
        format!("{:.0} ({}%)", figures.lost.median, number(100.0 * figures.lost_share.median)),
        format!("{:.0}", figures.samples.median),
        number(figures.size_bytes.median / f64::from(1 << 20)),
        number(figures.compression_ratio.median),
    ]
}

fn notes(table: &TableResult) -> Vec<String> {
    let mut notes = Vec::new();
    for row in &table.rows {
        if let Some(figures) = row.summary.figures()
            && figures.unreadable_bytes > 0
        {
            let (name, bytes) = (&row.setting.name, ByteSize(figures.unreadable_bytes));
            notes
                .push(format!("{name}, {}: {bytes} of the recording are unreadable", row.recorder));
        }
    }
    if table.table == TableKind::Loss {
        notes.extend(all_against_best(table));
    }
    notes
}

/// The one question that the table of losses is for.
fn all_against_best(table: &TableResult) -> Option<String> {
    let loss = |row: &Row| Some(row.summary.figures()?.data_loss?.median);
    let of = |kind| table.rows.iter().filter(move |row| row.recorder == kind);
    let perf = of(RecorderKind::Perf).filter_map(|row| Some((row, loss(row)?)));
    let (best, best_loss) = perf.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let all = of(RecorderKind::Whit).find(|row| row.setting.name == EVERY_MODE)?;
    let all_loss = loss(all)?;
    let ratio = if best_loss > 0.0 {
        format!(", {}× of it", number(all_loss / best_loss))
    } else {
        String::new()
    };
    Some(format!(
        "data loss of perf's best setting ({}): {} %; of whit with every mode: {} %{ratio}",
        best.setting.name,
        number(100.0 * best_loss),
        number(100.0 * all_loss)
    ))
}

/// One line about one run, as it happens.
pub(super) fn progress(round: usize, row: &Row, run: &Run) -> String {
    let name = format!("{} {}", row.recorder, row.setting.name);
    let what = match run {
        Run::Measured(figures) => format!(
            "{:8.2} s, loss {} %, {} lost, {} samples, {}",
            figures.workload.seconds,
            figures.recorded.data_loss().map_or_else(|| "–".into(), |loss| number(100.0 * loss)),
            figures.recorded.lost,
            figures.recorded.samples,
            ByteSize(figures.recorded.size_bytes),
        ),
        ended => ended.to_string(),
    };
    format!("  round {}: {name:<28} {what}", round + 1)
}
