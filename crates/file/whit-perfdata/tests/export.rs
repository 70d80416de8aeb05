//! Golden recordings written again: the same events, features and records, which other readers take.

use std::io::{Cursor, Seek, Write};
use std::path::Path;

use whit_perfdata::attr::Attr;
use whit_perfdata::encode::push_record;
use whit_perfdata::export::{self, ExportError, Exported};
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::reader::{Form, Recording};
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::{Stream, StreamReader};
use whit_perfdata::writer::FileWriter;
use whit_testing::golden::Golden;

fn open(bytes: &[u8]) -> Recording {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    Recording::from_file(Path::new("exported.data"), file).unwrap()
}

/// The records up to the first damage, as they are read: neither packed nor compressed.
fn records(stream: &Stream) -> Vec<u8> {
    let (mut reader, mut all, mut block) =
        (StreamReader::new(stream.clone()), Vec::new(), Vec::new());
    while let Ok(Some(_)) = reader.next_block(&mut block) {
        all.extend_from_slice(&block);
    }
    all
}

/// Data that stand beside records.
fn has_aux_data(stream: &Stream) -> bool {
    let (mut reader, mut block) = (StreamReader::new(stream.clone()), Vec::new());
    while let Ok(Some(_)) = reader.next_block(&mut block) {}
    reader.record_counts().auxtrace > 0
}

fn kinds(mut bytes: &[u8]) -> Vec<u32> {
    let mut kinds = Vec::new();
    while let Some((record, rest)) = RawRecord::split(bytes) {
        kinds.push(record.header.kind);
        bytes = rest;
    }
    kinds
}

#[test]
fn golden_recordings_are_the_same_in_plain_form() {
    let describing = [
        record_type::HEADER_ATTR,
        record_type::HEADER_EVENT_TYPE,
        record_type::EVENT_UPDATE,
        record_type::FEATURE,
    ];
    for golden in Golden::all() {
        let Ok(recording) = Recording::open(&golden.path) else { continue };
        let (mut out, mut read) = (Cursor::new(Vec::new()), 0);
        let first = &recording.streams[0];
        let exported = export::write_first(&recording, &mut out, &mut |bytes| read += bytes);
        if has_aux_data(first) {
            assert!(matches!(exported, Err(ExportError::Aux)), "{golden:?}");
            continue;
        }
        let exported = exported.unwrap();
        let wanted = records(first);
        let Exported { records: count, bytes, broken } = exported;
        assert_eq!(
            (count, bytes),
            (kinds(&wanted).len() as u64, wanted.len() as u64),
            "{golden:?}"
        );
        assert!(read <= first.size_bytes() && (wanted.is_empty() || read > 0), "{golden:?}");
        assert!(broken.is_none() || wanted.len() as u64 == bytes);
        let plain = open(out.get_ref());
        assert_eq!(plain.events, recording.events, "{golden:?}");
        let written = records(&plain.streams[0]);
        if recording.form == Form::Pipe {
            let kept = kinds(&wanted).into_iter().filter(|kind| !describing.contains(kind));
            assert_eq!(kinds(&written), kept.collect::<Vec<_>>(), "{golden:?}");
        } else {
            assert!(written == wanted, "{golden:?}");
        }
        for (feature, content) in recording.features.iter() {
            let kept = plain.features.get(feature);
            match feature {
                Feature::COMPRESSED => assert_eq!(kept, None),
                // Names and ids are those of the header.
                Feature::EVENT_DESC => assert!(kept.is_some()),
                _ => assert_eq!(kept, Some(content), "{golden:?} {feature:?}"),
            }
        }
        let is_directory = plain.features.word(Feature::DIR_FORMAT).is_some();
        assert_eq!(is_directory, recording.form == Form::Directory, "{golden:?}");
        for stream in &recording.streams[1..] {
            let mut part = Vec::new();
            let exported = export::write_part(stream, &mut part, &mut |_| ()).unwrap();
            assert!(part == records(stream), "{golden:?}");
            assert_eq!(exported.bytes, part.len() as u64);
        }
    }
}

#[test]
fn exports_that_would_lose_records_are_refused() {
    let write = |kind: u32| {
        let mut records = Vec::new();
        // Eight bytes of payload follow the record.
        push_record(&mut records, kind, 0, &[&8_u64.to_le_bytes()[..], &[0; 32]].concat());
        records.extend([1; 8]);
        push_record(&mut records, record_type::FINISHED_INIT, 0, &[]);
        let event = EventDesc { attr: Attr::default(), ids: vec![1], name: "event".into() };
        let mut file = FileWriter::create(Cursor::new(Vec::new()), &[event]).unwrap();
        file.append(&records).unwrap();
        let recording = open(file.finish(&Features::default()).unwrap().get_ref());
        export::write_first(&recording, Cursor::new(Vec::new()), &mut |_| ())
    };
    let refused = write(record_type::AUXTRACE).unwrap_err();
    assert!(matches!(refused, ExportError::Aux), "{refused}");
    assert!(refused.to_string().contains("AUX area data"));
}
