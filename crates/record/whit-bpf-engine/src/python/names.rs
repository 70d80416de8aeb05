//! The thread that reads the names of functions as the programs meet them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whit_bpf::stacks::{Announcement, Functions, InterpreterNumber};
use whit_engine_api::error::EngineError;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::interpreted::{INTERPRETED_MAX, InterpretedFunction};
use whit_sys::process_files::ProcessFile;
use whit_types::{Pid, TimestampNs};

use super::layout::ObjectLayout;
use super::met::MetFunctions;
use super::objects::{Memory, ReadFunction};

/// How often the thread looks whether it is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Processes whose memory is kept open.
const OPEN_MAX: usize = 64;

/// Names, files and lines in memory.
const NAMED_MAX_BYTES: usize = 256 << 20;

/// Processes that are remembered to be walked. Beyond, one without a function in a stack may get the advice to take this
/// engine.
const FOLLOWED_MAX: usize = 1 << 16;

/// The functions so far, and how far the outputs have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    functions: Vec<InterpretedFunction>,
    /// Processes whose interpreters are walked, whether or not they ran.
    followed: BTreeSet<Pid>,
    /// The number of the output that decoders write, and how many of the functions it has.
    output: u64,
    written: usize,
    /// How many the output before has.
    written_before: usize,
    /// The latest time of a record that a decoder has given.
    latest: TimestampNs,
    /// Functions without a name: their process or they themselves were gone, or not readable.
    pub(crate) unread: u64,
    /// Functions beyond [`INTERPRETED_MAX`] or [`NAMED_MAX_BYTES`].
    pub(crate) beyond: u64,
    bytes: usize,
}

impl Named {
    /// Decoders go on in an output with this number. Each of them says so.
    pub(crate) fn start_output(&mut self, number: u64) {
        if number > self.output {
            self.output = number;
            self.written_before = std::mem::take(&mut self.written);
        }
    }

    /// A decoder has given records up to this time.
    pub(crate) fn see(&mut self, time: TimestampNs) {
        self.latest = self.latest.max(time);
    }

    /// Appends records of functions that the decoders' output does not have yet, until these are `enough_bytes`. Whether
    /// there are more. A decoder that still writes an older output gets none.
    ///
    /// They have the time of the latest record that a decoder has given: readers that sort by rounds then find no record
    /// that is older than those of a round before.
    pub(crate) fn write(
        &mut self,
        output: u64,
        (encoder, event_id): (&RecordEncoder, u64),
        enough_bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let begin = out.len();
        while output == self.output && out.len() - begin < enough_bytes {
            let Some(function) = self.functions.get(self.written) else { return false };
            encoder.function(out, function, self.latest, event_id);
            self.written += 1;
        }
        output == self.output && self.written < self.functions.len()
    }

    /// The same for the end of an output: of the present one if `is_last`, else of the one before, which no decoder
    /// writes any more.
    pub(crate) fn write_rest(
        &mut self,
        is_last: bool,
        (encoder, event_id): (&RecordEncoder, u64),
    ) -> Vec<u8> {
        let written = if is_last { &mut self.written } else { &mut self.written_before };
        let rest = std::mem::replace(written, self.functions.len());
        let mut out = Vec::new();
        for function in &self.functions[rest..] {
            encoder.function(&mut out, function, self.latest, event_id);
        }
        out
    }

    /// The processes of the functions, and those that would have had some.
    pub(crate) fn processes(&self) -> BTreeSet<Pid> {
        let of_functions = self.functions.iter().map(|function| function.pid);
        of_functions.chain(self.followed.iter().copied()).collect()
    }

    /// The interpreter of a process is walked.
    pub(crate) fn follow(&mut self, pid: Pid) {
        if self.followed.len() < FOLLOWED_MAX {
            self.followed.insert(pid);
        }
    }

