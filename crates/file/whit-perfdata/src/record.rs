//! Records: the header that every record starts with, and the kernel's sideband records.
//!
//! Samples, by far the most frequent record, have a module of their own: [`crate::sample`].
//! Kernel source: `enum perf_event_type` in `include/uapi/linux/perf_event.h`; the types from 64
//! up are written by the recording tool: `tools/lib/perf/include/perf/event.h`.

use crate::budget::{self, BudgetRecord};
use crate::bytes::Cursor;
use crate::clocks::{self, ClockReading};
use crate::cpu_account::{self, CpuAccount};
use crate::interpreted::FunctionRecord;
use crate::ready_file;
use whit_types::{Avma, BuildId, Pid, Tid};

/// Size of `struct perf_event_header`.
pub const HEADER_SIZE_BYTES: usize = 8;

/// Numbers of record types, `PERF_RECORD_*`.
#[allow(missing_docs)]
pub mod record_type {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const UNTHROTTLE: u32 = 6;
    pub const FORK: u32 = 7;
    pub const READ: u32 = 8;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const AUX: u32 = 11;
    pub const ITRACE_START: u32 = 12;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const NAMESPACES: u32 = 16;
    pub const KSYMBOL: u32 = 17;
    pub const BPF_EVENT: u32 = 18;
    pub const CGROUP: u32 = 19;
    pub const TEXT_POKE: u32 = 20;
    pub const AUX_OUTPUT_HW_ID: u32 = 21;
    pub const CALLCHAIN_DEFERRED: u32 = 22;
    /// First type that the recording tool writes, not the kernel.
    pub const USER_START: u32 = 64;
    pub const HEADER_ATTR: u32 = 64;
    pub const HEADER_EVENT_TYPE: u32 = 65;
    pub const TRACING_DATA: u32 = 66;
    pub const BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const ID_INDEX: u32 = 69;
    pub const AUXTRACE_INFO: u32 = 70;
    pub const AUXTRACE: u32 = 71;
    pub const AUXTRACE_ERROR: u32 = 72;
    pub const THREAD_MAP: u32 = 73;
    pub const CPU_MAP: u32 = 74;
    pub const STAT_CONFIG: u32 = 75;
    pub const STAT: u32 = 76;
    pub const STAT_ROUND: u32 = 77;
    pub const EVENT_UPDATE: u32 = 78;
    pub const TIME_CONV: u32 = 79;
    pub const FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const FINISHED_INIT: u32 = 82;
    pub const COMPRESSED2: u32 = 83;
    pub const BPF_METADATA: u32 = 84;
}

/// The name of a record type as `perf report --stats` prints it; `None` for unknown types.
pub fn record_type_name(kind: u32) -> Option<&'static str> {
    const KERNEL: [&str; 23] = [
        "TOTAL",
        "MMAP",
        "LOST",
        "COMM",
        "EXIT",
        "THROTTLE",
        "UNTHROTTLE",
        "FORK",
        "READ",
        "SAMPLE",
        "MMAP2",
        "AUX",
        "ITRACE_START",
        "LOST_SAMPLES",
        "SWITCH",
        "SWITCH_CPU_WIDE",
        "NAMESPACES",
        "KSYMBOL",
        "BPF_EVENT",
        "CGROUP",
        "TEXT_POKE",
        "AUX_OUTPUT_HW_ID",
        "CALLCHAIN_DEFERRED",
    ];
    const USER: [&str; 21] = [
        "ATTR",
        "EVENT_TYPE",
        "TRACING_DATA",
        "BUILD_ID",
        "FINISHED_ROUND",
        "ID_INDEX",
        "AUXTRACE_INFO",
        "AUXTRACE",
        "AUXTRACE_ERROR",
        "THREAD_MAP",
        "CPU_MAP",
        "STAT_CONFIG",
        "STAT",
        "STAT_ROUND",
        "EVENT_UPDATE",
        "TIME_CONV",
        "FEATURE",
        "COMPRESSED",
        "FINISHED_INIT",
        "COMPRESSED2",
        "BPF_METADATA",
    ];
    match kind {
        0 => None,
        kind if (kind as usize) < KERNEL.len() => Some(KERNEL[kind as usize]),
        kind => USER.get(kind.checked_sub(record_type::USER_START)? as usize).copied(),
    }
}

