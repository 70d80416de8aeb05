//! The programs that are compared.

mod sql;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use serde::Serialize;

use crate::installed::{Absent, version};
use crate::named::named;
use whit_measure::measure::command_line;

/// A reader of recordings, in one of the ways it is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum PeerKind {
    /// Inlined frames included.
    Whit,
    PerfReport,
    /// As it comes: inlined frames included.
    PerfScript,
    /// Frames of binaries' symbols only.
    PerfScriptNoInline,
    /// It unwinds and leaves symbols to the browser.
    Samply,
    /// The most telling facts in 4 KiB.
    WhitBrief,
    /// Waits of threads.
    WhitSwitches,
    /// The critical path.
    WhitWhy,
    /// Each switch of `sched:sched_switch`.
    PerfSchedTimehist,
    /// One function.
    WhitAnnotate,
    /// That function, which objdump disassembles.
    PerfAnnotate,
    WhitExportPprof,
    WhitExportFirefox,
    WhitExportPerfetto,
    WhitExportSpeedscope,
    WhitExportOtlp,
    WhitExportFolded,
    /// The recording with the names of its frames.
    WhitExportArchive,
    /// One statement of SQL over the recording.
    WhitQueryFunctions,
    WhitQueryCommands,
    WhitQueryWaits,
    /// A new dataset.
    WhitExportParquet,
    /// The same statements over a dataset that has the recording.
    WhitDatasetFunctions,
    WhitDatasetCommands,
    WhitDatasetWaits,
    /// The same over that dataset, in DuckDB.
    DuckdbFunctions,
    DuckdbCommands,
    DuckdbWaits,
}

named!(PeerKind);

/// The hottest function of the workload `deep`.
pub(crate) const HOTTEST: &str = "kernels::hash_block";

impl PeerKind {
    /// Those that make profiles of any recording, in the order in which they are shown.
    pub(crate) const READERS: [PeerKind; 5] = [
        PeerKind::Whit,
        PeerKind::PerfReport,
        PeerKind::PerfScript,
        PeerKind::PerfScriptNoInline,
        PeerKind::Samply,
    ];

    /// `whit report`, and `whit export` in each format.
    pub(crate) const EXPORTS: [PeerKind; 8] = [
        PeerKind::Whit,
        PeerKind::WhitExportPprof,
        PeerKind::WhitExportFirefox,
        PeerKind::WhitExportPerfetto,
        PeerKind::WhitExportSpeedscope,
        PeerKind::WhitExportOtlp,
        PeerKind::WhitExportFolded,
        PeerKind::WhitExportArchive,
    ];

    /// The answers for programs, and the report that they stand for.
    pub(crate) const BRIEF: [PeerKind; 2] = [PeerKind::WhitBrief, PeerKind::PerfReport];

    /// The critical path, and the waits that it is made of.
    pub(crate) const WHY: [PeerKind; 2] = [PeerKind::WhitWhy, PeerKind::WhitSwitches];

    /// `whit report`, and each statement over the recording, over a dataset, and in DuckDB over that dataset.
    pub(crate) const QUERIES: [PeerKind; 11] = [
        PeerKind::Whit,
        PeerKind::WhitQueryFunctions,
        PeerKind::WhitQueryCommands,
        PeerKind::WhitQueryWaits,
        PeerKind::WhitExportParquet,
        PeerKind::WhitDatasetFunctions,
        PeerKind::WhitDatasetCommands,
        PeerKind::WhitDatasetWaits,
        PeerKind::DuckdbFunctions,
        PeerKind::DuckdbCommands,
        PeerKind::DuckdbWaits,
    ];

