//! `sched`, `thread_state` and `wait`: what threads did over time.

use crate::column::columns;
use crate::cursor::{Context, Cursor, Wanted};
use crate::database::{Database, TableError};
use crate::stream::Stream;
use crate::table::{Recordings, Size, Table};
use crate::value::Value;
use whit_profile::switches::NamedObject;
use whit_profile::tables::{IntervalRow, RunRow, TableSource, TaskState, Trust, WaitKind, WaitRow};
use whit_types::{CpuId, Pid, Tid};

/// A part of a thread's time in one state.
pub(crate) struct StateRow {
    task: (Pid, Tid),
    start: u64,
    duration_ns: Option<u64>,
    cpu: Option<CpuId>,
    state: Value,
    waker: Option<(Pid, Tid)>,
    certain: bool,
}

pub(crate) static SCHED: Table<RunRow> = Table {
    name: "sched",
    meaning: "The stretches of time that threads spent on CPUs, where context switches were recorded",
    size: Size::Streamed,
    open: open::<RunRow>,
    columns: columns![RunRow;
        ("ts", Integer, Time, "Begin, in nanoseconds by the clock of the recording", |_, row| Value::of(row.start.0)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("dur", Integer, Plain, "Length in nanoseconds", |_, row| Value::of(row.duration_ns)),
        ("cpu", Integer, Plain, "CPU", |_, row| cpu(row.cpu)),
        ("utid", Integer, Thread, "`thread.utid`", |context, row| thread(context, row.task)),
        ("end_state", Text, Plain, "State in which the thread left the CPU, in the kernel's letters (`S`, `D`, `R+`); null where it is not recorded",
            |_, row| Value::or_null(row.end, end_state)),
        ("certain", Integer, Plain, "1 where no loss may hide a switch", |_, row| Value::flag(row.trust == Trust::Whole)),
        ("is_open", Integer, Plain, "1 where the begin or the end is not in the recording", |_, row| Value::flag(row.is_open)),
        ("irq_dur", Integer, Plain, "The part of `dur` in handlers of interrupts; null where it was not recorded",
            |_, row| Value::or_null(row.has_interrupts.then_some(row.parts.irq_ns), Value::of)),
        ("softirq_dur", Integer, Plain, "The part of `dur` in softirqs, without interrupts within these; null where it was not recorded",
            |_, row| Value::or_null(row.has_interrupts.then_some(row.parts.softirq_ns), Value::of)),
        ("stolen_dur", Integer, Plain, "The part of `dur` that the hypervisor stole; null where it was not recorded",
            |_, row| Value::or_null(row.has_stolen.then_some(row.parts.stolen_ns), Value::of)),
    ],
};

pub(crate) static THREAD_STATE: Table<StateRow> = Table {
    name: "thread_state",
    meaning: "The states of threads over time: running, runnable and blocked, one row behind the other",
    size: Size::Streamed,
    open: open::<StateRow>,
    columns: columns![StateRow;
        ("ts", Integer, Time, "Begin, in nanoseconds by the clock of the recording", |_, row| Value::of(row.start)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("dur", Integer, Plain, "Length in nanoseconds; null where the end is missing", |_, row| Value::or_null(row.duration_ns, Value::of)),
        ("cpu", Integer, Plain, "CPU of a running thread", |_, row| cpu(row.cpu)),
        ("utid", Integer, Thread, "`thread.utid`", |context, row| thread(context, row.task)),
        ("state", Text, Plain, "`Running`; `R` (runnable) and `R+` (preempted); or the state of a blocked thread in the kernel's letters, `S` also where it is not recorded",
            |_, row| row.state.clone()),
        ("waker_utid", Integer, Plain, "`thread.utid` of the thread that made this one runnable", |context, row| waker(context, row.waker)),
        ("certain", Integer, Plain, "1 where no loss may hide a switch, and begin and end are in the recording", |_, row| Value::flag(row.certain)),
    ],
};

pub(crate) static WAIT: Table<WaitRow> = Table {
    name: "wait",
    meaning: "The waits of threads: from each switch-out, and from the making of a thread, to the next switch-in",
    size: Size::Streamed,
    open: open::<WaitRow>,
    columns: columns![WaitRow;
        ("ts", Integer, Time, "Begin, in nanoseconds by the clock of the recording", |_, row| Value::of(row.start.0)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("dur", Integer, Plain, "Length in nanoseconds; null where the end is missing", |_, row| Value::or_null(row.duration_ns, Value::of)),
        ("utid", Integer, Thread, "`thread.utid`", |context, row| thread(context, row.task)),
        ("cpu", Integer, Plain, "CPU that the thread left; null for a new thread", |_, row| cpu(row.cpu)),
        ("kind", Text, Plain, "`sync` (the thread blocked), `preempt` (it was taken off) or `new` (it was made)", |_, row| Value::Name(kind_name(row.kind))),
        ("class", Text, Stack, "Class of the wait by its call chain and object (`lock`, `disk`, `network`, `pipe`, `page-fault`, `sleep`, `poll`, `idle-loop`, `peer`, `queue`, `child`, `join`, `other`, `unknown`); `preempted`, `throttled` (by the quota of its cgroup) and `new` by its kind",
            |context, row| Value::Name(context.source.wait_class(row).name())),
        ("state", Text, Plain, "State of the thread in the kernel's letters, where recorded", |_, row| Value::or_null(row.state, letters)),
        ("callsite_id", Integer, Stack, "`callsite.id` at the switch", |context, row| context.some_id(row.callsite)),
        ("runnable_dur", Integer, Plain, "The part of `dur` in which the thread could run: from the wake-up on, or all of a wait that is not `sync`; null where it is not known or not certain",
            |_, row| Value::or_null(runnable_ns(row), Value::of)),
        ("waker_utid", Integer, Plain, "`thread.utid` of the thread that made the wake-up, or that made a new thread", |context, row| waker(context, row.waker)),
        ("waker_callsite_id", Integer, Stack, "`callsite.id` of the wake-up", |context, row| context.some_id(row.waker_callsite)),
        ("from_interrupt", Integer, Plain, "1 where an interrupt made the wake-up, and the waker only ran there; null without a wake-up",
            |_, row| Value::or_null(row.waker, |_| Value::flag(row.from_interrupt))),
        ("futex", Integer, Plain, "Address of the futex that the thread waits at, where recorded", |_, row| Value::or_null(row.futex, |address| Value::Int(address as i64))),
        ("object_kind", Text, Plain, "Kind of what a `sync` wait is for: `futex`, `file`, `pipe`, `anonymous-file`, `inet-socket`, `unix-socket`, `socket`, `files`, `time`, `child`, `signal`, `ipc` or `unknown`; null where that is not recorded",
            |context, row| object(context, row, |object| Value::Name(object.kind()))),
        ("object", Text, Plain, "What a `sync` wait is for: path, addresses, symbol, or why it is unknown; null where that is not recorded",
            |context, row| object(context, row, |object| Value::text(&object.to_string()))),
        ("certain", Integer, Plain, "1 where begin and end are in the recording, and no loss may hide a switch", |_, row| Value::flag(is_certain(row))),
        ("is_open", Integer, Plain, "1 where the end is not in the recording", |_, row| Value::flag(row.is_open)),
        ("begun_before", Integer, Plain, "1 where the switch is not in the recording; counts of switches leave these out", |_, row| Value::flag(row.begun_before)),
    ],
};

fn cpu(cpu: Option<CpuId>) -> Value {
    Value::or_null(cpu, |cpu| Value::Int(cpu.0.into()))
}

fn thread(context: &Context<'_>, (pid, tid): (Pid, Tid)) -> Value {
    context.some_id(context.source.thread_of((pid, tid)))
}

fn waker(context: &Context<'_>, task: Option<(Pid, Tid)>) -> Value {
    Value::or_null(task, |task| thread(context, task))
}

fn object(context: &Context<'_>, row: &WaitRow, of: impl Fn(&NamedObject) -> Value) -> Value {
    let source = context.source;
    let object = source.object_of(row).and_then(|number| source.object(number));
    Value::or_null(object, |object| of(&object))
}

fn kind_name(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Sync => "sync",
        WaitKind::Preempt => "preempt",
        WaitKind::New => "new",
    }
}

fn letters(state: TaskState) -> Value {
    Value::text(&state.letters())
}

fn end_state((kind, state): (WaitKind, Option<TaskState>)) -> Value {
    match (kind, state) {
        (_, Some(state)) => letters(state),
        (WaitKind::Preempt, None) => Value::Name("R+"),
        (WaitKind::Sync | WaitKind::New, None) => Value::Null,
    }
}

fn is_certain(row: &WaitRow) -> bool {
    row.trust == Trust::Whole && !row.is_open && !row.begun_before
}

/// As `whit switches --run-queue` counts it.
fn runnable_ns(row: &WaitRow) -> Option<u64> {
    let dur = row.duration_ns.filter(|_| is_certain(row))?;
    match row.kind {
        WaitKind::Preempt | WaitKind::New => Some(dur),
        WaitKind::Sync => Some(dur - row.woken_at?.since(row.start).min(dur)),
    }
}

/// Rows that are made of intervals.
trait OfInterval: Sized + Send + 'static {
    fn table() -> &'static Table<Self>;
    fn push(interval: &IntervalRow, out: &mut Vec<Self>);
    fn task(&self) -> (Pid, Tid);
    fn start(&self) -> u64;
}

impl OfInterval for RunRow {
    fn table() -> &'static Table<RunRow> {
        &SCHED
    }

    fn push(interval: &IntervalRow, out: &mut Vec<RunRow>) {
        if let IntervalRow::Run(run) = interval {
            out.push(*run);
        }
    }

    fn task(&self) -> (Pid, Tid) {
        self.task
    }

    fn start(&self) -> u64 {
        self.start.0
    }
}

