//! The context switches as JSON: a stable form for programs.
//!
//! One object. `version` grows when a member changes its meaning or goes away; new members may
//! appear without that. Times are whole nanoseconds of the recording's clock. What is not known is
//! `null`.
//!
//! ```text
//! {
//!   "format": "whit-switches", "version": 1,
//!   "sources": { "switch_records", "sched_switch", "stacks", "wakeups", "samples": event | null },
//!   "span_ns": [first, last] | null, "recorded_ns",
//!   "total": SUMS,
//!   "threads": [ { "pid", "tid", "comm", "sums": SUMS } ],
//!   "functions": [ { "name", "dso" } ],
//!   "rows": [ { "thread": index, "comm", "stack": [index of function, innermost first],
//!               "sums": SUMS } ],
//!   "wakers": [ { "row": index, "thread": index, "stack": [..], "from_interrupt", "count",
//!                 "blocked_ns" } ],
//!   "wakers_left_off": wake-ups,
//!   "worst": [ { "thread": index, "comm", "start_ns", "duration_ns", "cpu", "kind": "sync" |
//!                "preemption" | "new", "state", "stack": [..], "lossy", "open",
//!                "woken": { "time_ns", "thread": index, "stack": [..], "from_interrupt" } | null } ],
//!   "misfits": { "missing_outs", "missing_ins", "stray_samples", "exits" },
//!   "loss_windows_ns": [ [from, to], .. ],
//!   "warnings": [ "..", .. ]
//! }
//! SUMS: { "cpu_ns", "sync_count", "preempt_count", "sync_wait_ns", "preempt_wait_ns",
//!         "new_count", "new_wait_ns", "longest_wait_ns", "woken_count", "blocked_ns", "runnable_ns", "lossy_cpu_ns",
//!         "lossy_count", "lossy_wait_ns", "open_count", "open_wait_ns" }
//! ```
//!
//! The counts are of all switches in the recording, the wait times only of those of which nothing
//! makes the end uncertain; `lossy_*` and `open_*` are the others.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::SwitchViewOptions;
use super::stacks::{ChainEntry, Stacks};
use super::waits;
use crate::json_strings;
use rustc_hash::FxHashMap;
use whit_profile::model::Profile;
use whit_profile::switches::{SwitchSums, Switches, Trust, Wait, WaitKind};
use whit_types::OutsideText;

/// Version of the form; see the module's documentation.
pub const VERSION: u32 = 1;

/// Writes the switches, without a line end after them.
///
/// # Errors
/// What `out` returns.
pub fn write_json(
    out: &mut impl Write,
    profile: &Profile,
    switches: &Switches,
    options: &SwitchViewOptions,
) -> io::Result<()> {
    let stacks = Stacks::new(profile, &options.filters, options.inline);
    json_strings::write(out, &document(stacks, switches, options))
}

fn document(stacks: Stacks<'_>, switches: &Switches, options: &SwitchViewOptions) -> Value {
    let profile = stacks.profile();
    let mut functions = Functions { profile, numbers: FxHashMap::default(), list: Vec::new() };
    let mut total = SwitchSums::default();
    let mut threads = vec![SwitchSums::default(); profile.threads.len()];
    let (mut rows, mut numbers) = (Vec::new(), FxHashMap::default());
    for (index, row, frames) in stacks.rows(switches) {
        total.add(&row.sums);
        threads[row.thread.index()].add(&row.sums);
        numbers.insert(index, rows.len());
        rows.push(json!({
            "thread": row.thread.0,
            "comm": profile.comms[row.comm.index()].exact(),
            "stack": functions.stack(&frames),
            "sums": sums(&row.sums),
        }));
    }
    let wakers: Vec<_> = switches
        .wakers
        .iter()
        .filter_map(|waker| {
            Some(json!({
                "row": numbers.get(&(waker.row as usize))?,
                "thread": waker.waker.thread.0,
                "stack": functions.stack(&stacks.frames(waker.waker.node)),
                "from_interrupt": waker.waker.from_interrupt,
                "count": waker.count,
                "blocked_ns": waker.blocked_ns,
            }))
        })
        .collect();
    let worst: Vec<_> = waits::worst(stacks, switches, options)
        .into_iter()
        .map(|(wait, frames)| worst_wait(stacks, wait, &frames, &mut functions))
        .collect();
    let thread = |(info, sum): (&whit_profile::model::ThreadInfo, &SwitchSums)| {
        json!({
            "pid": info.pid.0, "tid": info.tid.0, "comm": profile.comms[info.comm.index()].exact(),
            "sums": sums(sum),
        })
    };
    json!({
        "format": "whit-switches",
        "version": VERSION,
        "sources": sources(profile, switches),
        "span_ns": switches.span.map(|(first, last)| [first.0, last.0]),
        "recorded_ns": switches.recorded_ns,
        "total": sums(&total),
        "threads": profile.threads.iter().zip(&threads).map(thread).collect::<Vec<_>>(),
        "rows": rows,
        "wakers": wakers,
        "wakers_left_off": switches.wakers_left_off,
        "worst": worst,
        "functions": functions.list,
        "misfits": {
            "missing_outs": switches.inconsistencies.missing_outs,
            "missing_ins": switches.inconsistencies.missing_ins,
            "stray_samples": switches.inconsistencies.stray_samples,
            "exits": switches.inconsistencies.exits,
        },
        "loss_windows_ns":
            switches.loss_windows.iter().map(|w| [w.from.0, w.to.0]).collect::<Vec<_>>(),
        "warnings": profile.warnings.iter().map(OutsideText::exact).collect::<Vec<_>>(),
    })
}

