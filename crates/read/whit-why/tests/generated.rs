//! Paths of generated programs, against the definition: a wait is what the thread that ended it did meanwhile.

use proptest::prelude::*;
use whit_profile::switches::WaitClass;
use whit_profile::tables::WaitKind;
use whit_types::TimestampNs;
use whit_why::{
    Activity, Path, Piece, Run, ThreadHistory, Unknown, Wait, WaitSite, WakeUp, Waker,
    critical_path,
};

/// The state of a thread in one step of time.
#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Unborn,
    Runs,
    /// Runnable, without a CPU.
    Queues,
    /// Waits, for an interrupt or for any thread.
    Waits {
        for_interrupt: bool,
    },
}

/// A machine of few CPUs, whose threads do what random numbers say. It knows at each step what each thread did.
struct Machine {
    steps: Vec<Vec<State>>,
    histories: Vec<ThreadHistory>,
}

/// A wait that has not ended.
#[derive(Clone, Copy)]
struct Open {
    from: u64,
    kind: WaitKind,
    wake_up: Option<WakeUp>,
}

const CPUS: usize = 2;

fn wait(open: Open, to: u64, is_open: bool) -> Wait {
    Wait {
        from: TimestampNs(open.from),
        to: TimestampNs(to),
        kind: open.kind,
        class: WaitClass::Lock,
        site: WaitSite::default(),
        wake_up: open.wake_up,
        is_lossy: false,
        is_open,
        is_of_goroutine: false,
    }
}

/// Runs threads for as many steps as there are numbers. The first thread is there from the beginning.
fn simulate(threads: usize, choices: &[u8]) -> Machine {
    let mut states = vec![State::Unborn; threads];
    let mut since = vec![0; threads];
    let mut open: Vec<Option<Open>> = vec![None; threads];
    let mut machine =
        Machine { steps: Vec::new(), histories: vec![ThreadHistory::default(); threads] };
    states[0] = State::Runs;
    for (now, choice) in (0u64..).zip(choices) {
        let at = TimestampNs(now);
        let of = usize::from(*choice >> 3) % threads;
        let running: Vec<_> = (0..threads).filter(|it| states[*it] == State::Runs).collect();
        let actor = running.get(of % running.len().max(1)).copied();
        let leave = |machine: &mut Machine, thread: usize, since: u64| {
            let run = Run { from: TimestampNs(since), to: at, cpu: None, is_lossy: false };
            machine.histories[thread].add_run(run);
        };
        match (choice & 7, actor) {
            // The actor waits.
            (0 | 1, Some(actor)) if since[actor] < now => {
                leave(&mut machine, actor, since[actor]);
                let for_interrupt = choice & 1 == 1;
                states[actor] = State::Waits { for_interrupt };
                open[actor] = Some(Open { from: now, kind: WaitKind::Sync, wake_up: None });
            }
            // It is taken off.
            (2, Some(actor)) if since[actor] < now => {
                leave(&mut machine, actor, since[actor]);
                states[actor] = State::Queues;
                open[actor] = Some(Open { from: now, kind: WaitKind::Preempt, wake_up: None });
            }
            // It wakes another one.
            (3 | 4, Some(actor)) if since[actor] < now => {
                let wakee = (0..threads).map(|it| (it + of) % threads);
                let sleeps = |it: &usize| states[*it] == State::Waits { for_interrupt: false };
                if let Some(wakee) = wakee.filter(|it| *it != actor).find(sleeps) {
                    let wake_up = WakeUp { at, waker: Waker::Thread(actor as u32) };
                    open[wakee].as_mut().unwrap().wake_up = Some(wake_up);
                    states[wakee] = State::Queues;
                }
            }
            // It makes one.
            (5, Some(actor)) if since[actor] < now => {
                if let Some(new) = (0..threads).find(|it| states[*it] == State::Unborn) {
                    let wake_up = Some(WakeUp { at, waker: Waker::Thread(actor as u32) });
                    open[new] = Some(Open { from: now, kind: WaitKind::New, wake_up });
                    states[new] = State::Queues;
                }
            }
            // An interrupt.
            (6, _) => {
                let wakee = (0..threads).map(|it| (it + of) % threads);
                let sleeps = |it: &usize| states[*it] == State::Waits { for_interrupt: true };
                if let Some(wakee) = wakee.into_iter().find(sleeps) {
                    let wake_up = WakeUp { at, waker: Waker::Interrupt };
                    open[wakee].as_mut().unwrap().wake_up = Some(wake_up);
                    states[wakee] = State::Queues;
                }
            }
            _ => {}
        }
        // Free CPUs take runnable threads; one that became runnable in this step comes later.
        let mut free = CPUS - states.iter().filter(|state| **state == State::Runs).count();
        for thread in 0..threads {
            let waited = open[thread].filter(|open| {
                let runnable = open.wake_up.map_or(open.from, |wake_up| wake_up.at.0);
                states[thread] == State::Queues && runnable < now
            });
            if let (Some(wait_so_far), true) = (waited, free > 0) {
                machine.histories[thread].add_wait(wait(wait_so_far, now, false));
                (states[thread], since[thread], open[thread]) = (State::Runs, now, None);
                free -= 1;
            }
        }
        machine.steps.push(states.clone());
    }
    let end = choices.len() as u64;
    for thread in 0..threads {
        match (states[thread], open[thread]) {
            (State::Runs, _) => {
                let run = Run {
                    from: TimestampNs(since[thread]),
                    to: TimestampNs(end),
                    cpu: None,
                    is_lossy: false,
                };
                machine.histories[thread].add_run(run);
            }
            (_, Some(open)) => machine.histories[thread].add_wait(wait(open, end, true)),
            _ => {}
        }
    }
    machine
}

