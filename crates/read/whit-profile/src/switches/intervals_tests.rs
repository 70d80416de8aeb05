//! The interval logic, on single stories and on generated schedules with known truth.

use super::*;
use crate::loss_window::{LossWindow, RingLoss};
use crate::object_table::ObjectTable;
use crate::switches::ObjectKey;
use crate::switches::interval::{Life, Run, Switch, Trust, WaitEnd};
use crate::switches::switch_event::{StackRef, TaskState, WaitKind, Wake};
use crate::switches::thread::MAX_RUN_SAMPLES;
use proptest::prelude::*;
use std::collections::BTreeMap;
use whit_perfdata::blocked::Edge;
use whit_perfdata::cpu_account::{CpuAccount, InterruptTimes};
use whit_perfdata::feature::RecordedSpan;
use whit_types::Pid;

const RECORD: Source = Source::Record;
const TRACE: Source = Source::Tracepoint;

/// Thread, CPU, from, to, samples, trust, open.
type KeptRun = (i32, Option<u32>, u64, u64, Vec<u32>, Trust, bool);

#[derive(Default)]
struct Kept {
    switches: Vec<Switch>,
    runs: Vec<KeptRun>,
    /// Thread or -1 - CPU, and the parts.
    parts: Vec<(i32, CpuParts)>,
    ended: Vec<i32>,
    lives: Vec<(i32, Option<u64>, Option<u64>)>,
    died: Vec<(i32, u64)>,
}

impl Sink for Kept {
    fn switch(&mut self, switch: &Switch) {
        self.switches.push(*switch);
    }

    fn run(&mut self, run: &Run<'_>) {
        let samples = run.samples.iter().map(|sample| sample.stack.node).collect();
        let cpu = run.cpu.map(|cpu| cpu.0);
        let (from, to) = (run.from.0, run.to.0);
        if run.parts != CpuParts::default() {
            self.parts.push((run.task.tid.0, run.parts));
        }
        self.runs.push((run.task.tid.0, cpu, from, to, samples, run.trust, run.is_open));
    }

    fn idle(&mut self, cpu: CpuId, parts: &CpuParts) {
        self.parts.push((-1 - cpu.0 as i32, *parts));
    }

    fn end(&mut self, task: Task) {
        self.ended.push(task.tid.0);
    }

    fn life(&mut self, task: Task, life: Life) {
        self.lives.push((task.tid.0, life.born.map(|at| at.0), life.died.map(|at| at.0)));
    }

    fn died(&mut self, task: Task, time: TimestampNs) {
        self.died.push((task.tid.0, time.0));
    }
}

fn stack(node: u32) -> StackRef {
    StackRef { worker: 0, node }
}

fn said(time: u64, cpu: u32, tid: i32, event: SwitchEvent) -> TimedSwitchEvent {
    let cpu = Some(CpuId(cpu));
    TimedSwitchEvent { time: TimestampNs(time), cpu, pid: Pid(tid), tid: Tid(tid), event }
}

fn out(source: Source, kind: WaitKind) -> SwitchEvent {
    SwitchEvent::Out { source, kind, state: None, stack: StackRef::NONE }
}

fn wake(wakee: i32, is_new: bool) -> SwitchEvent {
    let stack = StackRef::NONE;
    SwitchEvent::Wake(Wake {
        wakee: Tid(wakee),
        stack,
        from_interrupt: !is_new,
        sends_to: ObjectKey::None,
        is_new,
    })
}

fn intervals_of(losses: &[RingLoss], timed_events: &[TimedSwitchEvent]) -> (Kept, Inconsistencies) {
    switch_with(losses, timed_events, false)
}

fn switch_with(
    losses: &[RingLoss],
    timed_events: &[TimedSwitchEvent],
    has_switch_ins: bool,
) -> (Kept, Inconsistencies) {
    let (kept, inconsistencies, _) = switch_in(losses, timed_events, has_switch_ins, None);
    (kept, inconsistencies)
}

/// With the spans that the recorder states.
fn switch_in(
    losses: &[RingLoss],
    timed_events: &[TimedSwitchEvent],
    has_switch_ins: bool,
    spans: Option<&[(u64, u64)]>,
) -> (Kept, Inconsistencies, RecordedTotals) {
    let losses = Losses::new(losses);
    let span =
        |&(from, to): &(u64, u64)| RecordedSpan { from: TimestampNs(from), to: TimestampNs(to) };
    let spans = RecordedSpans::new(spans.map(|spans| spans.iter().map(span).collect()));
    let mut intervals = Intervals::new(&losses, RecordedCpus::Any, has_switch_ins, spans);
    let mut kept = Kept::default();
    timed_events.iter().for_each(|timed_event| intervals.take(timed_event, &mut kept));
    let (inconsistencies, totals) = intervals.finish(&mut kept);
    (kept, inconsistencies, totals)
}

fn ended(time: u64, trust: Trust) -> WaitEnd {
    WaitEnd::In { time: TimestampNs(time), cpu: Some(CpuId(0)), trust }
}

#[test]
fn a_switch_has_stack_kind_waker_and_end() {
    let wake = Wake {
        wakee: Tid(7),
        stack: stack(5),
        from_interrupt: false,
        sends_to: ObjectKey::None,
        is_new: false,
    };
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(10, 1, 7, SwitchEvent::In { source: RECORD }),
            said(15, 1, 7, SwitchEvent::Sample(stack(1))),
            said(
                20,
                1,
                7,
                SwitchEvent::SwitchStack {
                    stack: stack(2),
                    state: Some(TaskState(1)),
                    object: ObjectKey::Futex(5),
                },
            ),
            said(21, 1, 7, out(RECORD, WaitKind::Sync)),
            said(30, 0, 8, SwitchEvent::Wake(wake)),
            said(31, 0, 9, SwitchEvent::Wake(wake)),
            said(40, 0, 7, SwitchEvent::In { source: RECORD }),
            said(45, 0, 7, out(RECORD, WaitKind::Preempt)),
            said(50, 0, 8, SwitchEvent::Wake(wake)),
            said(60, 0, 7, SwitchEvent::In { source: RECORD }),
        ],
    );
    let [first, second] = kept.switches[..] else { panic!("{:?}", kept.switches) };
    assert_eq!((first.out.0, first.kind, first.stack), (21, WaitKind::Sync, stack(2)));
    assert_eq!((first.state, second.state), (Some(TaskState(1)), None));
    assert_eq!(first.cpu, Some(CpuId(1)));
    assert_eq!(first.end, ended(40, Trust::Whole));
    let woken = first.woken.expect("woken");
    assert_eq!((woken.time.0, woken.waker.tid.0, woken.stack), (30, 8, stack(5)));
    // A runnable thread has no waker.
    assert_eq!((second.kind, second.woken), (WaitKind::Preempt, None));
    let whole = Trust::Whole;
    let runs = [
        (7, Some(1), 10, 21, vec![1], whole, false),
        (7, Some(0), 40, 45, vec![], whole, false),
        (7, Some(0), 60, 60, vec![], whole, true),
    ];
    assert_eq!(kept.runs, runs);
    assert_eq!(inconsistencies, Inconsistencies::default());
}

