//! Samples of tracepoints: perf writes them, and a program has told their stacks just before.
//!
//! Only interrupts come between the two on a CPU: hits with stacks and samples of their own. So the
//! sample belongs to the youngest hit of the same tracepoint in the same thread that has no sample of
//! the event yet. Several events may be of one tracepoint, and filters leave hits without a sample.

use std::collections::VecDeque;

use whit_bpf::stacks::record::TraceRecord;

/// Hits that may wait for their samples: more than contexts that interrupt each other.
const HITS_MAX: usize = 16;

/// A hit with its stacks.
#[derive(Clone, Debug)]
struct Hit {
    record: TraceRecord,
    pid_tid: u64,
    /// Ids of events that have written their sample.
    written: Vec<u64>,
}

/// The tracepoints of a ring.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    /// Events by their ids, and their tracepoints.
    events: Vec<(u64, u32)>,
    hits: VecDeque<Hit>,
}

impl Traces {
    /// The events that write into the ring: ids and numbers of tracepoints.
    pub(super) fn new(events: Vec<(u64, u32)>) -> Traces {
        Traces { events, hits: VecDeque::new() }
    }

    /// Whether an event's samples get their stacks from here.
    pub(super) fn has(&self, id: u64) -> bool {
        self.tracepoint(id).is_some()
    }

    fn tracepoint(&self, id: u64) -> Option<u32> {
        self.events.iter().find(|(event, _)| *event == id).map(|(_, tracepoint)| *tracepoint)
    }

    /// A program's record of a hit.
    pub(super) fn add(&mut self, record: TraceRecord, pid_tid: u64) {
        // The oldest one's buffer is used again.
        let oldest = if self.hits.len() < HITS_MAX { None } else { self.hits.pop_front() };
        let mut written = oldest.map_or_else(Vec::new, |hit| hit.written);
        written.clear();
        self.hits.push_back(Hit { record, pid_tid, written });
    }

    /// The hit that a sample of the event is of.
    pub(super) fn take(&mut self, id: u64, pid_tid: u64) -> Option<TraceRecord> {
        let tracepoint = self.tracepoint(id)?;
        let hit = self.hits.iter_mut().rev().find(|hit| {
            hit.record.tracepoint == tracepoint
                && hit.pid_tid == pid_tid
                && !hit.written.contains(&id)
        })?;
        hit.written.push(id);
        Some(hit.record)
    }

    /// Records are missing from here: earlier hits belong to no later sample.
    pub(super) fn forget(&mut self) {
        self.hits.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_bpf::stacks::record::StackHash;

    const TICK: u64 = 11;
    const TOCK: u64 = 12;
    const OTHER: u64 = 13;
    const ME: u64 = 5;

    fn hit(tracepoint: u32, stack: u64) -> TraceRecord {
        TraceRecord {
            tracepoint,
            user_stack: Some(StackHash(stack)),
            kernel_stack: None,
            cgroup: None,
        }
    }

    fn traces() -> Traces {
        Traces::new(vec![(TICK, 100), (TOCK, 100), (OTHER, 200)])
    }

    fn take(traces: &mut Traces, id: u64) -> Option<u64> {
        traces.take(id, ME).and_then(|record| record.user_stack).map(|hash| hash.0)
    }

    #[test]
    fn samples_get_the_stacks_of_their_own_hits() {
        let mut traces = traces();
        assert!(traces.has(TICK) && !traces.has(99));
        assert_eq!(take(&mut traces, TICK), None);
        traces.add(hit(100, 1), ME);
        // Two events of one tracepoint.
        assert_eq!((take(&mut traces, TICK), take(&mut traces, TOCK)), (Some(1), Some(1)));
        assert_eq!(take(&mut traces, TICK), None, "each has one sample of a hit");
        // One that a filter leaves out, and the next.
        traces.add(hit(100, 2), ME);
        traces.add(hit(100, 3), ME);
        assert_eq!(take(&mut traces, TICK), Some(3));
        assert_eq!(traces.take(OTHER, ME), None);
        traces.add(hit(100, 4), ME + 1);
        assert_eq!(take(&mut traces, TOCK), Some(3), "of the same thread");
    }

    #[test]
    fn interrupts_have_their_own_stacks() {
        let mut traces = traces();
        traces.add(hit(100, 1), ME);
        traces.add(hit(200, 2), ME);
        traces.add(hit(100, 3), ME);
        assert_eq!(take(&mut traces, TICK), Some(3));
        assert_eq!(take(&mut traces, OTHER), Some(2));
        assert_eq!(take(&mut traces, TICK), Some(1));
    }

    #[test]
    fn a_loss_parts_samples_from_earlier_hits() {
        let mut traces = traces();
        traces.add(hit(100, 1), ME);
        traces.forget();
        assert_eq!(take(&mut traces, TICK), None);
        for stack in 0..100 {
            traces.add(hit(100, stack), ME);
        }
        assert_eq!((traces.hits.len(), take(&mut traces, TICK)), (HITS_MAX, Some(99)));
    }
}
