//! The page's time lines of threads. `web/src/switches.js` reads what this writes.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;
use whit_profile::model::{NodeId, Profile, ThreadId};
use whit_profile::switches::{Activity, NodeClasses, Switches, TimelineSpan, Trust, Waker};
use whit_types::OutsideText;

use super::columns;
use super::tables::bounded_name;
use whit_view::switches::{ChainEntry, Stacks};

/// Frames of a stack that a span of the time line names.
const MAX_REASON_FRAMES: usize = 12;

/// Stretches by thread and time; `cpu`, `reason` and `waker` 0 are none, others are one more.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TimelineColumns {
    threads: Vec<String>,
    /// Process, thread and comm of each, as the page's selectors have them.
    ids: Vec<(i32, i32, String)>,
    reasons: Vec<String>,
    /// The same from the first frame of the program itself on.
    program_reasons: Vec<String>,
    /// Classes of waits.
    classes: Vec<&'static str>,
    wakers: WakerColumns,
    thread: String,
    start_ns: String,
    duration_ns: String,
    activity: String,
    cpu: String,
    reason: String,
    /// One more than the place among `classes`; 0 of spans that are no wait.
    class: String,
    /// One more than the page's call tree node of a single wait.
    node: String,
    waker: String,
    /// From the beginning of a wait until it was woken.
    blocked_ns: String,
    lossy: String,
    count: String,
    running_ns: String,
    preempted_ns: String,
    waiting_ns: String,
    span_ns: u64,
    grain_ns: u64,
    max_spans: usize,
}

/// Wakers, each once: its name, and its stack as a reason.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WakerColumns {
    names: Vec<String>,
    name: String,
    reason: String,
    /// One more than the place of the thread's lane, 0 where it has none.
    lane: String,
}

/// The page's call tree node of a single wait.
pub(crate) type NodeOf<'a> = &'a dyn Fn(&TimelineSpan) -> Option<u32>;

pub(crate) fn columns(
    stacks: Stacks<'_>,
    switches: &Switches,
    node_of: NodeOf<'_>,
) -> TimelineColumns {
    let profile = stacks.profile();
    let all = &switches.timeline.spans;
    let begin = switches.span.map_or(0, |(first, _)| first.0);
    let mut threads = Interned::default();
    let mut reasons = Reasons::default();
    let mut wakers = Wakers::default();
    let thread: Vec<_> = all
        .iter()
        .map(|span| threads.number(span.thread, || thread_text(profile, span.thread)))
        .collect();
    let reason: Vec<_> = all.iter().map(|span| reasons.number(stacks, span.node)).collect();
    let waker: Vec<_> = all
        .iter()
        .map(|span| {
            span.woken.map_or(0, |(_, waker)| wakers.number(waker, &mut reasons, stacks) + 1)
        })
        .collect();
    let node_classes = NodeClasses::of(profile, all.iter().map(|span| span.node));
    let mut classes = Interned::default();
    let class: Vec<_> = all
        .iter()
        .map(|span| match span.activity {
            Activity::Waiting => {
                let class = node_classes.of_span(span);
                classes.number(class.name(), || class.name()) + 1
            }
            _ => 0,
        })
        .collect();
    let column = |value: &dyn Fn(&TimelineSpan) -> u64| columns::plain(all.iter().map(value));
    let mut ids = vec![(0, 0, String::new()); threads.values.len()];
    for (thread, place) in &threads.numbers {
        let info = &profile.threads[thread.index()];
        let comm = bounded_name(&profile.comms[info.comm.index()]).into_owned();
        ids[*place as usize] = (info.pid.0, info.tid.0, comm);
    }
    let (reasons, program_reasons) = reasons.texts.values.into_iter().unzip();
    TimelineColumns {
        wakers: wakers.columns(&threads.numbers),
        threads: threads.values,
        ids,
        reasons,
        program_reasons,
        classes: classes.values,
        thread: columns::plain(thread.into_iter()),
        start_ns: column(&|span| span.start.0.saturating_sub(begin)),
        duration_ns: column(&|span| span.duration_ns),
        activity: column(&|span| span.activity as u64),
        cpu: column(&|span| span.cpu.map_or(0, |cpu| u64::from(cpu.0) + 1)),
        reason: columns::plain(reason.into_iter()),
        class: columns::plain(class.into_iter()),
        node: column(&|span| node_of(span).map_or(0, |node| u64::from(node) + 1)),
        waker: columns::plain(waker.into_iter()),
        blocked_ns: column(&blocked_ns),
        lossy: column(&|span| u64::from(span.trust == Trust::Lossy)),
        count: column(&|span| span.count),
        running_ns: column(&|span| span.parts_ns[0]),
        preempted_ns: column(&|span| span.parts_ns[1]),
        waiting_ns: column(&|span| span.parts_ns[2]),
        span_ns: switches.span.map_or(0, |(first, last)| last.since(first)),
        grain_ns: switches.timeline.grain_ns,
        max_spans: switches.timeline.max_spans,
    }
}