#[test]
fn two_sources_have_one_switch() {
    let traced = SwitchEvent::Out {
        source: TRACE,
        kind: WaitKind::Sync,
        state: Some(TaskState(2)),
        stack: StackRef::NONE,
    };
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(10, 0, 7, SwitchEvent::Sample(stack(1))),
            said(20, 0, 7, traced),
            said(
                21,
                0,
                7,
                SwitchEvent::SwitchStack {
                    stack: stack(3),
                    state: Some(TaskState(1)),
                    object: ObjectKey::Futex(5),
                },
            ),
            said(22, 0, 7, out(RECORD, WaitKind::Sync)),
            said(30, 0, 7, SwitchEvent::In { source: TRACE }),
            said(31, 0, 7, SwitchEvent::In { source: RECORD }),
        ],
    );
    let [only] = kept.switches[..] else { panic!("{:?}", kept.switches) };
    assert_eq!((only.out.0, only.state, only.stack), (20, Some(TaskState(2)), stack(3)));
    assert_eq!(only.end, ended(30, Trust::Whole));
    assert_eq!(inconsistencies, Inconsistencies::default());
    // It ran before it was seen: at least so long.
    assert_eq!(kept.runs[0], (7, Some(0), 10, 20, vec![1], Trust::Whole, true));
}

#[test]
fn gaps_are_reported_and_not_filled_in() {
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(10, 0, 7, out(RECORD, WaitKind::Sync)),
            said(20, 0, 7, out(RECORD, WaitKind::Preempt)),
            said(25, 0, 7, SwitchEvent::Sample(stack(1))),
            said(30, 0, 7, SwitchEvent::In { source: RECORD }),
            said(35, 0, 7, SwitchEvent::Sample(stack(1))),
            said(40, 0, 7, SwitchEvent::In { source: RECORD }),
            said(50, 0, 7, out(RECORD, WaitKind::Sync)),
        ],
    );
    let ends: Vec<_> = kept.switches.iter().map(|switch| switch.end).collect();
    let until = TimestampNs(50);
    assert_eq!(
        ends,
        [WaitEnd::Missing, ended(30, Trust::Whole), WaitEnd::Open { until, trust: Trust::Whole }]
    );
    let expected = Inconsistencies { missing_outs: 1, missing_ins: 1, stray_samples: 1, exits: 0 };
    assert_eq!(inconsistencies, expected);
    // Up to the last moment at which it was seen.
    assert_eq!(kept.runs[0], (7, Some(0), 30, 35, vec![1], Trust::Lossy, false));
}

#[test]
fn a_thread_that_runs_at_the_beginning_has_run_since() {
    let timed_events = [
        said(5, 1, 9, SwitchEvent::In { source: RECORD }),
        said(10, 2, 6, SwitchEvent::Fork { pid: Pid(8), tid: Tid(8) }),
        said(20, 0, 7, out(RECORD, WaitKind::Sync)),
        said(30, 3, 8, out(RECORD, WaitKind::Sync)),
        said(40, 0, 7, SwitchEvent::In { source: RECORD }),
    ];
    let of = |kept: &Kept, tid| {
        let runs = kept.runs.iter().filter(|run| run.0 == tid);
        runs.map(|run| (run.2, run.3, run.6)).collect::<Vec<_>>()
    };
    let (kept, _) = switch_with(&[], &timed_events, true);
    assert_eq!(of(&kept, 6), [(5, 40, true)]);
    assert_eq!(of(&kept, 7), [(5, 20, true), (40, 40, true)]);
    // It was made later: its switch-in is missing.
    assert_eq!(of(&kept, 8), []);
    let (kept, _) = switch_with(&[], &timed_events, false);
    assert_eq!(of(&kept, 6), [(10, 40, true)]);
    assert_eq!(of(&kept, 7), [(40, 40, true)]);
}

fn runs_of(kept: &Kept, tid: i32) -> Vec<(u64, u64, Trust, bool)> {
    let runs = kept.runs.iter().filter(|run| run.0 == tid);
    runs.map(|run| (run.2, run.3, run.5, run.6)).collect()
}

/// The BPF engine writes sideband for seconds before it records switches.
#[test]
fn sideband_from_before_the_recording_is_nobodys_time_on_a_cpu() {
    let fork = |tid| SwitchEvent::Fork { pid: Pid(6), tid: Tid(tid) };
    let timed_events = [
        said(10, 0, 6, fork(8)),
        said(20, 1, 6, fork(9)),
        said(25, 1, 9, SwitchEvent::Exit),
        said(1000, 0, 6, SwitchEvent::Sample(stack(0))),
        said(1010, 1, 8, SwitchEvent::Sample(stack(0))),
        said(1020, 0, 6, out(RECORD, WaitKind::Sync)),
        said(1100, 1, 8, SwitchEvent::Running),
        said(1200, 0, 6, SwitchEvent::Exit),
    ];
    let whole = Trust::Whole;
    for (spans, begin, end) in [(None, 1000, 1200), (Some(&[(990, 1150)][..]), 990, 1150)] {
        let (kept, _, totals) = switch_in(&[], &timed_events, true, spans);
        assert_eq!(runs_of(&kept, 6), [(begin, 1020, whole, true)]);
        // Made before recording began, it is a thread like any other.
        assert_eq!(runs_of(&kept, 8), [(begin, end, whole, true)]);
        assert_eq!(runs_of(&kept, 9), []);
        assert_eq!(totals.span(), Some((TimestampNs(begin), TimestampNs(end))));
        assert_eq!((totals.recorded_ns(), totals.nr_cpus), (end - begin, 2));
    }
}

