//! The tables that the first pass tells: threads, CPUs, cgroups, binaries, losses.

use super::TableSource;
use crate::first_pass::census::Census;
use crate::first_pass::prepare::Prepared;
use crate::machine_model::cgroups::Cgroups;
use crate::model::DsoKind;
use crate::result::finish::kind_of;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use whit_perfdata::feature::RecordedSpan;
use whit_types::{BuildId, CpuId, Pid, Tid, TimestampNs};

/// A thread, by its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadRow {
    /// Process; -1 where no record tells it.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// The last command name.
    pub name: Option<Arc<str>>,
    /// Number of the process.
    pub process: Option<u32>,
}

/// The creation of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Creation {
    /// The time of the record that says so.
    pub at: TimestampNs,
    /// The number of the thread that made it.
    pub by: u32,
}

/// A set of processes that the kernel accounts for together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CgroupRow {
    /// Path from the root of its hierarchy; `[cgroup 4711]` where none was recorded.
    pub path: Arc<str>,
    /// False where no path was recorded.
    pub is_known: bool,
}

/// A file of code, or other code under a name in brackets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BinaryRow {
    /// Path, or a name in brackets.
    pub path: Arc<str>,
    /// Where known.
    pub build_id: Option<BuildId>,
    /// The kind of code.
    pub kind: DsoKind,
}

/// Records that a ring lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossRow {
    /// Last moment before which nothing is missing.
    pub from: TimestampNs,
    /// Moment from which on nothing is missing; `None` where that is the recording's end.
    pub to: Option<TimestampNs>,
    /// CPU of the ring; `None` where it may be any.
    pub cpu: Option<CpuId>,
    /// The only thread that is concerned: the time when it came to its CPU is uncertain, and no other record is missing.
    pub thread: Option<Tid>,
    /// As far as they were counted.
    pub records: u64,
}

/// Threads, processes and cgroups with their numbers.
#[derive(Debug, Default)]
pub(super) struct Dimensions {
    threads: Vec<(Pid, Tid)>,
    by_thread: FxHashMap<(Pid, Tid), u32>,
    /// Where a number belongs to one thread.
    by_tid: FxHashMap<Tid, Option<u32>>,
    /// Threads that only the records of others name.
    late: Mutex<Vec<(Pid, Tid)>>,
    processes: Vec<Pid>,
    by_process: FxHashMap<Pid, u32>,
    /// By number of the kernel: those without a recorded path.
    unnamed_cgroups: FxHashMap<u64, u32>,
    unnamed: Vec<u64>,
    cpus: Vec<CpuId>,
}

impl Dimensions {
    /// Everything in the order of its numbers, which no thread of ours decides.
    pub(super) fn of(prepared: &Prepared) -> Dimensions {
        let census = prepared.scan.census.as_ref();
        let seen = census.map(|census| census.threads.iter().copied());
        let named = prepared.model.last_comms().map(|(thread, _)| thread);
        let all: BTreeSet<_> = named.chain(seen.into_iter().flatten()).collect();
        let threads: Vec<_> = all.into_iter().filter(|(_, tid)| tid.0 >= 0).collect();
        let by_thread = threads.iter().zip(0..).map(|(thread, number)| (*thread, number));
        let by_thread: FxHashMap<_, _> = by_thread.collect();
        let mut by_tid = FxHashMap::default();
        for ((_, tid), number) in threads.iter().zip(0..) {
            by_tid.entry(*tid).and_modify(|of| *of = None).or_insert(Some(number));
        }
        let processes: BTreeSet<_> = threads.iter().map(|(pid, _)| *pid).collect();
        let processes: Vec<_> = processes.into_iter().filter(|pid| pid.0 >= 0).collect();
        let unnamed = unnamed_cgroups(census, &prepared.cgroups);
        let first = prepared.cgroups.paths().len() as u32;
        Dimensions {
            unnamed_cgroups: unnamed.iter().copied().zip(first..).collect(),
            unnamed,
            by_process: processes.iter().copied().zip(0..).collect(),
            processes,
            threads,
            by_thread,
            by_tid,
            late: Mutex::default(),
            cpus: census.map(cpus).unwrap_or_default(),
        }
    }

    /// The number of a thread with records of its own.
    pub(super) fn thread(&self, pid: Pid, tid: Tid) -> Option<u32> {
        self.by_thread.get(&(pid, tid)).copied()
    }

    /// The number of a process.
    pub(super) fn process(&self, pid: Pid) -> Option<u32> {
        self.by_process.get(&pid).copied()
    }

    /// The number of a thread that others' records may name alone.
    pub(super) fn any_thread(&self, pid: Pid, tid: Tid) -> Option<u32> {
        let known = self.thread(pid, tid).or_else(|| {
            let of_tid = || *self.by_tid.get(&tid)?;
            (pid.0 < 0).then(of_tid).flatten()
        });
        if known.is_some() || tid.0 < 0 {
            return known;
        }
        let mut late = self.late.lock().ok()?;
        let place = late.iter().position(|thread| *thread == (pid, tid)).unwrap_or_else(|| {
            late.push((pid, tid));
            late.len() - 1
        });
        Some((self.threads.len() + place) as u32)
    }

