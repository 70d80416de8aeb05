//! Noted answers to bytes. `docs/format.md` (WHIT_NAMES) has the layout.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whit_elf::Segment;
use whit_types::{FileId, InstructionSet};

use crate::dso::{DsoSymbols, Source};
use crate::dso_spec::DsoKind;
use crate::dwarf::{GivenUp, SourceLocation};
use crate::embedded::{Answers, BinaryKey, Inlined, Line, Meaning, Span, Symbol};
use crate::resolution::{Resolution, SymbolRef};
use crate::symbol_table::SymbolSource;

/// Texts and further values, each with a number in order of arrival.
struct Numbered<T> {
    numbers: FxHashMap<T, u32>,
    in_order: Vec<T>,
}

impl<T: Clone + Eq + std::hash::Hash> Numbered<T> {
    fn new() -> Numbered<T> {
        Numbered { numbers: FxHashMap::default(), in_order: Vec::new() }
    }

    fn number(&mut self, value: T) -> u32 {
        let next = self.in_order.len() as u32;
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.in_order.push(value.clone());
            next
        })
    }
}

/// Bytes in the making. Numbers have seven bits in each byte, the lowest first.
#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn count(&mut self, len: usize) {
        self.number(len as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Things by ascending address, each with the distance from the one before.
    fn ascending<T>(
        &mut self,
        things: impl ExactSizeIterator<Item = (u64, T)>,
        mut put: impl FnMut(&mut Out, T),
    ) {
        let mut before = 0;
        self.count(things.len());
        for (start, thing) in things {
            self.number(start - before);
            put(self, thing);
            before = start;
        }
    }

    fn numbers<const N: usize>(&mut self, numbers: [u64; N]) {
        for number in numbers {
            self.number(number);
        }
    }

    /// A number that may be absent.
    fn maybe(&mut self, value: Option<u32>) {
        self.number(value.map_or(0, |value| u64::from(value) + 1));
    }

    fn line(&mut self, line: Line) {
        self.maybe(line.map(|(file, _)| file));
        if let Some((_, line)) = line {
            self.number(u64::from(line));
        }
    }
}

/// Writes the names of binaries.
pub struct NamesWriter {
    texts: Numbered<Arc<str>>,
    binaries: Vec<Vec<u8>>,
    /// Texts of source lines by file.
    lines: BTreeMap<u32, BTreeMap<u32, u32>>,
}

impl Default for NamesWriter {
    fn default() -> Self {
        NamesWriter::new()
    }
}

impl NamesWriter {
    /// With no binary yet.
    pub fn new() -> NamesWriter {
        NamesWriter { texts: Numbered::new(), binaries: Vec::new(), lines: BTreeMap::new() }
    }

    /// Adds the noted answers of a binary.
    pub fn add(&mut self, key: &BinaryKey, binary: &DsoSymbols) {
        let Some(notes) = binary.notes() else { return };
        let answers = notes.answers();
        let mut out = Out::default();
        self.key(key, &mut out);
        self.reason(binary, &mut out);
        image(binary, &mut out);
        self.answers(&answers, &mut out);
        places(binary, &answers, &mut out);
        let missing = binary.missing_units();
        out.count(missing.count);
        out.count(missing.named.len());
        for path in &missing.named {
            out.number(u64::from(self.text(&path.to_string_lossy())));
        }
        let GivenUp { nesting, reading, packed_bytes, map_bytes } = binary.given_up();
        out.numbers([nesting as u64, reading as u64, packed_bytes, map_bytes]);
        self.binaries.push(out.0);
    }

    /// Adds the text of a line of a source file.
    pub fn add_line(&mut self, file: &Arc<str>, line: u32, text: &str) {
        let file = self.texts.number(file.clone());
        let text = self.text(text);
        self.lines.entry(file).or_default().insert(line, text);
    }