#[test]
fn intervals_end_where_recording_pauses() {
    let timed_events = [
        said(110, 0, 6, SwitchEvent::In { source: RECORD }),
        said(120, 1, 7, out(RECORD, WaitKind::Sync)),
        // Sideband goes on in the pause.
        said(250, 0, 6, SwitchEvent::Fork { pid: Pid(8), tid: Tid(8) }),
        said(320, 0, 6, out(RECORD, WaitKind::Preempt)),
        said(330, 1, 7, SwitchEvent::In { source: RECORD }),
        said(340, 1, 7, out(RECORD, WaitKind::Sync)),
    ];
    let (kept, inconsistencies, totals) =
        switch_in(&[], &timed_events, true, Some(&[(100, 200), (300, 400)]));
    let whole = Trust::Whole;
    assert_eq!(runs_of(&kept, 6), [(110, 200, whole, true), (300, 320, whole, true)]);
    assert_eq!(runs_of(&kept, 7), [(100, 120, whole, true), (330, 340, whole, false)]);
    let open = |until| WaitEnd::Open { until: TimestampNs(until), trust: Trust::Whole };
    let waits: Vec<_> = kept.switches.iter().map(|it| (it.task.tid.0, it.out.0, it.end)).collect();
    assert_eq!(waits, [(7, 120, open(200)), (6, 320, open(400)), (7, 340, open(400))]);
    assert_eq!(inconsistencies, Inconsistencies::default());
    assert_eq!((totals.recorded_ns(), totals.nr_cpus), (200, 2));
}

#[test]
fn a_thread_without_a_switch_out_runs_until_it_was_last_seen() {
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(10, 0, 6, SwitchEvent::In { source: RECORD }),
            said(20, 0, 6, SwitchEvent::Sample(stack(0))),
            // Neither the end of this run nor the idle task's beginning was recorded.
            said(50, 0, 7, SwitchEvent::Sample(stack(0))),
            said(60, 0, 7, out(RECORD, WaitKind::Sync)),
            said(70, 0, 6, out(RECORD, WaitKind::Sync)),
            said(80, 1, 7, SwitchEvent::In { source: RECORD }),
            // It moved without a word.
            said(90, 0, 7, SwitchEvent::Sample(stack(0))),
            said(95, 0, 7, out(RECORD, WaitKind::Sync)),
        ],
    );
    let (whole, lossy) = (Trust::Whole, Trust::Lossy);
    assert_eq!(runs_of(&kept, 6), [(10, 20, lossy, false)]);
    assert_eq!(
        runs_of(&kept, 7),
        [(50, 60, whole, true), (80, 80, lossy, false), (90, 95, whole, true)]
    );
    assert_eq!(inconsistencies.missing_outs, 2);
}

/// The same, where one source has not shown that the thread came; tracepoints hide threads that follow the idle
/// task.
#[test]
fn a_thread_without_a_number_ends_no_run_of_the_next() {
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(1, 0, 8, SwitchEvent::In { source: TRACE }),
            said(2, 0, 8, SwitchEvent::In { source: RECORD }),
            said(5, 0, 8, out(TRACE, WaitKind::Sync)),
            said(6, 0, 8, out(RECORD, WaitKind::Sync)),
            said(7, 0, 7, SwitchEvent::In { source: RECORD }),
            said(15, 0, 7, SwitchEvent::Exit),
            said(20, 0, -1, out(TRACE, WaitKind::Sync)),
            said(20, 0, 8, SwitchEvent::In { source: TRACE }),
            said(
                21,
                0,
                -1,
                SwitchEvent::SwitchStack { stack: stack(0), state: None, object: ObjectKey::None },
            ),
            said(22, 0, -1, out(RECORD, WaitKind::Preempt)),
            said(23, 0, 8, SwitchEvent::In { source: RECORD }),
            said(30, 0, 8, out(TRACE, WaitKind::Preempt)),
            said(31, 0, 8, out(RECORD, WaitKind::Preempt)),
        ],
    );
    let runs: Vec<_> = kept.runs.iter().map(|run| (run.0, run.2, run.3)).collect();
    assert_eq!(runs, [(8, 1, 5), (7, 7, 15), (8, 20, 30)]);
    assert_eq!(inconsistencies, Inconsistencies { exits: 1, ..Inconsistencies::default() });
}

#[test]
fn the_last_switch_of_a_thread_is_no_wait() {
    let fork = SwitchEvent::Fork { pid: Pid(7), tid: Tid(7) };
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(10, 0, 7, SwitchEvent::In { source: RECORD }),
            said(20, 0, 7, SwitchEvent::Exit),
            // Its number is gone by now.
            said(25, 0, -1, out(RECORD, WaitKind::Preempt)),
            said(30, 0, -1, SwitchEvent::In { source: RECORD }),
            said(31, 0, -1, out(RECORD, WaitKind::Sync)),
            said(40, 1, 6, fork),
            said(50, 0, 7, SwitchEvent::In { source: RECORD }),
            // Recorded per process, nothing comes after the exit.
            said(60, 0, 7, SwitchEvent::Exit),
            said(70, 1, 6, SwitchEvent::Sample(stack(0))),
        ],
    );
    assert_eq!(kept.switches, []);
    assert_eq!(inconsistencies, Inconsistencies { exits: 1, ..Inconsistencies::default() });
    let of_7: Vec<_> = kept.runs.iter().filter(|run| run.0 == 7).map(|r| (r.2, r.3)).collect();
    assert_eq!(of_7, [(10, 25), (50, 60)]);
    assert_eq!(kept.ended, [7, 6, 7]);
}

/// One source has reported the next thread already when the other reports the thread that has
/// ended.
#[test]
fn a_thread_without_a_number_is_not_taken_for_the_next() {
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(10, 0, 7, SwitchEvent::In { source: TRACE }),
            said(11, 0, 7, SwitchEvent::In { source: RECORD }),
            said(15, 0, 7, SwitchEvent::Exit),
            said(20, 0, -1, out(TRACE, WaitKind::Sync)),
            said(20, 0, 8, SwitchEvent::In { source: TRACE }),
            said(22, 0, -1, out(RECORD, WaitKind::Sync)),
            said(23, 0, 8, SwitchEvent::In { source: RECORD }),
            said(30, 0, 8, out(TRACE, WaitKind::Preempt)),
            said(31, 0, 8, out(RECORD, WaitKind::Preempt)),
        ],
    );
    assert_eq!(kept.switches.len(), 1);
    let runs: Vec<_> = kept.runs.iter().map(|run| (run.0, run.2, run.3)).collect();
    assert_eq!(runs, [(7, 10, 20), (8, 20, 30)]);
    assert_eq!(inconsistencies, Inconsistencies { exits: 1, ..Inconsistencies::default() });
}

