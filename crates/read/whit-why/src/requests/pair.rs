//! Calls, from their beginnings and ends.
//!
//! A call ends where a return leaves the stack pointer that its beginning had. The kernel notes a return only for calls
//! whose frame is there: an exception or `longjmp` skips others. Such a frame is gone when a beginning or an end comes
//! with the stack pointer above it.
//!
//! Marks that are no calls and returns have no stack pointer: a thread has one such request at a time. Those of
//! connections are apart from threads ([`Connections`]), and so are those of goroutines, which change threads.

use super::call::{Call, Counts};
use super::connections::{Connections, Found, Live};
use crate::goroutines::GoroutineId;
use rustc_hash::{FxHashMap, FxHashSet};
use whit_perfdata::request::Edge;
use whit_profile::tables::{RequestKey, RequestMark};
use whit_types::{Arch, Pid, TimestampNs};

/// Most calls that the kernel waits for at one stack pointer: functions that jump to each other (`MAX_URETPROBE_DEPTH`).
const CHAINED_MAX: usize = 64;

/// The side that makes calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Caller {
    Thread(u32),
    Goroutine(GoroutineId),
}

struct Open {
    from: TimestampNs,
    stack_pointer: u64,
    key: Option<RequestKey>,
    /// Another call began at the same stack pointer since.
    is_passed: bool,
}

/// Makes calls of the marks of one name.
pub struct Pairing {
    /// By how much a return moves the stack pointer.
    returns_bytes: u64,
    /// Callers without an open call are not in it.
    open: FxHashMap<Caller, Vec<Open>>,
    /// Processes with a goroutine that has called.
    of_goroutines: FxHashSet<Pid>,
    connections: Connections,
    /// Calls that have ended.
    pub calls: Vec<Call>,
    /// Calls without a duration.
    pub counts: Counts,
}

impl Pairing {
    /// For programs of an architecture.
    pub fn new(arch: Arch) -> Pairing {
        let returns_bytes = match arch {
            // The return takes its address from the stack.
            Arch::X86_64 => 8,
            Arch::Aarch64 => 0,
        };
        let (calls, counts) = (Vec::new(), Counts::default());
        let (open, connections) = (FxHashMap::default(), Connections::default());
        let of_goroutines = FxHashSet::default();
        Pairing { returns_bytes, open, of_goroutines, connections, calls, counts }
    }

    /// The same of a recording that is still being made. Calls of connections end with the first data that is sent after
    /// a time: shorter ones are not asked for. It remembers so many connections.
    pub(super) fn live(arch: Arch, longest_ns: u64, connections_max: usize) -> Pairing {
        let connections = Connections::live(Live { connections_max, longest_ns });
        Pairing { connections, ..Pairing::new(arch) }
    }

    /// Takes the next mark of a process. Those of one thread or goroutine come in order of time, and those of connections
    /// all do.
    pub fn add(&mut self, process: Pid, mark: RequestMark) {
        if let Some(connection) = mark.connection {
            let mut found = Found { calls: &mut self.calls, counts: &mut self.counts };
            return self.connections.add(mark, connection, &mut found);
        }
        let goroutine = mark.goroutine.map(|goroutine| GoroutineId { process, goroutine });
        let caller = goroutine.map_or(Caller::Thread(mark.thread), Caller::Goroutine);
        self.of_goroutines.extend(goroutine.map(|it| it.process));
        let open = self.open.entry(caller).or_default();
        let stack_pointer = match (mark.edge, mark.stack_pointer) {
            (Edge::Begin, Some(at)) => at,
            // The probes of a goroutine's calls are at the return itself.
            (Edge::End, Some(at)) if goroutine.is_some() => at,
            (Edge::End, Some(at)) => at.saturating_sub(self.returns_bytes),
            // A thread is in one at a time: where the next one begins, the last one was left.
            (Edge::Begin, None) => {
                self.counts.left += open.drain(..).count() as u64;
                0
            }
            (Edge::End, None) => 0,
        };
        while open.last().is_some_and(|last| last.stack_pointer < stack_pointer) {
            open.pop();
            self.counts.left += 1;
        }
        let last = open.last_mut().filter(|last| last.stack_pointer == stack_pointer);
        match (mark.edge, last) {
            (Edge::Begin, last) => {
                last.into_iter().for_each(|last| last.is_passed = true);
                let RequestMark { time: from, key, .. } = mark;
                open.push(Open { from, stack_pointer, key, is_passed: false });
                let alike = open.iter().rev().take_while(|it| it.stack_pointer == stack_pointer);
                if alike.count() > CHAINED_MAX {
                    open.remove(open.len() - 1 - CHAINED_MAX);
                    self.counts.left += 1;
                }
            }
            (Edge::End, None) => self.counts.without_begin += 1,
            (Edge::End, Some(_)) => {
                let Some(Open { from, key, .. }) = open.pop() else { return };
                let outer = open.iter().filter(|outer| outer.stack_pointer > stack_pointer);
                let depth = outer.count() as u32;
                let (thread, to) = (mark.thread, mark.time);
                self.calls.push(Call { thread, goroutine, from, to, depth, key });
            }
        }
        if open.is_empty() {
            self.open.remove(&caller);
        }
    }

