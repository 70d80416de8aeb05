//! The rights of this process to record and count.

use whit_sys::PerfEventFd;
use whit_sys::capability::CapabilitySet;

use crate::roots::Roots;

/// The rights that the kernel grants this process.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// `perf_event_paranoid`.
    pub paranoid: i64,
    /// Whether the level does not apply.
    pub may_profile: bool,
    /// A seccomp filter of this process refuses `perf_event_open`.
    pub is_filtered: bool,
}

impl Rights {
    /// The rights of this process. A machine without the setting has no perf events; the default
    /// stands in.
    pub fn of_process(roots: &Roots) -> Rights {
        const KERNEL_DEFAULT: i64 = 2;
        Rights {
            paranoid: roots.kernel_setting("perf_event_paranoid").unwrap_or(KERNEL_DEFAULT),
            may_profile: whit_sys::privilege::usable().is_ok_and(CapabilitySet::may_profile),
            is_filtered: has_filter(roots) && PerfEventFd::refused_in_front().is_some(),
        }
    }
}

/// Whether a seccomp filter decides on system calls of this process. `proc_pid_status(5)`: 0 is none.
fn has_filter(roots: &Roots) -> bool {
    let status = std::fs::read_to_string(roots.proc.join("self/status")).unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() != "0")
}