#[test]
fn threads_that_are_only_heard_of_do_not_count() {
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(10, 0, 7, out(TRACE, WaitKind::Sync)),
            said(10, 0, 99, SwitchEvent::In { source: TRACE }),
            said(20, 0, 98, wake(7, false)),
            said(25, 0, 98, wake(99, true)),
            said(30, 1, 99, SwitchEvent::In { source: TRACE }),
            said(31, 0, 5, SwitchEvent::In { source: TRACE }),
            said(40, 0, 5, out(TRACE, WaitKind::Sync)),
        ],
    );
    assert_eq!(inconsistencies, Inconsistencies::default());
    assert_eq!(kept.runs, [(5, Some(0), 31, 40, vec![], Trust::Whole, false)]);
    assert_eq!(kept.switches.len(), 2);
}

#[test]
fn a_new_thread_waits_for_its_first_run() {
    for source in [RECORD, TRACE] {
        let (kept, inconsistencies) = intervals_of(
            &[],
            &[
                said(5, 2, 7, SwitchEvent::In { source }),
                said(10, 1, 6, SwitchEvent::Fork { pid: Pid(6), tid: Tid(8) }),
                said(12, 1, 6, wake(8, true)),
                // Nobody wakes it again before it has run.
                said(13, 1, 6, wake(8, false)),
                said(20, 0, 8, SwitchEvent::In { source }),
                said(30, 0, 8, out(source, WaitKind::Sync)),
                said(40, 0, 8, SwitchEvent::In { source }),
                // The same number again, without a record of its maker: the first has ended.
                said(50, 1, 6, wake(8, true)),
                said(60, 0, 8, SwitchEvent::In { source }),
                said(70, 0, 8, SwitchEvent::Exit),
            ],
        );
        let [first, wait, again] = kept.switches[..] else { panic!("{:?}", kept.switches) };
        assert_eq!((first.out.0, first.kind, first.cpu), (12, WaitKind::New, None));
        assert_eq!((first.end, first.task.pid), (ended(20, Trust::Whole), Pid(8)));
        let woken = first.woken.expect("a maker");
        assert_eq!((woken.time.0, woken.waker.tid), (12, Tid(6)));
        assert_eq!((wait.out.0, wait.kind), (30, WaitKind::Sync));
        assert_eq!((again.out.0, again.end), (50, ended(60, Trust::Whole)));
        assert_eq!(inconsistencies.missing_ins + inconsistencies.missing_outs, 0);
    }
}

#[test]
fn a_first_run_without_its_beginning() {
    let loss = LossWindow { from: TimestampNs(15), to: TimestampNs(16) };
    let losses = [RingLoss { cpu: Some(CpuId(3)), thread: None, window: loss, records: 0 }];
    let (kept, inconsistencies) = intervals_of(
        &losses,
        &[
            said(10, 1, 6, wake(7, true)),
            said(11, 1, 6, wake(8, true)),
            said(12, 1, 6, wake(9, true)),
            said(20, 0, 7, SwitchEvent::Sample(stack(1))),
            said(30, 0, 7, out(RECORD, WaitKind::Sync)),
            said(31, 0, 8, out(RECORD, WaitKind::Sync)),
            said(32, 0, 9, SwitchEvent::In { source: RECORD }),
            // It has no record: it may be a thread that is not recorded.
            said(33, 0, 6, wake(5, true)),
        ],
    );
    let new = kept.switches.iter().filter(|switch| switch.kind == WaitKind::New);
    let ends: Vec<_> = new.map(|switch| (switch.task.tid.0, switch.end)).collect();
    let missing = WaitEnd::Missing;
    assert_eq!(ends, [(7, missing), (8, missing), (9, ended(32, Trust::Lossy))]);
    // It runs from the first that is seen of it.
    assert_eq!(kept.runs[0], (7, Some(0), 20, 30, vec![1], Trust::Whole, true));
    assert_eq!((inconsistencies.missing_ins, inconsistencies.stray_samples), (2, 0));
}

/// With `-C`, the sideband of other CPUs is recorded as well: nobody runs by that.
#[test]
fn no_thread_runs_on_a_cpu_that_is_not_recorded() {
    let losses = Losses::default();
    let cpus = RecordedCpus::Only([CpuId(0)].into_iter().collect());
    let mut intervals = Intervals::new(&losses, cpus, true, RecordedSpans::new(None));
    let mut kept = Kept::default();
    for timed_event in [
        said(10, 1, 6, SwitchEvent::Fork { pid: Pid(8), tid: Tid(8) }),
        said(11, 1, 8, SwitchEvent::Running),
        said(20, 0, 8, SwitchEvent::In { source: RECORD }),
        said(30, 0, 8, out(RECORD, WaitKind::Sync)),
        // It went on elsewhere, and ended there.
        said(40, 1, 8, SwitchEvent::Exit),
        said(41, 1, 6, SwitchEvent::Exit),
        said(50, 0, 7, out(RECORD, WaitKind::Sync)),
    ] {
        intervals.take(&timed_event, &mut kept);
    }
    let (inconsistencies, _) = intervals.finish(&mut kept);
    let runs: Vec<_> = kept.runs.iter().map(|run| (run.0, run.2, run.3)).collect();
    // Thread 8 was on that CPU first.
    assert_eq!(runs, [(8, 20, 30)]);
    let waits: Vec<_> = kept.switches.iter().map(|switch| switch.task.tid.0).collect();
    assert_eq!((waits, inconsistencies.exits), (vec![7], 1));
}

#[test]
fn samples_of_a_long_run_are_given_out_in_parts() {
    let mut timed_events = vec![said(10, 0, 7, SwitchEvent::In { source: RECORD })];
    let samples = 2 * MAX_RUN_SAMPLES as u64 + 5;
    timed_events
        .extend((0..samples).map(|i| said(20 + i, 0, 7, SwitchEvent::Sample(stack(i as u32)))));
    timed_events.push(said(50_000, 0, 7, out(RECORD, WaitKind::Sync)));
    let (kept, _) = intervals_of(&[], &timed_events);
    let given: Vec<u32> = kept.runs.iter().flat_map(|run| run.4.clone()).collect();
    assert_eq!(given, (0..samples as u32).collect::<Vec<_>>());
    assert!(kept.runs.windows(2).all(|pair| pair[0].3 == pair[1].2));
    assert_eq!((kept.runs.len(), kept.runs[0].2, kept.runs[2].3), (3, 10, 50_000));
}

// ---- generated schedules

#[derive(Clone, Copy, Debug)]
struct Step {
    cpu: u8,
    thread: u8,
    preempt: bool,
    gap: u8,
    samples: u8,
}

/// A record of a CPU's ring, and the statements that it makes.
struct Statement {
    time: u64,
    cpu: u32,
    timed_events: Vec<TimedSwitchEvent>,
}

