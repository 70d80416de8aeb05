//! Scheduling: the runs of threads on CPUs as `sched_switch` events, wake-ups as `sched_waking` events.
//!
//! Between two runs a CPU shows the idle task. A recording of some threads alone does not know whether others ran there.

use super::fields::Fields;
use super::{PACKET, Writer, general_fields};
use crate::content::Content;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::io;
use whit_profile::model::ThreadId;
use whit_profile::switches::{Activity, TimelineSpan};
use whit_types::TimestampNs;

/// Events of one bundle.
const BUNDLE_EVENTS: usize = 2048;

/// Events without their times that are kept, some 80 bytes each.
const MAX_KNOWN: usize = 1 << 14;

/// The priority of a thread with nice 0; recordings do not have priorities.
const PRIORITY: i32 = 120;

/// `prev_state` of threads: runnable, waiting, gone.
const RUNNABLE: u8 = 0;
const SLEEPING: u8 = 1;
const DEAD: u8 = 16;

/// A thread on a CPU.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    thread: ThreadId,
    /// `None` where the run goes on to the end of the recording.
    state_after: Option<u8>,
}

/// A wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wake {
    time: u64,
    waker: ThreadId,
    woken: ThreadId,
    target_cpu: Option<u32>,
}

/// An event of a CPU, by its time.
type Event = (u64, Happening);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Happening {
    /// `None` is the idle task.
    Switch {
        from: Option<ThreadId>,
        /// In which `from` left.
        state: u8,
        to: Option<ThreadId>,
    },
    Waking {
        waker: ThreadId,
        woken: ThreadId,
        target_cpu: Option<u32>,
    },
}

/// The runs on a CPU, and the wake-ups that happened there.
pub(super) struct CpuEvents {
    cpu: u32,
    runs: Vec<Run>,
    wakes: Vec<Wake>,
}

/// True where the recording says on which CPUs threads ran.
pub(super) fn has_cpus(content: &Content<'_>) -> bool {
    content.spans().iter().any(|span| span.activity == Activity::Running && span.cpu.is_some())
}

/// The runs and wake-ups of each CPU.
pub(super) fn by_cpu(content: &Content<'_>) -> Vec<CpuEvents> {
    let spans = content.spans();
    let last = content.span().1;
    let (mut runs, mut wakes) = (BTreeMap::<u32, Vec<Run>>::new(), Vec::new());
    for of_thread in spans.chunk_by(|a, b| a.thread == b.thread) {
        collect(of_thread, last, &mut runs, &mut wakes);
    }
    runs.values_mut().for_each(|runs| runs.sort_by_key(|run| run.start));
    let mut wakes_by_cpu = place_wakes(wakes, &runs);
    let of_cpu = |(cpu, runs)| {
        let wakes = wakes_by_cpu.remove(&cpu).unwrap_or_default();
        CpuEvents { cpu, runs, wakes }
    };
    runs.into_iter().map(of_cpu).collect()
}

/// Writes the events of a CPU.
pub(super) fn write(writer: &mut Writer<'_, '_, '_>, of_cpu: &CpuEvents) -> io::Result<()> {
    let first = writer.content.span().0;
    let mut events = switch_events(&of_cpu.runs);
    let waking = |wake: &Wake| {
        let Wake { time, waker, woken, target_cpu } = *wake;
        (time, Happening::Waking { waker, woken, target_cpu })
    };
    events.extend(of_cpu.wakes.iter().map(waking));
    if !events.is_sorted_by_key(|(time, _)| *time) {
        events.sort_by_key(|(time, _)| *time);
    }
    let mut known = Known::default();
    for events in events.chunks(BUNDLE_EVENTS) {
        writer.bundle(first, of_cpu.cpu, events, &mut known)?;
    }
    Ok(())
}

/// Events without their times, as they are written: a few of them make most of a trace.
#[derive(Default)]
struct Known {
    fields: FxHashMap<Happening, Vec<u8>>,
    spare: Vec<u8>,
}

impl Known {
    fn fields(&mut self, happening: Happening, fill: impl FnOnce(&mut Fields<'_>)) -> &[u8] {
        let has_room = self.fields.len() < MAX_KNOWN;
        match self.fields.entry(happening) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) if has_room => {
                let fields = new.insert(Vec::new());
                fill(&mut Fields::at_end_of(fields));
                fields
            }
            Entry::Vacant(_) => {
                self.spare.clear();
                fill(&mut Fields::at_end_of(&mut self.spare));
                &self.spare
            }
        }
    }
}

fn end(span: &TimelineSpan) -> u64 {
    span.start.0.saturating_add(span.duration_ns)
}

fn collect(
    spans: &[TimelineSpan],
    last: TimestampNs,
    runs: &mut BTreeMap<u32, Vec<Run>>,
    wakes: &mut Vec<Wake>,
) {
    for (at, span) in spans.iter().enumerate() {
        let next = spans.get(at + 1);
        match (span.activity, span.cpu) {
            (Activity::Running, Some(cpu)) => {
                let state_after = match next.map(|next| next.activity) {
                    Some(Activity::Waiting | Activity::Mixed) => Some(SLEEPING),
                    Some(Activity::Preempted | Activity::Running) => Some(RUNNABLE),
                    None if end(span) >= last.0 => None,
                    None => Some(DEAD),
                };
                let run =
                    Run { start: span.start.0, end: end(span), thread: span.thread, state_after };
                runs.entry(cpu.0).or_default().push(run);
            }
            (Activity::Waiting, _) => {
                let Some((time, waker)) = span.woken else { continue };
                let target_cpu = next.and_then(|next| next.cpu).map(|cpu| cpu.0);
                let (waker, woken) = (waker.thread, span.thread);
                wakes.push(Wake { time: time.0, waker, woken, target_cpu });
            }
            _ => {}
        }
    }
}

