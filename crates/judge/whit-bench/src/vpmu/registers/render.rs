//! The result as text.

use super::{Comparison, Cost, Row};
use crate::page::{Page, number};

/// Guest's overhead in per cent on Sapphire Rapids, SPECint 2017, `perf record -F 1000 -e`: the emulated PMU, the mediated
/// one that passes all registers, and the one that filters events (Linux, merge of KVM's mediated PMU, February 2026).
const PUBLISHED: [(&str, [f64; 3]); 2] =
    [("6 events", [33.62, 4.24, 6.21]), ("10 events, multiplexed", [79.32, 7.34, 10.45])];
/// Time of an exit and of the host's accesses, in nanoseconds.
const EXIT_NS: f64 = 1300.0;
const WRITE_NS: f64 = 70.0;
const READ_NS: f64 = 30.0;

/// Modelled time of exits and registers, in nanoseconds.
fn time_ns(cost: &Cost) -> f64 {
    cost.exits * EXIT_NS + cost.writes * WRITE_NS + cost.reads * READ_NS
}

fn cell(cost: &Cost) -> String {
    let part = |value: f64, unit: &str| (value > 0.0).then(|| format!("{} {unit}", number(value)));
    let parts = [
        part(cost.exits, "exits"),
        part(cost.writes, "W"),
        part(cost.reads, "R"),
        part(cost.opens, "opened"),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" + ");
    if text.is_empty() { "–".to_owned() } else { text }
}

pub(in crate::vpmu) fn show(comparison: &Comparison, page: &mut Page) {
    page.fact("simulated hardware, 4 general-purpose and 3 fixed counters; the guest's driver is whit-pmu's");
    page.fact(format_args!(
        "W and R: the host's writes and reads of the CPU's registers; an exit {EXIT_NS} ns, W {WRITE_NS} ns, R {READ_NS} ns"
    ));
    page.fact("registers of host events as Linux' x86 driver accesses them; the software around an event is not counted");
    page.paragraph("One operation:\n");
    let headings = [
        "virtual PMU",
        "interrupt, 4 sampling",
        "4 events take turns",
        "counted task off and on",
        "other exit, 4 sampling",
        "other exit, 1 counting",
        "other exit, idle",
    ];
    let rows = comparison.rows.iter().map(|row| {
        let costs = [
            &row.interrupt,
            &row.rotation,
            &row.switch,
            &row.exit_sampling,
            &row.exit_counting,
            &row.exit_idle,
        ];
        let mut cells = vec![row.scheme.to_owned()];
        cells.extend(costs.map(cell));
        cells
    });
    page.table(headings, 1, rows);
    let rates = comparison.rates;
    page.paragraph(format_args!(
        "A second: {} interrupts and {} changes of the set (sampling 10 events, multiplexed), or {} switches (counting one \
         event), and {} other exits:\n",
        rates.interrupts, rates.rotations, rates.switches, rates.other_exits
    ));
    let headings = ["virtual PMU", "sampling", "ms", "counting", "ms", "idle", "ms"];
    let rows = comparison.rows.iter().map(|row| {
        let mut cells = vec![row.scheme.to_owned()];
        for cost in [&row.sampling, &row.counting, &row.idle] {
            cells.extend([cell(cost), number(time_ns(cost) / 1e6)]);
        }
        cells
    });
    page.table(headings, 1, rows);
    cheapest_to(page, &comparison.rows);
    for (what, [emulated, passed, filtered]) in PUBLISHED {
        page.fact(format_args!(
            "published (Linux, guest's overhead at 1000 Hz, {what}): emulated {emulated} %, mediated {passed} %, with \
             filtered events {filtered} %"
        ));
    }
}

/// Other exits in a second from which on lending costs more than using events again.
fn cheapest_to(page: &mut Page, rows: &[Row]) {
    let [_, reuse, _, lent] = rows else { return };
    let rates = super::RATES;
    for (what, fixed, per_exit) in [
        ("sampling", reuse.sampling, lent.exit_sampling),
        ("counting", reuse.counting, lent.exit_counting),
    ] {
        let lent_total = if what == "sampling" { lent.sampling } else { lent.counting };
        let spent = time_ns(&lent_total) - rates.other_exits * time_ns(&per_exit);
        let exits = (time_ns(&fixed) - spent) / time_ns(&per_exit);
        page.fact(format_args!(
            "{what}: lent counters cost less than events used again below {} other exits a second",
            number(exits)
        ));
    }
}
