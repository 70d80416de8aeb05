//! How long NMI handlers take on this machine while it is profiled: `whit bench pmi --host`.
//!
//! Each recorder profiles a workload with each set of options, in turn, while a trace instance of the
//! kernel's own records `nmi:nmi_handler`, which tells the length of every handler.

mod nmi;
mod tracing;

use std::ffi::OsString;
use std::process::Command;

use serde::Serialize;

pub use nmi::{Handlers, parse};
use tracing::Instance;

use super::{SCHEMA, strings};
use crate::Error;
use crate::core_pmu;
use crate::markdown::{line_to, number, spread, table_to};
use crate::record::recorder::{Recorder, RecorderKind};
use crate::scratch::Scratch;
use crate::setup::Setup;
use crate::system::System;
use whit_measure::measure::{self, Outcome};
use whit_measure::summary::Spread;

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

/// Settings of the measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs of each recorder with each set of options.
    pub rounds: usize,
    /// The command that is profiled.
    pub workload: Vec<OsString>,
    /// Programs, directories and the limit.
    pub setup: Setup,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Version of this document: [`SCHEMA`].
    pub schema: u32,
    /// The machine.
    pub system: System,
    /// Absent recorders, with the reason.
    pub absent: Vec<String>,
    /// One row per set of options and recorder.
    pub rows: Vec<Row>,
}

/// One recorder with one set of options.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// perf's options of this row.
    pub options: String,
    /// Recorder that made this row.
    pub recorder: RecorderKind,
    /// Handlers of each run.
    pub runs: Vec<Handlers>,
    /// Why there is no run, or one less.
    pub refused: Option<String>,
    /// The published average and maximum of these options, in nanoseconds.
    pub published_ns: Option<(u64, u64)>,
}

/// Measures.
///
/// # Errors
/// Where this machine has no hardware PMU, whose interrupts could be measured; where its kernel's
/// tracepoints cannot be used.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    core_pmu::require()?;
    let scratch = Scratch::new(&options.setup.directory)?;
    let mut recorders = Vec::new();
    let mut absent = Vec::new();
    for kind in [RecorderKind::Perf, RecorderKind::Whit] {
        match Recorder::detect(kind, &options.setup.whit) {
            Ok(recorder) => recorders.push(recorder),
            Err(missing) => absent.push(format!("{}: {}", missing.kind, missing.reason)),
        }
    }
    let mut rows = empty_rows(&recorders);
    for round in 1..=options.rounds {
        say(&format!("round {round} of {}", options.rounds));
        for row in &mut rows {
            let recorder = recorders.iter().find(|recorder| recorder.kind == row.recorder);
            if let Some(recorder) = recorder.filter(|_| row.refused.is_none()) {
                match run(options, recorder, &row.options, &scratch)? {
                    Ok(handlers) => row.runs.push(handlers),
                    Err(reason) => row.refused = Some(reason),
                }
            }
        }
    }
    Ok(Comparison { schema: SCHEMA, system: System::detect(), absent, rows })
}

fn empty_rows(recorders: &[Recorder]) -> Vec<Row> {
    let rows = SETTINGS.iter().flat_map(|(options, published_ns)| {
        recorders.iter().map(|recorder| Row {
            options: options.join(" "),
            recorder: recorder.kind,
            runs: Vec::new(),
            refused: None,
            published_ns: *published_ns,
        })
    });
    rows.collect()
}

/// One run; the reason where the recorder refused or failed.
fn run(
    options: &Options,
    recorder: &Recorder,
    with: &str,
    scratch: &Scratch,
) -> Result<Result<Handlers, String>, Error> {
    let recording = scratch.path().join("recording.data");
    let mut command = Command::new(&recorder.program);
    command.args(["record", "-q", "-o"]).arg(&recording);
    command.args(with.split_whitespace()).arg("--").args(&options.workload);
    let instance = Instance::start()?;
    let measured = measure::run(command, options.setup.limit)
        .map_err(|source| Error::Run { program: recorder.program.clone(), source })?;
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
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines().iter().chain(&comparison.absent) {
        line_to(&mut text, &format!("- {line}"));
    }
    line_to(&mut text, "- length of NMI handlers, from the tracepoint nmi:nmi_handler\n");
    let headings = [
        "options",
        "recorder",
        "handlers",
        "average ns",
        "maximum ns",
        "published avg",
        "published max",
    ];
    let mut rows = vec![strings(headings)];
    for row in &comparison.rows {
        let mut cells = vec![row.options.clone(), row.recorder.to_string()];
        let of = |value: fn(&Handlers) -> f64| Spread::of(row.runs.iter().map(value));
        match (of(|run| run.count as f64), of(Handlers::average_ns), of(|run| run.max_ns as f64)) {
            (Some(count), Some(average), Some(max)) => {
                cells.extend([number(count.median), spread(&average), spread(&max)]);
                let published = row.published_ns.map(|(average, max)| [average, max]);
                cells.extend(
                    published
                        .map_or_else(|| strings(["", ""]), |p| p.map(|ns| ns.to_string()).to_vec()),
                );
            }
            _ => cells.push(row.refused.clone().unwrap_or_else(|| "no handler ran".into())),
        }
        rows.push(cells);
    }
    table_to(&mut text, &rows, 2);
    let lost: u64 = comparison.rows.iter().flat_map(|row| &row.runs).map(|run| run.lost).sum();
    if lost > 0 {
        line_to(&mut text, &format!("\n{lost} handlers did not fit into the trace buffer."));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_refusals() {
        let run = |count, total_ns, max_ns| Handlers { count, total_ns, max_ns, lost: 1 };
        let row = |options: &str, runs, refused| Row {
            options: options.to_owned(),
            recorder: RecorderKind::Whit,
            runs,
            refused,
            published_ns: Some((445, 31_217)),
        };
        let comparison = Comparison {
            schema: SCHEMA,
            system: System::default(),
            absent: vec!["perf: not installed".into()],
            rows: vec![
                row("-c 100000", vec![run(10, 5000, 900), run(10, 7000, 800)], None),
                row("--call-graph lbr", vec![], Some("exit code 1: no LBR here".into())),
            ],
        };
        let text = markdown(&comparison);
        assert!(text.contains("| 600 (500–700) | 850 (800–900) |"), "{text}");
        assert!(text.contains("| exit code 1: no LBR here |"), "{text}");
        assert!(text.contains("- perf: not installed"), "{text}");
        assert!(text.contains("2 handlers did not fit"), "{text}");
    }
}
