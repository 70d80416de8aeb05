//! Mappings of processes, as far as unwinding needs them, from records of perf and `/proc`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use whit_perfdata::record::{MappedFileId, Mmap, SideBand};
use whit_types::{FileId, Pid, Runtime, TimestampNs};
use whit_unwind::Trampolines;

/// Executable mappings that are kept of one process.
const MAPPINGS_MAX: usize = whit_bpf::stacks::PROCESS_MAPPINGS_MAX;
/// Processes that are kept.
const PROCESSES_MAX: usize = whit_bpf::stacks::PROCESSES_MAX;

/// Ancestors of a process through which its files are looked for.
const ANCESTORS_MAX: usize = 4;

/// The memory behind a mapping: a file, or a replacement of one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Backing {
    /// Which file, and the path in the process's own file system.
    File { id: FileId, path: Vec<u8> },
    /// The kernel's own code for user mode.
    Vdso,
    /// An arena of trampolines that Python made.
    Trampolines(Trampolines),
    /// Memory that no file describes.
    None,
}

/// Executable memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mapped {
    pub(super) end: u64,
    pub(super) file_offset: u64,
    pub(super) backing: Backing,
    /// When that was said.
    since: TimestampNs,
}

impl Mapped {
    /// Whether `next` continues this mapping, in memory and in the file.
    fn continues(&self, start: u64, next: u64, other: &Mapped) -> bool {
        let offset = self.file_offset.wrapping_add(next.wrapping_sub(start));
        self.end == next
            && self.backing == other.backing
            && (self.backing == Backing::None || offset == other.file_offset)
    }
}

/// The mappings of one process by their first address, without overlap.
#[derive(Clone, Default, Debug)]
pub(super) struct Space {
    mapped: BTreeMap<u64, Mapped>,
    /// First addresses of those that no file describes: the first to go where there are too many.
    nameless: BTreeSet<u64>,
    /// Mappings that were left out.
    beyond: u64,
}

impl Space {
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Mapped)> {
        self.mapped.iter().map(|(start, mapped)| (*start, mapped))
    }

    /// Maps over existing mappings.
    fn insert(&mut self, start: u64, new: Mapped) {
        if start >= new.end {
            return;
        }
        self.cut(start, new.end);
        let before = self.mapped.range_mut(..start).next_back();
        if let Some((from, before)) = before
            && before.continues(*from, start, &new)
        {
            (before.end, before.since) = (new.end, before.since.max(new.since));
            return;
        }
        if self.mapped.len() >= MAPPINGS_MAX {
            self.beyond += 1;
            let Some(least) = self.nameless.first().copied() else { return };
            if new.backing == Backing::None {
                return;
            }
            self.remove(least);
        }
        self.put(start, new);
    }

    fn put(&mut self, start: u64, mapped: Mapped) {
        if mapped.backing == Backing::None {
            self.nameless.insert(start);
        }
        self.mapped.insert(start, mapped);
    }

    fn remove(&mut self, start: u64) -> Option<Mapped> {
        self.nameless.remove(&start);
        self.mapped.remove(&start)
    }

    /// Forgets those that are not wanted.
    fn retain(&mut self, is_wanted: impl Fn(&Mapped) -> bool) {
        let unwanted: Vec<u64> =
            self.iter().filter(|(_, mapped)| !is_wanted(mapped)).map(|(start, _)| start).collect();
        unwanted.into_iter().for_each(|start| _ = self.remove(start));
    }

    fn cut(&mut self, start: u64, end: u64) {
        let touched: Vec<u64> = self
            .mapped
            .range(..end)
            .rev()
            .take_while(|(_, mapped)| mapped.end > start)
            .map(|(from, _)| *from)
            .collect();
        for from in touched {
            let Some(old) = self.remove(from) else { continue };
            if old.end > end {
                let file_offset = old.file_offset.wrapping_add(end - from);
                self.put(end, Mapped { file_offset, ..old.clone() });
            }
            if from < start {
                self.put(from, Mapped { end: start, ..old });
            }
        }
    }
}

/// All processes.
#[derive(Default, Debug)]
pub(super) struct Model {
    spaces: HashMap<i32, Space>,
    /// Those that are not as they were made known.
    changed: HashSet<i32>,
    /// Those whose first thread has ended.
    ended: HashSet<i32>,
    /// The parent of each process. Files may be opened through a parent when their process has
    /// ended.
    parents: HashMap<i32, i32>,
    /// Records of processes beyond the limit.
    pub(super) beyond: u64,
    beyond_of_ended: u64,
}

