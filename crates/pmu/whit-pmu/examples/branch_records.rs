//! Keeps branch records of two processes apart, and shows why the obvious rule does not.
//!
//! `cargo run -p whit-pmu --features sim --example branch_records`

use whit_pmu::bus::{Counting, PmuBus};
use whit_pmu::known_models as models;
use whit_pmu::lbr::explore::Exploration;
use whit_pmu::lbr::{
    BranchFilter, BranchStack, LastOwnerRule, LbrContext, LbrRegisters, MmIds, OwnerTag, Running,
};
use whit_pmu::sim::{Branch, SimulatedPmu, SimulationParameters};
use whit_pmu::{bits::debugctl, msr};

fn main() {
    let model = models::skylake();
    let Some(lbr) = model.lbr else { return };
    let mut bus = Counting::new(SimulatedPmu::new(model, SimulationParameters::default()));
    let registers = LbrRegisters::new(lbr);
    registers.enable(&mut bus, BranchFilter::USER);
    bus.wrmsr(msr::IA32_DEBUGCTL, debugctl::LBR);

    let ids = MmIds::new();
    let (Some(first), Some(second)) = (ids.allocate(), ids.allocate()) else { return };
    let (first, second) = (Running::User(first), Running::User(second));
    let mut context = LbrContext::new(registers, 0, OwnerTag::default());
    context.install(&mut bus, first, BranchFilter::USER);

    // The scheduler's part: the task that leaves, and the next one.
    let tasks = [first, Running::Kernel, first, second, Running::Kernel, first];
    let mut stack = BranchStack::new();
    for (number, pair) in tasks.windows(2).enumerate() {
        let from = 0x40_0000 + number as u64;
        bus.get_mut().branch(Branch { from, to: from + 8, info: 1 });
        let before = bus.accesses().total().wrmsr;
        context.sched_out(&mut bus, pair[0], None);
        context.sched_in(&mut bus, pair[1], None);
        let writes = bus.accesses().total().wrmsr - before;
        context.read(&mut bus, pair[1], BranchFilter::USER, &mut stack);
        println!(
            "{:?} -> {:?}: {writes} WRMSR, {} records to show",
            pair[0],
            pair[1],
            stack.as_slice().len()
        );
    }

    let filters = [BranchFilter::USER];
    let exploration = Exploration { cpus: 1, mms: 2, filters: &filters, states_max: 100_000 };
    println!(
        "\nA sequence after which the rule \"reset where another came in than went out\" leaks:"
    );
    for step in exploration.run(LastOwnerRule::default()).leak.iter().flatten() {
        println!("  {step}");
    }
}
