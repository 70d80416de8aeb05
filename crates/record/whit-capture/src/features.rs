//! Which fields of `perf_event_attr` the running kernel knows.

use whit_perfdata::attr::{Attr, AttrFlags, ReadFormat, SampleType, pmu_type};
use whit_sys::clock::ClockId;
use whit_sys::{Errno, OpenFlags, PerfEventFd};

use crate::event::software;
use crate::notice::{Listener, Notice};

/// A field that newer kernels have.
struct Candidate {
    name: &'static str,
    since: &'static str,
    flag: AttrFlags,
}

const CANDIDATES: [Candidate; 5] = [
    Candidate { name: "exec flag of names", since: "3.16", flag: AttrFlags::COMM_EXEC },
    Candidate { name: "context switches", since: "4.3", flag: AttrFlags::CONTEXT_SWITCH },
    Candidate { name: "kernel symbols", since: "5.1", flag: AttrFlags::KSYMBOL },
    Candidate { name: "BPF programs", since: "5.1", flag: AttrFlags::BPF_EVENT },
    Candidate { name: "build ids in mappings", since: "5.12", flag: AttrFlags::BUILD_ID },
];

/// The perf features that the running kernel supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFeatures {
    flags: AttrFlags,
    lost_counts: bool,
    weight_struct: bool,
    cgroups: bool,
    inherited_reads: bool,
}

impl KernelFeatures {
    /// Everything: for attributes that are not opened here.
    pub const ALL: KernelFeatures = KernelFeatures {
        flags: AttrFlags(u64::MAX),
        lost_counts: true,
        weight_struct: true,
        cgroups: true,
        inherited_reads: true,
    };

    /// Asks the kernel, by opening an event that counts nothing with one field after the other.
    /// An error is the refusal of the plain event: nothing can be opened at all.
    pub fn probe(listener: &mut dyn Listener) -> Result<KernelFeatures, Errno> {
        try_open(&plain())?;
        let mut features = KernelFeatures::ALL;
        for candidate in &CANDIDATES {
            let attr = Attr { flags: plain().flags | candidate.flag, ..plain() };
            if try_open(&attr).is_err() {
                features.flags = features.flags.with(candidate.flag, false);
                let (feature, since) = (candidate.name, candidate.since);
                listener.notice(Notice::FeatureMissing { feature, since });
            }
        }
        let attr = Attr { read_format: ReadFormat::ID | ReadFormat::LOST, ..plain() };
        if try_open(&attr).is_err() {
            features.lost_counts = false;
            listener.notice(Notice::FeatureMissing { feature: "lost counts", since: "6.0" });
        }
        let sample_type = plain().sample_type | SampleType::WEIGHT_STRUCT;
        features.weight_struct = try_open(&Attr { sample_type, ..plain() }).is_ok();
        let sample_type = plain().sample_type | SampleType::CGROUP;
        let flags = plain().flags | AttrFlags::CGROUP;
        features.cgroups = try_open(&Attr { sample_type, flags, ..plain() }).is_ok();
        Ok(features)
    }

    /// Asks for user call chains at the return to user mode too, and says whether the kernel takes them.
    pub fn probe_deferred_chains(&mut self) -> bool {
        let deferred = AttrFlags::DEFER_CALLCHAIN | AttrFlags::DEFER_OUTPUT;
        let is_known = try_open(&Attr { flags: plain().flags | deferred, ..plain() }).is_ok();
        self.flags = self.flags.with(deferred, is_known);
        is_known
    }

    /// Asks whether samples of inherited events may have their counts, and says whether the kernel takes that.
    pub fn probe_inherited_reads(&mut self) -> bool {
        let sample_type = plain().sample_type | SampleType::READ | SampleType::TID;
        let flags = plain().flags | AttrFlags::INHERIT;
        let read_format = ReadFormat::ID;
        self.inherited_reads =
            try_open(&Attr { sample_type, flags, read_format, ..plain() }).is_ok();
        self.inherited_reads
    }

