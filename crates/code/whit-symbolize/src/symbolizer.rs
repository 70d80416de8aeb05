//! Hands out the symbols of binaries, each loaded once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use whit_sys::process_files::{open_as_seen_by, open_foreign};
use whit_types::Pid;
use whit_unwind::Bias;

use crate::companion::{PROC, sees_other_files};
use crate::config::SymbolizerConfig;
use crate::dso::{DsoSymbols, Source};
use crate::dso_spec::{DsoKind, DsoSpec};
use crate::embedded::{BinaryKey, EmbeddedNames};
use crate::jitdump::JitDump;
use crate::kernel;
use crate::kernel_code::{KernelCode, NoKernelCode};
use crate::kernel_config::KernelConfig;
use crate::perf_map;
use crate::perf_map_writer::PerfMapWriter;
use crate::reason::Reason;
use crate::remembered::Remembered;
use crate::symbol_table::SymbolTable;
use whit_elf::ElfImage;

type Slot = Arc<OnceLock<Arc<DsoSymbols>>>;

/// Hands out the symbols of binaries. Shared among threads, which can load and look into different
/// binaries at the same time.
pub struct Symbolizer {
    config: Arc<SymbolizerConfig>,
    opened: Mutex<FxHashMap<DsoSpec, Slot>>,
    remembered: Option<Arc<Remembered>>,
}

impl Symbolizer {
    /// With nothing loaded yet.
    pub fn new(config: SymbolizerConfig) -> Symbolizer {
        Symbolizer { config: Arc::new(config), opened: Mutex::default(), remembered: None }
    }

    /// One that remembers the meaning of addresses, for a process that asks for the same ones again and again.
    pub fn remembering(config: SymbolizerConfig) -> Symbolizer {
        Symbolizer { remembered: Some(Arc::default()), ..Symbolizer::new(config) }
    }

    /// The symbols of a binary; the same ones each time. Never fails: [`DsoSymbols::reason`] and
    /// each resolution have the reason for missing data.
    pub fn open(&self, spec: &DsoSpec) -> Arc<DsoSymbols> {
        let key = self.key(spec);
        let slot = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.entry(key.clone()).or_default().clone()
        };
        let spec = DsoSpec { pids: spec.pids.clone(), ..key };
        let load = || {
            let source = load_noted(&self.config, &spec);
            let memory = self.remembered.as_ref().map(Remembered::of_binary);
            Arc::new(DsoSymbols::new(spec.clone(), self.config.clone(), source, load, memory))
        };
        slot.get_or_init(load).clone()
    }

    /// Lets binaries go, for a process that names code for days. Names of compiled code grow while its process runs, so
    /// these are read anew; files beyond `most` go too. The kernel's symbols stay. Addresses that nobody asked for since
    /// the last call are forgotten.
    pub fn forget_beyond(&self, most: usize) {
        self.remembered.iter().for_each(|remembered| remembered.forget_unused());
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|spec, _| !matches!(spec.kind, DsoKind::PerfMap | DsoKind::JitDump));
        if opened.len() > most {
            opened.retain(|spec, _| spec.kind == DsoKind::Kernel);
        }
    }

    /// The symbols of a binary, looked for anew: more files may be at hand by now. [`Symbolizer::open`] gives these
    /// from now on.
    pub fn reopen(&self, spec: &DsoSpec) -> Arc<DsoSymbols> {
        let key = self.key(spec);
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        self.open(spec)
    }

    /// The names that the recording carries itself.
    pub fn own_names(&self) -> Option<&EmbeddedNames> {
        self.config.embedded.as_deref()
    }

    /// The symbols of a binary, if somebody has opened it.
    pub fn opened(&self, spec: &DsoSpec) -> Option<Arc<DsoSymbols>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(&self.key(spec))?.get().cloned()
    }

    /// The code of the recorded kernel.
    ///
    /// # Errors
    /// It is not at hand.
    pub fn kernel_code(&self) -> Result<KernelCode, NoKernelCode> {
        KernelCode::find(&self.config, self.config.kernel.build_id)
    }

    /// The kernel and its modules share one list; a path means the same file in all processes but
    /// those in a mount namespace of their own, unless something else says which file.
    fn key(&self, spec: &DsoSpec) -> DsoSpec {
        let mut key = spec.clone();
        match spec.kind {
            DsoKind::Kernel | DsoKind::KernelModule => {
                key.kind = DsoKind::Kernel;
                key.path = PathBuf::new();
                key.build_id = self
                    .config
                    .kernel
                    .build_id
                    .or(spec.build_id.filter(|_| spec.kind == DsoKind::Kernel));
            }
            DsoKind::Vdso => key.path = PathBuf::from("[vdso]"),
            DsoKind::PerfMap => (key.path, key.build_id) = (PathBuf::new(), None),
            DsoKind::Elf | DsoKind::JitDump | DsoKind::Unknown => {}
        }
        if key.kind == DsoKind::Kernel {
            let names = self.config.embedded.as_ref();
            key.embedded = names.and_then(|names| names.find(&BinaryKey::kernel()));
        }
        match spec.kind {
            DsoKind::PerfMap => key.pids.truncate(1),
            DsoKind::Elf | DsoKind::JitDump if spec.build_id.is_none() => {
                key.pids.retain(|pid| sees_other_files(*pid));
            }
            _ => key.pids.clear(),
        }
        key
    }
}

