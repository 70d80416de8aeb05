//! How often the PMU interrupted, and for how long.
//!
//! On x86 a PMU interrupts by non-maskable interrupts. Since Linux 3.13 the tracepoint
//! `nmi:nmi_handler` reports each handler call, its duration and whether the interrupt was its own.
//! A [`PmiMeter`] adds that up by handler, on all CPUs, for the events of all users. The entry into
//! the interrupt and the way back are not in the handlers' time.

mod layout;
mod program;
pub(crate) use program::OBJECT;

use std::time::Duration;

pub use layout::{HANDLERS_MAX, Handler};
use program::Program;
use whit_sys::Errno;
pub use whit_sys::bpf::RunStatistics;

use crate::error::BpfError;
use crate::run_timer::RunTimer;

/// Programs that a meter has the kernel run.
pub const PROGRAMS: u64 = 1;

/// Adds up what handlers of non-maskable interrupts do, from [`PmiMeter::start`] until it is dropped.
#[derive(Debug)]
pub struct PmiMeter {
    program: Program,
    /// Makes the kernel time the program.
    timer: Result<RunTimer, Errno>,
}

/// The sums so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Sums over all CPUs, of each handler that had something to do.
    pub handlers: Vec<Handler>,
    /// Calls of handlers that are more than [`HANDLERS_MAX`].
    pub unplaced: u64,
}

impl PmiMeter {
    /// Loads the program and has the kernel call it. The kernel is also asked to take the program's
    /// own time ([`RunTimer::start`]), which takes CAP_SYS_ADMIN; without, there is a meter all the same.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses: [`BpfError::is_permission`], [`BpfError::is_absent`] (no such
    /// tracepoint), [`BpfError::is_unsupported`] (no BPF).
    pub fn start(are_on: bool) -> Result<PmiMeter, BpfError> {
        let mut program = Program::load()?;
        let timer = RunTimer::start(are_on);
        program.attach()?;
        Ok(PmiMeter { program, timer })
    }

    /// For how long the program's own time was taken.
    pub fn timed(&self) -> Duration {
        self.timer.as_ref().map(RunTimer::timed).unwrap_or_default()
    }

    /// The sums so far.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses to tell.
    pub fn read(&self) -> Result<Reading, BpfError> {
        let mut reading = Reading::default();
        for value in self.program.cpus()? {
            reading.add(&layout::decode(&value));
        }
        Ok(reading)
    }

    /// How often the program ran while its time was taken, and for how long, as the kernel has it.
    ///
    /// # Errors
    ///
    /// `Errno::PERM` where statistics may not be switched on and are off; `Errno::OPNOTSUPP` where
    /// the kernel keeps none.
    pub fn run_statistics(&self) -> Result<RunStatistics, Errno> {
        let found = self.program.with_fd(whit_sys::bpf::run_statistics)?;
        match &self.timer {
            // Somebody else may have switched them on.
            Err(errno) if found.runs == 0 => Err(*errno),
            _ => Ok(found),
        }
    }

    /// Runs the program as if a handler had been called on a CPU that is online: to try it where no
    /// PMU interrupts.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses (it can since Linux 5.10).
    pub fn pretend(
        &self,
        cpu: u32,
        handler: u64,
        delta_ns: i64,
        handled: i32,
    ) -> Result<(), BpfError> {
        self.program.run([handler, delta_ns as u64, i64::from(handled) as u64], cpu)
    }
}

impl Reading {
    fn add(&mut self, other: &Reading) {
        self.unplaced += other.unplaced;
        for handler in &other.handlers {
            match self.handlers.iter_mut().find(|known| known.address == handler.address) {
                Some(known) => *known = known.plus(handler),
                None => self.handlers.push(*handler),
            }
        }
    }

    /// The sum of the handlers at these addresses; of all handlers where they are not known. The
    /// address of the sum is 0.
    pub fn sum(&self, addresses: Option<&[u64]>) -> Handler {
        let is_meant = |handler: &&Handler| {
            addresses.is_none_or(|addresses| addresses.contains(&handler.address))
        };
        let sum = self.handlers.iter().filter(is_meant).fold(Handler::default(), |a, b| a.plus(b));
        Handler { address: 0, ..sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler(address: u64, calls: u64, time_ns: u64, longest_ns: u64) -> Handler {
        Handler { address, calls, time_ns, longest_ns }
    }

    #[test]
    fn cpus_are_added_up_by_handler() {
        let mut all = Reading::default();
        all.add(&Reading {
            handlers: vec![handler(7, 1, 10, 10), handler(8, 2, 9, 5)],
            unplaced: 1,
        });
        all.add(&Reading { handlers: vec![handler(8, 1, 20, 20)], unplaced: 2 });
        let wanted =
            Reading { handlers: vec![handler(7, 1, 10, 10), handler(8, 3, 29, 20)], unplaced: 3 };
        assert_eq!(all, wanted);
        assert_eq!(all.sum(None), handler(0, 4, 39, 20));
        assert_eq!(all.sum(Some(&[7, 9])), handler(0, 1, 10, 10));
        assert_eq!(all.sum(Some(&[])), Handler::default());
    }
}
