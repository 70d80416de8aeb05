use crate::bits::debugctl;
use crate::bus::PmuBus;
use crate::known_models as models;
use crate::lbr::*;
use crate::model::PmuModel;
use crate::msr;
use crate::sim::{Branch, Privilege, SimulatedPmu, SimulationParameters};
use proptest::prelude::*;
use std::vec::Vec;

/// Two CPUs and three tasks; two tasks share an address space.
struct Machine {
    cpus: [(SimulatedPmu, LbrContext); 2],
    tasks: Vec<(MmId, TaskRecords, Option<usize>)>,
    running: [Option<usize>; 2],
    next_branch: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Switch(usize, usize),
    Idle(usize),
    Branch(usize),
    DeepSleep(usize),
    Exec(usize),
    Guest(usize),
}

fn mm(number: u64) -> MmId {
    MmId::new(number).unwrap()
}

impl Machine {
    fn new(model: PmuModel, filter: BranchFilter) -> Machine {
        let registers = LbrRegisters::new(model.lbr.unwrap());
        let cpu = |number| {
            let mut pmu = SimulatedPmu::new(model, SimulationParameters::default());
            registers.enable(&mut pmu, filter);
            pmu.wrmsr(msr::IA32_DEBUGCTL, debugctl::LBR);
            let mut context = LbrContext::new(registers, number, OwnerTag::default());
            context.install(&mut pmu, Running::Kernel, filter);
            (pmu, context)
        };
        let task = |id: u64| (mm(id.max(2)), TaskRecords::new(id), None);
        Machine {
            cpus: [cpu(0), cpu(1)],
            tasks: (1..4).map(task).collect(),
            running: [None; 2],
            next_branch: 1,
        }
    }

    fn what_runs(&self, cpu: usize) -> Running {
        self.running[cpu].map_or(Running::Kernel, |task| Running::User(self.tasks[task].0))
    }

    /// Registers as the hardware shows them.
    fn registers(&mut self, cpu: usize) -> Vec<BranchRecord> {
        let (pmu, _) = &mut self.cpus[cpu];
        let mut stack = BranchStack::new();
        LbrRegisters::new(pmu.model().lbr.unwrap()).read(pmu, &mut stack);
        stack.as_slice().to_vec()
    }

    fn out(&mut self, cpu: usize) {
        let running = self.what_runs(cpu);
        let (pmu, context) = &mut self.cpus[cpu];
        let task = self.running[cpu].take();
        if let Some(task) = task {
            self.tasks[task].2 = None;
        }
        context.sched_out(pmu, running, task.map(|task| &mut self.tasks[task].1));
    }

