//! Values of `whit record`'s options.

use std::time::Duration;
use whit_capture::affinity::Affinity;
use whit_capture::options::{
    ASYNC_BLOCKS_MAX, COMPRESSION_LEVELS, CallGraph, DEFAULT_STACK_DUMP_BYTES, Engine,
    MAX_STACK_DUMP_BYTES, RingSize, Start, SwitchOutput, Synthesis,
};
use whit_sys::clock::ClockId;
use whit_sys::scheduling::FIFO_PRIORITIES;
use whit_types::ByteSize;

/// Parses `--engine`: `auto`, `ring` or `bpf`.
pub(super) fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "ring" => Ok(Engine::Ring),
        "bpf" => Ok(Engine::Bpf),
        "auto" => Ok(Engine::Auto),
        other => Err(format!("'{other}' is no engine: use ring, bpf or auto")),
    }
}

/// The value of `-F`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    Hz(u64),
    /// The highest rate that the kernel allows now.
    Max,
}

pub(super) fn frequency(text: &str) -> Result<Frequency, String> {
    if text.eq_ignore_ascii_case("max") {
        return Ok(Frequency::Max);
    }
    text.parse().map(Frequency::Hz).map_err(|_| "a number of Hz, or 'max'".to_owned())
}

/// A number, in decimal or after `0x` in hexadecimal.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "a number of events".to_owned())
}

/// The shortest `--off-cpu-period`, in nanoseconds: a sample takes some microseconds.
const MIN_OFF_CPU_PERIOD_NS: u64 = 1000;

/// Nanoseconds for each sample of a wait.
pub(super) fn off_cpu_period(text: &str) -> Result<u64, String> {
    let period = text.parse().ok().filter(|period| *period >= MIN_OFF_CPU_PERIOD_NS);
    period.ok_or_else(|| format!("a number of nanoseconds from {MIN_OFF_CPU_PERIOD_NS}"))
}

/// Parses `--max-overhead`: a percentage, with or without the sign. Gives millionths.
pub(crate) fn overhead(text: &str) -> Result<u32, String> {
    let percent: Option<f64> = text.trim_end_matches('%').trim_end().parse().ok();
    let ppm =
        percent.map(|percent| (percent * 1e4).round()).filter(|ppm| (100.0..=1e6).contains(ppm));
    ppm.map(|ppm| ppm as u32).ok_or_else(|| "a percentage from 0.01 to 100".to_owned())
}

/// The value of `--call-graph`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallChains {
    pub(super) mode: CallGraph,
    /// User frames are taken at the return to user mode.
    pub(super) is_deferred: bool,
    /// Frames.
    pub(super) max_stack: Option<u16>,
}

/// `fp`, `fp,FRAMES`, `fp,defer`, `fp,FRAMES,defer`, `dwarf`, `dwarf,BYTES`, `lbr`.
pub(super) fn call_graph(text: &str) -> Result<CallChains, String> {
    let (mode, size) = match text.split_once(',') {
        Some((mode, size)) => (mode, Some(size)),
        None => (text, None),
    };
    let (mut max_stack, mut is_deferred) = (None, false);
    let mode = match (mode, size) {
        ("fp", words) => {
            for word in words.into_iter().flat_map(|words| words.split(',')) {
                if word == "defer" && !is_deferred {
                    is_deferred = true;
                } else if max_stack.is_none()
                    && let Ok(frames) = word.parse()
                {
                    max_stack = Some(frames);
                } else {
                    return Err("fp takes a number of frames, or 'defer', or both".to_owned());
                }
            }
            CallGraph::FramePointer
        }
        _ if text.split(',').any(|word| word == "defer") => {
            return Err("only call chains by frame pointers can be deferred: fp,defer".to_owned());
        }
        ("no", None) => CallGraph::None,
        ("lbr", None) => CallGraph::Lbr,
        ("dwarf", size) => CallGraph::Dwarf {
            stack_dump_bytes: size.map_or(Ok(DEFAULT_STACK_DUMP_BYTES), stack_dump)?,
        },
        _ => return Err("fp, fp,FRAMES, fp,defer, dwarf, dwarf,BYTES or lbr".to_owned()),
    };
    Ok(CallChains { mode, is_deferred, max_stack })
}

/// `signal`, or a size with B, K, M or G, or a time with s, m, h or d.
pub(super) fn switch_output(text: &str) -> Result<SwitchOutput, String> {
    let error = || "signal, a size with B, K, M or G, or a time with s, m, h or d".to_owned();
    if text == "signal" {
        return Ok(SwitchOutput::OnSignal);
    }
    let unit = text.chars().last().ok_or_else(error)?;
    let seconds = |unit_s: u64| {
        let number: u64 = text[..text.len() - 1].parse().map_err(|_| error())?;
        let time_s = number.checked_mul(unit_s).filter(|n| *n > 0).ok_or_else(error)?;
        Ok(SwitchOutput::Every(Duration::from_secs(time_s)))
    };
    match unit {
        'B' | 'K' | 'M' | 'G' => {
            let size = text.parse().ok().filter(|ByteSize(bytes)| *bytes > 0);
            size.map(|ByteSize(bytes)| SwitchOutput::AtBytes(bytes)).ok_or_else(error)
        }
        's' => seconds(1),
        'm' => seconds(60),
        'h' => seconds(3600),
        'd' => seconds(86_400),
        _ => Err(error()),
    }
}

