//! Names of threads, and of the places where they wait: a function, and an object.

use crate::goroutines::{GoTasks, of_goroutine};
use crate::history::WaitSite;
use rustc_hash::FxHashMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use whit_perfdata::wait_object::{SocketRole, WaitObject};
use whit_profile::model::DsoKind;
use whit_profile::switches::{Futex, FutexSymbol, NamedObject, is_runtime, is_system_library};
use whit_profile::tables::TableSource;
use whit_types::Pid;

/// The function and the object of a wait, for output.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Place {
    /// `None` without a call chain.
    pub function: Option<Arc<str>>,
    /// The object; `None` where it is not known.
    pub object: Option<Arc<str>>,
}

/// Functions of call sites and names of objects, each looked for once.
#[derive(Default)]
pub struct Places {
    functions: FxHashMap<u32, Option<Arc<str>>>,
    objects: FxHashMap<u32, Option<Arc<str>>>,
    are_several: bool,
}

impl Places {
    /// Names that leave the ports of clients out, and the places of locks in variables.
    pub(crate) fn of_several() -> Places {
        Places { are_several: true, ..Places::default() }
    }

    /// The names of a site.
    pub fn of(&mut self, source: &TableSource, site: WaitSite) -> Place {
        let function = self.function(source, site.callsite);
        let object = site.object.and_then(|number| {
            let named = || source.object(number).filter(NamedObject::is_known);
            let name = || named().map(|object| name_of(&object, self.are_several));
            self.objects.entry(number).or_insert_with(name).clone()
        });
        Place { function, object }
    }

    /// The innermost function of the program or of its libraries; of a goroutine, that of the program's own packages; of a
    /// managed language, that of the language within which its runtime works. Without one, the innermost of the runtime, of the C library, or of the kernel.
    pub(crate) fn function(
        &mut self,
        source: &TableSource,
        callsite: Option<u32>,
    ) -> Option<Arc<str>> {
        let callsite = callsite?;
        self.functions.entry(callsite).or_insert_with(|| find(source, callsite)).clone()
    }
}

/// In front of the names of functions of Python.
const PYTHON: &str = "py::";
/// Ports that Linux gives to clients (`net.ipv4.ip_local_port_range`).
const PORTS_OF_CLIENTS: RangeInclusive<u16> = 32_768..=60_999;

fn name_of(object: &NamedObject, are_several: bool) -> Arc<str> {
    let socket = match object {
        NamedObject::Described(WaitObject::Inet(socket)) => socket,
        // The locks of an array are one.
        NamedObject::Futex(Futex { address, symbol: Some(symbol) })
            if are_several && symbol.name.is_some() =>
        {
            let symbol = Some(FutexSymbol { offset: 0, ..symbol.clone() });
            return Futex { address: *address, symbol }.to_string().into();
        }
        _ => return object.to_string().into(),
    };
    let mut name = socket.to_string();
    if are_several && socket.role != SocketRole::Listens {
        for end in [socket.own, socket.peer] {
            if PORTS_OF_CLIENTS.contains(&end.port()) {
                let any = SocketAddr::new(end.ip(), 0).to_string();
                let any = any.trim_end_matches('0');
                name = name.replacen(&end.to_string(), &format!("{any}*"), 1);
            }
        }
    }
    name.into()
}

fn find(source: &TableSource, innermost: u32) -> Option<Arc<str>> {
    if let Some(function) = of_goroutine(source, innermost) {
        return Some(function);
    }
    let mut next = Some(innermost);
    // By how little it says: a function of a runtime, of the C library, of the kernel.
    let mut fallback: [Option<Arc<str>>; 3] = [None, None, None];
    while let Some(callsite) = next {
        let row = source.callsite(callsite)?;
        let frame = source.frame(row.frame)?;
        next = row.parent;
        // The function that it was inlined into stands in the binary.
        if frame.is_inlined {
            continue;
        }
        let binary = source.binary(frame.binary);
        let is_managed = frame.name.starts_with(PYTHON)
            || binary.as_ref().is_some_and(|binary| binary.kind == DsoKind::Jit);
        let path = binary.as_ref().map_or("", |binary| &*binary.path);
        let file = path.rsplit('/').next().unwrap_or_default();
        let rank = if frame.is_kernel {
            2
        } else if is_system_library(file) || !frame.is_known {
            1
        } else if is_managed {
            return Some(frame.name);
        } else if is_runtime(file) {
            0
        } else if fallback[0].is_some() {
            // A program that a runtime is part of.
            break;
        } else {
            return Some(frame.name);
        };
        fallback[rank].get_or_insert(frame.name);
    }
    fallback.into_iter().flatten().next()
}

/// A thread or goroutine, for output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadName {
    /// Process.
    pub pid: Pid,
    /// The id of the thread; the number of the goroutine.
    pub number: i64,
    /// Last command name: that of the thread that ran the goroutine last.
    pub name: Option<Arc<str>>,
    /// False for threads.
    pub is_goroutine: bool,
}

impl ThreadName {
    /// By its number.
    pub(crate) fn of(source: &TableSource, goroutines: &GoTasks, number: u32) -> ThreadName {
        let goroutine = goroutines.get(number);
        let row = source.thread(goroutine.map_or(number, |task| task.thread));
        let of_goroutine = goroutine.map(|task| task.id.number() as i64);
        ThreadName {
            pid: row.as_ref().map_or(Pid(-1), |row| row.pid),
            number: of_goroutine.or(row.as_ref().map(|row| row.tid.0.into())).unwrap_or(-1),
            name: row.and_then(|row| row.name),
            is_goroutine: goroutine.is_some(),
        }
    }

    /// The id of a thread; `None` for goroutines.
    pub fn tid(&self) -> Option<i32> {
        i32::try_from(self.number).ok().filter(|_| !self.is_goroutine)
    }

    /// Its kind, by which threads are added up.
    pub(crate) fn threads(self, are_several: bool) -> Threads {
        let pid = if are_several { Pid(-1) } else { self.pid };
        Threads { pid, name: self.name, are_goroutines: self.is_goroutine }
    }
}

/// Threads or goroutines of one process that have one name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Threads {
    /// Process; -1 for any, with several intervals.
    pub pid: Pid,
    /// Last command name.
    pub name: Option<Arc<str>>,
    /// They are goroutines.
    pub are_goroutines: bool,
}