    pub(super) fn cgroup(&self, cgroups: &Cgroups, number: u64, time: TimestampNs) -> Option<u32> {
        match cgroups.at(number, time) {
            Some(index) => Some(index.0),
            None => self.unnamed_cgroups.get(&number).copied(),
        }
    }
}

fn cpus(census: &Census) -> Vec<CpuId> {
    let mut cpus: Vec<_> = census.cpus.iter().copied().filter(|cpu| cpu.0 != u32::MAX).collect();
    cpus.sort_unstable();
    cpus
}

fn unnamed_cgroups(census: Option<&Census>, named: &Cgroups) -> Vec<u64> {
    let all = census.into_iter().flat_map(|census| census.cgroups.iter().copied());
    let mut unnamed: Vec<_> =
        all.filter(|number| named.at(*number, TimestampNs(0)).is_none()).collect();
    unnamed.sort_unstable();
    unnamed
}

impl TableSource {
    /// Threads so far. Reading waits may add threads that only the records of others name.
    pub fn nr_threads(&self) -> usize {
        let late = self.dimensions.late.lock().map_or(0, |late| late.len());
        self.dimensions.threads.len() + late
    }

    /// A thread by its number.
    pub fn thread(&self, number: u32) -> Option<ThreadRow> {
        let known = &self.dimensions.threads;
        let place = number as usize;
        let (pid, tid) = match known.get(place) {
            Some(thread) => *thread,
            None => *self.dimensions.late.lock().ok()?.get(place - known.len())?,
        };
        let process = self.dimensions.process(pid);
        Some(ThreadRow { pid, tid, name: self.comm(pid, tid, TimestampNs(u64::MAX)), process })
    }

    /// The creation of a thread, if its record was made; `None` too where the recording has paused before `until`.
    pub fn creation_of(&self, number: u32, until: TimestampNs) -> Option<Creation> {
        let thread = self.thread(number)?;
        let (at, by) = self.prepared.model.creation((thread.pid, thread.tid))?;
        let spans = self.recording.features.recorded_spans();
        let is_recorded =
            |spans: Vec<RecordedSpan>| spans.iter().any(|span| span.from <= at && until <= span.to);
        if at > until || !spans.is_none_or(is_recorded) {
            return None;
        }
        Some(Creation { at, by: self.thread_of(by)? })
    }

    /// When the process of a thread or its program began, if that was recorded.
    pub fn began(&self, number: u32) -> Option<TimestampNs> {
        // Processes that were there before are described without a time.
        let began = self.prepared.model.began(self.thread(number)?.pid);
        began.filter(|began| *began > TimestampNs(0))
    }

    pub(super) fn comm(&self, pid: Pid, tid: Tid, time: TimestampNs) -> Option<Arc<str>> {
        let model = &self.prepared.model;
        let comm = model.comm_at(pid, tid, time)?;
        model.comm_names().get(comm.0 as usize).cloned()
    }

    /// The processes, by their numbers.
    pub fn processes(&self) -> &[Pid] {
        &self.dimensions.processes
    }

    /// Name of a process: that of its first thread, else of any.
    pub fn process_name(&self, pid: Pid) -> Option<Arc<str>> {
        let end = TimestampNs(u64::MAX);
        self.comm(pid, Tid(pid.0), end).or_else(|| {
            let threads = &self.dimensions.threads;
            let first = threads.partition_point(|thread| thread.0 < pid);
            let own = threads[first..].iter().take_while(|thread| thread.0 == pid);
            own.into_iter().find_map(|(pid, tid)| self.comm(*pid, *tid, end))
        })
    }

    /// CPUs of samples and switches, in order.
    pub fn cpus(&self) -> &[CpuId] {
        &self.dimensions.cpus
    }

    /// A cgroup by its number.
    pub fn cgroup(&self, number: u32) -> Option<CgroupRow> {
        let paths = self.prepared.cgroups.paths();
        if let Some(path) = paths.get(number as usize) {
            return Some(CgroupRow { path: path.clone(), is_known: true });
        }
        let unnamed = self.dimensions.unnamed.get(number as usize - paths.len())?;
        Some(CgroupRow { path: format!("[cgroup {unnamed}]").into(), is_known: false })
    }

    /// A binary by its number.
    pub fn binary(&self, number: u32) -> Option<BinaryRow> {
        let dso = self.prepared.dsos.find(number)?;
        Some(BinaryRow { path: dso.path.clone(), build_id: dso.build_id, kind: kind_of(dso.kind) })
    }

    /// A loss by its number.
    pub fn ring_loss(&self, number: u32) -> Option<LossRow> {
        let loss = self.ring_losses.get(number as usize)?;
        Some(LossRow {
            from: loss.window.from,
            to: Some(loss.window.to).filter(|to| to.0 != u64::MAX),
            cpu: loss.cpu,
            thread: loss.thread,
            records: loss.records,
        })
    }
}