impl Model {
    /// Takes in a record.
    pub(super) fn record(&mut self, record: &SideBand<'_>, time: TimestampNs) {
        match record {
            SideBand::Mmap(map) if map.executable && map.pid.0 > 0 => self.map(map, time),
            SideBand::Comm { pid, exec: true, .. } => self.exec(*pid, time),
            SideBand::Fork(task) if task.pid != task.parent_pid => {
                if !self.spaces.contains_key(&task.pid.0)
                    && let Some(parent) = self.spaces.get(&task.parent_pid.0).cloned()
                    && let Some(child) = self.space(task.pid)
                {
                    *child = parent;
                }
                self.changed.insert(task.pid.0);
                if self.parents.len() >= PROCESSES_MAX {
                    self.parents.clear();
                }
                self.parents.insert(task.pid.0, task.parent_pid.0);
            }
            SideBand::Exit(task) if task.pid.0 == task.tid.0 => {
                self.ended.insert(task.pid.0);
            }
            _ => {}
        }
    }

    /// A process that is recorded; its mappings may be unknown.
    pub(super) fn know(&mut self, pid: i32) {
        self.space(Pid(pid));
    }

    fn space(&mut self, pid: Pid) -> Option<&mut Space> {
        if self.spaces.len() >= PROCESSES_MAX && !self.spaces.contains_key(&pid.0) {
            self.beyond += 1;
            return None;
        }
        self.changed.insert(pid.0);
        Some(self.spaces.entry(pid.0).or_default())
    }

    fn map(&mut self, map: &Mmap<'_>, since: TimestampNs) {
        let backing = match (map.file_id, map.path) {
            (_, b"[vdso]") => Backing::Vdso,
            (MappedFileId::Inode { major, minor, inode, .. }, path)
                if inode != 0 && path.starts_with(b"/") =>
            {
                Backing::File { id: FileId { device: (major, minor), inode }, path: path.to_vec() }
            }
            _ => Backing::None,
        };
        let end = map.start.0.saturating_add(map.len_bytes);
        let mapped = Mapped { end, file_offset: map.page_offset, backing, since };
        if let Some(space) = self.space(map.pid) {
            space.insert(map.start.0, mapped);
        }
    }

    /// Whether a process runs Python, as far as its mappings tell.
    pub(super) fn runs_python(&self, pid: Pid) -> bool {
        let is_python = |mapped: &Mapped| match &mapped.backing {
            Backing::File { path, .. } => {
                matches!(Runtime::of_path(path), Some(Runtime::Python { .. }))
            }
            _ => false,
        };
        self.get(pid.0).is_some_and(|space| space.iter().any(|(_, mapped)| is_python(mapped)))
    }

    /// Memory of a process, which was mapped before, turns out to be an arena of trampolines.
    pub(super) fn trampolines(
        &mut self,
        pid: Pid,
        start: u64,
        of: Trampolines,
        since: TimestampNs,
    ) {
        let end = start.saturating_add(Trampolines::ARENA_BYTES);
        let backing = Backing::Trampolines(of);
        if let Some(space) = self.space(pid) {
            space.insert(start, Mapped { end, file_offset: 0, backing, since });
        }
    }

    /// A new program: the earlier mappings are gone. Its own mappings may have arrived first, from
    /// another CPU.
    fn exec(&mut self, pid: Pid, time: TimestampNs) {
        if let Some(space) = self.space(pid) {
            space.retain(|mapped| mapped.since >= time);
        }
    }

    /// Mappings that were left out of the processes that are known now, or were when they ended.
    pub(super) fn unknown_mappings(&self) -> u64 {
        let known: u64 = self.spaces.values().map(|space| space.beyond).sum();
        known + self.beyond_of_ended
    }

