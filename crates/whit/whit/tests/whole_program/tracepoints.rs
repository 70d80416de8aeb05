//! `whit script` on tracepoints: the text of each record, compared with the installed perf's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::tracing_data::{FieldLocation, TraceEvent, TraceField};
use whit_perfdata::writer::FileWriter;

use crate::support::tools::{perf, record, text, tracefs, whit};
use crate::support::{Skip, check};

/// Records made up for each tracepoint.
const RECORDS_PER_EVENT: u64 = 4;
/// Largest number of one byte: such fields count bits that an `int` is shifted by.
const MAX_SHIFT: u64 = 15;
/// Both tools print this where they cannot evaluate a format.
const FAILED: &str = "[FAILED TO PARSE]";
/// Systems in which nothing may differ.
const SAME_SYSTEMS: [&str; 10] = [
    "syscalls:",
    "raw_syscalls:",
    "irq:",
    "irq_vectors:",
    "net:",
    "skb:",
    "sock:",
    "task:",
    "signal:",
    "workqueue:",
];

/// The format files of all tracepoints, by system.
fn formats(events: &Path) -> BTreeMap<String, Vec<String>> {
    let folders = |path: &Path| {
        let entries =
            fs::read_dir(path).expect("list tracefs").map(|e| e.expect("an entry").path());
        let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
        folders.sort();
        folders
    };
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let of_system = |system: &PathBuf| {
        let format = |event: PathBuf| fs::read_to_string(event.join("format")).ok();
        folders(system).into_iter().filter_map(format).collect::<Vec<_>>()
    };
    folders(events).iter().map(|system| (name(system), of_system(system))).collect()
}

/// A TRACING_DATA section.
fn tracing_data(formats: &[(&str, &str)]) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0\0\x08\x00\x10\x00\x00".to_vec();
    let counted = |out: &mut Vec<u8>, text: &str| {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    };
    let header_page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                       \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                       \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    out.extend(b"header_page\0");
    counted(&mut out, header_page);
    out.extend(b"header_event\0");
    counted(&mut out, "");
    out.extend(0u32.to_le_bytes());
    out.extend((formats.len() as u32).to_le_bytes());
    for (system, format) in formats {
        out.extend(system.as_bytes());
        out.push(0);
        out.extend(1u32.to_le_bytes());
        counted(&mut out, format);
    }
    out.extend([0; 16]);
    out
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A record whose numbers are positive in every type that they can be read in.
fn raw_record(event: &TraceEvent, numbers: &mut Numbers) -> Vec<u8> {
    let end = |f: &TraceField| f.offset + f.size_bytes;
    let fixed = event.common_fields.iter().chain(&event.fields).map(end).max().unwrap_or(0);
    let mut raw = vec![0; fixed];
    raw[..2].copy_from_slice(&(event.id as u16).to_le_bytes());
    for field in &event.fields {
        let bytes = if field.location == FieldLocation::Fixed {
            field_bytes(field, field.size_bytes, numbers)
        } else {
            let place = raw.len();
            let len = if field.is_string() { 9 } else { 16 };
            raw.extend(field_bytes(field, len, numbers));
            let base = if field.location == FieldLocation::Dynamic { 0 } else { end(field) };
            ((len << 16 | (place - base)) as u32).to_le_bytes().to_vec()
        };
        raw[field.offset..end(field)].copy_from_slice(&bytes);
    }
    raw
}

fn field_bytes(field: &TraceField, len: usize, numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|_| numbers.next() as u8).collect();
    if field.is_string() && field.c_type.contains("char") {
        bytes.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
        bytes.last_mut().into_iter().for_each(|byte| *byte = 0);
    } else if !field.is_array && len <= 8 {
        // Small numbers reach the names in tables, and no sign.
        let largest =
            if len == 1 { MAX_SHIFT } else { u64::from(u32::MAX >> 1) >> (32 - 8 * len.min(4)) };
        let value = (numbers.next() & largest) >> (numbers.next() % 32);
        bytes.copy_from_slice(&value.max(1).to_le_bytes()[..len]);
    }
    bytes
}

fn sample(event_id: u64, time_ns: u64, raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for word in [event_id, 0x1000, 7 << 32 | 7, time_ns, 0] {
        body.extend(u64::to_le_bytes(word));
    }
    let padded = (raw.len() + 4).next_multiple_of(8) - 4;
    body.extend((padded as u32).to_le_bytes());
    body.extend(raw);
    body.resize(40 + 4 + padded, 0);
    let mut record = 9u32.to_le_bytes().to_vec();
    record.extend(2u16.to_le_bytes());
    record.extend((body.len() as u16 + 8).to_le_bytes());
    record.extend(body);
    record
}

