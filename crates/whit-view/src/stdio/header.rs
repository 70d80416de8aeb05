//! `--header`: what the recording says of itself.

use std::io::{self, Write};

use whit_profile::model::{Profile, RecordingInfo};
use whit_types::{OutsideText, TimestampNs, civil};

use crate::units;

/// Prints the header block; what the recording does not say is left out.
///
/// # Errors
/// The error of `out`.
pub fn write_header(out: &mut impl Write, profile: &Profile) -> io::Result<()> {
    let info = &profile.recording;
    writeln!(out, "# ========")?;
    if let Some(seconds) = info.captured_on_s {
        writeln!(out, "# captured on    : {}", date(seconds))?;
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

/// A date as `ctime` prints it, in UTC: the time zone of the recording is not in it.
fn date(epoch_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let days = epoch_s / 86_400;
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (epoch_s / 3600 % 24, epoch_s / 60 % 60, epoch_s % 60);
    format!(
        "{} {} {day:>2} {hour:02}:{minute:02}:{second:02} {year} UTC",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date_u() {
        assert_eq!(date(0), "Thu Jan  1 00:00:00 1970 UTC");
        assert_eq!(date(951_782_400), "Tue Feb 29 00:00:00 2000 UTC");
        assert_eq!(date(1_709_251_199), "Thu Feb 29 23:59:59 2024 UTC");
        assert_eq!(date(4_107_542_400), "Mon Mar  1 00:00:00 2100 UTC");
        assert_eq!(date(1_795_291_532), "Sat Nov 21 20:05:32 2026 UTC");
    }
}
