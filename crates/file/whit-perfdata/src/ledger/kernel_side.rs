//! The cost of a recording inside the kernel: the interrupts of the PMU and the recorder's own BPF
//! programs. Neither can be measured everywhere; the ledger then keeps the reason.

use super::PmiLedger;

/// How the PMU's interrupts were measured, or why they were not. The file holds [`code`] of it.
///
/// [`code`]: PmiMeasurement::code
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PmiMeasurement {
    /// The recording does not tell: its recorder did not know of this.
    #[default]
    Untold,
    /// The handlers of perf's non-maskable interrupts, found by their addresses.
    PerfHandlers,
    /// All handlers of non-maskable interrupts: the kernel hides which are perf's.
    AllHandlers,
    /// No event of a PMU that interrupts was sampled.
    NoPmuEvent,
    /// The kernel has no tracepoint `nmi:nmi_handler`.
    NoTracepoint,
    /// The recorder might not load BPF programs.
    NotPermitted,
    /// The kernel has no BPF, or none that goes with tracepoints.
    NoBpf,
    /// The kernel refused for another reason.
    Refused,
    /// The recording ended before the measurement had begun.
    TooShort,
    /// A code of a newer version.
    Newer(u64),
}

/// How the time of BPF programs was measured, or why it was not. The file holds [`code`] of it.
///
/// [`code`]: BpfMeasurement::code
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BpfMeasurement {
    /// The recording does not tell: its recorder did not know of this.
    #[default]
    Untold,
    /// By the kernel's BPF statistics.
    Statistics,
    /// The recorder loaded no program.
    NoProgram,
    /// The recorder might not switch statistics on.
    NotPermitted,
    /// The kernel keeps no statistics that can be switched on.
    NoStatistics,
    /// The kernel refused for another reason.
    Refused,
    /// A code of a newer version.
    Newer(u64),
}

impl PmiMeasurement {
    /// Those that have a code of their own, each at the place of its code.
    pub const KNOWN: [PmiMeasurement; 9] = [
        PmiMeasurement::Untold,
        PmiMeasurement::PerfHandlers,
        PmiMeasurement::AllHandlers,
        PmiMeasurement::NoPmuEvent,
        PmiMeasurement::NoTracepoint,
        PmiMeasurement::NotPermitted,
        PmiMeasurement::NoBpf,
        PmiMeasurement::Refused,
        PmiMeasurement::TooShort,
    ];

    /// The code in the file.
    pub fn code(self) -> u64 {
        match self {
            PmiMeasurement::Newer(code) => code,
            known => place(&PmiMeasurement::KNOWN, known),
        }
    }

    /// From the code in the file.
    pub fn from_code(code: u64) -> PmiMeasurement {
        at(&PmiMeasurement::KNOWN, code).unwrap_or(PmiMeasurement::Newer(code))
    }

    /// A name for programs; never changes.
    pub fn name(self) -> &'static str {
        match self {
            PmiMeasurement::Untold => "untold",
            PmiMeasurement::PerfHandlers => "perf_handlers",
            PmiMeasurement::AllHandlers => "all_handlers",
            PmiMeasurement::NoPmuEvent => "no_pmu_event",
            PmiMeasurement::NoTracepoint => "no_tracepoint",
            PmiMeasurement::NotPermitted => "not_permitted",
            PmiMeasurement::NoBpf => "no_bpf",
            PmiMeasurement::Refused => "refused",
            PmiMeasurement::TooShort => "too_short",
            PmiMeasurement::Newer(_) => "newer",
        }
    }

    /// Why there are no figures; `None` where there are.
    pub fn reason(self) -> Option<&'static str> {
        Some(match self {
            PmiMeasurement::PerfHandlers | PmiMeasurement::AllHandlers => return None,
            PmiMeasurement::Untold => "the recorder was of a version that did not",
            PmiMeasurement::NoPmuEvent => {
                "no event of the PMU was sampled, and others raise none (cpu-clock's interrupts are \
                 those of a timer)"
            }
            PmiMeasurement::NoTracepoint => {
                "the kernel had no tracepoint nmi:nmi_handler (on x86 it has)"
            }
            PmiMeasurement::NotPermitted => {
                "the recorder might not load BPF programs (root, or cap_bpf and cap_perfmon)"
            }
            PmiMeasurement::NoBpf => "the kernel had no BPF for tracepoints",
            PmiMeasurement::Refused => {
                "the kernel refused the BPF program (whit record -v says why)"
            }
            PmiMeasurement::TooShort => "the recording ended before that had begun",
            PmiMeasurement::Newer(_) => "for a reason that only a newer version of whit knows",
        })
    }
}

