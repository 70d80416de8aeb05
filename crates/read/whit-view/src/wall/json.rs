//! Wall time as JSON: a stable form for programs.
//!
//! `docs/schemas/wall.json` is the schema; it comes from the types here.

use std::io::{self, Write};

use serde::Serialize;

use super::threads::{ThreadWall, WallTable, WallTimes};
use crate::json_strings;
use crate::switches::{Function, Functions, Misfits, Sources, Stacks, SwitchViewOptions};
use crate::warning::warning_text;
use rustc_hash::FxHashMap;
use whit_profile::model::Profile;
use whit_profile::switches::{
    CpuParts, CpuWall, NodeClasses, SwitchRow, Switches, WaitClass, WakerRow,
};
use whit_profile::wall::WallSums;

/// Version of the form; see [`write_json`].
pub const VERSION: u32 = 1;

/// Writes the wall time, without a line end after it.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_json(
    out: &mut impl Write,
    profile: &Profile,
    switches: &Switches,
    options: &SwitchViewOptions,
) -> io::Result<()> {
    let stacks = Stacks::new(profile, &options.filters, options.inline);
    json_strings::write(out, &Document::of(stacks, switches))
}

/// `whit report --wall --json`: one object. Members may be added; `version` grows when one changes its meaning or
/// goes away. Times are whole nanoseconds of the recording's clock.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    /// `whit-wall`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    sources: Sources<'a>,
    /// First and last moment.
    span_ns: Option<[u64; 2]>,
    recorded_ns: u64,
    /// Sums over `threads`.
    total: ThreadSums,
    /// Threads that have any time after the options.
    threads: Vec<Thread<'a>>,
    /// Other threads.
    left_out_threads: usize,
    /// The time of each CPU; empty unless the switches of all threads were recorded, and with a range of time.
    cpus: Vec<Cpu>,
    rows: Vec<Row<'a>>,
    wakers: Vec<Waker<'a>>,
    functions: Vec<Function>,
    misfits: Misfits,
    /// From when to when records may be missing.
    loss_windows_ns: Vec<[u64; 2]>,
    warnings: Vec<String>,
}

/// The wall time of threads. The parts add up to `elapsed_ns` plus `excess_ns`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ThreadSums {
    /// The recorded time in which the thread existed.
    elapsed_ns: u64,
    cpu_ns: u64,
    /// The part of `cpu_ns` in handlers of interrupts; absent where it was not recorded, or options leave out some CPU
    /// time of the thread.
    irq_ns: Option<u64>,
    /// The same in softirqs, without interrupts within these.
    softirq_ns: Option<u64>,
    /// The part of `cpu_ns` that the hypervisor stole.
    stolen_ns: Option<u64>,
    /// After voluntary switches, until the wake-up where that was recorded.
    waiting_ns: u64,
    preempted_ns: u64,
    /// The part of `preempted_ns` that began as the cgroup had used its quota of CPU time up.
    throttled_ns: u64,
    /// From a wake-up, or from the beginning of the thread, until it ran.
    run_queue_ns: u64,
    /// Runs and waits touched by a loss: a part of the unknown time.
    lossy_ns: u64,
    /// No run and no wait covers this time: the other part of the unknown time.
    uncovered_ns: u64,
    /// Parts that the options leave out.
    left_out_ns: u64,
    /// Zero, unless the recording contradicts itself.
    excess_ns: u64,
}

/// The wall time of one thread.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Thread<'a> {
    pid: i32,
    tid: i32,
    comm: &'a str,
    sums: ThreadSums,
}

/// The recorded time of one CPU, whatever the options choose. The times add up to `elapsed_ns` plus `excess_ns`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Cpu {
    cpu: u32,
    elapsed_ns: u64,
    /// Threads were executed.
    threads_ns: u64,
    /// In handlers of interrupts; absent where it was not recorded.
    irq_ns: Option<u64>,
    /// In softirqs, without interrupts within these.
    softirq_ns: Option<u64>,
    /// Stolen by the hypervisor.
    stolen_ns: Option<u64>,
    /// No recorded thread was there.
    idle_ns: u64,
    /// A loss may hide threads.
    unknown_ns: u64,
    /// Zero, unless the recording contradicts itself.
    excess_ns: u64,
}

/// Time of one thread at one call stack.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row<'a> {
    /// Index in `threads`.
    thread: usize,
    comm: &'a str,
    /// Indices in `functions`, innermost first; empty where no call stack was recorded.
    stack: Vec<usize>,
    cpu_ns: u64,
    waiting_ns: u64,
    preempted_ns: u64,
    /// The part of `preempted_ns` that began as the cgroup had used its quota of CPU time up.
    throttled_ns: u64,
    run_queue_ns: u64,
    lossy_ns: u64,
    /// Voluntary switches.
    sync_count: u64,
    preempt_count: u64,
    /// The thing that voluntary switches here wait for, as in `whit switches --json`.
    wait_class: &'static str,
}

/// A place that ended waits of a row.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Waker<'a> {
    /// Index in `rows`.
    row: usize,
    pid: i32,
    tid: i32,
    comm: &'a str,
    /// Indices in `functions`, innermost first.
    stack: Vec<usize>,
    /// An interrupt of this thread ended them.
    from_interrupt: bool,
    count: u64,
    /// Until the wake-ups.
    blocked_ns: u64,
}

