//! Differences as text.

use super::{Differences, DifferentRow, Divisor, Kind, Quantity, RowVerdict, UNBOUNDED, Unit};
use crate::diff::{Scatter, Verdict};
use crate::units;
use std::io::{self, Write};

/// Reasons to doubt that are printed; the rest is counted.
const MAX_NOTES: usize = 10;

/// How to print differences.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TextOptions {
    /// Rows without a difference are left out below this share of all rows, in percent.
    pub percent_limit: f64,
    /// Print only the table.
    pub quiet: bool,
}

/// Prints them.
///
/// # Errors
/// Those of `out`.
pub fn write_text(out: &mut impl Write, of: &Differences, options: &TextOptions) -> io::Result<()> {
    if !options.quiet {
        write_head(out, of)?;
    }
    if let Some(whole) = &of.whole {
        write_row(out, of, whole)?;
    }
    let limit = limit(of, options.percent_limit);
    for row in of.rows.iter().filter(|row| row.differs() || is_heavy(row, limit)) {
        write_row(out, of, row)?;
    }
    writeln!(out)
}

/// The least value of the leading quantity of a row without a difference.
fn limit(of: &Differences, percent: f64) -> f64 {
    let lead = of.whole.as_ref().and_then(|row| row.verdicts.first());
    lead.map_or(0.0, |it| percent / 100.0 * it.judged.before.max(it.judged.after))
}

fn is_heavy(row: &DifferentRow, limit: f64) -> bool {
    row.verdicts
        .first()
        .is_some_and(|it| it.judged.before.max(it.judged.after) >= limit.max(f64::MIN_POSITIVE))
}

fn write_head(out: &mut impl Write, of: &Differences) -> io::Result<()> {
    for side in 0..2 {
        let name = ["Before", "After"][side];
        let paths: Vec<_> = of.paths[side].iter().map(ToString::to_string).collect();
        let scatter = match of.scatter[side] {
            Scatter::Blocks(count, length_ns) => {
                format!("errors from {count} blocks of {}", units::duration(length_ns))
            }
            Scatter::Runs(runs) => format!("errors from {runs} recordings"),
        };
        let widened = match of.is_widened[side] {
            true => "; losses and waits of uncertain length widen the intervals",
            false => "",
        };
        writeln!(out, "# {name}: {}", paths.join(" "))?;
        let recorded = of.seconds[side].map(|seconds| format!("{seconds:.3} s recorded; "));
        writeln!(out, "#   {}{scatter}{widened}", recorded.unwrap_or_default())?;
    }
    if let Some([before, after]) = of.units {
        writeln!(
            out,
            "# Values are per unit of work: {before} units in each recording before, {after} after"
        )?;
    }
    for note in of.notes.iter().take(MAX_NOTES) {
        writeln!(out, "# Warning: {note}")?;
    }
    if let more @ 1.. = of.notes.len().saturating_sub(MAX_NOTES) {
        writeln!(out, "# and {} more", units::counted(more as u64, "warning"))?;
    }
    let rows = of.rows.iter().filter(|row| row.differs()).count();
    writeln!(
        out,
        "# {}, judged together; {} with a difference (of all differences, at most 5 in 100 are false on average)\n\
         # ±: half of the 95 % interval of the change. In brackets: the smallest change that would have been found\n#",
        units::counted(of.tests as u64, "test"),
        units::counted(rows as u64, "row")
    )?;
    let name: Vec<String> = of.keys.iter().map(|key| key[..1].to_uppercase() + &key[1..]).collect();
    let name = match &name[..] {
        [function, binary] if of.keys[1] == "binary" => format!("{function} ({binary})"),
        several => several.join("  "),
    };
    writeln!(
        out,
        "#{:>9} {:>10} {:>10} {:>9}  {:<22}  {:<27}  {name}\n#",
        "Before", "After", "Change", "±", "Value", "Verdict"
    )
}

/// One line for the leading quantity, and one for each other one that differs.
fn write_row(out: &mut impl Write, of: &Differences, row: &DifferentRow) -> io::Result<()> {
    let name = of.row_name(row);
    let is_shown = |(place, it): &(usize, &RowVerdict)| {
        // A row of several measures of its own has all of them.
        *place == 0 || it.judged.verdict.is_difference() || of.kind == Kind::Requests
    };
    for (place, it) in row.verdicts.iter().enumerate().filter(is_shown) {
        let words = match place {
            0 if row.differs() && of.kind != Kind::Requests => of.words(row),
            _ => of.word(it).map_or_else(|| undecided(of, it), str::to_owned),
        };
        let quantity = &of.quantities[it.quantity];
        let value = value_name(quantity, of.units.is_some());
        writeln!(out, "{}  {value:<22}  {words:<27}  {name}", numbers(quantity, it))?;
    }
    Ok(())
}

fn undecided(of: &Differences, it: &RowVerdict) -> String {
    let smallest = number(&of.quantities[it.quantity], it.judged.smallest);
    format!("{} ({smallest})", Verdict::Undecided.words())
}

/// The name of a quantity with its unit.
pub(super) fn value_name(quantity: &Quantity, has_units: bool) -> String {
    let unit = match quantity.unit {
        Unit::Time => "ms",
        Unit::Count => "",
    };
    let per = match quantity.per {
        Divisor::Time => "/s",
        Divisor::Request => "/request",
        Divisor::Wait => "/wait",
        Divisor::Run if has_units => "/unit",
        Divisor::Run => "/run",
        Divisor::Nothing => "",
    };
    format!("{} {unit}{per}", quantity.name).trim_end().to_owned()
}

const NS_PER_MS: f64 = 1e6;

fn number(quantity: &Quantity, value: f64) -> String {
    match quantity.unit {
        Unit::Time => units::significant(value / NS_PER_MS),
        Unit::Count => units::significant(value),
    }
}

fn numbers(quantity: &Quantity, it: &RowVerdict) -> String {
    let judged = &it.judged;
    let (low, high) = judged.difference.interval;
    let half = (high - low) / 2.0;
    let change = judged.difference.change;
    let sign = if change > 0.0 { "+" } else { "" };
    let half = match half < UNBOUNDED {
        true => number(quantity, half),
        false => "any".to_owned(),
    };
    let cell = |value: f64| number(quantity, value);
    format!(
        "{:>10} {:>10} {:>10} {half:>9}",
        cell(judged.before),
        cell(judged.after),
        format!("{sign}{}", cell(change)),
    )
}
