//! `--ledger`: what recording cost, in full.

use std::io::{self, Write};

use whit_perfdata::ledger::{
    BpfLedger, BpfMeasurement, Field, GROUPS, Group, Ledger, Line, PmiLedger, PmiMeasurement,
    READER_FIELDS, StackLedger, Unit, fields,
};
use whit_profile::model::Profile;
use whit_types::StackEnd;

use super::loss::loss_line;
use crate::hists::percent;
use crate::units::{bytes, counted, duration};

/// Prints the ledger and the losses; says so where the recording carries no ledger.
///
/// # Errors
/// The error of `out`.
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

/// Each field that has a line, in the order of the table; behind it, its relation to other fields.
fn write_costs(out: &mut impl Write, ledger: &Ledger) -> io::Result<()> {
    writeln!(out, "Overhead ledger:")?;
    for group in &GROUPS {
        for field in group.fields.iter().filter(|_| group.is_reported(ledger)) {
            if let Some(name) = name(field, ledger) {
                write_line(out, name, line(group, field, ledger))?;
            } else if (group.member, field.name) == (Some("stacks"), "ended") {
                write_ends(out, &ledger.stacks)?;
            }
        }
    }
    write_readers(out, ledger)
}

/// How the field's line begins, if it has one.
fn name(field: &Field<Ledger>, ledger: &Ledger) -> Option<&'static str> {
    let is_some = |name| fields().any(|other| other.name == name && other.value(ledger) > 0);
    match field.line {
        Line::Always(name) => Some(name),
        Line::If(name, other) | Line::Noted(name, other, _) => is_some(other).then_some(name),
        Line::Elsewhere => None,
    }
}

/// The text in place of figures that could not be measured.
const NOT_MEASURED: &str = "not measured:";

/// Figure and note.
fn line(group: &Group, field: &Field<Ledger>, ledger: &Ledger) -> (String, String) {
    let figure = value(field, ledger);
    match (group.member, field.name, group.figure(field, ledger)) {
        (_, _, Err(reason)) => (NOT_MEASURED.to_owned(), reason.to_owned()),
        (Some("pmi"), "count", _) => (figure, pmi_note(&ledger.pmi)),
        (Some("bpf"), "programs", _) => bpf_line(figure, &ledger.bpf),
        (Some("stacks"), "walks", _) => (figure, walks_note(&ledger.stacks)),
        (Some("stacks"), "tables", _) => (figure, tables_note(&ledger.stacks)),
        (None, name, _) => (figure, note(name, field.line, ledger)),
        _ => (figure, String::new()),
    }
}

/// The figure as people read it.
fn value<T>(field: &Field<T>, of: &T) -> String {
    let value = field.value(of);
    match field.unit {
        Unit::Ns => duration(value),
        Unit::Bytes => bytes(value),
        Unit::Count | Unit::Code => value.to_string(),
    }
}

/// The text behind the figure of a field: its relation to others.
fn note(name: &str, line: Line, ledger: &Ledger) -> String {
    let of_wall = |ns| format!("{:.2}% of wall time", percent(ns, ledger.wall_ns));
    let per_sample = |total: u64, text: fn(u64) -> String| match ledger.samples {
        0 => "no samples".to_owned(),
        samples => format!("{} per sample", text(total / samples)),
    };
    let lasting = ledger.recording_cpu_ns();
    let if_known = |ns| lasting.map_or_else(String::new, |_| of_cpu(ns));
    match name {
        "setup_ns" => if_known(ledger.setup_cpu_ns),
        "recorded_ns" => recording(ledger, lasting),
        "teardown_ns" => if_known(ledger.teardown_cpu_ns),
        "cpu_ns" => of_wall(ledger.cpu_ns()),
        "user_cpu_ns" => of_wall(ledger.user_cpu_ns),
        "system_cpu_ns" => of_wall(ledger.system_cpu_ns),
        "samples" => per_sample(lasting.unwrap_or(ledger.cpu_ns()), duration),
        "rings" => format!("{} each", bytes(ledger.ring_size_bytes)),
        "ring_bytes" => per_sample(ledger.ring_bytes, bytes),
        "written_bytes" => ratio(ledger),
        "writes" => duration(ledger.write_ns),
        "stalls" => duration(ledger.stall_ns),
        "compressed_to_bytes" => format!("ratio {:.3}", ledger.compression_ratio()),
        "lost_records" => unwritten(ledger),
        "paused_ns" => match ledger.data_loss().percent() {
            Some(percent) => format!("{percent} data loss"),
            None => "time unknown".to_owned(),
        },
        "ran_threads" => format!("of {} that existed when recording began", ledger.watched_threads),
        _ => match line {
            Line::Noted(_, _, note) => note.to_owned(),
            _ => String::new(),
        },
    }
}

fn of_cpu(ns: u64) -> String {
    format!("recorder CPU {}", duration(ns))
}

