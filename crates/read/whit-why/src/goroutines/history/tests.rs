//! Histories of goroutines on threads that are made here.

use super::*;
use crate::path::{Activity, own_time};
use whit_types::CpuId;

const NO_WORK: Option<u32> = Some(99);
const LOST: u64 = 1_000_000;

fn at(time: u64) -> TimestampNs {
    TimestampNs(time)
}

fn goroutine(number: u64) -> Goroutine {
    Goroutine { address: 0xc000 + number, number: Some(number) }
}

fn id(number: u64) -> GoroutineId {
    GoroutineId { process: Pid(1), goroutine: goroutine(number) }
}

fn step(time: u64, thread: u32, change: Change, number: u64) -> Step {
    let (class, waker) = (WaitClass::Lock, GoroutineWaker::Scheduler);
    Step { time: at(time), thread, change, id: id(number), class, callsite: Some(7), waker }
}

fn run(from: u64, to: u64) -> Run {
    Run { from: at(from), to: at(to), cpu: Some(CpuId(0)), is_lossy: false }
}

fn wait(from: u64, to: u64, callsite: Option<u32>) -> Wait {
    Wait {
        from: at(from),
        to: at(to),
        kind: WaitKind::Sync,
        class: WaitClass::Disk,
        site: WaitSite { callsite, object: None },
        wake_up: Some(WakeUp { at: at(to - 1), waker: Waker::Interrupt }),
        is_lossy: false,
        is_open: false,
        is_of_goroutine: false,
    }
}

/// Two threads, and the first goroutine has the number 2.
fn made(threads: [ThreadHistory; 2], steps: &[Step], last: u64) -> (GoTasks, Vec<ThreadHistory>) {
    let is_lossy = |_, to: TimestampNs| to.0 > LOST;
    let mut is_without_work = |callsite| callsite == NO_WORK;
    let mut maker = Maker::new((&threads, 2), &mut is_without_work, &is_lossy);
    steps.iter().for_each(|step| maker.add(*step));
    let numbers = maker.numbers.clone();
    let (tasks, histories) = maker.finish(at(last));
    (GoTasks { first: 2, tasks, numbers }, [&threads[..], &histories].concat())
}

/// The own time of a goroutine as words.
fn time(
    made: &(GoTasks, Vec<ThreadHistory>),
    number: u64,
    from: u64,
    to: u64,
) -> Vec<(String, u64)> {
    let number = made.0.number(id(number)).expect("a goroutine");
    let pieces = own_time(&made.1, number, at(from), at(to));
    let words = pieces.iter().map(|piece| {
        let word = match piece.activity {
            Activity::Running => "on CPU".to_owned(),
            Activity::Runnable => "runnable".to_owned(),
            Activity::Waiting(class) => class.name().to_owned(),
            Activity::StillWaiting(class) => format!("still {}", class.name()),
            Activity::RunQueue(_) => "run queue".to_owned(),
            other => format!("{other:?}"),
        };
        (word, piece.duration_ns())
    });
    words.collect()
}

fn words(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(word, ns)| ((*word).to_owned(), *ns)).collect()
}

fn history(runs: &[(u64, u64)], waits: &[Wait]) -> ThreadHistory {
    let mut history = ThreadHistory::default();
    runs.iter().for_each(|(from, to)| history.add_run(run(*from, *to)));
    waits.iter().for_each(|wait| history.add_wait(*wait));
    history
}

#[test]
fn a_goroutine_has_the_time_of_the_threads_that_run_it() {
    use Change::{Park, Ready, Run};
    // The first thread reads a file from 30 to 40, and has its CPU at 41.
    let first = history(&[(0, 30), (41, 60), (60, 100)], &[wait(30, 41, Some(1))]);
    let second = history(&[(0, 100)], &[]);
    let steps = [
        step(10, 0, Run, 5),
        step(12, 1, Run, 6),
        step(50, 0, Park, 5),
        // The goroutine 6 unlocks.
        Step { waker: GoroutineWaker::Goroutine(goroutine(6)), ..step(70, 1, Ready, 5) },
        step(75, 1, Run, 5),
        step(90, 1, Park, 5),
    ];
    let made = made([first, second], &steps, 100);
    let wanted = words(&[
        ("on CPU", 20),
        ("disk", 10),
        ("run queue", 1),
        ("on CPU", 9),
        ("lock", 20),
        ("runnable", 5),
        ("on CPU", 15),
        ("still lock", 10),
    ]);
    assert_eq!(time(&made, 5, 10, 100), wanted);
    // It ran on two threads, and 6 was taken off for it.
    let number = made.0.number(id(5)).unwrap();
    let on: Vec<_> = made.0.on_threads(number, at(20), at(80)).collect();
    let on_thread = |from, to, thread| OnThread { from: at(from), to: at(to), thread };
    assert_eq!(on, [on_thread(20, 50, 0), on_thread(75, 80, 1)]);
    assert_eq!(made.0.on_threads(1, at(20), at(80)).collect::<Vec<_>>(), [on_thread(20, 80, 1)]);
    assert_eq!(time(&made, 6, 12, 75), words(&[("on CPU", 63)]));
}

