//! Places: the part of a row's key that comes from a code location.

use rustc_hash::FxHashMap;
use whit_profile::model::{DsoId, FileId, Frame, FunctionId, Profile};
use whit_types::Svma;

use super::sort_key::SortKey;

/// The source position in a row's key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SourceKey {
    /// No key asks for it.
    Unused,
    /// File and line.
    Line(FileId, u32),
    /// A source file without a line.
    File(FileId),
    /// No line is known: the function stands for it.
    Function(FunctionId),
    /// Neither line nor function is known: the address stands for them.
    Address(DsoId, Svma),
    /// No file is known.
    NoFile,
}

/// The part of a row's key that comes from a code location; what no sort key asks for is blank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CodeLocation {
    /// Binary, where `dso` or `symbol` is a key. It is the first of all binaries with its short name.
    pub dso: Option<DsoId>,
    /// Function, where `symbol` is a key.
    pub function: Option<FunctionId>,
    /// True for a function that was inlined, where `symbol` is a key.
    pub inlined: bool,
    /// True for kernel code, where `symbol` is a key.
    pub kernel: bool,
    /// Source position, where `srcline` or `srcfile` is a key.
    pub source: SourceKey,
    /// Size of the function's code, where `symbol_size` is a key and it is known.
    pub symbol_bytes: Option<u64>,
    /// Size of the binary's mapping, where `dso_size` is a key and it is known.
    pub dso_bytes: Option<u64>,
}

/// Index into [`Places`].
pub(super) type PlaceIndex = u32;

/// The distinct places of a profile under one list of sort keys.
pub(super) struct Places {
    list: Vec<CodeLocation>,
    index: FxHashMap<CodeLocation, PlaceIndex>,
    first_dso_of_name: Vec<DsoId>,
    by_dso: bool,
    by_symbol: bool,
    by_line: bool,
    by_file: bool,
    by_symbol_size: bool,
    by_dso_size: bool,
}

impl Places {
    pub(super) fn new(profile: &Profile, keys: &[SortKey]) -> Places {
        Places {
            list: Vec::new(),
            index: FxHashMap::default(),
            first_dso_of_name: first_dso_of_name(profile),
            by_dso: keys.contains(&SortKey::Dso),
            by_symbol: keys.contains(&SortKey::Symbol),
            by_line: keys.contains(&SortKey::SrcLine),
            by_file: keys.contains(&SortKey::SrcFile),
            by_symbol_size: keys.contains(&SortKey::SymbolSize),
            by_dso_size: keys.contains(&SortKey::DsoSize),
        }
    }

    /// True where the key depends on more than the function.
    pub(super) fn uses_source(&self) -> bool {
        self.by_line || self.by_file
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, index: PlaceIndex) -> CodeLocation {
        self.list[index as usize]
    }

    /// The index of a place; `None` where no code is there.
    pub(super) fn find(&self, place: &CodeLocation) -> Option<PlaceIndex> {
        self.index.get(place).copied()
    }

    /// The place of a frame of a call chain.
    pub(super) fn of_frame(&mut self, profile: &Profile, frame: &Frame) -> PlaceIndex {
        self.intern(profile, frame, frame)
    }

    /// The place that a sample itself counts for under perf's rule: the physical function, since that is what the
    /// symbol table says, at the line of the innermost frame, since that is what the line table
    /// says of the address.
    pub(super) fn of_self(
        &mut self,
        profile: &Profile,
        physical: &Frame,
        leaf: &Frame,
    ) -> PlaceIndex {
        self.intern(profile, physical, leaf)
    }

    fn intern(&mut self, profile: &Profile, code: &Frame, line: &Frame) -> PlaceIndex {
        let function = &profile.functions[code.function.index()];
        let with_dso = self.by_dso || self.by_symbol;
        let place = CodeLocation {
            dso: with_dso.then(|| self.first_dso_of_name[function.dso.index()]),
            function: self.by_symbol.then_some(code.function),
            inlined: self.by_symbol && code.inlined,
            kernel: self.by_symbol && code.kernel,
            source: self.source(profile, code, line),
            symbol_bytes: size(self.by_symbol_size, &profile.function_sizes_bytes, code.function.0),
            dso_bytes: size(self.by_dso_size, &profile.mapped_bytes, function.dso.0),
        };
        let next = self.list.len() as PlaceIndex;
        *self.index.entry(place).or_insert_with(|| {
            self.list.push(place);
            next
        })
    }

    fn source(&self, profile: &Profile, code: &Frame, line: &Frame) -> SourceKey {
        if !self.uses_source() {
            return SourceKey::Unused;
        }
        match line.source {
            Some((file, line)) if self.by_line => SourceKey::Line(file, line),
            Some((file, _)) => SourceKey::File(file),
            None if !self.by_line => SourceKey::NoFile,
            None if profile.functions[code.function.index()].known => {
                SourceKey::Function(code.function)
            }
            None => SourceKey::Address(profile.functions[code.function.index()].dso, code.address),
        }
    }
}

/// A size, where it is asked for and known.
fn size(is_wanted: bool, sizes: &[Option<u64>], index: u32) -> Option<u64> {
    sizes.get(index as usize).copied().flatten().filter(|_| is_wanted)
}

/// perf joins binaries of one short name (the same library at two paths) in a row.
fn first_dso_of_name(profile: &Profile) -> Vec<DsoId> {
    let mut first = FxHashMap::default();
    let ids = profile.dsos.iter().enumerate().map(|(i, dso)| {
        let id = DsoId(i as u32);
        *first.entry(dso.short_name.exact()).or_insert(id)
    });
    ids.collect()
}
