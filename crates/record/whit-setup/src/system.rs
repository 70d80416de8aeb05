//! The grants that the machine allows.

use std::fs;
use std::path::{Path, PathBuf};

use whit_sys::capability::{Capability, CapabilitySet};
use whit_sys::system;

use crate::error::SetupError;

/// The facts that decide, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The user who runs `whit setup`.
    pub effective_uid: u32,
    /// The bounding set: the most that a program started from here can gain.
    pub bounding: CapabilitySet,
    /// Whether the kernel knows `cap_perfmon` (5.8).
    pub knows_perfmon: bool,
    /// Whether this is a user namespace, whose capabilities perf events do not count.
    pub user_namespace: bool,
    /// The program that runs.
    pub own_program: PathBuf,
}

impl System {
    /// The one that this process runs on.
    pub fn this() -> Result<System, SetupError> {
        let own = Path::new("/proc/self/exe");
        let own_program = fs::read_link(own)
            .map_err(|source| SetupError::System { path: own.to_owned(), source })?;
        System::read(Path::new("/proc"), system::effective_uid(), own_program)
    }

    fn read(proc: &Path, effective_uid: u32, own_program: PathBuf) -> Result<System, SetupError> {
        let read = |name: &str| {
            let path = proc.join(name);
            fs::read_to_string(&path).map_err(|source| SetupError::System { path, source })
        };
        let bounding = CapabilitySet::from_status(&read("self/status")?, "CapBnd");
        let missing = || SetupError::Status { path: proc.join("self/status"), line: "CapBnd" };
        let last: Option<u8> = read("sys/kernel/cap_last_cap")?.trim().parse().ok();
        Ok(System {
            effective_uid,
            bounding: bounding.ok_or_else(missing)?,
            knows_perfmon: last.is_none_or(|last| last >= Capability::PerfMon as u8),
            // A kernel without user namespaces has no such file.
            user_namespace: read("self/uid_map").is_ok_and(|map| !system::is_initial_id_map(&map)),
            own_program,
        })
    }

    /// The capabilities that whit gets on this machine.
    pub fn capabilities(&self) -> CapabilitySet {
        CapabilitySet::for_profiling(self.knows_perfmon)
    }

    /// Whether this process can make the changes itself.
    pub fn is_root(&self) -> bool {
        self.effective_uid == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(last: &str, uid_map: &str) -> Result<System, SetupError> {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("self")).unwrap();
        fs::create_dir_all(dir.path().join("sys/kernel")).unwrap();
        fs::write(dir.path().join("self/status"), "Name:\tx\nCapBnd:\t000001ffffffffff\n").unwrap();
        fs::write(dir.path().join("self/uid_map"), uid_map).unwrap();
        fs::write(dir.path().join("sys/kernel/cap_last_cap"), last).unwrap();
        System::read(dir.path(), 0, "/usr/bin/whit".into())
    }

    const INITIAL: &str = "         0          0 4294967295\n";

    #[test]
    fn kernels_before_5_8_get_the_old_catch_all() {
        let new = read("40\n", INITIAL).unwrap();
        assert_eq!(new.capabilities().to_string(), "cap_sys_ptrace,cap_syslog,cap_perfmon,cap_bpf");
        let old = read("37\n", INITIAL).unwrap();
        assert_eq!(old.capabilities().to_string(), "cap_sys_ptrace,cap_sys_admin,cap_syslog");
    }

    #[test]
    fn user_namespaces_are_known_by_their_map() {
        assert!(!read("40\n", INITIAL).unwrap().user_namespace);
        assert!(read("40\n", "0 1000 1\n").unwrap().user_namespace);
    }

    #[test]
    fn this_system_is_read() {
        let system = System::this().unwrap();
        assert!(system.own_program.is_absolute());
        assert!(!system.bounding.is_empty() || !system.is_root());
    }
}