impl BpfMeasurement {
    /// Those that have a code of their own, each at the place of its code.
    pub const KNOWN: [BpfMeasurement; 6] = [
        BpfMeasurement::Untold,
        BpfMeasurement::Statistics,
        BpfMeasurement::NoProgram,
        BpfMeasurement::NotPermitted,
        BpfMeasurement::NoStatistics,
        BpfMeasurement::Refused,
    ];

    /// The code in the file.
    pub fn code(self) -> u64 {
        match self {
            BpfMeasurement::Newer(code) => code,
            known => place(&BpfMeasurement::KNOWN, known),
        }
    }

    /// From the code in the file.
    pub fn from_code(code: u64) -> BpfMeasurement {
        at(&BpfMeasurement::KNOWN, code).unwrap_or(BpfMeasurement::Newer(code))
    }

    /// A name for programs; never changes.
    pub fn name(self) -> &'static str {
        match self {
            BpfMeasurement::Untold => "untold",
            BpfMeasurement::Statistics => "statistics",
            BpfMeasurement::NoProgram => "no_program",
            BpfMeasurement::NotPermitted => "not_permitted",
            BpfMeasurement::NoStatistics => "no_statistics",
            BpfMeasurement::Refused => "refused",
            BpfMeasurement::Newer(_) => "newer",
        }
    }

    /// Why there are no figures; `None` where there are.
    pub fn reason(self) -> Option<&'static str> {
        Some(match self {
            BpfMeasurement::Statistics => return None,
            BpfMeasurement::Untold => "the recorder was of a version that did not",
            BpfMeasurement::NoProgram => "none was loaded",
            BpfMeasurement::NotPermitted => {
                "the kernel's BPF statistics were off, and cap_sys_admin was missing to switch them \
                 on (sysctl kernel.bpf_stats_enabled=1 does for everybody)"
            }
            BpfMeasurement::NoStatistics => "the kernel keeps no BPF statistics (Linux 5.8 does)",
            BpfMeasurement::Refused => "the kernel refused (whit record -v says why)",
            BpfMeasurement::Newer(_) => "for a reason that only a newer version of whit knows",
        })
    }
}

fn place<T: PartialEq>(known: &[T], one: T) -> u64 {
    known.iter().position(|other| *other == one).unwrap_or_default() as u64
}

fn at<T: Copy>(known: &[T], code: u64) -> Option<T> {
    known.get(usize::try_from(code).ok()?).copied()
}

impl PmiLedger {
    /// Average time in the handlers; 0 where there was no interrupt.
    pub fn average_ns(&self) -> u64 {
        self.time_ns.checked_div(self.count).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_read_as_it_is_written() {
        for code in (0..100).chain([u64::MAX]) {
            assert_eq!(PmiMeasurement::from_code(code).code(), code);
            assert_eq!(BpfMeasurement::from_code(code).code(), code);
        }
        // Files hold these.
        assert_eq!(PmiMeasurement::from_code(0), PmiMeasurement::Untold);
        assert_eq!(PmiMeasurement::from_code(1), PmiMeasurement::PerfHandlers);
        assert_eq!(PmiMeasurement::from_code(3), PmiMeasurement::NoPmuEvent);
        assert_eq!(PmiMeasurement::from_code(8), PmiMeasurement::TooShort);
        assert_eq!(PmiMeasurement::from_code(9), PmiMeasurement::Newer(9));
        assert_eq!(BpfMeasurement::from_code(1), BpfMeasurement::Statistics);
        assert_eq!(BpfMeasurement::from_code(5), BpfMeasurement::Refused);
    }

    #[test]
    fn there_are_figures_or_a_reason_and_names_differ() {
        let all: Vec<_> = (0..10).map(PmiMeasurement::from_code).collect();
        let measured: Vec<_> = all.iter().filter(|one| one.reason().is_none()).collect();
        assert_eq!(measured, [&PmiMeasurement::PerfHandlers, &PmiMeasurement::AllHandlers]);
        assert_eq!(all.iter().map(|one| one.name()).collect::<HashSet<_>>().len(), all.len());
        let all: Vec<_> = (0..7).map(BpfMeasurement::from_code).collect();
        let measured: Vec<_> = all.iter().filter(|one| one.reason().is_none()).collect();
        assert_eq!(measured, [&BpfMeasurement::Statistics]);
        assert_eq!(all.iter().map(|one| one.name()).collect::<HashSet<_>>().len(), all.len());
    }
}
