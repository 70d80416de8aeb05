//! Records that a recording tool writes itself: existing processes, rounds, pipe headers.

use crate::attr::{Attr, SampleType};
use crate::budget::BudgetRecord;
use crate::bytes::pad_to;
use crate::clocks::ClockReading;
use crate::cpu_account::CpuAccount;
use crate::interpreted::InterpretedFunction;
use crate::record::{HEADER_SIZE_BYTES, MappedFileId, Mmap, RecordHeader, Task, misc, record_type};
use crate::sample::{SampleId, SampleLayout};
use whit_types::{Avma, BuildId, Pid, Tid, TimestampNs};

/// Largest record that the 16-bit size of the header can say, kept a multiple of eight.
pub const MAX_RECORD_SIZE_BYTES: usize = 0xfff8;

/// `PERF_RECORD_KSYMBOL_TYPE_BPF`.
const KSYMBOL_TYPE_BPF: u16 = 1;

/// Longest path in a mapping (`PATH_MAX`); longer ones are cut.
const MAX_PATH_BYTES: usize = 4096;

/// Appends records to a buffer, each with the sample id trailer that the layout asks for.
#[derive(Clone, Copy, Debug)]
pub struct RecordEncoder {
    layout: SampleLayout,
}

impl RecordEncoder {
    /// For recordings whose sideband records have this layout.
    pub fn new(layout: SampleLayout) -> Self {
        RecordEncoder { layout }
    }

    /// COMM: a thread's command name.
    pub fn comm(
        &self,
        out: &mut Vec<u8>,
        pid: Pid,
        tid: Tid,
        name: &[u8],
        exec: bool,
        id: SampleId,
    ) {
        let bits = if exec { misc::COMM_EXEC } else { 0 };
        self.record(out, record_type::COMM, bits, id, |body| {
            push_ids(body, pid, tid);
            push_c_str(body, name);
        });
    }

    /// FORK: a process or thread starts.
    pub fn fork(&self, out: &mut Vec<u8>, task: &Task, id: SampleId) {
        self.task(out, record_type::FORK, 0, task, id);
    }

    /// FORK of a task that ran before the recording began: readers must not copy its parent's
    /// maps, its own follow.
    pub fn existing_task(&self, out: &mut Vec<u8>, task: &Task, id: SampleId) {
        self.task(out, record_type::FORK, misc::FORK_EXEC, task, id);
    }

    /// EXIT: a process or thread ends.
    pub fn exit(&self, out: &mut Vec<u8>, task: &Task, id: SampleId) {
        self.task(out, record_type::EXIT, 0, task, id);
    }

    fn task(&self, out: &mut Vec<u8>, kind: u32, bits: u16, task: &Task, id: SampleId) {
        self.record(out, kind, bits, id, |body| {
            push_ids(body, task.pid, Tid(task.parent_pid.0));
            push_ids(body, Pid(task.tid.0), task.parent_tid);
            body.extend(task.time.to_le_bytes());
        });
    }

    /// MMAP, the form that perf uses for the kernel's own mappings.
    pub fn mmap(&self, out: &mut Vec<u8>, cpu_mode: u16, map: &Mmap<'_>, id: SampleId) {
        let data = if map.executable { 0 } else { misc::MMAP_DATA };
        self.record(out, record_type::MMAP, cpu_mode | data, id, |body| {
            push_ids(body, map.pid, map.tid);
            for word in [map.start.0, map.len_bytes, map.page_offset] {
                body.extend(word.to_le_bytes());
            }
            push_c_str(body, &map.path[..map.path.len().min(MAX_PATH_BYTES)]);
        });
    }

