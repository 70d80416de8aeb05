//! Counting events per cgroup at the price of one read per event and change of cgroup.
//!
//! A [`CgroupCounter`] is loaded for a number of events and a set of cgroups; each CPU is then
//! given its open events ([`CgroupCounter::add_cpu`]), and counting begins with
//! [`CgroupCounter::attach`]. The opener of the events switches them on and off. They must be
//! opened for the CPU (not for a task or cgroup), must not be inherited, and stay open as long as
//! the counter.

mod counts;
mod how;
mod layout;
mod program;
pub(crate) use program::OBJECT;
mod reading;
mod tree;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use whit_types::CpuId;

pub use counts::Count;
use counts::Table;
pub use how::{How, Of};
pub use layout::EVENTS_MAX;
use layout::{ACCOUNTS_MAX, CpuState};
use program::{Flushed, Program};
pub use reading::Counts;
pub use tree::Cgroup;
use tree::Tree;

use crate::error::BpfError;

/// Highest number of a CPU (the kernel's largest `NR_CPUS` is 8192).
const CPU_MAX: u32 = 65_535;

/// The events and cgroups to count.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The events that each CPU has, at most [`EVENTS_MAX`]. The first is a timed one.
    pub events: &'a [How],
    /// The cgroups, by which counts are asked for.
    pub cgroups: &'a [Cgroup],
    /// The CPUs that the machine may have (`/sys/devices/system/cpu/possible`), ascending.
    pub possible_cpus: &'a [u32],
}

/// How counting went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Times that a CPU went from one account to another, reading each event once.
    pub changes: u64,
    /// Reads that the kernel refused; what the event counted stays with a later read.
    pub failed_reads: u64,
    /// Times that another task ran than the one that was last seen coming: some kernels do not show
    /// the switches of some tasks. The counts since then went to the task that ran.
    pub unseen_switches: u64,
    /// Cgroups that were too deep below any watched one to be told from unwatched ones.
    pub too_deep: u64,
}

/// Counts events per cgroup.
#[derive(Debug)]
pub struct CgroupCounter {
    program: Program,
    tree: Arc<Tree>,
    events: Vec<How>,
    /// For each event, the one that has its times.
    timed_by: Vec<usize>,
    possible_cpus: Arc<[u32]>,
    /// CPUs with events, in the order in which they were added.
    cpus: Vec<u32>,
    /// Counts of offline CPUs up to their last read.
    left: Table,
    is_attached: bool,
}

impl CgroupCounter {
    /// Loads the programs. Nothing is counted yet.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses, or something is more than fits.
    pub fn load(plan: &Plan<'_>) -> Result<CgroupCounter, BpfError> {
        let room = |what, wanted, room| match wanted <= room {
            true => Ok(()),
            false => Err(BpfError::Room { what, wanted, room }),
        };
        let tree = Arc::new(Tree::new(plan.cgroups));
        room("events that are counted per cgroup", plan.events.len(), EVENTS_MAX)?;
        room("cgroups", tree.accounts(), ACCOUNTS_MAX)?;
        let highest = plan.possible_cpus.last().copied().unwrap_or(0);
        room("CPUs", highest as usize, CPU_MAX as usize)?;
        let cells = (highest as usize + 1) * tree.accounts();
        room("cgroups times CPUs", cells, u32::MAX as usize)?;
        let program = Program::load(plan.events, highest as usize + 1, &tree)?;
        let left = Table::new(tree.accounts(), plan.possible_cpus.len(), plan.events.len());
        Ok(CgroupCounter {
            program,
            tree,
            events: plan.events.to_vec(),
            timed_by: timed_by(plan.events),
            possible_cpus: plan.possible_cpus.into(),
            cpus: Vec::new(),
            left,
            is_attached: false,
        })
    }

    /// Gives a CPU its events, by their index; `None` for one that this CPU has not, or that is not
    /// read. A CPU that was offline is given new ones, after [`CgroupCounter::retire_cpu`].
    ///
    /// # Errors
    ///
    /// Where the kernel does not take an event, as one that is inherited.
    pub fn add_cpu(
        &mut self,
        cpu: CpuId,
        events: &[Option<BorrowedFd<'_>>],
    ) -> Result<(), BpfError> {
        self.position(cpu)?;
        if self.is_attached {
            self.program.halt(cpu.0)?;
        }
        for (event, fd) in events.iter().enumerate().take(self.events.len()) {
            let index = (cpu.0 as usize * self.events.len() + event) as u32;
            self.program.set_event(index, *fd, self.events[event].is_software)?;
        }
        if !self.cpus.contains(&cpu.0) {
            self.cpus.push(cpu.0);
        }
        if self.is_attached { self.program.begin(cpu.0) } else { Ok(()) }
    }

    /// Counts from here on, what its events count.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn attach(&mut self) -> Result<(), BpfError> {
        if !self.is_attached {
            self.program.attach()?;
            self.is_attached = true;
            self.cpus.iter().try_for_each(|&cpu| self.program.begin(cpu))?;
        }
        Ok(())
    }

