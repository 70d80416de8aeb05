//! Follows processes and keeps the data of the kernel's programs about them up to date.
//!
//! A small ring of its own for each CPU carries mappings, forks and execs only, and wakes this thread
//! at every record. Until it has announced a mapping, stacks through it are followed by frame
//! pointers or cut, and counted.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::unwind_tables::TableStore;
use whit_bpf::stacks::Stacks;
use whit_engine_api::error::EngineError;
use whit_engine_api::open_event::OpenEvent;
use whit_engine_api::rings::{AnyRing, MappedRing};
use whit_host::moved_text::NamedLines;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_perfdata::record::{MappedFileId, Mmap, RawRecord, SideBand};
use whit_perfdata::sample::SampleLayout;
use whit_perfdata::shared_record;
use whit_sys::maps::MapsLine;
use whit_sys::usage::CpuUsage;
use whit_sys::{Errno, Poller, Waker};
use whit_types::{Avma, Pid, Tid, TimestampNs};
use whit_unwind::Trampolines;

use super::allowance::{Allowance, Share};
use super::arenas;
use super::model::{Backing, Model};
use super::modules::{Modules, TableCounts, UnopenedBinary};
use super::pace::Pace;
use super::python::Named;
use super::rest::{Fill, Rest};

/// How often processes are looked for that have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Before anything is recorded, tables are waited for so long; later ones come as they are made.
const TABLES_WAIT: Duration = Duration::from_secs(2);
/// Token of the waker; rings have their index.
const WAKER: u64 = u64::MAX;

/// Counts of the thread's records and work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowCounts {
    /// Unwind tables that were built, loaded or refused.
    pub tables: TableCounts,
    /// Binaries that have none since they could not be opened, by path.
    pub unopened: Vec<UnopenedBinary>,
    /// Bytes that they take in the kernel.
    pub table_bytes: u64,
    /// Records that did not fit into the ring, so that mappings may be missing.
    pub lost_records: u64,
    /// Descriptions of processes that the kernel side could not hold.
    pub refused: u64,
    /// Executable mappings beyond the number that is kept of a process.
    pub unknown_mappings: u64,
    /// Records of processes beyond the number that is kept.
    pub unknown_processes: u64,
}

/// The mappings that a process will have after the exec that it waits for; its present ones do not
/// matter.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) pid: i32,
    pub(super) backings: Vec<Backing>,
}

/// The thread, to be stopped.
#[derive(Debug)]
pub(super) struct Following {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<FollowCounts>>,
    share: Arc<Share>,
}

/// Works on the thread.
struct Follower {
    stacks: Arc<Mutex<Stacks>>,
    events: Vec<OpenEvent>,
    rings: Vec<MappedRing>,
    layout: SampleLayout,
    poller: Poller,
    waker: Waker,
    roots: Roots,
    model: Model,
    modules: Modules,
    pace: Pace,
    /// Processes that changed, and whose mappings are passed on when they have rested.
    waiting: Vec<i32>,
    counts: FollowCounts,
}

impl Following {
    /// Makes `pids` and their children known, and follows them.
    pub(super) fn start(
        stacks: Arc<Mutex<Stacks>>,
        (events, rings): (Vec<OpenEvent>, Vec<MappedRing>),
        pids: &[Pid],
        expected: Option<Expected>,
        (store, named): (TableStore, Arc<Mutex<Named>>),
        roots: &Roots,
    ) -> Result<Following, EngineError> {
        let poller = Poller::new().map_err(EngineError::system("create an epoll descriptor"))?;
        let waker = Waker::new().map_err(EngineError::system("create an event descriptor"))?;
        poller.add(&waker, WAKER).map_err(EngineError::system("wait for tables"))?;
        for (number, ring) in rings.iter().enumerate() {
            let fd = &ring.members[0].of(&events).fd;
            poller.add(fd, number as u64).map_err(EngineError::system("wait for mappings"))?;
        }
        let layout = SampleLayout::new(&events[0].event.attr);
        let modules = Modules::start(roots, store, &waker, named)?;
        let mut follower = Follower {
            stacks,
            events,
            rings,
            layout,
            poller,
            waker: waker.clone(),
            roots: roots.clone(),
            model: Model::default(),
            modules,
            pace: Pace::default(),
            waiting: Vec::new(),
            counts: FollowCounts::default(),
        };
        match &expected {
            None => pids.iter().for_each(|pid| follower.existing(pid.0)),
            Some(_) => pids.iter().for_each(|pid| follower.model.know(pid.0)),
        }
        if let Some(Expected { pid, backings }) = expected {
            follower.modules.expect(pid, backings);
        }
        follower.announce();
        follower.await_tables(Instant::now() + TABLES_WAIT)?;
        let stop = Arc::new(AtomicBool::new(false));
        let share = Arc::new(Share::default());
        let (seen, limit) = (stop.clone(), share.clone());
        let work = move || follower.work(&seen, &limit);
        let thread = std::thread::Builder::new().name("whit-follow".to_owned()).spawn(work);
        let thread = thread.map_err(|source| EngineError::Thread { source })?;
        Ok(Following { stop, waker, thread: Some(thread), share })
    }