fn sources(profile: &Profile, switches: &Switches) -> Value {
    let sources = switches.sources;
    json!({
        "switch_records": sources.records,
        "sched_switch": sources.tracepoint,
        "stacks": sources.stacks,
        "wakeups": sources.wakeups,
        "samples": sources.samples.map(|event| profile.events[event.index()].name.exact()),
    })
}

fn sums(sums: &SwitchSums) -> Value {
    json!({
        "cpu_ns": sums.cpu_ns,
        "sync_count": sums.sync_count,
        "preempt_count": sums.preempt_count,
        "sync_wait_ns": sums.sync_wait_ns,
        "preempt_wait_ns": sums.preempt_wait_ns,
        "new_count": sums.new_count,
        "new_wait_ns": sums.new_wait_ns,
        "longest_wait_ns": sums.longest_wait_ns,
        "woken_count": sums.woken_count,
        "blocked_ns": sums.blocked_ns,
        "runnable_ns": sums.runnable_ns,
        "lossy_cpu_ns": sums.lossy_cpu_ns,
        "lossy_count": sums.lossy_count,
        "lossy_wait_ns": sums.lossy_wait_ns,
        "open_count": sums.open_count,
        "open_wait_ns": sums.open_wait_ns,
    })
}

fn worst_wait(
    stacks: Stacks<'_>,
    wait: &Wait,
    frames: &[ChainEntry],
    functions: &mut Functions<'_>,
) -> Value {
    let woken = wait.woken.map(|(time, waker)| {
        json!({
            "time_ns": time.0,
            "thread": waker.thread.0,
            "stack": functions.stack(&stacks.frames(waker.node)),
            "from_interrupt": waker.from_interrupt,
        })
    });
    json!({
        "thread": wait.thread.0,
        "comm": stacks.profile().comms[wait.comm.index()].exact(),
        "start_ns": wait.start.0,
        "duration_ns": wait.duration_ns,
        "cpu": wait.cpu.map(|cpu| cpu.0),
        "kind": match wait.kind {
            WaitKind::Sync => "sync",
            WaitKind::Preempt => "preemption",
            WaitKind::New => "new",
        },
        "state": wait.state.map(|state| state.letters()),
        "stack": functions.stack(frames),
        "lossy": wait.trust == Trust::Lossy,
        "open": wait.is_open,
        "woken": woken,
    })
}

/// Functions in the order in which stacks name them.
struct Functions<'a> {
    profile: &'a Profile,
    numbers: FxHashMap<ChainEntry, usize>,
    list: Vec<Value>,
}

impl Functions<'_> {
    /// Empty where no call stack was recorded.
    fn stack(&mut self, frames: &[ChainEntry]) -> Vec<usize> {
        let known = frames.iter().filter(|place| **place != ChainEntry::NONE);
        known.map(|place| self.number(*place)).collect()
    }

    fn number(&mut self, place: ChainEntry) -> usize {
        let (profile, list) = (self.profile, &mut self.list);
        *self.numbers.entry(place).or_insert_with(|| {
            list.push(
                json!({ "name": place.name(profile).exact(), "dso": place.dso(profile).exact() }),
            );
            list.len() - 1
        })
    }
}
