//! Ways of recording that the attacks go through.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

/// A way of recording, by its options.
pub(crate) type Mode = &'static [&'static str];

/// Ways of streaming of the ring engine.
pub(crate) const STREAMING: [Mode; 7] = [
    &[],
    &["--aio"],
    &["-z"],
    &["-z", "--aio=4"],
    &["--dir", "--affinity=cpu"],
    &["--threads"],
    &["--threads", "--aio=2", "-z", "--affinity=cpu", "--mmap-flush=16K"],
];

/// Ways that make recordings of different records.
pub(crate) const CONTENTS: [Mode; 8] = [
    &["-e", "cpu-clock", "-g"],
    &["-e", "cpu-clock", "--call-graph", "dwarf,2048", "-F", "500"],
    &["-e", "cpu-clock", "-g", "-z"],
    &["-e", "cpu-clock,page-faults", "--switch-events", "--sample-cpu"],
    &["-e", "cpu-clock", "--engine=bpf", "--switch-events"],
    &["-e", "cpu-clock", "--engine=bpf", "--switch-events", "--no-pack"],
    &["-e", "cpu-clock", "--engine=bpf", "--wakeups", "-z"],
    &["-e", "cpu-clock", "--namespaces", "--all-cgroups", "-g"],
];

/// Work with forks, mappings and switches.
const WORK: &str = "for i in 1 2 3; do (ls / | sort >/dev/null); done; i=0; \
                    while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.01";

/// Records some work into `data`.
pub(crate) fn record(whit: &Path, mode: Mode, data: &Path) -> Result<()> {
    let mut command = Command::new(whit);
    command
        .args(["record", "--engine=ring"])
        .args(mode)
        .arg("-o")
        .arg(data)
        .args(["--", "sh", "-c", WORK]);
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot record with {mode:?}: {}", said.trim());
    Ok(())
}
