//! The text of records that are no samples, as `perf script --show-mmap-events` and the like print them.

use std::io::Write as _;

use whit_perfdata::record::{
    MappedFileId, Mmap, RawRecord, SideBand, Task, misc, record_type, record_type_name,
};
use whit_types::OutsideText;

/// `PROT_READ`, `PROT_WRITE`, `PROT_EXEC`.
const PROTECTIONS: [(u32, u8); 3] = [(1, b'r'), (2, b'w'), (4, b'x')];
/// Flag of mappings that processes share.
const MAP_SHARED: u32 = 1;
/// The kernel's namespaces, in the order of records.
const NAMESPACES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];
/// Namespaces in one line.
const NAMESPACES_PER_LINE: usize = 4;

/// Appends `PERF_RECORD_` with the type and the contents of the record, and the line end.
pub(super) fn append_record(out: &mut Vec<u8>, record: RawRecord<'_>) {
    let kind = record.header.kind;
    out.extend_from_slice(b"PERF_RECORD_");
    out.extend_from_slice(record_type_name(kind).unwrap_or("UNKNOWN").as_bytes());
    let done = match kind {
        record_type::NAMESPACES => append_namespaces(out, record.body),
        record_type::BPF_EVENT => append_bpf(out, record.body),
        _ => SideBand::parse(record).is_some_and(|record_is| {
            append_side_band(out, record, record_is);
            true
        }),
    };
    if !done {
        out.push(b'\n');
    }
}

fn append_side_band(out: &mut Vec<u8>, record: RawRecord<'_>, what: SideBand<'_>) {
    // Writing to a Vec cannot fail.
    let _ = match what {
        SideBand::Mmap(map) => return append_mmap(out, record, &map),
        SideBand::Comm { pid, tid, name, exec } => {
            out.extend_from_slice(if exec { b" exec: " } else { b": " });
            append_bytes(out, name);
            writeln!(out, ":{}/{}", pid.0, tid.0)
        }
        SideBand::Fork(Task { pid, tid, parent_pid, parent_tid, .. })
        | SideBand::Exit(Task { pid, tid, parent_pid, parent_tid, .. }) => {
            writeln!(out, "({}:{}):({}:{})", pid.0, tid.0, parent_pid.0, parent_tid.0)
        }
        SideBand::Lost { lost, .. } => writeln!(out, " lost {lost}"),
        // perf prints nothing of them but the type; BPF_EVENT records have their own way.
        SideBand::LostSamples { .. }
        | SideBand::Budget(_)
        | SideBand::Clocks(_)
        | SideBand::Function(_)
        | SideBand::CpuAccount(_)
        | SideBand::ReadyFile(_)
        | SideBand::BpfProgram => writeln!(out),
        SideBand::Switch { out: leaves, preempt, other } => {
            let text = match (leaves, preempt) {
                (false, _) => "IN         ",
                (true, false) => "OUT        ",
                (true, true) => "OUT preempt",
            };
            let which = if leaves { "next" } else { "prev" };
            match other {
                None => writeln!(out, " {text}"),
                Some((pid, tid)) => {
                    writeln!(out, " {text}  {which} pid/tid: {:>5}/{:<5}", pid.0, tid.0)
                }
            }
        }
        SideBand::Ksymbol { start, len_bytes, kind, flags, name } => {
            let _ = write!(
                out,
                " addr {:x} len {len_bytes} type {kind} flags 0x{flags:x} name ",
                start.0
            );
            append_bytes(out, name);
            writeln!(out)
        }
        SideBand::Cgroup { id, path } => {
            let _ = write!(out, " cgroup: {id} ");
            append_bytes(out, path);
            writeln!(out)
        }
    };
}

/// Names are those of others: control characters are escaped.
fn append_bytes(out: &mut Vec<u8>, name: &[u8]) {
    OutsideText::new(&*String::from_utf8_lossy(name)).append_to(out);
}

/// C's `%#x`: zero has no prefix.
fn alternate_hex(value: u64) -> String {
    if value == 0 { "0".to_owned() } else { format!("{value:#x}") }
}

