//! Tables beside those of the installed perf, from the same counts.
//!
//! `perf stat record` stores counts of software events. The test turns them into counts of hardware
//! events that were multiplexed, so that `perf stat report` shows its forms for them on any machine.
//! A machine without perf says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use whit_events::{PmuTable, TracefsIds, parse, resolve};
use whit_host::roots::Roots;
use whit_stat::aggregate::{Aggregator, Rules};
use whit_stat::counter::{Counter, from_groups};
use whit_stat::derived_metrics::DerivedMetrics;
use whit_stat::reading::Reading;
use whit_stat::show::{Form, Moment, Printer, Style, View};
use whit_stat::source::Slot;
use whit_stat::table::Aggregation;
use whit_testing::{Skip, probe, run};
use whit_types::CpuId;

/// Event, count of the first CPU (others have multiples of it), time enabled, time running.
const EVENTS: [(&str, u64, u64, u64); 18] = [
    ("task-clock", 5_000_000, 5_000_000, 5_000_000),
    ("cycles", 9_000_000, 5_000_000, 5_000_000),
    ("instructions", 12_345_678, 5_000_000, 2_500_000),
    ("stalled-cycles-frontend", 1_000_000, 5_000_000, 5_000_000),
    ("stalled-cycles-backend", 3_000_000, 5_000_000, 5_000_000),
    ("branches", 2_000_000, 5_000_000, 5_000_000),
    ("branch-misses", 77_777, 5_000_000, 1_250_000),
    ("cache-references", 5000, 5_000_000, 5_000_000),
    ("cache-misses", 1234, 5_000_000, 5_000_000),
    ("L1-dcache-loads", 100_000, 5_000_000, 5_000_000),
    ("L1-dcache-load-misses", 3333, 5_000_000, 5_000_000),
    ("L1-icache-loads", 4000, 5_000_000, 5_000_000),
    ("L1-icache-load-misses", 400, 5_000_000, 5_000_000),
    ("LLC-loads", 600, 5_000_000, 5_000_000),
    ("LLC-load-misses", 60, 5_000_000, 5_000_000),
    ("dTLB-load-misses", 44, 5_000_000, 5_000_000),
    ("page-faults", 4321, 5_000_000, 5_000_000),
    ("context-switches", 1, 5_000_000, 0),
];

const PERF_RECORD_STAT: u32 = 76;

fn perf() -> Command {
    run::perf().expect("it has recorded")
}