    /// All bytes.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Out::default();
        out.count(self.texts.in_order.len());
        self.texts.in_order.iter().for_each(|text| out.bytes(text.as_bytes()));
        out.count(self.binaries.len());
        self.binaries.iter().for_each(|binary| out.bytes(binary));
        out.count(self.lines.len());
        for (file, lines) in &self.lines {
            out.number(u64::from(*file));
            let lines = lines.iter().map(|(line, text)| (u64::from(*line), u64::from(*text)));
            out.ascending(lines, Out::number);
        }
        out.0
    }

    fn text(&mut self, text: &str) -> u32 {
        self.texts.number(Arc::from(text))
    }

    fn key(&mut self, key: &BinaryKey, out: &mut Out) {
        let BinaryKey { kind, path, build_id, pid, file } = key;
        out.number(kind_number(*kind));
        out.number(u64::from(self.text(path)));
        out.bytes(build_id.as_ref().map_or(&[][..], |id| id.as_bytes()));
        out.maybe(pid.map(|pid| pid.0 as u32));
        out.number(u64::from(file.is_some()));
        if let Some(FileId { device: (major, minor), inode }) = file {
            out.numbers([u64::from(*major), u64::from(*minor), *inode]);
        }
    }

    fn reason(&mut self, binary: &DsoSymbols, out: &mut Out) {
        let text = binary.reason().map(|reason| self.text(&reason.to_string()));
        out.maybe(text);
        if let Some(reason) = binary.reason() {
            out.number(u64::from(reason.is_unopened()));
        }
    }

    fn answers(&mut self, answers: &Answers, out: &mut Out) {
        let (mut symbols, mut meanings) = (Numbered::new(), Numbered::new());
        for variable in answers.variables.values() {
            symbols.number(self.symbol(variable));
        }
        let mut spans: Vec<Span> = Vec::new();
        for (address, resolution) in &answers.resolutions {
            let meaning = self.meaning(resolution, &mut symbols);
            let meaning = meanings.number(meaning);
            match spans.last_mut() {
                Some(last) if last.continues(*address, meaning) => last.size_bytes += 1,
                _ => spans.push(Span { start: *address, size_bytes: 1, meaning }),
            }
        }
        put_symbols(&symbols.in_order, out);
        put_meanings(&meanings.in_order, out);
        out.ascending(spans.iter().map(|span| (span.start, span)), |out, span| {
            out.number(span.size_bytes);
            out.number(u64::from(span.meaning));
        });
        let unnamed = answers.unnamed.iter().map(|(start, end)| (*start, end - start));
        out.ascending(unnamed, Out::number);
        let code = answers.code.iter().map(|(start, bytes)| (*start, bytes));
        out.ascending(code, |out, bytes| out.bytes(bytes));
    }

    fn symbol(&mut self, symbol: &SymbolRef) -> Symbol {
        Symbol {
            start: symbol.start.0,
            size_bytes: symbol.size_bytes,
            name: self.texts.number(symbol.raw.clone()),
            source: symbol.source,
            module: symbol.module.as_ref().map(|module| self.texts.number(module.clone())),
        }
    }

    fn line(&mut self, location: Option<&SourceLocation>) -> Line {
        location.map(|at| (self.texts.number(at.file.clone()), at.line))
    }

    fn meaning(&mut self, resolution: &Resolution, symbols: &mut Numbered<Symbol>) -> Meaning {
        let function =
            resolution.function.as_ref().map(|function| symbols.number(self.symbol(function)));
        let line = self.line(resolution.location.as_ref());
        let inlined = resolution.inlined.iter().map(|frame| Inlined {
            name: self.texts.number(frame.raw.clone()),
            line: self.line(frame.location.as_ref()),
            call_site: self.line(frame.call_site.as_ref()),
        });
        Meaning { function, line, inlined: inlined.collect() }
    }
}

fn put_symbols(symbols: &[Symbol], out: &mut Out) {
    out.count(symbols.len());
    for symbol in symbols {
        out.number(symbol.start);
        out.number(symbol.size_bytes);
        out.number(u64::from(symbol.name));
        out.number(source_number(symbol.source));
        out.maybe(symbol.module);
    }
}

fn put_meanings(meanings: &[Meaning], out: &mut Out) {
    out.count(meanings.len());
    for meaning in meanings {
        out.maybe(meaning.function);
        out.line(meaning.line);
        out.count(meaning.inlined.len());
        for inlined in &meaning.inlined {
            out.number(u64::from(inlined.name));
            out.line(inlined.line);
            out.line(inlined.call_site);
        }
    }
}

fn image(binary: &DsoSymbols, out: &mut Out) {
    let segments = binary.segments();
    out.number(u64::from(segments.is_some()));
    let Some(segments) = segments else { return };
    out.number(instruction_set_number(binary.instruction_set()));
    out.count(segments.len());
    for segment in segments {
        let Segment { svma, offset, file_size_bytes, memory_size_bytes, executable } = segment;
        let (sizes, executable) = ([*file_size_bytes, *memory_size_bytes], u64::from(*executable));
        out.numbers([svma.0, offset.0, sizes[0], sizes[1], executable]);
    }
}

/// The places of code that was asked for.
fn places(binary: &DsoSymbols, answers: &Answers, out: &mut Out) {
    let all = match &binary.source {
        Source::JitDump(dump) => Some(&dump.places),
        Source::Embedded(names, number) => names.binary(*number).map(|binary| &binary.places),
        _ => None,
    };
    let is_asked_for = |start: u64, size: u64| {
        let end = start.saturating_add(size);
        answers.resolutions.range(start..end).next().is_some()
    };
    let places = all.into_iter().flat_map(|all| all.iter());
    let places: Vec<_> = places.filter(|place| is_asked_for(place.offset, place.size)).collect();
    out.count(places.len());
    for place in places {
        out.numbers([place.from.0, place.start, place.size, place.offset]);
    }
}

fn kind_number(kind: DsoKind) -> u64 {
    match kind {
        DsoKind::Elf => 0,
        DsoKind::Vdso => 1,
        DsoKind::Kernel | DsoKind::KernelModule => 2,
        DsoKind::PerfMap => 3,
        DsoKind::JitDump => 4,
        DsoKind::Unknown => 5,
    }
}

fn source_number(source: SymbolSource) -> u64 {
    match source {
        SymbolSource::Symtab => 0,
        SymbolSource::Dynsym => 1,
        SymbolSource::Plt => 2,
        SymbolSource::Kallsyms => 3,
        SymbolSource::PerfMap => 4,
        SymbolSource::JitDump => 5,
    }
}

fn instruction_set_number(set: Option<InstructionSet>) -> u64 {
    match set {
        None => 0,
        Some(InstructionSet::X86_64) => 1,
        Some(InstructionSet::X86_32) => 2,
        Some(InstructionSet::Aarch64) => 3,
    }
}

#[cfg(test)]
mod tests;