fn append_mmap(out: &mut Vec<u8>, record: RawRecord<'_>, map: &Mmap<'_>) {
    let [start, len, offset] = [map.start.0, map.len_bytes, map.page_offset].map(alternate_hex);
    // Writing to a Vec cannot fail.
    let _ = write!(out, " {}/{}: [{start}({len}) @ {offset}", map.pid.0, map.tid.0);
    let _ = match map.file_id {
        MappedFileId::Inode { major, minor, inode, generation } => {
            write!(out, " {major:02x}:{minor:02x} {inode} {generation}")
        }
        MappedFileId::BuildId(id) => write!(out, " <{id}>"),
        MappedFileId::None if record.header.kind == record_type::MMAP2 => write!(out, " <>"),
        MappedFileId::None => Ok(()),
    };
    out.extend_from_slice(b"]: ");
    if record.header.kind == record_type::MMAP {
        out.push(if record.header.misc & misc::MMAP_DATA != 0 { b'r' } else { b'x' });
    } else {
        for (bit, letter) in PROTECTIONS {
            out.push(if map.protection & bit != 0 { letter } else { b'-' });
        }
        out.push(if map.flags & MAP_SHARED != 0 { b's' } else { b'p' });
    }
    out.push(b' ');
    append_bytes(out, map.path);
    out.push(b'\n');
}

fn word(body: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?))
}

fn half_word(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?))
}

/// False where the record is too short; what fits is printed.
fn append_namespaces(out: &mut Vec<u8>, body: &[u8]) -> bool {
    let (Some(pid), Some(tid), Some(count)) =
        (half_word(body, 0), half_word(body, 4), word(body, 8))
    else {
        return false;
    };
    let fitting = (body.len() - 16) / 16;
    let count = usize::try_from(count).map_or(fitting, |count| count.min(fitting));
    // Writing to a Vec cannot fail.
    let _ = write!(out, " {}/{} - nr_namespaces: {count}\n\t\t[", pid as i32, tid as i32);
    for index in 0..count {
        if index > 0 && index % NAMESPACES_PER_LINE == 0 {
            out.extend_from_slice(b"\n\t\t ");
        }
        let name = NAMESPACES.get(index).copied().unwrap_or("unknown");
        let (device, inode) = (word(body, 16 + index * 16), word(body, 24 + index * 16));
        let inode = alternate_hex(inode.unwrap_or(0));
        let end = if index + 1 == count { "]\n" } else { ", " };
        let _ = write!(out, "{index}/{name}: {}/{inode}{end}", device.unwrap_or(0));
    }
    count > 0
}

/// False where the record is too short.
fn append_bpf(out: &mut Vec<u8>, body: &[u8]) -> bool {
    let (Some(kinds), Some(id)) = (half_word(body, 0), half_word(body, 4)) else { return false };
    // Writing to a Vec cannot fail.
    let _ = writeln!(out, " type {}, flags {}, id {id}", kinds & 0xffff, kinds >> 16);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::record::RecordHeader;

    fn text(kind: u32, misc: u16, body: &[u8]) -> String {
        let header = RecordHeader { kind, misc, size_bytes: 0 };
        let mut out = Vec::new();
        append_record(&mut out, RawRecord { header, body });
        String::from_utf8(out).unwrap()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn short_records_have_their_type_alone() {
        for kind in [record_type::NAMESPACES, record_type::BPF_EVENT, record_type::MMAP2] {
            let expected = format!("PERF_RECORD_{}\n", record_type_name(kind).unwrap());
            assert_eq!(text(kind, 0, &[1, 2, 3]), expected);
        }
    }

    #[test]
    fn namespaces_are_four_in_a_line_and_never_beyond_the_record() {
        let mut body = words(&[9 << 32 | 7, u64::MAX]);
        (0..5).for_each(|index| body.extend(words(&[4, index])));
        assert_eq!(
            text(record_type::NAMESPACES, 0, &body),
            "PERF_RECORD_NAMESPACES 7/9 - nr_namespaces: 5\n\
             \t\t[0/net: 4/0, 1/uts: 4/0x1, 2/ipc: 4/0x2, 3/pid: 4/0x3, \n\t\t 4/user: 4/0x4]\n"
        );
    }

    #[test]
    fn names_cannot_make_lines() {
        let mut body = words(&[9 << 32 | 7]);
        body.extend(b"a\nb\0");
        assert_eq!(
            text(record_type::COMM, misc::COMM_EXEC, &body),
            "PERF_RECORD_COMM exec: a\\x0ab:7/9\n"
        );
    }
}