pub(super) fn max_files(text: &str) -> Result<usize, String> {
    positive(text)
}

pub(super) fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "a number from 1".to_owned())
}

pub(super) fn realtime(text: &str) -> Result<i32, String> {
    let (first, last) = FIFO_PRIORITIES.into_inner();
    let priority = text.parse().ok().filter(|priority| (first..=last).contains(priority));
    priority.ok_or_else(|| format!("a priority from {first} to {last}"))
}

/// The value of `--synth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Synthesized(pub(super) Synthesis);

/// Parses `no`, `all`, `task`, `mmap` or `cgroup`; mappings come with their tasks.
pub(super) fn synthesis(text: &str) -> Result<Synthesized, String> {
    let none = Synthesis { tasks: false, mappings: false, cgroups: false, ..Synthesis::default() };
    let mut what = none;
    for word in text.split(',') {
        match word {
            "no" | "none" => return Ok(Synthesized(none)),
            "all" => return Ok(Synthesized(Synthesis::default())),
            "task" => what.tasks = true,
            "mmap" => (what.tasks, what.mappings) = (true, true),
            "cgroup" => what.cgroups = true,
            _ => return Err("no, all, or some of task, mmap and cgroup".to_owned()),
        }
    }
    Ok(Synthesized(what))
}

/// Rounded up to whole words.
fn stack_dump(text: &str) -> Result<u32, String> {
    let bytes: Option<u32> = text.parse().ok();
    bytes
        .and_then(|bytes| bytes.checked_next_multiple_of(8))
        .filter(|bytes| (1..=MAX_STACK_DUMP_BYTES).contains(bytes))
        .ok_or_else(|| format!("a stack dump has 1 to {MAX_STACK_DUMP_BYTES} bytes"))
}

/// Pages, or bytes with a unit.
pub(super) fn ring_size(text: &str) -> Result<RingSize, String> {
    let error = |_| "a number of pages, or of bytes with B, K, M or G".to_owned();
    match text.parse() {
        Ok(pages) => Ok(RingSize::Pages(pages)),
        Err(_) => bytes(text).map(RingSize::Bytes).map_err(error),
    }
}

/// Bytes, with or without a unit.
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let error = || "a number of bytes, or with B, K, M or G".to_owned();
    let ByteSize(bytes) = text.parse().map_err(|_| error())?;
    usize::try_from(bytes).map_err(|_| error())
}

pub(super) fn async_blocks(text: &str) -> Result<usize, String> {
    let blocks = text.parse().ok().filter(|blocks| (1..=ASYNC_BLOCKS_MAX).contains(blocks));
    blocks.ok_or_else(|| format!("1 to {ASYNC_BLOCKS_MAX} blocks"))
}

/// The value of `-z`; 0 is "not at all".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompressionLevel(pub(super) Option<i32>);

pub(super) fn compression_level(text: &str) -> Result<CompressionLevel, String> {
    let (first, last) = COMPRESSION_LEVELS.into_inner();
    match text.parse() {
        Ok(0) => Ok(CompressionLevel(None)),
        Ok(level) if (first..=last).contains(&level) => Ok(CompressionLevel(Some(level))),
        _ => Err(format!("a level from {first} to {last}, or 0 for none")),
    }
}

pub(super) fn affinity(text: &str) -> Result<Affinity, String> {
    match text {
        "sys" => Ok(Affinity::System),
        "node" => Ok(Affinity::Node),
        "cpu" => Ok(Affinity::Cpu),
        _ => Err("sys, node or cpu".to_owned()),
    }
}

/// Milliseconds; -1 is "not before it is asked for"; or ranges of milliseconds.
pub(super) fn delay(text: &str) -> Result<Start, String> {
    if text.contains(',') || text.get(1..).is_some_and(|rest| rest.contains('-')) {
        return ranges(text).map(Start::Ranges);
    }
    match text.parse::<i64>() {
        Ok(-1) => Ok(Start::Disabled),
        Ok(0) => Ok(Start::AtOnce),
        Ok(ms) if ms > 0 => Ok(Start::AfterMs(ms as u64)),
        _ => Err("a number of milliseconds, or -1".to_owned()),
    }
}

/// `10-20,30-40`, ascending.
fn ranges(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let error = || "ascending ranges of milliseconds such as 10-20,30-40".to_owned();
    let mut end = 0;
    let range = |text: &str| {
        let (from, to) = text.split_once('-').ok_or_else(error)?;
        let (from, to) = (from.parse().map_err(|_| error())?, to.parse().map_err(|_| error())?);
        if from < end || to <= from {
            return Err(error());
        }
        end = to;
        Ok((from, to))
    };
    text.split(',').map(range).collect()
}

