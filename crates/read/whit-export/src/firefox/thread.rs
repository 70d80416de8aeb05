//! One thread with its tables.

use super::format::{SampleTable, Thread};
use super::{category, ms};
use crate::content::{Content, Moment};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use whit_profile::model::{CgroupId, DsoKind, FrameId, FunctionId, NodeId, ThreadId, ThreadInfo};
use whit_profile::switches::TimelineSpan;
use whit_types::{Pid, Svma, TimestampNs};

/// Addresses from here on have no exact form in JavaScript.
const MAX_ADDRESS: u64 = 1 << 53;

/// The type of a resource that is a library.
const RESOURCE_LIBRARY: u32 = 1;

/// A thread in one cgroup, which is a thread of the profiler's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Part {
    pub(super) thread: ThreadId,
    cgroup: Option<CgroupId>,
}

/// Samples of a thread or process: of the event in the call tree, then of all events.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    shown: u64,
    all: u64,
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        self.shown += other.shown;
        self.all += other.all;
    }
}

/// The threads in the order in which the profiler lists them: processes by their samples, and in each the main thread
/// first. A process in several cgroups is several processes.
pub(super) struct Threads {
    pub(super) order: Vec<Part>,
    /// The place in it of the one with the most samples, which the profiler shows first.
    pub(super) hottest: usize,
    /// Parts that stand for their process.
    mains: FxHashSet<Part>,
    /// The part of each thread that has its waits: the one with the most samples.
    homes: FxHashSet<Part>,
    /// Cgroups of each process, the one with the most samples first.
    cgroups: FxHashMap<Pid, Vec<Option<CgroupId>>>,
}

impl Threads {
    pub(super) fn new(content: &Content<'_>) -> Threads {
        let threads = &content.profile.threads;
        let mut of_part: BTreeMap<Part, Weight> = BTreeMap::new();
        let mut of_process: BTreeMap<(Pid, Option<CgroupId>), Weight> = BTreeMap::new();
        for row in &content.profile.rows {
            let part = Part { thread: row.thread, cgroup: content.cgroup(row) };
            let shown = if Some(row.event) == content.main_event() { row.samples } else { 0 };
            let weight = Weight { shown, all: row.samples };
            *of_part.entry(part).or_default() += weight;
            let pid = threads[row.thread.index()].pid;
            *of_process.entry((pid, part.cgroup)).or_default() += weight;
        }
        let mut cgroups: FxHashMap<Pid, Vec<_>> = FxHashMap::default();
        let mut by_weight: Vec<_> = of_process.iter().collect();
        by_weight.sort_by_key(|(_, weight)| Reverse(**weight));
        by_weight.iter().for_each(|((pid, of), _)| cgroups.entry(*pid).or_default().push(*of));
        // Threads without samples have waits: they stand in the first cgroup of their process.
        for thread in (0..threads.len() as u32).map(ThreadId) {
            let any = Part { thread, cgroup: None };
            if of_part.range(any..).next().is_none_or(|(part, _)| part.thread != thread) {
                let of_process = cgroups.get(&threads[thread.index()].pid);
                let cgroup = of_process.and_then(|all| all.first().copied()).flatten();
                of_part.insert(Part { thread, cgroup }, Weight::default());
            }
        }
        let mut order: Vec<Part> = of_part.keys().copied().collect();
        order.sort_by_key(|part| {
            let ThreadInfo { pid, tid, .. } = threads[part.thread.index()];
            let of_process = of_process.get(&(pid, part.cgroup)).copied().unwrap_or_default();
            let process = (Reverse(of_process), pid, part.cgroup);
            (process, tid.0 != pid.0, Reverse(of_part[part]), tid)
        });
        let process = |part: &Part| (threads[part.thread.index()].pid, part.cgroup);
        let mains = order.chunk_by(|a, b| process(a) == process(b)).map(|all| all[0]).collect();
        let mut homes: FxHashMap<ThreadId, Part> = FxHashMap::default();
        for part in of_part.keys() {
            let home = homes.entry(part.thread).or_insert(*part);
            if of_part[part] > of_part[home] {
                *home = *part;
            }
        }
        let hottest = (0..order.len()).max_by_key(|at| (of_part[&order[*at]], Reverse(*at)));
        let hottest = hottest.unwrap_or(0);
        Threads { order, hottest, mains, homes: homes.into_values().collect(), cgroups }
    }

    /// The profiler's number of a process, which it tells processes apart by.
    fn pid(&self, pid: Pid, cgroup: Option<CgroupId>) -> String {
        let all = self.cgroups.get(&pid);
        match all.and_then(|all| all.iter().position(|of| *of == cgroup)) {
            None | Some(0) => pid.0.to_string(),
            Some(position) => format!("{}.{position}", pid.0),
        }
    }
}

