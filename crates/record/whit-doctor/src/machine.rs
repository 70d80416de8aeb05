//! The machine as the checks see it: a few paths, a few facts, and a probe.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use whit_host::cpus;
use whit_host::roots::Roots;
use whit_sys::PerfEventFd;
use whit_sys::capability::{Capability, CapabilitySet};
use whit_sys::file_capability::FileCapabilities;
use whit_sys::limit::{Limit, LimitValue};
use whit_sys::system;
use whit_types::CpuId;

use crate::probe::Probe;
use crate::system_probe::SystemProbe;

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
    /// Path of this program, for the commands that concern it.
    pub program: PathBuf,
    /// Its file; `None` where that cannot be looked at.
    pub program_file: Option<ProgramFile>,
    /// Capabilities that the file lends, and that are put in force where they are needed.
    pub borrowed: CapabilitySet,
    /// A filter in front of the kernel refuses `perf_event_open`.
    pub is_filtered: bool,
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
            roots: Roots::default(),
            release: names.release,
            machine: names.machine,
            euid: system::effective_uid(),
            program: std::env::current_exe().unwrap_or_else(|_| "whit".into()),
            program_file: ProgramFile::read(Path::new("/proc/self/exe")),
            borrowed: whit_sys::privilege::borrowed(),
            is_filtered: PerfEventFd::refused_in_front().is_some(),
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
        self.roots.kernel_setting(name)
    }

    /// CPUs that are online; at least one.
    pub(crate) fn cpus(&self) -> Vec<CpuId> {
        let online = cpus::online(&self.roots).unwrap_or_default();
        if online.is_empty() { vec![CpuId(0)] } else { online }
    }
}

/// The file that this program was started from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// The capabilities that the file lends; `None` if it has none.
    pub capabilities: Option<FileCapabilities>,
    /// The group, by name where it has one.
    pub group: String,
    /// Permission bits.
    pub mode: u32,
    /// Whether its mount ignores capabilities of files.
    pub nosuid: bool,
}

impl ProgramFile {
    fn read(path: &Path) -> Option<ProgramFile> {
        let file = fs::File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        let gid = metadata.gid();
        let name = whit_sys::group::name(gid).ok().flatten();
        Some(ProgramFile {
            capabilities: FileCapabilities::of_file(&file).ok().flatten(),
            group: name.unwrap_or_else(|| gid.to_string()),
            mode: metadata.mode() & PERMISSIONS,
            nosuid: system::is_nosuid(&file).ok()?,
        })
    }

    /// Whether who is neither the owner nor in the group may run it.
    pub fn is_open_to_all(&self) -> bool {
        self.mode & OTHERS_RUN != 0
    }
}

const PERMISSIONS: u32 = 0o7777;
const OTHERS_RUN: u32 = 0o001;

/// Capabilities and limits of this process.
#[derive(Clone, Debug)]
pub struct Privileges {
    /// Capabilities in force, or that the program puts in force where they are needed.
    pub effective: CapabilitySet,
    /// Those of them that the program's file lends.
    pub borrowed: CapabilitySet,
    /// Capabilities that could be gained.
    pub bounding: CapabilitySet,
    /// Whether a seccomp filter decides on system calls, as in most containers.
    pub seccomp: bool,
    /// Whether that filter refuses `perf_event_open`.
    pub is_filtered: bool,
    /// Whether the process lives in a user namespace, where capabilities do not count for perf.
    pub user_namespace: bool,
    /// Whether the kernel knows `CAP_PERFMON` (5.8).
    pub knows_perfmon: bool,
    /// `perf_event_paranoid`
    pub paranoid: Option<i64>,
    /// Effective user id.
    pub euid: u32,
    /// Whether no program that is started from here gains anything (`prctl(2)`,
    /// `PR_SET_NO_NEW_PRIVS`).
    pub no_new_privs: bool,
    /// Path of this program.
    pub program: PathBuf,
    /// The file of the running program; `None` if it cannot be read.
    pub program_file: Option<ProgramFile>,
}

impl Privileges {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// Where `/proc/self/status` cannot be read or lacks its lines.
    pub fn read(machine: &Machine) -> io::Result<Privileges> {
        let status = fs::read_to_string(machine.proc("self/status"))?;
        let missing = |line| io::Error::new(io::ErrorKind::InvalidData, format!("no {line} line"));
        let set = |line| CapabilitySet::from_status(&status, line).ok_or_else(|| missing(line));
        let field = |name: &str| {
            status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let uid_map = fs::read_to_string(machine.proc("self/uid_map")).unwrap_or_default();
        let last_cap = machine.setting("cap_last_cap").unwrap_or(i64::MAX);
        let seccomp = field("Seccomp:").is_some_and(|mode| mode != "0");
        Ok(Privileges {
            effective: set("CapEff")?.union(machine.borrowed),
            borrowed: machine.borrowed,
            bounding: set("CapBnd")?,
            seccomp,
            is_filtered: seccomp && machine.is_filtered,
            user_namespace: !uid_map.is_empty() && !system::is_initial_id_map(&uid_map),
            knows_perfmon: last_cap >= Capability::PerfMon as i64,
            paranoid: machine.setting("perf_event_paranoid"),
            euid: machine.euid,
            no_new_privs: field("NoNewPrivs:").is_some_and(|set| set != "0"),
            program: machine.program.clone(),
            program_file: machine.program_file.clone(),
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
