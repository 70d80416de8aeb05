//! Records of the state before the recording: the kernel's text and modules, and the names, threads
//! and mappings of running processes.
//!
//! They carry no time (zero), so that readers put them before everything else. A process that
//! ends while it is being read is left out as far as it was not read; that is no error.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Instant;

use whit_bpf::programs::ProgramFunction;
use whit_host::cgroup::Cgroup;
use whit_host::moved_text::{NamedLines, UnnamedText};
use whit_host::processes::{self, Status};
use whit_host::roots::Roots;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::record::{MappedFileId, Mmap, Task, misc};
use whit_perfdata::sample::SampleId;
use whit_sys::maps::{MapsLine, flag};
use whit_types::{Avma, Pid, Tid};

use crate::file_cache::FileCache;
use crate::kernel::{KernelText, Module};
use crate::options::Synthesis;
use crate::stream::{Sink, SinkError};

/// Most threads that read `/proc` at once.
const WORKERS_MAX: usize = 8;
/// Most that can be asked for.
const SYNTHESIS_THREADS_MAX: usize = 1024;
/// Processes below which one thread is enough.
const PROCESSES_PER_WORKER: usize = 64;
/// A worker hands over its records when it has this much.
const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks that may wait to be written.
const CHUNKS_WAITING: usize = 16;
/// Namespaces in the order of the kernel's indices (`NET_NS_INDEX`, …).
const NAMESPACES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];
/// Mapping lines between two looks at the clock.
const LINES_PER_LOOK: usize = 64;
/// The kernel's process id in records.
const KERNEL_PID: i32 = -1;

/// Takes records over and leaves none; false where nobody wants any more.
type HandOver<'a> = dyn FnMut(&mut Vec<u8>) -> bool + 'a;

/// Writes synthesized records.
#[derive(Clone, Copy, Debug)]
pub struct Synthesizer<'a> {
    /// `/proc`.
    pub roots: &'a Roots,
    /// How records are written.
    pub encoder: RecordEncoder,
    /// Build ids of mapped files; `None` writes device and inode.
    pub files_with_ids: Option<&'a FileCache>,
    /// Mappings without code as well.
    pub data_mappings: bool,
    /// Namespaces of threads.
    pub namespaces: bool,
    /// The kinds of records to write.
    pub what: Synthesis,
    /// Where processes are noted whose mappings took too long.
    pub cut: &'a CutProcesses,
}

/// A process whose mappings were not read to the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CutProcess {
    /// Process.
    pub pid: Pid,
    /// Lines of `/proc/PID/maps` that were read.
    pub lines: usize,
}

/// Processes whose mappings were not read to the end, and text that lies in memory and has no name.
#[derive(Debug, Default)]
pub struct CutProcesses(Mutex<Vec<CutProcess>>, Mutex<Vec<UnnamedText>>);

impl CutProcesses {
    fn note(&self, pid: Pid, lines: usize) {
        // A thread that panics leaves a whole list behind.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(CutProcess { pid, lines });
    }

    fn note_unnamed(&self, lines: &mut NamedLines<'_, impl Iterator<Item = Vec<u8>>>) {
        let unnamed = lines.take_unnamed();
        if !unnamed.is_empty() {
            self.1.lock().unwrap_or_else(PoisonError::into_inner).extend(unnamed);
        }
    }

    /// Text in memory without a name, by process.
    pub fn take_unnamed(&mut self) -> Vec<UnnamedText> {
        let all = self.1.get_mut().unwrap_or_else(PoisonError::into_inner);
        all.sort_unstable_by_key(|text| (text.pid, text.start));
        std::mem::take(all)
    }

    /// By process.
    pub fn take(self) -> Vec<CutProcess> {
        let mut all = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_unstable();
        all
    }
}

