//! Bytes to noted answers. No bytes make it panic, or take memory beyond a multiple of theirs.

use std::path::Path;
use std::sync::Arc;

use whit_elf::Segment;
use whit_types::{BuildId, FileId, FileOffset, InstructionSet, Pid, Svma, TimestampNs};
use whit_unwind::Bytes;

use super::{
    BinaryKey, EmbeddedBinary, EmbeddedImage, EmbeddedNames, Inlined, Line, Meaning, Span, Symbol,
};
use crate::dso_spec::DsoKind;
use crate::dwarf::GivenUp;
use crate::jit_places::{JitPlace, JitPlaces};
use crate::reason::Reason;
use crate::split_files::MissingUnits;
use crate::symbol_table::SymbolSource;

/// Entries of places of code in blocks of addresses: a place of a few bytes may stand in 16,385 of them.
const MAX_ENTRIES: u64 = 1 << 22;

/// Texts of a section: an empty one takes one byte there, and some 40 in memory.
const MAX_TEXTS: usize = 1 << 22;

/// Bytes that are read from the front.
struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            // The last byte has one bit.
            if bits.leading_zeros() < shift {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// The number of things that follow, each of a byte at least.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let size = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(bytes)
    }

    fn maybe(&mut self) -> Option<Option<u32>> {
        let number = self.number()?;
        match number.checked_sub(1) {
            Some(value) => Some(Some(value.try_into().ok()?)),
            None => Some(None),
        }
    }

    fn line(&mut self) -> Option<Line> {
        match self.maybe()? {
            Some(file) => Some(Some((file, self.small()?))),
            None => Some(None),
        }
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.count()?).map(|_| one(self)).collect()
    }

    /// Things by ascending address, each stated as the distance from the one before.
    fn ascending<T>(&mut self, mut one: impl FnMut(&mut Self, u64) -> Option<T>) -> Option<Vec<T>> {
        let mut at = 0u64;
        self.list(|from| {
            at = at.checked_add(from.number()?)?;
            one(from, at)
        })
    }
}

impl EmbeddedNames {
    /// Reads what a [`NamesWriter`](crate::NamesWriter) wrote. `None` for bytes that contradict themselves.
    pub fn from_bytes(bytes: &[u8]) -> Option<EmbeddedNames> {
        let mut from = In(bytes);
        let mut room = MAX_TEXTS;
        let texts = from.list(|from| {
            room = room.checked_sub(1)?;
            Some(Arc::from(String::from_utf8_lossy(from.bytes()?)))
        })?;
        let mut names = EmbeddedNames { texts, ..EmbeddedNames::default() };
        for number in 0..from.count()? {
            // Later versions append to a binary.
            let mut of_binary = In(from.bytes()?);
            let key = names.key(&mut of_binary)?;
            let binary = names.decode_binary(&mut of_binary)?;
            names.by_key.insert(key, number as u32);
            names.binaries.push(binary);
        }
        for (file, lines) in from.list(source_file)? {
            let file = names.text(file);
            for (line, text) in lines {
                let text = names.text(text);
                names.lines.insert((file.clone(), u32::try_from(line).ok()?), text);
            }
        }
        Some(names)
    }

    fn key(&self, from: &mut In<'_>) -> Option<BinaryKey> {
        let kind = match from.number()? {
            0 => DsoKind::Elf,
            1 => DsoKind::Vdso,
            2 => DsoKind::Kernel,
            3 => DsoKind::PerfMap,
            4 => DsoKind::JitDump,
            _ => DsoKind::Unknown,
        };
        let path = self.text(from.small()?);
        let build_id = BuildId::new(from.bytes()?);
        let pid = from.maybe()?.map(|pid| Pid(pid as i32));
        let file = match from.number()? {
            0 => None,
            _ => Some(FileId { device: (from.small()?, from.small()?), inode: from.number()? }),
        };
        Some(BinaryKey { kind, path, build_id, pid, file })
    }

