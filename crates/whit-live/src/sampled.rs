//! Processes that have samples.

use rustc_hash::FxHashSet;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::{RawRecord, SideBand, misc};
use whit_types::Pid;

/// The processes whose mappings a recording needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    processes: FxHashSet<i32>,
    is_unknown: bool,
}

impl Sampled {
    pub(crate) fn add_sample(&mut self, record: RawRecord<'_>, events: &EventTable) {
        let event = events.event_of_sample(record.body);
        let layout = event.and_then(|event| events.layout(event));
        match layout.and_then(|layout| layout.sample_pid(record.body)) {
            Some(Pid(pid)) => drop(self.processes.insert(pid)),
            // Any process may have samples.
            None => self.is_unknown = true,
        }
    }

    pub(crate) fn merge(&mut self, other: &Sampled) {
        self.processes.extend(&other.processes);
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

    pub(crate) fn needs(&self, record: RawRecord<'_>) -> bool {
        match SideBand::parse(record) {
            Some(SideBand::Mmap(mapping)) => self.has(mapping.pid.0),
            Some(SideBand::Function(function)) => self.has(function.pid.0),
            _ => true,
        }
    }
}
