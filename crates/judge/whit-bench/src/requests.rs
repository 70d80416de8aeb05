//! Cost of recording requests: the comparison behind `whit bench requests`.
//!
//! A program calls an empty function, and says how long a call took. Recorders stop it at each beginning and each return.
//! Or a server answers requests that do nothing, and says how long each took. All run once a round, in turn, and the program
//! alone in between.

mod probes;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use probes::Probes;

use crate::args::{heading, rounds};
use crate::bench::{Bench, Figures, Say};
use crate::error::{self, Error, come_through, output_of};
use crate::installed::version;
use crate::named::named;
use crate::page::{Page, spread};
use crate::peer::perf;
use crate::rounds::{Column, Row, headings, interleave};
use crate::scratch::Scratch;
use crate::setup::Setup;
use whit_measure::measure::run_watched;

/// The function that does nothing.
const FUNCTION: &str = "empty";
/// The port of the server.
const PORT: &str = "7117";

const EXAMPLES: &str = "\
Example:
  whit bench requests --calls 100000 --rounds 3
  whit bench requests --by socket
  whit bench requests --by goroutine";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The source of requests
    #[arg(long, value_name = "KIND", default_value = "function", help_heading = heading::RUNS)]
    by: By,

    /// Calls of a run; requests by a socket are a tenth
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = calls(),
          help_heading = heading::RUNS)]
    calls: u64,

    /// Runs of each recorder
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds(),
          help_heading = heading::RUNS)]
    rounds: usize,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

fn calls() -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(1..=100_000_000)
}

/// The source of requests: it has the beginning and the end of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum By {
    /// The call of a function, and its return.
    Function,
    /// The same in a Go program, whose goroutines are recorded too.
    Goroutine,
    /// Data that a server receives, and its answer.
    Socket,
}

named!(By);

impl By {
    fn program(self) -> &'static str {
        match self {
            By::Function => "requests",
            By::Goroutine => "gorequests-go",
            By::Socket => "sockets",
        }
    }

    /// How the program says the time of a request in nanoseconds.
    fn said(self) -> &'static str {
        match self {
            By::Function | By::Goroutine => "ns_per_call=",
            By::Socket => "ns_per_request=",
        }
    }

    fn ways(self) -> Vec<Way> {
        let mut ways = Way::value_variants().to_vec();
        ways.retain(|way| match self {
            By::Function => true,
            // perf's probe of returns puts an address into the stack, which Go's runtime does not survive.
            By::Goroutine => *way != Way::Perf,
            // Programs record sockets.
            By::Socket => *way != Way::Ring,
        });
        ways
    }
}

/// The recorder of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Way {
    /// The program without a recorder.
    Alone,
    /// Context switches and wake-ups without requests.
    #[value(name = "whit record, no request")]
    Switches,
    /// The engine that unwinds in the kernel.
    #[value(name = "whit record --engine=bpf")]
    Bpf,
    /// The engine of perf's rings.
    #[value(name = "whit record --engine=ring")]
    Ring,
    /// Probes or tracepoints at the same places.
    #[value(name = "perf record")]
    Perf,
}

named!(Way);

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Run {
    /// Time of a call, by the program.
    pub(crate) us: f64,
    /// Calls of the recording with both ends.
    pub(crate) calls: Option<f64>,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// The source of requests.
    pub(crate) by: By,
    /// Calls of a run.
    pub(crate) calls: u64,
    /// The recorders.
    pub(crate) versions: Vec<String>,
    /// One for each recorder.
    pub(crate) rows: Vec<Row<Way, Run>>,
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        self.setup.require(&[self.by.program()])?;
        let scratch = Scratch::new(&self.setup.directory)?;
        let program = self.setup.workloads.join(self.by.program());
        let program = std::fs::canonicalize(&program).map_err(error::file("find", &program))?;
        let probes = (self.by == By::Function).then(|| Probes::add(&program)).transpose();
        let job = Job { options: self, program, data: scratch.path().join("perf.data"), probes };
        let mut rows: Vec<Row<Way, Run>> = self.by.ways().into_iter().map(Row::new).collect();
        interleave(&mut rows, self.rounds, say, &mut |way| job.run(*way))?;
        let versions = [&self.setup.whit, &perf()].map(|program| version(program));
        let versions = versions.into_iter().map(|it| it.unwrap_or_else(|reason| reason));
        Ok(Comparison { by: self.by, calls: self.requests(), versions: versions.collect(), rows })
    }
}

impl Options {
    /// Requests of a run.
    fn requests(&self) -> u64 {
        match self.by {
            By::Function | By::Goroutine => self.calls,
            By::Socket => self.calls.div_ceil(10),
        }
    }
}

/// The program, the file and the probes of all runs.
struct Job<'a> {
    options: &'a Options,
    program: PathBuf,
    data: PathBuf,
    probes: Result<Option<Probes>, String>,
}

