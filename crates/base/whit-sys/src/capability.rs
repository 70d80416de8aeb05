//! Capabilities, by name and in sets.

use std::fmt;

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

/// A set of capabilities: bit `n` stands for the capability with number `n`.
///
/// In a user namespace the set may look full while the kernel, which checks perf events against
/// the initial namespace, still refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilitySet(pub u64);

impl CapabilitySet {
    /// No capability.
    pub const EMPTY: CapabilitySet = CapabilitySet(0);

    /// The set of these.
    pub const fn of(capabilities: &[Capability]) -> CapabilitySet {
        let (mut bits, mut at) = (0, 0);
        while at < capabilities.len() {
            bits |= 1 << capabilities[at] as u8;
            at += 1;
        }
        CapabilitySet(bits)
    }

    /// All capabilities that profiling needs: processes of other users, addresses of the kernel,
    /// any event, BPF programs. Kernels before 5.8 know the old catch-all instead of the last two.
    pub const fn for_profiling(knows_perfmon: bool) -> CapabilitySet {
        use Capability::{Bpf, PerfMon, SysAdmin, SysPtrace, Syslog};
        if knows_perfmon {
            CapabilitySet::of(&[PerfMon, SysPtrace, Syslog, Bpf])
        } else {
            CapabilitySet::of(&[SysAdmin, SysPtrace, Syslog])
        }
    }

    /// From a line of `/proc/PID/status`: `CapEff`, `CapPrm`, `CapInh`, `CapBnd` or `CapAmb`.
    pub fn from_status(status: &str, line: &str) -> Option<CapabilitySet> {
        let mut lines = status.lines();
        let hex = lines.find_map(|text| text.strip_prefix(line)?.strip_prefix(':'))?;
        u64::from_str_radix(hex.trim(), 16).ok().map(CapabilitySet)
    }

    /// Whether `capability` is in the set.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 >> capability as u8 & 1 == 1
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Capabilities in either set.
    #[must_use]
    pub const fn union(self, other: CapabilitySet) -> CapabilitySet {
        CapabilitySet(self.0 | other.0)
    }

    /// Capabilities in both sets.
    #[must_use]
    pub const fn intersection(self, other: CapabilitySet) -> CapabilitySet {
        CapabilitySet(self.0 & other.0)
    }

    /// Capabilities in this set alone.
    #[must_use]
    pub const fn without(self, other: CapabilitySet) -> CapabilitySet {
        CapabilitySet(self.0 & !other.0)
    }

    /// Whether the holder may open any perf event: `cap_perfmon` or `cap_sys_admin`.
    pub const fn may_profile(self) -> bool {
        self.has(Capability::PerfMon) || self.has(Capability::SysAdmin)
    }
}

/// As `setcap` takes it, by number: `cap_sys_ptrace,cap_perfmon`. A capability without a name here
/// is written as its number, which `setcap` takes as well.
impl fmt::Display for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for number in (0..u64::BITS as u8).filter(|number| self.0 >> number & 1 == 1) {
            match Capability::ALL.into_iter().find(|known| *known as u8 == number) {
                Some(known) => write!(f, "{separator}{}", known.name())?,
                None => write!(f, "{separator}{number}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_is_read_bit_by_bit() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t0000004000080000\n";
        let set = CapabilitySet::from_status(status, "CapEff").unwrap();
        let held: Vec<_> = Capability::ALL.into_iter().filter(|c| set.has(*c)).collect();
        assert_eq!(held, [Capability::SysPtrace, Capability::PerfMon]);
        assert_eq!(set, CapabilitySet::of(&held));
        assert!(set.may_profile());
        assert!(!CapabilitySet(0).may_profile());
        assert_eq!(CapabilitySet::from_status(status, "CapPrm"), Some(CapabilitySet::EMPTY));
        assert_eq!(CapabilitySet::from_status("Name:\tx\n", "CapEff"), None);
    }

    #[test]
    fn sets_are_written_as_setcap_takes_them() {
        let set = CapabilitySet::of(&[Capability::PerfMon, Capability::SysPtrace]);
        assert_eq!(set.to_string(), "cap_sys_ptrace,cap_perfmon");
        assert_eq!(CapabilitySet(1 << 1 | 1 << 39).to_string(), "1,cap_bpf");
        assert_eq!(CapabilitySet::EMPTY.to_string(), "");
    }
}