/// Bits of `perf_event_header.misc`.
#[allow(missing_docs)]
pub mod misc {
    pub const CPUMODE_MASK: u16 = 7;
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    pub const HYPERVISOR: u16 = 3;
    pub const GUEST_KERNEL: u16 = 4;
    pub const GUEST_USER: u16 = 5;
    /// COMM: the name comes from an exec.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// FORK: made up for a process that already ran; its maps are not copies of its parent's.
    pub const FORK_EXEC: u16 = 1 << 13;
    /// MMAP: the last that was read of its process: reading `/proc/PID/maps` took too long.
    pub const PROC_MAP_TIMEOUT: u16 = 1 << 12;
    /// MMAP: a mapping without execute permission.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// SWITCH: the thread leaves the CPU.
    pub const SWITCH_OUT: u16 = 1 << 13;
    /// SWITCH: the thread was still runnable when it left.
    pub const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// MMAP2: build id instead of device and inode.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// Sample: the address is exact.
    pub const EXACT_IP: u16 = 1 << 14;
}

/// `struct perf_event_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Type, one of [`record_type`].
    pub kind: u32,
    /// Bits of [`misc`].
    pub misc: u16,
    /// Size of the record with this header.
    pub size_bytes: u16,
}

impl RecordHeader {
    /// From the first eight bytes; `None` where there are fewer.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<RecordHeader> {
        let word = u64::from_le_bytes(*bytes.first_chunk()?);
        Some(RecordHeader {
            kind: word as u32,
            misc: (word >> 32) as u16,
            size_bytes: (word >> 48) as u16,
        })
    }

    /// As written into a recording.
    pub fn to_bytes(self) -> [u8; HEADER_SIZE_BYTES] {
        let word =
            u64::from(self.kind) | u64::from(self.misc) << 32 | u64::from(self.size_bytes) << 48;
        word.to_le_bytes()
    }

    /// Which of kernel, user, guest the CPU was in.
    pub fn cpu_mode(self) -> u16 {
        self.misc & misc::CPUMODE_MASK
    }
}

/// The header of a TRACING_DATA record and the size of its payload.
const TRACING_DATA_HEAD_BYTES: u64 = HEADER_SIZE_BYTES as u64 + 4;

/// One whole record: its header and the bytes after the header.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'a> {
    /// Type, misc bits and size, in host order.
    pub header: RecordHeader,
    /// Everything after the header, sample id trailer included.
    pub body: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Whether it states settings by which a budget is kept, and is a LOST_SAMPLES record of no loss.
    #[inline]
    pub fn is_budget(&self) -> bool {
        self.header.kind == record_type::LOST_SAMPLES && budget::is_marked(self.body)
    }

    /// Whether it states clocks, and is a LOST_SAMPLES record of no loss.
    #[inline]
    pub fn is_clocks(&self) -> bool {
        self.header.kind == record_type::LOST_SAMPLES && clocks::is_marked(self.body)
    }

    /// Whether it states something about a switch, and is a BPF_EVENT record of a type that the kernel has not.
    #[inline]
    pub fn is_about_switch(&self) -> bool {
        let is_ours = || cpu_account::is_account(self.body) || ready_file::is_ready_file(self.body);
        self.header.kind == record_type::BPF_EVENT && is_ours()
    }

    /// Whether it is a LOST_SAMPLES record that states something else than a loss.
    #[inline]
    pub fn states_no_loss(&self) -> bool {
        self.is_budget() || self.is_clocks()
    }

    /// The bytes that follow the record and are not counted in its size; `None` where it is too short
    /// to say. The `body` may be cut behind its first word.
    ///
    /// The payload of TRACING_DATA follows perf's record and is inside simpleperf's.
    pub fn bytes_behind(header: RecordHeader, body: &[u8]) -> Option<u64> {
        let mut c = Cursor::new(body);
        match header.kind {
            record_type::AUXTRACE => c.u64(),
            record_type::TRACING_DATA => {
                let payload = u64::from(c.u32()?);
                let inside = u64::from(header.size_bytes) >= TRACING_DATA_HEAD_BYTES + payload;
                Some(if inside { 0 } else { payload })
            }
            _ => Some(0),
        }
    }

    /// Splits the first record off `bytes`. `None` where `bytes` does not hold a whole record or
    /// its size is impossible (below the header's).
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Option<(RawRecord<'a>, &'a [u8])> {
        let header = RecordHeader::parse(bytes)?;
        let (record, rest) = bytes.split_at_checked(header.size_bytes as usize)?;
        Some((RawRecord { header, body: record.get(HEADER_SIZE_BYTES..)? }, rest))
    }
}

