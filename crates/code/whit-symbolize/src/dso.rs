//! The symbols of one binary, or of a substitute for one.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use whit_types::{Arch, Avma, FileOffset, Svma, TimestampNs};
use whit_unwind::{Bias, ModuleUnwindInfo};

use crate::companion::has_symtab;
use crate::config::SymbolizerConfig;
use crate::debug_sections::{DebugSections, excess_bytes};
use crate::demangle::demangle;
use crate::dso_spec::DsoSpec;
use crate::dwarf::{DebugInfo, DwarfFrame, GivenUp, SourceLocation};
use crate::embedded::{EmbeddedNames, Notes};
use crate::jit_places::JitMiss;
use crate::jitdump::JitDump;
use crate::long_names::{LongNames, NamePair};
use crate::members;
use crate::mini_debug_info;
use crate::perf_map;
use crate::reason::Reason;
use crate::remembered::BinaryMemory;
use crate::resolution::{InlinedFrame, Resolution, SymbolRef};
use crate::section_map::endian_of;
use crate::split_files::{MissingUnits, SplitFiles};
use crate::symbol_table::{FoundSymbol, SymbolSource, SymbolTable};
use whit_elf::ElfImage;

/// Where the symbols come from.
pub(crate) enum Source {
    Elf(ElfImage),
    /// A table whose addresses are those of `SymbolTable` plus the bias.
    Table(Arc<SymbolTable>, Bias),
    JitDump(JitDump),
    /// The recording's own names, with the number of the binary.
    Embedded(Arc<EmbeddedNames>, u32),
    Absent(Reason),
}

enum Debug {
    Unloaded,
    /// Loaded once. It is loaded again at the next look-up.
    Released(MissingUnits, GivenUp),
    Absent,
    Loaded(Box<DebugInfo>),
}

/// How much of an address is looked up.
#[derive(Clone, Copy)]
struct Detail {
    inlines: bool,
    lines: bool,
}

impl Detail {
    const FULL: Detail = Detail { inlines: true, lines: true };
}

/// Looks for a binary.
pub(crate) type Load = fn(&SymbolizerConfig, &DsoSpec) -> Source;

/// The symbols of one binary. Shared among threads; costly parts are loaded at their first use.
pub struct DsoSymbols {
    spec: DsoSpec,
    config: Arc<SymbolizerConfig>,
    pub(crate) source: Source,
    table: OnceLock<SymbolTable>,
    /// Only for binaries with functions that have no symbols.
    unwind: OnceLock<Option<ModuleUnwindInfo>>,
    debug: Mutex<Debug>,
    long_names: LongNames,
    /// The binary itself, for questions that the recording's own names do not answer.
    own_file: OnceLock<Box<DsoSymbols>>,
    load: Load,
    /// The answers, where they are wanted.
    notes: Option<Notes>,
    /// Where the same addresses are asked for again and again.
    memory: Option<BinaryMemory>,
}

impl DsoSymbols {
    pub(crate) fn new(
        spec: DsoSpec,
        config: Arc<SymbolizerConfig>,
        source: Source,
        load: Load,
        memory: Option<BinaryMemory>,
    ) -> DsoSymbols {
        let debug = Mutex::new(Debug::Unloaded);
        let notes = config.notes.then(Notes::default);
        let (table, unwind, own_file) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let long_names = LongNames::default();
        DsoSymbols {
            spec,
            config,
            source,
            table,
            unwind,
            debug,
            long_names,
            own_file,
            load,
            notes,
            memory,
        }
    }

    /// Which binary this is.
    pub fn spec(&self) -> &DsoSpec {
        &self.spec
    }

    /// Why there is nothing at all; `None` where there is something to look into.
    pub fn reason(&self) -> Option<&Reason> {
        match &self.source {
            Source::Absent(reason) => Some(reason),
            _ => None,
        }
    }

    /// The file, for ELF files and the vdso.
    pub fn elf(&self) -> Option<&ElfImage> {
        match &self.source {
            Source::Elf(image) => Some(image),
            Source::Embedded(..) => self.own_file().elf(),
            _ => None,
        }
    }