impl<'a> Document<'a> {
    fn of(stacks: Stacks<'a>, switches: &Switches) -> Document<'a> {
        let profile = stacks.profile();
        let table = WallTable::new(stacks, switches);
        let numbers = table.threads.iter().map(|thread| thread.thread);
        let by_thread: FxHashMap<_, _> = numbers.enumerate().map(|(at, id)| (id, at)).collect();
        let mut functions = Functions::new(profile);
        let classes = NodeClasses::of(profile, switches.rows.iter().map(|row| row.node));
        let (mut rows, mut by_row) = (Vec::new(), FxHashMap::default());
        for (index, row, frames) in stacks.rows(switches) {
            let Some(thread) = by_thread.get(&row.thread) else { continue };
            by_row.insert(index, rows.len());
            rows.push(Row {
                wait_class: classes.get(row).name(),
                ..Row::of(profile, row, *thread, functions.stack(&frames))
            });
        }
        let wakers = switches.wakers.iter().filter_map(|waker| {
            let row = *by_row.get(&(waker.row as usize))?;
            let stack = functions.stack(&stacks.frames(waker.waker.node));
            Some(Waker::of(profile, waker, row, stack))
        });
        let wakers = wakers.collect();
        let parts = RecordedParts::of(switches);
        Document {
            format: "whit-wall",
            version: VERSION,
            sources: Sources::of(profile, switches),
            span_ns: switches.span.map(|(first, last)| [first.0, last.0]),
            recorded_ns: switches.recorded_ns,
            total: ThreadSums::of(&table.sums(), parts),
            threads: table
                .threads
                .iter()
                .map(|thread| Thread::of(profile, thread, parts))
                .collect(),
            left_out_threads: table.left_out_threads,
            cpus: switches.cpus.iter().map(|cpu| Cpu::of(cpu, parts)).collect(),
            rows,
            wakers,
            functions: functions.list,
            misfits: Misfits::of(&switches.inconsistencies),
            loss_windows_ns: switches.loss_windows.iter().map(|w| [w.from.0, w.to.0]).collect(),
            warnings: profile.warnings.iter().map(|w| warning_text(w).into_exact()).collect(),
        }
    }
}

/// The parts of CPU time that a recording has.
#[derive(Clone, Copy)]
struct RecordedParts {
    interrupts: bool,
    stolen: bool,
}

impl RecordedParts {
    fn of(switches: &Switches) -> RecordedParts {
        let sources = switches.sources;
        RecordedParts { interrupts: sources.interrupts, stolen: sources.stolen }
    }

    /// In interrupts, in softirqs, and stolen.
    fn times(self, parts: &CpuParts) -> [Option<u64>; 3] {
        let &CpuParts { irq_ns, softirq_ns, stolen_ns } = parts;
        let of_interrupts = |ns| self.interrupts.then_some(ns);
        [of_interrupts(irq_ns), of_interrupts(softirq_ns), self.stolen.then_some(stolen_ns)]
    }
}

impl Cpu {
    fn of(cpu: &CpuWall, recorded: RecordedParts) -> Cpu {
        let [irq_ns, softirq_ns, stolen_ns] = recorded.times(&cpu.parts);
        Cpu {
            cpu: cpu.cpu.0,
            elapsed_ns: cpu.elapsed_ns,
            threads_ns: cpu.threads_ns,
            irq_ns,
            softirq_ns,
            stolen_ns,
            idle_ns: cpu.idle_ns,
            unknown_ns: cpu.unknown_ns,
            excess_ns: cpu.excess_ns,
        }
    }
}

impl ThreadSums {
    fn of(times: &WallTimes, recorded: RecordedParts) -> ThreadSums {
        let parts = times.cpu_parts.map(|parts| recorded.times(&parts));
        let [irq_ns, softirq_ns, stolen_ns] = parts.unwrap_or_default();
        let WallSums { cpu_ns, waiting_ns, preempted_ns, throttled_ns, run_queue_ns, lossy_ns } =
            times.sums;
        ThreadSums {
            elapsed_ns: times.elapsed_ns,
            cpu_ns,
            irq_ns,
            softirq_ns,
            stolen_ns,
            waiting_ns,
            preempted_ns,
            throttled_ns,
            run_queue_ns,
            lossy_ns,
            uncovered_ns: times.uncovered_ns,
            left_out_ns: times.left_out_ns,
            excess_ns: times.excess_ns,
        }
    }
}

impl<'a> Thread<'a> {
    fn of(profile: &'a Profile, thread: &ThreadWall, recorded: RecordedParts) -> Thread<'a> {
        let info = &profile.threads[thread.thread.index()];
        Thread {
            pid: info.pid.0,
            tid: info.tid.0,
            comm: profile.comms[info.comm.index()].exact(),
            sums: ThreadSums::of(&thread.times, recorded),
        }
    }
}

impl<'a> Row<'a> {
    fn of(profile: &'a Profile, row: &SwitchRow, thread: usize, stack: Vec<usize>) -> Row<'a> {
        let WallSums { cpu_ns, waiting_ns, preempted_ns, throttled_ns, run_queue_ns, lossy_ns } =
            WallSums::of(&row.sums);
        Row {
            thread,
            comm: profile.comms[row.comm.index()].exact(),
            stack,
            cpu_ns,
            waiting_ns,
            preempted_ns,
            throttled_ns,
            run_queue_ns,
            lossy_ns,
            sync_count: row.sums.sync_count,
            preempt_count: row.sums.preempt_count,
            wait_class: WaitClass::Unknown.name(),
        }
    }
}

impl<'a> Waker<'a> {
    fn of(profile: &'a Profile, of_row: &WakerRow, row: usize, stack: Vec<usize>) -> Waker<'a> {
        let info = &profile.threads[of_row.waker.thread.index()];
        Waker {
            row,
            pid: info.pid.0,
            tid: info.tid.0,
            comm: profile.comms[info.comm.index()].exact(),
            stack,
            from_interrupt: of_row.waker.from_interrupt,
            count: of_row.count,
            blocked_ns: of_row.blocked_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Document<'_>>("docs/schemas/wall.json");
    }
}
