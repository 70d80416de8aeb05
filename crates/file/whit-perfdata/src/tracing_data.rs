//! TRACING_DATA: the tracepoints' formats, as `perf record` and `trace-cmd` take them from tracefs.
//!
//! The section is a row of counted texts. First come two headers of the kernel's own ring buffer,
//! the formats of the `ftrace` system, and the formats of each recorded tracepoint by system. Then
//! come kernel symbols (empty since perf 4.2), the strings that tracepoints refer to by address,
//! and the names of tasks. Source: `tools/perf/util/trace-event-info.c` (written) and
//! `trace-event-read.c` (read).

pub use whit_print_format::{EventFormatError, FieldLocation, TraceEvent, TraceField};

use crate::bytes::Cursor;
use whit_print_format::KernelStrings;

/// First bytes of the section.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// System of the kernel's function tracers; its formats are not those of tracepoints.
const FTRACE_SYSTEM: &str = "ftrace";
/// Problems that are told apart; more are only counted.
const MAX_PROBLEMS: usize = 16;

/// Why the section, or a part of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TracingDataError {
    /// The first bytes are others.
    #[error("the formats of tracepoints do not start with their mark")]
    NotTracingData,
    /// The recorded machine was big-endian.
    #[error("the formats of tracepoints are those of a big-endian machine")]
    BigEndian,
    /// No machine has such words.
    #[error("the formats of tracepoints are those of a machine with words of {size_bytes} bytes")]
    WordSize {
        /// Size of a `long`.
        size_bytes: u8,
    },
    /// The fixed part is cut.
    #[error("the formats of tracepoints are cut short in {part}")]
    Cut {
        /// The part of the section that is cut.
        part: &'static str,
    },
    /// One format.
    #[error("a tracepoint of the system {system}: {source}")]
    Event {
        /// The system that it stands under.
        system: String,
        /// The defect of its text.
        source: EventFormatError,
    },
}

/// The section, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracingData {
    /// Size of a `long`, and of a pointer, of the recorded kernel: 4 or 8.
    pub long_size_bytes: u8,
    /// Why some parts could not be read; the rest is there.
    pub problems: Vec<TracingDataError>,
    /// By id.
    events: Vec<TraceEvent>,
    /// By address.
    strings: Vec<(u64, Box<str>)>,
}

impl KernelStrings for TracingData {
    fn string_at(&self, address: u64) -> Option<&str> {
        let at = self.strings.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        self.strings.get(at).map(|(_, text)| &**text)
    }
}

impl TracingData {
    /// Reads a TRACING_DATA section. Where a format cannot be read, or the section is cut behind
    /// its header, the readable parts are kept, with an entry in [`TracingData::problems`].
    ///
    /// # Errors
    /// The section's header is not one.
    pub fn parse(bytes: &[u8]) -> Result<TracingData, TracingDataError> {
        let mut c = Cursor::new(bytes);
        let long_size_bytes = parse_header(&mut c)?;
        let mut data = TracingData { long_size_bytes, ..TracingData::default() };
        if let Err(part) = data.parse_body(&mut c) {
            data.problem(TracingDataError::Cut { part });
        }
        // If two formats have one id, the first counts.
        data.events.sort_by_key(|event| event.id);
        data.events.dedup_by_key(|event| event.id);
        data.strings.sort_by_key(|(address, _)| *address);
        Ok(data)
    }

    /// The format of a tracepoint: `perf_event_attr.config` is its id.
    pub fn event(&self, id: u64) -> Option<&TraceEvent> {
        let at = self.events.binary_search_by_key(&id, |event| event.id).ok()?;
        self.events.get(at)
    }

