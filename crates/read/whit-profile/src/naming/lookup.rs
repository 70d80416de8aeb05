//! Looks up code, data and cgroups as the process of a sample saw them at that time.

use crate::call_chain::chain::{ChainMaker, CodePlace};
use crate::call_chain::chain_entry::{ChainEntry, side_of_address};
use crate::first_pass::prepare::Prepared;
use crate::machine_model::address_map::Mapping;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::RecordedKind;
use crate::machine_model::process::Epoch;
use crate::naming::place_names::PlaceNames;
use crate::naming::scripted_frame::ScriptedFrame;
use std::sync::Arc;
use whit_types::{Avma, FileOffset, OutsideText, Pid, TimestampNs};

/// Code at an address.
#[derive(Clone, Debug, Default)]
pub struct CodeAt {
    /// Function, where known.
    pub function: Option<OutsideText<Arc<str>>>,
    /// Distance from the function's start.
    pub function_offset: u64,
    /// Path of the binary; `None` where no mapping explains the address.
    pub dso: Option<OutsideText<Arc<str>>>,
    /// The same as a number.
    pub(crate) dso_index: Option<DsoIndex>,
}

impl CodeAt {
    /// The same as a frame.
    pub fn frame(&self, address: Avma) -> ScriptedFrame<'_> {
        ScriptedFrame {
            address,
            function: self.function.as_ref().map(OutsideText::borrowed),
            function_offset: self.function_offset,
            dso: self.dso.as_ref().map(OutsideText::borrowed),
            source: None,
            inlined: false,
        }
    }
}

/// Looks addresses up in the address space of a sample, at its time.
pub trait CodeLookup {
    /// The path of a cgroup, where it was recorded.
    fn cgroup(&self, number: u64) -> Option<OutsideText<&str>>;

    /// The kernel function at an address, and the distance from its start.
    fn kernel_function_at(&self, address: u64) -> Option<(Arc<str>, u64)>;

    /// The variable, or code, at an address of the process or of the kernel. Binaries' names are
    /// known as far as mappings of data were recorded.
    fn data_at(&self, address: Avma) -> CodeAt;

    /// The code at an address of the kernel (the upper half) or of the process.
    fn code_at(&self, address: Avma) -> CodeAt;

    /// Appends the bytes of the code at an address of the process, at most so many, and tells the width of its addresses
    /// in bits. Nothing for the kernel's code and for binaries that are not at hand.
    fn code_bytes(&self, address: Avma, most: usize, out: &mut Vec<u8>) -> Option<u32>;
}

/// The lookup in a process model.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) names: &'a PlaceNames<'a>,
    pub(crate) maker: &'a ChainMaker<'a>,
    pub(crate) pid: Pid,
    pub(crate) epoch: Option<&'a Epoch>,
    pub(crate) time: TimestampNs,
}

impl CodeLookup for Lookup<'_> {
    fn cgroup(&self, number: u64) -> Option<OutsideText<&str>> {
        let cgroups = &self.prepared.cgroups;
        let index = cgroups.at(number, self.time)?;
        Some(OutsideText::new(&cgroups.paths()[index.0 as usize]))
    }

    fn kernel_function_at(&self, address: u64) -> Option<(Arc<str>, u64)> {
        let dso = self.prepared.model.kernel_at(Avma(address));
        let named = self.names.name(CodePlace { dso, place: address, kernel: true });
        let offset = named.address.0.checked_sub(named.function_start.0)?;
        named.function.clone().map(|function| (function, offset))
    }

    fn data_at(&self, address: Avma) -> CodeAt {
        let space = self.prepared.data.as_ref().and_then(|d| d.space_at(self.pid, self.time));
        let Some(mapping) = space.and_then(|space| space.map.find(address)) else {
            return self.code_at(address);
        };
        match self.prepared.dsos.get(mapping.dso).kind {
            RecordedKind::File | RecordedKind::Vdso => {
                let place = (address.0 - mapping.start.0).wrapping_add(mapping.file_offset);
                let found = self.named(CodePlace { dso: mapping.dso, place, kernel: false });
                if found.function.is_some() { found } else { self.zeroed_data_at(address, mapping) }
            }
            RecordedKind::Unknown => CodeAt {
                dso: self.dso_path(mapping.dso),
                dso_index: Some(mapping.dso),
                ..CodeAt::default()
            },
            _ => self.code_at(address),
        }
    }

    fn code_at(&self, address: Avma) -> CodeAt {
        let entry = ChainEntry::exact(address, side_of_address(address));
        self.named(self.maker.locate(entry, self.pid, self.epoch, self.time))
    }

    fn code_bytes(&self, address: Avma, most: usize, out: &mut Vec<u8>) -> Option<u32> {
        let entry = ChainEntry::exact(address, side_of_address(address));
        let place = self.maker.locate(entry, self.pid, self.epoch, self.time);
        let kind = (!place.kernel).then(|| self.prepared.dsos.get(place.dso).kind);
        if !matches!(kind, Some(RecordedKind::File | RecordedKind::Vdso)) {
            return None;
        }
        let image = self.prepared.binaries.get(place.dso)?.symbols.elf()?;
        let from = usize::try_from(place.place).ok()?;
        let code = image.bytes().get(from..).filter(|code| !code.is_empty())?;
        out.extend_from_slice(&code[..code.len().min(most)]);
        Some(if image.is_64() { 64 } else { 32 })
    }
}

impl Lookup<'_> {
    /// A variable that the file has no bytes of: it stands behind them in the same mapping.
    fn zeroed_data_at(&self, address: Avma, mapping: &Mapping) -> CodeAt {
        let dso = self.dso_path(mapping.dso);
        let dso_index = Some(mapping.dso);
        let unnamed = CodeAt { dso: dso.clone(), dso_index, ..CodeAt::default() };
        let Some(binary) = self.prepared.binaries.get(mapping.dso) else { return unnamed };
        let size_bytes = mapping.end.0 - mapping.start.0;
        let offset = FileOffset(mapping.file_offset);
        let bias = binary.symbols.bias_of_mapping(mapping.start, offset, size_bytes);
        let Some(bias) = bias else { return unnamed };
        let svma = bias.to_svma(address);
        binary.symbols.resolve(svma).function.map_or(unnamed, |function| CodeAt {
            function_offset: svma.0.wrapping_sub(function.start.0),
            function: Some(OutsideText::new(function.name)),
            dso,
            dso_index,
        })
    }

    fn named(&self, place: CodePlace) -> CodeAt {
        let named = self.names.name(place);
        CodeAt {
            function: named.function.clone().map(OutsideText::new),
            function_offset: named.address.0.wrapping_sub(named.function_start.0),
            dso: self.dso_path(place.dso),
            dso_index: (place.dso != DsoIndex::UNKNOWN).then_some(place.dso),
        }
    }

    fn dso_path(&self, dso: DsoIndex) -> Option<OutsideText<Arc<str>>> {
        self.prepared.dso_path(dso).cloned().map(OutsideText::new)
    }
}
