//! The result as text.

use super::{COLD_INTERRUPTS, Comparison, Row, Way};
use crate::page::{Page, number, spread};
use whit_measure::summary::Spread;

/// Published averages of the guest's NMI handler in nanoseconds, without and with reuse (Like Xu, KVM: x86/vPMU,
/// October 2019, CLX-AP).
const PUBLISHED_NS: [u64; 2] = [104_923, 48_393];
/// The published ratio where the host's watchdog is off: of minima and of averages.
const PUBLISHED_WITHOUT_WATCHDOG: [u64; 2] = [3413, 786];

/// The result as text.
pub(super) fn show(comparison: &Comparison, page: &mut Page) {
    page.fact(&comparison.events);
    let rounds = comparison.rounds;
    page.fact(format_args!("{rounds} sessions of each way, in turn"));
    let period = comparison.period;
    let what =
        format!("Sampling 10 events on 4 counters, period {period}: the guest's NMI handler");
    rows_to(page, &what, "PMI", &comparison.sampling);
    let what = "Counting one event: stop and start at the guest's context switches";
    rows_to(page, what, "switch", &comparison.counting);
    cold_to(page, comparison);
    let [before, after] = PUBLISHED_NS;
    let [minimum, average] = PUBLISHED_WITHOUT_WATCHDOG;
    page.paragraph(format_args!(
        "Published (KVM, hardware events): average {before} → {after} ns (2.16×); without the \
             host's watchdog minimum {minimum}×, average {average}×; 82.5% fewer events opened."
    ));
}

fn rows_to(page: &mut Page, what: &str, operation: &str, rows: &[Row]) {
    page.paragraph(format_args!("{what}:"));
    let calls = format!("calls/{operation}");
    let headings = [
        "way",
        "min ns",
        "median ns",
        "average ns",
        "max ns",
        "shorter",
        "opened",
        "avoided",
        &calls,
    ];
    let base = rows.iter().find(|row| row.way == Way::Recreate).map(|row| row.summary_ns[2]);
    let cells = rows.iter().map(|row| {
        let [min, median, _, max] = row.summary_ns;
        let average = Spread::of(row.averages_ns.iter().copied());
        let shorter = base.map(|base| format!("{:.2}×", base / row.summary_ns[2]));
        vec![
            row.way.words().to_owned(),
            number(min),
            number(median),
            average.map(|average| spread(&average)).unwrap_or_default(),
            number(max),
            shorter.unwrap_or_default(),
            row.opens.to_string(),
            row.opens_avoided.to_string(),
            number(row.calls_per_operation),
        ]
    });
    page.table(headings, 1, cells);
    for row in rows.iter().filter(|row| row.rotations > 0) {
        let per_change = row.opens as f64 / row.rotations as f64;
        let (words, changes) = (row.way.words(), row.rotations);
        page.fact(format_args!("{words}: the set of events changed {changes} times; {per_change:.1} events opened for each change, handlers' included"
            ),
        );
    }
    for row in rows.iter().filter(|row| row.failures > 0) {
        let (words, failures) = (row.way.words(), row.failures);
        page.fact(format_args!("{words}: counters stood still or were refused {failures} times"));
    }
}

fn cold_to(page: &mut Page, comparison: &Comparison) {
    let of =
        |values: Vec<f64>| Spread::of(values).map(|values| spread(&values)).unwrap_or_default();
    let first = of(comparison.opening.iter().map(|opening| opening.first_ns).collect());
    let next = of(comparison.opening.iter().map(|opening| opening.next_ns).collect());
    page.paragraph(format_args!(
        "Opening a task's event: the machine's first {first} ns, the next {next} ns."
    ));
    page.paragraph(format_args!(
            "Sessions of {COLD_INTERRUPTS} interrupts of one event that begin without any event on the machine; what \
             the guest waits for its PMU, start included, for each interrupt:\n"
        ),
    );
    let headings = ["way", "average ns", "start ns", "shorter"];
    let median = |values: &[f64]| Spread::of(values.iter().copied()).map(|values| values.median);
    let base = comparison.cold.first().and_then(|row| median(&row.averages_ns));
    let rows = comparison.cold.iter().map(|row| {
        let shorter = base.zip(median(&row.averages_ns)).map(|(base, own)| base / own);
        vec![
            row.way.words().to_owned(),
            of(row.averages_ns.clone()),
            of(row.starts_ns.clone()),
            shorter.map(|ratio| format!("{ratio:.1}×")).unwrap_or_default(),
        ]
    });
    page.table(headings, 1, rows);
}
