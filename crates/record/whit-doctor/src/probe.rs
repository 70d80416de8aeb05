//! The questions of the checks to the kernel.

use whit_perfdata::attr::Attr;
use whit_sys::Errno;
use whit_types::{CpuId, Pid};

/// The CPU or thread on which an event is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The calling thread, on any CPU.
    ThisThread,
    /// Another process.
    Process(Pid),
    /// Everything on one CPU.
    Cpu(CpuId),
}

/// The count of an event while the probe worked for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// The count.
    pub value: u64,
    /// Nanoseconds for which the event was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds for which it was on the PMU.
    pub running_ns: u64,
}

/// The result of loading the programs that unwind stacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineTrial {
    /// They are loaded.
    Runs {
        /// The most instructions that the verifier looked at for one of them, where the kernel tells.
        instructions: Option<u32>,
        /// Optional features that this kernel lacks, each with the first Linux that has it.
        without: Option<String>,
    },
    /// The kernel lacks this, each with the first Linux that has it.
    Lacks(Vec<String>),
    /// The kernel refuses, and says this.
    Refused(String),
}

/// Access to the kernel for the checks. Each call opens its events and closes them again.
pub trait Probe {
    /// Counts the event on the calling thread over a little work that causes every generic
    /// event: computation, branches, memory, page faults, context switches.
    ///
    /// # Errors
    ///
    /// The errno of the call that failed.
    fn count(&mut self, attr: &Attr) -> Result<Count, Errno>;

    /// Samples the calling thread over the same work; gives the number of samples.
    ///
    /// # Errors
    ///
    /// The errno of the call that failed.
    fn sample(&mut self, attr: &Attr) -> Result<u64, Errno>;

    /// Opens the event and closes it.
    ///
    /// # Errors
    ///
    /// The errno of the opening.
    fn open(&mut self, attr: &Attr, target: Target) -> Result<(), Errno>;

    /// Opens the event, lets it run for a moment in which user space computes, and closes it.
    ///
    /// # Errors
    ///
    /// The errno of the call that failed.
    fn run(&mut self, attr: &Attr, target: Target) -> Result<Count, Errno>;

    /// Nanoseconds of each of `rounds` readings of the event's count.
    ///
    /// # Errors
    ///
    /// The errno of the call that failed.
    fn time_reads(&mut self, attr: &Attr, rounds: usize) -> Result<Vec<u64>, Errno>;

    /// Nanoseconds of each of `rounds` openings and closings of the event.
    ///
    /// # Errors
    ///
    /// The errno of the call that failed.
    fn time_opens(&mut self, attr: &Attr, rounds: usize) -> Result<Vec<u64>, Errno>;

    /// Nanoseconds that each interrupt of the sampling event takes from the thread that is
    /// sampled, from `rounds` comparisons of the same work with and without it. Zero where the
    /// difference drowns in the noise; shorter than `rounds` where no interrupt came.
    ///
    /// # Errors
    ///
    /// The errno of the call that failed.
    fn time_interrupts(&mut self, attr: &Attr, rounds: usize) -> Result<Vec<u64>, Errno>;

    /// Loads a BPF program that does nothing, and unloads it.
    ///
    /// # Errors
    ///
    /// The errno of the loading.
    fn load_bpf(&mut self) -> Result<(), Errno>;

    /// Loads the programs of the bpf engine, and unloads them.
    fn load_engine(&mut self) -> EngineTrial;
}
