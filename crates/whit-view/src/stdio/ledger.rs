//! `--ledger`: what recording cost, in full.

use std::io::{self, Write};

use whit_perfdata::ledger::{
    BpfLedger, BpfMeasurement, Ledger, PmiLedger, PmiMeasurement, StackLedger,
};
use whit_profile::model::Profile;
use whit_types::StackEnd;

use super::loss::loss_line;
use crate::hists::percent;
use crate::units::{bytes, counted, duration};

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
    let cpu = ledger.cpu_ns();
    let lasting = ledger.recording_cpu_ns();
    let (before, after) = match lasting {
        Some(_) => (of_cpu(ledger.setup_cpu_ns), of_cpu(ledger.teardown_cpu_ns)),
        None => (String::new(), String::new()),
    };
    let of_wall = |ns| format!("{:.2}% of wall time", percent(ns, ledger.wall_ns));
    let per_sample = |total: u64, text: fn(u64) -> String| match ledger.samples {
        0 => "no samples".to_owned(),
        samples => format!("{} per sample", text(total / samples)),
    };
    let each = lasting.unwrap_or(cpu);
    let lines = [
        ("wall time", duration(ledger.wall_ns), String::new()),
        ("  setting up", duration(ledger.setup_ns), before),
        ("  recording", duration(ledger.recorded_ns()), recording(ledger, lasting)),
        ("  tearing down", duration(ledger.teardown_ns), after),
        ("recorder CPU", duration(cpu), of_wall(cpu)),
        ("  user", duration(ledger.user_cpu_ns), of_wall(ledger.user_cpu_ns)),
        ("  system", duration(ledger.system_cpu_ns), of_wall(ledger.system_cpu_ns)),
        ("samples", ledger.samples.to_string(), per_sample(each, duration)),
        ("rings", ledger.rings.to_string(), format!("{} each", bytes(ledger.ring_size_bytes))),
        ("taken from rings", bytes(ledger.ring_bytes), per_sample(ledger.ring_bytes, bytes)),
        ("wake-ups", ledger.wakeups.to_string(), String::new()),
        ("written", bytes(ledger.written_bytes), ratio(ledger)),
        ("  writes", ledger.writes.to_string(), duration(ledger.write_ns)),
        ("  stalls", ledger.stalls.to_string(), duration(ledger.stall_ns)),
        ("compressed from", bytes(ledger.compressed_from_bytes), String::new()),
        (
            "compressed to",
            bytes(ledger.compressed_to_bytes),
            format!("ratio {:.3}", ledger.compression_ratio()),
        ),
        ("lost records", ledger.lost_records.to_string(), unwritten(ledger)),
        (
            "rings full",
            duration(ledger.paused_ns),
            match ledger.data_loss().percent() {
                Some(percent) => format!("{percent} data loss"),
                None => "time unknown".to_owned(),
            },
        ),
        (
            "mappings missing",
            ledger.cut_processes.to_string(),
            "processes whose mappings took too long to read (--proc-map-timeout)".to_owned(),
        ),
        (
            "threads that ran",
            ledger.ran_threads.to_string(),
            format!("of {} that existed when recording began", ledger.watched_threads),
        ),
        (
            "CPUs gone",
            ledger.lost_cpus.to_string(),
            "went offline and were not recorded from then on".to_owned(),
        ),
        (
            "CPUs come",
            ledger.late_cpus.to_string(),
            "came online later and were not recorded".to_owned(),
        ),
        pmi_line(&ledger.pmi),
        bpf_line(&ledger.bpf),
    ];
    writeln!(out, "Overhead ledger:")?;
    let is_compressed = ledger.compressed_from_bytes > 0;
    for (name, value, note) in lines {
        if (name.starts_with("compressed") && !is_compressed)
            || (name == "mappings missing" && ledger.cut_processes == 0)
            || (name == "threads that ran" && ledger.watched_threads == 0)
            || (name == "CPUs gone" && ledger.lost_cpus == 0)
            || (name == "CPUs come" && ledger.late_cpus == 0)
        {
            continue;
        }
        write_line(out, (name, value, note))?;
    }
    write_stacks(out, &ledger.stacks)?;
    write_readers(out, ledger)
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

fn write_line(out: &mut impl Write, (name, value, note): (&str, String, String)) -> io::Result<()> {
    let line = format!("  {name:<18}{value:>14}  {note}");
    writeln!(out, "{}", line.trim_end())
}

/// What was unwound in the kernel; nothing where nothing was.
fn write_stacks(out: &mut impl Write, stacks: &StackLedger) -> io::Result<()> {
    if *stacks == StackLedger::default() {
        return Ok(());
    }
    let frames = stacks.frames as f64 / stacks.walks.max(1) as f64;
    let note = format!("{frames:.1} frames on average; {} known again", stacks.known_again);
    write_line(out, ("stacks walked", stacks.walks.to_string(), note))?;
    for (end, walks) in stacks.ends() {
        let name = if end == StackEnd::EndOfStack { "  complete" } else { "  cut" };
        let note = format!("{:.2}%: {}", percent(walks, stacks.walks), end.text());
        write_line(out, (name, walks.to_string(), note))?;
    }
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
    write_line(out, ("unwind tables", stacks.tables.to_string(), note))
}

/// What stands where figures could not be had.
const NOT_MEASURED: &str = "not measured:";

fn pmi_line(pmi: &PmiLedger) -> (&'static str, String, String) {
    if let Some(reason) = pmi.measurement.reason() {
        return ("PMIs", NOT_MEASURED.to_owned(), reason.to_owned());
    }
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
    ("PMIs", pmi.count.to_string(), note)
}

fn bpf_line(bpf: &BpfLedger) -> (&'static str, String, String) {
    let note = match bpf.measurement.reason() {
        // That none was loaded, it says by itself.
        Some(_) if bpf.measurement == BpfMeasurement::NoProgram => String::new(),
        Some(reason) if bpf.programs == 0 => {
            return ("BPF programs", NOT_MEASURED.to_owned(), reason.to_owned());
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
    ("BPF programs", bpf.programs.to_string(), note)
}

/// Each reader's share; with one reader it is all of it.
fn write_readers(out: &mut impl Write, ledger: &Ledger) -> io::Result<()> {
    if ledger.readers.len() < 2 {
        return Ok(());
    }
    let columns = ["reader", "rings", "user", "system", "wake-ups", "taken", "written", "stalled"];
    let line = |cells: [String; 8]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>11}")).collect();
        cells.concat()
    };
    writeln!(out, "{}", line(columns.map(str::to_owned)))?;
    for (number, reader) in ledger.readers.iter().enumerate() {
        let cells = [
            number.to_string(),
            reader.rings.to_string(),
            duration(reader.user_cpu_ns),
            duration(reader.system_cpu_ns),
            reader.wakeups.to_string(),
            bytes(reader.ring_bytes),
            bytes(reader.written_bytes),
            duration(reader.stall_ns),
        ];
        writeln!(out, "{}", line(cells))?;
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
