//! Settings under `/proc/sys/kernel`.

use crate::finding::{Area, Finding, Status};
use crate::machine::{Machine, Privileges};
use crate::refusal::{Needs, allow};

/// The kernel's default.
const DEFAULT_MLOCK_KB: i64 = 516;
const DEFAULT_MAX_STACK: i64 = 127;
/// Below this, usual sampling frequencies are cut.
const LOW_SAMPLE_RATE_HZ: i64 = 10_000;
const DEFAULT_SAMPLE_RATE_HZ: i64 = 100_000;

pub(super) fn check(machine: &Machine, privileges: &Privileges) -> Vec<Finding> {
    let mut findings = vec![paranoid(privileges), kptr_restrict(machine)];
    findings.extend(mlock(machine, privileges));
    findings.extend(sample_rate(machine));
    findings.extend(max_stack(machine));
    findings.extend(nmi_watchdog(machine));
    findings
}

fn setting(what: &str, status: Status, detail: String) -> Finding {
    Finding::new(Area::Settings, what, status, detail)
}

fn paranoid(privileges: &Privileges) -> Finding {
    let what = "perf_event_paranoid";
    let Some(level) = privileges.paranoid else {
        let detail = "the kernel has no such setting: it was built without perf events".to_owned();
        let remedy = "run a kernel that was built with CONFIG_PERF_EVENTS".to_owned();
        return setting(what, Status::Absent, detail).with_remedy(remedy);
    };
    let meaning = match level {
        ..=-1 => "everything is allowed to everybody",
        0 => "all but the contents of tracepoints",
        1 => "own processes, with the kernel's part; no whole CPUs",
        2 => "own processes in user space only",
        _ => "as 2; on kernels of Debian, Ubuntu and Android nothing at all",
    };
    if privileges.may_profile() {
        let detail = format!("{level}, lifted by this process's capabilities");
        return setting(what, Status::Ok, detail);
    }
    let status = if level < 0 { Status::Ok } else { Status::Degraded };
    let remedy = (status != Status::Ok).then(|| allow(Needs::RawTracepoints, privileges));
    setting(what, status, format!("{level}: {meaning}")).with_remedy(remedy)
}

fn kptr_restrict(machine: &Machine) -> Finding {
    let what = "kptr_restrict";
    match machine.setting(what) {
        Some(0) => setting(what, Status::Ok, "0: addresses as perf_event_paranoid allows".into()),
        Some(1) => setting(what, Status::Ok, "1: addresses for holders of cap_syslog".into()),
        Some(level) => {
            setting(what, Status::Degraded, format!("{level}: no kernel addresses for anybody"))
                .with_remedy("sudo sysctl kernel.kptr_restrict=1".to_owned())
        }
        None => setting(what, Status::Absent, "not readable".into()),
    }
}

/// The kernel allows each user this much for each CPU, beside RLIMIT_MEMLOCK (`perf_mmap` in
/// `kernel/events/core.c`).
fn mlock(machine: &Machine, privileges: &Privileges) -> Option<Finding> {
    use whit_sys::capability::Capability;
    let what = "perf_event_mlock_kb";
    let kb = machine.setting(what)?;
    let unlimited = privileges.effective.has(Capability::IpcLock)
        || privileges.paranoid.is_some_and(|level| level < 0);
    if unlimited {
        return Some(setting(what, Status::Ok, format!("{kb}, not applied to this process")));
    }
    let page_kb = i64::try_from(machine.page_size / 1024).unwrap_or(4);
    // One page of each ring is its control page, and data pages come in powers of two.
    let data_kb = (kb - page_kb).max(0);
    let ring_kb = if data_kb == 0 { 0 } else { 1_i64 << data_kb.ilog2() };
    let detail =
        format!("{kb}: rings of {ring_kb} KiB per CPU, for all recordings of this user together");
    let status = if kb < DEFAULT_MLOCK_KB { Status::Degraded } else { Status::Ok };
    let remedy = (status != Status::Ok)
        .then(|| format!("sudo sysctl kernel.perf_event_mlock_kb={DEFAULT_MLOCK_KB}"));
    Some(setting(what, status, detail).with_remedy(remedy))
}

fn sample_rate(machine: &Machine) -> Option<Finding> {
    let what = "perf_event_max_sample_rate";
    let rate = machine.setting(what)?;
    if rate >= LOW_SAMPLE_RATE_HZ {
        return Some(setting(what, Status::Ok, format!("{rate} Hz")));
    }
    let detail = format!("{rate} Hz: the kernel lowers it when its interrupts take long");
    let remedy = format!("sudo sysctl kernel.perf_event_max_sample_rate={DEFAULT_SAMPLE_RATE_HZ}");
    Some(setting(what, Status::Degraded, detail).with_remedy(remedy))
}

fn max_stack(machine: &Machine) -> Option<Finding> {
    let what = "perf_event_max_stack";
    let frames = machine.setting(what)?;
    let detail = format!("{frames} frames in a call chain");
    if frames >= DEFAULT_MAX_STACK {
        return Some(setting(what, Status::Ok, detail));
    }
    let remedy = format!("sudo sysctl kernel.perf_event_max_stack={DEFAULT_MAX_STACK}");
    Some(setting(what, Status::Degraded, detail).with_remedy(remedy))
}

fn nmi_watchdog(machine: &Machine) -> Option<Finding> {
    let what = "nmi_watchdog";
    match machine.setting(what)? {
        0 => None,
        _ => Some(
            setting(
                what,
                Status::Degraded,
                "on: it takes one hardware counter of every CPU".into(),
            )
            .with_remedy("sudo sysctl kernel.nmi_watchdog=0".to_owned()),
        ),
    }
}
