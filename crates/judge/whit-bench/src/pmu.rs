//! The comparisons behind `whit bench pmi`, `lbr` and `sched`: what driving a PMU costs, in register
//! accesses on simulated hardware, and modelled time.
//!
//! Everything here is deterministic but [`host`], which measures this machine.

pub(crate) mod host;
pub(crate) mod lbr;
pub(crate) mod pmi;
pub(crate) mod sched;
pub(crate) mod traces;

use clap::Args;
use serde::Serialize;
use whit_pmu::bus::{Accesses, Tally};
use whit_pmu::sim::cost::CostModel;

use crate::args::heading;
use crate::page::{Page, number};

/// The load of comparisons of context switches.
#[derive(Args, Debug)]
pub(crate) struct SwitchArgs {
    /// Context switches of each case
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..=100_000_000),
          help_heading = heading::RUNS)]
    switches: u64,
}

/// Accesses of one operation, on average.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub(crate) struct PerOperation {
    /// Average number of WRMSR accesses.
    pub(crate) wrmsr: f64,
    /// Average number of RDMSR accesses.
    pub(crate) rdmsr: f64,
    /// Average number of RDPMC accesses.
    pub(crate) rdpmc: f64,
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

fn cost_parameters_to(page: &mut Page) {
    for CostModel { name, rdmsr_ns, wrmsr_ns, rdpmc_ns } in CostModel::ALL {
        let costs = format!("RDMSR {rdmsr_ns} ns, WRMSR {wrmsr_ns} ns, RDPMC {rdpmc_ns} ns");
        page.fact(format_args!("{name}: {costs}"));
    }
}

fn strings<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}
