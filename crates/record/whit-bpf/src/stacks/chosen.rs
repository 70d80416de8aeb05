//! Threads that are chosen by cgroup or name in place of process (`bpf/chosen.h`).

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Enum;

/// Cgroups whose answer is kept; others are looked for again each time.
pub(super) const CGROUPS_MAX: u32 = 1 << 16;
/// Names that can be chosen.
pub const NAMES_MAX: u32 = 1024;
/// Bytes of a thread's name, with its end.
pub const NAME_BYTES: usize = 16;
/// Distinguishes numbers of cgroups of version 1 in samples: both hierarchies count from 1 on.
pub const OF_VERSION_1: u64 = 1 << 62;
/// The hierarchy of version 2, for programs.
const VERSION_2: u32 = u32::MAX;
/// The kernel's enumeration of controllers.
const CONTROLLERS: &str = "cgroup_subsys_id";

/// Which of the trees of cgroups, which each have every thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CgroupHierarchy {
    /// That of version 2.
    #[default]
    V2,
    /// One of version 1, by the number of one of its controllers ([`cgroup_subsystem`]).
    V1(u32),
}

impl CgroupHierarchy {
    /// As the settings of programs have it.
    pub(super) fn subsystem(self) -> u32 {
        match self {
            CgroupHierarchy::V1(number) => number,
            CgroupHierarchy::V2 => VERSION_2,
        }
    }
}

/// How threads are chosen. With both, a thread has to pass both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChosenBy {
    /// Their cgroups are in this hierarchy.
    pub cgroups: Option<CgroupHierarchy>,
    /// Their own name or that of their process.
    pub names: bool,
}

impl ChosenBy {
    /// As `settings.chosen_by` has it.
    pub(super) fn bits(self) -> u8 {
        u8::from(self.cgroups.is_some()) | u8::from(self.names) << 1
    }

    /// As `settings.cgroup_subsystem` has it.
    pub(super) fn subsystem(self) -> u32 {
        self.cgroups.map_or(VERSION_2, CgroupHierarchy::subsystem)
    }
}

/// The running kernel's number of a controller: `cpu`, `memory`. `None` where the kernel has none of that name, or does not
/// describe its types.
pub fn cgroup_subsystem(controller: &str) -> Option<u32> {
    let types = Btf::from_vmlinux().ok()?;
    let numbers: Enum<'_> = types.type_by_name(CONTROLLERS)?;
    let name = format!("{}_cgrp_id", own_name(controller));
    let mut numbers = numbers.iter();
    let found = numbers.find(|number| number.name.is_some_and(|own| own == name.as_str()))?;
    u32::try_from(found.value).ok()
}

/// The kernel's own name of `blkio` is another one.
fn own_name(controller: &str) -> &str {
    if controller == "blkio" { "io" } else { controller }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_as_the_programs_have_them() {
        let none = ChosenBy::default();
        assert_eq!((none.bits(), none.subsystem()), (0, VERSION_2));
        let both = ChosenBy { cgroups: Some(CgroupHierarchy::V1(3)), names: true };
        assert_eq!((both.bits(), both.subsystem()), (3, 3));
        let version_2 = ChosenBy { cgroups: Some(CgroupHierarchy::V2), names: false };
        assert_eq!((version_2.bits(), version_2.subsystem()), (1, VERSION_2));
    }

    #[test]
    fn controllers_have_the_numbers_of_the_running_kernel() {
        if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            assert_eq!(cgroup_subsystem("perf_event"), None);
            return;
        }
        // The kernel lists them in this order, from Linux 4.x to 6.x.
        let numbers: Vec<u32> =
            ["cpu", "cpuacct", "blkio"].into_iter().filter_map(cgroup_subsystem).collect();
        assert!(numbers.is_sorted() && !numbers.is_empty(), "{numbers:?}");
        assert_eq!(cgroup_subsystem("nothing"), None);
    }
}