    /// MMAP2: a file or other memory is mapped.
    pub fn mmap2(&self, out: &mut Vec<u8>, cpu_mode: u16, map: &Mmap<'_>, id: SampleId) {
        let is_build_id = matches!(map.file_id, MappedFileId::BuildId(_));
        let bits = cpu_mode
            | if map.executable { 0 } else { misc::MMAP_DATA }
            | if is_build_id { misc::MMAP_BUILD_ID } else { 0 };
        self.record(out, record_type::MMAP2, bits, id, |body| {
            push_ids(body, map.pid, map.tid);
            for word in [map.start.0, map.len_bytes, map.page_offset] {
                body.extend(word.to_le_bytes());
            }
            push_file_id(body, &map.file_id);
            body.extend(map.protection.to_le_bytes());
            body.extend(map.flags.to_le_bytes());
            push_c_str(body, &map.path[..map.path.len().min(MAX_PATH_BYTES)]);
        });
    }

    /// CGROUP: what an id stands for.
    pub fn cgroup(&self, out: &mut Vec<u8>, cgroup_id: u64, path: &[u8], id: SampleId) {
        self.record(out, record_type::CGROUP, 0, id, |body| {
            body.extend(cgroup_id.to_le_bytes());
            push_c_str(body, &path[..path.len().min(MAX_PATH_BYTES)]);
        });
    }

    /// KSYMBOL: code of a BPF program, under its name in the kernel's list of symbols.
    pub fn bpf_symbol(
        &self,
        out: &mut Vec<u8>,
        (start, len_bytes): (Avma, u32),
        name: &[u8],
        id: SampleId,
    ) {
        self.record(out, record_type::KSYMBOL, 0, id, |body| {
            body.extend(start.0.to_le_bytes());
            body.extend(len_bytes.to_le_bytes());
            body.extend(KSYMBOL_TYPE_BPF.to_le_bytes());
            // It is there: no symbol goes.
            body.extend(0u16.to_le_bytes());
            push_c_str(body, &name[..name.len().min(MAX_PATH_BYTES)]);
        });
    }

    /// LOST: records of any type that did not fit into a ring. They may be missing from `since` on; without
    /// it, from the ring's record before.
    pub fn lost(
        &self,
        out: &mut Vec<u8>,
        event_id: u64,
        lost: u64,
        since: Option<TimestampNs>,
        id: SampleId,
    ) {
        self.record(out, record_type::LOST, 0, id, |body| {
            let words = [event_id, lost].into_iter().chain(since.map(|time| time.0));
            body.extend(words.flat_map(u64::to_le_bytes));
        });
    }

    /// LOST_SAMPLES: losses that no LOST record reports. `since` as in a LOST record.
    pub fn lost_samples(
        &self,
        out: &mut Vec<u8>,
        lost: u64,
        since: Option<TimestampNs>,
        id: SampleId,
    ) {
        self.record(out, record_type::LOST_SAMPLES, 0, id, |body| {
            let words = [lost].into_iter().chain(since.map(|time| time.0));
            body.extend(words.flat_map(u64::to_le_bytes));
        });
    }

    /// Settings by which a budget is kept: LOST_SAMPLES of no loss with more fields.
    pub fn budget(&self, out: &mut Vec<u8>, budget: &BudgetRecord, id: SampleId) {
        self.record(out, record_type::LOST_SAMPLES, 0, id, |body| {
            body.extend(0u64.to_le_bytes());
            body.extend(budget.fields());
        });
    }

    /// Clocks at one moment: LOST_SAMPLES of no loss with more fields.
    pub fn clocks(&self, out: &mut Vec<u8>, clocks: &ClockReading, id: SampleId) {
        self.record(out, record_type::LOST_SAMPLES, 0, id, |body| {
            body.extend(0u64.to_le_bytes());
            body.extend(clocks.fields());
        });
    }

    /// NAMESPACES of a thread: device and inode of each, in the kernel's order (net, uts, ipc, pid,
    /// user, mnt, cgroup).
    pub fn namespaces(
        &self,
        out: &mut Vec<u8>,
        pid: Pid,
        tid: Tid,
        namespaces: &[(u64, u64)],
        id: SampleId,
    ) {
        self.record(out, record_type::NAMESPACES, 0, id, |body| {
            push_ids(body, pid, tid);
            body.extend((namespaces.len() as u64).to_le_bytes());
            for (device, inode) in namespaces {
                body.extend(device.to_le_bytes());
                body.extend(inode.to_le_bytes());
            }
        });
    }