fn counters() -> Vec<Counter> {
    let names: Vec<&str> = EVENTS.iter().map(|event| event.0).collect();
    let list = parse(&names.join(",")).unwrap();
    let mut tracepoints = TracefsIds::new("/nonexistent");
    from_groups(resolve(&list, &PmuTable::default(), &mut tracepoints).unwrap())
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn set_word(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// A recording of counts, made into one of the events above. Gives the CPUs and the wall time.
fn recording(directory: &Path) -> Option<(PathBuf, Vec<u32>, f64)> {
    let path = directory.join("stat.data");
    let named = |event: &(&str, u64, u64, u64)| format!("software/config=2,name={}/", event.0);
    let list = EVENTS.iter().map(named).collect::<Vec<_>>().join(",");
    if let Err(Skip(reason)) = probe::perf().and_then(|()| probe::whole_cpus()) {
        whit_testing::skip("against_perf", &reason);
        return None;
    }
    let mut recorder = perf();
    recorder.args(["stat", "record", "-a", "-o"]).arg(&path);
    run::succeed(recorder.args(["-e", &list, "--", "true"]));
    let mut bytes = std::fs::read(&path).unwrap();
    let ids = rewrite_attributes(&mut bytes);
    let (cpus, wall_ns) = rewrite_counts(&mut bytes, &ids);
    std::fs::write(&path, bytes).unwrap();
    Some((path, cpus, wall_ns))
}

/// Layout: `struct perf_file_header` in `tools/perf/util/header.h`. Gives the event of each id.
fn rewrite_attributes(bytes: &mut [u8]) -> Vec<(u64, usize)> {
    let (size, offset) = (word(bytes, 16) as usize, word(bytes, 24) as usize);
    let mut ids = Vec::new();
    for (index, counter) in counters().iter().enumerate() {
        let at = offset + index * size;
        bytes[at..at + 4].copy_from_slice(&counter.event.pmu_type.to_le_bytes());
        set_word(bytes, at + 8, counter.event.config[0]);
        let section = at + size - 16;
        let (first, bytes_of_ids) = (word(bytes, section) as usize, word(bytes, section + 8));
        ids.extend((0..bytes_of_ids as usize / 8).map(|i| (word(bytes, first + 8 * i), index)));
    }
    ids
}

/// Layout: `struct perf_record_stat` in `tools/lib/perf/include/perf/event.h`.
fn rewrite_counts(bytes: &mut [u8], ids: &[(u64, usize)]) -> (Vec<u32>, f64) {
    const ROUND: u32 = 77;
    let (mut at, end) = (word(bytes, 40) as usize, (word(bytes, 40) + word(bytes, 48)) as usize);
    let mut cpus: Vec<u32> = Vec::new();
    let mut wall_ns = 0.0;
    while at < end {
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let size = u16::from_le_bytes(bytes[at + 6..at + 8].try_into().unwrap());
        if kind == PERF_RECORD_STAT {
            let id = word(bytes, at + 8);
            let event = ids.iter().find(|(known, _)| *known == id).unwrap().1;
            let cpu = (word(bytes, at + 16) & 0xffff_ffff) as u32;
            if event == 0 {
                cpus.push(cpu);
            }
            let (_, value, enabled, running) = EVENTS[event];
            set_word(bytes, at + 24, value * (u64::from(cpu) + 1));
            set_word(bytes, at + 32, enabled);
            set_word(bytes, at + 40, running);
        } else if kind == ROUND {
            wall_ns = word(bytes, at + 16) as f64;
        }
        at += usize::from(size);
    }
    (cpus, wall_ns)
}

fn ours(cpus: &[u32], wall_ns: f64, aggregation: Aggregation, form: &Form) -> Vec<String> {
    let counters = counters();
    let mut slots = Vec::new();
    let mut readings = Vec::new();
    for (counter, (_, value, enabled_ns, running_ns)) in EVENTS.iter().enumerate() {
        for &cpu in cpus {
            slots.push(Slot { counter, cpu: Some(CpuId(cpu)), thread: None });
            let value = value * (u64::from(cpu) + 1);
            readings.push(Reading { value, enabled_ns: *enabled_ns, running_ns: *running_ns });
        }
    }
    let rules = Rules { aggregation, scale: true, merge: true };
    let table = Aggregator::new(rules, &Roots::default()).add_up(&counters, &slots, &readings);
    let derived_metrics = DerivedMetrics::of(&counters, &table, wall_ns);
    let moment = Moment::Total;
    let view =
        View { counters: &counters, table: &table, derived_metrics: &derived_metrics, moment };
    let style = Style { form: form.clone(), aggregation, ..Style::default() };
    lines(&Printer::new(style).table(&view))
}

/// Blanks at the ends of lines are left out here; perf 6.1 has a narrower column for names where
/// there is no count.
fn lines(text: &str) -> Vec<String> {
    let kept = |line: &&str| !line.trim().is_empty() && !line.contains("time elapsed");
    let lines = text.lines().filter(kept).filter(|line| !line.contains("counter stats for"));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn tables_are_those_of_perf() {
    let directory = tempfile::tempdir().unwrap();
    let Some((path, cpus, wall_ns)) = recording(directory.path()) else { return };
    use Aggregation as A;
    let modes = [
        (A::Global, None),
        (A::Cpu, Some("-A")),
        (A::Socket, Some("--per-socket")),
        (A::Die, Some("--per-die")),
        (A::Core, Some("--per-core")),
    ];
    let forms = [
        (Form::Text, None),
        (Form::Csv(",".to_owned()), Some("-x,")),
        (Form::Csv(";".to_owned()), Some("-x;")),
        (Form::Json, Some("-j")),
    ];
    for (aggregation, mode) in modes {
        for (form, option) in &forms {
            let mut command = perf();
            command.arg("stat").args(option).arg("report").args(mode).arg("-i").arg(&path);
            let output = command.output().unwrap();
            let theirs = String::from_utf8(output.stderr).unwrap();
            let (ours, theirs) = (ours(&cpus, wall_ns, aggregation, form), lines(&theirs));
            assert_eq!(ours.len(), theirs.len(), "{command:?}\n{ours:#?}\n{theirs:#?}");
            for (our, their) in ours.iter().zip(&theirs) {
                compare(our, their, form, aggregation);
            }
        }
    }
}

/// Compares the two outputs, apart from the intended differences.
fn compare(our: &str, their: &str, form: &Form, aggregation: Aggregation) {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    // perf does not align the second metric of a row with the first, and has a narrower column for
    // names where there is no count.
    let is_odd = |text: &str| our.contains(text);
    let is_aligned =
        *form != Form::Text || !(is_odd("<not counted>") || is_odd("stalled cycles per insn"));
    let (our, their) = match is_aligned {
        true => (our.to_owned(), their.to_owned()),
        false => (words(our), words(their)),
    };
    // A row without a count is of all its CPUs here, of one in perf 6.1, and has the share of the
    // time that was seen, 0; perf has none.
    if our.contains("<not counted>") && aggregation.counts_cpus() {
        let without_number = |line: &str| {
            let fields = line.split([' ', ',', ';']);
            let kept = |field: &&str| field.parse::<f64>().is_err() && *field != "(0.00%)";
            fields.filter(kept).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(without_number(&our), without_number(&their));
    } else {
        assert_eq!(our, their);
    }
}