    /// The thread takes no more than a part of one CPU from here on.
    pub(super) fn set_share(&self, share: f64) {
        self.share.set(share);
    }

    /// Ends the thread and gives its counts.
    pub(super) fn stop(&mut self) -> FollowCounts {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.waker.wake();
        self.thread.iter().for_each(|thread| thread.thread().unpark());
        let thread = self.thread.take().and_then(|thread| thread.join().ok());
        thread.unwrap_or_default()
    }
}

/// Memory that may hold arenas of trampolines: code that is in no file, and enough of it.
fn may_be_arenas(map: &Mmap<'_>) -> Option<Range<u64>> {
    let has_file = matches!(map.file_id, MappedFileId::Inode { inode, .. } if inode != 0);
    let is_nameless = map.executable && !has_file && map.path != b"[vdso]";
    (is_nameless && map.len_bytes >= Trampolines::ARENA_BYTES)
        .then(|| map.start.0..map.start.0.saturating_add(map.len_bytes))
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Follower {
    fn work(mut self, stop: &AtomicBool, share: &Share) -> FollowCounts {
        super::hurry();
        let mut swept = Instant::now();
        let used_ns = || CpuUsage::of_thread().unwrap_or_default().total_ns();
        let mut allowance = Allowance::new(swept, used_ns());
        let mut rests = Rest::new(swept, used_ns());
        let mut fill = Fill::default();
        while !stop.load(Ordering::SeqCst) {
            let (now, used_ns) = (Instant::now(), used_ns());
            let rest = allowance.rest(share, now, used_ns);
            if !rest.is_zero() {
                std::thread::park_timeout(rest);
                continue;
            }
            let rest = rests.after(fill, now, used_ns);
            if !rest.is_zero() {
                std::thread::park_timeout(rest);
            }
            let Ok(seen) = self.turn(SWEEP_INTERVAL) else { break };
            fill = seen;
            if swept.elapsed() >= SWEEP_INTERVAL {
                self.sweep();
                swept = Instant::now();
            }
        }
        self.modules.finish_names();
        self.counts.tables = self.modules.counts;
        self.counts.unknown_mappings = self.model.unknown_mappings();
        self.counts.unknown_processes = self.model.beyond;
        self.counts.unopened = self.modules.unopened();
        let table_bytes = self.lock().table_bytes() as u64;
        self.counts.table_bytes = table_bytes;
        self.counts
    }

    /// Waits for records, takes them in, and passes all changes to the kernel's programs.
    fn turn(&mut self, timeout: Duration) -> Result<Fill, Errno> {
        let rest = self.pace.wait(&self.waiting, Instant::now());
        let timeout = rest.map_or(timeout, |rest| timeout.min(rest));
        for ready in self.poller.wait(Some(timeout))? {
            if ready.token == WAKER {
                let _ = self.waker.clear();
            } else if ready.hung_up {
                self.leave(ready.token as usize);
            }
        }
        let fill = self.drain();
        for backing in self.modules.settle(&self.stacks) {
            self.model.touch(|other: &Backing| *other == backing);
        }
        self.announce();
        Ok(fill)
    }

    /// Waits for the tables of all present and expected mappings.
    fn await_tables(&mut self, deadline: Instant) -> Result<(), EngineError> {
        while self.modules.is_busy() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.turn(left).map_err(EngineError::system("wait for tables"))?;
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Stacks> {
        // A panic of a thread leaves at worst a table that nobody names.
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of a ring's first event has exited: its children still write there, and are waited
    /// for by time.
    fn leave(&self, ring: usize) {
        if let Some(member) = self.rings.get(ring).and_then(|r| r.members.first()) {
            let _ = self.poller.remove(&member.of(&self.events).fd);
        }
    }

    /// Reads the mappings of a process that runs already.
    fn existing(&mut self, pid: i32) {
        let mut candidates = Vec::new();
        // A process may have any number of mappings: they are read one by one.
        let lines = processes::mappings(&self.roots, Pid(pid)).into_iter().flatten();
        let roots = self.roots.clone();
        for line in NamedLines::new(&roots, Pid(pid), lines.map_while(Result::ok)) {
            let Some(line) = MapsLine::parse(&line).filter(MapsLine::is_executable) else {
                continue;
            };
            let (major, minor, inode) = (line.major, line.minor, line.inode);
            let map = Mmap {
                pid: Pid(pid),
                tid: Tid(pid),
                start: Avma(line.start),
                len_bytes: line.end - line.start,
                page_offset: line.file_offset,
                file_id: MappedFileId::Inode { major, minor, inode, generation: 0 },
                protection: line.protection,
                executable: line.is_executable(),
                flags: line.flags,
                path: line.record_path(),
            };
            candidates.extend(may_be_arenas(&map));
            self.model.record(&SideBand::Mmap(map), TimestampNs(0));
        }
        self.model.know(pid);
        candidates.into_iter().for_each(|it| self.look_for_arenas(Pid(pid), it, TimestampNs(0)));
    }

    /// Takes what the rings hold, by time.
    fn drain(&mut self) -> Fill {
        let mut taken: Vec<(TimestampNs, Vec<u8>)> = Vec::new();
        let mut fill = Fill::default();
        for mapped in &mut self.rings {
            let AnyRing::Forward(ring) = &mut mapped.ring else { continue };
            let bytes = ring.drain(|slices| slices.concat()).unwrap_or_default();
            if bytes.len() >= fill.taken {
                fill = Fill { taken: bytes.len(), room: ring.data_size_bytes() };
            }
            let mut rest = &bytes[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                let id = self.layout.parse_id_trailer(record.body).unwrap_or_default();
                let size = rest.len() - tail.len();
                taken.push((id.time.unwrap_or(TimestampNs(0)), rest[..size].to_vec()));
                rest = tail;
            }
        }
        taken.sort_by_key(|(time, _)| *time);
        for (time, bytes) in &taken {
            let Some((record, _)) = RawRecord::split(bytes) else { continue };
            // These events ask for device and inode.
            match SideBand::parse(shared_record::without_build_id(record)) {
                Some(SideBand::Lost { lost, .. }) => self.counts.lost_records += lost,
                Some(record) => {
                    self.model.record(&record, *time);
                    if let SideBand::Mmap(map) = &record
                        && let Some(range) = may_be_arenas(map)
                    {
                        self.look_for_arenas(map.pid, range, *time);
                    }
                }
                None => {}
            }
        }
        fill
    }

    /// Python makes code that no file describes, and that all its functions are called by.
    fn look_for_arenas(&mut self, pid: Pid, range: Range<u64>, time: TimestampNs) {
        if !self.model.runs_python(pid) {
            return;
        }
        // A process that is gone has no more stacks.
        let Ok(memory) = processes::open_living(&self.roots, pid, "mem") else { return };
        for (start, of) in arenas::find(&memory, range) {
            self.modules.learn_arenas(of, &self.stacks);
            self.model.trampolines(pid, start, of, time);
        }
    }

    /// Passes all changes to the kernel's programs.
    fn announce(&mut self) {
        let now = Instant::now();
        let mut changed = self.model.take_changed();
        changed.append(&mut self.waiting);
        changed.sort_unstable();
        changed.dedup();
        for pid in changed {
            if self.model.get(pid).is_none() {
                continue;
            }
            if !self.pace.may_go(pid, now) {
                self.waiting.push(pid);
                continue;
            }
            // Where it has ended, the next process of its program finds the tables there.
            let mappings = self.modules.mappings(pid, &self.model);
            if self.model.has_ended(pid) && !processes::exists(&self.roots, Tid(pid)) {
                continue;
            }
            self.pace.went(pid, mappings.len(), now);
            let set = self.lock().set_process(pid as u32, &mappings, true, now);
            if set.is_err() {
                self.counts.refused += 1;
                // Then its samples and switches have no stacks, but are there.
                let _ = self.lock().add_target(pid as u32);
            }
        }
    }

    fn sweep(&mut self) {
        let now = Instant::now();
        for pid in self.model.sweep(|pid| processes::exists(&self.roots, Tid(pid))) {
            self.lock().remove_process(pid as u32, now);
            self.pace.forget(pid);
        }
        let again = self.modules.sweep(&self.model, now, &self.stacks);
        if !again.is_empty() {
            self.model.touch(|backing| again.contains(backing));
            self.announce();
        }
    }
}
