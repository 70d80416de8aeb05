//! Perf events: for this process, for whole CPUs, of the hardware, at tracepoints, of a cgroup.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use super::{Kept, Probed, cgroup_hierarchy, cpus, once};
use crate::Skip;
use crate::syscalls::{ATTR_BYTES, perf_event_open};

/// `PERF_TYPE_HARDWARE`, `PERF_TYPE_SOFTWARE`, `PERF_TYPE_TRACEPOINT`.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
/// `PERF_COUNT_SW_CPU_CLOCK`, `PERF_COUNT_HW_INSTRUCTIONS`.
const CPU_CLOCK: u64 = 0;
const INSTRUCTIONS: u64 = 1;
/// `exclude_kernel` and `exclude_hv`.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
/// `defer_callchain` and `defer_output` (Linux 6.19).
const DEFERRED_CHAINS: u64 = 1 << 38 | 1 << 39;
/// `PERF_FLAG_PID_CGROUP`.
const PID_IS_CGROUP: u64 = 4;
/// Rounds of a loop that a PMU counts at least as many instructions for.
const WORK_ROUNDS: u64 = 100_000;

fn attr(kind: u32, config: u64, flags: u64) -> [u8; ATTR_BYTES] {
    let mut attr = [0; ATTR_BYTES];
    attr[0..4].copy_from_slice(&kind.to_ne_bytes());
    attr[4..8].copy_from_slice(&(ATTR_BYTES as u32).to_ne_bytes());
    attr[8..16].copy_from_slice(&config.to_ne_bytes());
    attr[40..48].copy_from_slice(&flags.to_ne_bytes());
    attr
}

fn open_own(kind: u32, config: u64) -> io::Result<OwnedFd> {
    perf_event_open(&attr(kind, config, USER_ONLY), 0, -1, 0)
}

fn open_on_all_cpus(kind: u32, config: u64) -> io::Result<()> {
    let mut online = cpus("online").into_iter();
    online.try_for_each(|cpu| perf_event_open(&attr(kind, config, 0), -1, cpu as i32, 0).map(drop))
}

/// Whether this user may count and sample their own processes in user mode.
pub fn own_events() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let opened = open_own(SOFTWARE, CPU_CLOCK);
        opened.map(drop).map_err(|error| format!("no event of one's own process opens: {error}"))
    })
}

/// Whether this user may count and sample whole CPUs.
pub fn whole_cpus() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let opened = open_on_all_cpus(SOFTWARE, CPU_CLOCK);
        opened.map_err(|error| format!("no event of whole CPUs opens: {error}"))
    })
}

/// Whether the kernel has a tracepoint behind each switch, in the thread that comes (Linux 6.15).
pub fn sched_exit() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let types = fs::read("/sys/kernel/btf/vmlinux");
        let types =
            types.map_err(|error| format!("the kernel does not describe its types: {error}"))?;
        let name = b"btf_trace_sched_exit_tp\0";
        let is_there = types.windows(name.len()).any(|window| window == name);
        is_there
            .then_some(())
            .ok_or_else(|| "the kernel has no tracepoint sched_exit_tp".to_owned())
    })
}

/// Whether the kernel takes user call chains when threads return to user mode.
pub fn deferred_chains() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        own_events().map_err(|skip| skip.0)?;
        let attr = attr(SOFTWARE, CPU_CLOCK, USER_ONLY | DEFERRED_CHAINS);
        let opened = perf_event_open(&attr, 0, -1, 0);
        opened.map(drop).map_err(|error| format!("the kernel defers no user call chains: {error}"))
    })
}

/// Whether there is a PMU that counts instructions.
pub fn hardware_events() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let opened = open_own(HARDWARE, INSTRUCTIONS);
        let opened =
            opened.map_err(|error| format!("this machine has no hardware PMU: {error}"))?;
        let mut sum = 0_u64;
        (0..WORK_ROUNDS).for_each(|round| sum = std::hint::black_box(sum + round));
        let mut count = [0; 8];
        let read = File::from(opened).read_exact(&mut count);
        match read.map(|()| u64::from_ne_bytes(count)) {
            Ok(count) if count >= WORK_ROUNDS => Ok(()),
            other => Err(format!("the hardware PMU does not count instructions: {other:?}")),
        }
    })
}

/// The folder of tracefs with the events that this user may read.
pub fn tracefs() -> Result<PathBuf, Skip> {
    let events = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];
    let found = events.map(PathBuf::from).into_iter().find(|path| path.join("sched").is_dir());
    found.ok_or_else(|| Skip("tracefs is not mounted, or not for this user".to_owned()))
}

/// The file that takes definitions of probes in programs (uprobes) from this user.
pub fn uprobes() -> Result<PathBuf, Skip> {
    let file = tracefs()?.with_file_name("uprobe_events");
    let opened = fs::OpenOptions::new().append(true).open(&file);
    opened
        .map(|_| file)
        .map_err(|error| Skip(format!("no probe can be put into programs: {error}")))
}

/// Whether this user may count a tracepoint on whole CPUs.
pub fn tracepoint(system: &str, name: &str) -> Probed {
    let path = tracefs()?.join(system).join(name).join("id");
    let id = fs::read_to_string(&path);
    let id = id.map_err(|error| Skip(format!("no tracepoint {system}:{name}: {error}")))?;
    let id: u64 = id.trim().parse().expect("the number of a tracepoint");
    let opened = open_on_all_cpus(TRACEPOINT, id);
    opened.map_err(|error| Skip(format!("no event of {system}:{name} opens: {error}")))
}

/// Whether the scheduler's tracepoints can be recorded on whole CPUs.
pub fn tracepoints() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let names = ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"];
        let mut opened = names.into_iter().map(|name| tracepoint("sched", name));
        opened.try_for_each(|opened| opened.map_err(|Skip(reason)| reason))
    })
}

/// Whether the kernel counts a cgroup (`PERF_FLAG_PID_CGROUP`).
pub fn cgroup_events() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let hierarchy = cgroup_hierarchy().map_err(|Skip(reason)| reason)?;
        let directory = File::open(&hierarchy.mount)
            .map_err(|error| format!("{}: {error}", hierarchy.mount.display()))?;
        let attr = attr(SOFTWARE, CPU_CLOCK, 0);
        let opened = perf_event_open(&attr, directory.as_raw_fd(), 0, PID_IS_CGROUP);
        opened.map(drop).map_err(|error| format!("no event of a cgroup opens: {error}"))
    })
}