/// A moment of the path: a thread, its activity, and the threads that wait for it, outermost first.
type Step = (u32, Activity, Vec<u32>);

/// The definition, step by step and without a walk back.
struct Definition<'a> {
    machine: &'a Machine,
    waits: Vec<&'a [Wait]>,
}

impl Definition<'_> {
    /// Adds a step for each moment; `waiting` are the threads whose waits are explained, outermost first.
    fn explain(
        &self,
        thread: usize,
        from: u64,
        to: u64,
        waiting: &mut Vec<u32>,
        path: &mut Vec<Step>,
    ) {
        let mut step = from;
        while step < to {
            let state = self.machine.steps[step as usize][thread];
            let wait = self.waits[thread].iter().find(|it| it.from.0 <= step && step < it.to.0);
            let (activity, until) = match (state, wait) {
                (State::Runs, _) => (Activity::Running, step + 1),
                (State::Queues, Some(wait)) => (Activity::RunQueue(wait.kind), step + 1),
                (State::Unborn, _) => {
                    // Before, it is its creator.
                    let creation = self.waits[thread].first().expect("a creation");
                    let until = creation.from.0.min(to);
                    let creator =
                        creation.wake_up.and_then(|it| it.waker.thread()).expect("a creator");
                    waiting.push(thread as u32);
                    self.explain(creator as usize, step, until, waiting, path);
                    waiting.pop();
                    step = until;
                    continue;
                }
                (_, Some(Wait { wake_up: Some(wake_up), .. })) => {
                    let until = wake_up.at.0.min(to);
                    match wake_up.waker.thread() {
                        Some(waker) => {
                            waiting.push(thread as u32);
                            self.explain(waker as usize, step, until, waiting, path);
                            waiting.pop();
                            step = until;
                            continue;
                        }
                        None => (Activity::Waiting(WaitClass::Lock), step + 1),
                    }
                }
                (_, _) => (Activity::StillWaiting(WaitClass::Lock), step + 1),
            };
            path.push((thread as u32, activity, waiting.clone()));
            step = until;
        }
    }
}

fn steps_of(path: &Path) -> Vec<Step> {
    let one = |piece: &Piece| {
        let mut waiting: Vec<_> = path.hand_overs_of(piece).map(|wait| wait.thread).collect();
        waiting.reverse();
        std::iter::repeat_n((piece.thread, piece.activity, waiting), piece.duration_ns() as usize)
    };
    path.pieces.iter().flat_map(one).collect()
}

