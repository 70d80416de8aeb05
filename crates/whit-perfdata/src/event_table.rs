//! Which event a record belongs to.

use crate::attr::SampleType;
use crate::bytes::u64_at;
use crate::feature::EventDesc;
use crate::loss;
use crate::record::RawRecord;
use crate::sample::{SampleId, SampleLayout};
use std::collections::BTreeMap;
use whit_types::TimestampNs;

/// Finds the event, and with it the layout, of a record.
#[derive(Clone, Debug)]
pub struct EventTable {
    layouts: Vec<SampleLayout>,
    /// Ids and indices of events, by id: there are few, and looking them up is part of every record.
    by_id: Vec<(u64, u32)>,
    /// Where samples carry their event's id, if all events agree on it.
    id_offset: Option<usize>,
    ids_at_end: bool,
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
        EventTable {
            layouts,
            by_id: by_id.into_iter().collect(),
            id_offset: id_offset.filter(|_| agreed),
            ids_at_end,
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

    /// The event of a sample. A recording of one event needs no ids; an id that nobody
    /// announced belongs to no event.
    #[inline]
    pub fn event_of_sample(&self, body: &[u8]) -> Option<usize> {
        if self.layouts.len() <= 1 {
            return (!self.layouts.is_empty()).then_some(0);
        }
        let id = u64_at(body, self.id_offset?)?;
        self.event_of_id(id)
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

    /// Since when records may be missing, where a LOST or LOST_SAMPLES record says so: [`crate::loss`].
    pub fn loss_since(&self, record: RawRecord<'_>) -> Option<TimestampNs> {
        let layout = self.layout_of_trailer(record.body)?;
        loss::since(record, layout.id_trailer_size_bytes())
    }

    fn layout_of_trailer(&self, body: &[u8]) -> Option<&SampleLayout> {
        let by_identifier = || {
            let id = u64_at(body, body.len().checked_sub(8)?)?;
            self.event_of_id(id)
        };
        let event = if self.ids_at_end { by_identifier().unwrap_or(0) } else { 0 };
        self.layouts.get(event)
    }
}
