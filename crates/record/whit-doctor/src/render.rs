//! The report as text and as JSON.

use std::fmt::Write;

use crate::finding::{Area, Cost, Finding, Report, Status};
use whit_types::{escape, escape_json, pad};

/// Column at which details start.
const DETAIL_COLUMN: usize = 48;

/// The report for a terminal: areas by interest, each problem with the command that solves it, and
/// a summary. Every line is at most as wide as its content needs.
pub fn render_text(report: &Report) -> String {
    let mut text = String::new();
    for area in Area::ALL {
        let findings: Vec<&Finding> = report.of(area).collect();
        if findings.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}", area.title());
        findings.iter().for_each(|finding| line(&mut text, finding));
        text.push('\n');
    }
    if !report.costs.is_empty() {
        text.push_str("Cost of measuring (median, fastest to slowest)\n");
        report.costs.iter().for_each(|cost| cost_line(&mut text, cost));
        text.push('\n');
    }
    remedies(&mut text, report);
    text
}

fn line(text: &mut String, finding: &Finding) {
    let Finding { what, status, detail, .. } = finding;
    let width = DETAIL_COLUMN.saturating_sub(12);
    let (what, detail) = (escape(what), escape(detail));
    let _ = writeln!(text, "  {status:<8}  {}  {detail}", pad::left(what, width));
}

fn cost_line(text: &mut String, cost: &Cost) {
    let Cost { what, median_ns, min_ns, max_ns, rounds } = cost;
    let width = DETAIL_COLUMN.saturating_sub(2);
    let (median, min, max) = (duration(*median_ns), duration(*min_ns), duration(*max_ns));
    let what = pad::left(what, width);
    let _ = writeln!(text, "  {what}  {median} ({min} to {max}, {rounds} times)");
}

fn duration(ns: u64) -> String {
    match ns {
        0 => "below noise".to_owned(),
        1..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

/// Each remedy once, with the findings that it resolves.
fn remedies(text: &mut String, report: &Report) {
    let count = |status| report.count(status);
    let _ = writeln!(
        text,
        "{} ok, {} degraded, {} refused, {} absent",
        count(Status::Ok),
        count(Status::Degraded),
        count(Status::Refused),
        count(Status::Absent)
    );
    let mut listed: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in &report.findings {
        let Some(remedy) = finding.remedy.as_deref() else { continue };
        match listed.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, whats)) => whats.push(&finding.what),
            None => listed.push((remedy, vec![&finding.what])),
        }
    }
    if !listed.is_empty() {
        text.push_str("\nTo change that\n");
    }
    for (remedy, whats) in listed {
        let (whats, remedy) = (whats.join(", "), escape(remedy));
        let _ = writeln!(text, "  {}\n      {remedy}", escape(&whats));
    }
}

/// The report as one JSON object: `findings`, each with `area`, `what`, `status`, `detail` and
/// `remedy` (a text or null), and `costs` in nanoseconds (`docs/schemas/doctor.json`).
///
/// # Errors
///
/// None in practice: every field can be written as JSON.
pub fn render_json(report: &Report) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string_pretty(report)?;
    Ok(escape_json(&json).into_owned() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Report>("docs/schemas/doctor.json");
    }
}
