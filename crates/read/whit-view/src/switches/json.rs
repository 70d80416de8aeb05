//! The context switches as JSON: a stable form for programs.
//!
//! One object. `version` grows when a member changes its meaning or goes away; new members may
//! appear without that. Times are whole nanoseconds of the recording's clock. Unknown values are
//! `null`.
//!
//! The counts cover all switches in the recording. The wait times cover only waits with a certain end; `lossy_*`
//! and `open_*` are the others. `docs/schemas/switches.json` is the schema; it comes from the types here.

use std::io::{self, Write};

use serde::Serialize;

use super::SwitchViewOptions;
use super::run_queue::{self, Delays};
use super::stacks::{ChainEntry, Stacks};
use super::waits;
use crate::json_strings;
use crate::warning::warning_text;
use rustc_hash::FxHashMap;
use whit_profile::handle::{self, WaitId};
use whit_profile::model::{FunctionId, Profile, ThreadInfo};
use whit_profile::switches::{
    Inconsistencies, NodeClasses, SwitchSums, Switches, Trust, Wait, WaitClass, WaitKind,
};

/// Version of the form; see the module's documentation.
pub const VERSION: u32 = 1;

/// Writes the switches, without a line end after them.
///
/// # Errors
/// The error of `out`.
pub fn write_json(
    out: &mut impl Write,
    profile: &Profile,
    switches: &Switches,
    options: &SwitchViewOptions,
) -> io::Result<()> {
    let stacks = Stacks::new(profile, &options.filters, options.inline);
    json_strings::write(out, &Document::of(stacks, switches, options))
}

/// `whit switches --json`: one object. Members may be added; `version` grows when one changes its meaning or
/// goes away. Times are whole nanoseconds of the recording's clock. Unknown values are `null`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    /// `whit-switches`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    sources: Sources<'a>,
    /// First and last moment.
    span_ns: Option<[u64; 2]>,
    recorded_ns: u64,
    total: Sums,
    threads: Vec<Thread<'a>>,
    rows: Vec<Row<'a>>,
    wakers: Vec<Waker>,
    /// Wake-ups whose wakers are not listed.
    wakers_left_off: u64,
    /// Threads that came onto a CPU; the one with the longest delay first.
    run_queue: Vec<Delays>,
    /// The longest waits, the longest first.
    worst: Vec<WorstWait<'a>>,
    functions: Vec<Function>,
    misfits: Misfits,
    /// From when to when switches may be missing.
    loss_windows_ns: Vec<[u64; 2]>,
    warnings: Vec<String>,
}

/// The kinds of records on switches that the recording has.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Sources<'a> {
    /// SWITCH records of the kernel.
    switch_records: bool,
    /// The tracepoint `sched:sched_switch`.
    sched_switch: bool,
    stacks: bool,
    wakeups: bool,
    /// The time of CPUs in interrupts.
    interrupts: bool,
    /// The time that the hypervisor stole from CPUs.
    stolen: bool,
    /// The event whose samples are switches.
    samples: Option<&'a str>,
}

/// Counts are of all switches, wait times of those whose end is certain.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sums {
    cpu_ns: u64,
    /// Voluntary switches.
    sync_count: u64,
    preempt_count: u64,
    sync_wait_ns: u64,
    preempt_wait_ns: u64,
    /// The part of `preempt_count` in which the thread's cgroup had used its quota of CPU time up.
    throttled_count: u64,
    /// The part of `preempt_wait_ns` in such waits.
    throttled_wait_ns: u64,
    /// Threads that began.
    new_count: u64,
    new_wait_ns: u64,
    longest_wait_ns: u64,
    /// Waits with a known wake-up; `blocked_ns` and `runnable_ns` are sums over these.
    woken_count: u64,
    /// Until the wake-up.
    blocked_ns: u64,
    /// From the wake-up on.
    runnable_ns: u64,
    lossy_cpu_ns: u64,
    lossy_count: u64,
    lossy_wait_ns: u64,
    open_count: u64,
    open_wait_ns: u64,
    /// Waits that began before the recording and ended after it.
    throughout_count: u64,
    throughout_wait_ns: u64,
}

/// A thread with its sums.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Thread<'a> {
    pid: i32,
    tid: i32,
    comm: &'a str,
    sums: Sums,
}

/// Switches of one thread at one call stack.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row<'a> {
    /// Index in `threads`.
    thread: u32,
    comm: &'a str,
    /// Indices in `functions`, innermost first; empty where no call stack was recorded.
    stack: Vec<usize>,
    /// The thing that voluntary switches here wait for: `lock`, `disk`, `network`, `pipe`, `page-fault`, `sleep`,
    /// `poll`, `idle-loop`, `peer`, `queue`, `child`, `join`, `other`, or `unknown` without a call stack.
    wait_class: &'static str,
    /// The object of the waits; absent where it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_object: Option<Object>,
    sums: Sums,
}

