//! The machine that is explored.

use alloc::vec::Vec;
use core::fmt;

use crate::lbr::{Action, BranchFilter, LbrEvent, LbrPolicy, MmId, Running};

/// CPUs that a state has room for.
pub const CPUS_MAX: usize = 2;
/// Address spaces that a state has room for.
pub const MMS_MAX: usize = 3;

/// Something that happens.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Number of the CPU.
    pub cpu: usize,
    /// The event.
    pub kind: StepKind,
}

/// Steps by their kind, without their parameters: the axis of coverage.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// The CPU switches to a task of an address space: another process, a thread, a vfork's child.
    Switch(MmId),
    /// The CPU switches to a kernel thread or to idle.
    SwitchToKernel,
    /// The running task takes branches.
    Run,
    /// The task gives up its address space; its last switch is still to come.
    Exit,
    /// The task has another address space now.
    Exec(MmId),
    /// A kernel thread starts to work in an address space.
    Borrow(MmId),
    /// It stops that.
    Return,
    /// The task goes to the other CPU; this one is idle.
    Migrate,
    /// An event is installed.
    AddEvent(BranchFilter),
    /// The event is gone.
    RemoveEvent,
    /// The idle CPU sleeps, which zeroes records.
    DeepSleep,
    /// The task runs a guest, which takes branches.
    Guest,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}: ", self.cpu)?;
        match self.kind {
            StepKind::Switch(mm) => write!(f, "switch to a task of mm {}", mm.get()),
            StepKind::SwitchToKernel => f.write_str("switch to a kernel thread"),
            StepKind::Run => f.write_str("run"),
            StepKind::Exit => f.write_str("exit (the mm is dropped)"),
            StepKind::Exec(mm) => write!(f, "exec into mm {}", mm.get()),
            StepKind::Borrow(mm) => write!(f, "the kernel thread borrows mm {}", mm.get()),
            StepKind::Return => f.write_str("the kernel thread returns the mm"),
            StepKind::Migrate => f.write_str("the task migrates"),
            StepKind::AddEvent(filter) if filter.kernel => f.write_str("add event any"),
            StepKind::AddEvent(_) => f.write_str("add event any,u"),
            StepKind::RemoveEvent => f.write_str("remove the event"),
            StepKind::DeepSleep => f.write_str("deep sleep"),
            StepKind::Guest => f.write_str("run a guest"),
        }
    }
}

/// Owners of the records that may be in the registers: two bits for each address space, then the
/// others.
type Contents = u16;

const GUEST: Contents = 1 << (2 * MMS_MAX);
const KERNEL_THREAD: Contents = 2 << (2 * MMS_MAX);

fn user(mm: MmId) -> Contents {
    1 << (2 * (mm.get() - 1))
}

fn kernel(mm: MmId) -> Contents {
    user(mm) << 1
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Cpu<P> {
    policy: P,
    contents: Contents,
    running: Running,
    filter: Option<BranchFilter>,
}

/// A state of the machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct State<P> {
    cpus: [Cpu<P>; CPUS_MAX],
}

impl<P: LbrPolicy + Clone> Cpu<P> {
    fn handle(&mut self, event: LbrEvent) {
        if self.filter.is_some() && self.policy.on(event) == Action::Reset {
            self.contents = 0;
        }
    }

    fn switch(&mut self, running: Running) {
        self.handle(LbrEvent::SchedOut(self.running.mm()));
        self.running = running;
        self.handle(LbrEvent::SchedIn(running));
    }

    fn record(&mut self) {
        let Some(filter) = self.filter else { return };
        let (user, kernel) = match self.running {
            Running::User(mm) => (user(mm), kernel(mm)),
            Running::Borrowed(mm) => (0, kernel(mm)),
            Running::Kernel => (0, KERNEL_THREAD),
        };
        self.contents |= if filter.user { user } else { 0 };
        self.contents |= if filter.kernel { kernel } else { 0 };
    }

