//! Functions of interpreters that call chains have frames of.
//!
//! A frame of such a function is an address with a mark ([`is_interpreted`]), which no code of a program has. It
//! belongs to a function of the frame's process. The place of the instruction is in its lower bits, so that the
//! function has a range of addresses as compiled code has, and lines by their distance from its start.
//!
//! A stream has each function in BPF_EVENT records of a type that the kernel has not ([`FunctionRecord`]). Readers of
//! perf.data pass over BPF_EVENT records of types that they do not know, and such a record has a time as any other has.

use std::collections::HashMap;

use crate::bytes::Cursor;
use whit_types::Pid;

/// The type of the record, where the kernel has 1 for a program that is loaded and 2 for one that goes.
pub(crate) const RECORD_TYPE: u16 = 0x6677;
/// Version of the layout.
const VERSION: u16 = 1;
/// Functions that are kept of a recording at most.
pub const INTERPRETED_MAX: usize = 1 << 18;
/// Bytes of a name and of a path; longer ones are cut.
const TEXT_MAX_BYTES: usize = 8 << 10;
/// Lines in one record; the next record of the function has those behind.
const RECORD_LINES_MAX: usize = 4096;
/// Bytes of a line: its distance, and its number.
const LINE_BYTES: usize = 8;
/// The bits above the mark, and the mark.
const MARK_BITS: u32 = 61;
const MARK: u64 = 2;

/// Whether an address is that of a frame of an interpreted function.
pub fn is_interpreted(address: u64) -> bool {
    address >> MARK_BITS == MARK
}

/// A function of an interpreter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterpretedFunction {
    /// The process whose frames it names.
    pub pid: Pid,
    /// The first address of its frames.
    pub start: u64,
    /// Bytes of its range.
    pub size_bytes: u64,
    /// Its name, with that of the language in front.
    pub name: Vec<u8>,
    /// Its source file, as the interpreter names it.
    pub file: Vec<u8>,
    /// Lines: each holds from a distance from the start on, up to the next. Ascending. 0: unknown from there on.
    pub lines: Vec<(u32, u32)>,
}

impl InterpretedFunction {
    /// The line at an address within the function.
    pub fn line(&self, address: u64) -> Option<u32> {
        let offset = address.checked_sub(self.start)?;
        let behind = self.lines.partition_point(|(from, _)| u64::from(*from) <= offset);
        self.lines.get(behind.checked_sub(1)?).map(|(_, line)| *line).filter(|line| *line != 0)
    }

    /// The bodies of its records: one, or more where it has many lines.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        let cut = |text: &[u8]| text[..text.len().min(TEXT_MAX_BYTES)].to_vec();
        let (name, file) = (cut(&self.name), cut(&self.file));
        let parts = self.lines.len().div_ceil(RECORD_LINES_MAX).max(1);
        let body = |part: usize| {
            let behind = &self.lines[part * RECORD_LINES_MAX..];
            let lines = &behind[..behind.len().min(RECORD_LINES_MAX)];
            self.body([&name, &file], lines)
        };
        (0..parts).map(body).collect()
    }

    fn body(&self, texts: [&[u8]; 2], lines: &[(u32, u32)]) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(RECORD_TYPE.to_le_bytes());
        body.extend(VERSION.to_le_bytes());
        body.extend(self.pid.0.to_le_bytes());
        body.extend(self.start.to_le_bytes());
        body.extend(self.size_bytes.to_le_bytes());
        let counts = [texts[0].len(), texts[1].len(), lines.len(), 0];
        counts.iter().for_each(|count| body.extend((*count as u32).to_le_bytes()));
        texts.iter().for_each(|text| body.extend(*text));
        for (offset, line) in lines {
            body.extend(offset.to_le_bytes());
            body.extend(line.to_le_bytes());
        }
        body
    }
}

/// A record of a function, or of further lines of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionRecord<'a> {
    /// The process.
    pub pid: Pid,
    /// The first address of its frames.
    pub start: u64,
    /// Bytes of its range.
    pub size_bytes: u64,
    name: &'a [u8],
    file: &'a [u8],
    lines: &'a [u8],
}

