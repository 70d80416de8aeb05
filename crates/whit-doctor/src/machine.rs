//! The machine as the checks see it: a few paths, a few facts, and a probe.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use whit_sys::capability::{Capability, CapabilitySet};
use whit_sys::limit::{Limit, LimitValue};
use whit_sys::system;

use crate::probe::Probe;
use crate::system_probe::SystemProbe;

/// Where the machine's own files are.
#[derive(Clone, Debug)]
pub struct Roots {
    /// `/proc`
    pub proc: PathBuf,
    /// `/sys`
    pub sys: PathBuf,
}

/// Everything that the checks look at.
pub struct Machine {
    /// Where files are read.
    pub roots: Roots,
    /// The kernel's release and the architecture, as `uname` has them.
    pub release: String,
    /// The architecture.
    pub machine: String,
    /// Effective user id.
    pub euid: u32,
    /// Path of this program, for `setcap`.
    pub program: PathBuf,
    /// `RLIMIT_NOFILE`
    pub open_files: LimitValue,
    /// `RLIMIT_MEMLOCK` in bytes.
    pub locked_memory: LimitValue,
    /// Size of a page in bytes.
    pub page_size: u64,
    /// The kernel.
    pub probe: Box<dyn Probe>,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn this() -> Machine {
        let names = system::uname();
        Machine {
            roots: Roots { proc: "/proc".into(), sys: "/sys".into() },
            release: names.release,
            machine: names.machine,
            euid: system::effective_uid(),
            program: std::env::current_exe().unwrap_or_else(|_| "whit".into()),
            open_files: Limit::OpenFiles.get(),
            locked_memory: Limit::LockedMemory.get(),
            page_size: system::page_size() as u64,
            probe: Box::new(SystemProbe),
        }
    }

    pub(crate) fn proc(&self, path: &str) -> PathBuf {
        self.roots.proc.join(path)
    }

    pub(crate) fn sys(&self, path: &str) -> PathBuf {
        self.roots.sys.join(path)
    }

    /// A setting under `/proc/sys/kernel`, if it is there and a number.
    pub(crate) fn setting(&self, name: &str) -> Option<i64> {
        read_trimmed(&self.proc("sys/kernel").join(name)).ok()?.parse().ok()
    }

    /// CPUs that are online; at least one.
    pub(crate) fn cpus(&self) -> Vec<i32> {
        let listed = read_trimmed(&self.sys("devices/system/cpu/online")).ok();
        let cpus = listed.and_then(|text| whit_events::parse_cpu_list(&text)).unwrap_or_default();
        let ids: Vec<i32> = cpus.iter().filter_map(|cpu| i32::try_from(cpu.0).ok()).collect();
        if ids.is_empty() { vec![0] } else { ids }
    }
}

/// What this process may do, and what stands around it.
#[derive(Clone, Debug)]
pub struct Privileges {
    /// Capabilities in force.
    pub effective: CapabilitySet,
    /// Capabilities that could be gained.
    pub bounding: CapabilitySet,
    /// Whether a seccomp filter decides on system calls, as in most containers.
    pub seccomp: bool,
    /// Whether the process lives in a user namespace, where capabilities do not count for perf.
    pub user_namespace: bool,
    /// Whether the kernel knows `CAP_PERFMON` (5.8).
    pub knows_perfmon: bool,
    /// `perf_event_paranoid`
    pub paranoid: Option<i64>,
    /// Effective user id.
    pub euid: u32,
    /// Path of this program.
    pub program: PathBuf,
}

/// Owner's view of the whole id space: the initial user namespace.
const INITIAL_UID_MAP: [&str; 3] = ["0", "0", "4294967295"];

impl Privileges {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// Where `/proc/self/status` cannot be read or lacks its lines.
    pub fn read(machine: &Machine) -> io::Result<Privileges> {
        let status = fs::read_to_string(machine.proc("self/status"))?;
        let missing = |line| io::Error::new(io::ErrorKind::InvalidData, format!("no {line} line"));
        let effective =
            CapabilitySet::from_status(&status, "CapEff").ok_or_else(|| missing("CapEff"))?;
        let field = |name: &str| {
            status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let bounding = field("CapBnd:").and_then(|hex| u64::from_str_radix(&hex, 16).ok());
        let uid_map = fs::read_to_string(machine.proc("self/uid_map")).unwrap_or_default();
        let last_cap = machine.setting("cap_last_cap").unwrap_or(i64::MAX);
        Ok(Privileges {
            effective,
            bounding: CapabilitySet(bounding.ok_or_else(|| missing("CapBnd"))?),
            seccomp: field("Seccomp:").is_some_and(|mode| mode != "0"),
            user_namespace: !uid_map.is_empty() && !uid_map.split_whitespace().eq(INITIAL_UID_MAP),
            knows_perfmon: last_cap >= Capability::PerfMon as i64,
            paranoid: machine.setting("perf_event_paranoid"),
            euid: machine.euid,
            program: machine.program.clone(),
        })
    }

    /// Whether the capabilities lift `perf_event_paranoid`.
    pub fn may_profile(&self) -> bool {
        self.effective.may_profile() && !self.user_namespace
    }

    /// The capability that lifts `perf_event_paranoid` on this kernel.
    pub fn profiling_capability(&self) -> Capability {
        if self.knows_perfmon { Capability::PerfMon } else { Capability::SysAdmin }
    }
}

pub(crate) fn read_trimmed(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}
