//! Binaries that processes map, and their tables: made by threads of their own, each binary once.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::unwind_tables::{FileVersion, Origin, TableStore};
use whit_bpf::BpfError;
use whit_bpf::stacks::{InterpreterNumber, Mapping, Stacks, TableNumber, TableParts};
use whit_elf::{ElfImage, own_vdso};
use whit_engine_api::error::EngineError;
use whit_host::roots::Roots;
use whit_sys::maps::MapsLine;
use whit_sys::process_files::{FileFacts, Identity, OpenError, WantedFile};
use whit_sys::{MappedFile, Waker};
use whit_types::{FileId, FileOffset, FileStamp, OpenFailure, Pid, Runtime};
use whit_unwind::Trampolines;
use whit_unwind::table::UnwindTable;

use super::model::{Backing, Mapped, Model, Space};
use super::python::{self, Named, Names, Python};

/// Threads that make tables.
const WORKERS_MAX: usize = 4;
/// Binaries that are known; more have no table.
const MODULES_MAX: usize = 16384;

/// A binary without processes may be taken out after so long, and is looked for so often: a program that is started again
/// and again stays known.
const UNUSED_INTERVAL: Duration = Duration::from_secs(10);
/// Binaries without processes that are kept.
const UNUSED_MAX: usize = 1024;

/// A binary that could not be opened is tried through so many processes: one may have ended meanwhile.
const OPEN_ATTEMPTS_MAX: u32 = 8;

/// A binary.
#[derive(Debug)]
enum Module {
    /// A thread works on it, for the so many-th time.
    Pending(u32),
    /// It has been opened.
    Ready(Ready),
    /// It says nothing.
    NoImage,
    /// It could not be opened, last through this process.
    Unopened { error: OpenError, pid: i32, attempts: u32 },
}

/// A binary that was opened.
#[derive(Debug)]
struct Ready {
    /// It stays mapped: the kernel's programs recognize the file by it.
    image: ElfImage,
    table: TableNumber,
    load: Load,
    /// When it was first seen that no process maps it.
    unused_since: Option<Instant>,
}

/// How the loading of a table ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Load {
    Done,
    /// There was no room for it.
    Refused,
    /// It is that of an interpreter, which the programs know for as long as they run.
    Stays,
}

/// A binary to be worked on: which it is, and a process that has it mapped.
struct Task {
    backing: Backing,
    mapper: Mapper,
}

/// A process, and where it has mapped the binary, if it has yet.
struct Mapper {
    pid: i32,
    range: Option<Range<u64>>,
    /// Its parent, and so on.
    ancestors: Vec<i32>,
}

/// The result of a thread's work on a binary.
pub(super) struct Done {
    backing: Backing,
    pid: i32,
    image: Result<Option<ElfImage>, OpenError>,
    table: Option<(UnwindTable, Origin)>,
    python: Option<Python>,
    build_ns: u64,
}

/// A binary that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnopenedBinary {
    /// Its path in the process's file system.
    pub path: String,
    /// The refusal of the operating system.
    pub error: OpenError,
}

/// The work on all binaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Tables that were loaded.
    pub loaded: u64,
    /// Tables that the cache on disk had.
    pub cached: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Distinct rules, table by table.
    pub rules: u64,
    /// Time to make or read tables, summed over threads.
    pub build_ns: u64,
    /// Binaries that were opened and have none.
    pub without: u64,
    /// Tables that did not fit into the kernel's memory.
    pub refused: u64,
    /// Binaries that no process mapped any more, and whose tables were taken out.
    pub removed: u64,
    /// Interpreters whose frames stay native, since the kernel refused them.
    pub interpreters_refused: u64,
    /// A process ran a Java virtual machine.
    pub has_java: bool,
}

impl TableCounts {
    fn count(&mut self, table: &UnwindTable, origin: Origin) {
        self.loaded += 1;
        self.cached += u64::from(origin == Origin::Cached);
        self.rows += table.rows().len() as u64;
        self.rules += table.rules().len() as u64;
    }
}

/// All binaries.
#[derive(Debug)]
pub(super) struct Modules {
    known: HashMap<Backing, Module>,
    /// Tables of arenas: processes share them.
    arenas: HashMap<Trampolines, TableNumber>,
    tasks: Option<Sender<Task>>,
    done: Receiver<Done>,
    workers: Vec<JoinHandle<()>>,
    interpreters: Interpreters,
    /// When unused binaries were last looked for.
    swept: Instant,
    pub(super) counts: TableCounts,
}

