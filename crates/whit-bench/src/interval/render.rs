//! The comparison as text.

use super::{Comparison, Row, ToolKind};
use crate::markdown::{line_to, number, spread, table_to};

const MS_PER_SECOND: f64 = 1000.0;
const US_PER_SECOND: f64 = 1e6;
const PERCENT: f64 = 100.0;

const HEADINGS: [&str; 7] = [
    "counting",
    "every ms",
    "printed per s",
    "of those asked for %",
    "CPU %",
    "CPU µs per interval",
    "of perf's",
];

/// The machine, who took part, one table.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines().iter().chain(&comparison.absent) {
        line_to(&mut text, &format!("- {line}"));
    }
    for tool in &comparison.tools {
        line_to(&mut text, &format!("- {}: {}", tool.kind, tool.version));
    }
    let duration = number(comparison.duration_s);
    line_to(&mut text, &format!("- events: {}; {duration} s a run", comparison.events));
    line_to(&mut text, "");
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    rows.extend(comparison.rows.iter().map(|row| cells(comparison, row)));
    table_to(&mut text, &rows, 1);
    text
}

fn cells(comparison: &Comparison, row: &Row) -> Vec<String> {
    let mut cells = vec![format!("{} {}", row.tool, row.target), row.interval_ms.to_string()];
    let asked = MS_PER_SECOND / row.interval_ms as f64;
    let rate = row.spread(|run| run.rate()).filter(|_| row.refused.is_none());
    let (Some(rate), Some(share), Some(cpu), Some(each)) = (
        rate,
        row.spread(|run| PERCENT * run.rate() / asked),
        row.spread(|run| PERCENT * run.cpu()),
        row.spread(|run| US_PER_SECOND * run.cpu_of_interval_s()),
    ) else {
        cells.push(row.refused.clone().unwrap_or_else(|| "was not run".to_owned()));
        return cells;
    };
    cells.extend([number(rate.median), number(share.median), spread(&cpu), spread(&each)]);
    cells.push(of_perfs(comparison, row).map_or_else(String::new, |share| format!("{share:.2}")));
    cells
}

/// CPU time for an interval, as a share of perf's; medians of both.
fn of_perfs(comparison: &Comparison, row: &Row) -> Option<f64> {
    let each = |row: &Row| row.spread(|run| run.cpu_of_interval_s()).map(|spread| spread.median);
    let perf = comparison.beside(row, ToolKind::Perf).filter(|_| row.tool != ToolKind::Perf)?;
    each(perf).filter(|perf| *perf > 0.0).and_then(|perf| Some(each(row)? / perf))
}

#[cfg(test)]
mod tests {
    use super::super::{Run, SCHEMA, Target, Tool};
    use super::*;
    use crate::system::System;

    #[test]
    fn rows_have_rates_and_costs_and_the_share_of_perfs() {
        let run = |cpu_s: f64, intervals| Run {
            user_s: cpu_s / 2.0,
            sys_s: cpu_s / 2.0,
            wall_s: 2.0,
            intervals,
            counted_s: 2.0,
        };
        let row = |tool, runs: Vec<Run>, refused: Option<&str>| Row {
            target: Target::Machine,
            interval_ms: 1,
            tool,
            runs,
            refused: refused.map(str::to_owned),
        };
        let perf = Tool { kind: ToolKind::Perf, program: "perf".into(), version: "6".into() };
        let mut comparison = Comparison {
            schema: SCHEMA,
            system: System::default(),
            events: "cs".to_owned(),
            duration_s: 2.0,
            tools: vec![perf],
            absent: vec![],
            rows: vec![
                row(ToolKind::Perf, vec![run(0.4, 1000), run(0.4, 1000)], None),
                row(ToolKind::Whit, vec![run(0.2, 2000)], None),
            ],
        };
        let text = markdown(&comparison);
        let line = |tool: &str| text.lines().find(|line| line.contains(tool)).unwrap().to_owned();
        assert!(
            line("perf stat -a").contains("|           500 |                 50.0 |"),
            "{text}"
        );
        assert!(line("whit stat -a").ends_with("|      0.25 |"), "{text}");
        comparison.rows[1] = row(ToolKind::Whit, vec![], Some("no right"));
        assert!(markdown(&comparison).contains("| no right") && !comparison.whit_succeeded());
    }
}
