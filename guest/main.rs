//! A guest that samples with `whit-pmu`: no operating system, no std, no allocator.
//!
//! The VMM starts it in long mode with an identity map of the first GiB, a stack, a GDT whose second entry is
//! 64-bit code, and [`Parameters`] at [`PARAMETERS`]. It describes its PMU by CPUID, samples an event until it has
//! enough samples, and reports by 32-bit words to port 0x510; then it halts. NMIs are its PMU's.

#![no_std]
#![no_main]

mod machine;

use whit_pmu::counter::CounterIndex;
use whit_pmu::driver::{Driver, Event, EventConfig};
use whit_pmu::pmi::{Overflow, PmiOutcome, Verdict};

use machine::{Registers, model, report, report_long, set_gates, time};

/// Where the parameters are.
const PARAMETERS: *const Parameters = 0x8000 as *const Parameters;
/// Most samples whose handlers' lengths are kept.
const LENGTHS_MAX: usize = 4096;

/// The VMM's parameters.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parameters {
    /// Samples to take, up to [`LENGTHS_MAX`].
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
    Sampled = 1,
    NoModel = 2,
    NotStarted = 3,
}

/// State that the handler and the program share. There is one CPU; the handler is an NMI's and does not
/// nest.
struct State {
    driver: Option<Driver>,
    interrupts: u64,
    samples: u64,
    not_ours: u64,
    lengths: [u32; LENGTHS_MAX],
}

static mut STATE: State =
    State { driver: None, interrupts: 0, samples: 0, not_ours: 0, lengths: [0; LENGTHS_MAX] };

extern "C" fn nmi() {
    let start = time();
    // SAFETY: the program holds no reference while NMIs can come; see `main`.
    let state = unsafe { &mut *(&raw mut STATE) };
    let Some(driver) = &mut state.driver else { return };
    let mut samples = 0;
    let outcome = driver.handle_pmi(&mut Registers, start, &mut |_: &Overflow<'_>| {
        samples += 1;
        Verdict::Sampled
    });
    state.not_ours += u64::from(outcome == PmiOutcome::NotOurs);
    state.samples += samples;
    if let Some(length) = state.lengths.get_mut(state.interrupts as usize) {
        *length = (time() - start) as u32;
    }
    state.interrupts += 1;
}

extern "C" fn main() {
    // SAFETY: the VMM has written the parameters before it started this program.
    let parameters = unsafe { PARAMETERS.read_volatile() };
    set_gates();
    let Some(model) = model() else {
        report(Outcome::NoModel as u32);
        return;
    };
    let counter = CounterIndex::general(0);
    let event = Event::new(EventConfig::sampling(parameters.code, parameters.period));
    let mut driver = Driver::new(model);
    driver.init(&mut Registers);
    if driver.start(&mut Registers, counter, event).is_err() {
        report(Outcome::NotStarted as u32);
        return;
    }
    // SAFETY: no counter runs yet, so no NMI comes while this reference lives.
    unsafe { (&raw mut STATE.driver).write(Some(driver)) };
    // From here on NMIs may come at any instruction, so the driver is the handler's but for this call,
    // whose last access starts the counter, and the one that stops it.
    // SAFETY: `enable` changes its state before that access; a handler that comes after it finds it whole.
    if let Some(driver) = unsafe { (*(&raw mut STATE)).driver.as_mut() } {
        driver.enable(&mut Registers);
    }
    let mut rounds = 0;
    // SAFETY: a volatile read of a number that the handler changes.
    while unsafe { (&raw const STATE.samples).read_volatile() } < parameters.samples
        && rounds < parameters.rounds_max
    {
        rounds += 1;
        core::hint::black_box(rounds);
    }
    finish(counter);
}

fn finish(counter: CounterIndex) {
    // SAFETY: `disable` stops the counter with its first access that matters; a handler that comes before
    // leaves the driver whole, and none comes after.
    let state = unsafe { &mut *(&raw mut STATE) };
    let Some(driver) = &mut state.driver else { return };
    driver.disable(&mut Registers);
    let count = driver.read(&mut Registers, counter).unwrap_or_default();
    report(Outcome::Sampled as u32);
    report_long(state.samples);
    report_long(count);
    report_long(state.not_ours);
    report_long(state.interrupts);
    for length in state.lengths.iter().take(state.interrupts as usize) {
        report(*length);
    }
}
