//! A comparison as text.

use std::io::{self, Write};

use whit_types::OutsideText;

use super::{Diff, EventDiff, Judged, Match, Per, Row, Scatter, SideInfo, Verdict};
use crate::units;

/// Warnings of the recordings that are printed; the rest is counted.
const MAX_NOTES: usize = 10;

/// Width of four numbers and a verdict with its bracket.
const CELLS_WIDTH: usize = 64;

/// Changes below this part of the value come from rounding.
const ROUNDING: f64 = 1e-9;

/// How to print a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DiffTextOptions {
    /// Functions without a verdict are left out below this share of all weight, in percent.
    pub percent_limit: f64,
    /// Print only the tables.
    pub quiet: bool,
}

/// Prints it.
///
/// # Errors
/// Those of `out`.
pub fn write_text(out: &mut impl Write, diff: &Diff, options: &DiffTextOptions) -> io::Result<()> {
    if !options.quiet {
        write_head(out, diff)?;
    }
    for event in &diff.events {
        write_event(out, diff, event, options)?;
    }
    Ok(())
}

fn write_head(out: &mut impl Write, diff: &Diff) -> io::Result<()> {
    for (name, paths) in ["Before", "After"].iter().zip(&diff.paths) {
        let paths: Vec<_> = paths.iter().map(ToString::to_string).collect();
        writeln!(out, "# {name}: {}", paths.join(" "))?;
    }
    match &diff.per {
        Per::Share => writeln!(
            out,
            "# Values are shares in percent. Shares cannot show that everything became slower or faster alike:\n\
             # for that, divide by work (--per N) or by an event (--per-event instructions)"
        )?,
        Per::Units(before, after) => writeln!(
            out,
            "# Values are event counts per unit of work: {before} units in each recording before, {after} after"
        )?,
        Per::Event(event) => {
            writeln!(out, "# Values are event counts per {}", OutsideText::new(event.as_str()))?;
        }
    }
    for note in diff.notes.iter().take(MAX_NOTES) {
        writeln!(out, "# Warning: {note}")?;
    }
    if let more @ 1.. = diff.notes.len().saturating_sub(MAX_NOTES) {
        writeln!(out, "# and {} more", units::counted(more as u64, "warning"))?;
    }
    writeln!(out, "#")
}

fn write_event(
    out: &mut impl Write,
    diff: &Diff,
    event: &EventDiff,
    options: &DiffTextOptions,
) -> io::Result<()> {
    let has_total = event.rows.iter().any(|row| row.total.is_some());
    if !options.quiet {
        writeln!(out, "# Event: '{}'", event.name)?;
        for (name, side) in [("Before", &event.before), ("After", &event.after)] {
            writeln!(out, "# {name}: {}", side_line(side))?;
        }
        let differences = event.rows.iter().flat_map(judged).filter(|it| differs(it)).count();
        writeln!(
            out,
            "# {}, judged together; {} (of these, at most 5 in 100 are false on average)",
            units::counted(event.tests as u64, "test"),
            units::counted(differences as u64, "difference")
        )?;
        writeln!(
            out,
            "# ±: half of the 95 % interval of the change. In brackets: the smallest change that would have been found"
        )?;
        write_headings(out, has_total)?;
    }
    if let Some(whole) = &event.whole {
        let blank = " ".repeat(if has_total { CELLS_WIDTH + 1 } else { 0 });
        writeln!(out, "{}{blank}  [all samples]", cells(diff, whole))?;
    }
    let limit = options.percent_limit / 100.0 * diff.whole_before(event);
    for row in event.rows.iter().filter(|row| is_shown(row, limit)) {
        write_row(out, diff, row)?;
    }
    writeln!(out)
}

fn write_headings(out: &mut impl Write, has_total: bool) -> io::Result<()> {
    let cells =
        format!("{:>9} {:>9} {:>9} {:>8}  {:<24}", "Before", "After", "Change", "±", "Verdict");
    let (own, total) = (&cells[1..], format!(" {cells}"));
    const OWN_WIDTH: usize = CELLS_WIDTH - 1;
    let own_group = format!("{:-^OWN_WIDTH$}", " Self ");
    match has_total {
        true => {
            let total_group = format!("{:-^CELLS_WIDTH$}", " Total ");
            writeln!(out, "#\n#{own_group} {total_group}\n#{own}{total}  Function (Binary)\n#")
        }
        false => writeln!(out, "#\n#{own_group}\n#{own}  Function (Binary)\n#"),
    }
}

fn side_line(side: &SideInfo) -> String {
    let samples = units::counted(side.samples, "sample");
    let scatter = match side.scatter {
        Scatter::Blocks(count, length_ns) => {
            format!("errors from {count} blocks of {}", units::duration(length_ns))
        }
        Scatter::Runs(runs) => format!("errors from {runs} recordings"),
    };
    let lost = match side.lost {
        0 => String::new(),
        lost => format!("; {} lost, which widen the intervals", units::counted(lost, "record")),
    };
    format!("{samples}, event count (approx.) {}; {scatter}{lost}", side.period)
}

fn judged(row: &Row) -> impl Iterator<Item = &Judged> {
    std::iter::once(&row.own).chain(&row.total)
}

fn differs(judged: &Judged) -> bool {
    judged.verdict.is_difference()
}

fn is_shown(row: &Row, limit: f64) -> bool {
    judged(row).any(|it| differs(it) || it.before.max(it.after) >= limit.max(f64::MIN_POSITIVE))
}

fn write_row(out: &mut impl Write, diff: &Diff, row: &Row) -> io::Result<()> {
    let total = row.total.as_ref().map(|total| cells(diff, total));
    let total = total.map_or_else(String::new, |cells| format!(" {cells}"));
    let name = &row.name;
    write!(out, "{}{total}  {} ({}", cells(diff, &row.own), name.function, name.binary)?;
    match (&row.renamed, row.matched) {
        (Some(other), by) => {
            let mark = if by == Match::Similar { "perhaps " } else { "" };
            writeln!(out, "; after: {mark}{} ({}))", other.function, other.binary)?;
        }
        (None, _) => writeln!(out, ")")?,
    }
    if let Some(caller) = &row.caller {
        let total = cells(diff, &caller.total);
        let blank = " ".repeat(CELLS_WIDTH + 1);
        writeln!(out, "{blank}{total}    caller: {}", caller.name.function)?;
    }
    Ok(())
}

fn cells(diff: &Diff, judged: &Judged) -> String {
    let number = |value: f64| match diff.per {
        Per::Share => format!("{value:.2}"),
        _ => units::significant(value),
    };
    let difference = &judged.difference;
    let is_rounding = difference.change.abs() < ROUNDING * judged.before.abs();
    let change = if is_rounding { 0.0 } else { difference.change };
    let sign = if change > 0.0 { "+" } else { "" };
    let half = (difference.interval.1 - difference.interval.0) / 2.0;
    let verdict = match judged.verdict {
        Verdict::Undecided => {
            format!("{} ({})", judged.verdict.words(), number(judged.smallest))
        }
        verdict => verdict.words().to_owned(),
    };
    format!(
        "{:>9} {:>9} {:>9} {:>8}  {verdict:<24}",
        number(judged.before),
        number(judged.after),
        format!("{sign}{}", number(change)),
        number(half),
    )
}
