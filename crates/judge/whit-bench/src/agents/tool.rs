//! The agents: how each is started, ended, and asked for its profile.

use clap::ValueEnum;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::installed::version;
use crate::named::named;

/// Beside which profiles agents write other files.
const PROFILE: &str = "profile.pb.gz";
/// Folder for files that an agent keeps for its next start.
pub(super) const CACHE: &str = "cache";

/// An agent in one of its uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Agent {
    /// `whit watch`, which writes recordings.
    WhitWatch,
    /// `whit record -a`, with the same engine.
    WhitRecord,
    /// lightswitch, with its own unwinder.
    Lightswitch,
    /// profile-bee with unwind tables.
    #[value(name = "profile-bee-dwarf")]
    ProfileBee,
    /// profile-bee as it is without options: by frame pointers.
    #[value(name = "profile-bee")]
    ProfileBeeFramePointers,
    /// The profiler of OpenTelemetry.
    #[value(name = "otel-ebpf-profiler")]
    OpenTelemetry,
}

/// Where programs are, and how they sample.
#[derive(Clone, Debug)]
pub(super) struct Programs<'a> {
    pub(super) whit: &'a Path,
    /// The folder of the other agents.
    pub(super) folder: &'a Path,
    /// Takes what an agent sends.
    pub(super) collector: &'a Path,
    pub(super) frequency_hz: u32,
}

impl Agent {
    pub(super) fn is_whit(self) -> bool {
        matches!(self, Agent::WhitWatch | Agent::WhitRecord)
    }

    /// Samples a second where nobody asks for another number.
    pub(super) fn own_frequency_hz(self) -> u32 {
        match self {
            Agent::WhitWatch | Agent::Lightswitch => 19,
            Agent::WhitRecord => 4000,
            Agent::ProfileBee | Agent::ProfileBeeFramePointers => 99,
            Agent::OpenTelemetry => 20,
        }
    }

    /// Whether it writes no profile, but sends its samples to a collector.
    pub(super) fn sends(self) -> bool {
        self == Agent::OpenTelemetry
    }

