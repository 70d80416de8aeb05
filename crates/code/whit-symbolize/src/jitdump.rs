//! jitdump files: code that a JIT compiler wrote, with names and lines, over time.
//!
//! Format: `tools/perf/Documentation/jitdump-specification.txt`, version 1.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whit_sys::MappedFile;
use whit_sys::process_files::ForeignFile;
use whit_types::{Avma, FileOffset, TimestampNs};
use whit_unwind::{Bytes, JitPiece};

use crate::jit_places::{JitMiss, JitPlace, JitPlaces};
use crate::reason::Reason;

/// "JiTD" as the writer's byte order has it.
const MAGIC_LITTLE: [u8; 4] = *b"DTiJ";
const MAGIC_BIG: [u8; 4] = *b"JiTD";

/// Smallest header and record prefix.
const MIN_HEADER_BYTES: usize = 40;
const RECORD_PREFIX_BYTES: usize = 16;

/// Where the header's flags are; the first says that times are those of a counter of the CPU.
const FLAGS_AT: usize = 32;
const ARCH_TIMESTAMP: u64 = 1;

/// Record types.
const JIT_CODE_LOAD: u32 = 0;
const JIT_CODE_MOVE: u32 = 1;
const JIT_CODE_DEBUG_INFO: u32 = 2;
const JIT_CODE_CLOSE: u32 = 3;
const JIT_CODE_UNWINDING_INFO: u32 = 4;

/// Records that are taken in.
const MAX_RECORDS: usize = 1 << 24;

/// One piece of code.
#[derive(Debug)]
struct Code {
    /// Where its bytes stand in the file; ascending, so that it identifies the code.
    offset: u64,
    size: u64,
    /// Where its name stands in the file.
    name: u64,
    /// Address that the debug entries refer to, and where those stand in the file.
    address: u64,
    lines: Option<u64>,
    /// Where its `.eh_frame` stands in the file, if it has one.
    eh_frame: Option<Range<u64>>,
}

/// Unwinding information of code at an address.
#[derive(Clone, Debug)]
struct Unwinding {
    start: u64,
    size: u64,
    /// Where its `.eh_frame` stands in the file.
    eh_frame: Range<u64>,
}

/// A line of the program that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitLine {
    /// Source file.
    pub file: String,
    /// Number of the line in that file.
    pub line: u32,
}

/// Kind of place in a jitdump file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitSymbol {
    /// Name of the function.
    pub name: String,
    /// Where its code starts in the file.
    pub start: FileOffset,
    /// Size of its code.
    pub size_bytes: u64,
    /// Source line, if the compiler wrote lines.
    pub line: Option<JitLine>,
}

/// An indexed jitdump file.
#[derive(Debug)]
pub struct JitDump {
    /// `None` for bytes in memory.
    file: Option<(Arc<Path>, MappedFile)>,
    bytes: Bytes,
    codes: Vec<Code>,
    pub(crate) places: JitPlaces,
    /// In the order of the file.
    unwinding: Vec<Unwinding>,
    /// Its times are those of a counter of the CPU.
    is_cpu_counter: bool,
}

impl JitDump {
    /// Maps and indexes an open file; `path` serves messages only.
    pub fn from_file(path: &Path, file: &ForeignFile) -> Result<JitDump, Reason> {
        let mapped = file.map().map_err(|error| Reason::from_io(path, &error))?;
        let dump = JitDump::from_bytes(path, Bytes::new(mapped.clone()))?;
        Ok(JitDump { file: Some((Arc::from(path), mapped)), ..dump })
    }

    /// The file, if it was cut while it was read.
    pub(crate) fn cut_file(&self) -> Option<&Arc<Path>> {
        let (path, mapped) = self.file.as_ref()?;
        mapped.is_cut().then_some(path)
    }

    /// Indexes a file in memory; `path` serves messages only. A file that breaks off, as the process
    /// died while writing, is taken up to there.
    pub fn from_bytes(path: &Path, bytes: Bytes) -> Result<JitDump, Reason> {
        let header = Fields(&bytes);
        let magic = bytes.first_chunk::<4>().copied();
        if magic == Some(MAGIC_BIG) {
            return Err(Reason::corrupt(path, "jitdump of a big-endian machine"));
        }
        let (Some(MAGIC_LITTLE), Some(version), Some(size)) = (magic, header.u32(4), header.u32(8))
        else {
            return Err(Reason::corrupt(path, "no jitdump header"));
        };
        if version != 1 || (size as usize) < MIN_HEADER_BYTES {
            return Err(Reason::corrupt(path, format!("jitdump version {version}")));
        }
        let mut dump = JitDump {
            file: None,
            bytes: bytes.clone(),
            codes: Vec::new(),
            places: JitPlaces::default(),
            unwinding: Vec::new(),
            is_cpu_counter: header.u64(FLAGS_AT).is_some_and(|flags| flags & ARCH_TIMESTAMP != 0),
        };
        dump.index(&bytes, size as usize);
        Ok(dump)
    }