/// The object of waits.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Object {
    /// `futex`, `file`, `pipe`, `anonymous-file`, `inet-socket`, `unix-socket`, `socket`, `files`, `time`, `child`,
    /// `signal`, `ipc` or `unknown`.
    kind: &'static str,
    /// Path, addresses, symbol, or why it is unknown.
    name: String,
}

impl Object {
    pub(crate) fn of(switches: &Switches, number: Option<u32>) -> Option<Object> {
        let object = waits::object(switches, number)?;
        Some(Object { kind: object.kind(), name: object.to_string() })
    }
}

/// A place that ended the waits of a row.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Waker {
    /// Index in `rows`.
    row: usize,
    /// Index in `threads`.
    thread: u32,
    /// Indices in `functions`, innermost first.
    stack: Vec<usize>,
    from_interrupt: bool,
    count: u64,
    blocked_ns: u64,
}

/// One long wait, with its place and its waker.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WorstWait<'a> {
    /// For `whit switches --wait`.
    handle: String,
    /// Index in `threads`.
    thread: u32,
    comm: &'a str,
    start_ns: u64,
    duration_ns: u64,
    cpu: Option<u32>,
    /// `sync` (a voluntary switch), `preemption` or `new`.
    kind: &'static str,
    /// That of the rows, or `preempted` or `new`.
    wait_class: &'static str,
    /// The object of the wait; `null` where it is not recorded.
    wait_object: Option<Object>,
    /// Letters of the state, as the kernel has them.
    state: Option<String>,
    /// Indices in `functions`, innermost first.
    stack: Vec<usize>,
    /// Records were lost meanwhile.
    lossy: bool,
    /// The recording ended before the wait.
    open: bool,
    /// The thread was blocked when recording began.
    begun_before: bool,
    woken: Option<Woken>,
}

/// A wake-up.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Woken {
    time_ns: u64,
    /// Index in `threads`.
    thread: u32,
    /// Indices in `functions`, innermost first.
    stack: Vec<usize>,
    from_interrupt: bool,
}

/// A function that stacks name.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Function {
    name: String,
    dso: String,
    /// Other commands take it in place of the name.
    handle: Option<String>,
}

/// Records that contradict each other.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Misfits {
    missing_outs: u64,
    missing_ins: u64,
    stray_samples: u64,
    exits: u64,
}