/// The samples and stretches of time of each thread.
pub(super) struct Samples<'a> {
    moments: FxHashMap<Part, Vec<Moment<'a>>>,
    spans: &'a [TimelineSpan],
    /// A source file of each function.
    files: Vec<&'a str>,
}

impl<'a> Samples<'a> {
    pub(super) fn by_thread(content: &Content<'a>) -> Samples<'a> {
        let mut moments: FxHashMap<Part, Vec<_>> = FxHashMap::default();
        for moment in content.moments() {
            let part = Part { thread: moment.row.thread, cgroup: content.cgroup(moment.row) };
            moments.entry(part).or_default().push(moment);
        }
        Samples { moments, spans: content.spans(), files: content.files_of_functions() }
    }

    fn spans_of(&self, thread: ThreadId) -> &'a [TimelineSpan] {
        let first = self.spans.partition_point(|span| span.thread < thread);
        let of_thread = &self.spans[first..];
        &of_thread[..of_thread.partition_point(|span| span.thread == thread)]
    }
}

/// A thread in the making.
pub(super) struct Tables<'c, 'a> {
    pub(super) content: &'c Content<'a>,
    pub(super) thread: Thread<'a>,
    pub(super) start: TimestampNs,
    files: &'c [&'a str],
    strings: FxHashMap<String, u32>,
    stacks: FxHashMap<NodeId, u32>,
    frames: FxHashMap<FrameId, u32>,
    native_symbols: FxHashMap<FunctionId, u32>,
    functions: FxHashMap<FunctionId, u32>,
    resources: FxHashMap<u32, u32>,
}

/// Builds a thread; the first one has the markers of the whole recording.
pub(super) fn build<'a>(
    content: &Content<'a>,
    part: Part,
    threads: &Threads,
    samples: &Samples<'a>,
    is_first: bool,
) -> Thread<'a> {
    let info = &content.profile.threads[part.thread.index()];
    let mut tables = Tables::new(content, &samples.files);
    tables.thread.is_main_thread = threads.mains.contains(&part);
    let process = content.process_name(info.pid);
    tables.thread.process_name = match part.cgroup {
        Some(cgroup) => format!("{process} [{}]", content.cgroup_path(cgroup)),
        None => process.to_owned(),
    };
    tables.thread.name = content.thread_name(info);
    tables.thread.pid = threads.pid(info.pid, part.cgroup);
    tables.thread.tid = info.tid.0.to_string();
    if is_first {
        tables.notes();
    }
    let is_home = threads.homes.contains(&part);
    let spans = samples.spans_of(part.thread);
    let spans = if is_home { spans } else { &[] };
    spans.iter().for_each(|span| tables.wait(span));
    if let Some(requests) = content.requests.filter(|_| is_home) {
        requests.of(part.thread).iter().for_each(|request| tables.request(requests, request));
    }
    let moments = samples.moments.get(&part).map_or(&[][..], Vec::as_slice);
    tables.samples(moments, spans);
    tables.thread
}

/// The profiler opens no file without a thread.
pub(super) fn nothing<'a>(content: &Content<'a>) -> Thread<'a> {
    let mut tables = Tables::new(content, &[]);
    tables.thread.is_main_thread = true;
    (tables.thread.name, tables.thread.process_name) = ("no samples", "no samples".to_owned());
    (tables.thread.pid, tables.thread.tid) = ("0".to_owned(), "0".to_owned());
    tables.notes();
    tables.thread
}

