//! Samples instructions on a simulated Skylake, as a kernel would on a real one: classic, then frozen.
//!
//! `cargo run -p whit-pmu --features sim --example sample`

use whit_pmu::bus::RegisterClass;
use whit_pmu::counter::CounterIndex;
use whit_pmu::driver::{Event, EventConfig};
use whit_pmu::known_models as models;
use whit_pmu::pmi::{Overflow, Verdict};
use whit_pmu::sim::SimulationParameters;
use whit_pmu::sim::machine::Machine;

const INSTRUCTIONS: u16 = 0x00c0;

fn main() -> Result<(), whit_pmu::driver::StartError> {
    for freezing in [false, true] {
        let parameters = SimulationParameters { skid: 20, ..SimulationParameters::default() };
        let mut machine = Machine::new(models::skylake(), parameters);
        let Machine { bus, driver, .. } = &mut machine;

        // A sampling event, and one beside it that only counts.
        let (sampling, counting) = (CounterIndex::general(0), CounterIndex::fixed(0));
        driver.start(bus, sampling, Event::new(EventConfig::sampling(0xc0, 1000)))?;
        driver.start(bus, counting, Event::new(EventConfig::counting(0xc0)))?;
        driver.set_freezing(bus, freezing);
        driver.enable(bus);

        // A kernel's NMI handler calls Driver::handle_pmi; the simulated machine does that here.
        let mut samples = 0;
        machine.run(INSTRUCTIONS, 100_000, &mut |_: &Overflow<'_>| {
            samples += 1;
            Verdict::Sampled
        });

        let (interrupts, accesses) = machine.handled();
        let control = accesses.of(RegisterClass::Control);
        let counted = machine.driver.read(&mut machine.bus, counting).unwrap_or_default();
        println!(
            "{}: {samples} samples, {interrupts} interrupts of {} W + {} R each, counted {counted} of 100000",
            if freezing { "frozen " } else { "classic" },
            control.wrmsr / interrupts,
            control.rdmsr / interrupts,
        );
    }
    Ok(())
}