pub(super) fn clock(text: &str) -> Result<ClockId, String> {
    ClockId::parse(text)
        .ok_or_else(|| format!("one of {}", ClockId::names().collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_perf() {
        assert_eq!(frequency("MAX"), Ok(Frequency::Max));
        assert_eq!(frequency("99"), Ok(Frequency::Hz(99)));
        assert_eq!(
            (overhead("1"), overhead("0.5%"), overhead("100 %")),
            (Ok(10_000), Ok(5000), Ok(1_000_000))
        );
        for wrong in ["", "0", "-1", "101", "0.001", "NaN", "inf", "one"] {
            assert!(overhead(wrong).is_err(), "{wrong}");
        }
        assert_eq!(count("0x10"), Ok(16));
        let chains = |mode| Ok(CallChains { mode, is_deferred: false, max_stack: None });
        let dwarf = |stack_dump_bytes| chains(CallGraph::Dwarf { stack_dump_bytes });
        assert_eq!(call_graph("dwarf"), dwarf(8192));
        assert_eq!(call_graph("dwarf,1021"), dwarf(1024));
        assert_eq!(call_graph("lbr"), chains(CallGraph::Lbr));
        let mode = CallGraph::FramePointer;
        let frames = |is_deferred, max_stack| Ok(CallChains { mode, is_deferred, max_stack });
        assert_eq!(call_graph("fp,32"), frames(false, Some(32)));
        assert_eq!(call_graph("fp,defer"), frames(true, None));
        assert_eq!(call_graph("fp,32,defer"), frames(true, Some(32)));
        for wrong in ["fp,", "fp,defer,defer", "fp,1,2", "fp,later"] {
            assert!(call_graph(wrong).unwrap_err().contains("defer"), "{wrong}");
        }
        for wrong in ["dwarf,defer", "lbr,defer", "dwarf,8192,defer"] {
            assert!(call_graph(wrong).unwrap_err().contains("fp,defer"), "{wrong}");
        }
        let every = |seconds| Ok(SwitchOutput::Every(Duration::from_secs(seconds)));
        assert_eq!(switch_output("signal"), Ok(SwitchOutput::OnSignal));
        assert_eq!(switch_output("300M"), Ok(SwitchOutput::AtBytes(300 << 20)));
        assert_eq!((switch_output("5m"), switch_output("2h")), (every(300), every(7200)));
        assert_eq!(realtime("99"), Ok(99));
        assert_eq!(off_cpu_period("1000"), Ok(1000));
        for wrong in ["999", "0", "1ms", "-1", ""] {
            assert!(off_cpu_period(wrong).unwrap_err().contains("nanoseconds"), "{wrong}");
        }
        let mappings = Synthesis { cgroups: false, ..Synthesis::default() };
        assert_eq!(synthesis("mmap"), Ok(Synthesized(mappings)));
        assert_eq!(synthesis("task,mmap,cgroup"), synthesis("all"));
        assert_eq!(delay("10-20,30-40"), Ok(Start::Ranges(vec![(10, 20), (30, 40)])));
        assert_eq!(ring_size("64"), Ok(RingSize::Pages(64)));
        assert_eq!(ring_size("2M"), Ok(RingSize::Bytes(2 << 20)));
        assert_eq!(ring_size("512k"), Ok(RingSize::Bytes(512 << 10)));
        assert_eq!(bytes("300"), Ok(300));
        assert_eq!((async_blocks("1"), async_blocks("4")), (Ok(1), Ok(4)));
        assert_eq!(compression_level("22"), Ok(CompressionLevel(Some(22))));
        assert_eq!(compression_level("0"), Ok(CompressionLevel(None)));
        assert_eq!(affinity("node"), Ok(Affinity::Node));
        assert_eq!(delay("-1"), Ok(Start::Disabled));
        assert_eq!(delay("20"), Ok(Start::AfterMs(20)));
        assert_eq!(clock("raw"), Ok(ClockId::MONOTONIC_RAW));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(frequency("fast").is_err());
        assert!(count("").is_err());
        for text in ["lbr,8", "dwarf,0", "dwarf,65529", "dwarf,x", "fp,x", ""] {
            assert!(call_graph(text).is_err(), "{text}");
        }
        for text in ["", "K", "128,4", "99999999999999999999", "99999999999G"] {
            assert!(ring_size(text).is_err(), "{text}");
        }
        for text in ["0", "5", "-1", ""] {
            assert!(async_blocks(text).is_err(), "{text}");
        }
        assert!(compression_level("23").is_err() && compression_level("-1").is_err());
        assert!(bytes("1X").is_err() && affinity("core").is_err());
        for text in ["-2", "20-10", "10-20,15-30", "10-20,", "1-2-3", "-1-5"] {
            assert!(delay(text).is_err(), "{text}");
        }
        for text in ["", "1", "0M", "M", "1x", "5é", "99999999999999999999G"] {
            assert!(switch_output(text).is_err(), "{text}");
        }
        assert!(realtime("0").is_err() && realtime("100").is_err() && positive("0").is_err());
        assert!(synthesis("maps").is_err() && synthesis("").is_err());
        assert!(clock("sundial").is_err());
    }
}
