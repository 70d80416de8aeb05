//! Compares printed samples with those of the installed `perf script` on the same recording.
//!
//! `perf script` with every field gives the samples' contents; each selection of fields is then
//! printed from them and compared, byte by byte, with the output of `perf script -F`.

#![allow(unreachable_pub, dead_code, reason = "the helpers are shared by path")]

#[path = "support/builder.rs"]
mod builder;
#[path = "support/perf.rs"]
mod perf;

use perf::Recording;
use std::sync::Arc;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::sample::Sample;
use whit_profile::script::{
    ChainText, CodeAt, CodeLookup, RecordStart, ScriptedFrame, ScriptedSample,
};
use whit_types::{Avma, CpuId, OutsideText, Pid, Tid, TimestampNs};
use whit_view::script::{
    EventKind, EventTraits, FieldSpec, Fields, Layout, SampleContext, append_frame, append_sample,
};

/// One sample as read from perf's text.
struct Parsed<'t> {
    comm: &'t str,
    pid: i32,
    tid: i32,
    cpu: Option<u32>,
    time_ns: u64,
    period: u64,
    event: &'t str,
    has_callchain: bool,
    frames: Vec<ScriptedFrame<'t>>,
}

/// `comm pid/tid [cpu] seconds.nanoseconds: period event: ` and then one frame, or a line each.
fn parse(text: &str) -> Vec<Parsed<'_>> {
    let mut samples: Vec<Parsed<'_>> = Vec::new();
    for line in text.lines().filter(|l| !l.is_empty()) {
        if let Some(line) = line.strip_prefix('\t') {
            let frame = frame(line);
            samples.last_mut().unwrap().frames.push(frame);
            continue;
        }
        let (head, tail) = line.split_once(": ").unwrap();
        let (event, code) = tail.rsplit_once(": ").unwrap();
        let (rest, time) = head.trim_end().rsplit_once(' ').unwrap();
        let (rest, cpu) = match rest.trim_end().rsplit_once(" [") {
            Some((rest, cpu)) => (rest, Some(cpu.trim_end_matches(']').parse().unwrap())),
            None => (rest, None),
        };
        let (comm, ids) = rest.trim().rsplit_once(' ').unwrap();
        let (pid, tid) = ids.split_once('/').unwrap();
        let (seconds, nanoseconds) = time.split_once('.').unwrap();
        let (period, event) = event.trim().split_once(' ').unwrap();
        samples.push(Parsed {
            comm: comm.trim(),
            pid: pid.parse().unwrap(),
            tid: tid.parse().unwrap(),
            cpu,
            time_ns: seconds.parse::<u64>().unwrap() * 1_000_000_000
                + nanoseconds.parse::<u64>().unwrap(),
            period: period.parse().unwrap(),
            event: event.trim(),
            has_callchain: code.trim().is_empty(),
            frames: if code.trim().is_empty() { Vec::new() } else { vec![frame(code)] },
        });
    }
    samples
}

/// `address symbol+0xoffset (dso)` or `address symbol+0xoffset (inlined)`.
fn frame(text: &str) -> ScriptedFrame<'_> {
    let (ip, rest) = text.trim().split_once(' ').unwrap();
    let (symbol, dso) = rest.rsplit_once(" (").unwrap();
    let dso = dso.trim_end_matches(')');
    let known = symbol.rsplit_once("+0x");
    ScriptedFrame {
        address: Avma(u64::from_str_radix(ip, 16).unwrap()),
        function: known.map(|k| OutsideText::new(k.0)),
        function_offset: known.map_or(0, |k| u64::from_str_radix(k.1, 16).unwrap()),
        dso: Some(dso).filter(|d| *d != "inlined" && *d != "[unknown]").map(OutsideText::new),
        source: None,
        inlined: dso == "inlined",
    }
}