    /// The binary's own file, though the recording carries names of it.
    pub(crate) fn own_file(&self) -> &DsoSymbols {
        self.own_file.get_or_init(|| {
            let spec = DsoSpec { embedded: None, ..self.spec.clone() };
            let source = (self.load)(&self.config, &spec);
            let config = SymbolizerConfig { notes: false, ..(*self.config).clone() };
            Box::new(DsoSymbols::new(spec, Arc::new(config), source, self.load, None))
        })
    }

    /// The answers so far.
    pub(crate) fn notes(&self) -> Option<&Notes> {
        self.notes.as_ref()
    }

    /// The binary's sections for the unwinder.
    pub fn unwind_info(&self) -> Option<ModuleUnwindInfo> {
        Some(ModuleUnwindInfo::new(self.elf()?.unwind_sections()?))
    }

    /// How to unwind code of a JIT compiler, by actual addresses, where its jitdump file says so, or where its
    /// perf-map names Python's trampolines.
    pub fn jit_unwind_info(&self, arch: Arch) -> Option<ModuleUnwindInfo> {
        let pieces: Vec<_> = match &self.source {
            Source::JitDump(dump) => dump.unwinding().collect(),
            Source::Table(table, Bias(0)) if arch == Arch::X86_64 => {
                perf_map::trampolines(table).collect()
            }
            Source::Embedded(..) => return self.own_file().jit_unwind_info(arch),
            _ => Vec::new(),
        };
        (!pieces.is_empty()).then(|| ModuleUnwindInfo::jitted(arch, pieces))
    }

    /// The range of the function at an address that no symbol covers, as call frame information has it. Nothing
    /// where code is named otherwise, and for linkage tables, which are one entry for many functions.
    pub fn unnamed_function(&self, address: Svma) -> Option<Range<Svma>> {
        let found = match &self.source {
            Source::Embedded(names, number) => {
                let binary = names.binary(*number)?;
                let is_noted = names.resolve(binary, address).is_some();
                let asked = || (!is_noted).then(|| self.own_file().unnamed_function(address));
                binary.unnamed_function(address).or_else(|| asked().flatten())
            }
            _ => self.find_unnamed(address),
        };
        if let (Some(notes), Some(range)) = (&self.notes, &found) {
            notes.unnamed(range);
        }
        found
    }

    fn find_unnamed(&self, address: Svma) -> Option<Range<Svma>> {
        let image = self.elf()?;
        let is_plt = image.plt_sections().any(|section| {
            address.0.checked_sub(section.svma).is_some_and(|offset| offset < section.size)
        });
        let unwind = self.unwind.get_or_init(|| self.unwind_info()).as_ref()?;
        (!is_plt).then(|| unwind.function_range(address)).flatten()
    }

    /// Where in the jitdump file the code stands that was at `avma` at `time`.
    /// The time is that of `CLOCK_MONOTONIC`; without one, code is found that was alone there all the time.
    ///
    /// # Errors
    /// The file does not say which code it was.
    pub fn locate_jit(&self, avma: Avma, time: Option<TimestampNs>) -> Result<FileOffset, JitMiss> {
        match &self.source {
            Source::JitDump(dump) => dump.locate(avma, time),
            Source::Embedded(names, number) => {
                let binary = names.binary(*number).ok_or(JitMiss::NoCode)?;
                binary.places.locate(avma, time)
            }
            _ => Err(JitMiss::NoCode),
        }
    }

    /// Meaning of `address`; see [`DsoKind`](crate::DsoKind) for which kind of address that is. For a return
    /// address ask for the address before it.
    pub fn resolve(&self, address: Svma) -> Resolution {
        let detail = Detail { inlines: self.config.inlines, lines: self.config.lines };
        match &self.memory {
            Some(memory) => memory.get_or(address, || self.resolve_with(address, detail)),
            None => self.resolve_with(address, detail),
        }
    }

    /// The function alone.
    pub fn resolve_plainly(&self, address: Svma) -> Resolution {
        self.resolve_with(address, Detail { inlines: false, lines: false })
    }

