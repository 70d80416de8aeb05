//! Which event a record belongs to.

use crate::attr::{SampleType, pmu_type};
use crate::bytes::u64_at;
use crate::feature::EventDesc;
use crate::loss;
use crate::record::RawRecord;
use crate::sample::{SampleId, SampleLayout};
use std::collections::BTreeMap;
use whit_types::{CpuId, TimestampNs};

/// Finds the event, and with it the layout, of a record.
#[derive(Clone, Debug)]
pub struct EventTable {
    layouts: Vec<SampleLayout>,
    /// Ids and indices of events, by id: there are few, and looking them up is part of every record.
    by_id: Vec<(u64, u32)>,
    /// Where samples carry their event's id, if all events agree on it.
    id_offset: Option<usize>,
    ids_at_end: bool,
    /// True where the trailers of all events have the same fields.
    same_trailers: bool,
    /// The event of samples with the id of another recorder's event.
    shared: Option<usize>,
    user_stack_bytes: u32,
}

/// Software events that the kernel counts at their place in its code, in a loop over the events of all recorders
/// (`do_perf_sw_event()`, at least up to 6.18). The events of the loop share one sample, which keeps the id of the
/// first one.
fn shares_samples(event: &EventDesc) -> bool {
    /// `PERF_COUNT_SW_CPU_CLOCK`, `TASK_CLOCK`, `DUMMY` and `BPF_OUTPUT`: clocks and BPF programs make samples of
    /// their own, and a dummy makes none.
    const OTHERS: [u64; 4] = [0, 1, 9, 10];
    event.attr.pmu_type == pmu_type::SOFTWARE && !OTHERS.contains(&event.attr.config)
}

/// The only event with a property.
fn only(events: &[EventDesc], is_meant: impl Fn(&EventDesc) -> bool) -> Option<usize> {
    let mut meant = events.iter().enumerate().filter(|(_, event)| is_meant(event));
    let first = meant.next()?.0;
    meant.next().is_none().then_some(first)
}

impl EventTable {
    /// From the events of a recording.
    pub fn new(events: &[EventDesc]) -> EventTable {
        let layouts: Vec<_> = events.iter().map(|e| SampleLayout::new(&e.attr)).collect();
        // If two events have an id, the last one counts.
        let by_id: BTreeMap<u64, u32> = events
            .iter()
            .zip(0u32..)
            .flat_map(|(event, index)| event.ids.iter().map(move |id| (*id, index)))
            .collect();
        let id_offset = layouts.first().and_then(SampleLayout::id_offset);
        let agreed = layouts.iter().all(|layout| layout.id_offset() == id_offset);
        let ids_at_end =
            layouts.iter().all(|layout| layout.sample_type.contains(SampleType::IDENTIFIER));
        let stack_bytes = events.iter().map(|event| event.attr.sample_stack_user_bytes);
        EventTable {
            by_id: by_id.into_iter().collect(),
            id_offset: id_offset.filter(|_| agreed),
            ids_at_end,
            same_trailers: layouts.windows(2).all(|pair| pair[0].trailer() == pair[1].trailer()),
            layouts,
            shared: only(events, shares_samples),
            user_stack_bytes: stack_bytes.max().unwrap_or(0),
        }
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.layouts.len()
    }

    /// True without events.
    pub fn is_empty(&self) -> bool {
        self.layouts.is_empty()
    }

    /// The layout of an event's records.
    pub fn layout(&self, event: usize) -> Option<&SampleLayout> {
        self.layouts.get(event)
    }

    /// Whether samples of any event have dumps of user stacks.
    pub fn has_user_stacks(&self) -> bool {
        self.layouts.iter().any(SampleLayout::has_user_stack)
    }

    /// Bytes of the user stack that samples may have at most.
    pub(crate) fn user_stack_bytes(&self) -> u32 {
        self.user_stack_bytes
    }

    /// The event of a sample. A recording of one event needs no ids. An unknown id belongs to the only software event
    /// of the recording whose samples may have it from another recorder, or else to no event.
    #[inline]
    pub fn event_of_sample(&self, body: &[u8]) -> Option<usize> {
        if self.layouts.len() <= 1 {
            return (!self.layouts.is_empty()).then_some(0);
        }
        let id = u64_at(body, self.id_offset?)?;
        self.event_of_id(id).or(self.shared)
    }

