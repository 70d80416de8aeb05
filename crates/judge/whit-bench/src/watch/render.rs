//! The results as text.

use super::{Between, Cost, Measured, ProcessCost, Row, Settings, Soak, SoakRow};
use crate::page::{Cell, MIB, Page, number};
use whit_types::ByteSize;

/// A table of all runs.
pub(super) fn show(measured: &Measured, page: &mut Page) {
    if let Some((row, cost)) = measured.rows.iter().find_map(|row| Some((row, row.cost.as_ref()?)))
    {
        page.fact(format_args!(
            "windows of {} s; {:.0} s a run; CPU time in percent of one CPU; watch / recorder",
            row.settings.window_s, cost.seconds
        ));
    }
    let headings = [
        "machine",
        "Hz",
        "waits",
        "CPU %",
        "peak MiB",
        "wake-ups an hour",
        "MiB an hour",
        "windows",
        "records",
        "lost",
    ];
    page.table(headings, 3, measured.rows.iter().map(cells));
}

fn cells(row: &Row) -> Vec<String> {
    let waits = if row.settings.has_waits { "yes" } else { "no" };
    let mut cells =
        vec![row.machine.to_string(), row.settings.frequency_hz.to_string(), waits.to_owned()];
    let Some(cost) = &row.cost else {
        cells.push(row.refused.clone().unwrap_or_else(|| "was not run".to_owned()));
        return cells;
    };
    let between = &cost.between;
    cells.push(both(between, |it| it.cpu_percent));
    cells.push(both(between, |it| it.peak_bytes as f64 / MIB));
    cells.push(both(between, |it| it.wake_ups_an_hour));
    cells.push(number(between.bytes as f64 / MIB * 3600.0 / cost.seconds));
    cells.push(between.windows.to_string());
    cells.push(cost.records.to_string());
    cells.push(lost(cost));
    cells
}

fn lost(cost: &Cost) -> String {
    let mut all = Vec::new();
    if cost.records_lost > 0 {
        all.push(format!("{} records", cost.records_lost));
    }
    listed(all, &cost.losses)
}

fn listed(mut all: Vec<String>, losses: &[(String, u64)]) -> String {
    all.extend(losses.iter().map(|(name, count)| format!("{name} {count}")));
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

/// A table of the minutes, and the growth of memory.
pub(super) fn show_soak(soak: &Soak, page: &mut Page) {
    let Settings { frequency_hz, has_waits, window_s, .. } = soak.settings;
    let waits = if has_waits { "with waits" } else { "without waits" };
    page.fact(format_args!("{}, {frequency_hz} Hz {waits}, windows of {window_s} s", soak.machine));
    let (watch, recorder) = soak.growth_bytes();
    page.fact(format_args!(
        "memory from a fifth of the time on: watch {} MiB more, recorder {} MiB more, at most",
        number(watch as f64 / MIB),
        number(recorder as f64 / MIB)
    ));
    if !soak.is_whole {
        page.fact("the service ended, or did not answer");
    }
    page.columns(0, &SOAK, &soak.rows);
}

const SOAK: [Cell<SoakRow>; 8] = [
    ("minute", |row| number(row.at_s / 60.0)),
    ("CPU %", |row| both(&row.between, |it| it.cpu_percent)),
    ("MiB", |row| both(&row.between, |it| it.resident_bytes as f64 / MIB)),
    ("wake-ups", |row| both(&row.between, |it| it.wake_ups_an_hour / 60.0)),
    ("windows", |row| row.between.windows.to_string()),
    ("MiB written", |row| number(row.between.bytes as f64 / MIB)),
    ("MiB kept", |row| ByteSize(row.kept_bytes).to_string()),
    ("lost so far", |row| listed(Vec::new(), &row.losses)),
];

fn both(between: &Between, of: fn(&ProcessCost) -> f64) -> String {
    format!("{} / {}", number(of(&between.watch)), number(of(&between.recorder)))
}