/// The true intervals, per thread: (from, to, waiting for).
type Truth = BTreeMap<i32, Vec<(u64, u64, Option<WaitKind>)>>;

const CPUS: usize = 3;
const THREADS: usize = 5;

/// A schedule of a few threads on a few CPUs.
fn schedule(steps: &[Step], sources: &[Source]) -> (Vec<Statement>, Truth) {
    let mut running = [0usize; CPUS];
    let mut since: [Option<(u64, Option<WaitKind>)>; THREADS + 1] = [None; THREADS + 1];
    let mut truth = Truth::new();
    let mut stated = Vec::new();
    let mut time = 100;
    for step in steps {
        let cpu = usize::from(step.cpu) % CPUS;
        let next = usize::from(step.thread) % (THREADS + 1);
        let prev = running[cpu];
        time += 1 + u64::from(step.gap);
        // A thread is made that has no record yet.
        if step.samples >= 128 && prev != 0 && next != 0 && since[next].is_none() {
            let maker = prev as i32;
            let fork = SwitchEvent::Fork { pid: Pid(next as i32), tid: Tid(next as i32) };
            for event in step.preempt.then_some(fork).into_iter().chain([wake(next as i32, true)]) {
                let timed_events = vec![said(time, cpu as u32, maker, event)];
                stated.push(Statement { time, cpu: cpu as u32, timed_events });
                time += 1;
            }
            since[next] = Some((time - 1, Some(WaitKind::New)));
            continue;
        }
        if next == prev || (next != 0 && running.contains(&next)) {
            continue;
        }
        let say = |time, tid: usize, event| said(time, cpu as u32, tid as i32, event);
        for _ in 0..step.samples % 3 {
            let timed_events = vec![say(time, prev, SwitchEvent::Sample(stack(prev as u32)))];
            stated.push(Statement { time, cpu: cpu as u32, timed_events });
            time += 1;
        }
        let kind = if step.preempt { WaitKind::Preempt } else { WaitKind::Sync };
        let begin = time;
        let mut intervals_of = |timed_events: &[TimedSwitchEvent]| {
            stated.push(Statement { time, cpu: cpu as u32, timed_events: timed_events.to_vec() });
            time += 1;
        };
        if sources.contains(&TRACE) {
            intervals_of(&[
                say(begin, prev, out(TRACE, kind)),
                say(begin, next, SwitchEvent::In { source: TRACE }),
            ]);
        }
        if sources.contains(&RECORD) {
            let out_time = begin + u64::from(sources.len() > 1);
            intervals_of(&[say(out_time, prev, out(RECORD, kind))]);
            // At the same moment: the truth has no time between.
            let in_time = if sources.len() > 1 { out_time + 1 } else { out_time };
            intervals_of(&[say(in_time, next, SwitchEvent::In { source: RECORD })]);
            stated.last_mut().expect("just told").time = in_time;
        }
        for (thread, now) in [(prev, Some(kind)), (next, None)] {
            if thread == 0 {
                continue;
            }
            if let Some((from, was)) = since[thread].replace((begin, now)) {
                truth.entry(thread as i32).or_default().push((from, begin, was));
            }
        }
        running[cpu] = next;
    }
    (stated, truth)
}

fn step() -> impl Strategy<Value = Step> {
    (any::<u8>(), any::<u8>(), any::<bool>(), 0u8..5, any::<u8>()).prop_map(
        |(cpu, thread, preempt, gap, samples)| Step { cpu, thread, preempt, gap, samples },
    )
}

fn which() -> impl Strategy<Value = Vec<Source>> {
    prop::sample::select(vec![vec![RECORD], vec![TRACE], vec![TRACE, RECORD]])
}

fn flat(stated: &[Statement]) -> Vec<TimedSwitchEvent> {
    stated.iter().flat_map(|stated| stated.timed_events.iter().copied()).collect()
}

/// Time in [`schedule`] between the first and the last statement on one switch.
const SWITCH_NS: u64 = 2;

/// Where the first source's word was lost, the other's gives the time.
fn is_same(a: (u64, u64, Option<WaitKind>), b: (u64, u64, Option<WaitKind>)) -> bool {
    a.0.abs_diff(b.0) <= SWITCH_NS && a.1.abs_diff(b.1) <= SWITCH_NS && a.2 == b.2
}

/// Intervals that are said to be whole, as the truth has them.
fn trusted(kept: &Kept) -> Truth {
    let mut all = Truth::new();
    for switch in &kept.switches {
        if let WaitEnd::In { time, trust: Trust::Whole, .. } = switch.end {
            let wait = (switch.out.0, time.0, Some(switch.kind));
            all.entry(switch.task.tid.0).or_default().push(wait);
        }
    }
    for (tid, _, from, to, _, trust, open) in &kept.runs {
        if *trust == Trust::Whole && !open {
            all.entry(*tid).or_default().push((*from, *to, None));
        }
    }
    all.values_mut().for_each(|intervals| intervals.sort_unstable());
    all
}

