//! A program without std and without an allocator that drives a PMU. The panic handler would be a
//! second one where anything brought std in, and a missing allocator would be an error where anything
//! brought alloc in.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use whit_pmu::bus::{Counting, PmuBus};
use whit_pmu::counter::{CounterIndex, CounterMask};
use whit_pmu::driver::{Driver, Event, EventConfig};
use whit_pmu::model::{AckOrder, FreezeGate, PmuKind, PmuModel};
use whit_pmu::msr::{IA32_PERF_GLOBAL_STATUS, IA32_PERF_GLOBAL_STATUS_RESET, Msr};
use whit_pmu::pmi::{Overflow, PmiOutcome, Verdict};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// The prebuilt core names it; panics do not unwind here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// A status register with one overflow.
struct Registers {
    status: u64,
}

impl PmuBus for Registers {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        if msr == IA32_PERF_GLOBAL_STATUS { self.status } else { 0 }
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        if msr == IA32_PERF_GLOBAL_STATUS_RESET {
            self.status &= !value;
        }
    }
}

const MODEL: PmuModel = PmuModel {
    kind: PmuKind::Intel,
    version: 4,
    general: CounterMask::first_general(4),
    general_width: 48,
    fixed: CounterMask::first_fixed(3),
    fixed_width: 48,
    full_width_writes: true,
    pebs: false,
    ack: AckOrder::Mid,
    verify_after_late_ack: false,
    freeze: FreezeGate::Passed,
    lbr: None,
};

/// 0 where the overflow was sampled.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    let mut bus = Counting::new(Registers { status: 0 });
    let mut driver = Driver::new(MODEL);
    driver.init(&mut bus);
    let event = Event::new(EventConfig::sampling(0xc0, 1000));
    if driver.start(&mut bus, CounterIndex::general(0), event).is_err() {
        return 1;
    }
    driver.enable(&mut bus);
    bus.get_mut().status = 1;
    let mut samples = 0;
    let outcome = driver.handle_pmi(&mut bus, 0, &mut |_: &Overflow<'_>| {
        samples += 1;
        Verdict::Sampled
    });
    if outcome == PmiOutcome::Handled(1) && samples == 1 { 0 } else { 2 }
}
