//! The result as text.

use super::{Comparison, Interval, Phase};
use crate::bench::Figures;
use crate::page::{Cell, Page};

/// Columns of the plot for the budget.
const BUDGET_COLUMNS: f64 = 20.0;
/// Columns of the plot at most.
const COLUMNS_MAX: usize = 50;

impl Figures for Comparison {
    /// Tables, and a plot of the cost over time.
    fn show(&self, page: &mut Page) {
        page.fact(&self.version);
        let budget = self.budget_percent;
        page.fact(format_args!(
            "budget: {budget}% of all CPUs; {} Hz and every switch",
            self.frequency_hz
        ));
        if !self.phases.is_empty() {
            let worst = self.worst_window_percent;
            page.fact(format_args!("largest mean cost of ten seconds: {worst:.2}%"));
            page.columns(1, &PHASES, &self.phases);
            plot_to(page, self);
        }
        if !self.paired.is_empty() {
            paired_to(page, self);
        }
    }

    /// Whether the cost was within the budget after each step, and never twice that.
    fn succeeded(&self) -> bool {
        self.worst_window_percent <= 2.0 * self.budget_percent
            && self.phases.iter().all(|phase| phase.settled_percent <= self.budget_percent)
    }
}

const PHASES: [Cell<Phase>; 6] = [
    ("load", |phase| phase.name.to_owned()),
    ("from s", |phase| format!("{:.1}", phase.span_s.0)),
    ("to s", |phase| format!("{:.1}", phase.span_s.1)),
    ("cost %", |phase| format!("{:.2}", phase.mean_percent)),
    ("cost % after 3 s", |phase| format!("{:.2}", phase.settled_percent)),
    ("settings at the end", |phase| phase.settings.clone()),
];

/// A line for each interval: `|` stands at the budget.
fn plot_to(page: &mut Page, comparison: &Comparison) {
    page.paragraph("```");
    for Interval { span_s: (at_s, _), percent: cost, settings } in &comparison.intervals {
        let length = (cost / comparison.budget_percent * BUDGET_COLUMNS).round() as usize;
        let mut bar = vec![b' '; COLUMNS_MAX];
        bar.iter_mut().take(length).for_each(|column| *column = b'#');
        bar[BUDGET_COLUMNS as usize] = b'|';
        if length > COLUMNS_MAX {
            bar[COLUMNS_MAX - 1] = b'>';
        }
        let bar = String::from_utf8_lossy(&bar).into_owned();
        page.line(format!("{at_s:6.1} s {cost:6.2}% {bar} {settings}").trim_end());
    }
    page.line("```");
}

fn paired_to(page: &mut Page, comparison: &Comparison) {
    let headings =
        ["program", "stated cost %", "predicted: slower by %", "measured", "95 % interval"];
    page.table(
        headings,
        1,
        comparison.paired.iter().map(|paired| {
            let (stated, predicted) = (paired.stated_percent, paired.predicted_percent);
            let mut cells =
                vec![paired.work.clone(), format!("{stated:.2}"), format!("{predicted:+.2}")];
            if let Some((mean, low, high)) = paired.measured_percent {
                cells.extend([format!("{mean:+.2}"), format!("{low:+.2} to {high:+.2}")]);
            }
            cells
        }),
    );
}
