//! Counts as they are asked for: by cgroup, CPU and event.

use whit_types::CpuId;

use super::counts::{Count, Table};
use super::tree::Tree;

/// All counts at one time. What cgroups, the remainder and everything have counted fits together
/// exactly, because it is made of the same reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    table: Table,
    tree: Tree,
    possible_cpus: Vec<u32>,
}

impl Counts {
    pub(super) fn new(table: Table, tree: Tree, possible_cpus: Vec<u32>) -> Counts {
        Counts { table, tree, possible_cpus }
    }

    /// What the cgroup with this index, and all below it, has counted on a CPU. Nothing on a CPU
    /// that the machine cannot have.
    pub fn cgroup(&self, cgroup: usize, cpu: CpuId, event: usize) -> Count {
        self.cell(self.tree.account(cgroup), cpu, event)
    }

    /// What was counted in no watched cgroup, nor below any.
    pub fn remainder(&self, cpu: CpuId, event: usize) -> Count {
        self.cell(0, cpu, event)
    }

    /// What was counted in all cgroups.
    pub fn everything(&self, cpu: CpuId, event: usize) -> Count {
        let tops = self.tree.tops().map(|account| self.cell(account, cpu, event));
        tops.fold(self.remainder(cpu, event), Count::plus)
    }

    fn cell(&self, account: usize, cpu: CpuId, event: usize) -> Count {
        let position = self.possible_cpus.binary_search(&cpu.0).ok();
        position.map_or(Count::default(), |position| self.table.cell(account, position, event))
    }
}
