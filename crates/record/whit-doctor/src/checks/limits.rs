//! Limits of this process.

use whit_sys::limit::LimitValue;

use crate::finding::{Area, Finding, Status};
use crate::machine::Machine;

/// Descriptors that a recorder uses beside its events.
const OTHER_FILES: u64 = 64;
/// Events that a system-wide recording should be able to open on every CPU.
const WANTED_EVENTS: u64 = 16;

pub(super) fn check(machine: &Machine) -> Vec<Finding> {
    vec![open_files(machine), locked_memory(machine.locked_memory)]
}

fn open_files(machine: &Machine) -> Finding {
    let what = "open files (RLIMIT_NOFILE)";
    let LimitValue { soft, hard } = machine.open_files;
    let cpus = machine.cpus().len() as u64;
    let events =
        |limit: Option<u64>| limit.map_or(u64::MAX, |n| n.saturating_sub(OTHER_FILES) / cpus);
    let shown = format!("{}, at most {}", amount(soft), amount(hard));
    let detail = match events(hard) {
        u64::MAX => shown.clone(),
        most => format!("{shown}: {most} events on all {cpus} CPUs"),
    };
    if events(hard) >= WANTED_EVENTS {
        // The recorder raises the soft limit itself.
        return Finding::new(Area::Limits, what, Status::Ok, detail);
    }
    let needed = WANTED_EVENTS * cpus + OTHER_FILES;
    Finding::new(Area::Limits, what, Status::Degraded, detail)
        .with_remedy(format!("sudo prlimit --pid $$ --nofile={needed}:{needed}"))
}

/// Rings beyond `perf_event_mlock_kb` are charged here.
fn locked_memory(LimitValue { soft, hard }: LimitValue) -> Finding {
    let shown = |limit: Option<u64>| amount(limit.map(|bytes| bytes / 1024));
    let detail =
        format!("{} KiB, at most {} KiB, beyond perf_event_mlock_kb", shown(soft), shown(hard));
    Finding::new(Area::Limits, "locked memory (RLIMIT_MEMLOCK)", Status::Ok, detail)
}

fn amount(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |n| n.to_string())
}
