//! Reads the records that make tasks, in order of time.

use super::memory::MappedRange;
use crate::blocks::stated_time::stated_time;
use crate::reading::Reading;
use crate::warning::Warning;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::sync::Arc;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::{MappedFileId, Mmap, RawRecord, SideBand, Task, misc, record_type};
use whit_perfdata::stream::StreamReader;
use whit_types::{Pid, Tid, TimestampNs};

/// Beginnings of the names of memory that no file is behind.
const ANONYMOUS: [&str; 5] = ["//anon", "/dev/zero", "/anon_hugepage", "[heap]", "/SYSV"];

/// A change of the tasks.
pub(super) enum Change {
    Comm { pid: Pid, tid: Tid, name: Arc<str> },
    Fork { task: Task, copies_maps: bool },
    Map { pid: Pid, tid: Tid, range: MappedRange },
}

pub(super) struct TimedChange {
    time: TimestampNs,
    pub(super) change: Change,
}

/// The records of a recording that make tasks.
#[derive(Default)]
pub(super) struct Read {
    /// In order of time.
    pub(super) changes: Vec<TimedChange>,
    /// Threads that have samples.
    pub(super) sampled: BTreeSet<(Pid, Tid)>,
    pub(super) warnings: Vec<Warning>,
}

/// Reads all streams, one behind the other.
pub(super) fn read(reading: Reading<'_>) -> Read {
    let (recording, progress) = (reading.recording, reading.progress(1));
    let events = Arc::new(EventTable::new(&recording.events));
    let mut read = Read::default();
    read.warnings.extend(recording.warnings.iter().cloned().map(Warning::Recording));
    let mut paths = FxHashSet::default();
    let mut sampled = FxHashSet::default();
    for stream in &recording.streams {
        let mut reader = StreamReader::without_dumps(stream, &events, reading.threads());
        let (mut block, mut consumed) = (Vec::new(), 0);
        let mut last = TimestampNs(0);
        loop {
            match reader.next_block(&mut block) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    read.warnings.push(Warning::Stream(Arc::new(error)));
                    break;
                }
            }
            let mut rest = &block[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                rest = tail;
                if record.header.kind == record_type::SAMPLE {
                    sampled.extend(thread_of(&events, record));
                } else if let Some(change) = change(events.own(record), &mut paths) {
                    last = stated_time(&events, record).unwrap_or(last);
                    read.changes.push(TimedChange { time: last, change });
                }
            }
            progress.advance(reader.consumed_bytes() - consumed);
            consumed = reader.consumed_bytes();
        }
        if reader.truncation().is_some() {
            let path = stream.path().to_owned();
            read.warnings.push(Warning::StreamCut { path, missing: None });
        }
    }
    // Stable: records of one moment stay in the order in which they were recorded.
    read.changes.sort_by_key(|change| change.time);
    read.sampled.extend(sampled);
    read
}

fn thread_of(events: &EventTable, record: RawRecord<'_>) -> Option<(Pid, Tid)> {
    let layout = events.layout(events.event_of_sample(record.body)?)?;
    let (pid, tid) = layout.parse(record.body)?.pid_tid?;
    (pid.0 >= 0 && tid.0 >= 0).then_some((pid, tid))
}

fn change(record: RawRecord<'_>, paths: &mut FxHashSet<Arc<str>>) -> Option<Change> {
    let kind = record.header.kind;
    let is_wanted = matches!(
        kind,
        record_type::COMM | record_type::FORK | record_type::MMAP | record_type::MMAP2
    );
    if !is_wanted {
        return None;
    }
    let change = match SideBand::parse(record)? {
        SideBand::Comm { pid, tid, name, .. } => {
            Change::Comm { pid, tid, name: known(&String::from_utf8_lossy(name), paths) }
        }
        SideBand::Fork(task) => {
            Change::Fork { task, copies_maps: record.header.misc & misc::FORK_EXEC == 0 }
        }
        SideBand::Mmap(map) if map.pid.0 >= 0 && record.header.cpu_mode() != misc::KERNEL => {
            Change::Map { pid: map.pid, tid: map.tid, range: range(&map, paths) }
        }
        _ => return None,
    };
    Some(change)
}

fn range(map: &Mmap<'_>, paths: &mut FxHashSet<Arc<str>>) -> MappedRange {
    let path = String::from_utf8_lossy(map.path);
    let is_anonymous =
        ANONYMOUS.iter().any(|start| path.starts_with(start)) || path.starts_with("[stack");
    // Code of a JIT compiler, which names it there.
    let perf_map = format!("/tmp/perf-{}.map", map.pid.0);
    let is_jitted = is_anonymous && map.executable;
    MappedRange {
        start: map.start.0,
        end: map.start.0.saturating_add(map.len_bytes),
        protection: map.protection,
        flags: map.flags,
        file_offset: map.page_offset,
        inode: match map.file_id {
            MappedFileId::Inode { inode, .. } => inode,
            _ => 0,
        },
        path: known(if is_jitted { &perf_map } else { &path }, paths),
    }
}

/// One copy of each text.
fn known(text: &str, texts: &mut FxHashSet<Arc<str>>) -> Arc<str> {
    if let Some(known) = texts.get(text) {
        return known.clone();
    }
    let text: Arc<str> = text.into();
    texts.insert(text.clone());
    text
}
