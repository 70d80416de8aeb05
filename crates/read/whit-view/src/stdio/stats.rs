//! `--stats`: records by type.

use std::io::{self, Write};

use whit_profile::model::Profile;

use super::loss::loss_line;
use crate::hists::percent;

/// Prints `Aggregated stats:` as perf does, samples by event, ends of unwinding by reason, mangled
/// names, and losses.
///
/// # Errors
/// The error of `out`.
pub fn write_stats(out: &mut impl Write, profile: &Profile) -> io::Result<()> {
    let stats = &profile.stats;
    let total: u64 = stats.by_type.iter().map(|(_, count)| count).sum();
    writeln!(out, "\nAggregated stats:")?;
    writeln!(out, "{:>16} events: {total:>10}", "TOTAL")?;
    for (name, count) in &stats.by_type {
        let share = percent(*count, total);
        writeln!(out, "{name:>16} events: {count:>10}  ({share:>4.1}%)")?;
    }
    for (event, samples) in profile.events.iter().zip(&stats.samples_by_event) {
        if *samples == 0 && event.lost_samples == 0 {
            continue;
        }
        writeln!(out, "{} stats:", event.name)?;
        if *samples > 0 {
            writeln!(out, "{:>16} events: {samples:>10}", "SAMPLE")?;
        }
        if event.lost_samples > 0 {
            writeln!(out, "{:>16} events: {:>10}", "LOST_SAMPLES", event.lost_samples)?;
        }
    }
    if !stats.unwind_stops.is_empty() {
        writeln!(out, "Unwinding ended:")?;
    }
    for (reason, samples) in &stats.unwind_stops {
        writeln!(out, "{samples:>10}  {reason}")?;
    }
    if stats.continued_chains > 0 {
        let samples = stats.continued_chains;
        writeln!(out, "{samples:>10}  of these go on with the calls in their branch records")?;
    }
    if profile.mangled_functions() > 0 {
        writeln!(out, "Names that stay mangled: {}", profile.mangled_functions())?;
    }
    match loss_line(&profile.losses) {
        Some(line) => writeln!(out, "{line}"),
        None => Ok(()),
    }
}
