//! Cost of one performance monitoring interrupt, by protocol.

use std::ffi::OsString;

use anyhow::Result;
use clap::{ArgGroup, Args};
use serde::Serialize;
use whit_pmu::bus::RegisterClass;
use whit_pmu::counter::CounterIndex;
use whit_pmu::driver::{Event, EventConfig};
use whit_pmu::known_models as models;
use whit_pmu::lbr::BranchFilter;
use whit_pmu::model::PmuModel;
use whit_pmu::pmi::{Overflow, PmiSink, Verdict};
use whit_pmu::sim::machine::{Machine, MachineBus};
use whit_pmu::sim::{Branch, MaskedPmi, SimulationParameters};

use super::{PerOperation, cost_headings, cost_parameters_to, host, times_ns};
use crate::args::{heading, rounds};
use crate::bench::{Bench, Figures, Say};
use crate::page::{Cell, Page, number};
use crate::setup::Setup;

const CYCLES: u16 = 0x3c;
/// The fixed period of the published measurement (Andi Kleen, 2015).
pub(crate) const PERIOD: u64 = 100_000;
/// Cycles from an overflow to its interrupt.
const SKID_CYCLES: u32 = 40;
/// Cycles of a register access on bare metal, which counters that are not frozen count.
const ACCESS_CYCLES: u64 = 100;
/// Branches between two interrupts: more than there are records.
const BRANCHES: u64 = 40;
const PMC0: CounterIndex = CounterIndex::general(0);
const FIXED_CYCLES: CounterIndex = CounterIndex::fixed(1);

const EXAMPLES: &str = "\
Examples:
  whit bench pmi --interrupts 10000
  whit bench pmi --host --rounds 3 -- ./server --bench";

#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("setup").args(Setup::IDS).multiple(true).requires("host")
)]
pub(crate) struct Options {
    /// Interrupts of each protocol
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help_heading = heading::RUNS)]
    interrupts: u64,

    /// Measure the NMI handlers of this machine instead, with perf and with whit; needs a hardware
    /// PMU and root
    #[arg(long, help_heading = heading::COMPARED)]
    host: bool,

    /// With --host: runs of each recorder with each set of options
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds(), requires = "host",
          help_heading = heading::RUNS)]
    rounds: usize,

    /// With --host: the command to profile [default: 5 seconds of the workload `deep`]
    #[arg(last = true, value_name = "COMMAND", requires = "host", help_heading = heading::COMPARED)]
    command: Vec<OsString>,

    #[command(flatten, next_help_heading = heading::SETUP_OF_HOST)]
    setup: Setup,
}

/// Figures of simulated hardware, or of this machine.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Pmi {
    Simulated(Comparison),
    Host(host::Comparison),
}

impl Bench for Options {
    type Figures = Pmi;

    fn run(&self, say: Say<'_>) -> Result<Pmi> {
        Ok(match self.host {
            true => Pmi::Host(host::compare(&self.command, self.rounds, &self.setup, say)?),
            false => Pmi::Simulated(compare(self.interrupts)),
        })
    }
}

impl Figures for Pmi {
    fn show(&self, page: &mut Page) {
        match self {
            Pmi::Simulated(comparison) => show(comparison, page),
            Pmi::Host(comparison) => host::show(comparison, page),
        }
    }

    fn of_this_machine(&self) -> bool {
        matches!(self, Pmi::Host(_))
    }
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) interrupts: u64,
    /// One row per protocol.
    pub(crate) rows: Vec<Row>,
    /// Counts that freezing loses.
    pub(crate) gaps: Vec<Gap>,
}

/// One protocol on one PMU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    /// Name of the protocol of acknowledging interrupts.
    pub(crate) protocol: String,
    /// The PMU's own control: what the published counts are made of.
    pub(crate) control: PerOperation,
    /// Register accesses and time of an interrupt whose handler works counter by counter.
    pub(crate) counters: PerOperation,
    pub(crate) branches: PerOperation,
    /// LVTPC.
    pub(crate) apic: PerOperation,
    /// All of them under each cost model.
    pub(crate) time_ns: Vec<f64>,
}

