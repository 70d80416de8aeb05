//! The recordings of a round.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use whit_measure::measure::{self, Measurement, Outcome};
use whit_perfdata::reader::Recording;

use super::{Archived, Embedded, Kept, Load, Options, Round};
use crate::Error;
use crate::scratch::Scratch;

const NS_IN_MS: f64 = 1e6;
/// Around the figures in the recorder's last line.
const NAMES_TAKE: &str = "the names of frames take ";
const WRITTEN_IN: &str = " KiB of the recording, written in ";

/// Runs of one program; the inner error is whit's or the program's.
pub(super) fn round(
    load: Load,
    options: &Options,
    scratch: &Scratch,
) -> Result<Result<Round, String>, Error> {
    let runs = Runs { load, options, place: scratch.path() };
    let cache = runs.home().join(".debug");
    if cache.exists() {
        fs::remove_dir_all(&cache).map_err(Error::file("remove", &cache))?;
    }
    // No cache is made for a user without a home.
    fs::create_dir_all(runs.home()).map_err(Error::file("create", &runs.home()))?;
    runs.all()
}

struct Runs<'a> {
    load: Load,
    options: &'a Options,
    place: &'a Path,
}

/// Ends with whit's or the program's error, where there is one.
macro_rules! come_through {
    ($run:expr) => {
        match $run? {
            Ok(figures) => figures,
            Err(reason) => return Ok(Err(reason)),
        }
    };
}

impl Runs<'_> {
    fn home(&self) -> PathBuf {
        self.place.join("home")
    }

    fn all(&self) -> Result<Result<Round, String>, Error> {
        let without = come_through!(self.kept("without.data", &["-N"]));
        let first = come_through!(self.kept("kept.data", &[]));
        let again = come_through!(self.kept("kept.data", &[]));
        let hot = come_through!(self.embedded("hot"));
        let all = come_through!(self.embedded("all"));
        let archive = come_through!(self.archived("without.data"));
        Ok(Ok(Round { without, first, again, hot, all, archive }))
    }

    /// Records with these options. Gives the recorder's messages.
    fn record(&self, name: &str, more: &[&str]) -> Result<Result<String, String>, Error> {
        let words =
            self.load.command(self.options.seconds, &self.options.setup.workloads, self.place)?;
        let mut recorder = self.whit();
        recorder.arg("record").args(self.load.options()).args(more);
        recorder.arg("-o").arg(self.place.join(name)).arg("--").args(words);
        let (measured, said) = self.run(recorder)?;
        self.remove_perf_map();
        Ok(come_through(&measured).map(|()| said))
    }

    fn whit(&self) -> Command {
        let mut whit = Command::new(&self.options.setup.whit);
        // The tables of binaries stay from run to run, as they do for users.
        whit.env("HOME", self.home()).env("XDG_CACHE_HOME", self.place.join("cache"));
        whit.env("DEBUGINFOD_URLS", "");
        whit
    }

    fn run(&self, command: Command) -> Result<(Measurement, String), Error> {
        let program = self.options.setup.whit.clone();
        let run = measure::run_watched(command, self.options.setup.limit, &|| None);
        let (measured, printed) = run.map_err(|source| Error::Run { program, source })?;
        Ok((measured, printed.stderr))
    }

    /// That of the program that has just ended: virtual machines leave it behind.
    fn remove_perf_map(&self) {
        let pid = fs::read_to_string(self.place.join("pid")).unwrap_or_default();
        let _ = fs::remove_file(format!("/tmp/perf-{}.map", pid.trim()));
    }

    fn size_bytes(&self, name: &str) -> Result<u64, Error> {
        let path = self.place.join(name);
        fs::metadata(&path).map(|file| file.len()).map_err(Error::file("read", &path))
    }

    fn kept(&self, name: &str, more: &[&str]) -> Result<Result<Kept, String>, Error> {
        come_through!(self.record(name, more));
        let recording = Recording::open(&self.place.join(name))?;
        let ledger = recording.features.ledger().unwrap_or_default();
        Ok(Ok(Kept {
            samples: ledger.samples,
            bytes: self.size_bytes(name)?,
            end_ms: ledger.teardown_ns as f64 / NS_IN_MS,
            copying_ms: ledger.kept_ns as f64 / NS_IN_MS,
            binaries: ledger.kept_binaries,
            copied_bytes: ledger.kept_bytes,
        }))
    }

    fn embedded(&self, extent: &str) -> Result<Result<Embedded, String>, Error> {
        let (name, option) = ("names.data", format!("--embed-symbols={extent}"));
        let said = come_through!(self.record(name, &["-N", &option]));
        let Some((names_kib, seconds)) = names_of(&said) else { return Ok(Err(said)) };
        Ok(Ok(Embedded { bytes: self.size_bytes(name)?, names_kib, seconds }))
    }

    fn archived(&self, original: &str) -> Result<Result<Archived, String>, Error> {
        let mut export = self.whit();
        export.args(["export", "--archive", "-f", "-i"]).arg(self.place.join(original));
        export.arg("-o").arg(self.place.join("archive.data"));
        let (measured, _) = self.run(export)?;
        let bytes = || self.size_bytes("archive.data");
        let archived = |bytes| Archived {
            bytes,
            seconds: measured.wall_s,
            cpu_s: measured.user_s + measured.sys_s,
            peak_bytes: measured.max_rss_bytes,
        };
        match come_through(&measured) {
            Ok(()) => Ok(Ok(archived(bytes()?))),
            Err(reason) => Ok(Err(reason)),
        }
    }
}

fn come_through(measured: &Measurement) -> Result<(), String> {
    match &measured.outcome {
        Outcome::Success => Ok(()),
        Outcome::TimedOut { limit_s } => Err(format!("took more than {limit_s} s")),
        Outcome::Failed { status, stderr } => Err(format!("{status}: {}", stderr.trim())),
    }
}

/// Size of the names in KiB, and the time that they took, in the recorder's messages.
pub(super) fn names_of(said: &str) -> Option<(u64, f64)> {
    let (_, behind) = said.split_once(NAMES_TAKE)?;
    let (kib, behind) = behind.split_once(WRITTEN_IN)?;
    let (seconds, _) = behind.split_once(" s")?;
    Some((kib.parse().ok()?, seconds.parse().ok()?))
}