    fn index(&mut self, bytes: &[u8], mut at: usize) {
        let mut pending = Pending::default();
        let mut by_index: FxHashMap<u64, u32> = FxHashMap::default();
        for _ in 0..MAX_RECORDS {
            let Some(rest) = bytes.get(at..) else { break };
            let fields = Fields(rest);
            let (Some(id), Some(size), Some(time)) = (fields.u32(0), fields.u32(4), fields.u64(8))
            else {
                break;
            };
            let size = size as usize;
            if size < RECORD_PREFIX_BYTES || size > rest.len() {
                break;
            }
            let record = Record { at, fields: Fields(&rest[..size]), time: TimestampNs(time) };
            match id {
                // A record that is too short for its kind is passed over.
                JIT_CODE_LOAD => {
                    let _ = self.load(&record, &mut pending, &mut by_index);
                }
                JIT_CODE_MOVE => {
                    let _ = self.relocate(&record, &by_index);
                }
                JIT_CODE_DEBUG_INFO => {
                    if let Some(address) = record.fields.u64(16) {
                        pending.lines.insert(address, at as u64);
                    }
                }
                JIT_CODE_UNWINDING_INFO => pending.eh_frame = record.eh_frame(),
                JIT_CODE_CLOSE => break,
                _ => {}
            }
            at += size;
        }
    }

    fn load(
        &mut self,
        record: &Record<'_>,
        pending: &mut Pending,
        by_index: &mut FxHashMap<u64, u32>,
    ) -> Option<()> {
        let fields = &record.fields;
        let (vma, address) = (fields.u64(24)?, fields.u64(32)?);
        let (size, index) = (fields.u64(40)?, fields.u64(48)?);
        let name = fields.text(56)?;
        let code_at = 56 + name.len() + 1;
        let available = fields.0.len().checked_sub(code_at)?;
        let code = u32::try_from(self.codes.len()).ok()?;
        self.codes.push(Code {
            offset: (record.at + code_at) as u64,
            // Some writers leave the code itself out; the addresses count all the same.
            size: size.min(available as u64),
            name: (record.at + 56) as u64,
            address,
            lines: pending.lines.remove(&address),
            eh_frame: pending.eh_frame.take(),
        });
        by_index.insert(index, code);
        // A writer that knows no address apart from the code's gives zero.
        let start = if vma == 0 { address } else { vma };
        self.place(code, record.time, start, size.min(available as u64));
        Some(())
    }

    fn relocate(&mut self, record: &Record<'_>, by_index: &FxHashMap<u64, u32>) -> Option<()> {
        let fields = &record.fields;
        let (start, index) = (fields.u64(40)?, fields.u64(56)?);
        let code = *by_index.get(&index)?;
        let size = fields.u64(48)?.min(self.codes[code as usize].size);
        self.place(code, record.time, start, size);
        Some(())
    }

    fn place(&mut self, code: u32, from: TimestampNs, start: u64, size: u64) {
        let code = &self.codes[code as usize];
        if let Some(eh_frame) = code.eh_frame.clone() {
            self.unwinding.push(Unwinding { start, size, eh_frame });
        }
        self.places.push(JitPlace { from, start, size, offset: code.offset });
    }

    /// Where in the file the instruction stands that was at `avma` at `time` of `CLOCK_MONOTONIC`: the code that was
    /// written there last before. Code that was written without a time counts from the start. Where the time is not
    /// known, the code that was there at all times.
    ///
    /// # Errors
    /// The file does not say which code it was.
    pub fn locate(&self, avma: Avma, time: Option<TimestampNs>) -> Result<FileOffset, JitMiss> {
        let time = time.filter(|_| !self.is_cpu_counter);
        self.places.locate(avma, time).map_err(|miss| match miss {
            JitMiss::TimeUnknown if self.is_cpu_counter => JitMiss::CpuCounter,
            miss => miss,
        })
    }