impl<'a> FunctionRecord<'a> {
    /// From the body of a BPF_EVENT record; `None` for those of the kernel, of other versions, and where it is cut.
    pub(crate) fn parse(body: &'a [u8]) -> Option<FunctionRecord<'a>> {
        let mut c = Cursor::new(body);
        if (c.u16()?, c.u16()?) != (RECORD_TYPE, VERSION) {
            return None;
        }
        let pid = Pid(c.i32()?);
        let (start, size_bytes) = (c.u64()?, c.u64()?);
        let [name, file, lines] = [c.u32()?, c.u32()?, c.u32()?].map(|count| count as usize);
        c.u32()?;
        let (name, file) = (c.take(name)?, c.take(file)?);
        let lines = c.take(lines.checked_mul(LINE_BYTES)?)?;
        Some(FunctionRecord { pid, start, size_bytes, name, file, lines })
    }

    /// The function, with the lines of this record.
    pub fn function(&self) -> InterpretedFunction {
        let mut c = Cursor::new(self.lines);
        InterpretedFunction {
            pid: self.pid,
            start: self.start,
            size_bytes: self.size_bytes,
            name: self.name.to_vec(),
            file: self.file.to_vec(),
            lines: std::iter::from_fn(|| Some((c.u32()?, c.u32()?))).collect(),
        }
    }
}

/// The name of two functions whose frames have the same addresses.
const SEVERAL: &[u8] = b"[several functions]";

/// The functions of a recording in the order of its records, at most [`INTERPRETED_MAX`]. A stream may have a function again,
/// and in several records.
#[derive(Clone, Debug, Default)]
pub struct FunctionNames {
    functions: Vec<InterpretedFunction>,
    places: HashMap<(Pid, u64), usize>,
}

impl FunctionNames {
    /// Takes in the function of one record.
    pub fn add(&mut self, stated: InterpretedFunction) {
        let key = (stated.pid, stated.start);
        if let Some(place) = self.places.get(&key) {
            let known = &mut self.functions[*place];
            if (&known.name, &known.file) != (&stated.name, &stated.file) {
                known.name = SEVERAL.to_vec();
                (known.file, known.lines) = (Vec::new(), Vec::new());
                return;
            }
            let last = known.lines.last().map(|(offset, _)| *offset);
            known.lines.extend(stated.lines.into_iter().filter(|(offset, _)| Some(*offset) > last));
        } else if self.functions.len() < INTERPRETED_MAX {
            self.places.insert(key, self.functions.len());
            self.functions.push(stated);
        }
    }

    /// The functions, each once.
    pub fn into_functions(self) -> Vec<InterpretedFunction> {
        self.functions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attr, AttrFlags, SampleType};
    use crate::encode::RecordEncoder;
    use crate::record::{RawRecord, SideBand, record_type};
    use crate::sample::SampleLayout;
    use proptest::prelude::*;
    use whit_types::{Tid, TimestampNs};

    prop_compose! {
        fn function()(
            pid: i32,
            range in any::<[u64; 2]>(),
            name in prop::collection::vec(any::<u8>(), 0..20),
            file in prop::collection::vec(any::<u8>(), 0..20),
            numbers in prop::collection::vec(any::<u32>(), 0..5),
        ) -> InterpretedFunction {
            let [start, size_bytes] = range;
            let lines = (0..).map(|at| at * 2).zip(numbers).collect();
            InterpretedFunction { pid: Pid(pid), start, size_bytes, name, file, lines }
        }
    }

    fn named(start: u64, lines: Vec<(u32, u32)>) -> InterpretedFunction {
        let (name, file) = (b"py::f".to_vec(), b"/f.py".to_vec());
        InterpretedFunction { pid: Pid(1), start, size_bytes: 100, name, file, lines }
    }

    fn encoder() -> (RecordEncoder, SampleLayout) {
        let sample_type = SampleType::IDENTIFIER | SampleType::TID | SampleType::TIME;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        let layout = SampleLayout::new(&Attr { sample_type, flags, ..Attr::default() });
        (RecordEncoder::new(layout), layout)
    }

    /// The functions in the records of a stream.
    fn functions_in(mut records: &[u8]) -> Vec<InterpretedFunction> {
        let mut stated = FunctionNames::default();
        while let Some((record, rest)) = RawRecord::split(records) {
            if let Some(SideBand::Function(function)) = SideBand::parse(record) {
                stated.add(function.function());
            }
            records = rest;
        }
        stated.into_functions()
    }

    #[test]
    fn lines_hold_up_to_the_next() {
        let function = named(1000, vec![(10, 5), (20, 7)]);
        let lines = [999, 1009, 1010, 1019, 1020, 1099].map(|address| function.line(address));
        assert_eq!(lines, [None, None, Some(5), Some(5), Some(7), Some(7)]);
    }

    #[test]
    fn frames_are_apart_from_code_and_markers() {
        assert!(is_interpreted(1 << 62) && is_interpreted((1 << 62) | ((1 << 61) - 1)));
        let others = [0, 0x7fff_ffff_ffff, 0xffff_8000_0000_0000, u64::MAX - 511, 1 << 63, 3 << 61];
        assert!(others.iter().all(|address| !is_interpreted(*address)));
    }