    /// Forgets the calls of a thread that has ended: another one may get its number. With the first thread of a process,
    /// its goroutines have ended.
    pub fn end_thread(&mut self, thread: u32) {
        let mut left = self.open.remove(&Caller::Thread(thread)).map_or(0, |open| open.len());
        if self.of_goroutines.remove(&Pid(thread as i32)) {
            self.open.retain(|caller, open| {
                let is_ended =
                    matches!(caller, Caller::Goroutine(it) if it.process.0 as u32 == thread);
                left += if is_ended { open.len() } else { 0 };
                !is_ended
            });
        }
        self.counts.left += left as u64;
    }

    /// Forgets all calls that have not ended; gives their number.
    pub fn forget(&mut self) -> u64 {
        let calls: u64 =
            std::mem::take(&mut self.open).values().map(|open| open.len() as u64).sum();
        calls + self.connections.forget()
    }

    /// Ends the pairing: calls that have not ended are open, or were left before another one began in their place.
    pub fn finish(mut self) -> (Vec<Call>, Counts) {
        for open in self.open.values().flatten() {
            match open.is_passed {
                true => self.counts.left += 1,
                false => self.counts.open += 1,
            }
        }
        let mut found = Found { calls: &mut self.calls, counts: &mut self.counts };
        self.connections.finish(&mut found);
        (self.calls, self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOP: u64 = 0x7fff_0000;

    fn mark(time: u64, edge: Edge, stack_pointer: u64) -> RequestMark {
        let time = TimestampNs(time);
        let stack_pointer = Some(stack_pointer).filter(|at| *at != 0);
        RequestMark {
            time,
            thread: 1,
            kind: 0,
            edge,
            stack_pointer,
            goroutine: None,
            connection: None,
            key: None,
        }
    }

    fn paired(marks: impl IntoIterator<Item = (u64, Edge, u64)>) -> (Vec<(u64, u64)>, Counts) {
        let mut pairing = Pairing::new(Arch::X86_64);
        marks.into_iter().for_each(|(time, edge, at)| pairing.add(Pid(1), mark(time, edge, at)));
        let (calls, counts) = pairing.finish();
        (calls.iter().map(|call| (call.from.0, call.to.0)).collect(), counts)
    }

    #[test]
    fn nested_calls_end_inside_out() {
        let marks = [
            (1, Edge::Begin, TOP),
            (2, Edge::Begin, TOP - 64),
            (3, Edge::End, TOP - 64 + 8),
            (4, Edge::End, TOP + 8),
        ];
        assert_eq!(paired(marks), (vec![(2, 3), (1, 4)], Counts::default()));
    }

    #[test]
    fn frames_that_were_skipped_are_left() {
        // The inner one was left by longjmp() into the outer one.
        let marks = [(1, Edge::Begin, TOP), (2, Edge::Begin, TOP - 64), (4, Edge::End, TOP + 8)];
        assert_eq!(paired(marks), (vec![(1, 4)], Counts { left: 1, ..Counts::default() }));
        // Each was left by an exception; the next one is called from the same place.
        let marks = (0..100).map(|time| (time, Edge::Begin, TOP));
        assert_eq!(paired(marks), (vec![], Counts { left: 99, open: 1, ..Counts::default() }));
        let marks = [(1, Edge::Begin, TOP), (2, Edge::Begin, TOP), (3, Edge::End, TOP + 8)];
        assert_eq!(paired(marks), (vec![(2, 3)], Counts { left: 1, ..Counts::default() }));
    }

    #[test]
    fn functions_that_jump_to_each_other_end_together() {
        let marks = [
            (1, Edge::Begin, TOP),
            (2, Edge::Begin, TOP),
            (3, Edge::End, TOP + 8),
            (3, Edge::End, TOP + 8),
        ];
        assert_eq!(paired(marks), (vec![(2, 3), (1, 3)], Counts::default()));
    }

    #[test]
    fn marks_without_a_stack_pointer_follow_each_other() {
        let marks = [
            (1, Edge::End, 0),
            (2, Edge::Begin, 0),
            (3, Edge::End, 0),
            (4, Edge::Begin, 0),
            (5, Edge::Begin, 0),
            (6, Edge::End, 0),
            (7, Edge::Begin, 0),
        ];
        let counts = Counts { left: 1, without_begin: 1, open: 1, ..Counts::default() };
        assert_eq!(paired(marks), (vec![(2, 3), (5, 6)], counts));
    }

    #[test]
    fn a_call_without_an_end_is_never_long() {
        let open = Counts { open: 1, ..Counts::default() };
        assert_eq!(paired([(1, Edge::Begin, TOP)]), (vec![], open));
        let without_begin = Counts { without_begin: 1, ..Counts::default() };
        assert_eq!(paired([(1, Edge::End, TOP + 8)]), (vec![], without_begin));
        // A lost end: the next call at this place has its own.
        let marks = [(1, Edge::Begin, TOP), (5, Edge::Begin, TOP), (6, Edge::End, TOP + 8)];
        assert_eq!(paired(marks).0, [(5, 6)]);
    }

    #[test]
    fn calls_of_goroutines_end_in_any_thread() {
        use whit_profile::tables::Goroutine;
        let goroutine = |number| Some(Goroutine { address: 0xc000, number: Some(number) });
        let marks = [
            (1, 10, 5, Edge::Begin, TOP),
            (2, 10, 6, Edge::Begin, TOP - 64),
            (3, 11, 6, Edge::End, TOP - 64),
            (4, 12, 5, Edge::End, TOP),
            // Another process has the same numbers.
            (5, 99, 6, Edge::End, TOP - 64),
        ];
        let mut pairing = Pairing::new(Arch::X86_64);
        for (time, thread, number, edge, at) in marks {
            let mark = RequestMark { thread, goroutine: goroutine(number), ..mark(time, edge, at) };
            pairing.add(Pid(if thread == 99 { 2 } else { 1 }), mark);
        }
        let mark = |number, time| RequestMark {
            goroutine: goroutine(number),
            ..mark(time, Edge::Begin, TOP)
        };
        pairing.add(Pid(1), mark(7, 6));
        pairing.add(Pid(2), mark(7, 6));
        // The end of a thread ends no call of a goroutine, that of a process does.
        pairing.end_thread(10);
        pairing.end_thread(2);
        let (calls, counts) = pairing.finish();
        let found: Vec<_> =
            calls.iter().map(|call| (call.from.0, call.to.0, call.thread, call.depth)).collect();
        assert_eq!(found, [(2, 3, 11, 0), (1, 4, 12, 0)]);
        assert_eq!(counts, Counts { without_begin: 1, left: 1, open: 1, ..Counts::default() });
    }

    proptest! {
        /// Calls of random depth, some of them left: each that returns has its own beginning.
        #[test]
        fn every_return_has_its_own_beginning(steps in prop::collection::vec((0u8..4, 1u64..16), 1..200)) {
            let mut marks = Vec::new();
            let (mut stack, mut wanted, mut left): (Vec<(u64, u64)>, Vec<_>, u64) = Default::default();
            for (time, (step, size)) in (1u64..).zip(steps) {
                match step {
                    0 | 1 => {
                        let above = stack.last().map_or(TOP, |(_, at)| *at);
                        let at = above - 16 * size;
                        stack.push((time, at));
                        marks.push((time, Edge::Begin, at));
                    }
                    2 => {
                        if let Some((from, at)) = stack.pop() {
                            wanted.push((from, time));
                            marks.push((time, Edge::End, at + 8));
                        }
                    }
                    // A jump out of some frames, into one that returns then.
                    _ => {
                        for _ in 0..size.min(stack.len().saturating_sub(1) as u64) {
                            stack.pop();
                            left += 1;
                        }
                        if let Some((from, at)) = stack.pop() {
                            wanted.push((from, time));
                            marks.push((time, Edge::End, at + 8));
                        }
                    }
                }
            }
            let open = stack.len() as u64;
            let (calls, counts) = paired(marks);
            prop_assert_eq!(calls, wanted);
            prop_assert_eq!(counts, Counts { open, left, ..Counts::default() });
        }
    }
}
