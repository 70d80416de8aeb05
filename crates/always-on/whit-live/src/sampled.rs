//! Processes and cgroups that have samples.

use rustc_hash::FxHashSet;
use whit_perfdata::attr::SampleType;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::{RawRecord, SideBand, misc};
use whit_types::Pid;

/// The processes whose mappings a recording needs, and the cgroups whose names it needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    processes: FxHashSet<i32>,
    cgroups: FxHashSet<u64>,
    /// Those of the last sample, which the next one mostly has, too.
    before: Option<(Pid, u64)>,
    is_unknown: bool,
}

impl Sampled {
    pub(crate) fn add_sample(&mut self, record: RawRecord<'_>, events: &EventTable) {
        let event = events.event_of_sample(record.body);
        let layout = event.and_then(|event| events.layout(event));
        let thread = layout.and_then(|layout| layout.sample_thread(record.body));
        let process = thread.map(|(process, _)| process);
        let cgroup = layout.and_then(|layout| layout.sample_cgroup(record.body));
        let both = process.zip(cgroup);
        if both.is_some() && both == self.before {
            return;
        }
        self.before = both;
        let has_cgroups = layout.is_some_and(|it| it.sample_type.contains(SampleType::CGROUP));
        self.processes.extend(process.map(|Pid(pid)| pid));
        self.cgroups.extend(cgroup);
        // Any process or cgroup may have samples.
        self.is_unknown |= process.is_none() || has_cgroups && cgroup.is_none();
    }

    pub(crate) fn merge(&mut self, other: &Sampled) {
        self.processes.extend(&other.processes);
        self.cgroups.extend(&other.cgroups);
        self.is_unknown |= other.is_unknown;
    }

    /// A process that forks gives its mappings to another one.
    pub(crate) fn add_parent(&mut self, record: RawRecord<'_>) {
        let is_synthesized = record.header.misc & misc::FORK_EXEC != 0;
        if let Some(SideBand::Fork(task)) = SideBand::parse(record)
            && task.pid != task.parent_pid
            && !is_synthesized
        {
            self.processes.insert(task.parent_pid.0);
        }
    }

    /// Whether the mappings of a process are needed. Those of the kernel are those of process -1.
    pub(crate) fn has(&self, pid: i32) -> bool {
        self.is_unknown || pid == -1 || self.processes.contains(&pid)
    }

    /// Whether the name of a cgroup is needed. It stays known when the cgroup has gone: the kernel says nothing of that.
    pub(crate) fn has_cgroup(&self, id: u64) -> bool {
        self.is_unknown || self.cgroups.contains(&id)
    }

    pub(crate) fn needs(&self, record: RawRecord<'_>) -> bool {
        match SideBand::parse(record) {
            Some(SideBand::Mmap(mapping)) => self.has(mapping.pid.0),
            Some(SideBand::Function(function)) => self.has(function.pid.0),
            Some(SideBand::Cgroup { id, .. }) => self.has_cgroup(id),
            _ => true,
        }
    }
}
