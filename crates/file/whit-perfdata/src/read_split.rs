//! Samples that carry counts of events (`PERF_SAMPLE_READ`), split into a sample of each event.
//!
//! In a group with the modifier `:S`, only the leader samples, and each of its samples has the counts of all members. perf
//! makes a sample of each count (`deliver_sample_value()` in `tools/perf/util/session.c`). Its period is the count less the
//! count of the same id before, and a period of zero makes no sample. The first count of an id is the period of all since
//! the event was enabled.
//!
//! A split sample has the id of the counted event and the period in its fields, and no counts. So it reads like a sample
//! that the event took itself, by the layouts of [`ReadSplit::events`].

use crate::attr::{Attr, AttrFlags, ReadFormat, SampleType};
use crate::bytes::{Cursor, u64_at};
use crate::encode::push_record;
use crate::event_table::EventTable;
use crate::feature::EventDesc;
use crate::record::{HEADER_SIZE_BYTES, RawRecord, record_type};
use crate::sample::{SampleLayout, thread};
use crate::sample_head::{fixed_bytes, place_of};
use whit_types::Tid;

/// The owner of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CountKey {
    /// The id of the count.
    pub id: u64,
    /// Where threads inherit the event: the kernel counts for each under the same id.
    pub tid: Option<Tid>,
}

/// The samples of a block before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitCounts {
    /// Samples that were split.
    pub split: u64,
    /// Samples that were made of them.
    pub made: u64,
    /// Counts of events that the recording does not know.
    pub unknown: u64,
    /// Samples that were left out: the samples of their block would take more than [`ReadSplit::GROWTH_MAX`].
    pub left_out: u64,
}

/// Splits the samples of a recording.
#[derive(Clone, Debug)]
pub struct ReadSplit {
    recorded: EventTable,
    events: EventTable,
    /// By event; `None` where its samples stay as they are.
    forms: Vec<Option<Form>>,
    /// A sample has no more counts than the recording has ids.
    max_counts: usize,
}

/// Where the fields of an event's samples are.
#[derive(Clone, Copy, Debug)]
struct Form {
    layout: SampleLayout,
    ids: [Option<usize>; 2],
    /// Where threads inherit the event.
    tid: Option<usize>,
    /// Where the period belongs.
    period: usize,
    /// Where the counts are.
    read: usize,
}

impl Form {
    /// `None` where samples have no counts, or counts have no ids. Records of a backward ring begin with the newest, so
    /// that the count before is not known yet when a count is read.
    fn new(attr: &Attr) -> Option<Form> {
        let at = |field| place_of(attr.sample_type, field);
        let ids = [at(SampleType::IDENTIFIER), at(SampleType::ID)];
        let has_counts = attr.sample_type.contains(SampleType::READ)
            && attr.read_format.contains(ReadFormat::ID)
            && ids != [None; 2];
        (has_counts && !attr.has(AttrFlags::WRITE_BACKWARD)).then(|| Form {
            layout: SampleLayout::new(attr),
            ids,
            tid: at(SampleType::TID).filter(|_| attr.has(AttrFlags::INHERIT)),
            period: fixed_bytes(attr.sample_type.with(SampleType::PERIOD, false)),
            read: fixed_bytes(attr.sample_type),
        })
    }

    /// The fields of one word of a sample of an event, the period among them.
    fn head(&self, body: &[u8], id: u64, period: u64, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        out.extend_from_slice(body.get(..self.period)?);
        for at in self.ids.into_iter().flatten() {
            out.get_mut(start + at..start + at + 8)?.copy_from_slice(&id.to_le_bytes());
        }
        out.extend_from_slice(&period.to_le_bytes());
        Some(())
    }
}

/// An event as its split samples are.
fn split_event(event: &EventDesc) -> EventDesc {
    let mut event = event.clone();
    if Form::new(&event.attr).is_some() {
        let fields = event.attr.sample_type.with(SampleType::READ, false);
        event.attr.sample_type = fields.with(SampleType::PERIOD, true);
        event.attr.read_format = ReadFormat::default();
    }
    event
}

impl ReadSplit {
    /// Split samples take so many times the bytes of their block at most. Each count has the chain and the dump of its
    /// sample, so that a crafted sample could become a thousand times as large.
    pub const GROWTH_MAX: usize = 16;

    /// `None` where no event of a recording has samples to split.
    pub fn of(events: &[EventDesc]) -> Option<ReadSplit> {
        let forms: Vec<_> = events.iter().map(|event| Form::new(&event.attr)).collect();
        forms.iter().any(Option::is_some).then(|| {
            let split: Vec<_> = events.iter().map(split_event).collect();
            ReadSplit {
                recorded: EventTable::new(events),
                events: EventTable::new(&split),
                forms,
                max_counts: events.iter().map(|event| event.ids.len()).sum(),
            }
        })
    }

    /// The events of split samples.
    pub fn events(&self) -> &EventTable {
        &self.events
    }