    /// The words of docs/format.md.
    #[test]
    fn a_function_is_a_bpf_event_with_the_thread_and_the_time() {
        let (encoder, layout) = encoder();
        let mut out = Vec::new();
        let function = named(0x4000_0000_0000_1000, vec![(10, 5)]);
        encoder.function(&mut out, &function, TimestampNs(77), 9);
        let (record, rest) = RawRecord::split(&out).unwrap();
        assert!(rest.is_empty());
        assert_eq!((record.header.kind, record.header.misc), (record_type::BPF_EVENT, 0));
        let id = layout.parse_id_trailer(record.body).unwrap();
        assert_eq!((id.time, id.pid_tid), (Some(TimestampNs(77)), Some((Pid(1), Tid(1)))));
        let words: Vec<u8> = [0x1_0001_6677u64, 0x4000_0000_0000_1000, 100, 5 | 5 << 32, 1]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let texts = [&words[..], b"py::f/f.py", &[10, 0, 0, 0, 5, 0, 0, 0]].concat();
        assert!(record.body.starts_with(&texts));
        assert_eq!((record.body.len() + 8) % 8, 0);
    }

    #[test]
    fn functions_of_the_same_addresses_have_no_name_of_their_own() {
        let mut all = FunctionNames::default();
        let other = InterpretedFunction { name: b"py::g".to_vec(), ..named(5, vec![(0, 9)]) };
        for function in [named(5, vec![(0, 1)]), other, named(5, vec![(0, 1)])] {
            all.add(function);
        }
        let functions = all.into_functions();
        assert_eq!(functions.len(), 1);
        assert_eq!((&functions[0].name[..], functions[0].line(5)), (SEVERAL, None));
    }

    #[test]
    fn many_lines_take_several_records_and_are_joined() {
        let (encoder, _) = encoder();
        let lines: Vec<_> = (0..3 * RECORD_LINES_MAX as u32 - 1).map(|at| (at * 2, at)).collect();
        let (long, other) = (named(1 << 20, lines), named(5, vec![(0, 1)]));
        let mut out = Vec::new();
        encoder.function(&mut out, &long, TimestampNs(1), 9);
        encoder.function(&mut out, &other, TimestampNs(1), 9);
        // Told again, as where a recorder forgot that it was.
        encoder.function(&mut out, &long, TimestampNs(2), 9);
        assert_eq!(functions_in(&out), [long, other]);
    }

    #[test]
    fn long_texts_are_cut_and_lines_stay() {
        let (encoder, _) = encoder();
        let lines: Vec<_> = (0..RECORD_LINES_MAX as u32).map(|at| (at, at)).collect();
        let long = vec![b'x'; 1 << 17];
        let function =
            InterpretedFunction { name: long.clone(), file: long, ..named(5, lines.clone()) };
        let mut out = Vec::new();
        encoder.function(&mut out, &function, TimestampNs(1), 9);
        let found = functions_in(&out);
        assert_eq!((found.len(), found[0].name.len()), (1, TEXT_MAX_BYTES));
        assert_eq!(found[0].lines, lines);
    }

    #[test]
    fn events_of_the_kernel_and_other_versions_are_no_functions() {
        let (encoder, _) = encoder();
        let mut out = Vec::new();
        encoder.function(&mut out, &named(5, Vec::new()), TimestampNs(1), 9);
        for (at, byte) in [(8, 1), (9, 0), (10, 2)] {
            let mut other = out.clone();
            other[at] = byte;
            let (record, _) = RawRecord::split(&other).unwrap();
            assert_eq!(SideBand::parse(record), Some(SideBand::BpfProgram));
        }
    }

    proptest! {
        #[test]
        fn round_trip(functions in prop::collection::vec(function(), 0..6)) {
            let (encoder, _) = encoder();
            let mut out = Vec::new();
            for function in &functions {
                encoder.function(&mut out, function, TimestampNs(1), 9);
            }
            prop_assert_eq!(functions_in(&out), functions);
        }

        #[test]
        fn arbitrary_bytes_are_survived(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            is_meant: bool,
        ) {
            if let (true, Some(head)) = (is_meant, bytes.first_chunk_mut()) {
                *head = (u32::from(RECORD_TYPE) | u32::from(VERSION) << 16).to_le_bytes();
            }
            let parsed = FunctionRecord::parse(&bytes).map(|record| record.function());
            prop_assert!(parsed.is_none_or(|function| function.name.len() <= bytes.len()));
        }
    }
}
