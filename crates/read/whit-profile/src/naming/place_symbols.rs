//! Naming one place in the code.

use crate::call_chain::chain::CodePlace;
use crate::machine_model::binaries::Binaries;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::{DsoTable, RecordedKind};
use std::sync::Arc;
use whit_perfdata::interpreted::InterpretedFunction;
use whit_symbolize::Resolution;
use whit_types::{Avma, FileOffset, Svma};

/// A function that was inlined at a place.
#[derive(Clone, Debug)]
pub(crate) struct InlinedCode {
    pub(crate) name: Arc<str>,
    /// Where in it execution was.
    pub(crate) source: Option<(Arc<str>, u32)>,
}

/// The names, the address and the source line of a place in the code.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedCode {
    /// Address as the binary states it.
    pub(crate) address: Svma,
    /// Physical function and the start of its code.
    pub(crate) function: Option<Arc<str>>,
    pub(crate) function_start: Svma,
    /// Size of its code, where known.
    pub(crate) function_size_bytes: Option<u64>,
    /// The name that stands for a function without one, where code is summed up by function.
    pub(crate) stand_in: Option<Arc<str>>,
    /// Source line in the physical function.
    pub(crate) source: Option<(Arc<str>, u32)>,
    /// Inlined functions, the outermost first.
    pub(crate) inlined: Vec<InlinedCode>,
}

/// Names places.
pub(crate) struct PlaceNamer<'a> {
    dsos: &'a DsoTable,
    binaries: &'a Binaries,
}

impl<'a> PlaceNamer<'a> {
    pub(crate) fn new(dsos: &'a DsoTable, binaries: &'a Binaries) -> Self {
        PlaceNamer { dsos, binaries }
    }

    pub(crate) fn name(&self, place: &CodePlace) -> NamedCode {
        let mut named = self.by_symbol(place);
        if named.function.is_none() {
            named.stand_in = self.stand_in(place.dso, named.address);
        }
        named
    }

    /// A name for code without a symbol. In a stripped binary it has the start of the function, which stays the
    /// same from run to run. Unnamed code of a JIT compiler shares one name for each region.
    fn stand_in(&self, dso: DsoIndex, address: Svma) -> Option<Arc<str>> {
        let recorded = self.dsos.get(dso);
        let (kind, start) = match recorded.kind {
            RecordedKind::File | RecordedKind::Vdso => {
                ("fun", self.binaries.get(dso)?.symbols.unnamed_function(address)?.start.0)
            }
            RecordedKind::Anonymous(_) => ("jit", self.dsos.code_region(dso, Avma(address.0))?.0),
            _ => return None,
        };
        let binary = recorded.path.rsplit('/').next().unwrap_or_default();
        Some(format!("{kind}_{start:x}@{binary}").into())
    }

    fn by_symbol(&self, place: &CodePlace) -> NamedCode {
        let dso = self.dsos.get(place.dso);
        let unnamed = NamedCode { address: Svma(place.place), ..NamedCode::default() };
        let binary = self.binaries.get(place.dso);
        let resolve = |address| {
            binary.map_or(unnamed.clone(), |b| named(address, b.symbols.resolve(address)))
        };
        match dso.kind {
            RecordedKind::Unknown => unnamed,
            RecordedKind::KernelSymbol(start) => NamedCode {
                function: Some(dso.path.clone()),
                function_start: Svma(start.0),
                ..unnamed
            },
            RecordedKind::File | RecordedKind::Vdso => {
                let offset = FileOffset(place.place);
                match binary.and_then(|binary| binary.symbols.svma_of(offset)) {
                    Some(svma) => resolve(svma),
                    None => unnamed,
                }
            }
            RecordedKind::Interpreted(pid) => {
                match self.dsos.interpreted_function(pid, place.place) {
                    Some(function) => interpreted(place.place, function),
                    None => unnamed,
                }
            }
            RecordedKind::Kernel
            | RecordedKind::KernelModule
            | RecordedKind::Anonymous(_)
            | RecordedKind::JitDump => resolve(Svma(place.place)),
        }
    }
}

/// The recorder has read the names, so that they cost nothing here.
fn interpreted(address: u64, function: &InterpretedFunction) -> NamedCode {
    let text = |bytes: &[u8]| Arc::<str>::from(String::from_utf8_lossy(bytes));
    NamedCode {
        address: Svma(address),
        function: Some(text(&function.name)),
        function_start: Svma(function.start),
        function_size_bytes: Some(function.size_bytes),
        source: function.line(address).map(|line| (text(&function.file), line)),
        ..NamedCode::default()
    }
}

fn named(address: Svma, resolution: Resolution) -> NamedCode {
    let function_start = resolution.function.as_ref().map_or(address, |f| f.start);
    let function_size_bytes = resolution.function.as_ref().map(|f| f.size_bytes);
    NamedCode {
        address,
        function: resolution.function.map(|function| function.name),
        function_start,
        function_size_bytes,
        stand_in: None,
        source: resolution.location.map(|location| (location.file, location.line)),
        inlined: resolution
            .inlined
            .into_iter()
            .map(|frame| InlinedCode {
                name: frame.name,
                source: frame.location.map(|location| (location.file, location.line)),
            })
            .collect(),
    }
}
