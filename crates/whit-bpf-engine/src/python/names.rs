//! The thread that reads the names of functions as the programs meet them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use whit_bpf::stacks::{Functions, InterpreterNumber, MetFunction};
use whit_engine::error::EngineError;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_perfdata::interpreted::{INTERPRETED_MAX, InterpretedFunction};
use whit_types::Pid;

use super::layout::ObjectLayout;
use super::objects::Memory;

/// How often the thread looks whether it is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Processes whose memory is kept open.
const OPEN_MAX: usize = 64;

/// Functions that are remembered as met.
const MET_MAX: usize = 2 * INTERPRETED_MAX;
/// Names, files and lines in memory.
const NAMED_MAX_BYTES: usize = 256 << 20;

/// The functions so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) functions: Vec<InterpretedFunction>,
    /// Functions without a name: their process or they themselves were gone.
    pub(crate) unread: u64,
    /// Functions beyond [`INTERPRETED_MAX`] or [`NAMED_MAX_BYTES`].
    pub(crate) beyond: u64,
    bytes: usize,
}

impl Named {
    fn add(&mut self, function: InterpretedFunction) {
        let lines = size_of_val(function.lines.as_slice());
        let bytes = size_of_val(&function) + function.name.len() + function.file.len() + lines;
        if self.functions.len() >= INTERPRETED_MAX || self.bytes + bytes > NAMED_MAX_BYTES {
            self.beyond += 1;
            return;
        }
        self.bytes += bytes;
        self.functions.push(function);
    }
}

/// The thread, to be stopped.
#[derive(Debug)]
pub(crate) struct Names {
    layouts: Arc<Mutex<HashMap<u32, ObjectLayout>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Works on the thread.
struct Reader {
    roots: Roots,
    layouts: Arc<Mutex<HashMap<u32, ObjectLayout>>>,
    named: Arc<Mutex<Named>>,
    met: HashSet<MetFunction>,
    memories: HashMap<u32, File>,
}

impl Names {
    /// Reads names into `named` from here on.
    pub(crate) fn start(
        functions: Functions,
        roots: &Roots,
        named: Arc<Mutex<Named>>,
    ) -> Result<Names, EngineError> {
        let layouts: Arc<Mutex<HashMap<_, _>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let mut reader = Reader {
            roots: roots.clone(),
            layouts: layouts.clone(),
            named,
            met: HashSet::new(),
            memories: HashMap::new(),
        };
        let stopped = stop.clone();
        let work = move || {
            crate::hurry();
            // Those that were met before the end are read after it.
            let mut is_last = false;
            while !is_last {
                is_last = stopped.load(Ordering::SeqCst);
                let timeout = if is_last { Duration::ZERO } else { LOOK_INTERVAL };
                let Ok(met) = functions.wait(timeout) else { break };
                met.into_iter().for_each(|function| reader.read(function));
            }
        };
        let thread = std::thread::Builder::new().name("whit-names".to_owned()).spawn(work);
        let thread = thread.map_err(|source| EngineError::Thread { source })?;
        Ok(Names { layouts, stop, thread: Some(thread) })
    }

    /// The objects of an interpreter have their data so.
    pub(crate) fn learn(&self, number: InterpreterNumber, layout: ObjectLayout) {
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        layouts.insert(number.number(), layout);
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // A panic there has been reported by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Reader {
    fn read(&mut self, met: MetFunction) {
        if self.met.len() >= MET_MAX {
            self.met.clear();
        }
        // Each CPU announces a function for itself.
        if !self.met.insert(met) {
            return;
        }
        let layout = {
            let layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
            layouts.get(&met.interpreter).copied()
        };
        let function = layout.and_then(|layout| {
            self.function(&met, &layout).or_else(|| {
                // The open file may be the memory before an exec.
                self.memories.remove(&met.pid)?;
                self.function(&met, &layout)
            })
        });
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        match function {
            None => named.unread += 1,
            Some(function) => named.add(function),
        }
    }

    fn function(
        &mut self,
        met: &MetFunction,
        layout: &ObjectLayout,
    ) -> Option<InterpretedFunction> {
        let memory = self.memory(met.pid)?;
        let read = |at: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, at).is_ok();
        Memory(read).function(met, layout)
    }

    fn memory(&mut self, pid: u32) -> Option<&File> {
        if self.memories.len() >= OPEN_MAX && !self.memories.contains_key(&pid) {
            self.memories.clear();
        }
        if !self.memories.contains_key(&pid) {
            let _in_force = processes::see_others();
            let opened = File::open(self.roots.process(Pid(pid as i32), "mem")).ok()?;
            self.memories.insert(pid, opened);
        }
        self.memories.get(&pid)
    }
}