proptest! {
    /// Without losses, every interval that both began and ended in the recording is found,
    /// whichever sources tell.
    #[test]
    fn intervals_are_those_of_the_schedule(
        steps in prop::collection::vec(step(), 0..120),
        sources in which(),
    ) {
        let (stated, mut truth) = schedule(&steps, &sources);
        let (kept, inconsistencies) = intervals_of(&[], &flat(&stated));
        truth.values_mut().for_each(|intervals| intervals.sort_unstable());
        // By the tracepoint, a thread is only heard of when it leaves its CPU for the first time, or forks.
        if sources == [TRACE] {
            let is_new = |interval: &(u64, u64, Option<WaitKind>)| interval.2 == Some(WaitKind::New);
            let stated = flat(&stated);
            let speaks = |tid: i32| {
                stated.iter().any(|it| it.tid.0 == tid && !matches!(it.event, SwitchEvent::In { .. } | SwitchEvent::Wake(_)))
            };
            truth.retain(|tid, intervals| {
                intervals.len() > 1 || !intervals.iter().all(is_new) || speaks(*tid)
            });
        }
        prop_assert_eq!(trusted(&kept), truth);
        prop_assert_eq!((inconsistencies.missing_ins, inconsistencies.missing_outs), (0, 0));
    }

    /// With losses, each interval that is called whole is true.
    #[test]
    fn nothing_untrue_is_trusted(
        steps in prop::collection::vec(step(), 0..120),
        sources in which(),
        has_switch_ins in any::<bool>(),
        is_exact in any::<bool>(),
        cuts in prop::collection::vec((0..CPUS as u32, any::<prop::sample::Index>(), 1usize..12), 1..5),
    ) {
        let (stated, truth) = schedule(&steps, &sources);
        let mut lost = vec![false; stated.len()];
        for (cpu, at, count) in cuts {
            if stated.is_empty() {
                continue;
            }
            let of_cpu = (at.index(stated.len())..stated.len()).filter(|i| stated[*i].cpu == cpu);
            of_cpu.take(count).for_each(|i| lost[i] = true);
        }
        let mut losses = Vec::new();
        for cpu in 0..CPUS as u32 {
            let mut from = TimestampNs(0);
            let mut is_losing = false;
            for (i, stated) in stated.iter().enumerate().filter(|(_, stated)| stated.cpu == cpu) {
                let time = TimestampNs(stated.time);
                // A ring knows the records around a loss, a channel the lost ones.
                if is_exact && lost[i] {
                    let window = LossWindow { from: time, to: time };
                    losses.push(RingLoss { cpu: Some(CpuId(cpu)), thread: None, window, records: 0 });
                } else if !is_exact {
                    if !lost[i] {
                        let window = LossWindow { from, to: time };
                        losses.extend(is_losing.then_some(RingLoss { cpu: Some(CpuId(cpu)), thread: None, window, records: 0 }));
                        from = time;
                    }
                    is_losing = lost[i];
                }
            }
            if is_losing {
                let window = LossWindow { from, to: TimestampNs(u64::MAX) };
                losses.push(RingLoss { cpu: Some(CpuId(cpu)), thread: None, window, records: 0 });
            }
        }
        let left = stated.iter().zip(&lost).filter(|(_, lost)| !**lost);
        let timed_events: Vec<_> =
            left.flat_map(|(stated, _)| stated.timed_events.iter().copied()).collect();
        let (kept, _) = switch_with(&losses, &timed_events, has_switch_ins);
        for (tid, intervals) in trusted(&kept) {
            let true_ones = truth.get(&tid).cloned().unwrap_or_default();
            for interval in intervals {
                prop_assert!(
                    true_ones.iter().any(|truth| is_same(*truth, interval)),
                    "{tid}: {interval:?} of {true_ones:?}, losses {losses:?}"
                );
            }
        }
    }

    /// Any statements: no panic, no thread's intervals overlap, and no CPU runs two threads at once or any
    /// outside of the recorded time.
    #[test]
    fn any_statements_are_taken(
        all in prop::collection::vec((0u64..50, 0u32..3, -1i32..4, 0u8..9, any::<bool>()), 0..100),
        spans in prop::option::of(prop::collection::vec((0u64..30, 0u64..30), 0..3)),
    ) {
        let mut from = 0;
        let spans = spans.map(|spans| {
            let span = |(gap, length): &(u64, u64)| {
                let begin = from + gap;
                from = begin + length + 1;
                (begin, begin + length)
            };
            spans.iter().map(span).collect::<Vec<_>>()
        });
        let mut timed_events: Vec<_> = all.iter().map(|(time, cpu, tid, event, flag)| {
            let source = if *flag { RECORD } else { TRACE };
            let kind = if *flag { WaitKind::Sync } else { WaitKind::Preempt };
            let other = Tid(*cpu as i32);
            let event = match event {
                0 | 1 => out(source, kind),
                2 | 3 => SwitchEvent::In { source },
                4 => SwitchEvent::SwitchStack { stack: stack(0), state: None, object: ObjectKey::None },
                5 => SwitchEvent::Sample(stack(0)),
                6 => wake(other.0, *flag),
                7 => SwitchEvent::Fork { pid: Pid(other.0), tid: other },
                _ => SwitchEvent::Exit,
            };
            said(*time, *cpu, *tid, event)
        }).collect();
        timed_events.sort_by_key(|timed_event| timed_event.time);
        let has_switch_ins = all.len() % 2 == 0;
        let (kept, _, totals) = switch_in(&[], &timed_events, has_switch_ins, spans.as_deref());
        let mut by_cpu: BTreeMap<Option<u32>, Vec<(u64, u64)>> = BTreeMap::new();
        kept.runs.iter().for_each(|run| by_cpu.entry(run.1).or_default().push((run.2, run.3)));
        for spans in by_cpu.values_mut() {
            spans.sort_unstable();
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
        }
        let total: u64 = kept.runs.iter().map(|run| run.3 - run.2).sum();
        prop_assert!(total <= totals.nr_cpus as u64 * totals.recorded_ns());
        let mut spans: BTreeMap<i32, Vec<(u64, u64)>> = BTreeMap::new();
        for run in &kept.runs {
            prop_assert!(run.2 <= run.3);
            spans.entry(run.0).or_default().push((run.2, run.3));
        }
        for switch in &kept.switches {
            if let WaitEnd::In { time, .. } = switch.end {
                spans.entry(switch.task.tid.0).or_default().push((switch.out.0, time.0));
            }
        }
        for spans in spans.values_mut() {
            spans.sort_unstable();
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
        }
    }
}

fn found(edge: Edge, switches: u64, node: u32) -> SwitchEvent {
    let (state, stack) = (TaskState(1), stack(node));
    SwitchEvent::Blocked { edge, switches, state, stack, futex: 0, owner: 0 }
}

#[test]
fn a_thread_that_is_blocked_at_both_ends_waits_throughout() {
    let statements = [
        said(12, 1, 7, found(Edge::Begin, 5, 3)),
        // Others may run where it was last.
        said(20, 1, 8, SwitchEvent::Sample(stack(9))),
        said(98, 1, 7, found(Edge::End, 5, 4)),
    ];
    // Lost records do not matter: it has left no CPU since.
    let window = LossWindow { from: TimestampNs(30), to: TimestampNs(40) };
    for losses in [&[][..], &[RingLoss { cpu: None, thread: None, window, records: 0 }]] {
        let (kept, inconsistencies, _) = switch_in(losses, &statements, true, Some(&[(10, 100)]));
        let [wait] = kept.switches[..] else { panic!("{:?}", kept.switches) };
        assert_eq!((wait.out, wait.kind, wait.stack), (TimestampNs(10), WaitKind::Sync, stack(3)));
        assert_eq!(wait.end, WaitEnd::Open { until: TimestampNs(100), trust: Trust::Whole });
        assert!(wait.lasts_throughout());
        let [(8, Some(1), ..)] = kept.runs[..] else { panic!("{:?}", kept.runs) };
        assert_eq!(inconsistencies, Inconsistencies::default());
    }
}

