//! The result as text.

use super::{Comparison, Interval};
use crate::markdown::{line_to, table_to};

/// Columns of the plot for the budget.
const BUDGET_COLUMNS: f64 = 20.0;
/// Columns of the plot at most.
const COLUMNS_MAX: usize = 50;

/// Tables, and a plot of the cost over time.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines().iter().chain([&comparison.version]) {
        line_to(&mut text, &format!("- {line}"));
    }
    let budget = comparison.budget_percent;
    line_to(
        &mut text,
        &format!(
            "- budget: {budget}% of all CPUs; {} Hz and every switch",
            comparison.frequency_hz
        ),
    );
    if !comparison.phases.is_empty() {
        let worst = comparison.worst_window_percent;
        line_to(&mut text, &format!("- largest mean cost of ten seconds: {worst:.2}%"));
        line_to(&mut text, "");
        phases_to(&mut text, comparison);
        line_to(&mut text, "");
        plot_to(&mut text, comparison);
    }
    if !comparison.paired.is_empty() {
        line_to(&mut text, "");
        paired_to(&mut text, comparison);
    }
    text
}

fn phases_to(text: &mut String, comparison: &Comparison) {
    let headings = ["load", "from s", "to s", "cost %", "cost % after 3 s", "settings at the end"];
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(comparison.phases.iter().map(|phase| {
        let (from, to) = phase.span_s;
        vec![
            phase.name.to_owned(),
            format!("{from:.1}"),
            format!("{to:.1}"),
            format!("{:.2}", phase.mean_percent),
            format!("{:.2}", phase.settled_percent),
            phase.settings.clone(),
        ]
    }));
    table_to(text, &table, 1);
}

/// A line for each interval: `|` stands at the budget.
fn plot_to(text: &mut String, comparison: &Comparison) {
    line_to(text, "```");
    for Interval { span_s: (at_s, _), percent: cost, settings } in &comparison.intervals {
        let length = (cost / comparison.budget_percent * BUDGET_COLUMNS).round() as usize;
        let mut bar = vec![b' '; COLUMNS_MAX];
        bar.iter_mut().take(length).for_each(|column| *column = b'#');
        bar[BUDGET_COLUMNS as usize] = b'|';
        if length > COLUMNS_MAX {
            bar[COLUMNS_MAX - 1] = b'>';
        }
        let bar = String::from_utf8_lossy(&bar).into_owned();
        line_to(text, format!("{at_s:6.1} s {cost:6.2}% {bar} {settings}").trim_end());
    }
    line_to(text, "```");
}

fn paired_to(text: &mut String, comparison: &Comparison) {
    let headings =
        ["program", "stated cost %", "predicted: slower by %", "measured", "95 % interval"];
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(comparison.paired.iter().map(|paired| {
        let (stated, predicted) = (paired.stated_percent, paired.predicted_percent);
        let mut cells =
            vec![paired.work.clone(), format!("{stated:.2}"), format!("{predicted:+.2}")];
        if let Some((mean, low, high)) = paired.measured_percent {
            cells.extend([format!("{mean:+.2}"), format!("{low:+.2} to {high:+.2}")]);
        }
        cells
    }));
    table_to(text, &table, 1);
}
