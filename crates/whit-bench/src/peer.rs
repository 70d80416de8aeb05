//! The programs that are compared.

mod sql;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::named::go_by_name;
use whit_measure::measure::command_line;

pub use sql::Question;
use words::Argument;
pub(crate) use words::Paths;

/// A reader of recordings, in one of the ways it is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PeerKind {
    /// `perf report --stdio --no-inline`.
    PerfReport,
    /// `perf script`, as it comes: inlined frames included.
    PerfScript,
    /// `perf script --no-inline`: frames of binaries' symbols only.
    PerfScriptNoInline,
    /// `samply import`, which unwinds and leaves symbols to the browser.
    Samply,
    /// `whit report --stdio`, inlined frames included.
    Whit,
    /// `whit report --brief`: the most telling facts in 4 KiB.
    WhitBrief,
    /// `whit switches`: what threads waited for.
    WhitSwitches,
    /// `perf sched timehist`, which prints each switch of `sched:sched_switch`.
    PerfSchedTimehist,
    /// `whit annotate` of one function.
    WhitAnnotate,
    /// `perf annotate --stdio` of that function, which objdump disassembles.
    PerfAnnotate,
    /// `whit export` into a file.
    WhitExport(ExportFormat),
    /// `whit export --archive` into a file: the recording with the names of its frames.
    WhitArchive,
    /// `whit export --parquet` into a new dataset.
    WhitParquet,
    /// One statement of SQL over the recording.
    WhitQuery(Question),
    /// The same over a dataset that has the recording.
    WhitDataset(Question),
    /// The same over that dataset, in DuckDB.
    DuckDb(Question),
}

/// The hottest function of the workload `deep`.
pub const HOTTEST: &str = "kernels::hash_block";

/// A format of `whit export`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExportFormat {
    /// `profile.proto`.
    Pprof,
    /// The Firefox Profiler's.
    Firefox,
    /// A Perfetto trace.
    Perfetto,
    /// speedscope's.
    Speedscope,
    /// OpenTelemetry profiles.
    Otlp,
    /// Folded stacks.
    Folded,
}

impl PeerKind {
    /// Those that make profiles of any recording, in the order in which they are shown.
    pub const READERS: [PeerKind; 5] = [
        PeerKind::Whit,
        PeerKind::PerfReport,
        PeerKind::PerfScript,
        PeerKind::PerfScriptNoInline,
        PeerKind::Samply,
    ];

    /// Those that need context switches in it.
    pub const OF_SWITCHES: [PeerKind; 2] = [PeerKind::WhitSwitches, PeerKind::PerfSchedTimehist];

    /// Those that show the instructions of a function.
    pub const OF_CODE: [PeerKind; 2] = [PeerKind::WhitAnnotate, PeerKind::PerfAnnotate];

    /// `whit report`, and `whit export` in each format.
    pub const EXPORTS: [PeerKind; 8] = [
        PeerKind::Whit,
        PeerKind::WhitExport(ExportFormat::Pprof),
        PeerKind::WhitExport(ExportFormat::Firefox),
        PeerKind::WhitExport(ExportFormat::Perfetto),
        PeerKind::WhitExport(ExportFormat::Speedscope),
        PeerKind::WhitExport(ExportFormat::Otlp),
        PeerKind::WhitExport(ExportFormat::Folded),
        PeerKind::WhitArchive,
    ];

    /// The answers for programs, and the report that they stand for.
    pub const BRIEF: [PeerKind; 2] = [PeerKind::WhitBrief, PeerKind::PerfReport];

    /// `whit report`, and each statement over the recording, over a dataset, and in DuckDB over that dataset.
    pub const QUERIES: [PeerKind; 11] = [
        PeerKind::Whit,
        PeerKind::WhitQuery(Question::Functions),
        PeerKind::WhitQuery(Question::Commands),
        PeerKind::WhitQuery(Question::Waits),
        PeerKind::WhitParquet,
        PeerKind::WhitDataset(Question::Functions),
        PeerKind::WhitDataset(Question::Commands),
        PeerKind::WhitDataset(Question::Waits),
        PeerKind::DuckDb(Question::Functions),
        PeerKind::DuckDb(Question::Commands),
        PeerKind::DuckDb(Question::Waits),
    ];

    /// Every peer that whit is compared with.
    pub fn all() -> impl Iterator<Item = PeerKind> {
        let exports = PeerKind::EXPORTS.into_iter().skip(1);
        let queries = PeerKind::QUERIES.into_iter().skip(1);
        let others = PeerKind::OF_SWITCHES.into_iter().chain(PeerKind::OF_CODE);
        let others = others.chain(exports).chain(queries);
        PeerKind::READERS.into_iter().chain([PeerKind::WhitBrief]).chain(others)
    }