#[test]
fn a_thread_that_is_blocked_at_first_has_waited_since_recording_began() {
    let statements = [
        said(12, 1, 7, found(Edge::Begin, 5, 3)),
        said(50, 0, 7, SwitchEvent::In { source: RECORD }),
        said(60, 0, 7, out(RECORD, WaitKind::Sync)),
        said(98, 0, 7, found(Edge::End, 6, 4)),
    ];
    let (kept, inconsistencies, _) = switch_in(&[], &statements, true, Some(&[(10, 100)]));
    let [first, second] = kept.switches[..] else { panic!("{:?}", kept.switches) };
    assert_eq!((first.out, first.stack), (TimestampNs(10), stack(3)));
    assert_eq!(first.end, ended(50, Trust::Whole));
    assert!(first.found_blocked.is_some() && !first.lasts_throughout());
    // The source of its switch has no stack.
    assert_eq!((second.out, second.stack, second.found_blocked), (TimestampNs(60), stack(4), None));
    assert_eq!(second.end, WaitEnd::Open { until: TimestampNs(100), trust: Trust::Whole });
    assert_eq!(inconsistencies, Inconsistencies::default());
    let [(7, Some(0), 50, 60, ..)] = kept.runs[..] else { panic!("{:?}", kept.runs) };
    let window = LossWindow { from: TimestampNs(30), to: TimestampNs(40) };
    let losses = [RingLoss { cpu: None, thread: None, window, records: 0 }];
    let (kept, ..) = switch_in(&losses, &statements, true, Some(&[(10, 100)]));
    assert_eq!(kept.switches[0].end, ended(50, Trust::Lossy));
}

#[test]
fn a_thread_that_ran_unseen_does_not_wait_throughout() {
    let statements =
        [said(12, 1, 7, found(Edge::Begin, 5, 3)), said(98, 1, 7, found(Edge::End, 6, 4))];
    let (kept, inconsistencies, _) = switch_in(&[], &statements, true, Some(&[(10, 100)]));
    let [first, second] = kept.switches[..] else { panic!("{:?}", kept.switches) };
    assert_eq!((first.out, first.end, first.stack), (TimestampNs(10), WaitEnd::Missing, stack(3)));
    assert_eq!((second.out, second.stack), (TimestampNs(98), stack(4)));
    assert!(!first.lasts_throughout() && !second.lasts_throughout());
    assert_eq!(inconsistencies.missing_ins, 1);
}

/// A recorder that is killed says nothing of the end, and one may be left out at the beginning.
#[test]
fn a_thread_that_is_blocked_at_one_end_is_open() {
    for (time, edge) in [(12, Edge::Begin), (98, Edge::End)] {
        let statements = [said(time, 1, 7, found(edge, 5, 3))];
        let (kept, ..) = switch_in(&[], &statements, true, Some(&[(10, 100)]));
        let [wait] = kept.switches[..] else { panic!("{:?}", kept.switches) };
        assert_eq!((wait.out, wait.stack), (TimestampNs(10), stack(3)));
        assert_eq!(wait.end, WaitEnd::Open { until: TimestampNs(100), trust: Trust::Whole });
        assert!(wait.found_blocked.is_some() && !wait.lasts_throughout());
    }
}

/// A switch of its own comes before the reading of its stack.
#[test]
fn a_thread_that_left_its_cpu_while_others_were_read_has_its_own_switch() {
    let statements = [
        said(11, 1, 7, out(RECORD, WaitKind::Sync)),
        said(12, 1, 7, found(Edge::Begin, 5, 3)),
        said(50, 1, 7, SwitchEvent::In { source: RECORD }),
    ];
    let (kept, inconsistencies, _) = switch_in(&[], &statements, true, Some(&[(10, 100)]));
    let [wait] = kept.switches[..] else { panic!("{:?}", kept.switches) };
    assert_eq!((wait.out, wait.found_blocked, wait.stack), (TimestampNs(11), None, stack(3)));
    assert_eq!(inconsistencies, Inconsistencies::default());
}

#[test]
fn threads_exist_from_their_fork_to_their_last_switch() {
    let fork = |tid| SwitchEvent::Fork { pid: Pid(tid), tid: Tid(tid) };
    let sync = out(RECORD, WaitKind::Sync);
    let events = [
        said(5, 0, 1, fork(9)),
        said(12, 0, 7, SwitchEvent::In { source: RECORD }),
        said(20, 0, 7, fork(8)),
        said(25, 0, 7, sync),
        said(26, 0, 8, SwitchEvent::In { source: RECORD }),
        said(30, 0, 8, SwitchEvent::Exit),
        said(31, 0, 8, sync),
        said(45, 0, 1, fork(10)),
        said(46, 0, 7, SwitchEvent::Exit),
        said(55, 0, 9, SwitchEvent::In { source: RECORD }),
        said(60, 0, 9, sync),
        said(61, 0, 10, SwitchEvent::In { source: RECORD }),
    ];
    let (mut kept, _, totals) = switch_in(&[], &events, true, Some(&[(10, 40), (50, 70)]));
    kept.lives.sort_unstable();
    // The exit of thread 7 lies between the spans.
    assert_eq!(kept.died, [(7, 46)]);
    let lives =
        [(7, None, None), (8, Some(20), Some(31)), (9, Some(5), None), (10, Some(45), None)];
    assert_eq!(kept.lives, lives);
    assert_eq!(totals.recorded_ns(), 50);
}

fn account(irq_ns: u64, softirq_ns: u64, stolen_ns: u64) -> SwitchEvent {
    let interrupts = Some(InterruptTimes { irq_ns, softirq_ns });
    SwitchEvent::Account(CpuAccount { interrupts, stolen_ns: Some(stolen_ns) })
}

fn parts(irq_ns: u64, softirq_ns: u64, stolen_ns: u64) -> CpuParts {
    CpuParts { irq_ns, softirq_ns, stolen_ns }
}

#[test]
fn accounts_belong_to_the_run_that_they_end() {
    let events = [
        // The thread has run since recording began.
        said(20, 1, 7, account(0, 0, 0)),
        said(100, 1, 7, account(5, 6, 7)),
        said(100, 1, 7, out(RECORD, WaitKind::Sync)),
        // An idle CPU, and a thread whose switch-in was seen late: no more than its run.
        said(150, 1, 0, account(1, 2, 3)),
        said(150, 1, 8, SwitchEvent::In { source: RECORD }),
        said(190, 1, 8, account(30, 30, 10)),
        said(190, 1, 8, out(RECORD, WaitKind::Preempt)),
        // It waits: nothing was the thread's.
        said(195, 1, 8, account(9, 9, 9)),
        // Twice in a run that recording ends.
        said(200, 0, 9, SwitchEvent::In { source: RECORD }),
        said(210, 0, 9, account(1, 0, 0)),
        said(220, 0, 9, account(1, 4, 0)),
    ];
    let (kept, inconsistencies, _) = switch_in(&[], &events, true, Some(&[(10, 230)]));
    assert_eq!(inconsistencies, Inconsistencies::default());
    let wanted =
        [(7, parts(5, 6, 7)), (-2, parts(1, 2, 3)), (8, parts(30, 0, 10)), (9, parts(2, 4, 0))];
    assert_eq!(kept.parts, wanted);
    let runs: Vec<_> = kept.runs.iter().map(|run| (run.0, run.2, run.3)).collect();
    assert_eq!(runs, [(7, 10, 100), (8, 150, 190), (9, 200, 230)]);
}

