//! `--header`: what the recording says of itself.

use std::io::{self, Write};

use whit_profile::model::{Profile, RecordingInfo};
use whit_types::{OutsideText, TimestampNs};

use crate::units;

/// Prints the header block; what the recording does not say is left out.
///
/// # Errors
/// The error of `out`.
pub fn write_header(out: &mut impl Write, profile: &Profile) -> io::Result<()> {
    let info = &profile.recording;
    writeln!(out, "# ========")?;
    if let Some(seconds) = info.captured_on_s {
        writeln!(out, "# captured on    : {}", units::date(seconds))?;
    }
    writeln!(out, "# file : {} ({})", info.path, units::bytes(info.size_bytes))?;
    write_machine(out, info)?;
    if !info.cmdline.is_empty() {
        let words: Vec<_> = info.cmdline.iter().map(OutsideText::escaped).collect();
        writeln!(out, "# cmdline : {}", words.join(" "))?;
    }
    for event in &profile.events {
        writeln!(out, "# event : name = {}", event.name)?;
    }
    if let (Some(first), Some(last)) = (info.first_sample, info.last_sample) {
        writeln!(out, "# time of first sample : {}", seconds(first))?;
        writeln!(out, "# time of last sample : {}", seconds(last))?;
        writeln!(out, "# sample duration : {:>10.3} ms", last.since(first) as f64 / 1e6)?;
    }
    writeln!(out, "# ========\n#")
}

fn write_machine(out: &mut impl Write, info: &RecordingInfo) -> io::Result<()> {
    let cpus = |which: fn((u32, u32)) -> u32| {
        OutsideText::from(info.nr_cpus.map(|n| which(n).to_string()).unwrap_or_default())
    };
    let memory = info.total_mem_kib.map(|kib| format!("{kib} kB").into()).unwrap_or_default();
    let (online, available) = (cpus(|n| n.0), cpus(|n| n.1));
    let lines = [
        ("hostname", &info.hostname),
        ("os release", &info.os_release),
        ("perf version", &info.version),
        ("arch", &info.arch),
        ("nrcpus online", &online),
        ("nrcpus avail", &available),
        ("cpudesc", &info.cpu_desc),
        ("cpuid", &info.cpuid),
        ("total memory", &memory),
    ];
    for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "# {name} : {value}")?;
    }
    Ok(())
}

/// Seconds and microseconds, cut, not rounded.
fn seconds(time: TimestampNs) -> String {
    format!("{}.{:06}", time.0 / 1_000_000_000, time.0 % 1_000_000_000 / 1000)
}
