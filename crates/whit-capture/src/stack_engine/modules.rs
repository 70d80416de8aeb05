//! Binaries that processes map, and their tables: made by threads of their own, each binary once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use whit_bpf::BpfError;
use whit_bpf::stacks::{FileId, Mapping, Stacks, TableNumber, TableParts};
use whit_elf::{ElfImage, own_vdso};
use whit_sys::{MappedFile, Waker};
use whit_types::{BuildId, FileOffset};
use whit_unwind::Bytes;
use whit_unwind::table::UnwindTable;
use whit_unwind_tables::{Origin, TableStore};

use super::model::{Backing, Mapped, Space};
use crate::build_id::open_mapped_file;
use crate::error::CaptureError;
use crate::roots::Roots;

/// Threads that make tables.
const WORKERS_MAX: usize = 4;
/// Binaries that are known; more have no table.
const MODULES_MAX: usize = 16384;

/// A binary.
#[derive(Debug)]
enum Module {
    /// A thread works on it.
    Pending,
    /// What it says of its addresses, and its table in the kernel.
    Ready(Option<ElfImage>, TableNumber),
}

/// A binary to be worked on: which it is, and a process that has it mapped.
struct Task {
    backing: Backing,
    pid: i32,
}

/// What came of it.
pub(super) struct Done {
    backing: Backing,
    image: Option<ElfImage>,
    table: Option<(UnwindTable, Origin)>,
    build_ns: u64,
}

/// What was done in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Tables that were loaded.
    pub loaded: u64,
    /// Of these, tables that the cache on disk had.
    pub cached: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Distinct rules, table by table.
    pub rules: u64,
    /// Time to make or read tables, summed over threads.
    pub build_ns: u64,
    /// Binaries without one.
    pub without: u64,
    /// Tables that found no room in the kernel.
    pub refused: u64,
}

impl TableCounts {
    fn count(&mut self, table: &UnwindTable, origin: Origin) {
        self.loaded += 1;
        self.cached += u64::from(origin == Origin::Cached);
        self.rows += table.rows().len() as u64;
        self.rules += table.rules().len() as u64;
    }
}

/// Files that the kernel's programs are told of by their numbers, and what was in them; `None` where the
/// numbers do not tell binaries apart, as in subvolumes of btrfs.
#[derive(Default, Debug)]
struct Named(HashMap<FileId, Option<BuildId>>);

/// What a file's numbers are to the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Naming {
    /// This file's.
    New,
    /// The same file's, by another path.
    Again,
    /// Several files'.
    Ambiguous,
}

impl Named {
    fn add(&mut self, file: FileId, build_id: Option<BuildId>) -> Naming {
        match self.0.entry(file) {
            Entry::Vacant(place) => {
                place.insert(build_id);
                Naming::New
            }
            Entry::Occupied(place) if build_id.is_some() && *place.get() == build_id => {
                Naming::Again
            }
            Entry::Occupied(mut place) => {
                place.insert(None);
                Naming::Ambiguous
            }
        }
    }
}

/// All binaries.
#[derive(Debug)]
pub(super) struct Modules {
    known: HashMap<Backing, Module>,
    tasks: Option<Sender<Task>>,
    done: Receiver<Done>,
    workers: Vec<JoinHandle<()>>,
    named: Named,
    pub(super) counts: TableCounts,
}