    fn switch(&mut self, cpu: usize, task: Option<usize>) {
        let free = task.is_none_or(|task| self.tasks[task].2.is_none_or(|on| on == cpu));
        if !free {
            return;
        }
        self.out(cpu);
        self.running[cpu] = task;
        let running = self.what_runs(cpu);
        let skipped = self.cpus[cpu].1.statistics().skipped;
        let saved = task.and_then(|task| {
            self.tasks[task].2 = Some(cpu);
            self.tasks[task].1.saved.clone()
        });
        let (pmu, context) = &mut self.cpus[cpu];
        context.sched_in(pmu, running, task.map(|task| &mut self.tasks[task].1));
        if let Some(saved) = saved {
            // Skipped or restored: the registers are bit for bit as they were saved.
            let skipped = context.statistics().skipped > skipped;
            let restored = saved.mm == running.mm().unwrap();
            assert!(restored || !skipped);
            if restored {
                assert_eq!(self.registers(cpu), saved.records.records());
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Switch(cpu, task) => self.switch(cpu, Some(task)),
            Step::Idle(cpu) => self.switch(cpu, None),
            Step::Branch(cpu) => {
                let kernel = self.running[cpu].is_none();
                // The address says whose branch it is.
                let owner =
                    self.running[cpu].map_or(1 << 60, |task| self.tasks[task].0.get() << 32);
                let (pmu, _) = &mut self.cpus[cpu];
                pmu.set_privilege(if kernel { Privilege::Kernel } else { Privilege::User });
                let from = owner | self.next_branch;
                pmu.branch(Branch { from, to: from, info: self.next_branch });
                self.next_branch += 1;
            }
            Step::DeepSleep(cpu) if self.running[cpu].is_none() => self.cpus[cpu].0.deep_sleep(),
            Step::DeepSleep(_) => {}
            Step::Exec(cpu) => {
                if let Some(task) = self.running[cpu] {
                    self.next_branch += 1;
                    self.tasks[task].0 = mm(100 + self.next_branch);
                    let (pmu, context) = &mut self.cpus[cpu];
                    context.mm_dropped(pmu);
                }
            }
            Step::Guest(cpu) => {
                let running = self.what_runs(cpu);
                let (pmu, context) = &mut self.cpus[cpu];
                pmu.branch(Branch { from: 7777 << 32, to: 7777 << 32, info: 0 });
                context.foreign(pmu, running);
            }
        }
    }

    /// A sample shows branches of its own address space alone.
    fn check(&mut self, cpu: usize) {
        let Some(own) = self.what_runs(cpu).mm() else { return };
        let (pmu, context) = &mut self.cpus[cpu];
        let mut stack = BranchStack::new();
        context.read(pmu, Running::User(own), BranchFilter::USER, &mut stack);
        for record in stack.as_slice() {
            assert_eq!(record.from >> 32, own.get(), "a record of another address space");
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let cpu = 0..2_usize;
    prop_oneof![
        4 => (cpu.clone(), 0..3_usize).prop_map(|(cpu, task)| Step::Switch(cpu, task)),
        2 => cpu.clone().prop_map(Step::Idle),
        5 => cpu.clone().prop_map(Step::Branch),
        1 => cpu.clone().prop_map(Step::DeepSleep),
        1 => cpu.clone().prop_map(Step::Exec),
        1 => cpu.prop_map(Step::Guest),
    ]
}

proptest! {
    #![proptest_config(crate::testing::cases(400))]

    #[test]
    fn call_stacks_are_kept_with_their_own_task(
        model in prop::sample::select(std::vec![models::skylake(), models::sapphire_rapids()]),
        call_stack in any::<bool>(),
        kernel in any::<bool>(),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let filter = BranchFilter { user: true, kernel, call_stack };
        let mut machine = Machine::new(model, filter);
        for step in &steps {
            machine.take(step);
            (0..2).for_each(|cpu| machine.check(cpu));
        }
        let violations = machine.cpus.iter().map(|(pmu, _)| pmu.violation());
        prop_assert!(violations.flatten().next().is_none());
    }
}

#[test]
fn a_call_stack_that_is_still_there_is_not_written() {
    let mut machine = Machine::new(models::skylake(), BranchFilter::USER_CALL_STACK);
    let counts = |machine: &Machine| {
        let statistics = *machine.cpus[0].1.statistics();
        (statistics.saved, statistics.skipped, statistics.restored, statistics.resets)
    };
    for step in [Step::Switch(0, 0), Step::Branch(0), Step::Idle(0), Step::Switch(0, 0)] {
        machine.take(&step);
    }
    // Resets: the installation, and the first time in.
    assert_eq!(counts(&machine), (1, 1, 0, 2));
    for step in [Step::Idle(0), Step::DeepSleep(0), Step::Switch(0, 0)] {
        machine.take(&step);
    }
    assert_eq!(counts(&machine), (2, 1, 1, 2), "zeroed while it slept");
    for step in
        [Step::Idle(0), Step::Switch(1, 0), Step::Branch(1), Step::Idle(1), Step::Switch(0, 0)]
    {
        machine.take(&step);
    }
    assert_eq!(counts(&machine), (3, 1, 2, 2), "it has run elsewhere");
    assert_eq!(machine.registers(0).len(), 2);
    for step in [Step::Switch(0, 1), Step::Switch(0, 0)] {
        machine.take(&step);
    }
    assert_eq!(counts(&machine), (5, 1, 3, 3), "another task has run here");
}