    /// BPF_EVENT: a function of an interpreter, in as many records as its lines take. `event_id` is that of any event.
    pub fn function(
        &self,
        out: &mut Vec<u8>,
        function: &InterpretedFunction,
        time: TimestampNs,
        event_id: u64,
    ) {
        let main_thread = function.pid.main_thread();
        let id = SampleId {
            pid_tid: Some((function.pid, main_thread)),
            time: Some(time),
            id: Some(event_id),
            cpu: None,
        };
        for contents in function.bodies() {
            self.record(out, record_type::BPF_EVENT, 0, id, |body| body.extend(contents));
        }
    }

    /// BPF_EVENT: what a CPU spent besides a thread, by the sample id.
    pub fn cpu_account(&self, out: &mut Vec<u8>, account: &CpuAccount, id: SampleId) {
        self.record(out, record_type::BPF_EVENT, 0, id, |body| body.extend(account.body()));
    }

    fn record(
        &self,
        out: &mut Vec<u8>,
        kind: u32,
        bits: u16,
        id: SampleId,
        fill: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut body = Vec::with_capacity(128);
        fill(&mut body);
        pad_to(&mut body, 8);
        self.push_trailer(&mut body, id);
        push_record(out, kind, bits, &body);
    }

    fn push_trailer(&self, body: &mut Vec<u8>, id: SampleId) {
        if !self.layout.sample_id_all {
            return;
        }
        let has = |field| self.layout.sample_type.contains(field);
        if has(SampleType::TID) {
            let (pid, tid) = id.pid_tid.unwrap_or_default();
            push_ids(body, pid, tid);
        }
        let mut push = |field, value: u64| {
            if has(field) {
                body.extend(value.to_le_bytes());
            }
        };
        push(SampleType::TIME, id.time.unwrap_or_default().0);
        push(SampleType::ID, id.id.unwrap_or(0));
        push(SampleType::STREAM_ID, 0);
        push(SampleType::CPU, u64::from(id.cpu.unwrap_or_default().0));
        push(SampleType::IDENTIFIER, id.id.unwrap_or(0));
    }
}

/// Appends a record. The body is cut to the size that the header's 16 bits can hold.
pub fn push_record(out: &mut Vec<u8>, kind: u32, bits: u16, body: &[u8]) {
    let body = &body[..body.len().min(MAX_RECORD_SIZE_BYTES - HEADER_SIZE_BYTES)];
    let size_bytes = (HEADER_SIZE_BYTES + body.len()) as u16;
    out.extend(RecordHeader { kind, misc: bits, size_bytes }.to_bytes());
    out.extend(body);
}

/// FINISHED_ROUND: every later record is younger than the records before the previous one.
pub fn finished_round() -> [u8; HEADER_SIZE_BYTES] {
    let size_bytes = HEADER_SIZE_BYTES as u16;
    RecordHeader { kind: record_type::FINISHED_ROUND, misc: 0, size_bytes }.to_bytes()
}

/// The same, with the number of the order to empty all rings that this round carried out: the records of that moment stand
/// in front of it.
pub fn finished_round_of(number: u64) -> [u8; HEADER_SIZE_BYTES + 8] {
    let size_bytes = (HEADER_SIZE_BYTES + 8) as u16;
    let header = RecordHeader { kind: record_type::FINISHED_ROUND, misc: 0, size_bytes };
    let mut out = [0; HEADER_SIZE_BYTES + 8];
    out[..HEADER_SIZE_BYTES].copy_from_slice(&header.to_bytes());
    out[HEADER_SIZE_BYTES..].copy_from_slice(&number.to_le_bytes());
    out
}

