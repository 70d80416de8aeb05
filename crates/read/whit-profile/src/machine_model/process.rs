//! The process model: which thread had which name, and which code was mapped where, at any time.
//!
//! It is built once, from the sideband of the whole recording in order of time, and never
//! changes after that; so samples can be looked up in any order and from any thread.
//!
//! An address space is a row of *epochs*. A new mapping that hides nothing joins the current epoch,
//! and is visible in it from its beginning. No code can have run there before, so that does no harm
//! and saves a copy for each of the mappings of a starting process. A mapping that hides other
//! code, and an exec, begin a new epoch.

use crate::machine_model::address_map::{AddressMap, Mapping};
use crate::machine_model::dso_index::DsoIndex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_types::{Avma, Pid, Tid, TimestampNs};

/// Epochs that one process may have; past them, mappings change the newest one in place.
pub(crate) const MAX_EPOCHS_PER_PROCESS: usize = 4096;

/// Epochs that mappings may begin in all processes together: each costs some kilobytes.
const MAX_REPLACED_EPOCHS: u32 = 1 << 16;

/// Index into the table of command names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct CommIndex(pub u32);

/// The state of an address space at a time: unique in a recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SpaceId(pub u32);

/// One state of an address space.
#[derive(Clone, Debug)]
pub(crate) struct Epoch {
    /// When it began.
    pub from: TimestampNs,
    /// Identity.
    pub id: SpaceId,
    /// The mappings of the epoch.
    pub map: AddressMap,
}

#[derive(Clone, Debug, Default)]
struct Process {
    epochs: Vec<Epoch>,
}

#[derive(Clone, Debug)]
struct CommChange {
    from: TimestampNs,
    comm: CommIndex,
}

/// Processes, their names and mappings over all times of the recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessModel {
    processes: FxHashMap<Pid, Process>,
    comms: FxHashMap<(Pid, Tid), Vec<CommChange>>,
    comm_names: Vec<Arc<str>>,
    comm_by_name: FxHashMap<Arc<str>, CommIndex>,
    kernel: AddressMap,
    next_space: u32,
    replaced_epochs: u32,
    epochs_cut: u64,
    /// When processes, or their last programs, began that began while they were recorded. The recorder's own command is
    /// forked before, and its program begins later.
    began: FxHashMap<Pid, TimestampNs>,
    /// Threads that were made while they were recorded: when, and by which thread; the last ones with their numbers.
    creations: FxHashMap<(Pid, Tid), (TimestampNs, (Pid, Tid))>,
}

impl ProcessModel {
    fn intern_comm(&mut self, name: &str) -> CommIndex {
        if let Some(comm) = self.comm_by_name.get(name) {
            return *comm;
        }
        let (name, comm) = (Arc::<str>::from(name), CommIndex(self.comm_names.len() as u32));
        self.comm_names.push(name.clone());
        self.comm_by_name.insert(name, comm);
        comm
    }

    fn new_space(&mut self) -> SpaceId {
        self.next_space += 1;
        SpaceId(self.next_space - 1)
    }

    /// A COMM record.
    pub(crate) fn comm(&mut self, pid: Pid, tid: Tid, name: &[u8], exec: bool, time: TimestampNs) {
        let comm = self.intern_comm(&String::from_utf8_lossy(name));
        self.comms.entry((pid, tid)).or_default().push(CommChange { from: time, comm });
        if exec {
            self.began.insert(pid, time);
            self.begin_epoch(pid, time, AddressMap::default());
        }
    }

    /// A FORK record.
    pub(crate) fn fork(
        &mut self,
        pid: Pid,
        tid: Tid,
        parent_pid: Pid,
        parent_tid: Tid,
        time: TimestampNs,
    ) {
        let inherited = self.comm_change(parent_pid, parent_tid, time).cloned();
        if let Some(CommChange { comm, .. }) = inherited {
            self.comms.entry((pid, tid)).or_default().push(CommChange { from: time, comm });
        }
        // Tasks that were there before are described without a time.
        if time > TimestampNs(0) {
            self.creations.insert((pid, tid), (time, (parent_pid, parent_tid)));
        }
        if pid != parent_pid {
            self.began.insert(pid, time);
            let newest = self.processes.get(&parent_pid).and_then(|p| p.epochs.last());
            let map = newest.map(|epoch| epoch.map.clone()).unwrap_or_default();
            self.begin_epoch(pid, time, map);
        }
    }

    /// When a thread was made, and by which one, if that was recorded.
    pub(crate) fn creation(&self, thread: (Pid, Tid)) -> Option<(TimestampNs, (Pid, Tid))> {
        self.creations.get(&thread).copied()
    }

    /// When a process or its program began, if that was recorded; the last one of several with the same number.
    pub(crate) fn began(&self, pid: Pid) -> Option<TimestampNs> {
        self.began.get(&pid).copied()
    }