impl Synthesizer<'_> {
    /// The kernel's text: a mapping named for the reference symbol, whose page offset is that
    /// symbol's address, as perf writes it.
    pub fn kernel(&self, out: &mut Vec<u8>, text: &KernelText) {
        let path = format!("[kernel.kallsyms]{}", text.reference_name);
        self.kernel_mapping(out, text.start, text.end - text.start, text.reference, &path);
    }

    /// Functions of BPF programs.
    pub fn bpf_functions(&self, out: &mut Vec<u8>, functions: &[ProgramFunction]) {
        for function in functions {
            let code = (Avma(function.start), function.len_bytes);
            self.encoder.bpf_symbol(out, code, function.name.as_bytes(), SampleId::default());
        }
    }

    /// A kernel module.
    pub fn module(&self, out: &mut Vec<u8>, module: &Module) {
        self.kernel_mapping(out, module.start, module.size_bytes, 0, &module.path);
    }

    fn kernel_mapping(
        &self,
        out: &mut Vec<u8>,
        start: u64,
        len_bytes: u64,
        offset: u64,
        path: &str,
    ) {
        let map = Mmap {
            pid: Pid(KERNEL_PID),
            tid: Tid(0),
            start: Avma(start),
            len_bytes,
            page_offset: offset,
            file_id: MappedFileId::None,
            protection: flag::PROT_EXEC,
            executable: true,
            flags: 0,
            path: path.as_bytes(),
        };
        self.encoder.mmap(out, misc::KERNEL, &map, SampleId::default());
    }

    /// One process with all its threads and mappings. Nothing when it is gone. Whenever there are enough records,
    /// `hand_over` takes them: a process may have any number of mappings.
    fn process(&self, out: &mut Vec<u8>, pid: Pid, hand_over: &mut HandOver<'_>) {
        // Mappings of a process that nobody has heard of are worth nothing.
        if self.what.tasks || self.what.mappings {
            let _in_force = processes::see_others();
            for tid in processes::threads(self.roots, pid) {
                self.thread(out, pid, tid);
            }
        }
        // Unreadable for kernel threads, processes that are gone, and those of others.
        if self.what.mappings
            && let Ok(lines) = processes::mappings(self.roots, pid)
        {
            self.mappings(out, pid, lines, hand_over);
        }
    }

    /// CGROUP: the path of a cgroup and its id.
    pub fn cgroup(&self, out: &mut Vec<u8>, cgroup: &Cgroup) {
        self.encoder.cgroup(out, cgroup.id, cgroup.path.as_bytes(), SampleId::default());
    }

    /// A thread: that it was forked, and its name.
    fn thread(&self, out: &mut Vec<u8>, pid: Pid, tid: Tid) {
        let Some(status) = Status::read(self.roots, pid, tid) else { return };
        // A thread's parent is its process; a process's parent is in its status.
        let parent = if tid == pid.main_thread() { status.parent } else { pid };
        let task = Task {
            pid: status.tgid,
            parent_pid: parent,
            tid,
            parent_tid: parent.main_thread(),
            time: 0,
        };
        if self.namespaces {
            self.namespaces(out, status.tgid, tid);
        }
        self.encoder.fork(out, &task, SampleId::default());
        self.comm(out, status.tgid, tid, &status.name);
    }

    fn namespaces(&self, out: &mut Vec<u8>, pid: Pid, tid: Tid) {
        use std::os::unix::fs::MetadataExt;
        let directory = self.roots.thread(tid).join("ns");
        let ids = NAMESPACES.map(|name| {
            // A file that may not be inspected is left at zero, as perf does.
            std::fs::metadata(directory.join(name)).map_or((0, 0), |m| (m.dev(), m.ino()))
        });
        self.encoder.namespaces(out, pid, tid, &ids, SampleId::default());
    }

    /// A thread's name.
    pub fn comm(&self, out: &mut Vec<u8>, pid: Pid, tid: Tid, name: &[u8]) {
        self.encoder.comm(out, pid, tid, name, false, SampleId::default());
    }

    fn mappings(
        &self,
        out: &mut Vec<u8>,
        pid: Pid,
        lines: impl Iterator<Item = io::Result<Vec<u8>>>,
        hand_over: &mut HandOver<'_>,
    ) {
        let mut begin = Instant::now();
        let mut is_silent = false;
        let lines = lines.map_while(|line| {
            line.map_err(|error| is_silent = error.kind() == io::ErrorKind::TimedOut).ok()
        });
        let mut number = 0;
        let mut lines = NamedLines::new(self.roots, pid, lines);
        while let Some(line) = lines.next() {
            self.cut.note_unnamed(&mut lines);
            number += 1;
            // The last one that is written says that others are missing.
            let is_late = number % LINES_PER_LOOK == 0 && begin.elapsed() > self.what.maps_timeout;
            let Some(map) = MapsLine::parse(&line) else { continue };
            let readable = map.protection & flag::PROT_READ != 0;
            if map.is_executable() || (self.data_mappings && readable) || is_late {
                let bits = if is_late { misc::USER | misc::PROC_MAP_TIMEOUT } else { misc::USER };
                self.mapping(out, pid, bits, &map);
            }
            if is_late {
                self.cut.note(pid, number);
                return;
            }
            if out.len() >= CHUNK_BYTES {
                let waits = Instant::now();
                if !hand_over(out) {
                    return;
                }
                // Nobody waited for the process meanwhile.
                begin += waits.elapsed();
            }
        }
        drop(lines);
        if is_silent {
            self.cut.note(pid, number);
        }
    }

    fn mapping(&self, out: &mut Vec<u8>, pid: Pid, bits: u16, map: &MapsLine<'_>) {
        let id = self.files_with_ids.and_then(|cache| cache.build_id(self.roots, pid.0, map));
        let inode = MappedFileId::Inode {
            major: map.major,
            minor: map.minor,
            inode: map.inode,
            generation: 0,
        };
        let record = Mmap {
            pid,
            tid: pid.main_thread(),
            start: Avma(map.start),
            len_bytes: map.end - map.start,
            page_offset: map.file_offset,
            file_id: id.map_or(inode, MappedFileId::BuildId),
            protection: map.protection,
            executable: map.is_executable(),
            flags: map.flags,
            path: map.record_path(),
        };
        self.encoder.mmap2(out, bits, &record, SampleId::default());
    }

    /// Many processes, by several threads; `sink` is written by this one.
    pub fn processes(&self, pids: &[Pid], sink: &mut dyn Sink) -> Result<(), SinkError> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let worth = pids.len().div_ceil(PROCESSES_PER_WORKER).clamp(1, cpus.min(WORKERS_MAX));
        let workers =
            self.what.threads.map_or(worth, |asked| asked.clamp(1, SYNTHESIS_THREADS_MAX));
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::sync_channel(CHUNKS_WAITING);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || self.work(pids, next, &sender));
            }
            drop(sender);
            // On a failed write the receiver goes and the workers end at their next chunk.
            receiver.into_iter().try_for_each(|chunk: Vec<u8>| sink.records(&chunk))
        })
    }

    fn work(&self, pids: &[Pid], next: &AtomicUsize, sender: &mpsc::SyncSender<Vec<u8>>) {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        // An error means that the receiver has gone after a failed write, which it reports.
        let mut hand_over = |chunk: &mut Vec<u8>| sender.send(std::mem::take(chunk)).is_ok();
        while let Some(pid) = pids.get(next.fetch_add(1, Ordering::Relaxed)) {
            self.process(&mut chunk, *pid, &mut hand_over);
            if chunk.len() >= CHUNK_BYTES && !hand_over(&mut chunk) {
                return;
            }
        }
        let _ = hand_over(&mut chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
    use whit_perfdata::record::{RawRecord, SideBand};
    use whit_perfdata::sample::SampleLayout;

    struct Collected(Vec<u8>);

    impl Sink for Collected {
        fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
            self.0.extend(bytes);
            Ok(())
        }
    }

    fn encoder() -> RecordEncoder {
        RecordEncoder::new(SampleLayout::new(&Attr {
            sample_type: SampleType::TID | SampleType::TIME,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        }))
    }

    /// A tree of two processes: 10 with two threads and maps, the later one with the lower number, and 11 that is half gone.
    fn tree() -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        for (pid, tid, name) in [(10, 10, "main"), (10, 9, "worker"), (11, 11, "dying")] {
            let task = dir.path().join(format!("{pid}/task/{tid}"));
            std::fs::create_dir_all(&task).unwrap();
            let status = format!("Name:\t{name}\nTgid:\t{pid}\nPPid:\t1\nVmSize:\t1 kB\n");
            std::fs::write(task.join("status"), status).unwrap();
        }
        std::fs::write(
            dir.path().join("10/maps"),
            "1000-2000 r-xp 00000000 fe:00 7 /bin/main\n\
             2000-3000 rw-p 00001000 fe:00 7 /bin/main\n\
             3000-4000 ---p 00000000 00:00 0 \n\
             5000-6000 rwxp 00000000 00:00 0 \n",
        )
        .unwrap();
        std::fs::remove_file(dir.path().join("11/task/11/status")).unwrap();
        (dir, roots)
    }

    fn parse(bytes: &[u8]) -> Vec<SideBand<'_>> {
        let mut rest = bytes;
        std::iter::from_fn(|| {
            let (record, tail) = RawRecord::split(rest)?;
            rest = tail;
            SideBand::parse(record)
        })
        .collect()
    }

    fn synthesizer(roots: &Roots) -> Synthesizer<'_> {
        Synthesizer {
            roots,
            encoder: encoder(),
            files_with_ids: None,
            data_mappings: false,
            namespaces: false,
            what: Synthesis::default(),
            cut: Box::leak(Box::default()),
        }
    }

    fn synthesized(data_mappings: bool) -> Vec<u8> {
        let (_dir, roots) = tree();
        let synthesizer = Synthesizer { data_mappings, ..synthesizer(&roots) };
        let mut sink = Collected(Vec::new());
        synthesizer.processes(&[10, 11, 99].map(Pid), &mut sink).unwrap();
        sink.0
    }

    #[test]
    fn threads_names_and_code_of_running_processes() {
        let bytes = synthesized(false);
        let records = parse(&bytes);
        let names: Vec<_> = records
            .iter()
            .filter_map(|r| match r {
                SideBand::Comm { pid, tid, name, .. } => Some((pid.0, tid.0, *name)),
                _ => None,
            })
            .collect();
        assert_eq!(names, [(10, 10, &b"main"[..]), (10, 9, b"worker")]);
        let maps: Vec<_> = records
            .iter()
            .filter_map(|r| match r {
                SideBand::Mmap(map) => Some((map.start.0, map.path)),
                _ => None,
            })
            .collect();
        assert_eq!(maps, [(0x1000, &b"/bin/main"[..]), (0x5000, b"//anon")]);
        let forks = records.iter().filter(|r| matches!(r, SideBand::Fork(_))).count();
        assert_eq!((forks, records.len()), (2, 6));
    }

    #[test]
    fn data_mappings_come_when_they_are_asked_for() {
        let bytes = synthesized(true);
        let maps = parse(&bytes).iter().filter(|r| matches!(r, SideBand::Mmap(_))).count();
        assert_eq!(maps, 3, "the unreadable mapping stays out");
    }

    #[test]
    fn unwanted_records_are_left_out() {
        let (dir, roots) = tree();
        let count = |what: Synthesis, namespaces: bool| {
            let mut out = Vec::new();
            Synthesizer { what, namespaces, ..synthesizer(&roots) }.process(
                &mut out,
                Pid(10),
                &mut |_| true,
            );
            let mut rest = &out[..];
            let mut kinds = Vec::new();
            while let Some((record, tail)) = RawRecord::split(rest) {
                kinds.push(record.header.kind);
                rest = tail;
            }
            kinds
        };
        use whit_perfdata::record::record_type::{COMM, FORK, MMAP2, NAMESPACES};
        let all = Synthesis::default();
        assert_eq!(count(all, false), [FORK, COMM, FORK, COMM, MMAP2, MMAP2]);
        let tasks = Synthesis { mappings: false, ..all };
        assert_eq!(count(tasks, true), [NAMESPACES, FORK, COMM, NAMESPACES, FORK, COMM]);
        assert!(count(Synthesis { tasks: false, ..tasks }, true).is_empty());
        // More lines than are read before the clock is looked at.
        let lines = "1000-2000 r-xp 00000000 fe:00 7 /bin/main\n".repeat(1000);
        std::fs::write(dir.path().join("10/maps"), lines).unwrap();
        let at_once = Synthesis { maps_timeout: std::time::Duration::ZERO, ..all };
        assert_eq!(count(at_once, false).len(), 4 + LINES_PER_LOOK);
        let cut = CutProcesses::default();
        let mut out = Vec::new();
        Synthesizer { what: at_once, cut: &cut, ..synthesizer(&roots) }.process(
            &mut out,
            Pid(10),
            &mut |_| true,
        );
        assert_eq!(cut.take(), [CutProcess { pid: Pid(10), lines: LINES_PER_LOOK }]);
    }

    #[test]
    fn a_process_with_many_mappings_never_is_in_memory_whole() {
        struct Longest(usize, Vec<u8>);
        impl Sink for Longest {
            fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
                self.0 = self.0.max(bytes.len());
                self.1.extend(bytes);
                Ok(())
            }
        }
        let (dir, roots) = tree();
        let line = |number: usize| format!("{number:x}000-{number:x}fff r-xp 00000000 00:00 0 \n");
        let lines: String = (0x1_0000..0x1_8000).map(line).collect();
        std::fs::write(dir.path().join("10/maps"), lines).unwrap();
        let mut sink = Longest(0, Vec::new());
        let what =
            Synthesis { maps_timeout: std::time::Duration::from_secs(600), ..Synthesis::default() };
        Synthesizer { what, ..synthesizer(&roots) }.processes(&[Pid(10)], &mut sink).unwrap();
        let maps = parse(&sink.1).iter().filter(|r| matches!(r, SideBand::Mmap(_))).count();
        assert_eq!(maps, 0x8000);
        assert!(sink.1.len() > 8 * CHUNK_BYTES && sink.0 < 2 * CHUNK_BYTES, "{}", sink.0);
    }

    #[test]
    fn the_kernels_mapping_names_its_reference_symbol() {
        let (_dir, roots) = tree();
        let synthesizer = synthesizer(&roots);
        let text =
            KernelText { start: 0x1000, end: 0x9000, reference: 0x1000, reference_name: "_text" };
        let mut out = Vec::new();
        synthesizer.kernel(&mut out, &text);
        let records = parse(&out);
        let [SideBand::Mmap(map)] = records[..] else { panic!("{records:?}") };
        assert_eq!(map.path, b"[kernel.kallsyms]_text");
        assert_eq!(
            (map.pid.0, map.start.0, map.len_bytes, map.page_offset),
            (-1, 0x1000, 0x8000, 0x1000)
        );
    }
}