    /// The processes that changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<i32> {
        self.changed.drain().collect()
    }

    /// Everything that a process maps.
    pub(super) fn backings(&self) -> HashSet<&Backing> {
        self.spaces.values().flat_map(Space::iter).map(|(_, mapped)| &mapped.backing).collect()
    }

    /// Has those told again that map one of these.
    pub(super) fn touch(&mut self, is_meant: impl Fn(&Backing) -> bool) {
        for (pid, space) in &self.spaces {
            if space.iter().any(|(_, mapped)| is_meant(&mapped.backing)) {
                self.changed.insert(*pid);
            }
        }
    }

    /// The mappings of a process.
    pub(super) fn get(&self, pid: i32) -> Option<&Space> {
        self.spaces.get(&pid)
    }

    /// Whether its first thread has ended.
    pub(super) fn has_ended(&self, pid: i32) -> bool {
        self.ended.contains(&pid)
    }

    /// The process that forked this one, the one that forked that, and so on, as far as forks were recorded.
    pub(super) fn ancestors(&self, pid: i32) -> Vec<i32> {
        let parents = std::iter::successors(self.parents.get(&pid), |pid| self.parents.get(pid));
        parents.take(ANCESTORS_MAX).copied().collect()
    }

    /// Forgets processes that have ended and are gone.
    pub(super) fn sweep(&mut self, exists: impl Fn(i32) -> bool) -> Vec<i32> {
        let gone: Vec<i32> = self.ended.iter().copied().filter(|pid| !exists(*pid)).collect();
        for pid in &gone {
            self.ended.remove(pid);
            self.beyond_of_ended += self.spaces.remove(pid).map_or(0, |space| space.beyond);
            self.changed.remove(pid);
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::record::{PROT_EXEC, Task};
    use whit_types::{Avma, Tid};

    fn mmap(pid: i32, start: u64, len_bytes: u64, page_offset: u64, path: &[u8]) -> SideBand<'_> {
        SideBand::Mmap(Mmap {
            pid: Pid(pid),
            tid: Tid(pid),
            start: Avma(start),
            len_bytes,
            page_offset,
            file_id: MappedFileId::Inode {
                major: 1,
                minor: 2,
                inode: if path == b"//anon" { 0 } else { 3 },
                generation: 0,
            },
            protection: PROT_EXEC,
            executable: true,
            flags: 2,
            path,
        })
    }

    fn ranges(model: &Model, pid: i32) -> Vec<(u64, u64, u64)> {
        let space = model.get(pid).map(Space::iter).into_iter().flatten();
        space.map(|(start, mapped)| (start, mapped.end, mapped.file_offset)).collect()
    }

    #[test]
    fn mappings_replace_hidden_ones() {
        let mut model = Model::default();
        let time = TimestampNs;
        model.record(&mmap(7, 0x1000, 0x4000, 0, b"/lib/a"), time(1));
        model.record(&mmap(7, 0x2000, 0x1000, 0x500, b"/lib/b"), time(2));
        assert_eq!(
            ranges(&model, 7),
            [(0x1000, 0x2000, 0), (0x2000, 0x3000, 0x500), (0x3000, 0x5000, 0x2000)]
        );
        model.record(&mmap(7, 0, 0x9000, 0, b"[vdso]"), time(3));
        assert_eq!(ranges(&model, 7), [(0, 0x9000, 0)]);
        assert!(model.get(7).unwrap().iter().all(|(_, mapped)| mapped.backing == Backing::Vdso));
        model.record(&mmap(7, u64::MAX - 5, 0x1000, 0, b"//anon"), time(4));
        assert_eq!(ranges(&model, 7).len(), 2);
        assert_eq!(model.take_changed(), [7]);
        assert!(model.take_changed().is_empty());
    }

    /// Just-in-time compilers and `mprotect` leave rows of mappings that are one.
    #[test]
    fn mappings_that_follow_each_other_are_one() {
        let mut model = Model::default();
        for page in 0..40_000 {
            let anonymous = mmap(7, 0x1000 * page, 0x1000, 0, b"//anon");
            model.record(&anonymous, TimestampNs(1));
            let start = 0x7000_0000_0000 + 0x1000 * page;
            model.record(&mmap(7, start, 0x1000, 0x1000 * page, b"/lib/a"), TimestampNs(1));
        }
        model.record(&mmap(7, 0x7100_0000_0000, 0x1000, 0, b"/lib/a"), TimestampNs(1));
        model.record(&mmap(7, 0x7100_0000_1000, 0x1000, 0, b"/lib/a"), TimestampNs(1));
        let (end, long) = (0x1000 * 40_000, 0x7000_0000_0000 + 0x1000 * 40_000);
        assert_eq!(
            ranges(&model, 7),
            [
                (0, end, 0),
                (0x7000_0000_0000, long, 0),
                (0x7100_0000_0000, 0x7100_0000_1000, 0),
                (0x7100_0000_1000, 0x7100_0000_2000, 0),
            ]
        );
        assert_eq!(model.unknown_mappings(), 0);
    }

    #[test]
    fn arenas_of_trampolines_stay_apart_and_make_room_in_nameless_memory() {
        let mut model = Model::default();
        model.record(&mmap(7, 0x1000, 0x1000, 0, b"/usr/bin/python3.12"), TimestampNs(1));
        assert!(model.runs_python(Pid(7)) && !model.runs_python(Pid(8)));
        model.record(&mmap(7, 0x10_0000, 0x3_0000, 0, b"//anon"), TimestampNs(2));
        let mut arena = vec![0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3];
        arena.extend(arena.clone());
        let kind = Trampolines::recognize(&arena).unwrap();
        model.trampolines(Pid(7), 0x10_0000, kind, TimestampNs(3));
        model.trampolines(Pid(7), 0x11_0000, kind, TimestampNs(3));
        let backings: Vec<_> = model.get(7).unwrap().iter().collect();
        let [_, (first, a), (second, b), (third, rest)] = &backings[..] else {
            panic!("{backings:?}")
        };
        assert_eq!((*first, *second, *third), (0x10_0000, 0x11_0000, 0x12_0000));
        assert!([a, b].iter().all(|arena| arena.backing == Backing::Trampolines(kind)));
        assert_eq!(rest.backing, Backing::None);
    }

    #[test]
    fn beyond_the_bound_files_go_before_memory_without_one() {
        let mut model = Model::default();
        let count = MAPPINGS_MAX as u64 + 100;
        for index in 0..count {
            model.record(&mmap(7, 0x2000 * index, 0x1000, 0, b"//anon"), TimestampNs(1));
        }
        assert_eq!(model.unknown_mappings(), 100);
        let library = 0x7000_0000_0000;
        model.record(&mmap(7, library, 0x1000, 0, b"/lib/a"), TimestampNs(1));
        assert_eq!((ranges(&model, 7).len(), model.unknown_mappings()), (MAPPINGS_MAX, 101));
        assert!(model.get(7).unwrap().iter().any(|(start, _)| start == library));
        for index in 1..count {
            let start = library + 0x2000 * index;
            model.record(&mmap(7, start, 0x1000, 0, b"/lib/a"), TimestampNs(1));
        }
        assert_eq!(ranges(&model, 7).len(), MAPPINGS_MAX);
        assert!(model.get(7).unwrap().iter().all(|(_, mapped)| mapped.backing != Backing::None));
        let task =
            Task { pid: Pid(7), parent_pid: Pid(1), tid: Tid(7), parent_tid: Tid(1), time: 0 };
        model.record(&SideBand::Exit(task), TimestampNs(2));
        let before = model.unknown_mappings();
        assert_eq!(model.sweep(|_| false), [7]);
        assert_eq!(model.unknown_mappings(), before);
    }

    #[test]
    fn children_inherit_and_an_exec_begins_anew_in_any_order() {
        let mut model = Model::default();
        let task = |pid, parent| Task {
            pid: Pid(pid),
            parent_pid: Pid(parent),
            tid: Tid(pid),
            parent_tid: Tid(parent),
            time: 0,
        };
        model.record(&mmap(7, 0x1000, 0x1000, 0, b"/bin/sh"), TimestampNs(1));
        model.record(&SideBand::Fork(task(8, 7)), TimestampNs(2));
        assert_eq!(ranges(&model, 8), ranges(&model, 7));
        // The new program's mapping is heard of before its exec.
        model.record(&mmap(8, 0x5000, 0x1000, 0, b"/bin/true"), TimestampNs(4));
        let exec = SideBand::Comm { pid: Pid(8), tid: Tid(8), name: b"true", exec: true };
        model.record(&exec, TimestampNs(3));
        assert_eq!(ranges(&model, 8), [(0x5000, 0x6000, 0)]);
        model.record(&SideBand::Exit(task(8, 7)), TimestampNs(5));
        assert!(model.sweep(|_| true).is_empty());
        assert_eq!(model.sweep(|_| false), [8]);
        assert!(model.get(8).is_none() && model.get(7).is_some());
        model.take_changed();
        model.touch(|backing| matches!(backing, Backing::File { path, .. } if path == b"/bin/sh"));
        assert_eq!(model.take_changed(), [7]);
    }

    #[test]
    fn ancestors_are_known_as_far_as_forks_are() {
        let mut model = Model::default();
        let mut fork = |pid, parent| {
            let (pid, parent_pid) = (Pid(pid), Pid(parent));
            let (tid, parent_tid) = (Tid(pid.0), Tid(parent));
            let task = Task { pid, parent_pid, tid, parent_tid, time: 0 };
            model.record(&SideBand::Fork(task), TimestampNs(1));
        };
        (2..9).for_each(|pid| fork(pid, pid - 1));
        // Numbers are used again.
        fork(20, 21);
        fork(21, 20);
        assert_eq!(model.ancestors(3), [2, 1]);
        assert_eq!(model.ancestors(8), [7, 6, 5, 4]);
        assert_eq!(model.ancestors(20), [21, 20, 21, 20]);
        assert!(model.ancestors(1).is_empty());
    }
}
