//! Values of `whit record`'s options.

use whit_capture::affinity::Affinity;
use whit_capture::options::{
    ASYNC_BLOCKS_MAX, COMPRESSION_LEVELS, CallGraph, DEFAULT_STACK_DUMP_BYTES,
    MAX_STACK_DUMP_BYTES, RingSize, Start,
};
use whit_sys::clock::ClockId;

/// The value of `-F`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    Hz(u64),
    /// Whatever the kernel allows now.
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

/// `fp`, `dwarf`, `dwarf,BYTES`.
pub(super) fn call_graph(text: &str) -> Result<CallGraph, String> {
    let (mode, size) = match text.split_once(',') {
        Some((mode, size)) => (mode, Some(size)),
        None => (text, None),
    };
    match (mode, size) {
        ("fp", None) => Ok(CallGraph::FramePointer),
        ("no", None) => Ok(CallGraph::None),
        ("dwarf", size) => Ok(CallGraph::Dwarf {
            stack_dump_bytes: size.map_or(Ok(DEFAULT_STACK_DUMP_BYTES), stack_dump)?,
        }),
        _ => Err("fp, dwarf or dwarf,BYTES".to_owned()),
    }
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
    let shift = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'B') => 0,
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        _ => return text.parse().map_err(|_| error()),
    };
    let number: usize = text[..text.len() - 1].parse().map_err(|_| error())?;
    number.checked_mul(1 << shift).ok_or_else(error)
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

/// Milliseconds; -1 is "never".
pub(super) fn delay(text: &str) -> Result<Start, String> {
    match text.parse::<i64>() {
        Ok(-1) => Ok(Start::Disabled),
        Ok(0) => Ok(Start::AtOnce),
        Ok(ms) if ms > 0 => Ok(Start::AfterMs(ms as u64)),
        _ => Err("a number of milliseconds, or -1".to_owned()),
    }
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
        assert_eq!(count("0x10"), Ok(16));
        assert_eq!(call_graph("dwarf"), Ok(CallGraph::Dwarf { stack_dump_bytes: 8192 }));
        assert_eq!(call_graph("dwarf,1021"), Ok(CallGraph::Dwarf { stack_dump_bytes: 1024 }));
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
        for text in ["lbr", "dwarf,0", "dwarf,65529", "dwarf,x", "fp,8", ""] {
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
        assert!(delay("-2").is_err());
        assert!(clock("sundial").is_err());
    }
}
