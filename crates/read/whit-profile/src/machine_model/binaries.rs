//! The binaries that a recording names, opened when they are first needed.

use crate::machine_model::address_map::Mapping;
use crate::machine_model::clock_relation::ClockRelation;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::{DsoTable, RecordedDso, RecordedKind};
use crate::machine_model::machine::RecordedMachine;
use crate::machine_model::process::ProcessModel;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};
use whit_symbolize::{
    BinaryKey, DsoKind, DsoSpec, DsoSymbols, EmbeddedNames, FileIdentity, JitMisses, KernelCode,
    NoKernelCode, Reason, Symbolizer,
};
use whit_types::{Arch, Avma, FileOffset, Pid, Svma, TimestampNs};
use whit_unwind::{Bias, ModuleUnwindInfo};

/// One opened binary.
pub(crate) struct Binary {
    /// Symbol tables and lines of the file.
    pub(crate) symbols: Arc<DsoSymbols>,
    unwind: OnceLock<ModuleUnwindInfo>,
}

/// All binaries of a recording.
pub(crate) struct Binaries {
    symbolizer: Arc<Symbolizer>,
    specs: Vec<DsoSpec>,
    opened: Vec<OnceLock<Binary>>,
    /// Those for which more files are at hand than when they were opened.
    reopened: Vec<OnceLock<Binary>>,
    jitdump_of: FxHashMap<Pid, JitDumpOf>,
    clock: ClockRelation,
}

/// The jitdump file of a process.
struct JitDumpOf {
    dso: DsoIndex,
    /// Code that it does not name, though it was at hand.
    misses: JitMisses,
}

impl Binaries {
    /// Opens nothing yet.
    pub(crate) fn new(
        dsos: &DsoTable,
        model: &ProcessModel,
        symbolizer: Arc<Symbolizer>,
        machine: &RecordedMachine,
        clock: ClockRelation,
    ) -> Binaries {
        let jitdumps = dsos.iter().filter(|(_, dso)| dso.kind == RecordedKind::JitDump);
        let jitdump_of: FxHashMap<Pid, JitDumpOf> = jitdumps
            .flat_map(|(dso, _)| model.processes_mapping(dso).map(move |pid| (pid, dso)))
            .map(|(pid, dso)| (pid, JitDumpOf { dso, misses: JitMisses::default() }))
            .collect();
        let specs = dsos.iter().map(|(index, dso)| {
            let mut spec = spec(dso, dsos.mapped_by(index), machine);
            let own = symbolizer.own_names().zip(key_of(dso));
            spec.embedded = own.and_then(|(names, key)| names.find(&key));
            if let RecordedKind::Anonymous(pid) = dso.kind {
                let jitdump = jitdump_of.get(&pid).map(|it| dsos.get(it.dso));
                spec.jitdump = jitdump.map(|jitdump| jitdump.path.as_ref().into());
            }
            if let (RecordedKind::Anonymous(pid), true) = (dso.kind, machine.is_this) {
                let began = model.began(pid);
                spec.identity.stamp = dsos.perf_map(pid);
                spec.process_began = began.and_then(|began| machine.time_of_day(began));
            }
            spec
        });
        let specs: Vec<_> = specs.collect();
        let opened = specs.iter().map(|_| OnceLock::new()).collect();
        let reopened = specs.iter().map(|_| OnceLock::new()).collect();
        Binaries { symbolizer, specs, opened, reopened, jitdump_of, clock }
    }

    /// The binary, opened.
    pub(crate) fn get(&self, dso: DsoIndex) -> Option<&Binary> {
        if let Some(binary) = self.reopened.get(dso.index()).and_then(OnceLock::get) {
            return Some(binary);
        }
        let (spec, slot) = (self.specs.get(dso.index())?, self.opened.get(dso.index())?);
        Some(slot.get_or_init(|| Binary {
            symbols: self.symbolizer.open(spec),
            unwind: OnceLock::new(),
        }))
    }

    /// The names that the recording carries itself.
    pub(crate) fn own_names(&self) -> Option<&EmbeddedNames> {
        self.symbolizer.own_names()
    }

    /// The symbols of a binary that somebody has asked.
    pub(crate) fn opened(&self, dso: DsoIndex) -> Option<Arc<DsoSymbols>> {
        self.symbolizer.opened(self.specs.get(dso.index())?)
    }

    /// The lowest loaded address of a binary; `None` where no file or name of it was looked for.
    pub(crate) fn base_of_opened(&self, dso: DsoIndex) -> Option<Svma> {
        let opened =
            |slots: &[OnceLock<Binary>]| slots.get(dso.index())?.get()?.symbols.base_svma();
        opened(&self.reopened).or_else(|| opened(&self.opened))
    }

    /// Looks for the files of a binary anew.
    pub(crate) fn reopen(&self, dso: DsoIndex) {
        if let (Some(spec), Some(slot)) =
            (self.specs.get(dso.index()), self.reopened.get(dso.index()))
        {
            let symbols = self.symbolizer.reopen(spec);
            slot.get_or_init(|| Binary { symbols, unwind: OnceLock::new() });
        }
    }

    /// The code of the recorded kernel.
    pub(crate) fn kernel_code(&self) -> Result<KernelCode, NoKernelCode> {
        self.symbolizer.kernel_code()
    }

    /// Whether some of a process's code of a JIT compiler has names.
    pub(crate) fn names_code_of(&self, pid: Pid, dsos: &DsoTable) -> bool {
        let is_named = |dso| self.get(dso).is_some_and(|binary| binary.symbols.reason().is_none());
        let code = dsos.iter().filter(|(_, dso)| dso.kind == RecordedKind::Anonymous(pid));
        self.has_jitdump(pid)
            || dsos.interpreted(pid).is_some()
            || code.map(|(index, _)| index).any(is_named)
    }