    /// Its message as soon as it samples.
    pub(super) fn ready_message(self) -> Option<&'static str> {
        (self == Agent::OpenTelemetry).then_some("Attached sched monitor")
    }

    fn program(self, programs: &Programs<'_>) -> PathBuf {
        match self {
            Agent::WhitWatch | Agent::WhitRecord => programs.whit.to_owned(),
            Agent::Lightswitch => programs.folder.join("lightswitch"),
            Agent::ProfileBee | Agent::ProfileBeeFramePointers => programs.folder.join("probee"),
            Agent::OpenTelemetry => programs.folder.join("ebpf-profiler"),
        }
    }

    /// Its version, or why it is not here.
    pub(super) fn version(self, programs: &Programs<'_>) -> Result<String, String> {
        let program = self.program(programs);
        if !self.is_whit() && !program.is_file() {
            return Err(format!(
                "there is no {}: `make setup-bench` builds it where it can",
                program.display()
            ));
        }
        if self.sends() && !programs.collector.is_file() {
            return Err(format!(
                "there is no {}, which takes what it sends: `make setup-test` builds it where it can",
                programs.collector.display()
            ));
        }
        let option = if self == Agent::OpenTelemetry { "-version" } else { "--version" };
        version_by(&program, option)
    }

    /// Runs until a signal ends it. `folder` takes all that it writes, `receiver` all that it sends.
    pub(super) fn command(
        self,
        programs: &Programs<'_>,
        folder: &Path,
        receiver: Option<SocketAddr>,
    ) -> Command {
        let mut command = Command::new(self.program(programs));
        let rate = programs.frequency_hz.to_string();
        match self {
            Agent::WhitWatch => {
                command
                    .args(["watch", "--event", "cpu-clock", "--freq", &rate, "--folder"])
                    .arg(folder);
                command.arg("--socket").arg(folder.join("status"));
            }
            Agent::WhitRecord => {
                command.args([
                    "record",
                    "-q",
                    "-a",
                    "-e",
                    "cpu-clock",
                    "-F",
                    &rate,
                    "--engine=bpf",
                    "-o",
                ]);
                command.arg(folder.join("record.data"));
            }
            Agent::Lightswitch => {
                command.args(["--sample-freq", &rate, "--profile-format", "pprof"]);
                command.args(["--profile-name", PROFILE, "--profile-path"]).arg(folder);
                command.arg("--cache-dir-base").arg(folder.join(CACHE));
            }
            Agent::ProfileBee | Agent::ProfileBeeFramePointers => {
                command.args(["-f", &rate, "-t", "0", "--skip-idle", "--group-by-process"]);
                command.args((self == Agent::ProfileBee).then_some("--dwarf"));
                command.arg("-o").arg(folder.join(PROFILE));
            }
            Agent::OpenTelemetry => {
                command.args(["-samples-per-second", &rate, "-disable-tls"]);
                command.args(receiver.map(|address| format!("-collection-agent={address}")));
            }
        }
        command.current_dir(folder).env("XDG_CACHE_HOME", folder.join(CACHE));
        command.env("DEBUGINFOD_URLS", "");
        command
    }

    /// Ends it so that it writes its profile.
    pub(super) fn end_signal(self) -> Signal {
        if self == Agent::WhitWatch { Signal::TERM } else { Signal::INT }
    }

    /// The commands that write profiles of its recordings, and all profiles that are there then.
    pub(super) fn profiles(
        self,
        programs: &Programs<'_>,
        folder: &Path,
    ) -> (Vec<Command>, Vec<PathBuf>) {
        if !self.is_whit() {
            return (Vec::new(), vec![folder.join(PROFILE)]);
        }
        let export = |recording: &PathBuf| {
            let profile = recording.with_extension("pb.gz");
            let mut command = Command::new(programs.whit);
            command
                .args(["export", "-f", "--format", "pprof", "-i"])
                .arg(recording)
                .arg("-o")
                .arg(&profile);
            command.env("DEBUGINFOD_URLS", "").env("XDG_CACHE_HOME", folder.join(CACHE));
            (command, profile)
        };
        recordings(folder).iter().map(export).unzip()
    }

    /// Whether it says how many samples it lost, and how many it lost then.
    pub(super) fn reported_losses(self, log: &str, comments: &[String]) -> Option<u64> {
        match self {
            Agent::WhitWatch | Agent::WhitRecord => whits_losses(comments),
            Agent::Lightswitch => Some(sum_behind(log, "lost ", " samples on cpu")),
            Agent::ProfileBee | Agent::ProfileBeeFramePointers | Agent::OpenTelemetry => None,
        }
    }
}

named!(Agent);

fn version_by(program: &Path, option: &str) -> Result<String, String> {
    if option == "--version" {
        return version(program);
    }
    let output = Command::new(program).arg(option).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// In the order of their names, which is that of time.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        found.filter(|path| path.extension().is_some_and(|it| it == "data")).collect();
    found.sort();
    found
}

/// The sum over the profiles' comments; `None` where one says nothing of losses.
fn whits_losses(comments: &[String]) -> Option<u64> {
    let said = comments.iter().filter_map(|comment| comment.strip_prefix("Lost: "));
    let number = |text: &str| {
        let digits =
            text.split_whitespace().find_map(|word| word.replace(',', "").parse::<u64>().ok());
        if text.starts_with("nothing") { Some(0) } else { digits }
    };
    said.map(number).reduce(|sum, more| Some(sum? + more?)).flatten()
}

/// The sum of the numbers between these texts.
fn sum_behind(log: &str, before: &str, behind: &str) -> u64 {
    let number =
        |line: &str| line.split_once(before)?.1.split_once(behind)?.0.trim().parse::<u64>().ok();
    log.lines().filter_map(number).sum()
}