impl Job<'_> {
    fn run(&self, way: Way) -> Result<Result<Run, String>, Error> {
        let probes = match (&self.probes, way) {
            (Err(reason), Way::Perf) => return Ok(Err(reason.clone())),
            (Ok(probes), _) => probes.as_ref(),
            (Err(_), _) => None,
        };
        let mut command = self.recorder(way, probes);
        let requests = self.options.requests().to_string();
        match self.options.by {
            By::Function => command.args(["--empty", &requests]),
            By::Goroutine => command.args(["-empty", &requests]),
            By::Socket => {
                command.args(["--quiet", "--clients", "1", "--port", PORT, "--requests", &requests])
            }
        };
        let failed = error::run(command.get_program().to_owned());
        let (measured, said) =
            run_watched(command, self.options.setup.limit, &|| None).map_err(failed)?;
        if let Err(reason) = come_through(&measured) {
            return Ok(Err(reason));
        }
        let said = said.stdout;
        let ns: f64 = said
            .split_once(self.options.by.said())
            .and_then(|(_, ns)| ns.trim().parse().ok())
            .with_context(|| format!("the program does not say the time of a call: {said}"))?;
        let calls = match way {
            Way::Alone | Way::Switches => None,
            Way::Bpf | Way::Ring => Some(self.requests()?),
            // perf does not say which data belongs to a request.
            Way::Perf if self.options.by == By::Socket => None,
            Way::Perf => Some(self.pairs()?),
        };
        Ok(Ok(Run { us: ns / 1000.0, calls }))
    }

    /// The program, behind its recorder.
    fn recorder(&self, way: Way, probes: Option<&Probes>) -> Command {
        let of = |program: &Path, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).arg("-o").arg(&self.data);
            command
        };
        let request = match self.options.by {
            By::Function => format!("call={}:{FUNCTION}", self.program.display()),
            By::Goroutine => format!("call={}:main.{FUNCTION}", self.program.display()),
            By::Socket => format!("call=tcp:{PORT}"),
        };
        let whit = |engine, options: &[&str]| {
            let mut command = of(&self.options.setup.whit, &["record", "-q", engine]);
            command.args(options).arg("--").arg(&self.program);
            command
        };
        let requests = ["--request", &request];
        match way {
            Way::Alone => Command::new(&self.program),
            Way::Switches => whit("--engine=bpf", &["--wakeups", "--switch-events"]),
            Way::Bpf => whit("--engine=bpf", &requests),
            Way::Ring => whit("--engine=ring", &requests),
            Way::Perf => {
                let mut command = of(&perf(), &["record", "-q", "-N", "-m", "4M"]);
                match self.options.by {
                    By::Function | By::Goroutine => {
                        let events = probes.into_iter().flat_map(Probes::events);
                        events.for_each(|event| {
                            command.args(["-e", &event]);
                        });
                    }
                    By::Socket => {
                        let events = SOCKET_EVENTS.join(",");
                        command.args(["--switch-events", "-e", &events]);
                    }
                }
                command.arg("--").arg(&self.program);
                command
            }
        }
    }

    /// Requests with both ends.
    fn requests(&self) -> Result<f64, Error> {
        let mut command = Command::new(&self.options.setup.whit);
        command.args(["requests", "--json", "-i"]).arg(&self.data);
        let requests: Value = serde_json::from_str(&output_of(command)?)?;
        requests["requests"][0]["count"].as_f64().context("whit requests has no count")
    }

    /// Pairs of perf's samples.
    fn pairs(&self) -> Result<f64, Error> {
        let mut command = Command::new(perf());
        command.args(["script", "-F", "event", "-i"]).arg(&self.data);
        Ok(output_of(command)?.lines().count() as f64 / 2.0)
    }
}

/// perf's tracepoints of data that threads receive and send.
const SOCKET_EVENTS: [&str; 2] = ["sock:sock_recv_length", "sock:sock_send_length"];

const NAMES: [&str; 1] = ["recorder"];
const COLUMNS: [Column<Run>; 2] =
    [("µs a call", |run| Some(run.us), spread), ("calls recorded", |run| run.calls, spread)];

impl Figures for Comparison {
    fn show(&self, page: &mut Page) {
        self.versions.iter().for_each(|version| page.fact(version));
        let what = match self.by {
            By::Function => "calls of an empty function",
            By::Goroutine => "calls of an empty function of a Go program",
            By::Socket => "requests that do nothing by a connection of TCP, one after the other,",
        };
        page.fact(format_args!("{} {what} in each run", self.calls));
        let rows = self.rows.iter().map(|row| row.cells(vec![row.case.to_string()], &COLUMNS));
        page.table(headings(&NAMES, &COLUMNS), NAMES.len(), rows);
    }

    fn succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.case == Way::Perf || row.refused.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::page;

    #[test]
    fn rows_have_times_and_recorded_calls() {
        let row = |case, runs: &[(f64, Option<f64>)], refused: Option<&str>| Row {
            case,
            runs: runs.iter().map(|&(us, calls)| Run { us, calls }).collect(),
            refused: refused.map(str::to_owned),
        };
        let rows = vec![
            row(Way::Alone, &[(0.01, None), (0.02, None)], None),
            row(Way::Bpf, &[(13.0, Some(100.0)), (14.0, Some(99.0)), (15.0, Some(100.0))], None),
            row(Way::Perf, &[], Some("no right")),
        ];
        let mut comparison =
            Comparison { by: By::Function, calls: 100, versions: vec!["whit 1".into()], rows };
        let shown = page(None, &comparison);
        for wanted in [
            "- 100 calls of an empty function in each run",
            "14.0 (13.0–15.0)",
            "100 (99.0–100)",
            "| perf record              | no right",
        ] {
            assert!(shown.contains(wanted), "{wanted}: {shown}");
        }
        assert!(comparison.succeeded());
        comparison.rows[1].refused = Some("no right".into());
        assert!(!comparison.succeeded());
    }
}
