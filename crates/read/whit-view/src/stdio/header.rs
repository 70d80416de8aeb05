//! `--header`: what the recording says of itself.

use std::io::{self, Write};

use whit_perfdata::feature::{ClockData, CompressedDesc, Feature};
use whit_profile::model::{HeaderFacts, Profile, RecordingInfo};
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
    if let Some((offset, size)) = info.header.data {
        writeln!(out, "# header version : 1")?;
        writeln!(out, "# data offset    : {offset}")?;
        writeln!(out, "# data size      : {size}")?;
        writeln!(out, "# feat offset    : {}", offset.saturating_add(size))?;
    }
    writeln!(out, "# file : {} ({})", info.path, units::bytes(info.size_bytes))?;
    write_machine(out, info)?;
    if !info.cmdline.is_empty() {
        let words: Vec<_> = info.cmdline.iter().map(OutsideText::escaped).collect();
        writeln!(out, "# cmdline : {}", words.join(" "))?;
    }
    write_events(out, profile)?;
    write_before_times(out, &info.header)?;
    if let (Some(first), Some(last)) = (info.first_sample, info.last_sample) {
        writeln!(out, "# time of first sample : {}", seconds(first))?;
        writeln!(out, "# time of last sample : {}", seconds(last))?;
        writeln!(out, "# sample duration : {:>10.3} ms", last.since(first) as f64 / 1e6)?;
    }
    write_behind_times(out, &info.header)?;
    writeln!(out, "# ========\n#")
}

/// As perf has them: a line of all facts for each event.
fn write_events(out: &mut impl Write, profile: &Profile) -> io::Result<()> {
    let events = &profile.recording.header.events;
    if events.is_empty() {
        return profile
            .events
            .iter()
            .try_for_each(|event| writeln!(out, "# event : name = {}", event.name));
    }
    for event in events {
        write!(out, "# event : name = {}, ", event.name)?;
        if !event.ids.is_empty() {
            let ids: Vec<_> = event.ids.iter().map(u64::to_string).collect();
            write!(out, ", id = {{ {} }}", ids.join(", "))?;
        }
        for (name, value) in &event.attributes {
            write!(out, ", {name} = {value}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// perf prints the sections in the order of their numbers; the times of samples lie between these and the rest.
fn write_before_times(out: &mut impl Write, facts: &HeaderFacts) -> io::Result<()> {
    write_kept(out, facts, &[Feature::CPU_TOPOLOGY, Feature::NUMA_TOPOLOGY])?;
    if facts.present.contains(&Feature::BRANCH_STACK) {
        writeln!(out, "# contains samples with branch stack")?;
    }
    if let Some(pmus) = &facts.pmus {
        let list: Vec<_> = pmus.iter().map(|(kind, name)| format!("{name} = {kind}")).collect();
        let text = if list.is_empty() { "not available".to_owned() } else { list.join(", ") };
        writeln!(out, "# pmu mappings: {text}")?;
    }
    for (name, events) in &facts.groups {
        let events: Vec<_> = events.iter().map(OutsideText::escaped).collect();
        writeln!(out, "# group: {name}{{{}}}", events.join(","))?;
    }
    if facts.present.contains(&Feature::AUXTRACE) {
        writeln!(out, "# contains AUX area data (e.g. instruction trace)")?;
    }
    if facts.present.contains(&Feature::STAT) {
        writeln!(out, "# contains stat data")?;
    }
    write_kept(out, facts, &[Feature::CACHE])
}

fn write_behind_times(out: &mut impl Write, facts: &HeaderFacts) -> io::Result<()> {
    write_kept(out, facts, &[Feature::MEM_TOPOLOGY])?;
    if let Some(resolution_ns) = facts.clock_resolution_ns {
        writeln!(out, "# clockid frequency: {} MHz", resolution_ns.saturating_mul(1000))?;
    }
    if let Some(version) = facts.directory_version {
        writeln!(out, "# directory data version : {version}")?;
    }
    for id in &facts.bpf_programs {
        writeln!(out, "# bpf_prog_info {id}")?;
    }
    for id in &facts.bpf_types {
        writeln!(out, "# btf info of id {id}")?;
    }
    if let Some(CompressedDesc { kind, level, ratio, .. }) = facts.compressed {
        let kind = if kind == CompressedDesc::ZSTD { "Zstd" } else { "Unknown" };
        writeln!(out, "# compressed : {kind}, level = {level}, ratio = {ratio}")?;
    }
    let (of_cpu, others): (Vec<_>, Vec<_>) =
        facts.capabilities.iter().partition(|(pmu, _)| pmu.exact() == "cpu");
    of_cpu.into_iter().try_for_each(|of| write_capabilities(out, of))?;
    if let Some(clock) = &facts.clock {
        write_clock(out, clock)?;
    }
    write_kept(out, facts, &[Feature::HYBRID_TOPOLOGY])?;
    others.into_iter().try_for_each(|of| write_capabilities(out, of))?;
    write_missing(out, facts)
}

type Capabilities = (OutsideText, Vec<(OutsideText, OutsideText)>);

fn write_capabilities(out: &mut impl Write, (pmu, list): &Capabilities) -> io::Result<()> {
    let list: Vec<_> = list.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let text = if list.is_empty() { "not available".to_owned() } else { list.join(", ") };
    writeln!(out, "# {pmu} pmu capabilities: {text}")
}

/// Names of clocks by their numbers, as `perf record -k` takes them.
const CLOCKS: [(u32, &str); 7] = [
    (0, "realtime"),
    (1, "monotonic"),
    (2, "process"),
    (3, "thread"),
    (4, "monotonic_raw"),
    (7, "boottime"),
    (11, "tai"),
];

fn write_clock(out: &mut impl Write, clock: &ClockData) -> io::Result<()> {
    let name = CLOCKS.iter().find(|(number, _)| *number == clock.clockid);
    let name = name.map_or("(not found)", |(_, name)| name);
    let (wall, recorded) = (clock.wall_clock_ns, clock.clock_ns.0);
    let whole = 1_000_000_000;
    writeln!(out, "# clockid: {name} ({})", clock.clockid)?;
    writeln!(
        out,
        "# reference time: {} = {}.{:06} (TOD) = {}.{:09} ({name})",
        units::date(wall / whole),
        wall / whole,
        wall % whole / 1000,
        recorded / whole,
        recorded % whole
    )
}

/// Sections that the recording has and that perf prints with `-I` alone.
fn write_kept(out: &mut impl Write, facts: &HeaderFacts, which: &[Feature]) -> io::Result<()> {
    let kept = which.iter().filter(|feature| facts.present.contains(feature));
    kept.filter_map(|feature| feature.name())
        .try_for_each(|name| writeln!(out, "# {name} info available"))
}

fn write_missing(out: &mut impl Write, facts: &HeaderFacts) -> io::Result<()> {
    if facts.present.is_empty() {
        return Ok(());
    }
    let is_missing = |feature: &Feature| !facts.present.contains(feature);
    let missing = (0..=Feature::PMU_CAPS.0).map(Feature).filter(is_missing);
    let names: Vec<_> = missing.filter_map(Feature::name).collect();
    writeln!(out, "# missing features: {}", names.join(" "))
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