/// The names that the recording carries itself, or else those of the binary.
fn load_noted(config: &SymbolizerConfig, spec: &DsoSpec) -> Source {
    // The user names other files.
    let is_overridden = match spec.kind {
        DsoKind::Kernel | DsoKind::KernelModule => {
            config.kernel.vmlinux.is_some() || config.kernel.kallsyms.is_some()
        }
        _ => config.debug_dirs.symfs.is_some(),
    };
    let own = config.embedded.as_ref().zip(spec.embedded).filter(|_| !is_overridden);
    let Some((names, number)) = own else { return load(config, spec) };
    let reason = names.binary(number).and_then(|binary| binary.reason.clone());
    let Some(reason) = reason else { return Source::Embedded(names.clone(), number) };
    // The binary may be at hand by now. Without a build id nothing would tell it from another.
    match load(config, spec) {
        Source::Absent(_) => Source::Absent(reason),
        _ if spec.build_id.is_none() => Source::Absent(reason),
        found => found,
    }
}

/// The symbols of a binary itself.
fn load(config: &SymbolizerConfig, spec: &DsoSpec) -> Source {
    let result = match spec.kind {
        DsoKind::Elf => config.debug_dirs.open_recorded(spec).map(Source::Elf),
        DsoKind::Vdso => load_vdso(config, spec).map(Source::Elf),
        DsoKind::Kernel | DsoKind::KernelModule => {
            let kernel = KernelConfig { build_id: spec.build_id, ..config.kernel.clone() };
            Ok(kernel::load(&kernel, &config.debug_dirs))
        }
        DsoKind::PerfMap => load_perf_map(config, spec),
        DsoKind::JitDump => load_jitdump(config, spec).map(Source::JitDump),
        DsoKind::Unknown => Err(Reason::NotCode),
    };
    result.unwrap_or_else(Source::Absent)
}

fn load_vdso(config: &SymbolizerConfig, spec: &DsoSpec) -> Result<ElfImage, Reason> {
    let given = config.vdso.clone().map(|image| ElfImage::from_bytes(&spec.path, image));
    match (given, spec.build_id) {
        (Some(Ok(image)), Some(recorded)) if image.build_id() == Some(recorded) => Ok(image),
        (Some(image), None) => Ok(image?),
        (_, Some(recorded)) => {
            let cached = config.debug_dirs.cached(recorded, "vdso");
            let image = cached.and_then(|path| ElfImage::open(&path).ok());
            image.ok_or(Reason::VdsoUnknown)
        }
        (None, None) => Err(Reason::VdsoUnknown),
    }
}

/// For a process with mounts of its own, its file.
fn load_jitdump(config: &SymbolizerConfig, spec: &DsoSpec) -> Result<JitDump, Reason> {
    if let Some(path) = kept(config, spec)
        && let Ok(dump) = open_foreign(&path).map(|file| JitDump::from_file(&path, &file))
    {
        return dump;
    }
    let dirs = &config.debug_dirs;
    let elsewhere = spec.pids.iter().find(|pid| dirs.symfs.is_none() && sees_other_files(**pid));
    let path = dirs.in_symfs(&spec.path);
    let file = match elsewhere {
        Some(pid) => open_as_seen_by(Path::new(PROC), pid.0, &path),
        None => open_foreign(&path),
    };
    let file = file.map_err(|errno| Reason::unopened(&path, errno))?;
    JitDump::from_file(&path, &file)
}

/// The copy that the recorder kept, as the file was when the recording ended.
fn kept(config: &SymbolizerConfig, spec: &DsoSpec) -> Option<PathBuf> {
    let path = config.debug_dirs.kept(&spec.identity.stamp?)?;
    path.exists().then_some(path)
}

fn load_perf_map(config: &SymbolizerConfig, spec: &DsoSpec) -> Result<Source, Reason> {
    if let Some(table) = kept(config, spec).and_then(|path| SymbolTable::from_perf_map(&path).ok())
    {
        return Ok(Source::Table(Arc::new(table), Bias(0)));
    }
    let pid = spec.pids.first().copied().unwrap_or(Pid(-1));
    let mut failure = match &spec.jitdump {
        Some(path) => Reason::NotInJitDump { path: Arc::from(path.as_path()) },
        None => Reason::NoJitNames { pid },
    };
    let until_ns = spec.identity.recorded_until_ns;
    let writer = PerfMapWriter::of(pid, spec.process_began, until_ns);
    if !writer.runs() && matches!(failure, Reason::NoJitNames { .. }) {
        failure = Reason::JitNamesGone { pid };
    }
    for place in perf_map::places(pid, &config.perf_map_dirs, writer) {
        match place.read() {
            Ok(table) => return Ok(Source::Table(Arc::new(table), Bias(0))),
            Err(Reason::FileMissing { .. }) => {}
            Err(reason) => failure = reason,
        }
    }
    Err(failure)
}