    /// True for processes that wrote a jitdump file.
    pub(crate) fn has_jitdump(&self, pid: Pid) -> bool {
        self.jitdump_of.contains_key(&pid)
    }

    /// The jitdump file that describes the code at an address, and where in it.
    pub(crate) fn locate_jitted(
        &self,
        pid: Pid,
        address: Avma,
        time: TimestampNs,
    ) -> Option<(DsoIndex, FileOffset)> {
        let JitDumpOf { dso, misses } = self.jitdump_of.get(&pid)?;
        let found = self.get(*dso)?.symbols.locate_jit(address, self.clock.monotonic(time));
        match found {
            Ok(offset) => Some((*dso, offset)),
            Err(miss) => {
                misses.note(miss);
                None
            }
        }
    }

    /// Why a binary has no symbols, as far as its samples show it.
    pub(crate) fn problem(&self, dso: DsoIndex) -> Option<Reason> {
        let reason = self.get(dso)?.symbols.reason()?.clone();
        let (Reason::NotInJitDump { path }, Some(pid)) =
            (&reason, self.specs[dso.index()].pids.first())
        else {
            return Some(reason);
        };
        let jitdump = self.jitdump_of.get(pid);
        let unread = jitdump.and_then(|it| self.get(it.dso)?.symbols.reason().cloned());
        let missed = jitdump.and_then(|it| it.misses.reason(path));
        unread.or(missed).or(Some(reason))
    }
}

impl Binaries {
    /// How to unwind a process's code of a JIT compiler, if that is known.
    pub(crate) fn jit_unwind_info(
        &self,
        pid: Pid,
        dso: DsoIndex,
        arch: Option<Arch>,
    ) -> Option<ModuleUnwindInfo> {
        let arch = arch?;
        let described = self.jitdump_of.get(&pid).map_or(dso, |jitdump| jitdump.dso);
        let binary = self.get(described)?;
        let find = || {
            let known = binary.symbols.jit_unwind_info(arch);
            known.unwrap_or_else(|| ModuleUnwindInfo::none(arch))
        };
        Some(binary.unwind.get_or_init(find).clone())
    }
}

/// How a recording's own names call a binary.
pub(crate) fn key_of(dso: &RecordedDso) -> Option<BinaryKey> {
    let (kind, pid) = match dso.kind {
        RecordedKind::Kernel | RecordedKind::KernelModule => return Some(BinaryKey::kernel()),
        RecordedKind::Vdso => (DsoKind::Vdso, None),
        RecordedKind::Anonymous(pid) => (DsoKind::PerfMap, Some(pid)),
        RecordedKind::JitDump => (DsoKind::JitDump, None),
        RecordedKind::File => (DsoKind::Elf, None),
        // The recorder has read their names already.
        RecordedKind::Unknown | RecordedKind::KernelSymbol(_) | RecordedKind::Interpreted(_) => {
            return None;
        }
    };
    let (path, build_id, file) = (dso.path.clone(), dso.build_id, dso.file);
    Some(BinaryKey { kind, path, build_id, pid, file })
}

fn spec(dso: &RecordedDso, mapped_by: &[Pid], machine: &RecordedMachine) -> DsoSpec {
    let (kind, pids) = match dso.kind {
        RecordedKind::Kernel => return DsoSpec::kernel(),
        RecordedKind::KernelModule => (DsoKind::KernelModule, &[][..]),
        RecordedKind::Vdso => (DsoKind::Vdso, &[][..]),
        RecordedKind::Anonymous(pid) => (DsoKind::PerfMap, &[pid][..]),
        RecordedKind::JitDump => (DsoKind::JitDump, mapped_by),
        RecordedKind::File => (DsoKind::Elf, mapped_by),
        RecordedKind::Unknown | RecordedKind::KernelSymbol(_) | RecordedKind::Interpreted(_) => {
            (DsoKind::Unknown, &[][..])
        }
    };
    let mut spec = DsoSpec::new(kind, dso.path.as_ref().into());
    spec.build_id = dso.build_id;
    // Numbers of processes and files mean nothing on another machine; perf-maps go by them all the same.
    if machine.is_this || kind == DsoKind::PerfMap {
        spec.pids = pids.to_vec();
    }
    if machine.is_this {
        let recorded_until_ns = machine.recorded_until_ns;
        spec.identity = FileIdentity { id: dso.file, stamp: dso.stamp, recorded_until_ns };
    }
    spec
}

/// The data of a mapping that unwinding needs. A mapping without unwind information is mapped too:
/// it is code that frame pointers may lead through.
pub(crate) fn unwind_info(
    binary: Option<&Binary>,
    mapping: &Mapping,
    arch: Option<Arch>,
) -> (Bias, ModuleUnwindInfo) {
    let nothing = || ModuleUnwindInfo::none(arch.unwrap_or(Arch::X86_64));
    let offset = FileOffset(mapping.file_offset);
    let size_bytes = mapping.end.0 - mapping.start.0;
    let bias = binary.and_then(|b| b.symbols.bias_of_mapping(mapping.start, offset, size_bytes));
    let (Some(binary), Some(bias)) = (binary, bias) else {
        let reason = binary.and_then(|binary| binary.symbols.reason());
        let is_unopened = reason.is_some_and(Reason::is_unopened);
        return (Bias(0), if is_unopened { ModuleUnwindInfo::unopened() } else { nothing() });
    };
    let info = binary.unwind.get_or_init(|| binary.symbols.unwind_info().unwrap_or_else(nothing));
    (bias, info.clone())
}
