//! How long NMI handlers take on this machine while it is profiled: `whit bench pmi --host`.
//!
//! Each recorder profiles a workload with each set of options, in turn, while a trace instance of the
//! kernel's own records `nmi:nmi_handler`, which tells the length of every handler.

mod nmi;
mod tracing;

use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

pub(crate) use nmi::Handlers;
use tracing::Instance;

use crate::bench::Say;
use crate::core_pmu;
use crate::error::{self, Error};
use crate::installed::in_words;
use crate::page::{Page, median, spread};
use crate::record::recorder::{Recorder, RecorderKind};
use crate::rounds::{Column, Row, headings, interleave};
use crate::scratch::Scratch;
use crate::setup::Setup;
use whit_measure::measure::{self, Outcome};

/// Options, and the published average and maximum length in nanoseconds.
type Setting = (&'static [&'static str], Option<(u64, u64)>);

/// Those of the published table.
const SETTINGS: [Setting; 7] = [
    (&[], Some((962, 37_248))),
    (&["-c", "100000"], Some((445, 31_217))),
    (&["-g"], Some((1753, 47_312))),
    (&["-g", "-c", "100000"], Some((966, 33_698))),
    (&["--call-graph", "dwarf"], Some((2055, 33_598))),
    (&["--call-graph", "dwarf", "-c", "100000"], Some((1478, 30_491))),
    (&["--call-graph", "lbr"], Some((3770, 37_164))),
];

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// Absent recorders, with the reason.
    pub(crate) absent: Vec<String>,
    /// One row per set of options and recorder.
    pub(crate) rows: Vec<Row<Case, Handlers>>,
}

/// One recorder with one set of options.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Case {
    /// perf's options.
    pub(crate) options: String,
    pub(crate) recorder: RecorderKind,
    /// The published average and maximum of these options, in nanoseconds.
    pub(crate) published_ns: Option<(u64, u64)>,
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.recorder, self.options)
    }
}

/// Measures handlers while the command is profiled; without one, five seconds of the workload `deep`.
pub(crate) fn compare(
    command: &[OsString],
    rounds: usize,
    setup: &Setup,
    say: Say<'_>,
) -> Result<Comparison, Error> {
    core_pmu::require()?;
    setup.require(if command.is_empty() { &["deep"] } else { &[] })?;
    let deep = [setup.workloads.join("deep").into(), "--seconds".into(), "5".into()];
    let command = if command.is_empty() { &deep[..] } else { command };
    let scratch = Scratch::new(&setup.directory)?;
    let (recorders, absent) = Recorder::detect_all(&setup.whit);
    let cases = SETTINGS.iter().flat_map(|(options, published_ns)| {
        recorders.iter().map(|recorder| Case {
            options: options.join(" "),
            recorder: recorder.kind,
            published_ns: *published_ns,
        })
    });
    let mut rows: Vec<Row<Case, Handlers>> = cases.map(Row::new).collect();
    interleave(&mut rows, rounds, say, &mut |case| {
        let recorder = recorders.iter().find(|recorder| recorder.kind == case.recorder);
        let recorder = recorder.context("a case has a recorder")?;
        run(command, recorder, &case.options, &scratch, setup.limit)
    })?;
    Ok(Comparison { absent: in_words(&absent), rows })
}

/// One run; the reason where the recorder refused or failed.
fn run(
    workload: &[OsString],
    recorder: &Recorder,
    with: &str,
    scratch: &Scratch,
    limit: Duration,
) -> Result<Result<Handlers, String>, Error> {
    let recording = scratch.path().join("recording.data");
    let mut command = Command::new(&recorder.program);
    command.args(["record", "-q", "-o"]).arg(&recording);
    // The engine that perf has, too.
    command.args((recorder.kind == RecorderKind::Whit).then_some("--engine=ring"));
    command.args(with.split_whitespace()).arg("--").args(workload);
    let instance = Instance::start()?;
    let measured = measure::run(command, limit).map_err(error::run(&recorder.program))?;
    let trace = instance.stop()?;
    // A recording that was refused was not written.
    let _ = std::fs::remove_file(&recording);
    Ok(match measured.outcome {
        Outcome::Success => Ok(trace),
        Outcome::TimedOut { limit_s } => Err(format!("took longer than {limit_s} s")),
        Outcome::Failed { status, stderr } => {
            Err(format!("{status}: {}", stderr.lines().next_back().unwrap_or_default()))
        }
    })
}

/// The result as text.
pub(super) fn show(comparison: &Comparison, page: &mut Page) {
    comparison.absent.iter().for_each(|line| page.fact(line));
    page.fact("length of NMI handlers, from the tracepoint nmi:nmi_handler");
    const NAMES: [&str; 2] = ["options", "recorder"];
    const COLUMNS: [Column<Handlers>; 3] = [
        ("handlers", |run| Some(run.count as f64), median),
        ("average ns", |run| Some(run.average_ns()), spread),
        ("maximum ns", |run| Some(run.max_ns as f64), spread),
    ];
    let rows = comparison.rows.iter().map(|row| {
        let names = vec![row.case.options.clone(), row.case.recorder.to_string()];
        let mut cells = row.cells(names, &COLUMNS);
        if row.refused.is_none() {
            let published = row.case.published_ns.map(|(average, max)| [average, max]);
            cells.extend(published.map_or_else(Default::default, |ns| ns.map(|ns| ns.to_string())));
        }
        cells
    });
    let published = ["published avg", "published max"];
    page.table(headings(&NAMES, &COLUMNS).chain(published), 2, rows);
    let lost: u64 = comparison.rows.iter().flat_map(|row| &row.runs).map(|run| run.lost).sum();
    if lost > 0 {
        page.paragraph(format_args!("{lost} handlers did not fit into the trace buffer."));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_refusals() {
        let run = |count, total_ns, max_ns| Handlers { count, total_ns, max_ns, lost: 1 };
        let row = |options: &str, runs, refused| {
            let (options, recorder) = (options.to_owned(), RecorderKind::Whit);
            let case = Case { options, recorder, published_ns: Some((445, 31_217)) };
            Row { case, runs, refused }
        };
        let comparison = Comparison {
            absent: vec!["perf: not installed".into()],
            rows: vec![
                row("-c 100000", vec![run(10, 5000, 900), run(10, 7000, 800)], None),
                row("--call-graph lbr", vec![], Some("exit code 1: no LBR here".into())),
            ],
        };
        let mut page = Page::default();
        show(&comparison, &mut page);
        let text = page.into_text();
        assert!(text.contains("| 600 (500–700) | 850 (800–900) |"), "{text}");
        assert!(text.contains("| exit code 1: no LBR here |"), "{text}");
        assert!(text.contains("- perf: not installed"), "{text}");
        assert!(text.contains("2 handlers did not fit"), "{text}");
    }
}