/// The interpreters among the binaries.
#[derive(Debug)]
struct Interpreters {
    roots: Roots,
    /// Reads names, as soon as there is an interpreter.
    names: Option<Names>,
    named: Arc<Mutex<Named>>,
}

impl Interpreters {
    /// The interpreter of a process is walked: its functions get their names.
    fn follow(&self, pid: Pid) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).follow(pid);
    }

    /// Makes an interpreter known to the programs. Where the kernel refuses, its frames stay native.
    fn learn(&mut self, python: &Python, stacks: &Mutex<Stacks>) -> Option<InterpreterNumber> {
        let named = self.named.clone();
        let mut stacks = lock(stacks);
        if self.names.is_none() {
            let functions = stacks.functions().ok()?;
            self.names = Names::start(functions, &self.roots, named).ok();
        }
        let names = self.names.as_ref()?;
        let number = stacks.add_interpreter(&python.interpreter).ok()?;
        names.learn(number, python.objects);
        Some(number)
    }
}

impl Modules {
    /// Starts the threads; they wake `waker` when something is done.
    pub(super) fn start(
        roots: &Roots,
        store: TableStore,
        waker: &Waker,
        named: Arc<Mutex<Named>>,
    ) -> Result<Modules, EngineError> {
        let (tasks, inbox) = channel();
        let (outbox, done) = channel();
        let (inbox, store) = (Arc::new(Mutex::new(inbox)), Arc::new(store));
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut workers = Vec::new();
        for _ in 0..cpus.min(WORKERS_MAX) {
            let (inbox, outbox, store) = (inbox.clone(), outbox.clone(), store.clone());
            let (roots, waker) = (roots.clone(), waker.clone());
            let work = move || work(&inbox, &outbox, &store, &roots, &waker);
            let thread = std::thread::Builder::new().name("whit-tables".to_owned()).spawn(work);
            workers.push(thread.map_err(|source| EngineError::Thread { source })?);
        }
        let counts = TableCounts::default();
        let (known, arenas) = (HashMap::new(), HashMap::new());
        let interpreters = Interpreters { roots: roots.clone(), names: None, named };
        let (tasks, swept) = (Some(tasks), Instant::now());
        Ok(Modules { known, arenas, tasks, done, workers, interpreters, swept, counts })
    }

    /// The mappings of a process for the kernel's programs. The threads start on new binaries.
    pub(super) fn mappings(&mut self, pid: i32, model: &Model) -> Vec<Mapping> {
        let mappings = || model.get(pid).into_iter().flat_map(Space::iter);
        let stays =
            |module: &Module| matches!(module, Module::Ready(Ready { load: Load::Stays, .. }));
        if mappings().any(|(_, mapped)| self.known.get(&mapped.backing).is_some_and(stays)) {
            self.interpreters.follow(Pid(pid));
        }
        mappings().map(|(start, mapped)| self.mapping((pid, model), start, mapped)).collect()
    }

    fn mapping(&mut self, (pid, model): (i32, &Model), start: u64, mapped: &Mapped) -> Mapping {
        let end = mapped.end;
        let without = |table| Mapping { start, end, bias: 0, table };
        match &mapped.backing {
            Backing::None => return without(TableNumber::NONE),
            Backing::Trampolines(of) => {
                let table = self.arenas.get(of).copied().unwrap_or(TableNumber::NONE);
                // Stated addresses of an arena count from its start.
                return Mapping { start, end, bias: start, table };
            }
            Backing::File { .. } | Backing::Vdso => {}
        }
        let ancestors = || model.ancestors(pid);
        let mapper = || Mapper { pid, range: Some(start..end), ancestors: ancestors() };
        match self.known.get(&mapped.backing) {
            None if self.known.len() >= MODULES_MAX => without(TableNumber::NONE),
            None => {
                self.begin(mapped.backing.clone(), mapper(), 1);
                without(TableNumber::NOT_YET)
            }
            Some(Module::Pending(_)) => without(TableNumber::NOT_YET),
            Some(Module::NoImage) => without(TableNumber::NONE),
            Some(Module::Unopened { pid: last, attempts, .. })
                if *last != pid && *attempts < OPEN_ATTEMPTS_MAX =>
            {
                let attempts = attempts + 1;
                self.begin(mapped.backing.clone(), mapper(), attempts);
                without(TableNumber::NOT_YET)
            }
            Some(Module::Unopened { .. }) => without(TableNumber::NOT_OPENED),
            Some(Module::Ready(Ready { image, table, .. })) => {
                let offset = FileOffset(mapped.file_offset);
                match image.svma_of_mapping(offset, end - start) {
                    Some(svma) => {
                        Mapping { start, end, bias: start.wrapping_sub(svma.0), table: *table }
                    }
                    None => without(TableNumber::NONE),
                }
            }
        }
    }