fn event_desc(event: &TraceEvent) -> EventDesc {
    let sample_type = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU
        | SampleType::RAW;
    let attr = Attr {
        pmu_type: pmu_type::TRACEPOINT,
        config: event.id,
        sample_period_or_freq: 1,
        sample_type,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    EventDesc { attr, ids: vec![event.id], name: format!("{}:{}", event.system, event.name) }
}

/// A recording of made-up records of the given tracepoints.
fn write_recording(path: &Path, formats: &[(&str, &str)]) {
    let parse =
        |(system, text): &(&str, &str)| TraceEvent::parse(system, text, 8).expect("a format");
    let events: Vec<_> = formats.iter().map(parse).collect();
    let described: Vec<_> = events.iter().map(event_desc).collect();
    let file = fs::File::create(path).expect("create a recording");
    let mut writer = FileWriter::create(file, &described).expect("write a recording");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut time_ns = 1_000_000_000;
    for _ in 0..RECORDS_PER_EVENT {
        for event in &events {
            time_ns += 1000;
            let raw = raw_record(event, &mut numbers);
            writer.append(&sample(event.id, time_ns, &raw)).expect("write a recording");
        }
    }
    let mut features = Features::default();
    features.set(Feature::TRACING_DATA, tracing_data(formats));
    features.set_event_desc(&described);
    features.set_string(Feature::ARCH, "x86_64");
    writer.finish(&features).expect("write a recording");
}

/// Prints the records of some tracepoints with both tools; `None` where perf crashes on them.
fn print_with_both(path: &Path, formats: &[(&str, &str)]) -> Result<Option<[String; 2]>, Skip> {
    let arguments = ["script", "-F", "time,event,trace", "-i"];
    write_recording(path, formats);
    let theirs = perf()?.args(arguments).arg(path).output().expect("run perf script");
    // A few formats hold line ends (ext4:ext4_fc_stats), which whit escapes.
    let ours = text(whit().args(arguments).arg(path)).replace("\\x0a", "\n");
    let theirs_text = String::from_utf8_lossy(&theirs.stdout).into_owned();
    Ok(theirs.status.success().then_some([ours, theirs_text]))
}

/// The result of comparing made-up records.
#[derive(Default)]
struct Findings {
    events: BTreeSet<String>,
    /// Those whose text differs though perf evaluates them.
    differing: BTreeSet<String>,
    /// Those that perf evaluates and whit does not.
    unevaluated: BTreeSet<String>,
    example: String,
}

impl Findings {
    fn compare(&mut self, ours: &str, theirs: &str) {
        assert_eq!(ours.lines().count(), theirs.lines().count(), "{ours}\n{theirs}");
        for (our, their) in ours.lines().zip(theirs.lines()) {
            let event = their.split_whitespace().nth(1).unwrap_or_default().to_owned();
            self.events.insert(event.clone());
            if our == their || their.contains(FAILED) {
                continue;
            }
            if our.contains(FAILED) {
                self.unevaluated.insert(event.clone());
            }
            if self.differing.insert(event) {
                self.example = format!("perf: {their}\nwhit: {our}");
            }
        }
    }

    fn of_this_kernel(path: &Path) -> Result<Findings, Skip> {
        let mut findings = Findings::default();
        for (system, texts) in formats(&tracefs()?) {
            // Those of the tracers are no tracepoints.
            let texts = if system == "ftrace" { &[] } else { &texts[..] };
            let formats: Vec<(&str, &str)> = texts.iter().map(|text| (&*system, &**text)).collect();
            match print_with_both(path, &formats)? {
                Some([ours, theirs]) => findings.compare(&ours, &theirs),
                None => {
                    for format in &formats {
                        if let Some([ours, theirs]) = print_with_both(path, &[*format])? {
                            findings.compare(&ours, &theirs);
                        }
                    }
                }
            }
        }
        Ok(findings)
    }
}

/// perf misreads some formats: rows of operators in parentheses, `%c`, `%*pbl`, names that only
/// the kernel knows. These are few; everything else is the same to the letter.
#[test]
fn every_tracepoint_of_this_kernel() {
    check("every_tracepoint_of_this_kernel", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let findings = Findings::of_this_kernel(&directory.path().join("perf.data"))?;
        let Findings { events, differing, unevaluated, example } = findings;
        assert!(events.len() > 100, "only {} tracepoints were compared", events.len());
        assert!(unevaluated.is_empty(), "perf evaluates {unevaluated:?}\n{example}");
        let exact = |event: &&String| SAME_SYSTEMS.iter().any(|s| event.starts_with(s));
        assert_eq!(differing.iter().find(exact), None, "{differing:?}\n{example}");
        assert!(differing.len() * 100 <= events.len() * 2, "{differing:?}\n{example}");
        Ok(())
    });
}