impl OfInterval for WaitRow {
    fn table() -> &'static Table<WaitRow> {
        &WAIT
    }

    fn push(interval: &IntervalRow, out: &mut Vec<WaitRow>) {
        if let IntervalRow::Wait(wait) = interval {
            out.push(*wait);
        }
    }

    fn task(&self) -> (Pid, Tid) {
        self.task
    }

    fn start(&self) -> u64 {
        self.start.0
    }
}

impl OfInterval for StateRow {
    fn table() -> &'static Table<StateRow> {
        &THREAD_STATE
    }

    fn push(interval: &IntervalRow, out: &mut Vec<StateRow>) {
        match interval {
            IntervalRow::Run(run) => out.push(StateRow {
                task: run.task,
                start: run.start.0,
                duration_ns: Some(run.duration_ns),
                cpu: run.cpu,
                state: Value::Name("Running"),
                waker: None,
                certain: run.trust == Trust::Whole && !run.is_open,
            }),
            IntervalRow::Wait(wait) => push_wait(wait, out),
        }
    }

    fn task(&self) -> (Pid, Tid) {
        self.task
    }

    fn start(&self) -> u64 {
        self.start
    }
}

/// A wait is one state, or with a wake-up two.
fn push_wait(wait: &WaitRow, out: &mut Vec<StateRow>) {
    let whole = StateRow {
        task: wait.task,
        start: wait.start.0,
        duration_ns: wait.duration_ns,
        cpu: None,
        state: Value::Name("R+"),
        waker: None,
        certain: is_certain(wait),
    };
    match wait.kind {
        WaitKind::Preempt => out.push(whole),
        WaitKind::New => out.push(StateRow { state: Value::Name("R"), waker: wait.waker, ..whole }),
        WaitKind::Sync => {
            let state = wait.state.map_or(Value::Name("S"), letters);
            let woken = wait.woken_at.zip(wait.duration_ns);
            let Some((woken_at, dur)) = woken else {
                out.push(StateRow { state, ..whole });
                return;
            };
            let blocked = woken_at.since(wait.start).min(dur);
            let (task, certain) = (wait.task, whole.certain);
            out.push(StateRow { state, duration_ns: Some(blocked), ..whole });
            out.push(StateRow {
                task,
                start: wait.start.0.saturating_add(blocked),
                duration_ns: Some(dur - blocked),
                cpu: None,
                state: Value::Name("R"),
                waker: wait.waker,
                certain,
            });
        }
    }
}

