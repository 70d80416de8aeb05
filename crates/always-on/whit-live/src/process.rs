//! A process as its records describe it by now.

use crate::mappings::Mappings;
use crate::piece::Record;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_perfdata::interpreted::FunctionRecord;
use whit_perfdata::record::{HEADER_SIZE_BYTES, Mmap, RawRecord, SideBand};

/// Functions of an interpreter in a process; of those beyond, the ones at the lowest addresses go. The interpreter does not
/// say which ones are gone.
const FUNCTIONS_MAX: usize = 65_536;

/// Mappings, threads and their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    /// Those of a forked process are its parent's until either has another one.
    mappings: Arc<Mappings>,
    /// The record with the name of each thread.
    threads: FxHashMap<i32, Option<Record>>,
    /// The records of each function of an interpreter, by its address.
    functions: Arc<BTreeMap<u64, Vec<Record>>>,
    /// When it was first seen to be gone.
    gone_since_ns: Option<u64>,
}

impl Process {
    /// A copy as fork makes it, with one thread.
    pub(crate) fn forked(&self, parent_tid: i32, tid: i32) -> Process {
        let name = self.threads.get(&parent_tid).cloned().flatten();
        Process {
            mappings: self.mappings.clone(),
            threads: [(tid, name)].into_iter().collect(),
            // The recorder tells those of each process apart.
            functions: Arc::default(),
            gone_since_ns: None,
        }
    }

    /// False where it has been gone for this time.
    pub(crate) fn is_kept(&mut self, now_ns: u64, gone_ns: u64, is_alive: bool) -> bool {
        if is_alive {
            self.gone_since_ns = None;
            return true;
        }
        let since_ns = *self.gone_since_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(since_ns) < gone_ns
    }

    pub(crate) fn add_thread(&mut self, parent_tid: i32, tid: i32) {
        let name = self.threads.get(&parent_tid).cloned().flatten();
        self.threads.insert(tid, name);
    }

    pub(crate) fn rename(&mut self, tid: i32, name: Record, is_exec: bool) {
        if is_exec {
            self.mappings = Arc::default();
            self.functions = Arc::default();
            self.threads.clear();
        }
        self.threads.insert(tid, Some(name));
    }

    /// Takes the thread out; true where none is left.
    pub(crate) fn end_thread(&mut self, tid: i32) -> bool {
        self.threads.remove(&tid);
        self.threads.is_empty()
    }

    /// True where an older mapping went, since there are too many.
    pub(crate) fn map(&mut self, mapping: &Mmap<'_>, record: Record) -> bool {
        Arc::make_mut(&mut self.mappings).add(mapping, record)
    }

    /// Takes a record of a function up. True where another function went, since there are too many.
    pub(crate) fn add_function(&mut self, function: &FunctionRecord<'_>, record: Record) -> bool {
        let functions = Arc::make_mut(&mut self.functions);
        let is_full = functions.len() >= FUNCTIONS_MAX && !functions.contains_key(&function.start);
        if is_full {
            functions.pop_first();
        }
        // A function with many lines has several records, and a recorder may repeat them.
        let records = functions.entry(function.start).or_default();
        if !records.iter().any(|known| says_the_same(known, &record)) {
            records.push(record);
        }
        is_full
    }

    /// Its records, as if it had made them all itself.
    pub(crate) fn write_to(&self, pid: i32, has_mappings: bool, out: &mut Vec<u8>) {
        for (tid, name) in &self.threads {
            if let Some(name) = name {
                put(name, pid, *tid, out);
            }
        }
        for record in self.mappings.records().filter(|_| has_mappings) {
            put(record, pid, pid, out);
        }
        let functions = self.functions.values().flatten().filter(|_| has_mappings);
        functions.for_each(|record| out.extend_from_slice(record));
    }
}

/// Whether two records state the same function: the rest of them is thread and time.
fn says_the_same(one: &[u8], other: &[u8]) -> bool {
    let function_of =
        |record| match RawRecord::split(record).and_then(|(it, _)| SideBand::parse(it)) {
            Some(SideBand::Function(function)) => Some(function),
            _ => None,
        };
    function_of(one) == function_of(other)
}

/// The process and the thread are the first two words of these records.
fn put(record: &[u8], pid: i32, tid: i32, out: &mut Vec<u8>) {
    let at = out.len() + HEADER_SIZE_BYTES;
    out.extend_from_slice(record);
    if let Some(words) = out.get_mut(at..at + 8) {
        words[..4].copy_from_slice(&pid.to_le_bytes());
        words[4..].copy_from_slice(&tid.to_le_bytes());
    }
}
