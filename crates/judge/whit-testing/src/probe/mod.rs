//! Abilities of this machine, asked of the kernel and of files, never of whit.
//!
//! Each probe runs once per process and answers `Ok(())` or a [`Skip`] with the reason. A test that needs
//! something begins with `probe::…()?`; from then on a failure of whit is a failure of the test.

mod bpf;
mod cgroups;
mod events;
mod tools;

use std::fs;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub use bpf::{
    bpf_cgroups, bpf_interrupts, bpf_moves_of_running_tasks, bpf_programs, bpf_stacks,
    bpf_statistics,
};
pub use cgroups::{Hierarchy, cgroup_hierarchy, cgroups, cgroups_v1, cgroups_v2};
pub use events::{
    cgroup_events, deferred_chains, hardware_events, own_events, sched_exit, tracefs, tracepoint,
    tracepoints, uprobes, whole_cpus,
};
pub use tools::{fails_with, need_program, newest_perf, perf, program};
pub(crate) use tools::{newest_perf_program, perf_program};

use crate::Skip;

/// The answer of a probe.
pub type Probed = Result<(), Skip>;

/// A probe's answer, kept for the process.
type Kept = OnceLock<Result<(), String>>;

fn once(kept: &'static Kept, probe: impl FnOnce() -> Result<(), String>) -> Probed {
    kept.get_or_init(probe).clone().map_err(Skip)
}

/// Whether the tests run as root.
pub fn root() -> Probed {
    use std::os::unix::fs::MetadataExt;
    let owner = fs::metadata("/proc/self").map(|metadata| metadata.uid());
    match owner {
        Ok(0) => Ok(()),
        _ => Err(Skip("this takes root".to_owned())),
    }
}

/// Whether threads of this user may run before others: `cap_sys_nice`, or a limit that allows it.
pub fn nice() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let output = std::process::Command::new("nice").args(["-n", "-20", "nice"]).output();
        match output {
            Ok(output) if output.stdout.starts_with(b"-20") => Ok(()),
            _ => Err("no nice value of -20 is allowed here".to_owned()),
        }
    })
}

/// Whether a number of CPUs is online.
pub fn online_cpus(least: usize) -> Probed {
    match cpus("online").len() {
        online if online >= least => Ok(()),
        online => Err(Skip(format!("{online} CPU is online, and this takes {least}"))),
    }
}

/// A list of CPUs of `/sys/devices/system/cpu`: `online`, `possible`.
///
/// # Panics
///
/// Where the kernel has no such list.
pub fn cpus(list: &str) -> Vec<u32> {
    let path = format!("/sys/devices/system/cpu/{list}");
    let text = fs::read_to_string(path).expect("read a list of CPUs");
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |digits: &str| digits.parse::<u32>().expect("a CPU");
        number(first)..=number(last)
    };
    text.trim().split(',').flat_map(range).collect()
}

/// Whether the kernel is at least this old, by `/proc/sys/kernel/osrelease`.
pub fn kernel_since(major: u32, minor: u32) -> Probed {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match release(&text) {
        Some(found) if found >= (major, minor) => Ok(()),
        _ => Err(Skip(format!("the kernel is {}, and this takes {major}.{minor}", text.trim()))),
    }
}

fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Whether the kernel gives this user an io_uring.
pub fn io_uring() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let made = crate::syscalls::io_uring_setup();
        made.map(drop).map_err(|error| format!("the kernel gives no io_uring: {error}"))
    })
}

/// Whether processes have descriptors.
pub fn pidfd() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let made = crate::syscalls::pidfd_open(std::process::id());
        made.map(drop).map_err(|error| format!("the kernel has no pidfd_open: {error}"))
    })
}

/// Whether this user can start virtual machines.
pub fn kvm() -> Probed {
    let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm");
    opened.map(drop).map_err(|error| Skip(format!("/dev/kvm cannot be opened: {error}")))
}

/// The right to change the machine for everybody on it (take a CPU offline, mount a controller). One test has it at a time.
pub fn may_change_the_machine() -> Result<MutexGuard<'static, ()>, Skip> {
    static CHANGING: Mutex<()> = Mutex::new(());
    match std::env::var_os("WHIT_TEST_MACHINE") {
        Some(_) => Ok(CHANGING.lock().unwrap_or_else(PoisonError::into_inner)),
        None => {
            let reason =
                "it would spoil what others measure on this machine; WHIT_TEST_MACHINE=1 runs it";
            Err(Skip(reason.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(release("6.18.44-generic"), Some((6, 18)));
        assert_eq!(release("5.9.0"), Some((5, 9)));
        assert!(release("5.9.0") < release("5.11"));
        assert_eq!(release("unknown"), None);
    }

    #[test]
    fn a_probe_runs_once() {
        static KEPT: Kept = OnceLock::new();
        let mut runs = 0;
        for _ in 0..2 {
            let answer = once(&KEPT, || {
                runs += 1;
                Err("none here".to_owned())
            });
            assert_eq!(answer.unwrap_err().0, "none here");
        }
        assert_eq!(runs, 1);
    }
}