/// Texts, each once, by the keys that they belong to.
struct Interned<K, T = String> {
    numbers: HashMap<K, u64>,
    values: Vec<T>,
}

impl<K, T> Default for Interned<K, T> {
    fn default() -> Self {
        Interned { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<K: Eq + Hash, T> Interned<K, T> {
    fn number(&mut self, key: K, text: impl FnOnce() -> T) -> u64 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.values.push(text());
            self.values.len() as u64 - 1
        })
    }
}

/// Call stacks. Many are the same as far as they are shown.
#[derive(Default)]
struct Reasons {
    numbers: HashMap<NodeId, u64>,
    /// From the innermost frame, and from the first one of the program.
    texts: Interned<(String, String), (String, String)>,
}

impl Reasons {
    /// One more than its place; 0 where no stack was recorded.
    fn number(&mut self, stacks: Stacks<'_>, node: NodeId) -> u64 {
        if node == NodeId::NONE {
            return 0;
        }
        *self.numbers.entry(node).or_insert_with(|| {
            let texts = reason_texts(stacks, node);
            self.texts.number(texts.clone(), || texts) + 1
        })
    }
}

#[derive(Default)]
struct Wakers {
    names: Interned<(ThreadId, bool)>,
    numbers: HashMap<Waker, u64>,
    /// Name and reason of each.
    list: Vec<(u64, u64)>,
}

impl Wakers {
    fn number(&mut self, waker: Waker, reasons: &mut Reasons, stacks: Stacks<'_>) -> u64 {
        *self.numbers.entry(waker).or_insert_with(|| {
            let name = || {
                let thread = thread_text(stacks.profile(), waker.thread);
                if waker.from_interrupt { format!("an interrupt of {thread}") } else { thread }
            };
            let name = self.names.number((waker.thread, waker.from_interrupt), name);
            self.list.push((name, reasons.number(stacks, waker.node)));
            self.list.len() as u64 - 1
        })
    }

    fn columns(self, lanes: &HashMap<ThreadId, u64>) -> WakerColumns {
        let mut thread_of = vec![ThreadId(u32::MAX); self.names.values.len()];
        for ((thread, _), name) in &self.names.numbers {
            thread_of[*name as usize] = *thread;
        }
        let lane = |name: u64| lanes.get(&thread_of[name as usize]).map_or(0, |lane| lane + 1);
        WakerColumns {
            lane: columns::plain(self.list.iter().map(|(name, _)| lane(*name))),
            names: self.names.values,
            name: columns::plain(self.list.iter().map(|(name, _)| *name)),
            reason: columns::plain(self.list.iter().map(|(_, reason)| *reason)),
        }
    }
}

fn blocked_ns(span: &TimelineSpan) -> u64 {
    span.woken.map_or(0, |(time, _)| time.since(span.start).min(span.duration_ns))
}

fn thread_text(profile: &Profile, thread: ThreadId) -> String {
    let info = &profile.threads[thread.index()];
    let comm = bounded_name(&profile.comms[info.comm.index()]);
    format!("{comm} {}", info.tid.0)
}

/// Files of the C library, whose wrappers of system calls stand on every wait.
const C_LIBRARY: [&str; 4] = ["libc.so", "libc-", "libpthread", "ld-"];

