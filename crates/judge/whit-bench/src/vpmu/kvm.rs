//! The same with a real guest: `whit bench vpmu --kvm`.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use whit_vpmu::host::{EventMap, HostEvent, HostPerf, OverflowSignal};
use whit_vpmu::{IntelPmu, PmuModel, VpmuConfig};
use whit_vpmu_kvm::guest::{Run, Work, run};

use super::{Options, Way, mean, no_events};
use crate::error::Error;
use crate::page::{Page, number, spread};
use whit_measure::summary::Spread;

/// The guest's event: instructions, as it thinks.
const CODE: u64 = 0xc0;
/// Its event on the host. Hardware events could leave the host out; no clock can.
const EVENT: HostEvent = HostEvent::TASK_CLOCK;
/// A run that takes longer is stopped.
const LIMIT: Duration = Duration::from_secs(120);
/// Handlers whose lengths the guest keeps.
const INTERRUPTS_MAX: u64 = 4000;

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// Nanoseconds of the vCPU's thread between two samples.
    pub(crate) period_ns: u64,
    /// One row per way.
    pub(crate) rows: Vec<Row>,
}

/// All runs of one way.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Row {
    /// Way of using host events.
    pub(crate) way: Way,
    /// Average length of the guest's handlers in each run, by its own time stamps, in nanoseconds.
    pub(crate) averages_ns: Vec<f64>,
    /// Shortest and longest.
    pub(crate) extremes_ns: (f64, f64),
    /// Samples that the guest took.
    pub(crate) samples: u64,
    /// Overflows that the device saw.
    pub(crate) overflows: u64,
    /// Count of the guest's event.
    pub(crate) counted_ns: u64,
    /// Interrupts that the guest could not explain.
    pub(crate) not_ours: u64,
    pub(crate) nmis: u64,
    pub(crate) msr_exits_per_nmi: f64,
    /// System calls for counters, of one NMI.
    pub(crate) calls_per_nmi: f64,
    /// Host events opened and used again.
    pub(crate) opens: (u64, u64),
}

impl Comparison {
    /// Whether samples are what the host counted: one for each overflow, and no fewer overflows than periods
    /// but for those that were over within a skid.
    pub(crate) fn agrees(&self) -> bool {
        self.rows.iter().all(|row| row.samples == row.overflows && row.not_ours == 0)
    }
}

/// Measures.
pub(crate) fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let signal =
        OverflowSignal::block().map_err(|error| no_events(format!("block SIGIO: {error}")))?;
    let mut rows: Vec<Row> = Way::ALL.map(Row::new).to_vec();
    for round in 1..=options.rounds {
        say(&format!("round {round} of {}", options.rounds));
        for row in &mut rows {
            row.add(&boot(row.way, options, &signal)?);
        }
    }
    Ok(Comparison { period_ns: options.period, rows })
}

fn boot(way: Way, options: &Options, signal: &OverflowSignal) -> Result<Run, Error> {
    const FAILED: &str = "cannot run a guest";
    let model = PmuModel::intel(IntelPmu::default()).context(FAILED)?;
    let mut config = VpmuConfig::new(model);
    config.backing = way.backing();
    let map = EventMap::Table(vec![(CODE, EVENT)]);
    let host = HostPerf::for_this_thread(map, way.options());
    let host = host.map_err(no_events)?;
    let samples = options.interrupts.min(INTERRUPTS_MAX);
    let work = Work { samples, period: options.period, code: CODE, limit: LIMIT };
    run(config, host, &work, signal).context(FAILED)
}

impl Row {
    fn new(way: Way) -> Row {
        Row { way, extremes_ns: (f64::INFINITY, 0.0), ..Row::default() }
    }

    fn add(&mut self, run: &Run) {
        let khz = f64::from(run.tsc_khz.unwrap_or(1_000_000));
        let lengths = run.report.lengths_tsc.iter().map(|cycles| f64::from(*cycles) * 1e6 / khz);
        let lengths: Vec<f64> = lengths.collect();
        self.averages_ns.push(mean(&lengths));
        let (shortest, longest) = self.extremes_ns;
        self.extremes_ns = (
            lengths.iter().copied().fold(shortest, f64::min),
            lengths.iter().copied().fold(longest, f64::max),
        );
        let weight = |before: f64, count: u64| {
            (before * self.nmis as f64 + count as f64) / (self.nmis + run.nmis).max(1) as f64
        };
        let (exits, calls) = (
            weight(self.msr_exits_per_nmi, run.msr_exits),
            weight(self.calls_per_nmi, run.calls.total()),
        );
        (self.msr_exits_per_nmi, self.calls_per_nmi) = (exits, calls);
        self.nmis += run.nmis;
        self.samples += run.report.samples;
        self.overflows += run.statistics.overflows;
        self.counted_ns += run.report.count;
        self.not_ours += run.report.not_ours;
        self.opens.0 += run.statistics.opens;
        self.opens.1 += run.statistics.opens_avoided;
    }
}

/// The result as text.
pub(super) fn show(comparison: &Comparison, page: &mut Page) {
    let period = comparison.period_ns;
    page.fact(format_args!("a guest in KVM that samples every {period} ns of its vCPU's task clock, which counts the VMM as \
             well (no clock can leave the host out); handler times by the guest's own time stamps\n"
        ),
    );
    let headings = [
        "way",
        "average ns",
        "min ns",
        "max ns",
        "shorter",
        "exits/NMI",
        "calls/NMI",
        "opened",
        "avoided",
    ];
    let median = |row: &Row| Spread::of(row.averages_ns.iter().copied());
    let base = comparison.rows.first().and_then(median).map(|average| average.median);
    let rows = comparison.rows.iter().filter_map(|row| {
        let average = median(row)?;
        Some(vec![
            row.way.words().to_owned(),
            spread(&average),
            number(row.extremes_ns.0),
            number(row.extremes_ns.1),
            base.map(|base| format!("{:.2}×", base / average.median)).unwrap_or_default(),
            number(row.msr_exits_per_nmi),
            number(row.calls_per_nmi),
            row.opens.0.to_string(),
            row.opens.1.to_string(),
        ])
    });
    page.table(headings, 1, rows);
    page.notes(comparison.rows.iter().map(|row| {
        let Row { samples, overflows, counted_ns, nmis, not_ours, .. } = row;
        let (words, periods) = (row.way.words(), counted_ns / period.max(1));
        format!(
            "{words}: {samples} samples, {overflows} overflows, {nmis} NMIs of which the guest could not \
                 explain {not_ours}; the host counted {counted_ns} ns, {periods} periods"
        )
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_and_disagreement_is_seen() {
        let mut row = Row::new(Way::Linger);
        (row.samples, row.overflows, row.averages_ns) = (5, 5, vec![4000.0]);
        let base = Row { averages_ns: vec![8000.0], way: Way::Recreate, ..row.clone() };
        let rows = vec![base, row];
        let comparison = Comparison { period_ns: 1000, rows };
        assert!(comparison.agrees());
        let mut page = Page::default();
        show(&comparison, &mut page);
        let text = page.into_text();
        assert!(text.contains(" 2.00× |") && text.contains("5 samples, 5 overflows"), "{text}");
        let mut wrong = comparison;
        wrong.rows[0].samples = 4;
        assert!(!wrong.agrees());
    }
}
