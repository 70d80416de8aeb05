//! BPF: whether programs of the types that whit uses can be loaded and attached.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

use super::{Kept, Probed, cgroup_events, kernel_since, once, tracefs, tracepoints, whole_cpus};
use crate::Skip;
use crate::syscalls::{attach_raw_tracepoint, load_program};

/// `BPF_PROG_TYPE_TRACEPOINT`, `BPF_PROG_TYPE_PERF_EVENT`, `BPF_PROG_TYPE_RAW_TRACEPOINT`.
const TYPES: [(u32, &str); 3] = [(5, "tracepoint"), (7, "perf_event"), (17, "raw_tracepoint")];
const RAW_TRACEPOINT: u32 = 17;
/// The kernel's description of its own types, which programs at typed tracepoints need.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Whether this user may load BPF programs and have them called at context switches, on a kernel that
/// describes its types.
pub fn bpf_programs() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        if !Path::new(BTF).exists() {
            return Err(format!("the kernel does not describe its types: no {BTF}"));
        }
        for (kind, name) in TYPES {
            load_program(kind)
                .map_err(|error| format!("no BPF program ({name}) loads: {error}"))?;
        }
        let program = load_program(RAW_TRACEPOINT).map_err(|error| error.to_string())?;
        let attached = attach_raw_tracepoint(program.as_fd(), c"sched_switch");
        attached.map(drop).map_err(|error| format!("no BPF program can be attached: {error}"))
    })
}

/// Whether this machine can have stacks unwound in the kernel (`--engine=bpf`): the versions are those of
/// `docs/bpf-engine.md`.
pub fn bpf_stacks() -> Probed {
    bpf_programs()?;
    whole_cpus()?;
    x86_64()?;
    kernel_since(5, 15)
}

/// Whether this machine can count cgroups by BPF: the versions are those of `docs/cgroup.md`.
pub fn bpf_cgroups() -> Probed {
    bpf_programs()?;
    whole_cpus()?;
    cgroup_events()?;
    kernel_since(5, 11)
}

/// Whether a program can be called when a running task has been moved to another cgroup: the kernel interrupts
/// the CPU that it runs on (`csd_function_exit`, a tracepoint of newer kernels).
pub fn bpf_moves_of_running_tasks() -> Probed {
    bpf_cgroups()?;
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let program = load_program(RAW_TRACEPOINT).map_err(|error| error.to_string())?;
        let attached = attach_raw_tracepoint(program.as_fd(), c"csd_function_exit");
        attached
            .map(drop)
            .map_err(|_| "this kernel does not show moves of running tasks".to_owned())
    })
}

/// Whether interrupts of the PMU can be metered: a program at `nmi:nmi_handler`.
pub fn bpf_interrupts() -> Probed {
    bpf_programs()?;
    tracepoints()?;
    let handler = tracefs()?.join("nmi/nmi_handler");
    match handler.is_dir() {
        true => Ok(()),
        false => Err(Skip("the kernel has no tracepoint nmi:nmi_handler".to_owned())),
    }
}

/// Whether the kernel keeps statistics of BPF programs for this user (`BPF_ENABLE_STATS`, Linux 5.8, which
/// takes `cap_sys_admin`).
pub fn bpf_statistics() -> Probed {
    bpf_programs()?;
    super::root()?;
    kernel_since(5, 8)
}

fn x86_64() -> Probed {
    match std::env::consts::ARCH {
        "x86_64" => Ok(()),
        other => Err(Skip(format!("stacks are unwound in the kernel on x86-64, not on {other}"))),
    }
}