/// The recorder's cost while it recorded; nothing where the recording does not say.
fn recording(ledger: &Ledger, cpu_ns: Option<u64>) -> String {
    cpu_ns.map_or_else(String::new, |ns| {
        format!("{}: {:.2}% of one CPU", of_cpu(ns), percent(ns, ledger.recorded_ns()))
    })
}

fn write_line(out: &mut impl Write, name: &str, (value, note): (String, String)) -> io::Result<()> {
    let line = format!("  {name:<18}{value:>14}  {note}");
    writeln!(out, "{}", line.trim_end())
}

fn walks_note(stacks: &StackLedger) -> String {
    let frames = stacks.frames as f64 / stacks.walks.max(1) as f64;
    format!("{frames:.1} frames on average; {} known again", stacks.known_again)
}

fn write_ends(out: &mut impl Write, stacks: &StackLedger) -> io::Result<()> {
    for (end, walks) in stacks.ends() {
        let name = if end == StackEnd::EndOfStack { "  complete" } else { "  cut" };
        let note = format!("{:.2}%: {}", percent(walks, stacks.walks), end.text());
        write_line(out, name, (walks.to_string(), note))?;
    }
    Ok(())
}

fn tables_note(stacks: &StackLedger) -> String {
    let mut note = format!(
        "{} from the cache; {}, {}, {}; made or read in {}",
        stacks.cached_tables,
        counted(stacks.rows, "row"),
        counted(stacks.rules, "rule"),
        bytes(stacks.table_bytes),
        duration(stacks.build_ns),
    );
    for (count, what) in [
        (stacks.without_table, "had no unwind information"),
        (stacks.refused_tables, "did not fit"),
        (stacks.unknown_mappings, "mappings are beyond the bound of their process"),
    ] {
        if count > 0 {
            note.push_str(&format!("; {count} {what}"));
        }
    }
    for (failure, binaries) in stacks.failures() {
        note.push_str(&format!("; {binaries} not opened: {}", failure.text()));
    }
    note
}

fn pmi_note(pmi: &PmiLedger) -> String {
    let mut note = format!(
        "{} each on average, {} at most, {} in all: {:.2}% of {} of wall time",
        duration(pmi.average_ns()),
        duration(pmi.longest_ns),
        duration(pmi.time_ns),
        percent(pmi.time_ns, pmi.measured_ns),
        duration(pmi.measured_ns),
    );
    if pmi.measurement == PmiMeasurement::AllHandlers {
        note.push_str("; all NMIs that were handled, since perf's handlers are hidden");
    }
    note
}

fn bpf_line(programs: String, bpf: &BpfLedger) -> (String, String) {
    let note = match bpf.measurement.reason() {
        // That none was loaded, it says by itself.
        Some(_) if bpf.measurement == BpfMeasurement::NoProgram => String::new(),
        Some(reason) if bpf.programs == 0 => {
            return (NOT_MEASURED.to_owned(), reason.to_owned());
        }
        Some(reason) => format!("time not measured: {reason}"),
        None => {
            let runs = format!("{} in {}", counted(bpf.runs, "run"), duration(bpf.run_time_ns));
            match bpf.timed_ns {
                0 => runs,
                timed_ns => format!(
                    "{runs}, {:.2}% of a CPU in the {} that were timed",
                    percent(bpf.run_time_ns, timed_ns),
                    duration(timed_ns)
                ),
            }
        }
    };
    (programs, note)
}

/// Each reader's share; with one reader it is all of it.
fn write_readers(out: &mut impl Write, ledger: &Ledger) -> io::Result<()> {
    if ledger.readers.len() < 2 {
        return Ok(());
    }
    let columns = READER_FIELDS.iter().filter_map(|field| match field.line {
        Line::Always(name) => Some((name, field)),
        _ => None,
    });
    let columns: Vec<_> = columns.collect();
    let heads = std::iter::once("reader").chain(columns.iter().map(|(name, _)| *name));
    writeln!(out, "{}", heads.map(|head| format!("{head:>11}")).collect::<String>())?;
    for (number, reader) in ledger.readers.iter().enumerate() {
        let values = columns.iter().map(|(_, field)| value(field, reader));
        let cells = std::iter::once(number.to_string()).chain(values);
        writeln!(out, "{}", cells.map(|cell| format!("{cell:>11}")).collect::<String>())?;
    }
    Ok(())
}

fn unwritten(ledger: &Ledger) -> String {
    match ledger.unwritten_records {
        0 => String::new(),
        records => format!("{records} of them could not be written"),
    }
}

fn ratio(ledger: &Ledger) -> String {
    if ledger.ring_bytes == 0 {
        return String::new();
    }
    format!("{:.1}% of the bytes taken", percent(ledger.written_bytes, ledger.ring_bytes))
}