/// FINISHED_INIT: the synthesized records of existing processes are complete.
pub fn finished_init() -> [u8; HEADER_SIZE_BYTES] {
    let size_bytes = HEADER_SIZE_BYTES as u16;
    RecordHeader { kind: record_type::FINISHED_INIT, misc: 0, size_bytes }.to_bytes()
}

/// HEADER_ATTR: an event of a recording that goes into a pipe.
pub fn header_attr(out: &mut Vec<u8>, attr: &Attr, ids: &[u64]) {
    let mut body = attr.to_bytes();
    let room = (MAX_RECORD_SIZE_BYTES - HEADER_SIZE_BYTES - body.len()) / 8;
    body.extend(ids.iter().take(room).flat_map(|id| id.to_le_bytes()));
    push_record(out, record_type::HEADER_ATTR, 0, &body);
}

/// FEATURE: a header feature of a recording that goes into a pipe. `false` where it is too long
/// for a record and was left out.
#[must_use]
pub fn header_feature(out: &mut Vec<u8>, feature: u8, bytes: &[u8]) -> bool {
    let mut body = u64::from(feature).to_le_bytes().to_vec();
    body.extend(bytes);
    pad_to(&mut body, 8);
    let fits = body.len() + HEADER_SIZE_BYTES <= MAX_RECORD_SIZE_BYTES;
    if fits {
        push_record(out, record_type::FEATURE, 0, &body);
    }
    fits
}

/// TRACING_DATA: the formats of tracepoints in a pipe. The bytes follow the record.
pub fn tracing_data(out: &mut Vec<u8>, bytes: &[u8]) {
    let padded = bytes.len().next_multiple_of(8);
    // The record ends after its size word, unaligned: perf reads 12 bytes here.
    push_record(out, record_type::TRACING_DATA, 0, &(padded as u32).to_le_bytes());
    out.extend(bytes);
    out.resize(out.len() + padded - bytes.len(), 0);
}

/// BUILD_ID: the build id of one binary, as the BUILD_ID feature and pipes hold it.
pub fn build_id(out: &mut Vec<u8>, cpu_mode: u16, pid: Pid, id: &BuildId, path: &[u8]) {
    let mut body = pid.0.to_le_bytes().to_vec();
    let mut field = [0; 24];
    field[..id.as_bytes().len()].copy_from_slice(id.as_bytes());
    field[BuildId::MAX_SIZE_BYTES] = id.as_bytes().len() as u8;
    body.extend(field);
    push_c_str(&mut body, &path[..path.len().min(MAX_PATH_BYTES)]);
    body.resize((body.len() + HEADER_SIZE_BYTES).next_multiple_of(64) - HEADER_SIZE_BYTES, 0);
    // Bit 15 says that the byte after the id is its size (`PERF_RECORD_MISC_BUILD_ID_SIZE`).
    push_record(out, record_type::BUILD_ID, cpu_mode | 1 << 15, &body);
}

fn push_ids(body: &mut Vec<u8>, pid: Pid, tid: Tid) {
    body.extend(pid.0.to_le_bytes());
    body.extend(tid.0.to_le_bytes());
}

fn push_c_str(body: &mut Vec<u8>, text: &[u8]) {
    body.extend(text);
    body.push(0);
}

