//! Counts as they are asked for: by cgroup, CPU and event.

use std::sync::Arc;

use whit_types::CpuId;

use super::counts::{Count, Table};
use super::tree::Tree;

/// All counts at one time. The counts of cgroups, of the remainder and of everything fit together
/// exactly, because they come from the same reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    pub(super) table: Table,
    pub(super) tree: Arc<Tree>,
    pub(super) possible_cpus: Arc<[u32]>,
    pub(super) offline: Vec<CpuId>,
}

impl Counts {
    /// The count of the cgroup with this index, and of all below it, on a CPU. Zero on a CPU that
    /// the machine cannot have.
    pub fn cgroup(&self, cgroup: usize, cpu: CpuId, event: usize) -> Count {
        self.cell(self.tree.account(cgroup), cpu, event)
    }

    /// The count outside of all watched cgroups.
    pub fn remainder(&self, cpu: CpuId, event: usize) -> Count {
        self.cell(0, cpu, event)
    }

    /// The count of all cgroups together.
    pub fn everything(&self, cpu: CpuId, event: usize) -> Count {
        let tops = self.tree.tops().map(|account| self.cell(account, cpu, event));
        tops.fold(self.remainder(cpu, event), Count::plus)
    }

    /// CPUs with events that are offline: their latest counts are missing until they are retired
    /// ([`super::CgroupCounter::retire_cpu`]).
    pub fn offline(&self) -> &[CpuId] {
        &self.offline
    }

    fn cell(&self, account: usize, cpu: CpuId, event: usize) -> Count {
        let position = self.possible_cpus.binary_search(&cpu.0).ok();
        position.map_or(Count::default(), |position| self.table.cell(account, position, event))
    }
}