    /// Has binaries worked on before anybody maps them.
    pub(super) fn expect(&mut self, pid: i32, backings: Vec<Backing>) {
        for backing in backings {
            if self.known.len() < MODULES_MAX && !self.known.contains_key(&backing) {
                self.begin(backing, Mapper { pid, range: None, ancestors: Vec::new() }, 1);
            }
        }
    }

    /// Whether threads still work on binaries.
    pub(super) fn is_busy(&self) -> bool {
        self.known.values().any(|module| matches!(module, Module::Pending(_)))
    }

    /// Binaries that could not be opened to the end.
    pub(super) fn unopened(&self) -> Vec<UnopenedBinary> {
        let unopened = |(backing, module): (&Backing, &Module)| match (backing, module) {
            (Backing::File { path, .. }, Module::Unopened { error, .. }) => {
                let path = String::from_utf8_lossy(path).into_owned();
                Some(UnopenedBinary { path, error: *error })
            }
            _ => None,
        };
        let mut all: Vec<_> = self.known.iter().filter_map(unopened).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    fn begin(&mut self, backing: Backing, mapper: Mapper, attempts: u32) {
        if let Backing::File { path, .. } = &backing {
            self.counts.has_java |= Runtime::of_path(path) == Some(Runtime::Java);
        }
        self.known.insert(backing.clone(), Module::Pending(attempts));
        // The threads live as long as the sender does.
        let _ = self.tasks.as_ref().map(|tasks| tasks.send(Task { backing, mapper }));
    }

    /// Takes in the results of the threads, and loads their tables. Gives the binaries.
    pub(super) fn settle(&mut self, stacks: &Mutex<Stacks>) -> Vec<Backing> {
        let mut settled = Vec::new();
        while let Ok(done) = self.done.try_recv() {
            let Done { backing, pid, image, table, python, build_ns } = done;
            self.counts.build_ns += build_ns;
            let module = match image {
                Ok(Some(image)) => {
                    let is_wanted = python.is_some();
                    let interpreter =
                        python.and_then(|python| self.interpreters.learn(&python, stacks));
                    self.counts.interpreters_refused +=
                        u64::from(is_wanted && interpreter.is_none());
                    let (table, load) = self.load(table, interpreter, stacks);
                    name(&backing, &image, table, stacks);
                    Module::Ready(Ready { image, table, load, unused_since: None })
                }
                Ok(None) => {
                    self.counts.without += 1;
                    Module::NoImage
                }
                Err(error) => {
                    let attempts = match self.known.get(&backing) {
                        // Through another process, it is the same file system.
                        _ if error.failure == OpenFailure::NoAnswer => OPEN_ATTEMPTS_MAX,
                        Some(Module::Pending(attempts)) => *attempts,
                        _ => OPEN_ATTEMPTS_MAX,
                    };
                    Module::Unopened { error, pid, attempts }
                }
            };
            self.known.insert(backing.clone(), module);
            settled.push(backing);
        }
        settled
    }

    /// Loads the table of arenas of a kind, once.
    pub(super) fn learn_arenas(&mut self, of: Trampolines, stacks: &Mutex<Stacks>) {
        if !self.arenas.contains_key(&of) {
            let table = of.table().ok().map(|table| (table, Origin::Built));
            let (number, _) = self.load(table, None, stacks);
            self.arenas.insert(of, number);
        }
    }

    fn load(
        &mut self,
        table: Option<(UnwindTable, Origin)>,
        interpreter: Option<InterpreterNumber>,
        stacks: &Mutex<Stacks>,
    ) -> (TableNumber, Load) {
        let Some((table, origin)) = table else {
            self.counts.without += 1;
            return (TableNumber::NONE, Load::Done);
        };
        match load(stacks, &table, interpreter) {
            Ok(number) => {
                self.counts.count(&table, origin);
                (number, if interpreter.is_some() { Load::Stays } else { Load::Done })
            }
            Err(_) => {
                self.counts.refused += 1;
                (TableNumber::NONE, Load::Refused)
            }
        }
    }

    /// Takes out binaries that no process maps any more: deleted ones, whose bytes stay on the disk until then, and those
    /// that were unused for longest, where there are many or where room for tables ends.
    ///
    /// Gives binaries that have to be worked on again, since there is room for their tables now.
    pub(super) fn sweep(
        &mut self,
        model: &Model,
        now: Instant,
        stacks: &Mutex<Stacks>,
    ) -> Vec<Backing> {
        if now.saturating_duration_since(self.swept) < UNUSED_INTERVAL {
            return Vec::new();
        }
        self.swept = now;
        let mapped = model.backings();
        let unused = self.unused(&mapped, now);
        let is_tight = || lock(stacks).tables_are_tight();
        let was_tight = is_tight();
        let deleted = if unused.is_empty() { HashSet::new() } else { deleted() };
        let mut many = unused.len().saturating_sub(UNUSED_MAX);
        for (_, address, backing) in unused {
            let is_gone = many > 0 || deleted.contains(&address) || (was_tight && is_tight());
            if is_gone && self.remove(&backing, now, stacks) {
                many = many.saturating_sub(1);
            }
        }
        if self.known.len() > MODULES_MAX / 2 {
            let says_something =
                |module: &Module| matches!(module, Module::Pending(_) | Module::Ready(_));
            self.known.retain(|backing, module| mapped.contains(backing) || says_something(module));
        }
        let refused = |(backing, module): (&Backing, &Module)| {
            let is_refused = matches!(module, Module::Ready(Ready { load: Load::Refused, .. }));
            is_refused.then(|| backing.clone())
        };
        // Those that are too large for the room that is always left are not tried again and again.
        if !was_tight || is_tight() {
            return Vec::new();
        }
        let refused: Vec<_> = self.known.iter().filter_map(refused).collect();
        refused.into_iter().filter(|backing| self.remove(backing, now, stacks)).collect()
    }

    /// Files that no process has mapped for a while, those that were unused for longest first: since when, and where they
    /// are mapped here.
    fn unused(&mut self, mapped: &HashSet<&Backing>, now: Instant) -> Vec<(Instant, u64, Backing)> {
        let mut unused = Vec::new();
        for (backing, module) in &mut self.known {
            let (Module::Ready(ready), Backing::File { .. }) = (module, backing) else { continue };
            if mapped.contains(backing) || ready.load == Load::Stays {
                ready.unused_since = None;
                continue;
            }
            let since = *ready.unused_since.get_or_insert(now);
            if now.saturating_duration_since(since) >= UNUSED_INTERVAL {
                unused.push((since, ready.image.bytes().as_ptr() as u64, backing.clone()));
            }
        }
        unused.sort_by_key(|(since, _, _)| *since);
        unused
    }

    /// False where the kernel refuses: then all stays.
    fn remove(&mut self, backing: &Backing, now: Instant, stacks: &Mutex<Stacks>) -> bool {
        let Some(Module::Ready(ready)) = self.known.get(backing) else { return false };
        let mut stacks = lock(stacks);
        // No program finds the file before its table goes, and its inode stays in its place until then.
        let gone = stacks
            .forget_file(ready.image.bytes().as_ptr() as u64)
            .and_then(|()| stacks.remove_table(ready.table, now));
        drop(stacks);
        if gone.is_ok() {
            self.known.remove(backing);
            self.counts.removed += 1;
        }
        gone.is_ok()
    }
}

fn lock(stacks: &Mutex<Stacks>) -> MutexGuard<'_, Stacks> {
    stacks.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The beginnings of our mappings of files that were deleted.
fn deleted() -> HashSet<u64> {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let lines = maps.split(|byte| *byte == b'\n').filter_map(MapsLine::parse);
    lines.filter(|line| line.path.ends_with(b" (deleted)")).map(|line| line.start).collect()
}

/// Has stacks go through a binary from now on wherever a process maps it, before that is known here.
fn name(backing: &Backing, image: &ElfImage, table: TableNumber, stacks: &Mutex<Stacks>) {
    let Some(bias) = image.code_bias() else { return };
    let stacks = lock(stacks);
    // Refused, the binary is known where its mappings are.
    let _ = match backing {
        Backing::None | Backing::Trampolines(_) => Ok(()),
        Backing::Vdso => stacks.set_vdso(bias, table),
        Backing::File { .. } => stacks.set_file(image.bytes().as_ptr() as u64, bias, table),
    };
}

impl Modules {
    /// Ends the reading of names; those that were met are read.
    pub(super) fn finish_names(&mut self) {
        self.interpreters.names = None;
    }
}

impl Drop for Modules {
    fn drop(&mut self) {
        self.tasks = None;
        for worker in self.workers.drain(..) {
            // A panic there has been reported by the thread itself.
            let _ = worker.join();
        }
    }
}

fn load(
    stacks: &Mutex<Stacks>,
    table: &UnwindTable,
    interpreter: Option<InterpreterNumber>,
) -> Result<TableNumber, BpfError> {
    let rules: Vec<[u8; 8]> = table.rules().iter().map(|rule| rule.encode()).collect();
    let (start, index, rows) = (table.range().start.0, table.index(), table.rows());
    let parts = TableParts { start, index, rows, rules: &rules, interpreter };
    lock(stacks).add_table(&parts, Instant::now())
}

fn work(
    inbox: &Mutex<Receiver<Task>>,
    outbox: &Sender<Done>,
    store: &TableStore,
    roots: &Roots,
    waker: &Waker,
) {
    super::hurry();
    loop {
        let task = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Task { backing, mapper }) = task else { return };
        let begin = Instant::now();
        let opened = open(&backing, &mapper, roots);
        let binary = opened.as_ref().ok().and_then(Option::as_ref);
        let table = binary.and_then(|binary| store.table(&binary.image, binary.version).ok());
        let python = binary.and_then(|binary| python::find(&binary.image));
        let is_cut = binary.is_some_and(|binary| binary.image.is_cut());
        let image = opened.map(|binary| binary.map(Binary::into_image));
        let build_ns = begin.elapsed().as_nanos() as u64;
        let mut done = Done { backing, pid: mapper.pid, image, table, python, build_ns };
        if is_cut {
            (done.image, done.table, done.python) = (Err(CUT), None, None);
        }
        if outbox.send(done).is_err() {
            return;
        }
        let _ = waker.wake();
    }
}