    /// The same with inlined functions and lines, whether or not they are on.
    pub fn resolve_in_full(&self, address: Svma) -> Resolution {
        self.resolve_with(address, Detail::FULL)
    }

    /// Lines and inlined functions, without the function that has them: a reader of instructions asks for many addresses
    /// of one function.
    pub fn resolve_frames(&self, address: Svma) -> Resolution {
        match &self.source {
            Source::Elf(image) if self.notes.is_none() => {
                let mut resolution = Resolution::default();
                self.add_frames(&mut resolution, self.debug_frames(image, address), Detail::FULL);
                if image.is_cut() { Resolution::default() } else { resolution }
            }
            _ => self.resolve_in_full(address),
        }
    }

    fn resolve_with(&self, address: Svma, detail: Detail) -> Resolution {
        let Some(notes) = &self.notes else { return self.look_up(address, detail) };
        let full = notes.resolution(address, || self.look_up(address, Detail::FULL));
        full.reduced(detail.inlines, detail.lines)
    }

    fn look_up(&self, address: Svma, detail: Detail) -> Resolution {
        let found = self.look_up_in_source(address, detail);
        let cut = match &self.source {
            Source::Elf(image) => Some(image.path()).filter(|_| image.is_cut()),
            Source::JitDump(dump) => dump.cut_file(),
            _ => None,
        };
        // Its tables may end anywhere, so that a name may be that of another function.
        cut.map_or(found, |path| Resolution::absent(Reason::cut(path)))
    }

    fn look_up_in_source(&self, address: Svma, detail: Detail) -> Resolution {
        match &self.source {
            Source::Elf(image) => self.resolve_in_elf(image, address, detail),
            Source::Table(table, bias) => {
                let stated = bias.to_svma(Avma(address.0));
                match table.find(stated) {
                    Some(found) => {
                        let mut function = self.symbol_ref(&found);
                        function.start = Svma(bias.to_avma(found.start).0);
                        Resolution { function: Some(function), ..Resolution::default() }
                    }
                    None => Resolution::absent(Reason::OutsideSymbols),
                }
            }
            Source::JitDump(dump) => self.resolve_in_jitdump(dump, address, detail),
            Source::Embedded(names, number) => self.resolve_in_own(names, *number, address, detail),
            Source::Absent(reason) => Resolution::absent(reason.clone()),
        }
    }

    fn resolve_in_elf(&self, image: &ElfImage, address: Svma, detail: Detail) -> Resolution {
        let table = self.symbol_table_of(image);
        let mut resolution = match table.find(address) {
            Some(found) => {
                let function = Some(self.symbol_ref(&found));
                Resolution { function, ..Resolution::default() }
            }
            None if table.is_empty() => {
                Resolution::absent(Reason::NoSymbols { path: image.path().clone() })
            }
            None => Resolution::absent(Reason::OutsideSymbols),
        };
        if detail.inlines || detail.lines {
            self.add_frames(&mut resolution, self.debug_frames(image, address), detail);
        }
        resolution
    }

    fn resolve_in_jitdump(&self, dump: &JitDump, address: Svma, detail: Detail) -> Resolution {
        let Some(symbol) = dump.resolve(FileOffset(address.0)) else {
            return Resolution::absent(Reason::OutsideSymbols);
        };
        let location = symbol.line.filter(|_| detail.lines);
        let as_stored = |_: &[u8]| -> NamePair {
            let name: Arc<str> = Arc::from(&*symbol.name);
            (name.clone(), name)
        };
        let (name, raw) = self.long_names.get(symbol.name.as_bytes(), as_stored);
        Resolution {
            function: Some(SymbolRef {
                name,
                raw,
                start: Svma(symbol.start.0),
                size_bytes: symbol.size_bytes,
                source: SymbolSource::JitDump,
                module: None,
            }),
            location: location
                .map(|line| SourceLocation { file: Arc::from(line.file), line: line.line }),
            ..Resolution::default()
        }
    }