    /// Whether it is whit.
    pub fn is_whit(self) -> bool {
        match self {
            PeerKind::Whit
            | PeerKind::WhitBrief
            | PeerKind::WhitSwitches
            | PeerKind::WhitAnnotate
            | PeerKind::WhitExport(_)
            | PeerKind::WhitArchive
            | PeerKind::WhitParquet
            | PeerKind::WhitQuery(_)
            | PeerKind::WhitDataset(_) => true,
            PeerKind::PerfReport
            | PeerKind::PerfScript
            | PeerKind::PerfScriptNoInline
            | PeerKind::PerfSchedTimehist
            | PeerKind::PerfAnnotate
            | PeerKind::DuckDb(_)
            | PeerKind::Samply => false,
        }
    }

    /// Whether it reads a dataset that has the recording, in the place of the recording.
    pub(crate) fn reads_dataset(self) -> bool {
        matches!(self, PeerKind::WhitDataset(_) | PeerKind::DuckDb(_))
    }

    /// Its name on the command line and in the table.
    pub fn name(self) -> &'static str {
        match self {
            PeerKind::PerfReport => "perf-report",
            PeerKind::PerfScript => "perf-script",
            PeerKind::PerfScriptNoInline => "perf-script-no-inline",
            PeerKind::Samply => "samply",
            PeerKind::Whit => "whit",
            PeerKind::WhitBrief => "whit-brief",
            PeerKind::WhitSwitches => "whit-switches",
            PeerKind::PerfSchedTimehist => "perf-sched-timehist",
            PeerKind::WhitAnnotate => "whit-annotate",
            PeerKind::PerfAnnotate => "perf-annotate",
            PeerKind::WhitExport(ExportFormat::Pprof) => "whit-export-pprof",
            PeerKind::WhitExport(ExportFormat::Firefox) => "whit-export-firefox",
            PeerKind::WhitExport(ExportFormat::Perfetto) => "whit-export-perfetto",
            PeerKind::WhitExport(ExportFormat::Speedscope) => "whit-export-speedscope",
            PeerKind::WhitExport(ExportFormat::Otlp) => "whit-export-otlp",
            PeerKind::WhitExport(ExportFormat::Folded) => "whit-export-folded",
            PeerKind::WhitArchive => "whit-export-archive",
            PeerKind::WhitQuery(Question::Functions) => "whit-query-functions",
            PeerKind::WhitQuery(Question::Commands) => "whit-query-commands",
            PeerKind::WhitQuery(Question::Waits) => "whit-query-waits",
            PeerKind::WhitParquet => "whit-export-parquet",
            PeerKind::WhitDataset(Question::Functions) => "whit-dataset-functions",
            PeerKind::WhitDataset(Question::Commands) => "whit-dataset-commands",
            PeerKind::WhitDataset(Question::Waits) => "whit-dataset-waits",
            PeerKind::DuckDb(Question::Functions) => "duckdb-functions",
            PeerKind::DuckDb(Question::Commands) => "duckdb-commands",
            PeerKind::DuckDb(Question::Waits) => "duckdb-waits",
        }
    }

    fn arguments(self) -> Vec<Argument> {
        use Argument::{Dataset, Function, Long, Output, Recording, Text};
        match self {
            PeerKind::PerfReport => {
                vec![Text("report"), Text("--stdio"), Text("--no-inline"), Text("-i"), Recording]
            }
            PeerKind::PerfScript => vec![Text("script"), Text("-i"), Recording],
            PeerKind::PerfScriptNoInline => {
                vec![Text("script"), Text("--no-inline"), Text("-i"), Recording]
            }
            PeerKind::Samply => {
                vec![Text("import"), Text("--save-only"), Text("--output"), Output, Recording]
            }
            PeerKind::Whit => vec![Text("report"), Text("--stdio"), Text("-i"), Recording],
            PeerKind::WhitBrief => vec![Text("report"), Text("--brief"), Text("-i"), Recording],
            PeerKind::WhitSwitches => vec![Text("switches"), Text("-i"), Recording],
            PeerKind::PerfSchedTimehist => {
                vec![Text("sched"), Text("timehist"), Text("-i"), Recording]
            }
            PeerKind::WhitAnnotate | PeerKind::PerfAnnotate => {
                let words = [Text("annotate"), Text("--stdio"), Text("-s"), Function];
                words.into_iter().chain([Text("-i"), Recording]).collect()
            }
            PeerKind::WhitExport(format) => vec![
                Text("export"),
                Text("-f"),
                Text("--format"),
                Text(format.name()),
                Text("-i"),
                Recording,
                Text("-o"),
                Output,
            ],
            PeerKind::WhitArchive => {
                let words = [Text("export"), Text("-f"), Text("--archive"), Text("-i")];
                words.into_iter().chain([Recording, Text("-o"), Output]).collect()
            }
            PeerKind::WhitParquet => {
                vec![Text("export"), Text("--parquet"), Output, Text("-i"), Recording]
            }
            PeerKind::WhitQuery(question) => {
                vec![Text("query"), Text("-i"), Recording, Text("-c"), Text(question.sql())]
            }
            PeerKind::WhitDataset(question) => {
                vec![Text("query"), Text("--dataset"), Dataset, Text("-c"), Text(question.sql())]
            }
            PeerKind::DuckDb(question) => {
                let words =
                    [Text("-c"), Long("SCRIPT", sql::DUCKDB), Dataset, Text(question.sql())];
                let views = sql::VIEWS.into_iter().map(|view| Long("VIEW", view));
                let views = views.filter(|_| question == Question::Functions);
                words.into_iter().chain(views).collect()
            }
        }
    }

    fn program(self, whit: &Path) -> PathBuf {
        match self {
            PeerKind::PerfReport
            | PeerKind::PerfScript
            | PeerKind::PerfScriptNoInline
            | PeerKind::PerfSchedTimehist
            | PeerKind::PerfAnnotate => perf(),
            PeerKind::Samply => "samply".into(),
            PeerKind::DuckDb(_) => sql::python(),
            PeerKind::Whit
            | PeerKind::WhitBrief
            | PeerKind::WhitSwitches
            | PeerKind::WhitAnnotate
            | PeerKind::WhitExport(_)
            | PeerKind::WhitArchive
            | PeerKind::WhitParquet
            | PeerKind::WhitQuery(_)
            | PeerKind::WhitDataset(_) => whit.to_owned(),
        }
    }
}

