//! A dump: the switches of one thread, and the time that it has.

use std::path::Path;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::StreamReader;

pub(super) struct Dump {
    pub(super) bytes: u64,
    pub(super) covered_ns: u64,
    /// Times at which the thread left its CPU.
    pub(super) switches_ns: Vec<u64>,
}

/// `None` where it is no dump, or cannot be read.
pub(super) fn read(path: &Path, tid: i32) -> Option<Dump> {
    let recording = Recording::open(path).ok()?;
    let covered_ns = recording.features.dump_cause()?.covered_ns;
    let switches = recording.events.iter().position(|event| event.name == "context-switches")?;
    let table = EventTable::new(&recording.events);
    let mut switches_ns = Vec::new();
    for stream in &recording.streams {
        let (mut reader, mut block) = (StreamReader::new(stream.clone()), Vec::new());
        while reader.next_block(&mut block).ok()?.is_some() {
            let mut rest = &block[..];
            while let Some((record, behind)) = RawRecord::split(rest) {
                rest = behind;
                if record.header.kind == record_type::SAMPLE
                    && table.event_of_sample(record.body) == Some(switches)
                {
                    let sample = table.layout(switches)?.parse(record.body)?;
                    let is_of_thread = sample.pid_tid.is_some_and(|(_, of)| of.0 == tid);
                    switches_ns.extend(sample.time.filter(|_| is_of_thread).map(|time| time.0));
                }
            }
        }
    }
    Some(Dump { bytes: recording.size_bytes, covered_ns, switches_ns })
}