fn reason_texts(stacks: Stacks<'_>, node: NodeId) -> (String, String) {
    let frames = stacks.frames(node);
    let profile = stacks.profile();
    let names: Vec<_> = frames.iter().map(|frame| frame.name(profile)).collect();
    let first = first_of_program(profile, node, &frames);
    (joined(&names), joined(&names[first..]))
}

/// The first frame that is neither of the kernel nor of the C library; 0 where all are.
fn first_of_program(profile: &Profile, node: NodeId, frames: &[ChainEntry]) -> usize {
    let is_program = |id: NodeId| {
        let frame = &profile.frames[profile.nodes[id.index()].frame.index()];
        let function = &profile.functions[frame.function.index()];
        let file = profile.dsos[function.dso.index()].short_name.exact();
        !frame.kernel
            && function.known
            && !C_LIBRARY.iter().any(|library| file.starts_with(library))
    };
    let next = |id: NodeId| (id != NodeId::NONE).then(|| profile.nodes[id.index()].parent);
    let mut ids =
        std::iter::successors(Some(node), |id| next(*id)).filter(|id| *id != NodeId::NONE);
    let Some(found) = ids.find(|id| is_program(*id)) else { return 0 };
    // By the function, not by the name: that of an inlined frame is marked.
    let function = profile.frames[profile.nodes[found.index()].frame.index()].function;
    let is_it = |entry: &ChainEntry| entry.0.is_some_and(|(known, _)| known == function);
    frames.iter().position(is_it).unwrap_or(0)
}

fn joined(names: &[OutsideText]) -> String {
    let shown: Vec<_> = names.iter().take(MAX_REASON_FRAMES).map(OutsideText::exact).collect();
    let more = if names.len() > MAX_REASON_FRAMES { " ← …" } else { "" };
    bounded_name(&format!("{}{more}", shown.join(" ← ")).into()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_profile::model::{CallNode, Frame, FrameId, FunctionId};
    use whit_profile::model::{DsoId, DsoInfo, DsoKind, FunctionInfo};
    use whit_types::Svma;
    use whit_view::switches::SwitchViewOptions;

    /// A stack of frames, outermost first: binary, function, whether it is inlined.
    fn texts(stack: &[(&str, &str, bool)]) -> (String, String) {
        let mut profile = Profile::default();
        for (index, (binary, name, inlined)) in stack.iter().enumerate() {
            let id = index as u32;
            let kernel = *binary == "[kernel.kallsyms]";
            profile.dsos.push(DsoInfo {
                path: (*binary).into(),
                short_name: (*binary).into(),
                build_id: None,
                kind: if kernel { DsoKind::Kernel } else { DsoKind::Elf },
            });
            let name = (*name).into();
            profile.functions.push(FunctionInfo { name, dso: DsoId(id), known: true });
            let (function, address) = (FunctionId(id), Svma(1));
            let inlined = *inlined;
            profile.frames.push(Frame { function, address, source: None, inlined, kernel });
            let parent = if index == 0 { NodeId::NONE } else { NodeId(id - 1) };
            profile.nodes.push(CallNode { parent, frame: FrameId(id) });
        }
        let options = SwitchViewOptions::default();
        let stacks = Stacks::new(&profile, &options.filters, options.inline);
        reason_texts(stacks, NodeId(stack.len() as u32 - 1))
    }

    #[test]
    fn a_chain_begins_at_the_program_also_where_its_frame_is_inlined() {
        const KERNEL: &str = "[kernel.kallsyms]";
        let (whole, program) = texts(&[
            ("app", "main", false),
            ("app", "nap", true),
            ("libc.so.6", "nanosleep", false),
            (KERNEL, "do_nanosleep", false),
        ]);
        assert_eq!(whole, "do_nanosleep ← nanosleep ← nap (inlined) ← main");
        assert_eq!(program, "nap (inlined) ← main");
        let (whole, program) = texts(&[(KERNEL, "kthread", false), (KERNEL, "schedule", false)]);
        assert_eq!(
            (whole.as_str(), program.as_str()),
            ("schedule ← kthread", "schedule ← kthread")
        );
    }
}