/// Counts that freezing loses, at one skid.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Gap {
    /// Cycles from the overflow to the interrupt.
    pub(crate) skid_cycles: u32,
    /// Cycles for each interrupt that were not counted, as the simulation knows.
    pub(crate) lost_cycles: f64,
    /// The same as the driver measured it.
    pub(crate) measured_cycles: f64,
    /// Share of all cycles, in thousandths.
    pub(crate) lost_permille: u64,
}

struct Scenario {
    name: &'static str,
    model: PmuModel,
    freezing: bool,
    precise: bool,
    branches: bool,
}

fn scenarios() -> [Scenario; 8] {
    let plain =
        |name, model| Scenario { name, model, freezing: false, precise: false, branches: false };
    let skylake = models::skylake;
    let verified = PmuModel { verify_after_late_ack: true, ..skylake() };
    [
        Scenario { precise: true, ..plain("Intel classic, PEBS event", skylake()) },
        plain("Intel classic", skylake()),
        plain("Intel classic, late ack verified", verified),
        Scenario { freezing: true, ..plain("Intel frozen", skylake()) },
        Scenario { branches: true, ..plain("Intel classic, branch records", skylake()) },
        Scenario {
            freezing: true,
            branches: true,
            ..plain("Intel frozen, branch records", skylake())
        },
        plain("AMD PerfMonV2", models::zen4()),
        plain("AMD before PerfMonV2", models::zen3()),
    ]
}

/// Runs every protocol for so many interrupts.
pub(crate) fn compare(interrupts: u64) -> Comparison {
    let rows = scenarios().iter().map(|scenario| row(scenario, interrupts)).collect();
    let gaps = [0, SKID_CYCLES, 400].map(|skid| gap(skid, interrupts)).to_vec();
    Comparison { interrupts, rows, gaps }
}

/// Takes PEBS records out of the simulated hardware's buffer.
struct Sink;

impl PmiSink<MachineBus> for Sink {
    fn overflow(&mut self, _: &mut MachineBus, _: &Overflow<'_>) -> Verdict {
        Verdict::Sampled
    }

    fn drain_pebs(&mut self, bus: &mut MachineBus, counter: CounterIndex) -> u32 {
        bus.get_mut().take_pebs_records(counter)
    }
}

fn machine(scenario: &Scenario, skid: u32, counting: Option<CounterIndex>) -> Machine {
    let parameters = SimulationParameters {
        skid,
        masked: MaskedPmi::Latch,
        per_access: (CYCLES, ACCESS_CYCLES),
    };
    let mut machine = Machine::new(scenario.model, parameters);
    machine.bus.get_mut().set_pebs_reload(PMC0, PERIOD);
    let sampling = EventConfig::sampling(CYCLES.into(), PERIOD);
    let config = EventConfig { precise: scenario.precise, branches: scenario.branches, ..sampling };
    let Machine { bus, driver, .. } = &mut machine;
    // A counter that there is, and free: this cannot be refused.
    let _ = driver.start(bus, PMC0, Event::new(config));
    if let Some(counter) = counting {
        let _ = driver.start(bus, counter, Event::new(EventConfig::counting(CYCLES.into())));
    }
    if scenario.branches {
        driver.enable_branches(bus, BranchFilter::ALL);
    }
    driver.set_freezing(bus, scenario.freezing);
    driver.enable(bus);
    machine
}

fn run(machine: &mut Machine, interrupts: u64) {
    while machine.handled().0 < interrupts {
        for n in 1..=BRANCHES {
            machine.bus.get_mut().branch(Branch { from: n, to: n, info: 0 });
        }
        machine.run(CYCLES, PERIOD / 2, &mut Sink);
    }
}

fn row(scenario: &Scenario, interrupts: u64) -> Row {
    let mut machine = machine(scenario, SKID_CYCLES, None);
    run(&mut machine, interrupts);
    let (handled, accesses) = machine.handled();
    let of = |class| PerOperation::of(accesses.of(class), handled);
    Row {
        protocol: scenario.name.to_owned(),
        control: of(RegisterClass::Control),
        counters: of(RegisterClass::Counter),
        branches: of(RegisterClass::Branch),
        apic: of(RegisterClass::Apic),
        time_ns: times_ns(accesses, handled),
    }
}

