//! The recorders that are compared.

use std::path::Path;
use std::process::Command;

use crate::installed::{Installed, apart, version};
use crate::peer::perf;
use crate::setup::Setup;

/// A way to record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// whit, stacks unwound in the kernel, clocks on CPUs whose periods are drawn.
    Whit,
    /// The same with fixed periods.
    WhitFixed,
    /// whit, with an event for each thread.
    WhitRing,
    /// perf, with an event for each thread.
    Perf,
    /// perf, of all CPUs.
    PerfCpus,
}

/// A recorder that is here.
pub(crate) type Recorder = Installed<Kind>;

impl Kind {
    const ALL: [Kind; 5] =
        [Kind::Whit, Kind::WhitFixed, Kind::WhitRing, Kind::Perf, Kind::PerfCpus];

    fn is_whit(self) -> bool {
        matches!(self, Kind::Whit | Kind::WhitFixed | Kind::WhitRing)
    }

    /// Its name in tables: the options that matter.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Whit => "whit --engine=bpf",
            Kind::WhitFixed => "whit --engine=bpf --fixed-periods",
            Kind::WhitRing => "whit --engine=ring",
            Kind::Perf => "perf",
            Kind::PerfCpus => "perf -a",
        }
    }
}

impl Recorder {
    /// Records a program.
    pub(crate) fn command(
        &self,
        event: &str,
        hz: u32,
        output: &Path,
        program: &[String],
    ) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["record", "-q", "-e", event, "-F", &hz.to_string(), "-o"]).arg(output);
        match self.kind {
            Kind::Whit => command.arg("--engine=bpf"),
            Kind::WhitFixed => command.args(["--engine=bpf", "--fixed-periods"]),
            Kind::WhitRing => command.arg("--engine=ring"),
            Kind::Perf => command.arg("-N"),
            Kind::PerfCpus => command.args(["-N", "-a"]),
        };
        command.env("PERF_CONFIG", "/dev/null").arg("--").args(program);
        command
    }
}

/// Those that are here, and those that are not, with the reason.
pub(super) fn detect(setup: &Setup) -> (Vec<Recorder>, Vec<(String, String)>) {
    let (found, absent) = apart(Kind::ALL.into_iter().map(|kind| {
        Installed::detect(kind, if kind.is_whit() { setup.whit.clone() } else { perf() })
    }));
    let missing = absent.into_iter().map(|it| (it.kind.name().to_owned(), it.reason));
    let mut missing: Vec<_> = missing.collect();
    let why = match version(Path::new("samply")) {
        Ok(version) => {
            format!("{version} is installed, and leaves the names of functions to a browser")
        }
        Err(reason) => reason,
    };
    missing.push(("samply".to_owned(), why));
    (found, missing)
}
