//! `--ledger`: what recording cost, in full.

use std::io::{self, Write};

use whit_perfdata::ledger::Ledger;
use whit_profile::model::Profile;

use super::loss::loss_line;
use crate::hists::percent;
use crate::units::{bytes, duration};

/// Prints the ledger and the losses; says so where the recording carries no ledger.
///
/// # Errors
/// What `out` returns.
pub fn write_ledger(out: &mut impl Write, profile: &Profile) -> io::Result<()> {
    match &profile.ledger {
        Some(ledger) => write_costs(out, ledger)?,
        None => writeln!(
            out,
            "The recording {} carries no ledger: it was not made by whit record.",
            profile.recording.path
        )?,
    }
    match loss_line(&profile.losses) {
        Some(line) => writeln!(out, "{line}"),
        None => writeln!(out, "Lost: nothing that is known of"),
    }
}

fn write_costs(out: &mut impl Write, ledger: &Ledger) -> io::Result<()> {
    let cpu = ledger.user_cpu_ns.saturating_add(ledger.system_cpu_ns);
    let of_wall = |ns| format!("{:.2}% of wall time", percent(ns, ledger.wall_ns));
    let per_sample = |total: u64, text: fn(u64) -> String| match ledger.samples {
        0 => "no samples".to_owned(),
        samples => format!("{} per sample", text(total / samples)),
    };
    let lines = [
        ("wall time", duration(ledger.wall_ns), String::new()),
        ("  setting up", duration(ledger.setup_ns), of_wall(ledger.setup_ns)),
        ("  tearing down", duration(ledger.teardown_ns), of_wall(ledger.teardown_ns)),
        ("recorder CPU", duration(cpu), of_wall(cpu)),
        ("  user", duration(ledger.user_cpu_ns), of_wall(ledger.user_cpu_ns)),
        ("  system", duration(ledger.system_cpu_ns), of_wall(ledger.system_cpu_ns)),
        ("samples", ledger.samples.to_string(), per_sample(cpu, duration)),
        ("rings", ledger.rings.to_string(), format!("{} each", bytes(ledger.ring_size_bytes))),
        ("taken from rings", bytes(ledger.ring_bytes), per_sample(ledger.ring_bytes, bytes)),
        ("wake-ups", ledger.wakeups.to_string(), String::new()),
        ("written", bytes(ledger.written_bytes), ratio(ledger)),
        ("  writes", ledger.writes.to_string(), duration(ledger.write_ns)),
        ("lost records", ledger.lost_records.to_string(), String::new()),
        (
            "rings full",
            duration(ledger.paused_ns),
            format!("{:.2}% data loss", percent(ledger.paused_ns, ledger.elapsed_ns)),
        ),
    ];
    writeln!(out, "Overhead ledger:")?;
    for (name, value, note) in lines {
        let line = format!("  {name:<18}{value:>14}  {note}");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn ratio(ledger: &Ledger) -> String {
    if ledger.ring_bytes == 0 {
        return String::new();
    }
    format!("{:.1}% of the bytes taken", percent(ledger.written_bytes, ledger.ring_bytes))
}
