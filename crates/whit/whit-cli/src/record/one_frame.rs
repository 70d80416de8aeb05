//! Call chains by frame pointers, of programs without: the first of a recording say so when it is complete.

use super::off_cpu::is_stream;
use std::fmt;
use whit_capture::options::Output;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::sample::context;
use whit_perfdata::stream::StreamReader;

/// User call chains that are counted.
const CHAINS_MAX: u64 = 10_000;
/// Blocks of the recording that are read. Samples of kernel threads have no user call chain, and there may be any number.
const BLOCKS_MAX: u64 = 64;
/// Fewer say nothing of the programs.
const CHAINS_MIN: u64 = 20;

/// The first user call chains of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstChains {
    chains: u64,
    of_one_frame: u64,
}

impl fmt::Display for FirstChains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FirstChains { chains, of_one_frame } = self;
        write!(
            f,
            "{of_one_frame} of the first {chains} user call chains have one frame, as those of code without frame \
             pointers: for complete ones, leave --call-graph and --engine=ring out"
        )
    }
}

impl FirstChains {
    /// Those of a complete recording, if most of them have one frame and the kernel took them by frame pointers.
    pub(super) fn cut(output: &Output) -> Option<FirstChains> {
        let Output::File(path) = output else { return None };
        if is_stream(path) {
            return None;
        }
        let recording = Recording::open(path).ok()?;
        if !recording.events.iter().any(|event| event.attr.has_user_chains()) {
            return None;
        }
        let events = EventTable::new(&recording.events);
        let (mut first, mut block, mut blocks) = (FirstChains::default(), Vec::new(), 0);
        for stream in recording.streams {
            let mut reader = StreamReader::new(stream);
            while first.chains < CHAINS_MAX
                && blocks < BLOCKS_MAX
                && matches!(reader.next_block(&mut block), Ok(Some(_)))
            {
                blocks += 1;
                let records = std::iter::successors(RawRecord::split(&block), |(_, rest)| {
                    RawRecord::split(rest)
                });
                records.for_each(|(record, _)| first.add(&events, record));
            }
        }
        (first.chains >= CHAINS_MIN && first.of_one_frame > first.chains / 2).then_some(first)
    }

    fn add(&mut self, events: &EventTable, record: RawRecord<'_>) {
        if record.header.kind != record_type::SAMPLE {
            return;
        }
        let event = events.event_of_sample(record.body);
        let sample = event.and_then(|event| events.layout(event)?.parse(record.body));
        let Some(sample) = sample else { return };
        let user = sample.callchain.iter().skip_while(|word| *word != context::USER).skip(1);
        match user.take_while(|word| *word < context::MAX).take(2).count() {
            0 => {}
            frames => {
                self.chains += 1;
                self.of_one_frame += u64::from(frames == 1);
            }
        }
    }
}