impl Modules {
    /// Starts the threads; they wake `waker` when something is done.
    pub(super) fn start(
        roots: &Roots,
        store: TableStore,
        waker: &Waker,
    ) -> Result<Modules, CaptureError> {
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
            workers.push(thread.map_err(|source| CaptureError::Thread { source })?);
        }
        let counts = TableCounts::default();
        let (known, named) = (HashMap::new(), Named::default());
        Ok(Modules { known, tasks: Some(tasks), done, workers, named, counts })
    }

    /// What the kernel is to know of a process. Binaries that are new are set to work on.
    pub(super) fn mappings(&mut self, pid: i32, space: &Space) -> Vec<Mapping> {
        space.iter().map(|(start, mapped)| self.mapping(pid, start, mapped)).collect()
    }

    fn mapping(&mut self, pid: i32, start: u64, mapped: &Mapped) -> Mapping {
        let end = mapped.end;
        let without = |table| Mapping { start, end, bias: 0, table };
        if mapped.backing == Backing::None {
            return without(TableNumber::NONE);
        }
        match self.known.get(&mapped.backing) {
            None if self.known.len() >= MODULES_MAX => without(TableNumber::NONE),
            None => {
                self.begin(mapped.backing.clone(), pid);
                without(TableNumber::NOT_YET)
            }
            Some(Module::Pending) => without(TableNumber::NOT_YET),
            Some(Module::Ready(image, table)) => {
                let offset = FileOffset(mapped.file_offset);
                let svma = image.as_ref().and_then(|i| i.svma_of_mapping(offset, end - start));
                match svma {
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
                self.begin(backing, pid);
            }
        }
    }

    /// Whether threads still work on binaries.
    pub(super) fn is_busy(&self) -> bool {
        self.known.values().any(|module| matches!(module, Module::Pending))
    }

    fn begin(&mut self, backing: Backing, pid: i32) {
        self.known.insert(backing.clone(), Module::Pending);
        // The threads live as long as the sender does.
        let _ = self.tasks.as_ref().map(|tasks| tasks.send(Task { backing, pid }));
    }

    /// Takes in what the threads have done, and loads it. Gives the binaries.
    pub(super) fn settle(&mut self, stacks: &Mutex<Stacks>) -> Vec<Backing> {
        let mut settled = Vec::new();
        while let Ok(Done { backing, image, table, build_ns }) = self.done.try_recv() {
            self.counts.build_ns += build_ns;
            let number = match table {
                None => {
                    self.counts.without += 1;
                    TableNumber::NONE
                }
                Some((table, origin)) => match load(stacks, &table) {
                    Ok(number) => {
                        self.counts.count(&table, origin);
                        number
                    }
                    Err(_) => {
                        self.counts.refused += 1;
                        TableNumber::NONE
                    }
                },
            };
            if let Some(image) = &image {
                self.tell_of(&backing, image, number, stacks);
            }
            self.known.insert(backing.clone(), Module::Ready(image, number));
            settled.push(backing);
        }
        settled
    }

    /// Has stacks go through a binary from now on wherever a process maps it, before that is told.
    fn tell_of(
        &mut self,
        backing: &Backing,
        image: &ElfImage,
        table: TableNumber,
        stacks: &Mutex<Stacks>,
    ) {
        let Some(bias) = image.code_bias() else { return };
        let stacks = stacks.lock().unwrap_or_else(PoisonError::into_inner);
        // Refused, the binary is known where its mappings are told.
        let _ = match backing {
            Backing::None => Ok(()),
            Backing::Vdso => stacks.set_file(None, bias, table),
            Backing::File { device, inode, .. } => {
                let file = FileId { device: *device, inode: *inode };
                match self.named.add(file, image.build_id()) {
                    Naming::New => stacks.set_file(Some(file), bias, table),
                    Naming::Again => Ok(()),
                    Naming::Ambiguous => {
                        stacks.remove_file(file);
                        Ok(())
                    }
                }
            }
        };
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

fn load(stacks: &Mutex<Stacks>, table: &UnwindTable) -> Result<TableNumber, BpfError> {
    let rules: Vec<[u8; 8]> = table.rules().iter().map(|rule| rule.encode()).collect();
    let start = table.range().start.0;
    let parts = TableParts { start, index: table.index(), rows: table.rows(), rules: &rules };
    stacks.lock().unwrap_or_else(PoisonError::into_inner).add_table(&parts)
}

fn work(
    inbox: &Mutex<Receiver<Task>>,
    outbox: &Sender<Done>,
    store: &TableStore,
    roots: &Roots,
    waker: &Waker,
) {
    loop {
        let task = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Task { backing, pid }) = task else { return };
        let begin = Instant::now();
        let image = open(&backing, pid, roots);
        let table = image.as_ref().and_then(|image| store.table(image).ok());
        let build_ns = begin.elapsed().as_nanos() as u64;
        if outbox.send(Done { backing, image, table, build_ns }).is_err() {
            return;
        }
        let _ = waker.wake();
    }
}

/// The file itself, found by way of the process that has it mapped.
fn open(backing: &Backing, pid: i32, roots: &Roots) -> Option<ElfImage> {
    use std::os::unix::ffi::OsStrExt;
    match backing {
        Backing::None => None,
        Backing::Vdso => ElfImage::from_bytes(Path::new("[vdso]"), own_vdso().ok()?).ok(),
        Backing::File { device: (major, minor), inode, path } => {
            let inside = Path::new(std::ffi::OsStr::from_bytes(path.get(1..)?));
            let wanted = (*major, *minor, *inode);
            // The process may be gone already; most files are where it saw them.
            let file = open_mapped_file(&roots.process(pid, "root"), inside, wanted)
                .or_else(|| open_mapped_file(Path::new("/"), inside, wanted))?;
            let bytes = Bytes::new(MappedFile::map(&file).ok()?);
            ElfImage::from_bytes(Path::new(std::ffi::OsStr::from_bytes(path)), bytes).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_one_binary_or_none() {
        let mut named = Named::default();
        let file = |inode| FileId { device: (8, 1), inode };
        let id = |byte| BuildId::new(&[byte; 20]);
        assert_eq!(named.add(file(1), id(1)), Naming::New);
        assert_eq!(named.add(file(2), id(1)), Naming::New);
        assert_eq!(named.add(file(1), id(1)), Naming::Again);
        assert_eq!(named.add(file(1), id(2)), Naming::Ambiguous);
        // Whichever of them comes again.
        assert_eq!(named.add(file(1), id(1)), Naming::Ambiguous);
        assert_eq!(named.add(file(3), None), Naming::New);
        assert_eq!(named.add(file(3), None), Naming::Ambiguous);
    }
}