    /// The binaries that a process mapped at any time; some of them more than once.
    pub(crate) fn binaries_of(&self, pid: Pid) -> impl Iterator<Item = DsoIndex> {
        let process = self.processes.get(&pid).into_iter();
        let maps = process.flat_map(|process| process.epochs.iter().map(|epoch| &epoch.map));
        maps.flat_map(|map| map.iter().map(|mapping| mapping.dso))
    }

    /// A task that ran before the recording began: its names and maps follow.
    pub(crate) fn existing(&mut self, pid: Pid, is_process: bool, time: TimestampNs) {
        if is_process {
            self.begin_epoch(pid, time, AddressMap::default());
        }
    }

    fn begin_epoch(&mut self, pid: Pid, time: TimestampNs, map: AddressMap) {
        let id = self.new_space();
        let process = self.processes.entry(pid).or_default();
        if process.epochs.len() >= MAX_EPOCHS_PER_PROCESS {
            self.epochs_cut += 1;
            if let Some(newest) = process.epochs.last_mut() {
                newest.map = map;
            }
            return;
        }
        process.epochs.push(Epoch { from: time, id, map });
    }

    /// A mapping of a process.
    pub(crate) fn map(&mut self, pid: Pid, mapping: Mapping, time: TimestampNs) {
        if self.processes.get(&pid).is_none_or(|p| p.epochs.is_empty()) {
            // Its beginning was not recorded: the known state holds from the start.
            self.begin_epoch(pid, TimestampNs(0), AddressMap::default());
        }
        let Some(newest) = self.processes.get_mut(&pid).and_then(|p| p.epochs.last_mut()) else {
            return;
        };
        let replaces = newest.map.conflicts(&mapping) && newest.from < time;
        if replaces && self.replaced_epochs < MAX_REPLACED_EPOCHS {
            let mut map = newest.map.clone();
            map.insert(mapping);
            self.replaced_epochs += 1;
            self.begin_epoch(pid, time, map);
        } else {
            newest.map.insert(mapping);
            self.epochs_cut += u64::from(replaces);
        }
    }

    /// A mapping of the kernel.
    pub(crate) fn map_kernel(&mut self, mapping: Mapping) {
        self.kernel.insert(mapping);
    }

    /// The kernel's binary at an address; the kernel image where nothing else is known.
    pub(crate) fn kernel_at(&self, address: Avma) -> DsoIndex {
        self.kernel.find(address).map_or(DsoIndex::KERNEL, |mapping| mapping.dso)
    }

    /// The state of a process's address space at a time.
    pub(crate) fn space_at(&self, pid: Pid, time: TimestampNs) -> Option<&Epoch> {
        let epochs = &self.processes.get(&pid)?.epochs;
        let after = epochs.partition_point(|epoch| epoch.from <= time);
        epochs.get(after.saturating_sub(1))
    }

    /// The states of a process's address space at these times and between them.
    pub(crate) fn spaces_between(
        &self,
        pid: Pid,
        first: TimestampNs,
        last: TimestampNs,
    ) -> &[Epoch] {
        let epochs = self.processes.get(&pid).map_or(&[][..], |process| &process.epochs);
        let behind = |time| epochs.partition_point(|epoch| epoch.from <= time);
        let from = behind(first).saturating_sub(1);
        epochs.get(from..behind(last).max(from + 1)).unwrap_or_default()
    }

    fn comm_change(&self, pid: Pid, tid: Tid, time: TimestampNs) -> Option<&CommChange> {
        let changes = self.comms.get(&(pid, tid))?;
        let after = changes.partition_point(|change| change.from <= time);
        changes.get(after.saturating_sub(1))
    }

    /// The name of a thread at a time; without one of its own, that of its process.
    pub(crate) fn comm_at(&self, pid: Pid, tid: Tid, time: TimestampNs) -> Option<CommIndex> {
        self.comm_change(pid, tid, time)
            .or_else(|| self.comm_change(pid, Tid(pid.0), time))
            .map(|change| change.comm)
    }

    /// The last name of every thread that has one.
    pub(crate) fn last_comms(&self) -> impl Iterator<Item = ((Pid, Tid), CommIndex)> {
        self.comms.iter().filter_map(|(thread, changes)| Some((*thread, changes.last()?.comm)))
    }

    /// All command names, by index.
    pub(crate) fn comm_names(&self) -> &[Arc<str>] {
        &self.comm_names
    }

    /// Changes of address spaces that were not told apart because of
    /// [`MAX_EPOCHS_PER_PROCESS`].
    pub(crate) fn epochs_cut(&self) -> u64 {
        self.epochs_cut
    }