struct IntervalCursor<R: 'static> {
    wanted: Wanted,
    recordings: Recordings,
    stream: Option<Stream<R>>,
    row: Option<R>,
}

fn open<R: OfInterval>(
    _: &'static Table<R>,
    database: &Database,
    wanted: &Wanted,
) -> Box<dyn Cursor> {
    let recordings = Recordings::new(database);
    let wanted = wanted.clone();
    Box::new(IntervalCursor::<R> { wanted, recordings, stream: None, row: None })
}

/// Which intervals a reader wants. All are followed: a thread that runs or waits through the range has no record in it.
#[derive(Clone, Copy)]
struct Chosen {
    thread: Option<u32>,
    from: u64,
    to: u64,
}

impl Chosen {
    fn has<R: OfInterval>(&self, source: &TableSource, row: &R) -> bool {
        (self.from..=self.to).contains(&row.start())
            && self.thread.is_none_or(|thread| source.thread_of(row.task()) == Some(thread))
    }
}

impl<R: OfInterval> Cursor for IntervalCursor<R> {
    fn advance(&mut self) -> Result<bool, TableError> {
        loop {
            if let Some(stream) = &mut self.stream {
                let number = self.recordings.number();
                self.row = stream.next(&self.recordings.database, number)?;
                if self.row.is_some() {
                    return Ok(true);
                }
                self.stream = None;
            }
            let stacks = R::table().wants_stacks(&self.wanted);
            let chosen = Chosen {
                thread: Wanted::local(self.wanted.thread),
                from: u64::try_from(self.wanted.from.unwrap_or(0)).unwrap_or(0),
                to: self.wanted.to.map_or(u64::MAX, |to| u64::try_from(to).unwrap_or(0)),
            };
            let Some(opened) = self.recordings.advance(&self.wanted)? else { return Ok(false) };
            self.stream = Some(Stream::start(opened.clone(), move |opened, outlet| {
                opened.source.intervals(stacks, &mut |intervals| {
                    let mut rows = Vec::with_capacity(intervals.len());
                    intervals.iter().for_each(|interval| R::push(interval, &mut rows));
                    rows.retain(|row| chosen.has(&opened.source, row));
                    outlet.send(rows)
                })
            }));
        }
    }

    fn value(&self, column: usize) -> Value {
        let Some((row, context)) = self.row.as_ref().zip(self.recordings.context()) else {
            return Value::Null;
        };
        R::table().value(&context, row, column)
    }
}
