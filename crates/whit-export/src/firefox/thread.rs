//! One thread with its tables.

use super::format::{SampleTable, Thread};
use super::{category, ms};
use crate::content::{Content, Moment};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use whit_profile::model::{DsoKind, FrameId, FunctionId, NodeId, ThreadId, ThreadInfo};
use whit_profile::switches::{Activity, TimelineSpan};
use whit_types::{Pid, TimestampNs};

/// Addresses from here on have no exact form in JavaScript.
const MAX_ADDRESS: u64 = 1 << 53;

/// The type of a resource that is a library.
const RESOURCE_LIBRARY: u32 = 1;

/// The threads in the order in which the profiler lists them: processes by their samples, and in each the main thread
/// first.
pub(super) struct Threads {
    pub(super) order: Vec<ThreadId>,
    /// Threads that stand for their process.
    mains: Vec<ThreadId>,
}

impl Threads {
    pub(super) fn new(content: &Content<'_>) -> Threads {
        let threads = &content.profile.threads;
        let mut of_thread = vec![0u64; threads.len()];
        let mut of_process: FxHashMap<Pid, u64> = FxHashMap::default();
        for row in &content.profile.rows {
            of_thread[row.thread.index()] += row.samples;
            *of_process.entry(threads[row.thread.index()].pid).or_default() += row.samples;
        }
        let mut order: Vec<ThreadId> = (0..threads.len() as u32).map(ThreadId).collect();
        order.sort_by_key(|thread| {
            let ThreadInfo { pid, tid, .. } = threads[thread.index()];
            let of_process = of_process.get(&pid).copied().unwrap_or(0);
            (Reverse(of_process), pid, tid.0 != pid.0, Reverse(of_thread[thread.index()]), tid)
        });
        let mut mains = order.clone();
        mains.dedup_by_key(|thread| threads[thread.index()].pid);
        Threads { order, mains }
    }
}

/// The samples and stretches of time of each thread.
pub(super) struct Samples<'a> {
    moments: Vec<Vec<Moment<'a>>>,
    spans: Vec<Vec<&'a TimelineSpan>>,
    /// A source file of each function.
    files: Vec<&'a str>,
}

impl<'a> Samples<'a> {
    pub(super) fn by_thread(content: &Content<'a>) -> Samples<'a> {
        let count = content.profile.threads.len();
        let (mut moments, mut spans) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for moment in content.moments() {
            moments[moment.row.thread.index()].push(moment);
        }
        for span in content.switches.iter().flat_map(|switches| &switches.timeline.spans) {
            spans[span.thread.index()].push(span);
        }
        Samples { moments, spans, files: content.files_of_functions() }
    }
}

/// A thread in the making.
pub(super) struct Tables<'c, 'a> {
    pub(super) content: &'c Content<'a>,
    pub(super) thread: Thread<'a>,
    start: TimestampNs,
    files: &'c [&'a str],
    strings: FxHashMap<String, u32>,
    stacks: FxHashMap<NodeId, u32>,
    frames: FxHashMap<FrameId, u32>,
    functions: FxHashMap<FunctionId, u32>,
    resources: FxHashMap<u32, u32>,
}

/// Builds a thread; the first one has the markers of the whole recording.
pub(super) fn build<'a>(
    content: &Content<'a>,
    id: ThreadId,
    threads: &Threads,
    samples: &Samples<'a>,
    is_first: bool,
) -> Thread<'a> {
    let info = &content.profile.threads[id.index()];
    let mut tables = Tables::new(content, &samples.files);
    let is_main = threads.mains.contains(&id);
    tables.thread.is_main_thread = is_main;
    tables.thread.process_name = content.process_name(info.pid);
    tables.thread.name = content.thread_name(info);
    tables.thread.pid = info.pid.0.to_string();
    tables.thread.tid = info.tid.0.to_string();
    if is_first {
        tables.notes();
    }
    let spans = &samples.spans[id.index()];
    spans.iter().for_each(|span| tables.wait(span));
    tables.samples(&samples.moments[id.index()], spans);
    tables.thread
}

/// The profiler opens no file without a thread.
pub(super) fn nothing<'a>(content: &Content<'a>) -> Thread<'a> {
    let mut tables = Tables::new(content, &[]);
    tables.thread.is_main_thread = true;
    (tables.thread.name, tables.thread.process_name) = ("no samples", "no samples");
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

    fn samples(&mut self, moments: &[Moment<'a>], spans: &[&TimelineSpan]) {
        let main = self.content.main_event();
        let interval_ns = main.and_then(|event| self.content.interval_ns(event));
        let mut on_cpu = OnCpu { spans, at: 0, before_ns: 0 };
        let (mut before_ns, mut taken_ns) = (0, 0);
        let mut deltas = Vec::new();
        for moment in moments {
            if Some(moment.row.event) != main {
                if !self.content.is_told_by_waits(moment.row.event) {
                    self.sample_marker(moment);
                }
                continue;
            }
            let at_ns = moment.time.since(self.start);
            let stack = self.stack(moment.row.node);
            let samples = &mut self.thread.samples;
            samples.length += 1;
            samples.stack.push(stack);
            samples.time_deltas.push(ms(at_ns.saturating_sub(before_ns)));
            samples.weight.push(moment.samples);
            let so_far_ns = on_cpu.until(moment.time);
            deltas.push(if spans.is_empty() {
                interval_ns.unwrap_or(0).saturating_mul(moment.samples) / 1000
            } else {
                so_far_ns.saturating_sub(taken_ns) / 1000
            });
            (before_ns, taken_ns) = (at_ns, so_far_ns);
        }
        let is_known = !spans.is_empty() || interval_ns.is_some();
        self.thread.samples.thread_cpu_delta = is_known.then_some(deltas);
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
        let dso = &profile.dsos[profile.functions[frame.function.index()].dso.index()];
        let func = self.function(frame.function);
        // The physical frame of an inlined one stands before it.
        let before = profile.frames[..=id.index()].iter().rev();
        let inline_depth = before.take_while(|frame| frame.inlined).count() as u32;
        let has_address = matches!(dso.kind, DsoKind::Elf | DsoKind::Vdso);
        let table = &mut self.thread.frame_table;
        let number = table.length as u32;
        table.length += 1;
        table.address.push(match frame.address.0 {
            address if has_address && address < MAX_ADDRESS => address as i64,
            _ => -1,
        });
        table.inline_depth.push(inline_depth);
        table.category.push(category(dso.kind, frame.kernel).number());
        table.subcategory.push(0);
        table.func.push(func);
        table.native_symbol.push(None);
        table.inner_window_id.push(0);
        table.line.push(frame.source.map(|(_, line)| line));
        table.column.push(None);
        self.frames.insert(id, number);
        number
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

/// The time of a thread on the CPU, asked for in order of time.
struct OnCpu<'s, 'a> {
    spans: &'s [&'a TimelineSpan],
    at: usize,
    /// In the spans before.
    before_ns: u64,
}

impl OnCpu<'_, '_> {
    fn until(&mut self, time: TimestampNs) -> u64 {
        while let Some(span) = self.spans.get(self.at) {
            if span.start.0.saturating_add(span.duration_ns) > time.0 {
                let part_ns = time.since(span.start).min(span.parts_ns[Activity::Running as usize]);
                return self.before_ns + part_ns;
            }
            self.before_ns += span.parts_ns[Activity::Running as usize];
            self.at += 1;
        }
        self.before_ns
    }
}
