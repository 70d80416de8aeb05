//! The state of a machine by its sideband: the records that later samples are looked up in.

use crate::piece::{Record, records};
use crate::process::Process;
use crate::sampled::Sampled;
use crate::symbols::{KEPT_MAX, Symbols};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::{RawRecord, SideBand, Task, misc};
use whit_types::TimestampNs;

/// The code was removed.
const REMOVED: u16 = 1;

/// Mappings, names and cgroups that hold by now.
#[derive(Clone, Debug, Default)]
pub struct Sideband {
    kernel: BTreeMap<u64, Record>,
    symbols: Symbols,
    cgroups: BTreeMap<u64, Record>,
    processes: FxHashMap<i32, Process>,
    /// The last record of settings by which a budget was kept.
    budget: Option<Record>,
    /// The last reading of the clocks.
    clocks: Option<Record>,
    dropped: u64,
}

impl Sideband {
    /// Takes whole records up, in the order of their times.
    pub fn apply(&mut self, bytes: &[u8], events: &EventTable) {
        self.apply_all(records(bytes), events);
    }

    /// The same, with each record's bytes.
    pub(crate) fn apply_all<'a>(
        &mut self,
        from: impl Iterator<Item = (RawRecord<'a>, &'a [u8])>,
        events: &EventTable,
    ) {
        let mut records: Vec<(TimestampNs, RawRecord<'_>, &[u8])> = Vec::new();
        for (record, whole) in from.filter(|(record, _)| SideBand::is_decoded(record.header.kind)) {
            let time = events.parse_id_trailer(record).time.unwrap_or(TimestampNs(0));
            records.push((time, record, whole));
        }
        records.sort_by_key(|(time, ..)| *time);
        for (time, record, whole) in records {
            self.take(time, record, whole);
        }
    }

    fn take(&mut self, time: TimestampNs, record: RawRecord<'_>, whole: &[u8]) {
        match SideBand::parse(record) {
            Some(SideBand::Mmap(mapping)) if mapping.pid.0 == -1 => {
                self.dropped += keep(&mut self.kernel, mapping.start.0, whole);
            }
            Some(SideBand::Mmap(mapping)) => {
                let process = self.processes.entry(mapping.pid.0).or_default();
                self.dropped += u64::from(process.map(&mapping, whole.into()));
            }
            Some(SideBand::Comm { pid, tid, exec, .. }) => {
                let process = self.processes.entry(pid.0).or_default();
                process.rename(tid.0, whole.into(), exec);
            }
            Some(SideBand::Fork(task)) => {
                self.fork(task, record.header.misc & misc::FORK_EXEC != 0)
            }
            Some(SideBand::Exit(task)) => {
                let process = self.processes.get_mut(&task.pid.0);
                if process.is_some_and(|process| process.end_thread(task.tid.0)) {
                    self.processes.remove(&task.pid.0);
                }
            }
            Some(SideBand::Ksymbol { start, flags, .. }) if flags & REMOVED != 0 => {
                self.symbols.remove(start.0, time);
            }
            Some(SideBand::Ksymbol { start, .. }) => {
                self.dropped += self.symbols.add(start.0, time, whole.into());
            }
            Some(SideBand::Budget(_)) => self.budget = Some(whole.into()),
            Some(SideBand::Clocks(_)) => self.clocks = Some(whole.into()),
            Some(SideBand::Function(function)) => {
                let process = self.processes.entry(function.pid.0).or_default();
                self.dropped += u64::from(process.add_function(&function, whole.into()));
            }
            Some(SideBand::Cgroup { id, .. }) => self.dropped += keep(&mut self.cgroups, id, whole),
            _ => {}
        }
    }

    /// A synthesized fork is that of a process which already ran: its mappings are told apart.
    fn fork(&mut self, task: Task, is_synthesized: bool) {
        let (tid, parent_tid) = (task.tid.0, task.parent_tid.0);
        if task.pid == task.parent_pid || is_synthesized {
            self.processes.entry(task.pid.0).or_default().add_thread(parent_tid, tid);
            return;
        }
        let parent = self.processes.get(&task.parent_pid.0);
        let child = parent.map(|parent| parent.forked(parent_tid, tid)).unwrap_or_default();
        self.processes.insert(task.pid.0, child);
    }

    /// Forgets processes that have been gone for this time: the records of their ends may have been lost.
    pub fn retain(&mut self, now_ns: u64, gone_ns: u64, mut is_alive: impl FnMut(i32) -> bool) {
        self.symbols.forget_ends();
        self.processes.retain(|pid, process| process.is_kept(now_ns, gone_ns, is_alive(*pid)));
    }

    /// Mappings, functions, cgroups and others that went, since there were too many of them.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Number of processes.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// The state as records.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        self.write_of(None, out);
        self.budget.iter().for_each(|record| out.extend_from_slice(record));
    }

    /// The state as records, with mappings and cgroups that samples need alone, and without the settings.
    pub(crate) fn write_of(&self, sampled: Option<&Sampled>, out: &mut Vec<u8>) {
        let has_mappings = |pid| sampled.is_none_or(|sampled| sampled.has(pid));
        let has_cgroup = |id| sampled.is_none_or(|sampled| sampled.has_cgroup(id));
        self.kernel.values().for_each(|record| out.extend_from_slice(record));
        self.clocks.iter().for_each(|record| out.extend_from_slice(record));
        self.symbols.records().for_each(|record| out.extend_from_slice(record));
        for (_, record) in self.cgroups.iter().filter(|(id, _)| has_cgroup(**id)) {
            out.extend_from_slice(record);
        }
        for (pid, process) in &self.processes {
            process.write_to(*pid, has_mappings(*pid), out);
        }
    }

    /// The settings by which a budget was kept, as a record.
    pub(crate) fn budget(&self) -> Option<&[u8]> {
        self.budget.as_deref()
    }
}

/// Gives the number of records that went, since there are too many.
fn keep(records: &mut BTreeMap<u64, Record>, key: u64, whole: &[u8]) -> u64 {
    let is_full = records.len() >= KEPT_MAX && !records.contains_key(&key);
    if is_full {
        records.pop_first();
    }
    records.insert(key, whole.into());
    u64::from(is_full)
}