fn print(
    samples: &[Parsed<'_>],
    list: Option<&str>,
    recorded: Fields,
    nanoseconds: bool,
) -> String {
    let specs: Vec<FieldSpec> = list.iter().map(|l| FieldSpec::parse(l).unwrap()).collect();
    let event_width = samples.iter().map(|s| s.event.len()).max().unwrap();
    let mut out = Vec::new();
    for sample in samples {
        let traits = EventTraits {
            name: sample.event,
            kind: EventKind::Software,
            recorded,
            has_callchain: sample.has_callchain,
        };
        let fields = FieldSpec::resolve(&specs, &traits).unwrap();
        let has_callchain = sample.has_callchain;
        let layout = Layout { fields, event_width, nanoseconds, has_callchain };
        let mut text = Vec::new();
        sample.frames.iter().for_each(|frame| append_frame(&mut text, frame, &layout));
        let event_desc = EventDesc { name: sample.event.to_owned(), ..EventDesc::default() };
        let whole = std::iter::once(0..text.len()).collect::<Vec<_>>();
        let scripted = ScriptedSample {
            event: 0,
            event_desc: &event_desc,
            start: start(sample),
            period: sample.period,
            sample: &Sample::default(),
            chain: ChainText::new(&text, &whole),
            lookup: &Nothing,
        };
        append_sample(&mut out, &scripted, &layout, &SampleContext::default());
    }
    String::from_utf8(out).unwrap()
}

fn start<'t>(sample: &Parsed<'t>) -> RecordStart<'t> {
    RecordStart {
        comm: Some(OutsideText::new(sample.comm)),
        comm_tid: Tid(sample.tid),
        pid: Pid(sample.pid),
        tid: Tid(sample.tid),
        cpu: sample.cpu.map(CpuId),
        time: TimestampNs(sample.time_ns),
        shown_since: TimestampNs(0),
        misc: 0,
    }
}

/// No compared field looks an address up.
struct Nothing;

impl CodeLookup for Nothing {
    fn cgroup(&self, _: u64) -> Option<OutsideText<&str>> {
        None
    }

    fn kernel_function_at(&self, _: u64) -> Option<(Arc<str>, u64)> {
        None
    }

    fn data_at(&self, _: Avma) -> CodeAt {
        CodeAt::default()
    }

    fn code_at(&self, _: Avma) -> CodeAt {
        CodeAt::default()
    }

    fn code_bytes(&self, _: Avma, _: usize, _: &mut Vec<u8>) -> Option<u32> {
        None
    }
}

fn compare(test: &str, record: &[&str], recorded: Fields, every: &str, lists: &[&str]) {
    let Some(recording) = Recording::with(test, "threads", record) else { return };
    let everything = recording.script(&["--ns", "-F", every]);
    let samples = parse(&everything);
    assert!(samples.len() > 50, "{test}: only {} samples", samples.len());
    let same = |name: &str, mine: &str, theirs: &str| {
        for (i, (mine, theirs)) in mine.lines().zip(theirs.lines()).enumerate() {
            assert_eq!(mine, theirs, "{test}: {name}: line {i}");
        }
        assert_eq!(mine.len(), theirs.len(), "{test}: {name}");
    };
    same("default", &print(&samples, None, recorded, false), &recording.script(&[]));
    same("--ns", &print(&samples, None, recorded, true), &recording.script(&["--ns"]));
    for list in lists {
        let mine = print(&samples, Some(list), recorded, false);
        same(list, &mine, &recording.script(&["-F", list]));
    }
}

const LISTS: [&str; 8] = [
    "comm,tid,ip,sym",
    "ip,sym",
    "comm,pid",
    "pid,tid,time,event",
    "ip,sym,symoff,dso",
    "+pid,-period",
    "-ip,-sym,-symoff,-dso",
    "comm,tid,period,event",
];

#[test]
fn call_chains_are_printed_as_perf_prints_them() {
    let recorded = Fields::IP | Fields::TID | Fields::TIME;
    let every = "comm,pid,tid,time,period,event,ip,sym,symoff,dso";
    compare("chains", &["-g", "-e", "cpu-clock,page-faults"], recorded, every, &LISTS);
}

#[test]
fn single_addresses_are_printed_as_perf_prints_them() {
    let recorded = Fields::IP | Fields::TID | Fields::TIME | Fields::CPU;
    let every = "comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso";
    let lists = [&LISTS[..], &["comm,cpu,time", "cpu,ip,sym", "-cpu"]].concat();
    // Not all CPUs: programs of others have names that the parser above cannot separate.
    compare("with cpu", &["--sample-cpu", "-e", "cpu-clock,page-faults"], recorded, every, &lists);
}