    fn decode_binary(&self, from: &mut In<'_>) -> Option<EmbeddedBinary> {
        let reason = match from.maybe()? {
            Some(text) => {
                Some(Reason::Recorded { text: self.text(text), unopened: from.number()? != 0 })
            }
            None => None,
        };
        let image = match from.number()? {
            0 => None,
            _ => Some(image(from)?),
        };
        let symbols = from.list(symbol)?;
        let meanings = from.list(meaning)?;
        let spans = from.ascending(|from, start| {
            Some(Span { start, size_bytes: from.number()?, meaning: from.small()? })
        })?;
        let unnamed = from.ascending(|from, start| Some((start, from.number()?)))?;
        let code =
            from.ascending(|from, start| Some((start, Bytes::from(from.bytes()?.to_vec()))))?;
        let mut places = JitPlaces::default();
        from.list(|from| {
            places.push(JitPlace {
                from: TimestampNs(from.number()?),
                start: from.number()?,
                size: from.number()?,
                offset: from.number()?,
            });
            (places.entries() <= MAX_ENTRIES).then_some(())
        })?;
        let count = usize::try_from(from.number()?).ok()?;
        let named = from.list(|from| Some(Arc::from(Path::new(&*self.text(from.small()?)))))?;
        let missing_units = MissingUnits { named, count };
        // Earlier versions end before.
        let mut given_up = || from.number().unwrap_or_default();
        let given_up = GivenUp {
            nesting: given_up() as usize,
            reading: given_up() as usize,
            packed_bytes: given_up(),
            map_bytes: given_up(),
        };
        let (symbols, meanings) = by_start(symbols, meanings);
        let binary = EmbeddedBinary {
            reason,
            image,
            places,
            missing_units,
            given_up,
            symbols,
            meanings,
            spans,
            unnamed,
            code,
        };
        Some(binary)
    }
}

/// A source file, and texts by number of the line.
fn source_file(from: &mut In<'_>) -> Option<(u32, Vec<(u64, u32)>)> {
    Some((from.small()?, from.ascending(|from, line| Some((line, from.small()?)))?))
}

/// Sorts the symbols, and renumbers them.
fn by_start(symbols: Vec<Symbol>, mut meanings: Vec<Meaning>) -> (Vec<Symbol>, Vec<Meaning>) {
    let mut order: Vec<u32> = (0..symbols.len() as u32).collect();
    order.sort_by_key(|number| symbols[*number as usize].start);
    let mut number_of = vec![0; order.len()];
    for (new, old) in (0..).zip(&order) {
        number_of[*old as usize] = new;
    }
    for function in meanings.iter_mut().filter_map(|meaning| meaning.function.as_mut()) {
        *function = number_of.get(*function as usize).copied().unwrap_or(u32::MAX);
    }
    (order.into_iter().map(|number| symbols[number as usize]).collect(), meanings)
}

fn image(from: &mut In<'_>) -> Option<EmbeddedImage> {
    let instruction_set = match from.number()? {
        1 => Some(InstructionSet::X86_64),
        2 => Some(InstructionSet::X86_32),
        3 => Some(InstructionSet::Aarch64),
        _ => None,
    };
    let segments = from.list(|from| {
        Some(Segment {
            svma: Svma(from.number()?),
            offset: FileOffset(from.number()?),
            file_size_bytes: from.number()?,
            memory_size_bytes: from.number()?,
            executable: from.number()? != 0,
        })
    })?;
    Some(EmbeddedImage { segments, instruction_set })
}

fn symbol(from: &mut In<'_>) -> Option<Symbol> {
    let (start, size_bytes, name) = (from.number()?, from.number()?, from.small()?);
    let source = match from.number()? {
        0 => SymbolSource::Symtab,
        1 => SymbolSource::Dynsym,
        2 => SymbolSource::Plt,
        3 => SymbolSource::Kallsyms,
        4 => SymbolSource::PerfMap,
        _ => SymbolSource::JitDump,
    };
    Some(Symbol { start, size_bytes, name, source, module: from.maybe()? })
}

fn meaning(from: &mut In<'_>) -> Option<Meaning> {
    let (function, line) = (from.maybe()?, from.line()?);
    let inlined = from.list(|from| {
        Some(Inlined { name: from.small()?, line: from.line()?, call_site: from.line()? })
    })?;
    Some(Meaning { function, line, inlined })
}