    /// A CPU has gone offline: `last` is what its events show, which nobody reads any more. It
    /// belongs to the cgroup that ran there last.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses to tell what that was.
    pub fn retire_cpu(&mut self, cpu: CpuId, last: &[Count]) -> Result<(), BpfError> {
        let position = self.position(cpu)?;
        if !self.cpus.contains(&cpu.0) {
            return Ok(());
        }
        self.cpus.retain(|&other| other != cpu.0);
        let state = self.state(position)?;
        let account = (state.account as usize).min(self.tree.accounts() - 1);
        let since = |event: usize| Some(last.get(event)?.since(*state.last.get(event)?));
        for event in (0..self.events.len()).filter(|event| state.present >> event & 1 == 1) {
            let Some(times) = since(self.timed_by[event]) else { continue };
            let value = match self.events[event].of {
                Of::Time => times.running_ns,
                _ => since(event).unwrap_or_default().value,
            };
            let cell = self.left.cell_mut(account, position, event);
            *cell = cell.plus(Count { value, ..times });
        }
        Ok(())
    }

    /// The CPUs that have events now.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        self.cpus.iter().map(|&cpu| CpuId(cpu))
    }

    /// Brings the accounts of all CPUs up to date and reads them. CPUs that have gone offline keep
    /// their last counts.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn read(&self) -> Result<Counts, BpfError> {
        let mut offline = Vec::new();
        if self.is_attached {
            for &cpu in &self.cpus {
                if self.program.flush(cpu)? == Flushed::CpuIsOffline {
                    offline.push(CpuId(cpu));
                }
            }
        }
        let mut table = self.left.clone();
        let accounts = self.program.accounts();
        for account in 0..self.tree.accounts() {
            for (position, &cpu) in self.possible_cpus.iter().enumerate() {
                for (event, &timed_by) in self.timed_by.iter().enumerate() {
                    let cell = table.cell_mut(account, position, event);
                    *cell = cell.plus(accounts.count(account, cpu, event, timed_by));
                }
            }
        }
        self.tree.add_up(&mut table);
        Ok(Counts {
            table,
            tree: self.tree.clone(),
            possible_cpus: self.possible_cpus.clone(),
            offline,
        })
    }

    /// How counting went so far.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses to tell.
    pub fn health(&self) -> Result<Health, BpfError> {
        let mut health = Health::default();
        for value in self.program.cpus()? {
            let state = CpuState::decode(&value, self.events.len());
            health.changes += state.changes;
            health.failed_reads += state.failed_reads;
            health.unseen_switches += state.unseen;
            health.too_deep += state.too_deep;
        }
        Ok(health)
    }

    /// Whether the program sees every move of a running task to another cgroup at once. If not, it
    /// sees the move at the next change of cgroup on its CPU, and when counts are read.
    pub fn sees_moves(&self) -> bool {
        self.program.sees_moves()
    }

    fn position(&self, cpu: CpuId) -> Result<usize, BpfError> {
        self.possible_cpus.binary_search(&cpu.0).map_err(|_| BpfError::Cpu { cpu: cpu.0 })
    }

    fn state(&self, position: usize) -> Result<CpuState, BpfError> {
        let values = self.program.cpus()?;
        let value = values.get(position).ok_or(BpfError::Object { part: "value for this CPU" })?;
        Ok(CpuState::decode(value, self.events.len()))
    }
}

/// For each event, the nearest timed one at or before it; the first event if there is none.
fn timed_by(events: &[How]) -> Vec<usize> {
    let nearest =
        |event: usize| (0..=event).rev().find(|&other| events[other].is_timed).unwrap_or_default();
    (0..events.len()).map(nearest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_times_of_the_timed_one_before_them() {
        let (timed, untimed) = (How::TIMED, How::UNTIMED);
        let events = [timed, How::CLOCK, untimed, timed, timed.of_switches(), untimed];
        assert_eq!(timed_by(&events), [0, 0, 0, 3, 4, 4]);
        assert_eq!(timed_by(&[]), [0usize; 0]);
    }
}
