//! Names that a recording carries itself, so that it reads the same on a machine without the binaries.
//!
//! They are answers, not symbol tables: of each binary those that a reader of the recording asks for, as
//! [`SymbolizerConfig::notes`](crate::SymbolizerConfig::notes) has them noted. Questions without a noted answer go to the
//! binary, where it is at hand.

mod decode;
mod noted;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whit_elf::Segment;
use whit_types::{BuildId, FileId, InstructionSet, Pid, Svma};
use whit_unwind::Bytes;

use crate::dso_spec::DsoKind;
use crate::dwarf::{GivenUp, SourceLocation};
use crate::jit_places::JitPlaces;
use crate::reason::Reason;
use crate::resolution::{InlinedFrame, Resolution, SymbolRef};
use crate::split_files::MissingUnits;
use crate::symbol_table::SymbolSource;

pub(crate) use noted::{Answers, Notes};

/// Functions that may lie inside one another, as in a table of symbols.
const MAX_NESTING: usize = 16;

/// Which binary of a recording.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BinaryKey {
    /// Kernel modules count as the kernel.
    pub kind: DsoKind,
    /// Path as recorded; empty for the kernel.
    pub path: Arc<str>,
    /// Build id as recorded.
    pub build_id: Option<BuildId>,
    /// The process, for code of a JIT compiler.
    pub pid: Option<Pid>,
    /// Which file, where no build id says it.
    pub file: Option<FileId>,
}

impl BinaryKey {
    /// The kernel with its modules, which share one list of symbols.
    pub fn kernel() -> BinaryKey {
        let (kind, path) = (DsoKind::Kernel, Arc::from(""));
        BinaryKey { kind, path, build_id: None, pid: None, file: None }
    }
}

/// Names of a recording's binaries.
#[derive(Debug, Default)]
pub struct EmbeddedNames {
    texts: Vec<Arc<str>>,
    binaries: Vec<EmbeddedBinary>,
    by_key: FxHashMap<BinaryKey, u32>,
    /// Texts of source lines, by file and number.
    lines: FxHashMap<(Arc<str>, u32), Arc<str>>,
}

impl EmbeddedNames {
    /// The number of a binary, if there are names of it.
    pub fn find(&self, key: &BinaryKey) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    /// The text of a line of a source file.
    pub fn line(&self, file: &Arc<str>, line: u32) -> Option<&Arc<str>> {
        self.lines.get(&(file.clone(), line))
    }

    /// The number of binaries.
    pub fn len(&self) -> usize {
        self.binaries.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.binaries.is_empty()
    }

    pub(crate) fn binary(&self, number: u32) -> Option<&EmbeddedBinary> {
        self.binaries.get(number as usize)
    }

    fn text(&self, number: u32) -> Arc<str> {
        self.texts.get(number as usize).cloned().unwrap_or_default()
    }
}

/// The parts of an ELF file that tell where its code lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddedImage {
    pub(crate) segments: Vec<Segment>,
    pub(crate) instruction_set: Option<InstructionSet>,
}

/// A function or variable. Texts are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Symbol {
    pub(crate) start: u64,
    pub(crate) size_bytes: u64,
    pub(crate) name: u32,
    pub(crate) source: SymbolSource,
    pub(crate) module: Option<u32>,
}

impl Symbol {
    fn covers(&self, address: u64) -> bool {
        let at = address.checked_sub(self.start);
        at.is_some_and(|at| at < self.size_bytes || at == 0)
    }
}

pub(crate) type Line = Option<(u32, u32)>;

/// A function that was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inlined {
    pub(crate) name: u32,
    pub(crate) line: Line,
    pub(crate) call_site: Line,
}

/// The meaning of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Meaning {
    pub(crate) function: Option<u32>,
    pub(crate) line: Line,
    pub(crate) inlined: Vec<Inlined>,
}

/// Addresses in a row that mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) size_bytes: u64,
    pub(crate) meaning: u32,
}

impl Span {
    /// Whether the next address means the same.
    pub(crate) fn continues(&self, address: u64, meaning: u32) -> bool {
        self.meaning == meaning && self.start.checked_add(self.size_bytes) == Some(address)
    }
}