fn push_file_id(body: &mut Vec<u8>, id: &MappedFileId) {
    match id {
        MappedFileId::None => body.extend([0; 24]),
        MappedFileId::Inode { major, minor, inode, generation } => {
            body.extend(major.to_le_bytes());
            body.extend(minor.to_le_bytes());
            body.extend(inode.to_le_bytes());
            body.extend(generation.to_le_bytes());
        }
        MappedFileId::BuildId(id) => {
            let mut field = [0; 24];
            field[0] = id.as_bytes().len() as u8;
            field[4..4 + id.as_bytes().len()].copy_from_slice(id.as_bytes());
            body.extend(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::AttrFlags;
    use crate::record::{RawRecord, SideBand};
    use whit_types::{Avma, CpuId, TimestampNs};

    fn encoder() -> (RecordEncoder, SampleLayout) {
        let attr = Attr {
            sample_type: SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU
                | SampleType::IDENTIFIER,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        let layout = SampleLayout::new(&attr);
        (RecordEncoder::new(layout), layout)
    }

    fn id() -> SampleId {
        SampleId {
            pid_tid: Some((Pid(4), Tid(5))),
            time: Some(TimestampNs(77)),
            id: Some(9),
            cpu: Some(CpuId(1)),
        }
    }

    #[test]
    fn encoded_records_are_decoded() {
        let (encoder, layout) = encoder();
        let map = |file_id| Mmap {
            pid: Pid(4),
            tid: Tid(5),
            start: Avma(0x1000),
            len_bytes: 0x2000,
            page_offset: 0x3000,
            file_id,
            protection: 5,
            executable: true,
            flags: 2,
            path: b"/bin/true",
        };
        let task =
            Task { pid: Pid(6), parent_pid: Pid(4), tid: Tid(7), parent_tid: Tid(5), time: 70 };
        let build = map(MappedFileId::BuildId(BuildId::new(&[3; 20]).unwrap()));
        let inode = map(MappedFileId::Inode { major: 1, minor: 2, inode: 3, generation: 4 });
        let mut out = Vec::new();
        encoder.comm(&mut out, Pid(4), Tid(5), b"true", true, id());
        encoder.fork(&mut out, &task, id());
        encoder.exit(&mut out, &task, id());
        encoder.mmap2(&mut out, misc::USER, &build, id());
        encoder.mmap2(&mut out, misc::USER, &inode, id());
        encoder.cgroup(&mut out, 42, b"/user.slice", id());
        let expected = [
            SideBand::Comm { pid: Pid(4), tid: Tid(5), name: b"true", exec: true },
            SideBand::Fork(task),
            SideBand::Exit(task),
            SideBand::Mmap(build),
            SideBand::Mmap(inode),
            SideBand::Cgroup { id: 42, path: b"/user.slice" },
        ];
        let mut rest = &out[..];
        for want in expected {
            let (record, tail) = RawRecord::split(rest).unwrap();
            assert_eq!(SideBand::parse(record).unwrap(), want);
            assert_eq!(layout.parse_id_trailer(record.body).unwrap(), id());
            assert_eq!(record.header.size_bytes % 8, 0);
            rest = tail;
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn namespaces_are_pairs_behind_their_number() {
        let (encoder, layout) = encoder();
        let mut out = Vec::new();
        encoder.namespaces(&mut out, Pid(4), Tid(5), &[(3, 7), (3, 8)], id());
        let (record, rest) = RawRecord::split(&out).unwrap();
        assert!(rest.is_empty());
        assert_eq!(record.header.kind, record_type::NAMESPACES);
        let words = |range: std::ops::Range<usize>| {
            let chunks = record.body[range].as_chunks::<8>().0;
            chunks.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()
        };
        assert_eq!(words(0..48), [5 << 32 | 4, 2, 3, 7, 3, 8]);
        assert_eq!(layout.parse_id_trailer(record.body).unwrap(), id());
    }

    #[test]
    fn paths_are_cut_not_overflowed() {
        let (encoder, _) = encoder();
        let path = vec![b'a'; 100_000];
        let map = Mmap {
            pid: Pid(1),
            tid: Tid(1),
            start: Avma(0),
            len_bytes: 1,
            page_offset: 0,
            file_id: MappedFileId::None,
            protection: 5,
            executable: true,
            flags: 0,
            path: &path,
        };
        let mut out = Vec::new();
        encoder.mmap2(&mut out, 0, &map, id());
        let (record, rest) = RawRecord::split(&out).unwrap();
        assert!(rest.is_empty());
        assert!(SideBand::parse(record).is_some());
    }
}