    pub(crate) fn add(&mut self, function: InterpretedFunction) {
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
    memories: HashMap<u32, ProcessFile>,
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
            memories: HashMap::new(),
        };
        let stopped = stop.clone();
        let work = move || {
            crate::hurry();
            let (mut all, mut before) = (MetFunctions::new(), Instant::now());
            // Those that were met before the end are read after it.
            let mut is_last = false;
            while !is_last {
                is_last = stopped.load(Ordering::SeqCst);
                let timeout = if is_last { Duration::ZERO } else { LOOK_INTERVAL };
                let Ok(met) = functions.wait(timeout) else { break };
                met.into_iter().for_each(|met| all.meet(met, |met| reader.read(met)));
                let passed = std::mem::replace(&mut before, Instant::now()).elapsed();
                all.pass(passed, |met| reader.read(met));
            }
            all.read_again(|met| reader.read(met));
            reader.named().unread = all.without_name();
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
    /// Reads a function's name. Whether that was possible.
    fn read(&mut self, met: &Announcement) -> bool {
        let layout = {
            let layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
            layouts.get(&met.function.interpreter).copied()
        };
        let function = layout.and_then(|layout| self.function(met, &layout));
        function.map(|function| self.named().add(function)).is_some()
    }

    /// The copy that the programs made is true although the memory may have changed; the memory has the rest.
    fn function(
        &mut self,
        met: &Announcement,
        layout: &ObjectLayout,
    ) -> Option<InterpretedFunction> {
        let copied = Memory(met).function(&met.function, layout);
        if let Some(ReadFunction { function, is_whole: true, .. }) = copied {
            return Some(function);
        }
        let living = self.living(met, layout).or_else(|| {
            // The open file may be the memory before an exec.
            self.memories.remove(&met.function.pid)?;
            self.living(met, layout)
        });
        match (living, copied) {
            // Since then, the module's memory may have become another one's.
            (Some(living), Some(ReadFunction { function: copied, has_module: true, .. })) => {
                Some(InterpretedFunction { name: copied.name, ..living })
            }
            (living, copied) => living.or(copied.map(|copied| copied.function)),
        }
    }

    fn living(&mut self, met: &Announcement, layout: &ObjectLayout) -> Option<InterpretedFunction> {
        let memory = self.memory(met.function.pid)?;
        Memory(memory).function(&met.function, layout).map(|read| read.function)
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&mut self, pid: u32) -> Option<&ProcessFile> {
        if self.memories.len() >= OPEN_MAX && !self.memories.contains_key(&pid) {
            self.memories.clear();
        }
        if !self.memories.contains_key(&pid) {
            let opened = processes::open_living(&self.roots, Pid(pid as i32), "mem").ok()?;
            self.memories.insert(pid, opened);
        }
        self.memories.get(&pid)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
    use whit_perfdata::record::{RawRecord, SideBand};
    use whit_perfdata::sample::SampleLayout;

    /// A function at an address.
    pub(crate) fn function(start: u64) -> InterpretedFunction {
        let (name, file) = (b"py::f".to_vec(), b"f.py".to_vec());
        InterpretedFunction { pid: Pid(7), start, size_bytes: 1, name, file, lines: vec![(0, 1)] }
    }

    fn encoder() -> RecordEncoder {
        let sample_type = SampleType::TID | SampleType::TIME;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        RecordEncoder::new(SampleLayout::new(&Attr { sample_type, flags, ..Attr::default() }))
    }

    /// The addresses of the functions that records tell.
    fn starts(mut records: &[u8]) -> Vec<u64> {
        let mut starts = Vec::new();
        while let Some((record, rest)) = RawRecord::split(records) {
            if let Some(SideBand::Function(function)) = SideBand::parse(record) {
                starts.push(function.start);
            }
            records = rest;
        }
        starts
    }

    #[test]
    fn the_end_of_an_output_has_the_names_that_no_decoder_wrote() {
        let (encoder, mut named) = (encoder(), Named::default());
        let written = |named: &mut Named, output| {
            let mut out = Vec::new();
            let is_more = named.write(output, (&encoder, 1), usize::MAX, &mut out);
            assert!(!is_more);
            starts(&out)
        };
        let rest = |named: &mut Named, is_last| starts(&named.write_rest(is_last, (&encoder, 1)));
        named.add(function(1));
        assert_eq!(written(&mut named, 0), [1]);
        named.add(function(2));
        named.start_output(1);
        named.start_output(1);
        assert!(written(&mut named, 0).is_empty());
        // The output before, at its end, and the new one.
        assert_eq!(rest(&mut named, false), [2]);
        assert!(rest(&mut named, false).is_empty());
        assert_eq!(written(&mut named, 1), [1, 2]);
        named.add(function(3));
        assert_eq!(rest(&mut named, true), [3]);
        assert_eq!(named.processes(), [Pid(7)].into());
    }

    #[test]
    fn functions_come_in_pieces() {
        let (encoder, mut named) = (encoder(), Named::default());
        (0..10).for_each(|start| named.add(function(start)));
        let mut all = Vec::new();
        let mut pieces = 0;
        while named.write(0, (&encoder, 1), 100, &mut all) {
            pieces += 1;
        }
        assert_eq!(starts(&all), (0..10).collect::<Vec<_>>());
        assert!(pieces > 2, "{pieces}");
    }
}