/// The switches from thread 7 to the idle thread and back are lost: the time between is in the lossy run.
#[test]
fn accounts_of_the_idle_thread_within_a_lossy_run_count_once() {
    let window = LossWindow { from: TimestampNs(20), to: TimestampNs(30) };
    let losses = [RingLoss { cpu: Some(CpuId(1)), thread: None, window, records: 2 }];
    let events = [
        said(10, 1, 7, SwitchEvent::In { source: RECORD }),
        said(25, 1, 0, account(1, 2, 3)),
        said(40, 1, 7, out(RECORD, WaitKind::Sync)),
        said(60, 1, 0, account(4, 5, 0)),
        said(60, 1, 8, SwitchEvent::In { source: RECORD }),
        said(70, 1, 8, out(RECORD, WaitKind::Sync)),
    ];
    let (kept, _) = switch_with(&losses, &events, true);
    assert_eq!(kept.parts, [(-2, parts(4, 5, 0))]);
    let runs: Vec<_> = kept.runs.iter().map(|run| (run.0, run.2, run.3, run.5)).collect();
    assert_eq!(runs, [(7, 10, 40, Trust::Lossy), (8, 60, 70, Trust::Whole)]);
}

#[test]
fn the_account_of_a_long_run_is_that_of_all_its_parts() {
    let mut events = vec![said(0, 1, 7, SwitchEvent::In { source: RECORD })];
    let samples = 1..=MAX_RUN_SAMPLES as u64;
    events.extend(samples.map(|at| said(at, 1, 7, SwitchEvent::Sample(stack(1)))));
    let end = MAX_RUN_SAMPLES as u64 + 1;
    events.push(said(end, 1, 7, account(0, 500, 0)));
    events.push(said(end, 1, 7, out(RECORD, WaitKind::Sync)));
    let (kept, _) = intervals_of(&[], &events);
    assert_eq!(kept.runs.len(), 2);
    assert_eq!(kept.parts, [(7, parts(0, 500, 0))]);
}

fn inet(own: u64, peer: u64, flags: u64) -> Vec<u8> {
    let loopback = 0x0100_007f;
    let words = [5 | flags << 8 | 2 << 32 | 6 << 48, 9, own | peer << 16, loopback, 0, loopback, 0];
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The thread that comes is named in front of the switch of the one that goes.
#[test]
fn a_wait_for_several_files_has_the_one_that_ended_it() {
    let ready = SwitchEvent::Ready(ObjectKey::Described(4));
    let of_two = |object| SwitchEvent::SwitchStack {
        stack: stack(2),
        state: Some(TaskState(1)),
        object: ObjectKey::Described(object),
    };
    let (kept, inconsistencies) = intervals_of(
        &[],
        &[
            said(10, 0, 7, SwitchEvent::In { source: RECORD }),
            said(20, 0, 7, of_two(1)),
            said(20, 0, 7, out(RECORD, WaitKind::Sync)),
            said(20, 0, 8, SwitchEvent::In { source: RECORD }),
            said(40, 0, 7, ready),
            said(40, 0, 8, of_two(2)),
            said(40, 0, 8, out(RECORD, WaitKind::Preempt)),
            said(40, 0, 7, SwitchEvent::In { source: RECORD }),
            // A thread that is taken off waits for a CPU alone.
            said(50, 0, 8, ready),
            said(50, 0, 7, out(RECORD, WaitKind::Sync)),
            said(50, 0, 8, SwitchEvent::In { source: RECORD }),
        ],
    );
    let objects: Vec<_> =
        kept.switches.iter().map(|switch| (switch.task.tid.0, switch.object)).collect();
    let [first, second] = [4, 2].map(ObjectKey::Described);
    assert_eq!(objects[..2], [(7, first), (8, second)]);
    assert_eq!(inconsistencies, Inconsistencies::default());
    assert_eq!(kept.switches[0].end, ended(40, Trust::Whole));
}

#[test]
fn who_sends_what_is_waited_for_ends_the_wait() {
    let objects = ObjectTable::default();
    let [sender, waiter, listener, other] = [(1, 2, 0), (2, 1, 0), (2, 0, 1), (1, 3, 0)]
        .map(|(own, peer, flags)| ObjectKey::Described(objects.intern(&inet(own, peer, flags))));
    let from_interrupt = |object, ready: Option<ObjectKey>, sends_to| {
        let losses = Losses::new(&[]);
        let spans = RecordedSpans::new(None);
        let mut intervals = Intervals::new(&losses, RecordedCpus::Any, true, spans);
        intervals = intervals.with_objects(&objects);
        let (stack, state) = (stack(2), Some(TaskState(1)));
        let wake = Wake { wakee: Tid(7), stack, from_interrupt: true, sends_to, is_new: false };
        let mut kept = Kept::default();
        let mut take =
            |time, cpu, tid, event| intervals.take(&said(time, cpu, tid, event), &mut kept);
        take(10, 0, 7, SwitchEvent::In { source: RECORD });
        take(20, 0, 7, SwitchEvent::SwitchStack { stack, state, object });
        take(20, 0, 7, out(RECORD, WaitKind::Sync));
        take(30, 1, 9, SwitchEvent::Wake(wake));
        ready.into_iter().for_each(|object| take(40, 0, 7, SwitchEvent::Ready(object)));
        take(40, 0, 7, SwitchEvent::In { source: RECORD });
        kept.switches[0].woken.expect("woken").from_interrupt
    };
    assert!(!from_interrupt(waiter, None, sender));
    assert!(!from_interrupt(listener, None, sender));
    assert!(!from_interrupt(ObjectKey::Described(99), Some(waiter), sender));
    assert!(from_interrupt(waiter, None, other));
    assert!(from_interrupt(waiter, None, ObjectKey::None));
    assert!(from_interrupt(ObjectKey::Described(99), Some(other), sender));
    assert!(from_interrupt(sender, None, sender));
}