    /// As the recording's own names have it, or else the binary.
    fn resolve_in_own(
        &self,
        names: &EmbeddedNames,
        number: u32,
        address: Svma,
        detail: Detail,
    ) -> Resolution {
        let Some(binary) = names.binary(number) else {
            return Resolution::absent(Reason::OutsideSymbols);
        };
        if let Some(found) = names.resolve(binary, address) {
            return self.readable(found).reduced(detail.inlines, detail.lines);
        }
        if self.own_file().reason().is_none() {
            return self.own_file().look_up(address, detail);
        }
        match names.function(binary, address) {
            Some(function) => {
                self.readable(Resolution { function: Some(function), ..Resolution::default() })
            }
            None => Resolution::absent(Reason::OutsideSymbols),
        }
    }

    /// The same with names as they are shown.
    fn readable(&self, mut found: Resolution) -> Resolution {
        if let Some(function) = &mut found.function
            && function.source != SymbolSource::JitDump
        {
            (function.name, function.raw) = self.names(function.raw.as_bytes());
        }
        for inlined in &mut found.inlined {
            (inlined.name, inlined.raw) = self.names(inlined.raw.as_bytes());
        }
        found
    }

    /// The table of symbols, for tools that list or search it.
    pub fn symbol_table(&self) -> Option<&SymbolTable> {
        match &self.source {
            Source::Elf(image) => Some(self.symbol_table_of(image)),
            Source::Table(table, _) => Some(table),
            Source::JitDump(_) | Source::Embedded(..) | Source::Absent(_) => None,
        }
    }

    fn symbol_table_of(&self, image: &ElfImage) -> &SymbolTable {
        self.table.get_or_init(|| {
            if has_symtab(image) {
                return SymbolTable::from_elf(image, image);
            }
            for companion in self.companions(image).filter(has_symtab) {
                let table = SymbolTable::from_elf(&companion, image);
                if !companion.is_cut() {
                    return table;
                }
            }
            match mini_debug_info::open(image) {
                Some(small) => SymbolTable::with_dynamic(&small, image),
                None => SymbolTable::from_elf(image, image),
            }
        })
    }

