//! Names of threads, and the function that a call site is named by.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_profile::switches::is_system_library;
use whit_profile::tables::TableSource;
use whit_types::{Pid, Tid};

/// Functions of call sites, each looked for once.
#[derive(Default)]
pub struct Places(FxHashMap<u32, Option<Arc<str>>>);

impl Places {
    /// The innermost function of the program or of its libraries; without one, the innermost of the C library, or of
    /// the kernel.
    pub fn of(&mut self, source: &TableSource, callsite: Option<u32>) -> Option<Arc<str>> {
        let callsite = callsite?;
        self.0.entry(callsite).or_insert_with(|| find(source, callsite)).clone()
    }
}

fn find(source: &TableSource, innermost: u32) -> Option<Arc<str>> {
    let mut next = Some(innermost);
    // By how little it says: a function of the C library, of the kernel.
    let mut fallback: [Option<Arc<str>>; 2] = [None, None];
    while let Some(callsite) = next {
        let row = source.callsite(callsite)?;
        let frame = source.frame(row.frame)?;
        next = row.parent;
        // The function that it was inlined into stands in the binary.
        if frame.is_inlined {
            continue;
        }
        let rank = if frame.is_kernel {
            1
        } else if is_of_the_system(source, frame.binary) || !frame.is_known {
            0
        } else {
            return Some(frame.name);
        };
        fallback[rank].get_or_insert(frame.name);
    }
    fallback.into_iter().flatten().next()
}

fn is_of_the_system(source: &TableSource, binary: u32) -> bool {
    source
        .binary(binary)
        .is_some_and(|binary| is_system_library(binary.path.rsplit('/').next().unwrap_or_default()))
}

/// A thread, for output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadName {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Last command name.
    pub name: Option<Arc<str>>,
}

impl ThreadName {
    /// By its number.
    pub(crate) fn of(source: &TableSource, thread: u32) -> ThreadName {
        let row = source.thread(thread);
        row.map_or(ThreadName { pid: Pid(-1), tid: Tid(-1), name: None }, |row| ThreadName {
            pid: row.pid,
            tid: row.tid,
            name: row.name,
        })
    }
}