    /// Whether the kernel stamps events with `clock`.
    pub fn check_clock(clock: ClockId) -> Result<(), Errno> {
        let flags = plain().flags | AttrFlags::USE_CLOCKID;
        try_open(&Attr { flags, clockid: clock.0, ..plain() })
    }

    /// Removes flags and fields from `attr` that the kernel does not know.
    pub fn limit(&self, attr: &mut Attr) {
        attr.flags = AttrFlags(attr.flags.0 & self.flags.0);
        if !self.weight_struct && attr.sample_type.contains(SampleType::WEIGHT_STRUCT) {
            let without = attr.sample_type.with(SampleType::WEIGHT_STRUCT, false);
            attr.sample_type = without.with(SampleType::WEIGHT, true);
        }
        if !self.cgroups {
            attr.flags = attr.flags.with(AttrFlags::CGROUP, false);
            attr.sample_type = attr.sample_type.with(SampleType::CGROUP, false);
        }
        if !self.inherited_reads && attr.flags.contains(AttrFlags::INHERIT) {
            attr.sample_type = attr.sample_type.with(SampleType::READ, false);
        }
        if !self.lost_counts {
            attr.read_format = ReadFormat(attr.read_format.0 & !ReadFormat::LOST.0);
        }
    }

    /// Whether samples may have their cgroups: since Linux 5.7, with CONFIG_CGROUP_PERF.
    pub fn has_cgroups(&self) -> bool {
        self.cgroups
    }

    /// Whether the kernel knows this flag.
    pub fn has(&self, flag: AttrFlags) -> bool {
        self.flags.contains(flag)
    }
}

fn plain() -> Attr {
    Attr {
        pmu_type: pmu_type::SOFTWARE,
        config: software::DUMMY,
        sample_type: SampleType::TIME,
        flags: AttrFlags::DISABLED
            | AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_HV
            | AttrFlags::SAMPLE_ID_ALL
            | AttrFlags::COMM,
        ..Attr::default()
    }
}

fn try_open(attr: &Attr) -> Result<(), Errno> {
    PerfEventFd::open(&attr.to_bytes(), 0, -1, None, OpenFlags::default()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_kernel_is_asked_and_missing_fields_are_taken_out() {
        let mut notices = Vec::new();
        let features = KernelFeatures::probe(&mut |n| notices.push(n)).unwrap();
        let missing = CANDIDATES.iter().filter(|c| !features.has(c.flag)).count();
        assert_eq!(notices.len(), missing + usize::from(!features.lost_counts));

        let old = KernelFeatures {
            flags: AttrFlags(u64::MAX).with(AttrFlags::BUILD_ID, false),
            lost_counts: false,
            weight_struct: false,
            cgroups: false,
            inherited_reads: false,
        };
        let counts = SampleType::READ;
        let mut attr = Attr {
            sample_type: SampleType::IP | SampleType::WEIGHT_STRUCT | SampleType::CGROUP | counts,
            flags: AttrFlags::BUILD_ID | AttrFlags::MMAP2 | AttrFlags::CGROUP,
            read_format: ReadFormat::ID | ReadFormat::LOST,
            ..Attr::default()
        };
        old.limit(&mut attr);
        assert_eq!((attr.flags, attr.read_format), (AttrFlags::MMAP2, ReadFormat::ID));
        assert_eq!(attr.sample_type, SampleType::IP | SampleType::WEIGHT | counts);
        attr.flags |= AttrFlags::INHERIT;
        old.limit(&mut attr);
        assert_eq!(attr.sample_type, SampleType::IP | SampleType::WEIGHT);
    }

    #[test]
    fn clocks_that_the_kernel_does_not_know_are_refused() {
        KernelFeatures::check_clock(ClockId::MONOTONIC_RAW).unwrap();
        assert_eq!(KernelFeatures::check_clock(ClockId(99)), Err(Errno::INVAL));
    }
}
