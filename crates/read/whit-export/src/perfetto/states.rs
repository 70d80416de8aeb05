//! The states of threads as slices of tracks of their own. Where the tracks of CPUs have the runs, waits alone.

use super::{FIRST_WAIT_TRACK, SliceForm, Writer};
use crate::content::Content;
use rustc_hash::FxHashSet;
use std::io;
use whit_profile::model::ThreadId;
use whit_profile::switches::{Activity, TimelineSpan, WaitClass};
use whit_types::TimestampNs;

/// Spans from which on a part of the trace is long enough.
const PART_SPANS: usize = 1 << 14;

fn is_shown(span: &TimelineSpan, has_cpus: bool) -> bool {
    !has_cpus || span.activity == Activity::Waiting
}

/// The spans of all threads, in parts that end with a thread.
pub(super) fn parts(spans: &[TimelineSpan]) -> Vec<&[TimelineSpan]> {
    let mut rest = spans;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let enough = PART_SPANS.min(rest.len());
        let last = rest[enough - 1].thread;
        let behind = rest[enough..].iter().take_while(|span| span.thread == last).count();
        let (part, others) = rest.split_at(enough + behind);
        parts.push(part);
        rest = others;
    }
    parts
}

/// Threads whose tracks stand in these parts.
pub(super) fn described(content: &Content<'_>, has_cpus: bool) -> FxHashSet<ThreadId> {
    let shown = content.spans().iter().filter(|span| is_shown(span, has_cpus));
    shown.map(|span| span.thread).collect()
}

/// Writes a track for each of these threads.
pub(super) fn write(writer: &mut Writer<'_, '_, '_>, spans: &[TimelineSpan]) -> io::Result<()> {
    let has_cpus = writer.has_cpus;
    for of_thread in spans.chunk_by(|a, b| a.thread == b.thread) {
        let mut shown = of_thread.iter().filter(|span| is_shown(span, has_cpus)).peekable();
        let Some(first) = shown.peek() else { continue };
        let mut track = writer.thread_track(first.thread)?;
        if has_cpus {
            track = writer.child_track(FIRST_WAIT_TRACK, first.thread, "waits")?;
        }
        let mut forms: Vec<(State, SliceForm)> = Vec::new();
        for span in shown {
            let state = (span.activity, writer.content.wait_class(span));
            let known = forms.iter().position(|(of, _)| *of == state);
            let at = known.unwrap_or_else(|| {
                forms.push((state, SliceForm::new(track, &name(state))));
                forms.len() - 1
            });
            let end = TimestampNs(span.start.0.saturating_add(span.duration_ns));
            writer.formed_slice(&forms[at].1, (span.start, end))?;
        }
    }
    Ok(())
}

type State = (Activity, Option<WaitClass>);

/// The parts of its name.
fn name(state: State) -> [&'static str; 2] {
    match state {
        (_, Some(class)) => ["Waiting: ", class.name()],
        (Activity::Running, _) => ["Running", ""],
        (Activity::Preempted, _) => ["Preempted", ""],
        (Activity::Waiting, _) => ["Waiting", ""],
        (Activity::Mixed, _) => ["Short runs and waits", ""],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_profile::model::NodeId;
    use whit_profile::switches::Trust;

    #[test]
    fn parts_have_all_spans_and_whole_threads() {
        let span = |thread: u32, start: usize| TimelineSpan {
            thread: ThreadId(thread),
            start: TimestampNs(start as u64),
            duration_ns: 1,
            activity: Activity::Waiting,
            cpu: None,
            node: NodeId::NONE,
            woken: None,
            parts_ns: [0; 3],
            count: 1,
            trust: Trust::Whole,
            brings: Default::default(),
        };
        let lengths = [5, PART_SPANS - 5, 7, 3 * PART_SPANS, 1, 2];
        let all = (0u32..).zip(lengths);
        let of_thread = |(thread, length)| (0..length).map(move |at| span(thread, at));
        let spans: Vec<_> = all.flat_map(of_thread).collect();
        let parts = parts(&spans);
        let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [PART_SPANS, 7 + 3 * PART_SPANS, 3]);
        assert!(parts.concat() == spans);
    }
}