    /// Name and line of the instruction that stands at `offset` of the file.
    pub fn resolve(&self, offset: FileOffset) -> Option<JitSymbol> {
        let after = self.codes.partition_point(|code| code.offset <= offset.0);
        let code = &self.codes[after.checked_sub(1)?];
        let at = offset.0 - code.offset;
        if at >= code.size {
            return None;
        }
        let name = Fields(&self.bytes).text(usize::try_from(code.name).ok()?)?;
        Some(JitSymbol {
            name: String::from_utf8_lossy(name).into_owned(),
            start: FileOffset(code.offset),
            size_bytes: code.size,
            line: code.lines.and_then(|lines| self.line(lines, code.address.wrapping_add(at))),
        })
    }

    /// The bytes of the code at `offset`; none beyond its piece.
    pub(crate) fn code_at(&self, offset: FileOffset, size_bytes: u64) -> Option<Bytes> {
        let after = self.codes.partition_point(|code| code.offset <= offset.0);
        let code = &self.codes[after.checked_sub(1)?];
        let left = code.size.checked_sub(offset.0 - code.offset).filter(|left| *left > 0)?;
        self.bytes.slice(offset.0..offset.0.checked_add(size_bytes.min(left))?)
    }

    /// The unwinding information of each piece of code that has some, the latest last.
    pub fn unwinding(&self) -> impl Iterator<Item = JitPiece> {
        self.unwinding.iter().filter_map(|piece| {
            let eh_frame = self.bytes.slice(piece.eh_frame.clone())?;
            Some(JitPiece { start: Avma(piece.start), size_bytes: piece.size, eh_frame })
        })
    }

    /// Number of pieces of code.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// True where the file holds no code.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The last debug entry at or before `address`, of the record at `record`.
    fn line(&self, record: u64, address: u64) -> Option<JitLine> {
        let bytes = self.bytes.get(usize::try_from(record).ok()?..)?;
        let fields = Fields(bytes.get(..Fields(bytes).u32(4)? as usize)?);
        let count = fields.u64(24)?;
        let (mut at, mut file): (usize, &[u8]) = (32, &[]);
        let mut found = None;
        for _ in 0..count {
            let (entry, line) = (fields.u64(at), fields.u32(at + 8));
            let (Some(entry), Some(line), Some(name)) = (entry, line, fields.text(at + 16)) else {
                break;
            };
            // This name stands for the one before.
            if name != b"\xff" {
                file = name;
            }
            if entry > address {
                break;
            }
            found = Some(JitLine { file: String::from_utf8_lossy(file).into_owned(), line });
            at += 16 + name.len() + 1;
        }
        found
    }
}

struct Record<'a> {
    at: usize,
    fields: Fields<'a>,
    time: TimestampNs,
}

impl Record<'_> {
    /// Where the `.eh_frame` of a record with unwinding information stands in the file: in front of its search
    /// table, which is counted with it.
    fn eh_frame(&self) -> Option<Range<u64>> {
        const EH_FRAME_AT: u64 = 40;
        let size = self.fields.u64(16)?.checked_sub(self.fields.u64(24)?)?;
        let end = EH_FRAME_AT.checked_add(size).filter(|end| *end <= self.fields.0.len() as u64)?;
        let at = self.at as u64;
        (size > 0).then_some(at + EH_FRAME_AT..at + end)
    }
}

/// Descriptions that come before the code that they describe.
#[derive(Default)]
struct Pending {
    /// Where records with lines stand, by the address that they refer to.
    lines: FxHashMap<u64, u64>,
    /// The next code's unwinding information.
    eh_frame: Option<Range<u64>>,
}

