//! Lines above and below a table in text: target, time, and the reasons for missing counts.

use std::fmt::Write;

use whit_types::{escape, pad};

use super::no_count;
use crate::counter::{Absence, Counter};
use crate::note::Note;
use crate::statistics::Statistics;
use crate::table::{Row, Table};

const SECONDS_PER_NS: f64 = 1e-9;
/// Most marks of a bar of the table of runs.
const BAR_MAX: usize = 200;

/// The line that `-o` and `--append` begin with.
pub fn started_on(local_time: &str) -> String {
    format!("# started on {local_time}\n\n")
}

/// The line that names the target of the table below it.
pub fn heading(title: &str, runs: usize) -> String {
    let runs = if runs > 1 { format!(" ({runs} runs)") } else { String::new() };
    format!("\n Performance counter stats for {}{runs}:\n\n", escape(title))
}

/// Counts and times as they were read, a line for each row.
pub fn raw_counts(counters: &[Counter], table: &Table) -> String {
    let mut out = String::new();
    for row in &table.rows {
        let (name, reading) = (&counters[row.counter].event.name, row.reading);
        let (value, enabled, running) = (reading.value, reading.enabled_ns, reading.running_ns);
        let _ = writeln!(out, "{}: {value} {enabled} {running}", escape(name));
    }
    out
}

/// Why events are not counted at all, as far as that is known beforehand: comments.
pub fn absences(counters: &[Counter]) -> String {
    let mut absent: Vec<(Absence, Vec<&str>)> = Vec::new();
    for counter in counters {
        let Some(absence) = counter.absence else { continue };
        let name = counter.event.name.as_str();
        match absent.iter_mut().find(|(known, _)| *known == absence) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => absent.push((absence, vec![name])),
        }
    }
    let line = |(absence, names): &(Absence, Vec<&str>)| {
        let kind = if absence.is_unsupported() { "<not supported>" } else { "<not counted>" };
        format!("# {}: {kind}: {absence}\n", escape(&names.join(", ")))
    };
    absent.iter().map(line).collect()
}

/// How counts were taken: comments.
pub fn notes(notes: &[Note]) -> String {
    notes.iter().map(|note| format!(" # {note}\n")).collect()
}

/// Why rows have no count: a line for each reason, with the events it holds for.
pub fn reasons(counters: &[Counter], table: &Table) -> String {
    let mut reasons: Vec<(String, &'static str, Vec<&str>)> = Vec::new();
    for row in &table.rows {
        let counter = &counters[row.counter];
        let Some(reason) = reason(counter, row, table) else { continue };
        let name = counter.event.name.as_str();
        let kind = no_count(counter);
        match reasons.iter_mut().find(|(known, k, _)| *known == reason && *k == kind) {
            Some((_, _, names)) if names.contains(&name) => {}
            Some((_, _, names)) => names.push(name),
            None => reasons.push((reason, kind, vec![name])),
        }
    }
    let mut out = String::new();
    for (reason, kind, names) in reasons {
        let _ = writeln!(out, " # {}: {kind}: {}", escape(&names.join(", ")), escape(&reason));
    }
    out
}

/// Why a row has no count. A count in another place (on another CPU) is reason enough.
fn reason(counter: &Counter, row: &Row, table: &Table) -> Option<String> {
    if let Some(absence) = counter.absence {
        return Some(absence.to_string());
    }
    let elsewhere = |other: &Row| other.counter == row.counter && other.reading.is_counted();
    if row.reading.is_counted() || table.rows.iter().any(elsewhere) {
        return None;
    }
    Some(match (row.reading.enabled_ns, &counter.cgroup) {
        (0, Some(_)) => "no task of the cgroup ran".to_owned(),
        (0, None) => "the target did not run meanwhile".to_owned(),
        _ => "it never found a free counter: count fewer hardware events at once, or free those \
              that others hold (the NMI watchdog has one: sysctl kernel.nmi_watchdog=0)"
            .to_owned(),
    })
}

/// Times, below a table.
#[derive(Clone, Debug)]
pub struct Footer<'a> {
    /// How long each run took, in nanoseconds.
    pub runs_ns: &'a [f64],
    /// The command's user and system time in nanoseconds, where one command ran once.
    pub usage_ns: Option<(u64, u64)>,
    /// Every run by itself.
    pub with_table: bool,
    /// The list of counts is not empty.
    pub has_counts: bool,
}

