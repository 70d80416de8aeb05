//! The page's time lines of threads. `web/src/switches.js` reads what this writes.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;
use whit_profile::model::{NodeId, Profile, ThreadId};
use whit_profile::switches::{Switches, TimelineSpan, Trust, Waker};
use whit_types::OutsideText;

use super::columns;
use super::tables::bounded_name;
use whit_view::switches::Stacks;

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
    wakers: WakerColumns,
    thread: String,
    start_ns: String,
    duration_ns: String,
    activity: String,
    cpu: String,
    reason: String,
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
}

pub(crate) fn columns(stacks: Stacks<'_>, switches: &Switches) -> TimelineColumns {
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
    let column = |value: &dyn Fn(&TimelineSpan) -> u64| columns::plain(all.iter().map(value));
    let mut ids = vec![(0, 0, String::new()); threads.values.len()];
    for (thread, place) in &threads.numbers {
        let info = &profile.threads[thread.index()];
        let comm = bounded_name(&profile.comms[info.comm.index()]).into_owned();
        ids[*place as usize] = (info.pid.0, info.tid.0, comm);
    }
    TimelineColumns {
        threads: threads.values,
        ids,
        reasons: reasons.texts.values,
        wakers: wakers.columns(),
        thread: columns::plain(thread.into_iter()),
        start_ns: column(&|span| span.start.0.saturating_sub(begin)),
        duration_ns: column(&|span| span.duration_ns),
        activity: column(&|span| span.activity as u64),
        cpu: column(&|span| span.cpu.map_or(0, |cpu| u64::from(cpu.0) + 1)),
        reason: columns::plain(reason.into_iter()),
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
struct Interned<K> {
    numbers: HashMap<K, u64>,
    values: Vec<String>,
}

impl<K> Default for Interned<K> {
    fn default() -> Self {
        Interned { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<K: Eq + Hash> Interned<K> {
    fn number(&mut self, key: K, text: impl FnOnce() -> String) -> u64 {
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
    texts: Interned<String>,
}

impl Reasons {
    /// One more than its place; 0 where no stack was recorded.
    fn number(&mut self, stacks: Stacks<'_>, node: NodeId) -> u64 {
        if node == NodeId::NONE {
            return 0;
        }
        *self.numbers.entry(node).or_insert_with(|| {
            let text = reason_text(stacks, node);
            self.texts.number(text.clone(), || text) + 1
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

    fn columns(self) -> WakerColumns {
        WakerColumns {
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

fn reason_text(stacks: Stacks<'_>, node: NodeId) -> String {
    let frames = stacks.frames(node);
    let names: Vec<_> =
        frames.iter().take(MAX_REASON_FRAMES).map(|f| f.name(stacks.profile())).collect();
    let names: Vec<_> = names.iter().map(OutsideText::exact).collect();
    let more = if frames.len() > MAX_REASON_FRAMES { " ← …" } else { "" };
    bounded_name(&format!("{}{more}", names.join(" ← ")).into()).into_owned()
}
