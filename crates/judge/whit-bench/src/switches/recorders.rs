//! The recorders and their options.

use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program_time::{self, ProgramTime};
use crate::disk;
use crate::error::{self, Error};
use crate::installed::{in_words, version};
use crate::named::named;
use crate::record::recorded::Recorded;
use crate::record::recorder::{Recorder, RecorderKind, refusal};
use crate::record::run::{Figures, Run, RunLimits, record};
use crate::record::tables::EVERY_SWITCH;
use crate::record::workload::{Job, Workload, WorkloadResult};
use whit_measure::measure::{self, Outcome};

/// Threads of the ping-pong, on any machine.
const PINGPONG_THREADS: usize = 8;
/// Samples a second beside the switches.
const PINGPONG_HZ: &str = "1000";
/// Off-CPU time for each sample of a wait: waits of a ping-pong are a thousandth of that.
const OFF_CPU_PERIOD_NS: u64 = 10_000_000;
/// Frequency for the deep program.
const DEEP_HZ: &str = "5000";
/// Options of all recordings: nothing that costs after the end, times, CPUs.
const FRAME: &str = "-N -B -T --sample-cpu";

/// The recorded load.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum Load {
    /// Futex ping-pong of 8 threads: samples and every switch, with user and kernel stacks.
    Pingpong,
    /// Deep C++ recursion without frame pointers on every CPU, at 5 kHz.
    Deep,
}

impl Load {
    /// The program, and its threads.
    pub(super) fn workload(self) -> (Workload, usize) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Load::Pingpong => (Workload::Pingpong, PINGPONG_THREADS),
            Load::Deep => (Workload::Deep, Workload::Deep.threads(cpus)),
        }
    }
}

named!(Load);

/// A way to record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum Way {
    /// `perf record` as it comes.
    #[value(name = "perf")]
    PerfSerial,
    /// With asynchronous writes.
    #[value(name = "perf --aio")]
    PerfAio,
    /// With a thread for each CPU.
    #[value(name = "perf --threads")]
    PerfThreads,
    /// Compressed.
    #[value(name = "perf -z")]
    PerfZ,
    /// With dumps of 32 KiB, which hold deep stacks.
    #[value(name = "perf, 32 KiB")]
    Perf32K,
    /// Without stacks: the cost of the samples themselves, with any recorder.
    #[value(name = "perf, no stacks")]
    PerfClock,
    /// `samply record`.
    Samply,
    /// whit with copies of stacks, as perf.
    #[value(name = "whit, ring")]
    WhitRing,
    /// The same with every mode of streaming.
    #[value(name = "whit, ring, all modes")]
    WhitRingAll,
    /// whit with stacks unwound in the kernel.
    #[value(name = "whit, bpf")]
    WhitBpf,
    /// The same, with switches as perf has them.
    #[value(name = "whit, bpf, not packed")]
    WhitBpfPlain,
    /// whit without switches: one sample of a wait, with its stacks, for each period of off-CPU time.
    #[value(name = "whit, bpf, waits sampled")]
    WhitOffCpu,
}

impl Way {
    /// Those of a load.
    pub(super) fn of(load: Load) -> &'static [Way] {
        use Way as W;
        match load {
            Load::Pingpong => &[
                W::PerfSerial,
                W::PerfAio,
                W::PerfThreads,
                W::PerfZ,
                W::Samply,
                W::WhitRing,
                W::WhitRingAll,
                W::WhitBpf,
                W::WhitBpfPlain,
                W::WhitOffCpu,
            ],
            Load::Deep => {
                &[W::PerfClock, W::PerfSerial, W::Perf32K, W::Samply, W::WhitRing, W::WhitBpf]
            }
        }
    }

    /// Those of perf's that record stacks, to compare the best of them.
    pub(crate) fn is_perf(self) -> bool {
        self.recorder() == Some(RecorderKind::Perf) && self != Way::PerfClock
    }

    /// Whether it is whit.
    pub(crate) fn is_whit(self) -> bool {
        self.recorder() == Some(RecorderKind::Whit)
    }

    /// Whether its recordings are perf.data, which can be counted.
    pub(super) fn has_content(self) -> bool {
        self.recorder().is_some()
    }

    fn recorder(self) -> Option<RecorderKind> {
        match self {
            Way::Samply => None,
            Way::WhitRing
            | Way::WhitRingAll
            | Way::WhitBpf
            | Way::WhitBpfPlain
            | Way::WhitOffCpu => Some(RecorderKind::Whit),
            _ => Some(RecorderKind::Perf),
        }
    }

    /// The options of its `record`.
    pub(super) fn options(self, load: Load, event: &str) -> Vec<String> {
        let stack = if self == Way::Perf32K { "32768" } else { "8192" };
        let hz = if load == Load::Deep { DEEP_HZ } else { PINGPONG_HZ };
        let what = match load {
            _ if self == Way::Samply => format!("-r {hz}"),
            // Its switches have stacks, beside any other samples.
            _ if self == Way::PerfClock => format!("{FRAME} -F {hz} -e {event}"),
            Load::Pingpong if matches!(self, Way::WhitBpf | Way::WhitBpfPlain) => {
                format!("{FRAME} -F {hz} -g --switch-events -e {event}")
            }
            Load::Pingpong if self == Way::WhitOffCpu => {
                format!("{FRAME} -F {hz} -g --off-cpu-period {OFF_CPU_PERIOD_NS} -e {event}")
            }
            Load::Deep if self == Way::WhitBpf => format!("{FRAME} -F {hz} -g -e {event}"),
            Load::Pingpong => format!(
                "{FRAME} -F {hz} --call-graph dwarf,{stack} --switch-events -e {event},{EVERY_SWITCH}"
            ),
            Load::Deep => format!("{FRAME} -F {hz} --call-graph dwarf,{stack} -e {event}"),
        };
        let how = match self {
            Way::PerfAio => "--aio",
            Way::PerfThreads => "--threads=cpu",
            Way::PerfZ => "-z",
            Way::WhitRing => "--engine=ring",
            Way::WhitRingAll => "--engine=ring --threads=cpu --aio --affinity=cpu -z",
            Way::WhitBpf | Way::WhitOffCpu => "--engine=bpf",
            Way::WhitBpfPlain => "--engine=bpf --no-pack",
            Way::PerfSerial | Way::Perf32K | Way::PerfClock | Way::Samply => "",
        };
        format!("{how} {what}").split_ascii_whitespace().map(str::to_owned).collect()
    }
}

