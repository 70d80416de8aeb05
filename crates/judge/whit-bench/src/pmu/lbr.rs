//! Cost of keeping branch records apart at context switches, by policy.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use whit_pmu::bus::Counting;
use whit_pmu::known_models as models;
use whit_pmu::lbr::explore::{Exploration, Found};
use whit_pmu::lbr::{
    BranchFilter, FlushAlways, LastOwnerRule, LbrContext, LbrPolicy, LbrRegisters, MmId, OwnerTag,
    Running,
};
use whit_pmu::model::PmuModel;
use whit_pmu::sim::{SimulatedPmu, SimulationParameters};

use super::traces::{Switch, Trace};
use super::{SwitchArgs, cost_headings, cost_parameters_to, strings, times_ns};
use crate::bench::{Bench, Figures, Say};
use crate::page::{Page, number};

/// States after which a search gives up.
const STATES_MAX: usize = 5_000_000;

const EXAMPLES: &str = "\
Example:
  whit bench lbr --switches 1000000";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(flatten)]
    load: SwitchArgs,
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, _: Say<'_>) -> Result<Comparison> {
        Ok(compare(self.load.switches))
    }
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) switches: u64,
    pub(crate) reset_wrmsr: Vec<(String, u64)>,
    /// One row per trace and policy.
    pub(crate) rows: Vec<Row>,
    /// Results of a search over all events, by policy.
    pub(crate) leaks: Vec<Leak>,
}

/// A policy on a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) trace: String,
    pub(crate) policy: String,
    pub(crate) resets: f64,
    /// WRMSRs, of one switch, on Skylake.
    pub(crate) wrmsr: f64,
    /// Time of one switch's register accesses under each cost model.
    pub(crate) time_ns: Vec<f64>,
}

/// Result of a search over all events.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Leak {
    pub(crate) policy: String,
    pub(crate) states: usize,
    /// True where the search visited all.
    pub(crate) complete: bool,
    /// The steps to a sample that shows another process's branches; none where there is no such.
    pub(crate) steps: Option<Vec<String>>,
}

/// Runs every policy on every trace.
pub(crate) fn compare(switches: u64) -> Comparison {
    let models = [
        ("Ivy Bridge", models::ivy_bridge()),
        ("Skylake", models::skylake()),
        ("Sapphire Rapids", models::sapphire_rapids()),
        ("Zen 4", models::zen4()),
    ];
    let reset_wrmsr =
        models.iter().map(|(name, model)| ((*name).to_owned(), reset(*model))).collect();
    let mut rows = Vec::new();
    for trace in Trace::ALL {
        let steps = trace.switches(switches);
        rows.push(row(trace, "classic", &steps, FlushAlways));
        rows.push(row(trace, "last owner", &steps, LastOwnerRule::default()));
        rows.push(row(trace, "owner tag", &steps, OwnerTag::default()));
    }
    let leaks = vec![
        leak("classic", FlushAlways),
        leak("last owner", LastOwnerRule::default()),
        leak("owner tag", OwnerTag::default()),
    ];
    Comparison { switches, reset_wrmsr, rows, leaks }
}

fn reset(model: PmuModel) -> u64 {
    let Some(lbr) = model.lbr else { return 0 };
    let mut bus = Counting::new(SimulatedPmu::new(model, SimulationParameters::default()));
    LbrRegisters::new(lbr).reset(&mut bus);
    bus.accesses().total().wrmsr
}

fn running(switch: Option<Switch>) -> Running {
    let mm = switch.and_then(|switch| switch.to).and_then(|(process, _)| MmId::new(process));
    mm.map_or(Running::Kernel, Running::User)
}