impl ExportFormat {
    fn name(self) -> &'static str {
        match self {
            ExportFormat::Pprof => "pprof",
            ExportFormat::Firefox => "firefox",
            ExportFormat::Perfetto => "perfetto",
            ExportFormat::Speedscope => "speedscope",
            ExportFormat::Otlp => "otlp",
            ExportFormat::Folded => "folded",
        }
    }
}

/// The perf to use: that of the environment variable `PERF`, else the one in `PATH`.
pub fn perf() -> PathBuf {
    std::env::var_os("PERF").map_or_else(|| "perf".into(), PathBuf::from)
}

go_by_name!(PeerKind, "peer", PeerKind::all());

/// A peer that is installed here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Peer {
    /// The profiler that the peer is.
    pub kind: PeerKind,
    /// Path of the program.
    pub program: PathBuf,
    /// First line of the program's `--version`.
    pub version: String,
    /// The command line, for people.
    pub command: String,
    /// The function that peers of [`PeerKind::OF_CODE`] show.
    #[serde(skip)]
    pub function: String,
}

/// A peer that is not installed here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AbsentPeer {
    /// The profiler that is missing.
    pub kind: PeerKind,
    /// Why it cannot be used.
    pub reason: String,
}

impl Peer {
    /// Looks for the program and asks for its version. `whit` is the whit to compare.
    pub fn detect(kind: PeerKind, whit: &Path, function: &str) -> Result<Peer, AbsentPeer> {
        let program = kind.program(whit);
        let version = match kind {
            PeerKind::DuckDb(_) => sql::duckdb_version(&program),
            _ => version(&program),
        };
        let version = version.map_err(|reason| AbsentPeer { kind, reason })?;
        let words = fill(kind, function, &Paths::for_people());
        let function = function.to_owned();
        let name = program.file_name().map_or(program.clone(), PathBuf::from);
        Ok(Peer { kind, command: command_line(&name, &words), program, version, function })
    }

    /// The command that reads a recording, or a dataset of it.
    ///
    /// Nothing of the user's set-up plays in: no perf configuration, no debuginfod server.
    pub(crate) fn command(&self, paths: &Paths<'_>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(fill(self.kind, &self.function, paths))
            .env("DEBUGINFOD_URLS", "")
            .env("PERF_CONFIG", "/dev/null");
        command
    }
}

fn fill(kind: PeerKind, function: &str, paths: &Paths<'_>) -> Vec<String> {
    kind.arguments().into_iter().map(|argument| argument.word(function, paths)).collect()
}

/// The first line of a program's `--version`.
pub(crate) fn version(program: &Path) -> Result<String, String> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("`{} --version` fails: {}", program.display(), output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_others_are_refused() {
        for kind in PeerKind::all() {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let error = "gprof".parse::<PeerKind>().unwrap_err().to_string();
        assert!(error.contains("gprof") && error.contains("perf-report"), "{error}");
    }

    #[test]
    fn every_command_reads_the_recording_or_its_dataset_once() {
        for kind in PeerKind::all() {
            let words = fill(kind, HOTTEST, &Paths::for_people());
            let of = |name: &str| words.iter().filter(|word| *word == name).count();
            let wanted = if kind.reads_dataset() { (0, 1) } else { (1, 0) };
            assert_eq!((of("FILE"), of("DATASET")), wanted, "{words:?}");
        }
    }

    #[test]
    fn a_missing_program_is_an_absent_peer() {
        let absent =
            Peer::detect(PeerKind::Whit, Path::new("/nonexistent/whit"), HOTTEST).unwrap_err();
        assert!(absent.reason.contains("/nonexistent/whit"), "{absent:?}");
    }

    #[test]
    fn a_present_program_has_a_version_and_a_short_command() {
        // Any program that knows --version stands in for whit here.
        let peer = Peer::detect(PeerKind::Whit, Path::new("/bin/bash"), HOTTEST).unwrap();
        assert!(peer.version.contains("bash"), "{peer:?}");
        assert_eq!(peer.command, "bash report --stdio -i FILE");
    }
}