named!(Way);

/// The installed recorders.
#[derive(Debug)]
pub(super) struct Programs {
    recorders: Vec<Recorder>,
    samply: Option<String>,
    absent: Vec<String>,
}

impl Programs {
    pub(super) fn detect(whit: &Path) -> Programs {
        let (recorders, missing) = Recorder::detect_all(whit);
        let mut absent = in_words(&missing);
        let samply = version(Path::new(SAMPLY)).map_err(|reason| absent.push(reason)).ok();
        Programs { recorders, samply, absent }
    }

    pub(super) fn has(&self, way: Way) -> bool {
        match way.recorder() {
            Some(kind) => self.recorders.iter().any(|recorder| recorder.kind == kind),
            None => self.samply.is_some(),
        }
    }

    pub(super) fn absent(&self) -> &[String] {
        &self.absent
    }

    pub(super) fn versions(&self) -> Vec<String> {
        let recorders = self.recorders.iter().map(|recorder| recorder.version.clone());
        recorders.chain(self.samply.clone()).collect()
    }

    /// The time of the programs that sample waits, where whit and the load have them.
    pub(super) fn program_time(
        &self,
        load: Load,
        event: &str,
        job: &Job,
        place: RunLimits<'_>,
    ) -> Result<Vec<ProgramTime>, Error> {
        let whit = self.recorders.iter().find(|recorder| recorder.kind == RecorderKind::Whit);
        let way = Way::WhitOffCpu;
        match whit.filter(|_| Way::of(load).contains(&way)) {
            Some(whit) => program_time::windows(whit, &way.options(load, event), job, place),
            None => Ok(Vec::new()),
        }
    }

    /// Records the job once, and removes the recording.
    pub(super) fn record(
        &self,
        way: Way,
        load: Load,
        event: &str,
        job: &Job,
        place: RunLimits<'_>,
    ) -> Result<Run, Error> {
        let options = way.options(load, event);
        match way.recorder() {
            None => samply(&options, job, place),
            Some(kind) => {
                let recorder = self.recorders.iter().find(|recorder| recorder.kind == kind);
                let missing = || Run::Refused { message: "is not installed".into() };
                recorder.map_or_else(|| Ok(missing()), |it| record(it, &options, job, place))
            }
        }
    }
}

const SAMPLY: &str = "samply";

/// samply writes a profile of its own. Only its size and its cost are known.
fn samply(options: &[String], job: &Job, place: RunLimits<'_>) -> Result<Run, Error> {
    place.scratch.clear()?;
    let output = place.scratch.path().join("profile.json.gz");
    let mut command = Command::new(SAMPLY);
    command.args(["record", "--save-only", "-o"]).arg(&output).args(options);
    command.arg("--").args(&job.words);
    let watch = || disk::full(place.scratch.path());
    let (measurement, printed) = measure::run_watched(command, place.limit, &watch)
        .map_err(error::run(PathBuf::from(SAMPLY)))?;
    let size_bytes = std::fs::metadata(&output).map_or(0, |file| file.len());
    place.scratch.clear()?;
    Ok(match (&measurement.outcome, WorkloadResult::parse(&printed.stdout)) {
        (Outcome::TimedOut { limit_s }, _) => Run::TimedOut { limit_s: *limit_s },
        (Outcome::Success, Some(workload)) if size_bytes > 0 => {
            let recorded = Recorded { size_bytes, ..Recorded::default() };
            Run::Measured(Box::new(Figures::new(measurement, workload, recorded)))
        }
        _ => Run::Refused { message: refusal(&printed.stderr) },
    })
}
