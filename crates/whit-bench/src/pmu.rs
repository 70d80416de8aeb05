//! The comparisons behind `whit bench pmi`, `lbr` and `sched`: what driving a PMU costs, in register
//! accesses on simulated hardware, and modelled time.
//!
//! Everything here is deterministic but [`host`], which measures this machine.

pub mod host;
pub mod lbr;
pub mod pmi;
pub mod sched;
pub mod traces;

use serde::Serialize;
use whit_pmu::bus::{Accesses, Tally};
use whit_pmu::sim::cost::CostModel;

use crate::markdown::{line_to, number};

/// Version of the JSON forms; a change that readers must know of raises it.
pub const SCHEMA: u32 = 1;

/// Accesses of one operation, on average.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct PerOperation {
    /// Average number of WRMSR accesses.
    pub wrmsr: f64,
    /// Average number of RDMSR accesses.
    pub rdmsr: f64,
    /// Average number of RDPMC accesses.
    pub rdpmc: f64,
}

impl PerOperation {
    fn of(tally: Tally, operations: u64) -> PerOperation {
        let mean = |count: u64| count as f64 / operations.max(1) as f64;
        PerOperation {
            wrmsr: mean(tally.wrmsr),
            rdmsr: mean(tally.rdmsr),
            rdpmc: mean(tally.rdpmc),
        }
    }

    /// `5 W + 2 R`; reads of both kinds are one.
    fn text(self) -> String {
        let count = |value: f64| {
            if value.fract() == 0.0 { format!("{value:.0}") } else { number(value) }
        };
        match (self.wrmsr, self.rdmsr + self.rdpmc) {
            (0.0, 0.0) => "–".to_owned(),
            (writes, 0.0) => format!("{} W", count(writes)),
            (0.0, reads) => format!("{} R", count(reads)),
            (writes, reads) => format!("{} W + {} R", count(writes), count(reads)),
        }
    }
}

/// Modelled time of one operation under each cost model, in nanoseconds.
fn times_ns(accesses: &Accesses, operations: u64) -> Vec<f64> {
    let mean = |cost: CostModel| cost.time_ns(accesses) / operations.max(1) as f64;
    CostModel::ALL.map(mean).to_vec()
}

fn cost_headings() -> impl Iterator<Item = String> {
    CostModel::ALL.into_iter().map(|cost| format!("{} ns", cost.name))
}

fn cost_parameters_to(text: &mut String) {
    for cost in CostModel::ALL {
        let CostModel { name, rdmsr_ns, wrmsr_ns, rdpmc_ns } = cost;
        line_to(
            text,
            &format!("- {name}: RDMSR {rdmsr_ns} ns, WRMSR {wrmsr_ns} ns, RDPMC {rdpmc_ns} ns"),
        );
    }
}

fn strings<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}