impl<'c, 'a> Tables<'c, 'a> {
    fn new(content: &'c Content<'a>, files: &'c [&'a str]) -> Tables<'c, 'a> {
        let thread = Thread {
            process_type: "default",
            show_markers_in_timeline: true,
            samples: SampleTable { weight_type: "samples", ..SampleTable::default() },
            ..Thread::default()
        };
        Tables {
            content,
            thread,
            start: content.span().0,
            files,
            strings: FxHashMap::default(),
            stacks: FxHashMap::default(),
            frames: FxHashMap::default(),
            native_symbols: FxHashMap::default(),
            functions: FxHashMap::default(),
            resources: FxHashMap::default(),
        }
    }

    /// Milliseconds since the beginning of the profile.
    pub(super) fn since_start(&self, time: TimestampNs) -> f64 {
        ms(time.since(self.start))
    }

    pub(super) fn string(&mut self, text: &str) -> u32 {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let number = self.thread.string_array.len() as u32;
        self.thread.string_array.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }

    /// The number of a call chain; absent where none is known.
    pub(super) fn stack(&mut self, node: NodeId) -> Option<u32> {
        let nodes = &self.content.profile.nodes;
        let mut missing = Vec::new();
        let mut at = node;
        let mut prefix = None;
        while let Some(found) = nodes.get(at.index()).filter(|_| at != NodeId::NONE) {
            if let Some(known) = self.stacks.get(&at) {
                prefix = Some(*known);
                break;
            }
            missing.push((at, found.frame));
            at = found.parent;
        }
        for (node, frame) in missing.into_iter().rev() {
            let frame = self.frame(frame);
            let table = &mut self.thread.stack_table;
            let number = table.length as u32;
            table.length += 1;
            table.prefix.push(prefix);
            table.frame.push(frame);
            self.stacks.insert(node, number);
            prefix = Some(number);
        }
        prefix
    }

    fn frame(&mut self, id: FrameId) -> u32 {
        if let Some(known) = self.frames.get(&id) {
            return *known;
        }
        let frame = self.content.frame(id);
        let profile = self.content.profile;
        let dso_index = profile.functions[frame.function.index()].dso.index();
        let dso = &profile.dsos[dso_index];
        let func = self.function(frame.function);
        // The physical frame of an inlined one stands before it.
        let before = profile.frames[..=id.index()].iter().rev();
        let inline_depth = before.take_while(|frame| frame.inlined).count() as u32;
        let has_address = matches!(dso.kind, DsoKind::Elf | DsoKind::Vdso);
        // The profiler and samply's API count from the lowest loaded address.
        let base = profile.base_addresses.get(dso_index).copied().flatten().unwrap_or_default();
        let address = frame.address.0.checked_sub(base.0);
        let native_symbol = if has_address { self.native_symbol(id, base) } else { None };
        let table = &mut self.thread.frame_table;
        let number = table.length as u32;
        table.length += 1;
        table.address.push(match address {
            Some(address) if has_address && address < MAX_ADDRESS => address as i64,
            _ => -1,
        });
        table.inline_depth.push(inline_depth);
        table.category.push(category(dso.kind, frame.kernel).number());
        table.subcategory.push(0);
        table.func.push(func);
        table.native_symbol.push(native_symbol);
        table.inner_window_id.push(0);
        table.line.push(frame.source.map(|(_, line)| line));
        table.column.push(None);
        self.frames.insert(id, number);
        number
    }

    /// The number of the function that a frame's code lies in, which has its instructions.
    fn native_symbol(&mut self, id: FrameId, base: Svma) -> Option<u32> {
        let profile = self.content.profile;
        let physical = profile.frames[..=id.index()].iter().rfind(|frame| !frame.inlined)?;
        let function = physical.function;
        let start = (*profile.function_starts.get(function.index())?)?;
        let size_bytes = (*profile.function_sizes_bytes.get(function.index())?)?;
        // Several functions of one name have the code of one of them.
        if physical.address.0.checked_sub(start.0)? >= size_bytes {
            return None;
        }
        if let Some(known) = self.native_symbols.get(&function) {
            return Some(*known);
        }
        let address = u32::try_from(start.0.checked_sub(base.0)?).ok()?;
        let size_bytes = u32::try_from(size_bytes).ok()?;
        let name = self.string(self.content.function_name(function));
        let table = &mut self.thread.native_symbols;
        let number = table.length as u32;
        table.length += 1;
        table.address.push(address);
        table.function_size.push(size_bytes);
        table.lib_index.push(profile.functions[function.index()].dso.0);
        table.name.push(name);
        self.native_symbols.insert(function, number);
        Some(number)
    }

    fn function(&mut self, id: FunctionId) -> u32 {
        if let Some(known) = self.functions.get(&id) {
            return *known;
        }
        let profile = self.content.profile;
        let resource = self.resource(profile.functions[id.index()].dso.0);
        let name = self.string(self.content.function_name(id));
        let file = self.files.get(id.index()).copied().filter(|file| !file.is_empty());
        let file = file.map(|file| self.string(file));
        let table = &mut self.thread.func_table;
        let number = table.length as u32;
        table.length += 1;
        table.name.push(name);
        table.is_js.push(false);
        table.relevant_for_js.push(false);
        table.resource.push(i64::from(resource));
        table.file_name.push(file);
        table.line_number.push(None);
        table.column_number.push(None);
        self.functions.insert(id, number);
        number
    }

    fn resource(&mut self, dso: u32) -> u32 {
        if let Some(known) = self.resources.get(&dso) {
            return *known;
        }
        let name = self.content.profile.dsos[dso as usize].short_name.exact();
        let name = self.string(name);
        let table = &mut self.thread.resource_table;
        let number = table.length as u32;
        table.length += 1;
        table.lib.push(dso);
        table.name.push(name);
        table.host.push(None);
        table.kind.push(RESOURCE_LIBRARY);
        self.resources.insert(dso, number);
        number
    }
}