impl<'a> Document<'a> {
    fn of(stacks: Stacks<'a>, switches: &Switches, options: &SwitchViewOptions) -> Document<'a> {
        let profile = stacks.profile();
        let mut functions = Functions::new(profile);
        let mut total = SwitchSums::default();
        let mut threads = vec![SwitchSums::default(); profile.threads.len()];
        let nodes = switches.rows.iter().map(|row| row.node);
        let nodes = nodes.chain(switches.worst.iter().map(|wait| wait.node));
        let classes = NodeClasses::of(profile, nodes);
        let (mut rows, mut numbers) = (Vec::new(), FxHashMap::default());
        for (index, row, frames) in stacks.rows(switches) {
            total.add(&row.sums);
            threads[row.thread.index()].add(&row.sums);
            numbers.insert(index, rows.len());
            rows.push(Row {
                thread: row.thread.0,
                comm: profile.comms[row.comm.index()].exact(),
                stack: functions.stack(&frames),
                wait_class: classes.get(row).name(),
                wait_object: Object::of(switches, row.object),
                sums: Sums::of(&row.sums),
            });
        }
        let wakers = switches.wakers.iter().filter_map(|waker| {
            Some(Waker {
                row: *numbers.get(&(waker.row as usize))?,
                thread: waker.waker.thread.0,
                stack: functions.stack(&stacks.frames(waker.waker.node)),
                from_interrupt: waker.waker.from_interrupt,
                count: waker.count,
                blocked_ns: waker.blocked_ns,
            })
        });
        let wakers = wakers.collect();
        let worst = waits::worst(stacks, switches, options);
        let worst = worst.into_iter().map(|(wait, frames)| WorstWait {
            wait_class: classes.of_wait(wait).name(),
            wait_object: Object::of(switches, wait.object),
            ..WorstWait::of(stacks, wait, &frames, &mut functions)
        });
        let worst = worst.collect();
        Document {
            format: "whit-switches",
            version: VERSION,
            sources: Sources::of(profile, switches),
            span_ns: switches.span.map(|(first, last)| [first.0, last.0]),
            recorded_ns: switches.recorded_ns,
            total: Sums::of(&total),
            threads: profile
                .threads
                .iter()
                .zip(&threads)
                .map(|(info, sums)| Thread::of(profile, info, sums))
                .collect(),
            rows,
            wakers,
            wakers_left_off: switches.wakers_left_off,
            run_queue: run_queue::lines(stacks, switches)
                .iter()
                .map(|line| Delays::of(line.of_thread))
                .collect(),
            worst,
            functions: functions.list,
            misfits: Misfits::of(&switches.inconsistencies),
            loss_windows_ns: switches.loss_windows.iter().map(|w| [w.from.0, w.to.0]).collect(),
            warnings: profile.warnings.iter().map(|w| warning_text(w).into_exact()).collect(),
        }
    }
}

impl<'a> Sources<'a> {
    pub(crate) fn of(profile: &'a Profile, switches: &Switches) -> Sources<'a> {
        let sources = switches.sources;
        Sources {
            switch_records: sources.records,
            sched_switch: sources.tracepoint,
            stacks: sources.stacks,
            wakeups: sources.wakeups,
            interrupts: sources.interrupts,
            stolen: sources.stolen,
            samples: sources.samples.map(|event| profile.events[event.index()].name.exact()),
        }
    }
}

impl Sums {
    fn of(sums: &SwitchSums) -> Sums {
        Sums {
            cpu_ns: sums.cpu_ns,
            sync_count: sums.sync_count,
            preempt_count: sums.preempt_count,
            sync_wait_ns: sums.sync_wait_ns,
            preempt_wait_ns: sums.preempt_wait_ns,
            throttled_count: sums.throttled_count,
            throttled_wait_ns: sums.throttled_wait_ns,
            new_count: sums.new_count,
            new_wait_ns: sums.new_wait_ns,
            longest_wait_ns: sums.longest_wait_ns(),
            woken_count: sums.woken_count,
            blocked_ns: sums.blocked_ns,
            runnable_ns: sums.runnable_ns,
            lossy_cpu_ns: sums.lossy_cpu_ns,
            lossy_count: sums.lossy_count,
            lossy_wait_ns: sums.lossy_wait_ns,
            open_count: sums.open_count,
            open_wait_ns: sums.open_wait_ns,
            throughout_count: sums.throughout_count,
            throughout_wait_ns: sums.throughout_wait_ns,
        }
    }
}

impl<'a> Thread<'a> {
    fn of(profile: &'a Profile, info: &ThreadInfo, sums: &SwitchSums) -> Thread<'a> {
        Thread {
            pid: info.pid.0,
            tid: info.tid.0,
            comm: profile.comms[info.comm.index()].exact(),
            sums: Sums::of(sums),
        }
    }
}

impl<'a> WorstWait<'a> {
    fn of(
        stacks: Stacks<'a>,
        wait: &Wait,
        frames: &[ChainEntry],
        functions: &mut Functions<'a>,
    ) -> WorstWait<'a> {
        let woken = wait.woken.map(|(time, waker)| Woken {
            time_ns: time.0,
            thread: waker.thread.0,
            stack: functions.stack(&stacks.frames(waker.node)),
            from_interrupt: waker.from_interrupt,
        });
        let tid = stacks.profile().threads[wait.thread.index()].tid;
        WorstWait {
            handle: handle::of_wait(WaitId { tid, start: wait.start }),
            thread: wait.thread.0,
            comm: stacks.profile().comms[wait.comm.index()].exact(),
            start_ns: wait.start.0,
            duration_ns: wait.duration_ns,
            cpu: wait.cpu.map(|cpu| cpu.0),
            kind: match wait.kind {
                WaitKind::Sync => "sync",
                WaitKind::Preempt => "preemption",
                WaitKind::New => "new",
            },
            wait_class: WaitClass::Unknown.name(),
            wait_object: None,
            state: wait.state.map(|state| state.letters()),
            stack: functions.stack(frames),
            lossy: wait.trust == Trust::Lossy,
            open: wait.is_open,
            begun_before: wait.begun_before,
            woken,
        }
    }
}

impl Misfits {
    pub(crate) fn of(found: &Inconsistencies) -> Misfits {
        Misfits {
            missing_outs: found.missing_outs,
            missing_ins: found.missing_ins,
            stray_samples: found.stray_samples,
            exits: found.exits,
        }
    }
}

/// Functions in the order in which stacks name them.
pub(crate) struct Functions<'a> {
    profile: &'a Profile,
    numbers: FxHashMap<ChainEntry, usize>,
    pub(crate) list: Vec<Function>,
}

impl<'a> Functions<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Functions<'a> {
        Functions { profile, numbers: FxHashMap::default(), list: Vec::new() }
    }

    /// Empty where no call stack was recorded.
    pub(crate) fn stack(&mut self, frames: &[ChainEntry]) -> Vec<usize> {
        let known = frames.iter().filter(|place| **place != ChainEntry::NONE);
        known.map(|place| self.number(*place)).collect()
    }

    /// A function that was not inlined at this place.
    pub(crate) fn of(&mut self, function: FunctionId) -> usize {
        self.number(ChainEntry(Some((function, false))))
    }

    fn number(&mut self, place: ChainEntry) -> usize {
        let (profile, list) = (self.profile, &mut self.list);
        *self.numbers.entry(place).or_insert_with(|| {
            let (name, dso) = (place.name(profile), place.dso(profile));
            let handle = place.0.map(|(id, _)| handle::of_function(profile, id));
            list.push(Function {
                name: name.exact().to_owned(),
                dso: dso.exact().to_owned(),
                handle,
            });
            list.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Document<'_>>("docs/schemas/switches.json");
    }
}