fn assert_contiguous(pieces: &[Piece], from: u64, to: u64) {
    let mut at = from;
    for piece in pieces {
        assert_eq!(piece.from.0, at, "{pieces:?}");
        assert!(piece.to > piece.from, "{pieces:?}");
        at = piece.to.0;
    }
    assert_eq!(at, to, "{pieces:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, ..ProptestConfig::default() })]

    #[test]
    fn paths_are_those_of_the_definition(
        threads in 1usize..7,
        choices in prop::collection::vec(any::<u8>(), 1..200),
        part in (0.0f64..1.0, 0.0f64..1.0),
    ) {
        let machine = simulate(threads, &choices);
        let waits = machine.histories.iter().map(ThreadHistory::waits);
        let definition = Definition { machine: &machine, waits: waits.collect() };
        for thread in 0..threads {
            let Some((first, last)) = machine.histories[thread].span() else { continue };
            let at = |share: f64| first.0 + (share * last.since(first) as f64) as u64;
            let (from, to) = (at(part.0.min(part.1)), at(part.0.max(part.1)));
            for (from, to) in [(first.0, last.0), (from, to)] {
                let path = critical_path(&machine.histories, thread as u32, TimestampNs(from), TimestampNs(to));
                assert_contiguous(&path.pieces, from, to);
                let mut expected = Vec::new();
                definition.explain(thread, from, to, &mut Vec::new(), &mut expected);
                prop_assert_eq!(steps_of(&path), expected);
            }
        }
    }

    /// Intervals of a corrupt recording overlap, name threads that are not there, and are woken before they wait.
    #[test]
    fn paths_of_any_intervals_are_whole(
        intervals in prop::collection::vec(
            (0u32..4, 0u64..60, 0u64..60, 0u8..4, prop::option::of((0u64..80, prop::option::of(0u32..6))), any::<(bool, bool)>()),
            0..60,
        ),
        (from, length) in (0u64..40, 1u64..60),
    ) {
        let mut histories = vec![ThreadHistory::default(); 4];
        let mut sorted = intervals;
        sorted.sort_by_key(|it| it.1);
        for (thread, begin, length, kind, wake_up, (is_lossy, is_open)) in sorted {
            let (begin, to) = (TimestampNs(begin), TimestampNs(begin + length));
            let history = &mut histories[thread as usize];
            let kind = match kind {
                0 => {
                    history.add_run(Run { from: begin, to, cpu: None, is_lossy });
                    continue;
                }
                1 => WaitKind::Preempt,
                2 => WaitKind::New,
                _ => WaitKind::Sync,
            };
            let wake_up = wake_up.map(|(at, waker)| WakeUp {
                at: TimestampNs(at),
                waker: match waker {
                    Some(5) => Waker::Interrupt,
                    waker => waker.map_or(Waker::Unknown, Waker::Thread),
                },
            });
            let class = WaitClass::Lock;
            history.add_wait(Wait { from: begin, to, kind, class, site: WaitSite::default(), wake_up, is_lossy, is_open, is_of_goroutine: false });
        }
        let to = from + length;
        for thread in 0..5 {
            let path = critical_path(&histories, thread, TimestampNs(from), TimestampNs(to));
            assert_contiguous(&path.pieces, from, to);
        }
    }
}

/// A lost wake-up makes its piece unknown, and no other.
#[test]
fn a_missing_wake_up_is_unknown() {
    let mut history = ThreadHistory::default();
    let run =
        |from, to| Run { from: TimestampNs(from), to: TimestampNs(to), cpu: None, is_lossy: false };
    history.add_run(run(0, 10));
    history.add_wait(wait(Open { from: 10, kind: WaitKind::Sync, wake_up: None }, 30, false));
    history.add_run(run(30, 40));
    let path = |from, to| {
        critical_path(std::slice::from_ref(&history), 0, TimestampNs(from), TimestampNs(to)).pieces
    };
    let activities: Vec<_> =
        path(0, 40).iter().map(|piece| (piece.from.0, piece.to.0, piece.activity)).collect();
    let unknown = Activity::Unknown(Unknown::NoWakeUp);
    assert_eq!(
        activities,
        [(0, 10, Activity::Running), (10, 30, unknown), (30, 40, Activity::Running)]
    );
    // Behind the last record.
    let last = path(35, 50).last().copied().unwrap();
    assert_eq!((last.from.0, last.activity), (40, Activity::Unknown(Unknown::NotRecorded)));
}

/// A waker is no interrupt because no record names it, or because nothing is recorded of it.
#[test]
fn wakers_that_are_not_recorded_are_unknown() {
    let activity = |waker| {
        let mut history = ThreadHistory::default();
        let wake_up = Some(WakeUp { at: TimestampNs(20), waker });
        history.add_wait(wait(Open { from: 0, kind: WaitKind::Sync, wake_up }, 20, false));
        critical_path(&[history], 0, TimestampNs(0), TimestampNs(20)).pieces[0].activity
    };
    let unknown = Activity::Unknown(Unknown::WakerNotRecorded);
    assert_eq!(activity(Waker::Interrupt), Activity::Waiting(WaitClass::Lock));
    assert_eq!(activity(Waker::Unknown), unknown);
    assert_eq!(activity(Waker::Thread(7)), unknown);
}