fn row(trace: Trace, name: &str, steps: &[Switch], policy: impl LbrPolicy) -> Row {
    let model = models::skylake();
    let mut bus = Counting::new(SimulatedPmu::new(model, SimulationParameters::default()));
    let registers = model.lbr.map(LbrRegisters::new);
    let Some(registers) = registers else { unreachable!("Skylake has branch records") };
    let mut context = LbrContext::new(registers, 0, policy);
    context.install(&mut bus, Running::Kernel, BranchFilter::USER);
    let (before, resets) = (*bus.accesses(), context.statistics().resets);
    let mut now = None;
    for step in steps {
        context.sched_out(&mut bus, running(now), None);
        now = Some(*step);
        context.sched_in(&mut bus, running(now), None);
    }
    let accesses = bus.accesses().since(&before);
    let switches = steps.len() as u64;
    let per_switch = |count: u64| count as f64 / switches.max(1) as f64;
    Row {
        trace: trace.name(),
        policy: name.to_owned(),
        resets: per_switch(context.statistics().resets - resets),
        wrmsr: per_switch(accesses.total().wrmsr),
        time_ns: times_ns(&accesses, switches),
    }
}

fn leak(name: &str, policy: impl LbrPolicy + Clone + Ord) -> Leak {
    let filters = [BranchFilter::USER];
    let exploration = Exploration { cpus: 2, mms: 3, filters: &filters, states_max: STATES_MAX };
    let Found { states, complete, leak, .. } = exploration.run(policy);
    let steps = leak.map(|steps| steps.iter().map(ToString::to_string).collect());
    Leak { policy: name.to_owned(), states, complete, steps }
}

impl Figures for Comparison {
    fn show(&self, page: &mut Page) {
        page.fact("simulated hardware (Skylake: 32 records with INFO); user mode, no call stacks");
        page.fact(format_args!("{} switches a trace", self.switches));
        let resets = self.reset_wrmsr.iter().map(|(name, count)| format!("{name} {count}"));
        let resets = resets.collect::<Vec<_>>().join(", ");
        page.fact(format_args!("WRMSRs of one reset: {resets}; Linux writes LBR_SELECT as well"));
        cost_parameters_to(page);
        let headings = ["switches", "policy", "resets/switch", "WRMSR/switch"].map(str::to_owned);
        let rows = self.rows.iter().map(|row| {
            let cells = [row.trace.clone(), row.policy.clone(), format!("{:.3}", row.resets)];
            let costs = [row.wrmsr].into_iter().chain(row.time_ns.iter().copied()).map(number);
            cells.into_iter().chain(costs).collect()
        });
        page.table(headings.into_iter().chain(cost_headings()), 2, rows);
        page.paragraph("All sequences of events on 2 CPUs with 3 address spaces:");
        page.notes(self.leaks.iter().map(|leak| {
            let end = match &leak.steps {
                Some(steps) => {
                    format!("a sample shows another process's branches: {}", steps.join("; "))
                }
                None if leak.complete => "no sample shows another process's branches".to_owned(),
                None => "the search gave up".to_owned(),
            };
            format!("{}, {} states: {end}", leak.policy, leak.states)
        }));
        page.paragraph("Published, DaCapo avrora under `perf record --branch-filter any,u`:");
        let rows =
            [["without", "6508", ""], ["classic", "19831", "205%"], ["last owner", "10350", "59%"]];
        page.table(["", "ms", "overhead"], 1, rows.map(strings));
    }

    fn of_this_machine(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::page;

    #[test]
    fn ours_resets_no_more_than_the_others_and_alone_does_not_leak() {
        let comparison = compare(2000);
        for rows in comparison.rows.chunks(3) {
            let [classic, seed, ours] = rows else { panic!("three policies") };
            assert!(
                ours.resets <= classic.resets && ours.resets <= seed.resets + 0.001,
                "{ours:?}"
            );
            assert!((classic.resets - 1.0).abs() < f64::EPSILON);
        }
        assert!(comparison.rows[2].resets < 0.001, "threads of one process");
        let leaks: Vec<_> = comparison.leaks.iter().map(|leak| leak.steps.is_some()).collect();
        assert_eq!(leaks, [true, true, false]);
        assert!(page(None, &comparison).contains("Sapphire Rapids 1, Zen 4 32"));
    }
}
