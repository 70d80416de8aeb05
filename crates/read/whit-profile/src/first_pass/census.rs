//! The threads, CPUs and cgroups that records name, whether or not the sideband describes them.

use rustc_hash::FxHashSet;
use whit_perfdata::attr::SampleType;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::sample::SampleLayout;
use whit_types::{CpuId, Pid, Tid};

/// Numbers of cgroups that are told apart; a corrupt recording may name any.
const MAX_CGROUPS: usize = 1 << 20;

/// Numbers of threads that are told apart, likewise.
const MAX_THREADS: usize = 1 << 22;

/// AUX data may follow the cgroup.
fn cgroup_of(layout: &SampleLayout, body: &[u8]) -> Option<u64> {
    match layout.sample_type.contains(SampleType::CGROUP | SampleType::AUX) {
        true => layout.parse(body)?.cgroup,
        false => layout.sample_cgroup(body),
    }
}

/// Names in the samples and context switches of a stream, or of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    pub(crate) threads: FxHashSet<(Pid, Tid)>,
    pub(crate) cpus: FxHashSet<CpuId>,
    /// By the kernel's number.
    pub(crate) cgroups: FxHashSet<u64>,
    last: (Option<(Pid, Tid)>, Option<CpuId>, Option<u64>),
}

impl Census {
    /// Notes a record.
    #[inline]
    pub(crate) fn see(&mut self, events: &EventTable, record: RawRecord<'_>) {
        match record.header.kind {
            record_type::SAMPLE => {
                let event = events.event_of_sample(record.body);
                let layout = event.and_then(|event| events.layout(event));
                let Some(layout) = layout else { return };
                let body = record.body;
                let (thread, cpu) = (layout.sample_thread(body), layout.sample_cpu(body));
                self.add(thread, cpu, cgroup_of(layout, body));
            }
            record_type::SWITCH | record_type::SWITCH_CPU_WIDE => {
                let id = events.parse_id_trailer(record);
                self.add(id.pid_tid, id.cpu, None);
            }
            _ => {}
        }
    }

    #[inline]
    fn add(&mut self, thread: Option<(Pid, Tid)>, cpu: Option<CpuId>, cgroup: Option<u64>) {
        // Neighbours in a ring mostly agree.
        if self.last == (thread, cpu, cgroup) {
            return;
        }
        self.last = (thread, cpu, cgroup);
        if let Some(thread) = thread.filter(|(_, tid)| tid.0 >= 0)
            && self.threads.len() < MAX_THREADS
        {
            self.threads.insert(thread);
        }
        self.cpus.extend(cpu);
        if let Some(cgroup) = cgroup
            && self.cgroups.len() < MAX_CGROUPS
        {
            self.cgroups.insert(cgroup);
        }
    }

    /// Takes over that of another stream.
    pub(crate) fn merge(&mut self, other: Census) {
        self.threads.extend(other.threads);
        self.cpus.extend(other.cpus);
        self.cgroups.extend(other.cgroups);
    }
}