/// The lines of the times.
pub fn elapsed(footer: &Footer<'_>) -> String {
    let mut seconds = Statistics::default();
    footer.runs_ns.iter().for_each(|ns| seconds.add(ns * SECONDS_PER_NS));
    let mut out = String::new();
    if footer.has_counts {
        out.push('\n');
    }
    if seconds.count() <= 1 {
        let _ = write!(out, " {:17.9} seconds time elapsed", seconds.mean());
        if let Some((user_ns, system_ns)) = footer.usage_ns {
            let [user, system] = [user_ns, system_ns].map(|ns| ns as f64 * SECONDS_PER_NS);
            let _ = write!(out, "\n\n {user:17.9} seconds user\n {system:17.9} seconds sys\n");
        }
        out.push_str("\n\n");
        return out;
    }
    let deviation = seconds.deviation_of_mean();
    let digits = precision(deviation) + 2;
    if footer.with_table {
        runs(&mut out, footer.runs_ns, seconds.mean(), digits);
    }
    let (mean, percent) = (seconds.mean(), seconds.percent());
    let [mean, deviation] = [mean, deviation].map(|value| pad::decimals(value, digits));
    let _ = write!(out, " {mean:>17} +- {deviation} seconds time elapsed");
    if percent != 0.0 {
        let _ = write!(out, "  ( +-{percent:6.2}% )");
    }
    out.push_str("\n\n");
    out
}

/// Digits behind the point that matter for a number of this size.
fn precision(size: f64) -> usize {
    const MOST: f64 = 9.0;
    if size >= 1.0 || size <= 0.0 { 0 } else { (-size.log10()).ceil().min(MOST) as usize }
}

fn runs(out: &mut String, runs_ns: &[f64], mean: f64, digits: usize) {
    let sample = format!(" {:>17}", pad::decimals(mean, digits));
    let indent = sample.len() - sample.trim_start().len();
    let indent = pad::blanks(indent).to_string();
    let _ = writeln!(out, "{indent}# Table of individual measurements:");
    for run in runs_ns.iter().map(|ns| ns * SECONDS_PER_NS) {
        let distance = if run == 0.0 { 0.0 } else { (100.0 * (run - mean) / run).abs() };
        let bar = "#".repeat((1 + (distance as usize) / 5).min(BAR_MAX));
        let (sign, distance) = if run < mean { ("-", mean - run) } else { ("+", run - mean) };
        let [run, distance] = [run, distance].map(|value| pad::decimals(value, digits));
        let _ = writeln!(out, " {run:>17} ({sign}{distance}) {bar}");
    }
    let _ = writeln!(out, "\n{indent}# Final result:");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer(runs_ns: &[f64]) -> Footer<'_> {
        Footer { runs_ns, usage_ns: None, with_table: true, has_counts: true }
    }

    #[test]
    fn one_run_has_its_times_and_several_have_their_spread() {
        let once = Footer { usage_ns: Some((1_000_000, 0)), ..footer(&[1_241_681.0]) };
        assert_eq!(
            elapsed(&once),
            "\n       0.001241681 seconds time elapsed\n\n       0.001000000 seconds user\n       \
             0.000000000 seconds sys\n\n\n"
        );
        let text = elapsed(&footer(&[1e9, 1.1e9, 1.3e9]));
        assert_eq!(
            text,
            "\n            # Table of individual measurements:\n            1.0000 (-0.1333) ###\n            \
             1.1000 (-0.0333) #\n            1.3000 (+0.1667) ###\n\n            # Final result:\n            \
             1.1333 +- 0.0882 seconds time elapsed  ( +-  7.78% )\n\n"
        );
    }

    #[test]
    fn runs_that_do_not_differ_have_no_spread() {
        let text = elapsed(&Footer { with_table: false, ..footer(&[1e9, 1e9]) });
        assert!(text.contains("+- 0.00 seconds"), "{text}");
        assert_eq!((precision(0.5), precision(0.05), precision(2.0), precision(0.0)), (1, 2, 0, 0));
    }
}