/// Another process cut the file while it was read.
const CUT: OpenError = OpenError { failure: OpenFailure::Unreadable, errno: None };

/// The binary, opened by way of the process that has it mapped; `None` where there is none to be opened.
fn open(backing: &Backing, mapper: &Mapper, roots: &Roots) -> Result<Option<Binary>, OpenError> {
    match backing {
        Backing::None | Backing::Trampolines(_) => Ok(None),
        Backing::Vdso => {
            let image =
                own_vdso().ok().map(|bytes| ElfImage::from_bytes(Path::new("[vdso]"), bytes));
            Ok(image.and_then(Result::ok).map(|image| Binary { image, version: None, file: None }))
        }
        Backing::File { id, path } => {
            let (pid, range) = (Some(mapper.pid), mapper.range.clone());
            let relatives = &mapper.ancestors;
            let file = WantedFile { pid, relatives, range, identity: Identity::Mapping(*id), path }
                .open(&roots.proc)?;
            let unreadable = |error: std::io::Error| OpenError::reading(&error);
            let version = Some(version(*id, file.facts()));
            let file = file.map().map_err(unreadable)?;
            let image = ElfImage::from_mapped(Path::new(OsStr::from_bytes(path)), file.clone());
            if file.is_cut() {
                return Err(CUT);
            }
            Ok(image.ok().map(|image| Binary { image, version, file: Some(file) }))
        }
    }
}

/// A binary that was opened.
struct Binary {
    image: ElfImage,
    /// Which version of the file it is, looked at before it was read.
    version: Option<FileVersion>,
    /// Its bytes, where they are those of a file.
    file: Option<MappedFile>,
}

impl Binary {
    /// The image, which takes no memory while nobody looks at it: many binaries stay mapped for long.
    fn into_image(self) -> ElfImage {
        // Refused, it takes more memory.
        let _ = self.file.as_ref().map(MappedFile::forget_pages);
        self.image
    }
}

fn version(id: FileId, facts: &FileFacts) -> FileVersion {
    let FileFacts { size_bytes, modified_ns, changed_ns, .. } = *facts;
    FileVersion { stamp: FileStamp { id, size_bytes, modified_ns }, changed_ns }
}