    /// The companions of a binary that are at hand, best first.
    pub(crate) fn companions<'a>(
        &'a self,
        image: &'a ElfImage,
    ) -> impl Iterator<Item = ElfImage> + 'a {
        self.config.debug_dirs.open_companions(&self.spec, image)
    }

    fn debug_frames(&self, image: &ElfImage, address: Svma) -> Vec<DwarfFrame> {
        // A panic of another thread inside a look-up leaves a cache that is merely incomplete.
        let mut debug = self.debug.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &*debug {
            Debug::Unloaded => Some(GivenUp::default()),
            Debug::Released(_, given_up) => Some(*given_up),
            Debug::Absent | Debug::Loaded(_) => None,
        };
        if let Some(given_up) = before {
            *debug = match self.load_debug(image, given_up) {
                Some(info) => Debug::Loaded(Box::new(info)),
                None => Debug::Absent,
            };
        }
        match &mut *debug {
            Debug::Loaded(info) => info.frames(address),
            _ => Vec::new(),
        }
    }

    fn load_debug(&self, image: &ElfImage, given_up: GivenUp) -> Option<DebugInfo> {
        let dirs = &self.config.debug_dirs;
        let debug = if DebugInfo::is_in(image) {
            image.clone()
        } else {
            self.companions(image).find(DebugInfo::is_in)?
        };
        let mut binaries = vec![debug.path().clone(), image.path().clone()];
        binaries.dedup();
        let packed_bytes = excess_bytes(&debug);
        let given_up = GivenUp { packed_bytes, ..given_up };
        let sections = DebugSections::load(&debug, dirs.open_supplement(&debug).as_ref());
        let (endian, meter) = (endian_of(&debug), sections.meter().clone());
        let split = SplitFiles::new(dirs.clone(), self.spec.clone(), binaries, endian, meter);
        Some(DebugInfo::new(sections.with_split_files(split), given_up))
    }

    /// The offsets of members in structures of the units with this name, as the binary's debug information says.
    pub fn member_offsets<const N: usize>(
        &self,
        unit: &str,
        paths: [[&str; 2]; N],
    ) -> [Option<u64>; N] {
        let Source::Elf(image) = &self.source else { return [None; N] };
        let debug = match DebugInfo::is_in(image) {
            true => Some(image.clone()),
            false => self.companions(image).find(DebugInfo::is_in),
        };
        let Some(debug) = debug else { return [None; N] };
        members::offsets(&DebugSections::load(&debug, None), unit, paths)
    }

    /// Files with units of the binary (split DWARF) that look-ups did not find. Inlined functions of these units
    /// have no names.
    pub fn missing_units(&self) -> MissingUnits {
        if let Source::Embedded(names, number) = &self.source {
            return names.binary(*number).map(|it| it.missing_units.clone()).unwrap_or_default();
        }
        match &*self.debug.lock().unwrap_or_else(PoisonError::into_inner) {
            Debug::Loaded(info) => info.missing_units(),
            Debug::Released(missing, _) => missing.clone(),
            Debug::Unloaded | Debug::Absent => MissingUnits::default(),
        }
    }

    /// Look-ups in the binary's debug information that were given up.
    pub fn given_up(&self) -> GivenUp {
        if let Source::Embedded(names, number) = &self.source {
            let noted = names.binary(*number).map(|it| it.given_up).unwrap_or_default();
            let own_file =
                self.own_file.get().map(|own_file| own_file.given_up()).unwrap_or_default();
            return noted + own_file;
        }
        if let Source::Table(table, _) = &self.source {
            return GivenUp { map_bytes: table.left_out_bytes, ..GivenUp::default() };
        }
        match &*self.debug.lock().unwrap_or_else(PoisonError::into_inner) {
            Debug::Loaded(info) => info.given_up(),
            Debug::Released(_, given_up) => *given_up,
            Debug::Unloaded | Debug::Absent => GivenUp::default(),
        }
    }

    /// Frees the parsed debug information. It grows with the number of compilation units that were
    /// looked into; a report that is done with a binary calls this.
    pub fn release_debug_info(&self) {
        if let Some(own_file) = self.own_file.get() {
            own_file.release_debug_info();
        }
        let mut debug = self.debug.lock().unwrap_or_else(PoisonError::into_inner);
        if let Debug::Loaded(info) = &*debug {
            *debug = Debug::Released(info.missing_units(), info.given_up());
        }
    }

    fn add_frames(&self, resolution: &mut Resolution, frames: Vec<DwarfFrame>, detail: Detail) {
        let mut frames = frames.into_iter();
        let Some(outermost) = frames.next() else { return };
        let mut call_site = outermost.location;
        if detail.lines {
            resolution.location = call_site.clone();
        }
        if !detail.inlines {
            // The line is that of the address, wherever the code came from.
            if let (true, Some(innermost)) = (detail.lines, frames.next_back()) {
                resolution.location = innermost.location;
            }
            return;
        }
        for frame in frames {
            let location = frame.location.clone();
            let (name, raw) = self.names(frame.raw_name.as_deref().unwrap_or("??").as_bytes());
            let kept = |location: Option<SourceLocation>| location.filter(|_| detail.lines);
            resolution.inlined.push(InlinedFrame {
                name,
                raw,
                location: kept(frame.location),
                call_site: kept(call_site),
            });
            call_site = location;
        }
    }

    fn symbol_ref(&self, found: &FoundSymbol<'_>) -> SymbolRef {
        let (name, raw) = self.names(found.name);
        SymbolRef {
            name,
            raw,
            start: found.start,
            size_bytes: found.size_bytes,
            source: found.source,
            module: found.module.map(Arc::from),
        }
    }

    /// The name as shown, and as it stands in the file.
    fn names(&self, raw: &[u8]) -> NamePair {
        self.long_names.get(raw, |raw| self.make_names(raw))
    }

    fn make_names(&self, raw: &[u8]) -> NamePair {
        let text: Arc<str> = Arc::from(String::from_utf8_lossy(raw));
        if !self.config.demangle {
            return (text.clone(), text);
        }
        match demangle(raw) {
            readable if *readable == *text => (text.clone(), text),
            readable => (Arc::from(readable), text),
        }
    }
}
