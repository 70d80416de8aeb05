//! The events that perf knows by name on every machine: the kernel's generic hardware and software
//! events, and the measurements that tools take themselves.
//!
//! Numbers are the kernel's ABI (`enum perf_hw_id` and `enum perf_sw_ids` in
//! `include/uapi/linux/perf_event.h`); names and aliases are perf's
//! (`tools/perf/util/parse-events.l`).

macro_rules! named_events {
    ($(#[$doc:meta])* $name:ident { $(#[doc = $what:literal] $variant:ident = $config:literal: $canonical:literal $(| $alias:literal)*;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $(#[doc = $what] $variant,)*
        }

        impl $name {
            /// Every event of this kind.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The kernel's number for the event.
            pub const fn config(self) -> u64 {
                match self {
                    $($name::$variant => $config,)*
                }
            }

            /// Every spelling, the one that `Display` prints first.
            pub const fn names(self) -> &'static [&'static str] {
                match self {
                    $($name::$variant => &[$canonical $(, $alias)*],)*
                }
            }

            /// The event with this number.
            pub fn from_config(config: u64) -> Option<$name> {
                Self::ALL.iter().copied().find(|event| event.config() == config)
            }

            /// Description in a few words, as `whit list` shows it.
            pub fn description(self) -> &'static str {
                let sentence = match self {
                    $($name::$variant => $what,)*
                };
                sentence.trim().trim_end_matches('.')
            }

            /// The spelling that `Display` prints.
            pub const fn name(self) -> &'static str {
                self.names()[0]
            }

            /// The event with this spelling.
            pub fn from_name(name: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|event| event.names().contains(&name))
            }
        }
    };
}

named_events!(
    /// A generic hardware event (`PERF_TYPE_HARDWARE`).
    HardwareEvent {
        /// Core clock cycles.
        CpuCycles = 0: "cycles" | "cpu-cycles";
        /// Retired instructions.
        Instructions = 1: "instructions";
        /// Last-level cache accesses, mostly.
        CacheReferences = 2: "cache-references";
        /// Last-level cache misses, mostly.
        CacheMisses = 3: "cache-misses";
        /// Retired branches.
        BranchInstructions = 4: "branches" | "branch-instructions";
        /// Mispredicted branches.
        BranchMisses = 5: "branch-misses";
        /// Bus cycles, which can differ from core cycles.
        BusCycles = 6: "bus-cycles";
        /// Cycles in which the front end delivered nothing.
        StalledCyclesFrontend = 7: "stalled-cycles-frontend" | "idle-cycles-frontend";
        /// Cycles in which the back end retired nothing.
        StalledCyclesBackend = 8: "stalled-cycles-backend" | "idle-cycles-backend";
        /// Cycles at the reference frequency.
        RefCpuCycles = 9: "ref-cycles";
    }
);

named_events!(
    /// A kernel software event (`PERF_TYPE_SOFTWARE`).
    SoftwareEvent {
        /// High-resolution timer of the CPU.
        CpuClock = 0: "cpu-clock";
        /// Clock that runs while the task runs.
        TaskClock = 1: "task-clock";
        /// Page faults, minor and major.
        PageFaults = 2: "page-faults" | "faults";
        /// Context switches, voluntary or not.
        ContextSwitches = 3: "context-switches" | "cs";
        /// Moves of a task to another CPU.
        CpuMigrations = 4: "cpu-migrations" | "migrations";
        /// Page faults that needed no I/O.
        MinorFaults = 5: "minor-faults";
        /// Page faults that needed I/O.
        MajorFaults = 6: "major-faults";
        /// Unaligned accesses that the kernel handled.
        AlignmentFaults = 7: "alignment-faults";
        /// Instructions that the kernel emulated.
        EmulationFaults = 8: "emulation-faults";
        /// Counts nothing; carries sideband records.
        Dummy = 9: "dummy";
        /// Records that BPF programs emit.
        BpfOutput = 10: "bpf-output";
        /// Switches between tasks of different cgroups.
        CgroupSwitches = 11: "cgroup-switches";
    }
);

named_events!(
    /// A value that the tool measures itself, in nanoseconds; the kernel counts nothing for it.
    ToolEvent {
        /// Wall-clock time.
        DurationTime = 1: "duration_time";
        /// User time of the children.
        UserTime = 2: "user_time";
        /// System time of the children.
        SystemTime = 3: "system_time";
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_name_the_same_event() {
        assert_eq!(HardwareEvent::from_name("cpu-cycles"), Some(HardwareEvent::CpuCycles));
        assert_eq!(SoftwareEvent::from_name("cs"), Some(SoftwareEvent::ContextSwitches));
        assert_eq!(SoftwareEvent::from_name("CS"), None);
    }

    #[test]
    fn descriptions_are_phrases() {
        assert_eq!(SoftwareEvent::PageFaults.description(), "Page faults, minor and major");
        assert_eq!(HardwareEvent::CpuCycles.description(), "Core clock cycles");
    }

    #[test]
    fn numbers_are_read_back() {
        for event in HardwareEvent::ALL {
            assert_eq!(HardwareEvent::from_config(event.config()), Some(*event));
        }
        assert_eq!(SoftwareEvent::from_config(3), Some(SoftwareEvent::ContextSwitches));
        assert_eq!(HardwareEvent::from_config(10), None);
    }
}