/// Answers about one binary.
#[derive(Debug, Default)]
pub(crate) struct EmbeddedBinary {
    /// Why there was nothing to look into.
    pub(crate) reason: Option<Reason>,
    pub(crate) image: Option<EmbeddedImage>,
    pub(crate) places: JitPlaces,
    pub(crate) missing_units: MissingUnits,
    pub(crate) given_up: GivenUp,
    /// By start.
    symbols: Vec<Symbol>,
    meanings: Vec<Meaning>,
    /// By start; none overlaps another.
    spans: Vec<Span>,
    /// Functions without symbols, by start.
    unnamed: Vec<(u64, u64)>,
    /// By start.
    code: Vec<(u64, Bytes)>,
}

impl EmbeddedNames {
    /// The noted meaning of an address. Names are as the file has them.
    pub(crate) fn resolve(&self, binary: &EmbeddedBinary, address: Svma) -> Option<Resolution> {
        let after = binary.spans.partition_point(|span| span.start <= address.0);
        let span = binary.spans.get(after.checked_sub(1)?)?;
        if address.0 - span.start >= span.size_bytes {
            return None;
        }
        let meaning = binary.meanings.get(span.meaning as usize)?;
        let function = meaning.function.and_then(|number| binary.symbols.get(number as usize));
        let inlined = |inlined: &Inlined| InlinedFrame {
            name: self.text(inlined.name),
            raw: self.text(inlined.name),
            location: self.location(inlined.line),
            call_site: self.location(inlined.call_site),
        };
        Some(Resolution {
            function: function.map(|symbol| self.symbol_ref(symbol)),
            inlined: meaning.inlined.iter().map(inlined).collect(),
            location: self.location(meaning.line),
            reason: function.is_none().then_some(Reason::OutsideSymbols),
        })
    }

    /// The noted function around an address, though its line was not noted.
    pub(crate) fn function(&self, binary: &EmbeddedBinary, address: Svma) -> Option<SymbolRef> {
        binary.symbol(address).map(|symbol| self.symbol_ref(symbol))
    }

    fn symbol_ref(&self, symbol: &Symbol) -> SymbolRef {
        let name = self.text(symbol.name);
        SymbolRef {
            raw: name.clone(),
            name,
            start: Svma(symbol.start),
            size_bytes: symbol.size_bytes,
            source: symbol.source,
            module: symbol.module.map(|module| self.text(module)),
        }
    }

    fn location(&self, line: Line) -> Option<SourceLocation> {
        line.map(|(file, line)| SourceLocation { file: self.text(file), line })
    }
}

impl EmbeddedBinary {
    fn symbol(&self, address: Svma) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address.0);
        let mut nearest = self.symbols[..after].iter().rev().take(MAX_NESTING);
        nearest.find(|symbol| symbol.covers(address.0))
    }

    /// The range of the noted function around an address.
    pub(crate) fn function_range(&self, address: Svma) -> Option<Range<Svma>> {
        let symbol = self.symbol(address)?;
        Some(Svma(symbol.start)..Svma(symbol.start.saturating_add(symbol.size_bytes)))
    }

    /// The noted function without a symbol around an address.
    pub(crate) fn unnamed_function(&self, address: Svma) -> Option<Range<Svma>> {
        let after = self.unnamed.partition_point(|(start, _)| *start <= address.0);
        let (start, size_bytes) = self.unnamed.get(after.checked_sub(1)?)?;
        let end = start.saturating_add(*size_bytes);
        (address.0 < end).then_some(Svma(*start)..Svma(end))
    }

    /// Noted bytes from an address on.
    pub(crate) fn code_at(&self, start: Svma, size_bytes: u64) -> Option<Bytes> {
        let after = self.code.partition_point(|(first, _)| *first <= start.0);
        let (first, bytes) = self.code.get(after.checked_sub(1)?)?;
        let at = start.0 - first;
        let left = (bytes.len() as u64).checked_sub(at).filter(|left| *left > 0)?;
        bytes.slice(at..at + size_bytes.min(left))
    }
}