    /// All formats, by id.
    pub fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    fn problem(&mut self, problem: TracingDataError) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// `Err`: the part that is cut.
    fn parse_body(&mut self, c: &mut Cursor<'_>) -> Result<(), &'static str> {
        let part = "the headers of ring buffer pages";
        for name in [&b"header_page\0"[..], &b"header_event\0"[..]] {
            if c.take(name.len()).ok_or(part)? != name {
                return Err(part);
            }
            counted_u64(c).ok_or(part)?;
        }
        let part = "the formats of the system ftrace";
        for _ in 0..c.u32().ok_or(part)? {
            self.add_event(FTRACE_SYSTEM, counted_u64(c).ok_or(part)?);
        }
        let part = "the formats of tracepoints";
        for _ in 0..c.u32().ok_or(part)? {
            let system = c_string(c).ok_or(part)?;
            for _ in 0..c.u32().ok_or(part)? {
                self.add_event(&system, counted_u64(c).ok_or(part)?);
            }
        }
        counted_u32(c).ok_or("the kernel's symbols")?;
        self.add_strings(counted_u32(c).ok_or("the strings of tracepoints")?);
        Ok(())
    }

    fn add_event(&mut self, system: &str, text: &[u8]) {
        match TraceEvent::parse(system, &String::from_utf8_lossy(text), self.long_size_bytes) {
            Ok(event) => self.events.push(event),
            Err(source) => {
                self.problem(TracingDataError::Event { system: system.to_owned(), source });
            }
        }
    }

    /// Takes lines such as `0xffffffff8261d2d8 : "rcu_preempt"`.
    fn add_strings(&mut self, text: &[u8]) {
        for line in String::from_utf8_lossy(text).lines() {
            let Some((address, text)) = line.split_once(':') else { continue };
            let digits = address.trim().trim_start_matches("0x");
            let Ok(address) = u64::from_str_radix(digits, 16) else { continue };
            let text = text.trim_start();
            let text = text.strip_prefix('"').unwrap_or(text);
            let text = text.strip_suffix('"').unwrap_or(text);
            let text = text.strip_suffix("\\n").unwrap_or(text);
            self.strings.push((address, text.into()));
        }
    }
}

/// Mark, version, byte order, size of a `long`, page size; gives back the size of a `long`.
fn parse_header(c: &mut Cursor<'_>) -> Result<u8, TracingDataError> {
    if c.take(MAGIC.len()) != Some(MAGIC) {
        return Err(TracingDataError::NotTracingData);
    }
    let cut = TracingDataError::Cut { part: "its header" };
    c_string(c).ok_or(cut.clone())?;
    let &[big_endian, long_size_bytes] = c.take(2).ok_or(cut.clone())? else { return Err(cut) };
    c.u32().ok_or(cut)?;
    match (big_endian, long_size_bytes) {
        (0, 4 | 8) => Ok(long_size_bytes),
        (0, size_bytes) => Err(TracingDataError::WordSize { size_bytes }),
        _ => Err(TracingDataError::BigEndian),
    }
}

fn c_string(c: &mut Cursor<'_>) -> Option<String> {
    let text = c.c_str();
    c.take(text.len() + 1)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn counted_u64<'a>(c: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = usize::try_from(c.u64()?).ok()?;
    c.take(size)
}

fn counted_u32<'a>(c: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = c.u32()? as usize;
    c.take(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\n\
        print fmt: \"prev_comm=%s\", REC->prev_comm\n";
    const STRINGS: &str = "0xffffffff82 : \"rcu_preempt\"\n0xffffffff81 : \"%s: done\\n\"\n bad\n";

    fn section(systems: &[(&str, &[&str])]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(b"0.6\0\0\x08\x00\x10\x00\x00");
        let counted = |out: &mut Vec<u8>, text: &str| {
            out.extend((text.len() as u64).to_le_bytes());
            out.extend(text.as_bytes());
        };
        out.extend(b"header_page\0");
        counted(&mut out, "page");
        out.extend(b"header_event\0");
        counted(&mut out, "event");
        out.extend(0u32.to_le_bytes());
        out.extend((systems.len() as u32).to_le_bytes());
        for (system, formats) in systems {
            out.extend(system.as_bytes());
            out.push(0);
            out.extend((formats.len() as u32).to_le_bytes());
            formats.iter().for_each(|format| counted(&mut out, format));
        }
        out.extend(0u32.to_le_bytes());
        out.extend((STRINGS.len() as u32).to_le_bytes());
        out.extend(STRINGS.as_bytes());
        counted(&mut out, "");
        out
    }

    #[test]
    fn a_section_gives_formats_and_strings() {
        let data = TracingData::parse(&section(&[("sched", &[SWITCH]), ("irq", &[])])).unwrap();
        assert_eq!((data.long_size_bytes, data.problems.len()), (8, 0));
        let event = data.event(372).unwrap();
        assert_eq!((&*event.system, &*event.name), ("sched", "sched_switch"));
        assert_eq!(event.print_fmt.trim(), "\"prev_comm=%s\", REC->prev_comm");
        assert!(data.event(371).is_none());
        assert_eq!(data.string_at(0x00ff_ffff_ff82), Some("rcu_preempt"));
        assert_eq!(data.string_at(0x00ff_ffff_ff81), Some("%s: done"));
        assert_eq!(data.string_at(0), None);
    }

    #[test]
    fn bytes_that_are_no_section_are_refused() {
        let good = section(&[]);
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            TracingData::parse(&bytes).unwrap_err()
        };
        assert_eq!(changed(0, 0), TracingDataError::NotTracingData);
        assert_eq!(changed(14, 1), TracingDataError::BigEndian);
        assert_eq!(changed(15, 5), TracingDataError::WordSize { size_bytes: 5 });
        assert!(TracingData::parse(&good[..16]).unwrap_err().to_string().contains("its header"));
    }

    #[test]
    fn a_cut_section_keeps_the_part_before_the_cut() {
        let whole = section(&[("sched", &[SWITCH])]);
        for len in 20..whole.len() {
            let data = TracingData::parse(&whole[..len]).unwrap();
            assert!(data.events().len() <= 1);
            // The names of tasks, eight bytes here, are not read.
            assert_eq!(data.problems.is_empty(), len >= whole.len() - 8, "cut at {len}");
        }
    }

    #[test]
    fn a_bad_format_is_named_and_the_others_stay() {
        let data = TracingData::parse(&section(&[("sched", &["name: x\n", SWITCH])])).unwrap();
        assert_eq!(data.events().len(), 1);
        assert!(data.problems[0].to_string().contains("system sched"), "{:?}", data.problems);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0usize..600, byte: u8, cut in 0usize..600) {
            let mut bytes = section(&[("sched", &[SWITCH])]);
            let len = bytes.len();
            bytes[at % len] = byte;
            bytes.truncate(len - cut % len);
            let _ = TracingData::parse(&bytes);
        }
    }
}