/// Identity of the file behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedFileId {
    /// Neither (an old `MMAP` record).
    None,
    /// Device and inode.
    Inode {
        /// Major device number.
        major: u32,
        /// Minor device number.
        minor: u32,
        /// The file's number on the device.
        inode: u64,
        /// Inode generation.
        generation: u64,
    },
    /// The build id in the binary; the kernel read it.
    BuildId(BuildId),
}

/// A mapping: MMAP or MMAP2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// Process; -1 for the kernel.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// First address.
    pub start: Avma,
    /// Length.
    pub len_bytes: u64,
    /// Offset into the file (an address for the kernel).
    pub page_offset: u64,
    /// Identity of the file.
    pub file_id: MappedFileId,
    /// `PROT_*`; that of executable code for MMAP records without [`misc::MMAP_DATA`]. Some recorders leave it 0.
    pub protection: u32,
    /// Code may run there: the protection says so, or the record lacks [`misc::MMAP_DATA`].
    pub executable: bool,
    /// `MAP_*`.
    pub flags: u32,
    /// Path, or a name in brackets.
    pub path: &'a [u8],
}

/// Bit of the protection: code may run there.
pub const PROT_EXEC: u32 = 4;

/// Fork or exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Process.
    pub pid: Pid,
    /// Its parent process.
    pub parent_pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// The thread that made it.
    pub parent_tid: Tid,
    /// The kernel's own clock at that moment.
    pub time: u64,
}