fn gap(skid_cycles: u32, interrupts: u64) -> Gap {
    let scenarios = scenarios();
    // The frozen protocol without branch records.
    let frozen = &scenarios[3];
    let mut machine = machine(frozen, skid_cycles, Some(FIXED_CYCLES));
    machine.driver.measure_gap(FIXED_CYCLES, 1);
    run(&mut machine, interrupts);
    let truth = machine.pmu().truth(FIXED_CYCLES);
    let lost = truth.frozen_in_skid + truth.frozen_in_handler;
    let measured = machine.driver.freeze_gap().unwrap_or_default();
    Gap {
        skid_cycles,
        lost_cycles: lost as f64 / machine.handled().0 as f64,
        measured_cycles: measured.cycles as f64 / measured.interrupts.max(1) as f64,
        lost_permille: measured.lost_permille(),
    }
}

/// The published table: perf's options, average ns of an NMI handler before and with freezing.
const PUBLISHED: [(&str, u64, u64); 4] = [
    ("-c 100000 (none before)", 962, 445),
    ("-g", 1753, 966),
    ("--call-graph lbr", 3770, 2433),
    ("--call-graph dwarf", 2055, 1478),
];

/// The result as text.
fn show(comparison: &Comparison, page: &mut Page) {
    page.fact("simulated hardware; register accesses of one interrupt with one overflow");
    page.fact(format_args!(
        "{} interrupts, period {PERIOD}, skid {SKID_CYCLES} cycles",
        comparison.interrupts
    ));
    cost_parameters_to(page);
    let headings = ["protocol", "control", "counters", "branches", "LVTPC"].map(str::to_owned);
    let rows = comparison.rows.iter().map(|row| {
        let parts = [row.control, row.counters, row.branches, row.apic].map(PerOperation::text);
        let times = row.time_ns.iter().map(|ns| number(*ns));
        [row.protocol.clone()].into_iter().chain(parts).chain(times).collect()
    });
    page.table(headings.into_iter().chain(cost_headings()), 1, rows);
    published_to(page, comparison);
    page.paragraph("What freezing does not count, of 100 cycles an access in the handler:");
    let columns: [Cell<Gap>; 4] = [
        ("skid cycles", |gap| gap.skid_cycles.to_string()),
        ("lost cycles/interrupt", |gap| number(gap.lost_cycles)),
        ("measured by the driver", |gap| number(gap.measured_cycles)),
        ("lost ‰", |gap| gap.lost_permille.to_string()),
    ];
    page.columns(0, &columns, &comparison.gaps);
}

fn published_to(page: &mut Page, comparison: &Comparison) {
    let control = |name: &str| {
        let row = comparison.rows.iter().find(|row| row.protocol == name);
        row.map_or_else(|| "?".to_owned(), |row| row.control.text())
    };
    let (classic, frozen) = (control("Intel classic, PEBS event"), control("Intel frozen"));
    page.paragraph(
        "Published beside ours (control registers of a PEBS counter, classic → frozen):",
    );
    page.fact(format_args!("published 5 W + 2 R → 1 W + 1 R, here {classic} → {frozen}"));
    page.fact("published average length of the NMI handler, a kernel build on Skylake:");
    let rows = PUBLISHED.iter().map(|(options, classic, frozen)| {
        let less = 100 * (classic - frozen) / classic;
        vec![(*options).to_owned(), classic.to_string(), frozen.to_string(), less.to_string()]
    });
    page.table(["perf options", "classic ns", "frozen ns", "less %"], 1, rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_counts_are_in_the_table() {
        let comparison = compare(20);
        let mut page = Page::default();
        show(&comparison, &mut page);
        let text = page.into_text();
        assert!(text.contains("here 5 W + 2 R → 1 W + 1 R"), "{text}");
        assert!(text.contains("| AMD PerfMonV2 "), "{text}");
        assert!(comparison.rows[3].time_ns < comparison.rows[1].time_ns);
        for gap in &comparison.gaps {
            // The first interrupt is where the measurement begins.
            assert!(
                (gap.lost_cycles - gap.measured_cycles).abs() < 0.06 * gap.lost_cycles,
                "{gap:?}"
            );
            assert!(gap.lost_cycles >= f64::from(gap.skid_cycles));
        }
    }
}
