//! The recorders that run beside ours.

use std::path::Path;
use std::process::{Command, Stdio};

use super::FORK_EVENT;
use crate::support::Skip;
use crate::support::tools::{command, newest_perf, perf, whit};
use whit_testing::wait::{Load, wait_until};

/// One that records the whole machine.
pub(super) struct Other {
    pub(super) name: &'static str,
    start: fn(&Path) -> Result<Load, Skip>,
}

const CLOCK: &[&str] = &["-g", "-F", "1999", "-e", "cpu-clock"];
const FORKS: &[&str] = &["-e", FORK_EVENT, "-c", "1"];
/// A recorder of the whole machine that asks for build ids makes stock perf elsewhere end with a smashed stack.
const NEWEST: &[&str] =
    &["--no-buildid-mmap", "-g", "-F", "1999", "-e", "cpu-clock", "--switch-events"];

/// Those that `scripts/setup.sh` can install, and whit.
pub(super) const OTHERS: [Other; 6] = [
    Other { name: "perf, a clock", start: |place| recorder(perf()?, CLOCK, place) },
    Other { name: "perf, the same event", start: |place| recorder(perf()?, FORKS, place) },
    Other { name: "newest perf", start: |place| recorder(newest_perf()?, NEWEST, place) },
    Other {
        name: "whit, rings",
        start: |place| recorder(whit(), &["--engine=ring", "-g", "--switch-events"], place),
    },
    Other {
        name: "whit, BPF",
        start: |place| recorder(whit(), &["--engine=bpf", "--switch-events"], place),
    },
    Other { name: "bpftrace", start: bpftrace },
];

impl Other {
    /// It records from now on; nothing, said aloud, where it is not installed.
    pub(super) fn start(&self, test: &str, place: &Path) -> Option<Load> {
        match (self.start)(place) {
            Ok(load) => Some(load),
            Err(Skip(reason)) => {
                whit_testing::skip(&format!("{test} beside {}", self.name), &reason);
                None
            }
        }
    }
}

fn recorder(mut other: Command, options: &[&str], place: &Path) -> Result<Load, Skip> {
    other.args(["record", "-q", "-a", "-o"]).arg(place.join("theirs.data")).args(options);
    let load = Load::start(&mut other);
    let directory = format!("/proc/{}/fd", load.id());
    wait_until("its events are open", || {
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.any(|link| link.to_string_lossy().contains("perf_event"))
    });
    Ok(load)
}

/// Probes are attached in this order.
const PROBES: &str = "
profile:hz:999 { @stacks[ustack, kstack, comm] = count(); }
tracepoint:sched:sched_switch { @switches[args->next_comm] = count(); }
tracepoint:sched:sched_process_fork { @forks[comm] = count(); }
interval:ms:10 { printf(\"all are attached\\n\"); }";

fn bpftrace(place: &Path) -> Result<Load, Skip> {
    whit_testing::probe::program("bpftrace")?;
    let out = place.join("bpftrace");
    let _ = std::fs::remove_file(&out);
    let load = Load::start(
        command("bpftrace").arg("-o").arg(&out).args(["-e", PROBES]).stderr(Stdio::null()),
    );
    wait_until("its probes are attached", || {
        std::fs::read_to_string(&out).is_ok_and(|text| text.contains("all are attached"))
    });
    Ok(load)
}
