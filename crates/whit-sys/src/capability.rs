//! Capabilities of this process.

use std::io;

/// The capabilities that recording may need, by their number in `capabilities(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Lock memory beyond the limit.
    IpcLock = 14,
    /// Look into processes of other users.
    SysPtrace = 19,
    /// The old catch-all.
    SysAdmin = 21,
    /// Raise hard limits.
    SysResource = 24,
    /// See kernel addresses.
    Syslog = 34,
    /// Open any perf event (since Linux 5.8).
    PerfMon = 38,
    /// Load BPF programs (since Linux 5.8).
    Bpf = 39,
}

impl Capability {
    /// All that are listed here.
    pub const ALL: [Capability; 7] = [
        Capability::IpcLock,
        Capability::SysPtrace,
        Capability::SysAdmin,
        Capability::SysResource,
        Capability::Syslog,
        Capability::PerfMon,
        Capability::Bpf,
    ];

    /// As `setcap` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Capability::IpcLock => "cap_ipc_lock",
            Capability::SysPtrace => "cap_sys_ptrace",
            Capability::SysAdmin => "cap_sys_admin",
            Capability::SysResource => "cap_sys_resource",
            Capability::Syslog => "cap_syslog",
            Capability::PerfMon => "cap_perfmon",
            Capability::Bpf => "cap_bpf",
        }
    }
}

/// A set of capabilities, as `/proc/PID/status` shows it.
///
/// In a user namespace the set may look full while the kernel, which checks perf events against
/// the initial namespace, still refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapabilitySet(pub u64);

impl CapabilitySet {
    /// The effective set of this process.
    pub fn effective() -> io::Result<CapabilitySet> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        CapabilitySet::from_status(&status).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "/proc/self/status has no CapEff line")
        })
    }

    /// From the text of `/proc/PID/status`.
    pub fn from_status(status: &str) -> Option<CapabilitySet> {
        let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(hex.trim(), 16).ok().map(CapabilitySet)
    }

    /// Whether `capability` is in the set.
    pub fn has(self, capability: Capability) -> bool {
        self.0 >> capability as u8 & 1 == 1
    }

    /// Whether the holder may open any perf event: `cap_perfmon` or `cap_sys_admin`.
    pub fn may_profile(self) -> bool {
        self.has(Capability::PerfMon) || self.has(Capability::SysAdmin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_is_read_bit_by_bit() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t0000004000080000\n";
        let set = CapabilitySet::from_status(status).unwrap();
        let held: Vec<_> = Capability::ALL.into_iter().filter(|c| set.has(*c)).collect();
        assert_eq!(held, [Capability::SysPtrace, Capability::PerfMon]);
        assert!(set.may_profile());
        assert!(!CapabilitySet(0).may_profile());
        assert_eq!(CapabilitySet::from_status("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_has_a_set() {
        CapabilitySet::effective().unwrap();
    }
}