    fn take(&mut self, kind: StepKind) {
        match kind {
            StepKind::Switch(mm) => self.switch(Running::User(mm)),
            StepKind::SwitchToKernel | StepKind::Migrate => self.switch(Running::Kernel),
            StepKind::Run => self.record(),
            StepKind::Exit => {
                self.running = Running::Kernel;
                self.handle(LbrEvent::MmDropped);
            }
            StepKind::Exec(mm) => {
                self.running = Running::User(mm);
                self.handle(LbrEvent::MmDropped);
            }
            StepKind::Borrow(mm) => self.adopt(Running::Borrowed(mm)),
            StepKind::Return => self.adopt(Running::Kernel),
            StepKind::AddEvent(filter) => {
                self.filter = Some(filter);
                self.handle(LbrEvent::Installed(self.running));
            }
            StepKind::RemoveEvent => self.filter = None,
            StepKind::DeepSleep => self.contents = 0,
            StepKind::Guest => {
                self.contents |= if self.filter.is_some() { GUEST } else { 0 };
                self.handle(LbrEvent::Foreign(self.running));
            }
        }
    }

    fn adopt(&mut self, running: Running) {
        self.running = running;
        self.handle(LbrEvent::Adopted(running));
    }

    /// Whether a sample taken now would show forbidden records, to this event's reader or to one
    /// with fewer rights.
    fn leaks(&self) -> bool {
        let Some(filter) = self.filter else { return false };
        [filter, BranchFilter { kernel: false, ..filter }].iter().any(|reader| {
            let view = self.policy.view(self.running, *reader);
            let mut shown = 0;
            for mm in (1..=MMS_MAX as u64).filter_map(MmId::new) {
                shown |= if view.user { user(mm) } else { 0 };
                shown |= if view.kernel { kernel(mm) } else { 0 };
            }
            shown |= if view.kernel { KERNEL_THREAD } else { 0 };
            shown |= if view.user || view.kernel { GUEST } else { 0 };
            let own = match self.running.mm() {
                Some(mm) => user(mm) | kernel(mm),
                // A kernel thread is no address space whose sample could show another's.
                None => !GUEST,
            };
            let visible = self.contents & shown;
            let foreign = visible & !(own | KERNEL_THREAD) != 0;
            let above_rights = !reader.kernel && visible & (KERNEL_THREAD | kernels()) != 0;
            foreign || above_rights
        })
    }
}

fn kernels() -> Contents {
    (1..=MMS_MAX as u64).filter_map(MmId::new).fold(0, |bits, mm| bits | kernel(mm))
}

impl<P: LbrPolicy + Clone> State<P> {
    pub(super) fn new(policy: P) -> State<P> {
        let cpu = Cpu { policy, contents: 0, running: Running::Kernel, filter: None };
        State { cpus: [cpu.clone(), cpu] }
    }

    pub(super) fn leaks(&self, cpus: usize) -> bool {
        self.cpus[..cpus].iter().any(Cpu::leaks)
    }

    /// All that can happen next.
    pub(super) fn steps(&self, cpus: usize, mms: usize, filters: &[BranchFilter]) -> Vec<Step> {
        let mut steps = Vec::new();
        for (cpu, state) in self.cpus[..cpus].iter().enumerate() {
            let mut add = |kind| steps.push(Step { cpu, kind });
            add(StepKind::Run);
            add(StepKind::SwitchToKernel);
            for mm in (1..=mms as u64).filter_map(MmId::new) {
                add(StepKind::Switch(mm));
                match state.running {
                    Running::User(current) if current != mm => add(StepKind::Exec(mm)),
                    Running::Kernel => add(StepKind::Borrow(mm)),
                    _ => {}
                }
            }
            match state.running {
                Running::User(_) => {
                    add(StepKind::Exit);
                    add(StepKind::Guest);
                    if cpus > 1 {
                        add(StepKind::Migrate);
                    }
                }
                Running::Kernel => add(StepKind::DeepSleep),
                Running::Borrowed(_) => add(StepKind::Return),
            }
            match state.filter {
                None => filters.iter().for_each(|filter| add(StepKind::AddEvent(*filter))),
                Some(_) => add(StepKind::RemoveEvent),
            }
        }
        steps
    }

    pub(super) fn take(&self, step: Step) -> State<P> {
        let mut next = self.clone();
        let moved = next.cpus[step.cpu].running;
        next.cpus[step.cpu].take(step.kind);
        if step.kind == StepKind::Migrate {
            next.cpus[1 - step.cpu].switch(moved);
        }
        next
    }
}