/// Little-endian fields at byte offsets.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    /// Up to the next zero byte.
    fn text(&self, at: usize) -> Option<&'a [u8]> {
        let rest = self.0.get(at..)?;
        Some(&rest[..rest.iter().position(|byte| *byte == 0)?])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Vec<u8> {
        let mut bytes = MAGIC_LITTLE.to_vec();
        [1u32, 40, 62, 0, 77].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend([0; 16]);
        bytes
    }

    fn record(id: u32, time: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.extend((16 + body.len() as u32).to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn load(time: u64, address: u64, index: u64, name: &str, size: usize) -> Vec<u8> {
        let mut body = [77u32.to_le_bytes(), 78u32.to_le_bytes()].concat();
        for value in [address, address, size as u64, index] {
            body.extend(value.to_le_bytes());
        }
        body.extend(name.as_bytes());
        body.push(0);
        body.resize(body.len() + size, 0x90);
        record(JIT_CODE_LOAD, time, &body)
    }

    fn relocation(time: u64, old: u64, new: u64, size: u64, index: u64) -> Vec<u8> {
        let mut body = [77u32.to_le_bytes(), 78u32.to_le_bytes()].concat();
        for value in [old, old, new, size, index] {
            body.extend(value.to_le_bytes());
        }
        record(JIT_CODE_MOVE, time, &body)
    }

    fn lines(address: u64, lines: &[(u64, u32, &[u8])]) -> Vec<u8> {
        let mut body = address.to_le_bytes().to_vec();
        body.extend((lines.len() as u64).to_le_bytes());
        for (address, line, file) in lines {
            body.extend(address.to_le_bytes());
            body.extend(line.to_le_bytes());
            body.extend([0; 4]);
            body.extend(*file);
            body.push(0);
        }
        record(JIT_CODE_DEBUG_INFO, 0, &body)
    }

    fn parse(bytes: Vec<u8>) -> JitDump {
        JitDump::from_bytes(Path::new("jit-1.dump"), bytes.into()).unwrap()
    }

    fn name(dump: &JitDump, address: u64, time: u64) -> Option<String> {
        Some(dump.resolve(dump.locate(Avma(address), Some(TimestampNs(time))).ok()?)?.name)
    }

    #[test]
    fn code_is_found_by_address_and_time() {
        let mut bytes = header();
        bytes.extend(load(10, 0x1_fff0, 1, "first", 0x40));
        bytes.extend(load(20, 0x2_0000, 2, "second", 0x10));
        bytes.extend(relocation(30, 0x1_fff0, 0x9_0000, 0x40, 1));
        bytes.extend(record(JIT_CODE_CLOSE, 40, &[]));
        bytes.extend(load(50, 0x5_0000, 3, "behind the end", 0x10));
        let dump = parse(bytes);
        assert_eq!(name(&dump, 0x2_0008, 9), None);
        assert_eq!(name(&dump, 0x2_0008, 15).as_deref(), Some("first"));
        assert_eq!(name(&dump, 0x2_0008, 25).as_deref(), Some("second"));
        assert_eq!(name(&dump, 0x2_0018, 25).as_deref(), Some("first"));
        assert_eq!(name(&dump, 0x9_003f, 29), None);
        assert_eq!(name(&dump, 0x9_003f, 30).as_deref(), Some("first"));
        assert_eq!(name(&dump, 0x9_0040, 30), None);
        assert_eq!(name(&dump, 0x5_0000, 99), None);
        assert_eq!(dump.len(), 2);
    }

    #[test]
    fn without_a_time_code_is_found_that_was_alone() {
        let mut bytes = header();
        bytes.extend(load(10, 0x1000, 1, "first", 0x40));
        bytes.extend(load(20, 0x1020, 2, "second", 0x40));
        let at = |dump: &JitDump, address, time: Option<u64>| -> Result<String, JitMiss> {
            let offset = dump.locate(Avma(address), time.map(TimestampNs))?;
            Ok(dump.resolve(offset).unwrap().name)
        };
        let dump = parse(bytes.clone());
        assert_eq!(at(&dump, 0x1010, None).as_deref(), Ok("first"));
        assert_eq!(at(&dump, 0x1030, None), Err(JitMiss::TimeUnknown));
        assert_eq!(at(&dump, 0x1050, None).as_deref(), Ok("second"));
        assert_eq!(at(&dump, 0x1060, None), Err(JitMiss::NoCode));
        assert_eq!(at(&dump, 0x1010, Some(9)), Err(JitMiss::Later));
        // Times of a counter of the CPU tell nothing.
        bytes[FLAGS_AT] = 1;
        let dump = parse(bytes);
        assert_eq!(at(&dump, 0x1010, Some(9)).as_deref(), Ok("first"));
        assert_eq!(at(&dump, 0x1030, Some(15)), Err(JitMiss::CpuCounter));
    }

    #[test]
    fn code_ends_with_its_piece() {
        let dump = parse([header(), load(1, 0x1000, 1, "f", 0x30)].concat());
        let start = dump.locate(Avma(0x1000), Some(TimestampNs(1))).unwrap();
        assert_eq!(&*dump.code_at(start, 4).unwrap(), [0x90; 4]);
        assert_eq!(dump.code_at(FileOffset(start.0 + 0x2f), 9).unwrap().len(), 1);
        assert!(dump.code_at(FileOffset(start.0 + 0x30), 1).is_none());
        assert!(dump.code_at(FileOffset(0), 1).is_none());
    }

    #[test]
    fn lines_belong_to_the_code_behind_them() {
        let mut bytes = header();
        let entries: [(u64, u32, &[u8]); 3] =
            [(0x1000, 5, b"a.js"), (0x1010, 7, b"\xff"), (0x1020, 9, b"b.js")];
        bytes.extend(lines(0x1000, &entries));
        bytes.extend(load(1, 0x1000, 1, "f", 0x30));
        let dump = parse(bytes);
        let line = |address| {
            let line = dump.resolve(dump.locate(Avma(address), Some(TimestampNs(1))).ok()?)?.line?;
            Some((line.file, line.line))
        };
        assert_eq!(line(0x100f), Some(("a.js".into(), 5)));
        assert_eq!(line(0x1010), Some(("a.js".into(), 7)));
        assert_eq!(line(0x102f), Some(("b.js".into(), 9)));
    }

    fn unwinding(eh_frame: &[u8], hdr_size: u64) -> Vec<u8> {
        let mut body = Vec::new();
        for value in [eh_frame.len() as u64 + hdr_size, hdr_size, 0] {
            body.extend(value.to_le_bytes());
        }
        body.extend(eh_frame);
        body.resize(body.len() + hdr_size as usize, 0xee);
        record(JIT_CODE_UNWINDING_INFO, 0, &body)
    }

    #[test]
    fn unwinding_information_belongs_to_the_next_code_and_moves_with_it() {
        let mut bytes = header();
        bytes.extend(unwinding(b"first", 3));
        bytes.extend(load(1, 0x1000, 1, "f", 0x30));
        bytes.extend(load(1, 0x2000, 2, "without", 0x30));
        bytes.extend(relocation(2, 0x1000, 0x9000, 0x20, 1));
        let dump = parse(bytes);
        let pieces: Vec<_> = dump
            .unwinding()
            .map(|piece| (piece.start.0, piece.size_bytes, piece.eh_frame.to_vec()))
            .collect();
        assert_eq!(pieces, [(0x1000, 0x30, b"first".to_vec()), (0x9000, 0x20, b"first".to_vec())]);
    }

    #[test]
    fn unwinding_information_that_is_longer_than_its_record_is_left_out() {
        let mut long = unwinding(b"first", 3);
        long[16] = 200;
        let dump = parse([header(), long, load(1, 0x1000, 1, "f", 0x30)].concat());
        assert_eq!(dump.unwinding().count(), 0);
        let mut negative = unwinding(b"first", 3);
        negative[24] = 200;
        let dump = parse([header(), negative, load(1, 0x1000, 1, "f", 0x30)].concat());
        assert_eq!(dump.unwinding().count(), 0);
    }

    #[test]
    fn foreign_files_are_refused() {
        let refused = |bytes: Vec<u8>| JitDump::from_bytes(Path::new("x"), bytes.into()).is_err();
        assert!(refused(b"JiTD\0\0\0\x01\0\0\0\x28".to_vec()));
        assert!(refused(b"\x7fELF".to_vec()));
        assert!(refused(Vec::new()));
        let mut newer = header();
        newer[4] = 2;
        assert!(refused(newer));
    }

    proptest! {
        #[test]
        fn damage_is_survived(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = header();
            bytes.extend(lines(0x1000, &[(0x1000, 5, b"a.js"), (0x1010, 7, b"\xff")]));
            bytes.extend(unwinding(b"frame", 3));
            bytes.extend(load(1, 0x1000, 1, "f", 0x30));
            bytes.extend(relocation(2, 0x1000, 0x3000, 0x30, 1));
            bytes.extend(load(3, 0x1000, 2, "g", 0x20));
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len() * 2));
            if let Ok(dump) = JitDump::from_bytes(Path::new("x"), bytes.into()) {
                for address in [0x1000, 0x1020, 0x3001] {
                    name(&dump, address, u64::MAX);
                }
                (0..300).for_each(|offset| { dump.resolve(FileOffset(offset)); });
                dump.unwinding().for_each(drop);
            }
        }
    }
}