#[test]
fn the_path_leads_from_a_goroutine_to_the_one_that_made_it_ready() {
    use Change::{Park, Ready, Run};
    let threads = [history(&[(0, 100)], &[]), history(&[(0, 100)], &[])];
    let ready = step(70, 1, Ready, 5);
    let steps = [
        step(10, 0, Run, 5),
        step(12, 1, Run, 6),
        step(50, 0, Park, 5),
        Step { waker: GoroutineWaker::Goroutine(goroutine(6)), ..ready },
        step(75, 0, Run, 5),
        step(80, 0, Park, 5),
        // A goroutine that no thread was seen to run: its thread stands for it.
        Step { waker: GoroutineWaker::Goroutine(goroutine(9)), time: at(85), ..ready },
        step(90, 0, Run, 5),
        step(92, 0, Park, 5),
        // A timer.
        step(95, 0, Ready, 5),
        step(96, 0, Run, 5),
    ];
    let made = made(threads, &steps, 100);
    let (five, six) = (made.0.number(id(5)).unwrap(), made.0.number(id(6)).unwrap());
    let path = crate::critical_path(&made.1, five, at(10), at(100));
    let found: Vec<_> = path
        .pieces
        .iter()
        .map(|piece| (piece.from.0, piece.to.0, piece.thread, piece.activity))
        .collect();
    let wanted = [
        (10, 50, five, Activity::Running),
        (50, 70, six, Activity::Running),
        (70, 75, five, Activity::Runnable),
        (75, 80, five, Activity::Running),
        (80, 85, 1, Activity::Running),
        (85, 90, five, Activity::Runnable),
        (90, 92, five, Activity::Running),
        (92, 95, five, Activity::Waiting(WaitClass::Lock)),
        (95, 96, five, Activity::Runnable),
        (96, 100, five, Activity::Running),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn before_its_creation_a_goroutine_is_its_creator() {
    use Change::{Create, Park, Ready, Run};
    let threads = [history(&[(0, 100)], &[]), history(&[(0, 100)], &[])];
    let by = |number| GoroutineWaker::Goroutine(goroutine(number));
    let steps = [
        step(10, 0, Run, 5),
        step(20, 1, Run, 7),
        step(30, 0, Park, 5),
        Step { waker: by(7), ..step(40, 1, Create, 6) },
        step(45, 0, Run, 6),
        Step { waker: by(6), ..step(60, 0, Ready, 5) },
        step(70, 1, Run, 5),
    ];
    let made = made(threads, &steps, 100);
    let [five, six, seven] = [5, 6, 7].map(|number| made.0.number(id(number)).unwrap());
    let path = crate::critical_path(&made.1, five, at(10), at(70));
    let found = path.pieces.iter().map(|it| (it.from.0, it.to.0, it.thread, it.activity));
    let wanted = [
        (10, 30, five, Activity::Running),
        (30, 40, seven, Activity::Running),
        (40, 45, six, Activity::Runnable),
        (45, 60, six, Activity::Running),
        (60, 70, five, Activity::Runnable),
    ];
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_goroutine_without_a_thread_is_runnable() {
    use Change::{Park, Run};
    // The first thread comes back from a system call, and waits for work then.
    let waits = [wait(20, 30, Some(1)), wait(35, 40, NO_WORK), wait(42, 60, NO_WORK)];
    let first = history(&[(0, 20), (30, 35), (40, 42), (60, 100)], &waits);
    let steps = [
        step(10, 0, Run, 5),
        step(50, 1, Run, 5),
        // Taken off by the scheduler for another goroutine.
        step(70, 1, Run, 6),
        step(80, 0, Run, 5),
        step(90, 0, Park, 5),
    ];
    let made = made([first, history(&[(0, 100)], &[])], &steps, 100);
    let wanted = words(&[
        ("on CPU", 10),
        ("disk", 9),
        ("run queue", 1),
        ("on CPU", 5),
        ("runnable", 15),
        ("on CPU", 20),
        ("runnable", 10),
        ("on CPU", 10),
        ("still lock", 10),
    ]);
    assert_eq!(time(&made, 5, 10, 100), wanted);
}

#[test]
fn a_thread_runs_one_goroutine_at_a_time() {
    use Change::{Park, Run};
    // No record says that the thread runs 6 in place of 5.
    let steps = [step(10, 0, Run, 5), step(20, 0, Park, 6), step(30, 1, Run, 5)];
    let made = made([history(&[(0, 100)], &[]), history(&[(0, 100)], &[])], &steps, 100);
    let wanted = words(&[("on CPU", 10), ("runnable", 10), ("on CPU", 70)]);
    assert_eq!(time(&made, 5, 10, 100), wanted);
}

#[test]
fn losses_make_a_wait_unknown() {
    use Change::{Park, Run};
    let steps = [step(10, 0, Run, 5), step(20, 0, Park, 5), step(LOST + 1, 0, Run, 5)];
    let made = made([history(&[(0, 100)], &[]), ThreadHistory::default()], &steps, LOST + 1);
    let found = time(&made, 5, 15, LOST);
    assert_eq!(found[0], ("on CPU".to_owned(), 5));
    assert!(found[1].0.contains("MissingSwitches"), "{found:?}");
}
