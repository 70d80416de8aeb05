//! Each golden recording as this crate reads it: events, features, and all fields of all records.
//!
//! `WHIT_BLESS=1` writes `records.txt` beside each recording anew.

use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::Feature;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type, record_type_name};
use whit_perfdata::stream::{Stream, StreamReader};
use whit_perfdata::tracing_data::TracingData;
use whit_testing::golden::{Golden, Lines};

#[test]
fn every_field_of_every_record() {
    for golden in Golden::all() {
        let mut lines = Lines::default();
        match Recording::open(&golden.path) {
            Ok(recording) => write(&recording, &mut lines),
            Err(error) => lines.push(&format!("refused: {error}")),
        }
        golden.assert_kept("records.txt", &lines);
    }
}

fn write(recording: &Recording, lines: &mut Lines) {
    let Recording { form, size_bytes, is_cut, .. } = recording;
    lines.push(&format!("{form:?} of {size_bytes} bytes, cut: {is_cut}"));
    recording.warnings.iter().for_each(|warning| lines.push(&format!("warning: {warning}")));
    recording.events.iter().for_each(|event| lines.debug("event", event));
    lines.debug("packed", &recording.packed);
    write_features(recording, lines);
    let table = EventTable::new(&recording.events);
    for stream in &recording.streams {
        write_stream(stream, &table, lines);
    }
}

fn write_features(recording: &Recording, lines: &mut Lines) {
    let features = &recording.features;
    features.iter().for_each(|(feature, bytes)| {
        lines.push(&format!("{feature:?}, {} bytes: {:?}", bytes.len(), features.string(feature)));
    });
    lines.debug("CPUs", &features.nr_cpus());
    lines.debug("command line", &features.cmdline());
    lines.debug("event descriptions", &features.event_desc());
    lines.debug("groups", &features.group_desc());
    lines.debug("sockets", &features.sockets());
    lines.debug("time of samples", &features.sample_time());
    lines.debug("compressed", &features.compressed());
    lines.debug("clock", &features.clock_data());
    lines.debug("memory", &features.word(Feature::TOTAL_MEM));
    features.build_ids().iter().for_each(|entry| lines.debug("build id", entry));
    features.mapped_files().iter().for_each(|file| lines.debug("mapped file", file));
    lines.debug("recorded spans", &features.recorded_spans());
    lines.debug("ledger", &features.ledger());
    if let Some(section) = features.get(Feature::TRACING_DATA) {
        lines.debug("tracing data", &TracingData::parse(section));
    }
}

fn write_stream(stream: &Stream, table: &EventTable, lines: &mut Lines) {
    let mut reader = StreamReader::new(stream.clone());
    let mut block = Vec::new();
    loop {
        match reader.next_block(&mut block) {
            Ok(Some(info)) => lines.debug("block", &info),
            Ok(None) => break,
            Err(error) => {
                lines.push(&format!("error: {error}"));
                break;
            }
        }
        let mut rest = &block[..];
        while let Some((record, tail)) = RawRecord::split(rest) {
            write_record(record, table, lines);
            rest = tail;
        }
    }
    lines.debug("truncation", &reader.truncation());
    lines.debug("holes", &reader.holes());
    lines.debug("wrapping records", &reader.record_counts());
    lines.debug("consumed", &reader.consumed_bytes());
}

fn write_record(record: RawRecord<'_>, table: &EventTable, lines: &mut Lines) {
    let kind = record.header.kind;
    let name = record_type_name(kind).unwrap_or("?");
    if kind == record_type::SAMPLE {
        let event = table.event_of_sample(record.body);
        let sample = event.and_then(|event| table.layout(event)?.parse(record.body));
        return lines.debug(name, &(event, sample));
    }
    let id = (kind < record_type::USER_START).then(|| table.parse_id_trailer(record));
    let since = table.loss_since(record);
    match SideBand::parse(record) {
        Some(parsed) => lines.debug(name, &(parsed, id, since)),
        None => lines.debug(name, &(record.header, id, record.body)),
    }
}
