//! The branch records of one CPU over its context switches.

use super::{
    Action, BranchFilter, BranchStack, CallStackSwitch, LbrEvent, LbrPolicy, LbrRegisters,
    OwnerTag, Running, TaskRecords,
};
use crate::bus::PmuBus;
use crate::lbr::call_stack::LastSaved;

/// Statistics of a CPU's branch records.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct LbrStatistics {
    /// Tasks that came in.
    pub switches: u64,
    /// Resets, whatever their reason.
    pub resets: u64,
    /// Call stacks that were saved.
    pub saved: u64,
    /// Call stacks that were written back.
    pub restored: u64,
    /// Call stacks that were still in the registers.
    pub skipped: u64,
    /// Reads that showed less than there was, because it could be somebody else's.
    pub withheld: u64,
}

/// Keeps the branch records of one CPU apart between address spaces.
///
/// It follows what the operating system tells it, and makes the register accesses that follow. While
/// no event samples branches, calls do nothing.
#[derive(Clone, Debug)]
pub struct LbrContext<P = OwnerTag> {
    registers: LbrRegisters,
    cpu: u32,
    policy: P,
    /// The recorded branches; `None` while no event wants records.
    filter: Option<BranchFilter>,
    last_saved: LastSaved,
    statistics: LbrStatistics,
}

impl<P: LbrPolicy> LbrContext<P> {
    /// The records of CPU `cpu`, a number that no other CPU has.
    pub const fn new(registers: LbrRegisters, cpu: u32, policy: P) -> LbrContext<P> {
        LbrContext {
            registers,
            cpu,
            policy,
            filter: None,
            last_saved: LastSaved::NONE,
            statistics: LbrStatistics {
                switches: 0,
                resets: 0,
                saved: 0,
                restored: 0,
                skipped: 0,
                withheld: 0,
            },
        }
    }

    /// Statistics so far.
    pub const fn statistics(&self) -> &LbrStatistics {
        &self.statistics
    }

    /// A first event that samples branches was installed while `running` runs, or the filter changes.
    /// The filter is not written: [`LbrRegisters::enable`] or
    /// [`Driver::enable_branches`](crate::driver::Driver::enable_branches) does.
    pub fn install(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        running: Running,
        filter: BranchFilter,
    ) {
        self.filter = Some(filter);
        self.handle(bus, LbrEvent::Installed(running));
    }

    /// The last event that samples branches is gone.
    pub const fn remove(&mut self) {
        self.filter = None;
        self.last_saved = LastSaved::NONE;
    }

    /// A task leaves the CPU. `running` is the state at this moment: after an exit it has no
    /// address space any more. `task` is where its call stack is kept, where the filter asks for
    /// one.
    pub fn sched_out(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        running: Running,
        task: Option<&mut TaskRecords>,
    ) {
        let Some(filter) = self.filter else { return };
        if let Some(task) = task.filter(|_| filter.call_stack) {
            // Records that a sample may not show are not kept for a later one either.
            let visible = self.policy.view(running, filter).user;
            task.forget();
            match running {
                Running::User(mm) if visible => {
                    self.last_saved = task.save(bus, &self.registers, self.cpu, mm);
                    self.statistics.saved += 1;
                }
                _ => {}
            }
        }
        self.handle(bus, LbrEvent::SchedOut(running.mm()));
    }

    /// A task takes the CPU.
    pub fn sched_in(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        running: Running,
        task: Option<&mut TaskRecords>,
    ) {
        let Some(filter) = self.filter else { return };
        self.statistics.switches += 1;
        let task = task.filter(|_| filter.call_stack);
        if let (Some(task), Running::User(mm)) = (task, running) {
            match task.switch_in(bus, &self.registers, self.cpu, mm, self.last_saved) {
                CallStackSwitch::Skipped => self.statistics.skipped += 1,
                CallStackSwitch::Restored => self.statistics.restored += 1,
                CallStackSwitch::Nothing => {
                    // A call stack begins with nothing, also within one address space.
                    self.handle(bus, LbrEvent::Installed(running));
                    return;
                }
            }
            self.last_saved = LastSaved::NONE;
            self.handle(bus, LbrEvent::Restored(mm));
            return;
        }
        // The running task may record, so that the registers no longer hold the saved state.
        if running != Running::Kernel || filter.kernel {
            self.last_saved = LastSaved::NONE;
        }
        self.handle(bus, LbrEvent::SchedIn(running));
    }

    /// The running task gave up its address space, or has another since an exec.
    pub fn mm_dropped(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        self.notice(bus, LbrEvent::MmDropped);
    }

    /// A kernel thread took an address space or gave it back.
    pub fn adopted(&mut self, bus: &mut (impl PmuBus + ?Sized), running: Running) {
        self.notice(bus, LbrEvent::Adopted(running));
    }

    /// Others have used the registers: a guest, another driver, a CPU that was switched off.
    pub fn foreign(&mut self, bus: &mut (impl PmuBus + ?Sized), running: Running) {
        self.notice(bus, LbrEvent::Foreign(running));
    }

    /// Reads the records that a sample of `running` may show.
    pub fn read(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        running: Running,
        reader: BranchFilter,
        stack: &mut BranchStack,
    ) {
        stack.clear();
        if self.filter.is_none() {
            return;
        }
        self.registers.read(bus, stack);
        self.show(running, reader, stack);
    }

    /// Leaves of records that were read already, as by the driver in an interrupt, those that a sample
    /// of `running` may show.
    pub fn show(&mut self, running: Running, reader: BranchFilter, stack: &mut BranchStack) {
        let before = stack.as_slice().len();
        self.policy.view(running, reader).apply(stack);
        self.statistics.withheld += u64::from(stack.as_slice().len() < before);
    }

    fn notice(&mut self, bus: &mut (impl PmuBus + ?Sized), event: LbrEvent) {
        if self.filter.is_some() {
            self.last_saved = LastSaved::NONE;
            self.handle(bus, event);
        }
    }

    fn handle(&mut self, bus: &mut (impl PmuBus + ?Sized), event: LbrEvent) {
        if self.policy.on(event) == Action::Reset {
            self.registers.reset(bus);
            self.last_saved = LastSaved::NONE;
            self.statistics.resets += 1;
        }
    }
}