    /// The event with this id. Synthesized records carry id 0: the first event.
    pub fn event_of_id(&self, id: u64) -> Option<usize> {
        match self.by_id.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => Some(self.by_id[at].1 as usize),
            Err(_) => (id == 0 && !self.is_empty()).then_some(0),
        }
    }

    /// Decodes the trailer of a record that is not a sample.
    pub fn parse_id_trailer(&self, body: &[u8]) -> SampleId {
        let layout = self.layout_of_trailer(body);
        layout.and_then(|layout| layout.parse_id_trailer(body)).unwrap_or_default()
    }

    /// The time in the trailer of a record that is not a sample.
    #[inline]
    pub fn trailer_time(&self, body: &[u8]) -> Option<TimestampNs> {
        self.layout_of_trailer(body)?.trailer_time(body)
    }

    /// The CPU in the trailer of a record that is not a sample.
    #[inline]
    pub fn trailer_cpu(&self, body: &[u8]) -> Option<CpuId> {
        self.layout_of_trailer(body)?.trailer_cpu(body)
    }

    /// Since when records may be missing, where a LOST or LOST_SAMPLES record says so: [`crate::loss`].
    pub fn loss_since(&self, record: RawRecord<'_>) -> Option<TimestampNs> {
        let layout = self.layout_of_trailer(record.body)?;
        loss::since(record, layout.id_trailer_size_bytes())
    }

    #[inline]
    fn layout_of_trailer(&self, body: &[u8]) -> Option<&SampleLayout> {
        if self.same_trailers {
            return self.layouts.first();
        }
        let by_identifier = || {
            let id = u64_at(body, body.len().checked_sub(8)?)?;
            self.event_of_id(id)
        };
        let event = if self.ids_at_end { by_identifier().unwrap_or(0) } else { 0 };
        self.layouts.get(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attr, AttrFlags};
    use proptest::prelude::*;

    const CYCLES: (u32, u64) = (pmu_type::HARDWARE, 0);
    const CPU_CLOCK: (u32, u64) = (pmu_type::SOFTWARE, 0);
    const PAGE_FAULTS: (u32, u64) = (pmu_type::SOFTWARE, 2);
    const CONTEXT_SWITCHES: (u32, u64) = (pmu_type::SOFTWARE, 3);
    const DUMMY: (u32, u64) = (pmu_type::SOFTWARE, 9);

    /// The event of a sample with an id, among events with the ids 1, 2 and so on.
    fn event_of(id: u64, kinds: &[(u32, u64)]) -> Option<usize> {
        let event = |(&(pmu_type, config), id): (&(u32, u64), u64)| EventDesc {
            attr: Attr { pmu_type, config, sample_type: SampleType::IDENTIFIER, ..Attr::default() },
            ids: vec![id],
            name: "event".to_owned(),
        };
        let events: Vec<_> = kinds.iter().zip(1..).map(event).collect();
        EventTable::new(&events).event_of_sample(&id.to_le_bytes())
    }

    #[test]
    fn a_sample_with_a_foreign_id_is_of_the_only_event_that_shares_samples() {
        let kinds = [CPU_CLOCK, CONTEXT_SWITCHES, DUMMY];
        assert_eq!([1, 2, 3].map(|id| event_of(id, &kinds)), [Some(0), Some(1), Some(2)]);
        assert_eq!(event_of(77, &kinds), Some(1));
        assert_eq!(event_of(77, &[CPU_CLOCK, DUMMY]), None);
        assert_eq!(event_of(77, &[CYCLES, CPU_CLOCK]), None);
        // Either may have sampled.
        assert_eq!(event_of(77, &[PAGE_FAULTS, CONTEXT_SWITCHES]), None);
    }

    proptest! {
        /// With any fields, and bodies of any length.
        #[test]
        fn single_fields_of_a_trailer_are_those_of_the_whole(
            fields in prop::collection::vec((any::<[bool; 7]>(), any::<bool>()), 1..4),
            mut body in prop::collection::vec(any::<u8>(), 0..70),
            id in 1u64..5,
        ) {
            use SampleType as T;
            let all = [T::TID, T::TIME, T::ID, T::STREAM_ID, T::CPU, T::IDENTIFIER, T::IP];
            let event = |((has, in_all), id): (&([bool; 7], bool), u64)| {
                let chosen = all.iter().zip(has).filter(|(_, has)| **has);
                let sample_type = chosen.fold(T::default(), |of, (field, _)| of | *field);
                let flags = if *in_all { AttrFlags::SAMPLE_ID_ALL } else { AttrFlags::default() };
                let attr = Attr { sample_type, flags, ..Attr::default() };
                EventDesc { attr, ids: vec![id], name: "event".to_owned() }
            };
            let events: Vec<_> = fields.iter().zip(1..).map(event).collect();
            let table = EventTable::new(&events);
            if let Some(at) = body.len().checked_sub(8) {
                body[at..].copy_from_slice(&id.to_le_bytes());
            }
            let by_id = if table.ids_at_end && body.len() >= 8 { table.event_of_id(id) } else { None };
            let whole = SampleLayout::new(&events[by_id.unwrap_or(0)].attr).parse_id_trailer(&body);
            let whole = whole.unwrap_or_default();
            prop_assert_eq!(table.parse_id_trailer(&body), whole);
            prop_assert_eq!(table.trailer_time(&body), whole.time);
            prop_assert_eq!(table.trailer_cpu(&body), whole.cpu);
        }
    }
}