/// Wake-ups by the CPU that the waker ran on; those whose waker was not seen running are left out.
fn place_wakes(wakes: Vec<Wake>, runs: &BTreeMap<u32, Vec<Run>>) -> FxHashMap<u32, Vec<Wake>> {
    let mut by_cpu: FxHashMap<u32, Vec<Wake>> = FxHashMap::default();
    for wake in wakes {
        let runs_then = |runs: &[Run]| {
            let after = runs.partition_point(|run| run.start <= wake.time);
            let run = after.checked_sub(1).and_then(|at| runs.get(at));
            run.is_some_and(|run| run.thread == wake.waker && wake.time <= run.end)
        };
        if let Some((cpu, _)) = runs.iter().find(|(_, runs)| runs_then(runs)) {
            by_cpu.entry(*cpu).or_default().push(wake);
        }
    }
    by_cpu
}

fn switch_events(runs: &[Run]) -> Vec<Event> {
    let switch = |time, (from, state), to| (time, Happening::Switch { from, state, to });
    let mut events = Vec::new();
    let mut before: Option<Run> = None;
    for run in runs {
        // Runs overlap in no true recording; in others the later one begins at its own time.
        let touches = before.filter(|before| before.end >= run.start);
        let from =
            touches.map(|before| (Some(before.thread), before.state_after.unwrap_or(RUNNABLE)));
        if let (None, Some(before)) = (touches, before) {
            let state = before.state_after.unwrap_or(RUNNABLE);
            events.push(switch(before.end, (Some(before.thread), state), None));
        }
        let same = touches.is_some_and(|before| before.thread == run.thread);
        if !same {
            events.push(switch(run.start, from.unwrap_or((None, RUNNABLE)), Some(run.thread)));
        }
        before = Some(*run);
    }
    if let Some(Run { end, thread, state_after: Some(state), .. }) = before {
        events.push(switch(end, (Some(thread), state), None));
    }
    events
}

impl<'a> Writer<'_, 'a, '_> {
    fn task(&self, thread: Option<ThreadId>) -> (&'a str, i32) {
        thread.map_or(("swapper", 0), |thread| {
            let info = &self.content.profile.threads[thread.index()];
            (self.content.thread_name(info), info.tid.0)
        })
    }

    /// A packet with an `FtraceEventBundle`.
    fn bundle(
        &mut self,
        first: TimestampNs,
        cpu: u32,
        events: &[Event],
        known: &mut Known,
    ) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        Fields::at_end_of(&mut buffer).message(PACKET, |packet| {
            packet.message(1, |bundle| {
                bundle.number(1, u64::from(cpu));
                for (time, happening) in events {
                    let rest = known.fields(*happening, |fields| self.event(happening, fields));
                    bundle.message(2, |fields| {
                        fields.number(1, *time);
                        fields.append(rest);
                    });
                }
            });
            general_fields(packet, first);
        });
        self.out.write_all(&buffer)?;
        self.buffer = buffer;
        Ok(())
    }

    /// An `FtraceEvent` behind its time.
    fn event(&self, happening: &Happening, fields: &mut Fields<'_>) {
        let pid = |pid: i32| u64::from(pid.max(0) as u32);
        match happening {
            Happening::Switch { from, state, to } => {
                let ((prev_comm, prev_pid), (next_comm, next_pid)) =
                    (self.task(*from), self.task(*to));
                fields.number(2, pid(prev_pid));
                fields.message(4, |switch| {
                    switch.text(1, &[prev_comm]);
                    switch.signed(2, prev_pid);
                    switch.signed(3, PRIORITY);
                    switch.number(4, u64::from(*state));
                    switch.text(5, &[next_comm]);
                    switch.signed(6, next_pid);
                    switch.signed(7, PRIORITY);
                });
            }
            Happening::Waking { waker, woken, target_cpu } => {
                let (comm, woken) = self.task(Some(*woken));
                fields.number(2, pid(self.task(Some(*waker)).1));
                fields.message(20, |waking| {
                    waking.text(1, &[comm]);
                    waking.signed(2, woken);
                    waking.signed(3, PRIORITY);
                    waking.signed(4, 1);
                    if let Some(cpu) = *target_cpu {
                        waking.signed(5, cpu as i32);
                    }
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::with_content;

    /// As many as are kept, and more.
    #[test]
    fn kept_fields_are_those_of_the_event() {
        with_content("perf-threads", |content| {
            let mut out = Vec::new();
            let writer = Writer { content, out: &mut out, buffer: Vec::new(), has_cpus: true };
            let threads = content.profile.threads.len() as u32;
            let thread = |number: u32| ThreadId(number % threads);
            let waking = |number: u32| Happening::Waking {
                waker: thread(number),
                woken: thread(number / 2),
                target_cpu: (number > 0).then_some(number),
            };
            let switch = |number: u32| Happening::Switch {
                from: number.is_multiple_of(2).then(|| thread(number)),
                state: [RUNNABLE, SLEEPING, DEAD][number as usize % 3],
                to: (!number.is_multiple_of(5)).then(|| thread(number / 2)),
            };
            let wakings = (0..MAX_KNOWN as u32 + 50).map(waking);
            let events: Vec<_> = (0..30).map(switch).chain(wakings).collect();
            let mut known = Known::default();
            for event in events.iter().chain(&events) {
                let mut fresh = Vec::new();
                writer.event(event, &mut Fields::at_end_of(&mut fresh));
                let kept = known.fields(*event, |fields| writer.event(event, fields));
                assert_eq!(kept, fresh, "{event:?}");
            }
            assert_eq!(known.fields.len(), MAX_KNOWN);
        });
    }
}
