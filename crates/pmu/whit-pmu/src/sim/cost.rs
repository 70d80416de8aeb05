//! Costs of register accesses.

use crate::bus::{Accesses, Tally};

/// Time of one access of each kind, in nanoseconds.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct CostModel {
    /// Name for tables.
    pub name: &'static str,
    /// Time of one read of a model-specific register.
    pub rdmsr_ns: f64,
    /// Time of one write to a model-specific register.
    pub wrmsr_ns: f64,
    /// Time of one read of a counter by `rdpmc`.
    pub rdpmc_ns: f64,
}

impl CostModel {
    /// On the hardware itself.
    pub const BARE_METAL: CostModel =
        CostModel { name: "bare metal", rdmsr_ns: 30.0, wrmsr_ns: 70.0, rdpmc_ns: 10.0 };
    /// Under a hypervisor with hardware support: each access leaves the guest.
    pub const VIRTUALIZED: CostModel =
        CostModel { name: "virtualized", rdmsr_ns: 1300.0, wrmsr_ns: 1500.0, rdpmc_ns: 1300.0 };
    /// Trapped and emulated in software or below a second hypervisor.
    pub const EMULATED: CostModel = CostModel {
        name: "trap and emulate",
        rdmsr_ns: 10_000.0,
        wrmsr_ns: 12_000.0,
        rdpmc_ns: 10_000.0,
    };
    /// All three.
    pub const ALL: [CostModel; 3] =
        [CostModel::BARE_METAL, CostModel::VIRTUALIZED, CostModel::EMULATED];

    /// Time of all accesses, in nanoseconds.
    #[must_use]
    pub fn time_ns(&self, accesses: &Accesses) -> f64 {
        self.tally_ns(accesses.total())
    }

    /// Time of a tally, in nanoseconds.
    #[must_use]
    pub fn tally_ns(&self, tally: Tally) -> f64 {
        tally.rdmsr as f64 * self.rdmsr_ns
            + tally.wrmsr as f64 * self.wrmsr_ns
            + tally.rdpmc as f64 * self.rdpmc_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_access_costs_its_own_time() {
        let model = CostModel { name: "test", rdmsr_ns: 3.0, wrmsr_ns: 50.0, rdpmc_ns: 700.0 };
        assert_eq!(model.tally_ns(Tally { rdmsr: 2, wrmsr: 3, rdpmc: 4 }), 6.0 + 150.0 + 2800.0);
    }
}
