//! The results as text.

use super::{Cost, Measured, ProcessCost, Row, Settings, Soak, SoakRow};
use crate::markdown::{line_to, number, table_to};
use whit_types::ByteSize;

const MIB: f64 = (1u64 << 20) as f64;

/// A table of all runs.
pub fn markdown(measured: &Measured) -> String {
    let mut text = String::new();
    for line in measured.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    if let Some((row, cost)) = measured.rows.iter().find_map(|row| Some((row, row.cost.as_ref()?)))
    {
        line_to(
            &mut text,
            &format!(
                "- windows of {} s; {:.0} s a run; CPU time in percent of one CPU; watch / recorder",
                row.settings.window_s, cost.seconds
            ),
        );
    }
    line_to(&mut text, "");
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
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(measured.rows.iter().map(cells));
    table_to(&mut text, &table, 3);
    text
}

fn cells(row: &Row) -> Vec<String> {
    let waits = if row.settings.has_waits { "yes" } else { "no" };
    let mut cells =
        vec![row.machine.to_string(), row.settings.frequency_hz.to_string(), waits.to_owned()];
    let Some(cost) = &row.cost else {
        cells.push(row.refused.clone().unwrap_or_else(|| "was not run".to_owned()));
        return cells;
    };
    let both = |of: fn(&ProcessCost) -> f64| {
        format!("{} / {}", number(of(&cost.watch)), number(of(&cost.recorder)))
    };
    cells.push(both(|it| it.cpu_percent));
    cells.push(both(|it| it.peak_bytes as f64 / MIB));
    cells.push(both(|it| it.wake_ups_an_hour));
    cells.push(number(cost.bytes as f64 / MIB * 3600.0 / cost.seconds));
    cells.push(cost.windows.to_string());
    cells.push(cost.records.to_string());
    cells.push(lost(cost));
    cells
}

fn lost(cost: &Cost) -> String {
    let mut all = Vec::new();
    if cost.records_lost > 0 {
        all.push(format!("{} records", cost.records_lost));
    }
    all.extend(cost.losses.iter().map(named));
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

fn named((name, count): &(String, u64)) -> String {
    format!("{name} {count}")
}

/// A table of the minutes, and the growth of memory.
pub fn soak_markdown(soak: &Soak) -> String {
    let mut text = String::new();
    for line in soak.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    let Settings { frequency_hz, has_waits, window_s, .. } = soak.settings;
    let waits = if has_waits { "with waits" } else { "without waits" };
    line_to(
        &mut text,
        &format!("- {}, {frequency_hz} Hz {waits}, windows of {window_s} s", soak.machine),
    );
    let (watch, recorder) = soak.growth_bytes();
    line_to(
        &mut text,
        &format!(
            "- memory from a fifth of the time on: watch {} MiB more, recorder {} MiB more, at most",
            number(watch as f64 / MIB),
            number(recorder as f64 / MIB)
        ),
    );
    if !soak.is_whole {
        line_to(&mut text, "- the service ended, or did not answer");
    }
    line_to(&mut text, "");
    let headings =
        ["minute", "CPU %", "MiB", "wake-ups", "windows", "MiB written", "MiB kept", "lost so far"];
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(soak.rows.iter().map(soak_cells));
    table_to(&mut text, &table, 0);
    text
}

fn soak_cells(row: &SoakRow) -> Vec<String> {
    let both = |of: fn(&ProcessCost) -> f64| {
        format!("{} / {}", number(of(&row.watch)), number(of(&row.recorder)))
    };
    let lost: Vec<_> = row.losses.iter().map(named).collect();
    vec![
        number(row.at_s / 60.0),
        both(|it| it.cpu_percent),
        both(|it| it.resident_bytes as f64 / MIB),
        both(|it| it.wake_ups_an_hour / 60.0),
        row.windows.to_string(),
        number(row.bytes as f64 / MIB),
        ByteSize(row.kept_bytes).to_string(),
        if lost.is_empty() { "nothing".to_owned() } else { lost.join(", ") },
    ]
}