    /// Whether counts of an event in the samples of another one become samples: those have the fields of the other one.
    pub fn splits(&self, sampled: usize, counted: usize) -> bool {
        let is_split = self.forms.get(sampled).is_some_and(Option::is_some);
        is_split && self.events.layout(sampled) == self.events.layout(counted)
    }

    /// Appends the records of a block, with split samples. `since` takes the counts of the block, those of earlier samples
    /// first, and gives back the difference of each to the one before.
    pub fn split(
        &self,
        block: &[u8],
        since: &mut dyn FnMut(CountKey, u64) -> u64,
        out: &mut Vec<u8>,
    ) -> SplitCounts {
        let samples = self.samples(block);
        let periods = self.periods(&samples, since);
        let (mut counts, mut copied) = (SplitCounts::default(), 0);
        let full = out.len() + block.len() * ReadSplit::GROWTH_MAX;
        for (sample, periods) in samples.iter().zip(&periods) {
            out.extend_from_slice(&block[copied..sample.at]);
            copied = sample.at + HEADER_SIZE_BYTES + sample.record.body.len();
            counts.split += 1;
            if out.len() > full {
                counts.left_out += 1;
                continue;
            }
            if self.push_split(sample, periods, &mut counts, out).is_none() {
                // A sample without its counts stays one without its period, so that readers count it as too short.
                let RawRecord { header, body } = sample.record;
                push_record(
                    out,
                    header.kind,
                    header.misc,
                    &body[..body.len().min(sample.form.period)],
                );
                counts.made += 1;
            }
        }
        out.extend_from_slice(&block[copied..]);
        counts
    }

    /// The samples of a block that are to be split.
    fn samples<'a>(&'a self, block: &'a [u8]) -> Vec<Counted<'a>> {
        let (mut at, mut samples) = (0, Vec::new());
        while let Some((record, tail)) = RawRecord::split(&block[at..]) {
            samples.extend(self.counted(record, at));
            at = block.len() - tail.len();
        }
        samples
    }

    #[inline]
    fn counted<'a>(&'a self, record: RawRecord<'a>, at: usize) -> Option<Counted<'a>> {
        if record.header.kind != record_type::SAMPLE {
            return None;
        }
        let event = self.recorded.event_of_sample(record.body)?;
        let form = self.forms.get(event)?.as_ref()?;
        Some(Counted { at, record, event, form })
    }

    /// The period of each count of each sample. They follow each other in time, which the samples need not do.
    fn periods(
        &self,
        samples: &[Counted<'_>],
        since: &mut dyn FnMut(CountKey, u64) -> u64,
    ) -> Vec<Vec<u64>> {
        let mut order: Vec<_> = (0..samples.len()).collect();
        order.sort_by_key(|sample| {
            samples[*sample].form.layout.sample_time(samples[*sample].record.body)
        });
        let mut periods = vec![Vec::new(); samples.len()];
        for at in order {
            let tid = samples[at].tid();
            let counts = samples[at].read().into_iter().flat_map(|(read, _)| read);
            let counts = counts.take(self.max_counts);
            periods[at] = counts.map(|(id, count)| since(CountKey { id, tid }, count)).collect();
        }
        periods
    }

    /// `None` where the sample is shorter than its fields say; nothing is appended then.
    fn push_split(
        &self,
        sample: &Counted<'_>,
        periods: &[u64],
        counts: &mut SplitCounts,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let RawRecord { header, body } = sample.record;
        let (read, behind) = sample.read()?;
        let mut new = Vec::with_capacity(body.len());
        let counted = read.zip(periods).filter(|(_, period)| **period > 0);
        for ((id, _), period) in counted {
            let Some(event) = self.events.event_of_id(id).filter(|_| id != 0) else {
                counts.unknown += 1;
                continue;
            };
            if self.splits(sample.event, event) {
                new.clear();
                sample.form.head(body, id, *period, &mut new)?;
                new.extend_from_slice(behind);
                push_record(out, header.kind, header.misc, &new);
                counts.made += 1;
            }
        }
        Some(())
    }
}

/// A sample with counts.
struct Counted<'a> {
    /// Where it is in its block.
    at: usize,
    record: RawRecord<'a>,
    event: usize,
    form: &'a Form,
}

impl<'a> Counted<'a> {
    /// Its thread, where each thread counts for itself.
    fn tid(&self) -> Option<Tid> {
        self.form.tid.and_then(|at| u64_at(self.record.body, at)).map(|task| thread(task).1)
    }

    /// Ids and counts, and the bytes behind them. `None` where the sample is too short for them.
    fn read(&self) -> Option<(impl Iterator<Item = (u64, u64)> + use<'a>, &'a [u8])> {
        let mut cursor = Cursor::new(self.record.body.get(self.form.read..)?);
        let read = self.form.layout.take_read(&mut cursor)?;
        Some((read.counts(), cursor.rest()))
    }
}

#[cfg(test)]
mod tests;
