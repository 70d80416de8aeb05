//! tracefs, BTF and BPF.

use std::fs::File;
use std::io;

use whit_events::{TRACEFS_PATHS, TYPE_TRACEPOINT, TracefsIds, TracepointError, TracepointIds};
use whit_perfdata::attr::SampleType;
use whit_sys::Errno;
use whit_sys::capability::Capability;

use crate::checks::{counting, mounts, usual_side};
use crate::finding::{Area, Finding, Status};
use crate::machine::{Machine, Privileges, read_trimmed};
use crate::probe::{EngineTrial, Target};
use crate::refusal::{Needs, explain, grant};

pub(super) fn check(machine: &mut Machine, privileges: &Privileges) -> Vec<Finding> {
    let mut findings = tracepoints(machine, privileges);
    findings.push(btf(machine));
    let bpf = bpf(machine, privileges);
    let may_load = bpf.status == Status::Ok;
    findings.push(bpf);
    findings.push(engine(machine, may_load));
    findings
}

fn finding(what: &str, status: Status, detail: impl Into<String>) -> Finding {
    Finding::new(Area::Tracing, what, status, detail)
}

fn tracepoints(machine: &mut Machine, privileges: &Privileges) -> Vec<Finding> {
    let mounted = mounts::read(machine).into_iter().find(|mount| mount.kind == "tracefs");
    let Some(mount) = mounted else {
        let remedy = TracepointError::NotMounted { root: TRACEFS_PATHS[0].into() }.remedy();
        let detail = "not mounted: no tracepoints";
        return vec![finding("tracefs", Status::Absent, detail).with_remedy(remedy)];
    };
    let point = mount.point.display().to_string();
    let mut ids = TracefsIds::new(&mount.point);
    let id = match ids.id("sched", "sched_switch") {
        Ok(Some(id)) => id,
        Ok(None) => {
            let detail = format!("at {point}, but without sched:sched_switch");
            return vec![finding("tracefs", Status::Degraded, detail)];
        }
        Err(error) => {
            let detail = format!("at {point}, but this user cannot read it");
            return vec![finding("tracefs", Status::Refused, detail).with_remedy(error.remedy())];
        }
    };
    let systems = ids.systems().map_or(0, |systems| systems.len());
    let readable = finding("tracefs", Status::Ok, format!("at {point}, {systems} subsystems"));
    vec![readable, contents(machine, privileges, id)]
}

/// Samples of a tracepoint carry the memory of the kernel, and need more than counting does.
fn contents(machine: &mut Machine, privileges: &Privileges, id: u64) -> Finding {
    let what = "tracepoint samples";
    let mut attr = counting(TYPE_TRACEPOINT, id, usual_side(privileges));
    attr.sample_type = SampleType::RAW | SampleType::TIME;
    attr.sample_period_or_freq = 1;
    match machine.probe.open(&attr, Target::ThisThread) {
        Ok(()) => finding(what, Status::Ok, "recorded with their contents"),
        Err(error) => {
            let refusal = explain(error, Needs::RawTracepoints, privileges);
            finding(what, refusal.status, refusal.detail).with_remedy(refusal.remedy)
        }
    }
}

fn btf(machine: &Machine) -> Finding {
    let path = machine.sys("kernel/btf/vmlinux");
    match File::open(&path) {
        Ok(_) => finding("BTF", Status::Ok, "BPF programs fit themselves to this kernel"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => finding(
            "BTF",
            Status::Absent,
            "the kernel describes no types: the bpf engine cannot load",
        )
        .with_remedy("run a kernel that was built with CONFIG_DEBUG_INFO_BTF".to_owned()),
        Err(error) => finding("BTF", Status::Refused, format!("{}: {error}", path.display())),
    }
}

/// Tried by loading a program that does nothing.
fn bpf(machine: &mut Machine, privileges: &Privileges) -> Finding {
    let what = "BPF programs";
    let tracing = [Capability::Bpf, Capability::PerfMon];
    match machine.probe.load_bpf() {
        Ok(()) => {
            let jit = read_trimmed(&machine.proc("sys/net/core/bpf_jit_enable"));
            let jit = if jit.is_ok_and(|on| on == "0") {
                ", interpreted: net.core.bpf_jit_enable is 0"
            } else {
                ""
            };
            finding(what, Status::Ok, format!("are loaded{jit}"))
        }
        Err(Errno::NOSYS) => finding(what, Status::Absent, "the kernel has no BPF (ENOSYS)")
            .with_remedy("run a kernel that was built with CONFIG_BPF_SYSCALL".to_owned()),
        Err(Errno::PERM | Errno::ACCESS) if may_load(privileges) => {
            let detail = "refused (EPERM) in spite of capabilities: lockdown, a security module or \
                          a seccomp filter forbids it";
            finding(what, Status::Refused, detail)
                .with_remedy("sudo dmesg | grep -iE 'lockdown|selinux|apparmor|avc'".to_owned())
        }
        Err(Errno::PERM | Errno::ACCESS) => {
            let needed =
                if privileges.knows_perfmon { &tracing[..] } else { &[Capability::SysAdmin] };
            let remedy = grant(privileges)
                .unwrap_or_else(|| "run whit as root of the host, or start the container with --cap-add=BPF --cap-add=PERFMON".to_owned());
            let names: Vec<&str> = needed.iter().map(|capability| capability.name()).collect();
            let detail = format!("the bpf engine needs {}", names.join(" and "));
            finding(what, Status::Refused, detail).with_remedy(remedy)
        }
        Err(error) => finding(what, Status::Refused, format!("loading one fails: {error}")),
    }
}

/// Stacks that are unwound in the kernel: tried by loading the programs.
fn engine(machine: &mut Machine, may_load: bool) -> Finding {
    let what = "bpf engine (--engine=bpf)";
    let elsewhere = "use --engine=ring, which needs none of it".to_owned();
    if machine.machine != "x86_64" {
        let detail = format!("runs on x86-64 alone, and this is {}", machine.machine);
        return finding(what, Status::Absent, detail).with_remedy(elsewhere);
    }
    if !may_load {
        let detail = "no BPF program can be loaded: see there";
        return finding(what, Status::Refused, detail).with_remedy(elsewhere);
    }
    if !machine.sys("kernel/btf/vmlinux").exists() {
        let detail = "the kernel lacks its types: BTF (since Linux 5.4, CONFIG_DEBUG_INFO_BTF)";
        return finding(what, Status::Absent, detail).with_remedy(elsewhere);
    }
    match machine.probe.load_engine() {
        EngineTrial::Runs { instructions, without } => {
            let verified = instructions
                .map(|count| format!("; the verifier looked at {count} instructions"))
                .unwrap_or_default();
            let later = without
                .map(|need| {
                    format!(
                        "; the kernel lacks {need}: stacks of a process's first moments may be cut"
                    )
                })
                .unwrap_or_default();
            finding(what, Status::Ok, format!("unwinds stacks in the kernel{verified}{later}"))
        }
        EngineTrial::Lacks(needs) => {
            let detail = format!("the kernel lacks {}", needs.join(", "));
            finding(what, Status::Absent, detail).with_remedy(elsewhere)
        }
        EngineTrial::Refused(why) => finding(what, Status::Refused, why).with_remedy(elsewhere),
    }
}

fn may_load(privileges: &Privileges) -> bool {
    let held = |capability| privileges.effective.has(capability);
    held(Capability::SysAdmin) || (held(Capability::Bpf) && held(Capability::PerfMon))
}