    /// Program and arguments. Words in capital letters are places of others.
    fn line(self) -> &'static str {
        match self {
            PeerKind::Whit => "whit report --stdio -i FILE",
            PeerKind::PerfReport => "perf report --stdio --no-inline -i FILE",
            PeerKind::PerfScript => "perf script -i FILE",
            PeerKind::PerfScriptNoInline => "perf script --no-inline -i FILE",
            PeerKind::Samply => "samply import --save-only --output OUT FILE",
            PeerKind::WhitBrief => "whit report --brief -i FILE",
            PeerKind::WhitSwitches => "whit switches -i FILE",
            PeerKind::WhitWhy => "whit why -i FILE",
            PeerKind::PerfSchedTimehist => "perf sched timehist -i FILE",
            PeerKind::WhitAnnotate => "whit annotate --stdio -s FUNCTION -i FILE",
            PeerKind::PerfAnnotate => "perf annotate --stdio -s FUNCTION -i FILE",
            PeerKind::WhitExportPprof => "whit export -f --format pprof -i FILE -o OUT",
            PeerKind::WhitExportFirefox => "whit export -f --format firefox -i FILE -o OUT",
            PeerKind::WhitExportPerfetto => "whit export -f --format perfetto -i FILE -o OUT",
            PeerKind::WhitExportSpeedscope => "whit export -f --format speedscope -i FILE -o OUT",
            PeerKind::WhitExportOtlp => "whit export -f --format otlp -i FILE -o OUT",
            PeerKind::WhitExportFolded => "whit export -f --format folded -i FILE -o OUT",
            PeerKind::WhitExportArchive => "whit export -f --archive -i FILE -o OUT",
            PeerKind::WhitExportParquet => "whit export --parquet OUT -i FILE",
            PeerKind::WhitQueryFunctions => "whit query -i FILE -c FUNCTIONS",
            PeerKind::WhitQueryCommands => "whit query -i FILE -c COMMANDS",
            PeerKind::WhitQueryWaits => "whit query -i FILE -c WAITS",
            PeerKind::WhitDatasetFunctions => "whit query --dataset DATASET -c FUNCTIONS",
            PeerKind::WhitDatasetCommands => "whit query --dataset DATASET -c COMMANDS",
            PeerKind::WhitDatasetWaits => "whit query --dataset DATASET -c WAITS",
            PeerKind::DuckdbFunctions => {
                "python -c SCRIPT DATASET FUNCTIONS CALLSITE_WEIGHT TOP_FUNCTIONS"
            }
            PeerKind::DuckdbCommands => "python -c SCRIPT DATASET COMMANDS",
            PeerKind::DuckdbWaits => "python -c SCRIPT DATASET WAITS",
        }
    }

    fn words(self) -> impl Iterator<Item = &'static str> {
        self.line().split(' ')
    }

    /// Whether it is whit.
    pub(crate) fn is_whit(self) -> bool {
        self.words().next() == Some("whit")
    }

    /// Whether it reads a dataset that has the recording, in the place of the recording.
    pub(crate) fn reads_dataset(self) -> bool {
        self.words().any(|word| word == "DATASET")
    }

    fn program(self, whit: &Path) -> PathBuf {
        match self.words().next() {
            Some("whit") => whit.to_owned(),
            Some("perf") => perf(),
            Some("python") => sql::python(),
            other => other.unwrap_or_default().into(),
        }
    }

    /// The arguments for people.
    fn shown(self, function: &str) -> Vec<String> {
        let words = self.words().skip(1).map(|word| match word {
            "FUNCTION" => function,
            _ => sql::statement(word).unwrap_or(word),
        });
        words.map(str::to_owned).collect()
    }
}

/// The perf to use: that of the environment variable `PERF`, else the one in `PATH`.
pub(crate) fn perf() -> PathBuf {
    std::env::var_os("PERF").map_or_else(|| "perf".into(), PathBuf::from)
}

/// Files of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths<'a> {
    pub(crate) recording: &'a Path,
    /// A dataset that has the recording.
    pub(crate) dataset: &'a Path,
    /// A file or a folder.
    pub(crate) output: &'a Path,
}

/// A peer that is installed here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Peer {
    pub(crate) kind: PeerKind,
    pub(crate) program: PathBuf,
    /// First line of the program's `--version`.
    pub(crate) version: String,
    /// The command line, for people.
    pub(crate) command: String,
    /// The function that some peers show.
    #[serde(skip)]
    pub(crate) function: String,
}

impl Peer {
    /// Looks for the program and asks for its version. `whit` is the whit to compare.
    pub(crate) fn detect(
        kind: PeerKind,
        whit: &Path,
        function: &str,
    ) -> Result<Peer, Absent<PeerKind>> {
        let program = kind.program(whit);
        let version = match kind.line().starts_with("python") {
            true => sql::duckdb_version(&program),
            false => version(&program),
        };
        let version = version.map_err(|reason| Absent { kind, reason })?;
        let function = function.to_owned();
        let name = program.file_name().map_or(program.clone(), PathBuf::from);
        let command = command_line(&name, &kind.shown(&function));
        Ok(Peer { kind, command, program, version, function })
    }

    /// The command that reads a recording, or a dataset of it.
    ///
    /// Nothing of the user's set-up plays in: no perf configuration, no debuginfod server.
    pub(crate) fn command(&self, paths: &Paths<'_>) -> Command {
        let mut command = Command::new(&self.program);
        for word in self.kind.words().skip(1) {
            match word {
                "FILE" => command.arg(paths.recording),
                "DATASET" => command.arg(paths.dataset),
                "OUT" => command.arg(paths.output),
                "FUNCTION" => command.arg(&self.function),
                _ => command.arg(sql::statement(word).or(sql::script(word)).unwrap_or(word)),
            };
        }
        command.env("DEBUGINFOD_URLS", "").env("PERF_CONFIG", "/dev/null");
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_reads_the_recording_or_its_dataset_once() {
        for kind in PeerKind::value_variants() {
            let words = kind.shown(HOTTEST);
            let of = |name: &str| words.iter().filter(|word| *word == name).count();
            let wanted = if kind.reads_dataset() { (0, 1) } else { (1, 0) };
            assert_eq!((of("FILE"), of("DATASET")), wanted, "{words:?}");
        }
    }

    #[test]
    fn no_place_is_left_in_a_command() {
        for &kind in PeerKind::value_variants() {
            let peer = Peer { function: "f".into(), ..Peer::of(kind) };
            let [recording, dataset, output] = ["r", "d", "o"].map(Path::new);
            let command = peer.command(&Paths { recording, dataset, output });
            let is_place = |word: &&std::ffi::OsStr| {
                word.to_str().unwrap().chars().all(|letter| letter.is_ascii_uppercase())
            };
            assert_eq!(command.get_args().find(is_place), None, "{kind}");
        }
    }

    impl Peer {
        fn of(kind: PeerKind) -> Peer {
            let (version, command, function) = Default::default();
            Peer { kind, program: "p".into(), version, command, function }
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
