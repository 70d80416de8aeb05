//! A toy kernel that follows the porting guide (`docs/porting.md`): a bus, an interrupt, a clock, and a switch of tasks.
//!
//! It has two tasks. Each samples its own event: the switch takes the event off the counter, with its count and the rest of
//! its period, and puts the next task's on. The VMM starts it as the other guest (`main.rs`).

#![no_std]
#![no_main]

mod machine;

use whit_pmu::counter::CounterIndex;
use whit_pmu::driver::{Driver, Event, EventConfig};
use whit_pmu::pmi::{Overflow, PmiOutcome, Verdict};

use machine::{Registers, model, report, report_long, set_gates, time};

/// Where the parameters are.
const PARAMETERS: *const Parameters = 0x8000 as *const Parameters;
const TASKS: usize = 2;
/// Rounds of work between two switches: the second task has twice the first one's.
const TURN: u64 = 2000;
const COUNTER: CounterIndex = CounterIndex::general(0);

/// The VMM's parameters.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parameters {
    /// Samples to take.
    samples: u64,
    /// Events between two samples.
    period: u64,
    /// The event's code.
    code: u64,
    /// Rounds of work after which it gives up.
    rounds_max: u64,
}

/// First words of the report.
#[repr(u32)]
enum Outcome {
    NoModel = 2,
    NotStarted = 3,
    Tasks = 5,
}

/// A task: its event while it is off the CPU, and its samples.
struct Task {
    event: Option<Event>,
    samples: u64,
}

/// The kernel's state of the one CPU, which the handler shares.
struct Kernel {
    driver: Option<Driver>,
    tasks: [Task; TASKS],
    current: usize,
    interrupts: u64,
    not_ours: u64,
}

const IDLE: Task = Task { event: None, samples: 0 };
static mut KERNEL: Kernel =
    Kernel { driver: None, tasks: [IDLE; TASKS], current: 0, interrupts: 0, not_ours: 0 };

/// The guide's second step: the PMU's interrupt, an NMI.
extern "C" fn nmi() {
    // SAFETY: the kernel holds no reference while counters run; see `switch_to`.
    let kernel = unsafe { &mut *(&raw mut KERNEL) };
    let Some(driver) = &mut kernel.driver else { return };
    let task = &mut kernel.tasks[kernel.current];
    // The guide's third step: a clock. Cycles pass for nanoseconds: old interrupts are claimed for a shorter while.
    let outcome = driver.handle_pmi(&mut Registers, time(), &mut |_: &Overflow<'_>| {
        task.samples += 1;
        Verdict::Sampled
    });
    kernel.not_ours += u64::from(outcome == PmiOutcome::NotOurs);
    kernel.interrupts += 1;
}

/// The guide's fourth step: the running task's event leaves the counter, another one's comes.
fn switch_to(next: usize) -> bool {
    // SAFETY: the first access below stops all counters; an NMI from before then finds the state whole, and after the
    // last one it is whole again.
    let kernel = unsafe { &mut *(&raw mut KERNEL) };
    let Some(driver) = &mut kernel.driver else { return false };
    driver.disable(&mut Registers);
    kernel.tasks[kernel.current].event = driver.stop(&mut Registers, COUNTER);
    kernel.current = next;
    let Some(event) = kernel.tasks[next].event.take() else { return false };
    let started = driver.start(&mut Registers, COUNTER, event).is_ok();
    driver.enable(&mut Registers);
    started
}

fn samples() -> u64 {
    // SAFETY: volatile reads of numbers that the handler changes.
    unsafe {
        (&raw const KERNEL.tasks[0].samples).read_volatile()
            + (&raw const KERNEL.tasks[1].samples).read_volatile()
    }
}

extern "C" fn main() {
    // SAFETY: the VMM has written the parameters before it started this program.
    let parameters = unsafe { PARAMETERS.read_volatile() };
    set_gates();
    let Some(model) = model() else {
        report(Outcome::NoModel as u32);
        return;
    };
    // The guide's first step: the driver on the bus of this CPU.
    let mut driver = Driver::new(model);
    driver.init(&mut Registers);
    let event = Event::new(EventConfig::sampling(parameters.code, parameters.period));
    let started = driver.start(&mut Registers, COUNTER, event).is_ok();
    // SAFETY: no counter runs yet, so no NMI comes while this reference lives.
    let kernel = unsafe { &mut *(&raw mut KERNEL) };
    kernel.driver = Some(driver);
    kernel.tasks[1].event = Some(event);
    if !started {
        report(Outcome::NotStarted as u32);
        return;
    }
    let mut rounds = 0;
    let mut task = 0;
    while samples() < parameters.samples && rounds < parameters.rounds_max {
        task = (task + 1) % TASKS;
        if !switch_to(task) {
            report(Outcome::NotStarted as u32);
            return;
        }
        for _ in 0..TURN * (task as u64 + 1) {
            rounds += 1;
            core::hint::black_box(rounds);
        }
    }
    finish();
}

fn finish() {
    // SAFETY: as in `switch_to`; no counter runs afterwards.
    let kernel = unsafe { &mut *(&raw mut KERNEL) };
    let Some(driver) = &mut kernel.driver else { return };
    driver.disable(&mut Registers);
    kernel.tasks[kernel.current].event = driver.stop(&mut Registers, COUNTER);
    report(Outcome::Tasks as u32);
    report_long(kernel.not_ours);
    report_long(kernel.interrupts);
    for task in &kernel.tasks {
        report_long(task.samples);
        report_long(task.event.as_ref().map_or(0, |event| event.count()));
    }
}
