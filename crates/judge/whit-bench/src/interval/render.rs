//! The comparison as text.

use super::{Case, Comparison, Run, ToolKind};
use crate::bench::Figures;
use crate::page::{Page, median, number, spread};
use crate::rounds::{Column, Row, headings};

const NAMES: [&str; 2] = ["counting", "every ms"];
const COLUMNS: [Column<Run>; 3] = [
    ("printed per s", |run| Some(run.rate()), median),
    ("CPU %", |run| Some(100.0 * run.cpu()), spread),
    ("CPU µs per interval", |run| Some(1e6 * run.cpu_of_interval_s()), spread),
];

impl Figures for Comparison {
    /// The tools, and one table.
    fn show(&self, page: &mut Page) {
        self.absent.iter().for_each(|line| page.fact(line));
        for tool in &self.tools {
            page.fact(format_args!("{}: {}", tool.kind, tool.version));
        }
        let duration = number(self.duration_s);
        page.fact(format_args!("events: {}; {duration} s a run", self.events));
        let mut headings: Vec<&str> = headings(&NAMES, &COLUMNS).collect();
        headings.insert(SHARE_COLUMN, "of those asked for %");
        headings.push("of perf's");
        page.table(headings, 1, self.rows.iter().map(|row| cells(self, row)));
    }

    fn succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.case.tool != ToolKind::Whit || row.refused.is_none())
    }
}

/// Where the share of the intervals is that were asked for, behind their rate.
const SHARE_COLUMN: usize = 3;

fn cells(comparison: &Comparison, row: &Row<Case, Run>) -> Vec<String> {
    let Case { target, interval_ms, tool } = row.case;
    let mut cells = row.cells(vec![format!("{tool} {target}"), interval_ms.to_string()], &COLUMNS);
    if let Some(rate) = row.spread(|run| Some(run.rate())).filter(|_| row.refused.is_none()) {
        let asked = 1000.0 / interval_ms as f64;
        cells.insert(SHARE_COLUMN, number(100.0 * rate.median / asked));
        let share = of_perfs(comparison, row).map(|share| format!("{share:.2}"));
        cells.push(share.unwrap_or_default());
    }
    cells
}

/// CPU time for an interval, as a share of perf's; medians of both.
fn of_perfs(comparison: &Comparison, row: &Row<Case, Run>) -> Option<f64> {
    let each = |row: &Row<Case, Run>| Some(row.spread(|run| Some(run.cpu_of_interval_s()))?.median);
    let perfs = Case { tool: ToolKind::Perf, ..row.case };
    let perf = comparison.rows.iter().find(|row| row.case == perfs);
    let perf = each(perf?).filter(|perf| *perf > 0.0 && row.case.tool != ToolKind::Perf)?;
    Some(each(row)? / perf)
}

#[cfg(test)]
mod tests {
    use super::super::{Target, Tool};
    use super::*;
    use crate::bench::{Figures, page};

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
            case: Case { target: Target::Machine, interval_ms: 1, tool },
            runs,
            refused: refused.map(str::to_owned),
        };
        let perf = Tool { kind: ToolKind::Perf, program: "perf".into(), version: "6".into() };
        let mut comparison = Comparison {
            events: "cs".to_owned(),
            duration_s: 2.0,
            tools: vec![perf],
            absent: vec![],
            rows: vec![
                row(ToolKind::Perf, vec![run(0.4, 1000), run(0.4, 1000)], None),
                row(ToolKind::Whit, vec![run(0.2, 2000)], None),
            ],
        };
        let text = page(None, &comparison);
        let line = |tool: &str| text.lines().find(|line| line.contains(tool)).unwrap().to_owned();
        assert!(
            line("perf stat -a").contains("|           500 |                 50.0 |"),
            "{text}"
        );
        assert!(line("whit stat -a").ends_with("|      0.25 |"), "{text}");
        comparison.rows[1] = row(ToolKind::Whit, vec![], Some("no right"));
        assert!(page(None, &comparison).contains("| no right") && !comparison.succeeded());
    }
}
