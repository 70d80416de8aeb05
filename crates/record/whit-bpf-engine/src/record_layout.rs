//! Where the fields of the programs' records are.

use whit_engine_api::time_layout::TimeLayout;
use whit_perfdata::attr::{Attr, SampleType};

/// Where the fields of records are: those of sampled events, of the one that stands for switches,
/// and of the bpf-output event are the same up to the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    has_cpu: bool,
    /// Behind the raw data, and behind the call chains of samples.
    has_cgroup: bool,
    times: TimeLayout,
}

impl Layout {
    /// From the attributes of the bpf-output event, which begin with the event's id, the address, the thread
    /// and the time.
    pub(crate) fn new(attr: &Attr) -> Layout {
        let has = |field| attr.sample_type.contains(field);
        Layout {
            has_cpu: has(SampleType::CPU),
            has_cgroup: has(SampleType::CGROUP),
            times: TimeLayout::new(attr),
        }
    }

    /// Whether there is the CPU.
    pub(crate) fn has_cpu(self) -> bool {
        self.has_cpu
    }

    /// Whether the records of samples end with the cgroup.
    pub(crate) fn has_cgroup(self) -> bool {
        self.has_cgroup
    }

    /// Where the time is.
    pub(crate) fn times(self) -> TimeLayout {
        self.times
    }

    /// The fields of the samples that come out.
    pub(crate) fn sample_type(self) -> SampleType {
        self.common_fields().with(SampleType::CGROUP, self.has_cgroup)
    }

    fn common_fields(self) -> SampleType {
        let fields = SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::PERIOD
            | SampleType::CALLCHAIN;
        if self.has_cpu { fields | SampleType::CPU } else { fields }
    }

    /// Fields of the records with raw data: switches, wake-ups and blocked threads, whose cgroups are not known.
    pub(crate) fn raw_sample_type(self) -> SampleType {
        self.common_fields() | SampleType::RAW
    }

    /// Bytes of the fields in front of the raw data.
    pub(crate) fn prefix_bytes(self) -> usize {
        if self.has_cpu { 40 } else { 32 }
    }
}