/// The threads that perf has no name for, as `12` of `:12 12 [001]`. They began while perf listed the threads that
/// there are, so that it neither listed them nor recorded their beginning. whit may know the name of their process.
fn nameless(printed: &str) -> BTreeSet<String> {
    let ids = printed.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.strip_prefix(':')?;
        (words.next() == Some(name)).then(|| name.to_owned())
    });
    ids.collect()
}

/// The lines, those of the given threads without the name in front.
fn without_names_of(threads: &BTreeSet<String>, printed: &str) -> String {
    let line_without = |line: &str| {
        let (head, rest) = line.split_once(" [").unwrap_or(("", line));
        let thread = head.split_whitespace().next_back().unwrap_or_default();
        match threads.contains(thread) {
            true => format!("{thread} [{rest}\n"),
            false => format!("{line}\n"),
        }
    };
    printed.lines().map(line_without).collect()
}

/// Records with the installed perf, and compares what both tools print.
fn recorded(name: &str, events: &str) {
    check(name, || {
        tracefs()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-q", "-a", "-e", events, "-o"]).arg(&path);
        record(recorder.args(["--", "sh", "-c", "ls -l / > /dev/null; sleep 0.2"]))?;
        let print = |tool: &mut Command| text(tool.args(["script", "-i"]).arg(&path));
        let (ours, theirs) = (print(&mut whit()), print(&mut perf()?));
        assert_eq!(ours.lines().count(), theirs.lines().count());
        let nameless = nameless(&theirs);
        let [ours, theirs] = [ours, theirs].map(|text| without_names_of(&nameless, &text));
        assert!(theirs.lines().count() > 10, "perf recorded next to nothing:\n{theirs}");
        // A thread that has ended has no id; whit then gives the name of its process.
        let ended = |line: &str| line.contains("   -1 [");
        // At equal times, perf and whit may take the CPUs in another order.
        let mut only_ours = BTreeMap::new();
        ours.lines().for_each(|line| *only_ours.entry(line).or_insert(0i64) += 1);
        theirs.lines().for_each(|line| *only_ours.entry(line).or_insert(0) -= 1);
        let only_theirs = only_ours.iter().filter(|(_, count)| **count < 0);
        let differing: Vec<_> = only_theirs.filter(|(line, _)| !ended(line)).collect();
        assert!(differing.is_empty(), "only perf prints {differing:?}");
        Ok(())
    });
}

#[test]
fn a_thread_without_a_name_is_compared_by_the_rest_of_its_line() {
    let theirs =
        "   :12    12 [001]  1.5: raw_syscalls:sys_exit: NR 56 = 0\n  sh  13 [000]  1.6: x: y\n";
    let ours =
        "    sh    12 [001]  1.5: raw_syscalls:sys_exit: NR 56 = 1\n  sh  13 [000]  1.6: x: y\n";
    let threads = nameless(theirs);
    assert_eq!(threads, BTreeSet::from(["12".to_owned()]));
    let rest = |value| {
        format!(
            "12 [001]  1.5: raw_syscalls:sys_exit: NR 56 = {value}\n  sh  13 [000]  1.6: x: y\n"
        )
    };
    assert_eq!(without_names_of(&threads, theirs), rest(0));
    assert_eq!(without_names_of(&threads, ours), rest(1));
}

#[test]
fn recorded_scheduler_events() {
    recorded("recorded_scheduler_events", "sched:*");
}

#[test]
fn recorded_system_calls() {
    let events = "raw_syscalls:*,syscalls:sys_enter_openat,syscalls:sys_exit_openat,\
                  syscalls:sys_enter_write,syscalls:sys_enter_futex,syscalls:sys_enter_mmap";
    recorded("recorded_system_calls", events);
}

#[test]
fn recorded_memory_events() {
    recorded("recorded_memory_events", "kmem:*");
}

/// Without `timer:timer_start`, whose flags perf misreads.
#[test]
fn recorded_interrupts_and_timers() {
    let events = "irq:*,timer:hrtimer_*,timer:timer_expire_*,timer:timer_init,timer:tick_stop,\
                  workqueue:*,task:*,signal:*";
    recorded("recorded_interrupts_and_timers", events);
}
