//! The CPU below the hypervisor, and the host's own use of its PMU.

use crate::model::CounterIndex;

/// The CPU that a vCPU runs on. Interrupts are off, so that nothing comes between two calls.
pub trait HostCpu {
    /// Reads a register of this CPU.
    fn rdmsr(&mut self, msr: u32) -> u64;

    /// Writes a register of this CPU.
    fn wrmsr(&mut self, msr: u32, value: u64);

    /// Reads a counter by its own instruction.
    fn rdpmc(&mut self, counter: CounterIndex) -> u64;

    /// Writes LVTPC of the CPU's own local APIC.
    fn write_lvtpc(&mut self, entry: u32);

    /// Intel: the value of IA32_PERF_GLOBAL_CTRL that the CPU saved at the last exit (VMCS, *save
    /// IA32_PERF_GLOBAL_CTRL*). AMD has no such field, and this is not called.
    fn exit_control(&mut self) -> u64;

    /// Intel: the value that the CPU loads at the next entry (VMCS, *load IA32_PERF_GLOBAL_CTRL*). At the exit it
    /// loads the host's own value: 0 from [`HostCpu::host_leaves`] to [`HostCpu::host_returns`]. Not called on AMD,
    /// whose event selects say whether they count in guests.
    fn set_entry_control(&mut self, value: u64);

    /// The host's events that exclude guests stop and leave the PMU. The result has the bits, as those of the
    /// control register, of counters that the host has used since the last call: their registers may hold anything,
    /// those of the others hold zeros. The host gives its LVTPC up, too.
    fn host_leaves(&mut self) -> u64;

    /// The host's events and its LVTPC come back.
    fn host_returns(&mut self);
}