    /// The processes whose mappings include a binary.
    pub(crate) fn processes_mapping(&self, dso: DsoIndex) -> impl Iterator<Item = Pid> {
        self.processes.iter().filter_map(move |(pid, process)| {
            let maps = |epoch: &Epoch| epoch.map.iter().any(|mapping| mapping.dso == dso);
            process.epochs.iter().any(maps).then_some(*pid)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, dso: u32) -> Mapping {
        Mapping {
            start: Avma(start),
            end: Avma(start + 0x1000),
            file_offset: 0,
            dso: DsoIndex(dso),
        }
    }

    fn dso_at(model: &ProcessModel, pid: i32, address: u64, time: u64) -> Option<u32> {
        let epoch = model.space_at(Pid(pid), TimestampNs(time))?;
        epoch.map.find(Avma(address)).map(|m| m.dso.0)
    }

    #[test]
    fn exec_forgets_the_old_program() {
        let mut m = ProcessModel::default();
        m.map(Pid(1), mapping(0x1000, 5), TimestampNs(0));
        m.comm(Pid(1), Tid(1), b"new", true, TimestampNs(10));
        m.map(Pid(1), mapping(0x9000, 6), TimestampNs(11));
        assert_eq!(dso_at(&m, 1, 0x1000, 5), Some(5));
        assert_eq!(dso_at(&m, 1, 0x1000, 12), None);
        assert_eq!(dso_at(&m, 1, 0x9000, 12), Some(6));
    }

    #[test]
    fn fork_copies_and_then_both_go_their_own_way() {
        let mut m = ProcessModel::default();
        m.comm(Pid(1), Tid(1), b"parent", false, TimestampNs(0));
        m.map(Pid(1), mapping(0x1000, 5), TimestampNs(0));
        m.fork(Pid(2), Tid(2), Pid(1), Tid(1), TimestampNs(10));
        m.map(Pid(1), mapping(0x5000, 7), TimestampNs(11));
        m.map(Pid(2), mapping(0x6000, 8), TimestampNs(12));
        assert_eq!(dso_at(&m, 2, 0x1000, 20), Some(5));
        assert_eq!(dso_at(&m, 2, 0x5000, 20), None);
        assert_eq!(dso_at(&m, 1, 0x6000, 20), None);
        let comm = m.comm_at(Pid(2), Tid(2), TimestampNs(15)).unwrap();
        assert_eq!(&*m.comm_names()[comm.0 as usize], "parent");
    }

    #[test]
    fn a_process_began_when_it_was_forked_not_when_it_was_met() {
        let mut m = ProcessModel::default();
        m.existing(Pid(1), true, TimestampNs(5));
        m.fork(Pid(2), Tid(2), Pid(1), Tid(1), TimestampNs(10));
        m.fork(Pid(2), Tid(3), Pid(2), Tid(2), TimestampNs(20));
        assert_eq!((m.began(Pid(1)), m.began(Pid(2))), (None, Some(TimestampNs(10))));
        m.comm(Pid(1), Tid(1), b"renamed", false, TimestampNs(30));
        assert_eq!(m.began(Pid(1)), None);
        m.comm(Pid(1), Tid(1), b"program", true, TimestampNs(40));
        assert_eq!(m.began(Pid(1)), Some(TimestampNs(40)));
    }

    #[test]
    fn replaced_code_is_distinguished_by_time() {
        let mut m = ProcessModel::default();
        m.map(Pid(1), mapping(0x1000, 5), TimestampNs(1));
        m.map(Pid(1), mapping(0x1000, 6), TimestampNs(10));
        m.map(Pid(1), mapping(0x1000, 5), TimestampNs(20));
        let seen: Vec<_> = [5, 15, 25].map(|t| dso_at(&m, 1, 0x1000, t)).into();
        assert_eq!(seen, [Some(5), Some(6), Some(5)]);
    }

    #[test]
    fn a_reused_pid_is_a_new_process() {
        let mut m = ProcessModel::default();
        m.map(Pid(2), mapping(0x1000, 5), TimestampNs(1));
        m.fork(Pid(2), Tid(2), Pid(1), Tid(1), TimestampNs(10));
        assert_eq!(dso_at(&m, 2, 0x1000, 5), Some(5));
        assert_eq!(dso_at(&m, 2, 0x1000, 11), None);
    }

    #[test]
    fn epochs_are_bounded() {
        let mut m = ProcessModel::default();
        for time in 1..(MAX_EPOCHS_PER_PROCESS as u64 + 100) {
            m.map(Pid(1), mapping(0x1000, 5 + (time % 2) as u32), TimestampNs(time));
        }
        assert!(m.epochs_cut() > 0);
        assert!(m.processes[&Pid(1)].epochs.len() <= MAX_EPOCHS_PER_PROCESS);
    }

    #[test]
    fn threads_without_a_name_take_that_of_their_process() {
        let mut m = ProcessModel::default();
        m.comm(Pid(1), Tid(1), b"main", false, TimestampNs(0));
        assert!(m.comm_at(Pid(1), Tid(9), TimestampNs(3)).is_some());
        assert!(m.comm_at(Pid(3), Tid(3), TimestampNs(3)).is_none());
    }
}
