//! Recordings of any bytes: the target asks for all data that the reader gives. Blocks read again
//! are the same, and unread parts are reported.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use whit_fuzz::{fuzz_target, with_file};
use whit_perfdata::deferred::DeferredChain;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::{Feature, Features};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_perfdata::sample::Sample;
use whit_perfdata::stream::{Block, BlockReader, MAX_INFLATED_BLOCK_BYTES, Stream, StreamReader};

/// Limit of the size of decoded records, so that an input takes no seconds.
const MAX_DECODED_BYTES: u64 = 64 << 20;

fn ask_features(features: &Features) {
    for (feature, _) in features.iter() {
        let _ = (features.string(feature), features.word(feature));
    }
    let _ = (features.nr_cpus(), features.cmdline(), features.event_desc());
    let _ = (features.group_desc(), features.sample_time(), features.clock_data());
    let _ = (features.build_ids(), features.ledger(), features.mapped_files());
    assert!(features.get(Feature(0)).is_none_or(|bytes| bytes.len() <= 128 << 20));
}

fn ask_sample(sample: &Sample<'_>) {
    assert!(sample.deferred_cookie().is_none() || sample.callchain.len() > 1);
    let chain: u64 = sample.callchain.iter().fold(0, u64::wrapping_add);
    let branches = sample.branch_stack.iter().map(|entry| entry.from.0 ^ entry.to.0);
    let branches = branches.fold(chain, u64::wrapping_add);
    assert_eq!(sample.branch_stack.iter().count(), sample.branch_stack.len());
    if let Some(regs) = sample.user_regs {
        let by_index = (0..64).filter_map(|index| regs.get(index));
        let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(branches, u64::wrapping_add);
        assert_eq!(sum(&mut by_index.into_iter()), sum(&mut regs.values()));
    }
    assert!(sample.user_stack.len() + sample.raw.map_or(0, <[u8]>::len) < 1 << 16);
}

fn ask_records(block: &[u8], events: &EventTable) {
    let mut rest = block;
    while let Some((record, tail)) = RawRecord::split(rest) {
        let parsed = SideBand::parse(record);
        assert!(parsed.is_none() || SideBand::is_decoded(record.header.kind));
        let _ = events.parse_id_trailer(record);
        let deferred = DeferredChain::parse(record.body);
        assert!(deferred.is_none_or(|chain| chain.addresses.len() <= record.body.len() / 8));
        if record.header.kind == record_type::SAMPLE
            && let Some(layout) =
                events.event_of_sample(record.body).and_then(|event| events.layout(event))
            && let Some(sample) = layout.parse(record.body)
        {
            assert_eq!(sample.time, layout.sample_time(record.body));
            ask_sample(&sample);
        }
        rest = tail;
    }
    assert!(rest.is_empty(), "a block ends in the middle of a record");
}

/// The same samples, whichever part of their dumps was read at once.
fn compare_dumps(block: &[u8], again: &Block, events: &EventTable) {
    let (mut rest, mut bytes) = (block, Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        let at = block.len() - rest.len();
        let (other, _) = RawRecord::split(&again[at..]).expect("the same record");
        assert_eq!(other.header, record.header);
        let layout = events.event_of_sample(record.body).and_then(|event| events.layout(event));
        let is_sample = record.header.kind == record_type::SAMPLE;
        let whole = layout.filter(|_| is_sample).and_then(|layout| layout.parse(record.body));
        match whole {
            Some(whole) => {
                let parsed = layout.and_then(|layout| layout.parse(other.body));
                let mut sample = parsed.expect("the same sample");
                again.complete(&mut sample);
                if let Some(rest) = sample.user_stack_rest.take() {
                    assert!(rest.read(usize::MAX, &mut bytes), "a dump that was read before");
                    assert!(whole.user_stack.starts_with(sample.user_stack));
                    assert!(whole.user_stack == bytes);
                    sample.user_stack = whole.user_stack;
                }
                assert_eq!(sample, whole);
            }
            None => assert_eq!(other.body, record.body),
        }
        rest = tail;
    }
}

fn read(stream: &Stream, events: &Arc<EventTable>) {
    let mut reader = StreamReader::new(stream.clone());
    let mut parallel = StreamReader::with_threads(stream.clone(), 3);
    let mut own = BlockReader::default();
    let (mut block, mut again, mut other) = (Vec::new(), Vec::new(), Block::default());
    let mut without = StreamReader::without_dumps(stream, events, 3);
    let leaving_out = stream.leaving_out_dumps(events, 64);
    let mut last = None;
    while let Ok(Some(info)) = reader.next_block(&mut block) {
        assert!(!block.is_empty() && block.len() <= MAX_INFLATED_BLOCK_BYTES);
        assert!(last < Some(info.position), "positions grow");
        last = Some(info.position);
        if let Some(range) = info.range {
            own.read(stream, range, &mut other).expect("a block that was read before");
            assert!(*other == block[..]);
            own.read(&leaving_out, range, &mut other).expect("a block that was read before");
            compare_dumps(&block, &other, events);
        }
        let same = parallel.next_block(&mut again).expect("a block that was read before");
        assert_eq!(same, Some(info));
        assert!(again == block);
        let same = without.next_block(&mut again).expect("a block that was read before");
        assert_eq!((same, again.len()), (Some(info), block.len()));
        ask_records(&block, events);
        if reader.record_counts().decompressed_bytes > MAX_DECODED_BYTES {
            return;
        }
    }
    assert_eq!(reader.consumed_bytes(), stream.size_bytes());
    assert!(reader.truncation().is_none_or(|cut| cut.size_bytes > 0));
}

fuzz_target!(|data| {
    let opened = with_file(data, |file| Recording::from_file(Path::new("fuzz.data"), file));
    let recording = match opened {
        Ok(recording) => recording,
        Err(error) => {
            assert!(error.to_string().contains("fuzz.data"));
            return;
        }
    };
    ask_features(&recording.features);
    let events = Arc::new(EventTable::new(&recording.events));
    recording.streams.iter().for_each(|stream| read(stream, &events));
});