/// A sideband record that whit understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideBand<'a> {
    /// MMAP, MMAP2.
    Mmap(Mmap<'a>),
    /// A thread gets a command name.
    Comm {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// At most 15 bytes and a zero from the kernel.
        name: &'a [u8],
        /// True where an exec set it.
        exec: bool,
    },
    /// A process or thread starts.
    Fork(Task),
    /// A process or thread ends.
    Exit(Task),
    /// The ring was full: records of any type were dropped before this one.
    Lost {
        /// Event id.
        id: u64,
        /// Number of records.
        lost: u64,
    },
    /// Samples that an event lost until it was read.
    LostSamples {
        /// Number of samples.
        lost: u64,
    },
    /// Settings by which the recorder kept its cost within a budget; the record is one of lost samples.
    Budget(BudgetRecord),
    /// Clocks at one moment; the record is one of lost samples.
    Clocks(ClockReading),
    /// The time that a CPU spent besides a thread; the record is one of a BPF program.
    CpuAccount(CpuAccount),
    /// The description of the first ready file of an epoll call, as its thread comes; the record is one of a BPF program.
    ReadyFile(&'a [u8]),
    /// SWITCH and SWITCH_CPU_WIDE.
    Switch {
        /// True where the thread leaves the CPU.
        out: bool,
        /// True where it was still runnable.
        preempt: bool,
        /// The other thread, with SWITCH_CPU_WIDE.
        other: Option<(Pid, Tid)>,
    },
    /// Code of the kernel appears or goes: BPF programs, trampolines.
    Ksymbol {
        /// Kernel address of the code.
        start: Avma,
        /// Length.
        len_bytes: u32,
        /// 1 BPF, 2 out of line.
        kind: u16,
        /// Bit 0: removed.
        flags: u16,
        /// As in `/proc/kallsyms`: `bpf_prog_…`.
        name: &'a [u8],
    },
    /// A cgroup, when it is created or first recorded.
    Cgroup {
        /// The number that samples name it by.
        id: u64,
        /// From the root of its hierarchy: `/system.slice/…`.
        path: &'a [u8],
    },
    /// A function of an interpreter, which frames are of.
    Function(FunctionRecord<'a>),
    /// A BPF program appears or goes; KSYMBOL records have its code.
    BpfProgram,
}

impl<'a> SideBand<'a> {
    /// True for the types that [`SideBand::parse`] decodes.
    pub fn is_decoded(kind: u32) -> bool {
        matches!(
            kind,
            record_type::MMAP
                | record_type::LOST
                | record_type::COMM
                | record_type::EXIT
                | record_type::FORK
                | record_type::MMAP2
                | record_type::LOST_SAMPLES
                | record_type::SWITCH
                | record_type::SWITCH_CPU_WIDE
                | record_type::KSYMBOL
                | record_type::BPF_EVENT
                | record_type::CGROUP
        )
    }

    /// Decodes a record; `None` for types that are not in [`SideBand`] and for bodies that are
    /// too short.
    pub fn parse(record: RawRecord<'a>) -> Option<SideBand<'a>> {
        let mut c = Cursor::new(record.body);
        let bits = record.header.misc;
        Some(match record.header.kind {
            record_type::MMAP => SideBand::Mmap(parse_mmap(c, bits)?),
            record_type::MMAP2 => SideBand::Mmap(parse_mmap2(c, bits)?),
            record_type::COMM => SideBand::Comm {
                pid: Pid(c.i32()?),
                tid: Tid(c.i32()?),
                name: c.c_str(),
                exec: bits & misc::COMM_EXEC != 0,
            },
            record_type::FORK => SideBand::Fork(parse_task(c)?),
            record_type::EXIT => SideBand::Exit(parse_task(c)?),
            record_type::LOST => SideBand::Lost { id: c.u64()?, lost: c.u64()? },
            record_type::LOST_SAMPLES => match BudgetRecord::parse(record.body) {
                Some(budget) => SideBand::Budget(budget),
                None => match ClockReading::parse(record.body) {
                    Some(clocks) => SideBand::Clocks(clocks),
                    None => SideBand::LostSamples { lost: c.u64()? },
                },
            },
            record_type::SWITCH => parse_switch(bits, None),
            record_type::SWITCH_CPU_WIDE => {
                parse_switch(bits, Some((Pid(c.i32()?), Tid(c.i32()?))))
            }
            record_type::KSYMBOL => SideBand::Ksymbol {
                start: Avma(c.u64()?),
                len_bytes: c.u32()?,
                kind: c.u16()?,
                flags: c.u16()?,
                name: c.c_str(),
            },
            record_type::BPF_EVENT => {
                let function = || FunctionRecord::parse(record.body).map(SideBand::Function);
                let account = CpuAccount::parse(record.body).map(SideBand::CpuAccount);
                let ready = || ready_file::parse(record.body).map(SideBand::ReadyFile);
                account.or_else(ready).or_else(function).unwrap_or(SideBand::BpfProgram)
            }
            record_type::CGROUP => SideBand::Cgroup { id: c.u64()?, path: c.c_str() },
            _ => return None,
        })
    }
}

fn parse_switch(bits: u16, other: Option<(Pid, Tid)>) -> SideBand<'static> {
    SideBand::Switch {
        out: bits & misc::SWITCH_OUT != 0,
        preempt: bits & misc::SWITCH_OUT_PREEMPT != 0,
        other,
    }
}

fn parse_task(mut c: Cursor<'_>) -> Option<Task> {
    Some(Task {
        pid: Pid(c.i32()?),
        parent_pid: Pid(c.i32()?),
        tid: Tid(c.i32()?),
        parent_tid: Tid(c.i32()?),
        time: c.u64()?,
    })
}

fn parse_mmap(mut c: Cursor<'_>, bits: u16) -> Option<Mmap<'_>> {
    let executable = bits & misc::MMAP_DATA == 0;
    Some(Mmap {
        pid: Pid(c.i32()?),
        tid: Tid(c.i32()?),
        start: Avma(c.u64()?),
        len_bytes: c.u64()?,
        page_offset: c.u64()?,
        file_id: MappedFileId::None,
        protection: if executable { PROT_EXEC } else { 0 },
        executable,
        flags: 0,
        path: c.c_str(),
    })
}

fn parse_mmap2(mut c: Cursor<'_>, bits: u16) -> Option<Mmap<'_>> {
    let (pid, tid) = (Pid(c.i32()?), Tid(c.i32()?));
    let (start, len_bytes, page_offset) = (Avma(c.u64()?), c.u64()?, c.u64()?);
    let file_id = if bits & misc::MMAP_BUILD_ID != 0 {
        let field = c.take(24)?;
        let id = field.get(4..4 + usize::from(field[0]).min(BuildId::MAX_SIZE_BYTES))?;
        BuildId::new(id).map_or(MappedFileId::None, MappedFileId::BuildId)
    } else {
        MappedFileId::Inode {
            major: c.u32()?,
            minor: c.u32()?,
            inode: c.u64()?,
            generation: c.u64()?,
        }
    };
    let protection = c.u32()?;
    Some(Mmap {
        pid,
        tid,
        start,
        len_bytes,
        page_offset,
        file_id,
        protection,
        executable: protection & PROT_EXEC != 0 || bits & misc::MMAP_DATA == 0,
        flags: c.u32()?,
        path: c.c_str(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_at_their_numbers() {
        assert_eq!(record_type_name(record_type::SAMPLE), Some("SAMPLE"));
        assert_eq!(record_type_name(record_type::CALLCHAIN_DEFERRED), Some("CALLCHAIN_DEFERRED"));
        assert_eq!(record_type_name(record_type::FINISHED_ROUND), Some("FINISHED_ROUND"));
        assert_eq!(record_type_name(record_type::COMPRESSED2), Some("COMPRESSED2"));
        for unknown in [0, 23, 63, 85, u32::MAX] {
            assert_eq!(record_type_name(unknown), None);
        }
    }

    #[test]
    fn a_mapping_is_code_unless_both_its_protection_and_its_header_deny_it() {
        let body: Vec<u8> = [7u64 << 32 | 7, 0x1000, 0x1000, 0, 0, 0, 0]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        let executable = |kind, misc, protection: u32| {
            let mut body = body.clone();
            body.extend(protection.to_le_bytes());
            body.extend([0; 12]);
            let header = RecordHeader { kind, misc, size_bytes: 8 + body.len() as u16 };
            match SideBand::parse(RawRecord { header, body: &body }) {
                Some(SideBand::Mmap(map)) => map.executable,
                other => panic!("{other:?}"),
            }
        };
        assert!(executable(record_type::MMAP2, misc::USER, 0));
        assert!(executable(record_type::MMAP2, misc::USER | misc::MMAP_DATA, PROT_EXEC));
        assert!(!executable(record_type::MMAP2, misc::USER | misc::MMAP_DATA, 0));
        assert!(executable(record_type::MMAP, misc::USER, 0));
        assert!(!executable(record_type::MMAP, misc::USER | misc::MMAP_DATA, 0));
    }

    #[test]
    fn the_formats_of_tracepoints_follow_their_record_or_are_inside() {
        let behind = |size_bytes, payload: u32| {
            let header = RecordHeader { kind: record_type::TRACING_DATA, misc: 0, size_bytes };
            RawRecord::bytes_behind(header, &payload.to_le_bytes())
        };
        assert_eq!(behind(12, 64), Some(64));
        assert_eq!(behind(75, 64), Some(64));
        assert_eq!(behind(76, 64), Some(0));
        assert_eq!(behind(80, 64), Some(0));
        let header = RecordHeader { kind: record_type::TRACING_DATA, misc: 0, size_bytes: 8 };
        assert_eq!(RawRecord::bytes_behind(header, &[]), None);
    }

    #[test]
    fn records_with_an_impossible_size_are_refused() {
        for size in [0u16, 7, 9] {
            let header = RecordHeader { kind: 9, misc: 0, size_bytes: size }.to_bytes();
            assert!(RawRecord::split(&header).is_none(), "size {size}");
        }
    }
}
