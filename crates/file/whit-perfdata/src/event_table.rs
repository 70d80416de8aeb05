//! Which event a record belongs to.

use crate::attr::{AttrFlags, SampleType, pmu_type};
use crate::bytes::u64_at;
use crate::feature::EventDesc;
use crate::loss;
use crate::record::RawRecord;
use crate::sample::{SampleId, SampleLayout};
use crate::shared_record;
use std::collections::BTreeMap;
use whit_types::{CpuId, TimestampNs};

/// Finds the event, and with it the layout, of a record.
#[derive(Clone, Debug)]
pub struct EventTable {
    layouts: Vec<SampleLayout>,
    by_id: EventIds,
    /// Where samples carry their event's id, if all events agree on it.
    id_offset: Option<usize>,
    ids_at_end: bool,
    /// True where the trailers of all events have the same fields.
    same_trailers: bool,
    /// The event of samples with the id of another recorder's event.
    shared: Option<usize>,
    /// Which events asked for build ids in mapping records.
    asks_build_ids: Vec<bool>,
    user_stack_bytes: u32,
}

/// Ids between the first and the last one that have a place each: kernels count them up.
const MAX_PLACES: usize = 1 << 12;

/// The place of an id that no event has.
const NO_EVENT: u32 = u32::MAX;

/// Ids of events. Looking one up is part of every record.
#[derive(Clone, Debug)]
struct EventIds {
    /// By id.
    sorted: Vec<(u64, u32)>,
    /// From the first id on, the event of each; empty where there are too many.
    places: Vec<u32>,
}

impl EventIds {
    /// From ids with their events, by id.
    fn new(sorted: Vec<(u64, u32)>) -> EventIds {
        let mut places = Vec::new();
        if let (Some((first, _)), Some((last, _))) = (sorted.first(), sorted.last())
            && last - first < MAX_PLACES as u64
        {
            places.resize((last - first + 1) as usize, NO_EVENT);
            sorted.iter().for_each(|(id, event)| places[(id - first) as usize] = *event);
        }
        EventIds { sorted, places }
    }

    #[inline]
    fn get(&self, id: u64) -> Option<usize> {
        if self.places.is_empty() {
            let at = self.sorted.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            return Some(self.sorted[at].1 as usize);
        }
        let place = usize::try_from(id.wrapping_sub(self.sorted[0].0)).ok()?;
        self.places
            .get(place)
            .copied()
            .filter(|event| *event != NO_EVENT)
            .map(|event| event as usize)
    }
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
            by_id: EventIds::new(by_id.into_iter().collect()),
            id_offset: id_offset.filter(|_| agreed),
            ids_at_end,
            same_trailers: layouts.windows(2).all(|pair| pair[0].trailer() == pair[1].trailer()),
            layouts,
            shared: only(events, shares_samples),
            asks_build_ids: events
                .iter()
                .map(|event| event.attr.has(AttrFlags::BUILD_ID))
                .collect(),
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
        let first = || (id == 0 && !self.is_empty()).then_some(0);
        self.by_id.get(id).or_else(first)
    }

    /// A record as its event asked for it, without the traces of other recorders' events ([`shared_record`]).
    pub fn own<'a>(&self, record: RawRecord<'a>) -> RawRecord<'a> {
        let record = self.without_rest(record);
        if !shared_record::says_build_id(record) || shared_record::was_given_build_id(record) {
            return record;
        }
        let event = match self.parse_id_trailer(record).id {
            None => Some(0),
            // A recorder's own records of existing processes have the id of no event, and the form that they name.
            Some(0) => None,
            Some(id) => self.event_of_id(id),
        };
        let asks = event.and_then(|event| self.asks_build_ids.get(event));
        if asks == Some(&false) { shared_record::without_build_id(record) } else { record }
    }

    /// The record up to the end of its sample id.
    #[inline]
    fn without_rest<'a>(&self, mut record: RawRecord<'a>) -> RawRecord<'a> {
        let word = |at| u64_at(record.body, at);
        if let Some(fields) = shared_record::fields_bytes(record.header.kind, word) {
            let size = |layout: &SampleLayout| fields + layout.id_trailer_size_bytes();
            let of_size = |layout: &&SampleLayout| {
                let body = record.body.get(..size(layout));
                let id =
                    body.filter(|_| self.ids_at_end).and_then(|body| u64_at(body, body.len() - 8));
                self.same_trailers || id.is_some_and(|id| self.event_of_id(id).is_some())
            };
            let own = self
                .layouts
                .iter()
                .find(of_size)
                .and_then(|layout| record.body.get(..size(layout)));
            record.body = own.unwrap_or(record.body);
        }
        record
    }

    /// Decodes the trailer of a record that is not a sample.
    pub fn parse_id_trailer(&self, record: RawRecord<'_>) -> SampleId {
        let body = self.without_rest(record).body;
        let layout = self.layout_of_trailer(body);
        layout.and_then(|layout| layout.parse_id_trailer(body)).unwrap_or_default()
    }

    /// The time in the trailer of a record that is not a sample.
    #[inline]
    pub fn trailer_time(&self, record: RawRecord<'_>) -> Option<TimestampNs> {
        let body = self.without_rest(record).body;
        self.layout_of_trailer(body)?.trailer_time(body)
    }

    /// The CPU in the trailer of a record that is not a sample.
    #[inline]
    pub fn trailer_cpu(&self, record: RawRecord<'_>) -> Option<CpuId> {
        let body = self.without_rest(record).body;
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
    use crate::attr::Attr;
    use crate::record::{MappedFileId, RecordHeader, SideBand, misc, record_type};
    use proptest::prelude::*;

    const CYCLES: (u32, u64) = (pmu_type::HARDWARE, 0);
    const CPU_CLOCK: (u32, u64) = (pmu_type::SOFTWARE, 0);
    const PAGE_FAULTS: (u32, u64) = (pmu_type::SOFTWARE, 2);
    const CONTEXT_SWITCHES: (u32, u64) = (pmu_type::SOFTWARE, 3);
    const DUMMY: (u32, u64) = (pmu_type::SOFTWARE, 9);

    fn record(kind: u32, misc: u16, body: &[u8]) -> RawRecord<'_> {
        RawRecord { header: RecordHeader { kind, misc, size_bytes: 0 }, body }
    }

    /// Events with the ids 1, 2 and so on that ask for build ids or do not. Trailers have a time and an identifier.
    fn trackers(asks: &[bool]) -> EventTable {
        let event = |(asks, id): (&bool, u64)| {
            let flags = AttrFlags::SAMPLE_ID_ALL.with(AttrFlags::BUILD_ID, *asks);
            let sample_type = SampleType::TIME | SampleType::IDENTIFIER;
            let attr = Attr { sample_type, flags, ..Attr::default() };
            EventDesc { attr, ids: vec![id], name: "event".to_owned() }
        };
        EventTable::new(&asks.iter().zip(1..).map(event).collect::<Vec<_>>())
    }

    /// The body of a mapping of `/a`: its file as device and inode, or as a build id; a time and an event's id.
    fn mapping(file: [u64; 3], id: u64) -> Vec<u8> {
        let path = u64::from_le_bytes(*b"/a\0\0\0\0\0\0");
        let words = [[1, 0x1000, 0x1000, 0].as_slice(), &file, &[5, path, 700, id]].concat();
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_mapping_has_a_build_id_where_its_event_asked_for_one() {
        let file_of = |asks: &[bool], file, id| {
            let (body, table) = (mapping(file, id), trackers(asks));
            let marked = record(record_type::MMAP2, misc::MMAP_BUILD_ID, &body);
            match SideBand::parse(table.own(marked)) {
                Some(SideBand::Mmap(map)) => map.file_id,
                other => panic!("{other:?}"),
            }
        };
        let (inode, disk) = ([1 << 32 | 8, 9_999, 0], [8, 0x1234, 0]);
        let is_inode = |file| matches!(file, MappedFileId::Inode { major: 8, .. });
        let is_build_id = |file| matches!(file, MappedFileId::BuildId(_));
        assert!(is_inode(file_of(&[false], inode, 1)));
        assert!(is_inode(file_of(&[true, false], inode, 2)));
        assert!(is_inode(file_of(&[true, false], disk, 2)));
        assert!(is_build_id(file_of(&[true, false], disk, 1)));
        // A recorder's own record of a process that ran before.
        assert!(is_build_id(file_of(&[false, false], disk, 0)));
        // `perf inject` leaves the events as they are.
        assert!(is_build_id(file_of(&[false], [0xabcd << 32 | 20, 2, 3], 1)));
    }

    #[test]
    fn a_record_that_grew_by_other_recorders_ends_with_its_own_sample_id() {
        let table = trackers(&[false, false]);
        let name = u64::from_le_bytes(*b"bpf_abcd");
        let bodies = [
            (record_type::KSYMBOL, vec![0x1000, 64, name, 0]),
            (record_type::BPF_EVENT, vec![1 << 32 | 1, 0]),
            // Two bytes of code before and three after.
            (record_type::TEXT_POKE, vec![0x1000, 3 << 16 | 2, 0]),
        ];
        for (kind, fields) in bodies {
            // The ring held a whole sample id of another event there.
            for rest in [&[][..], &[900, 1], &[900, 1, 901, 1]] {
                let words = [&fields[..], &[700, 2], rest].concat();
                let body: Vec<u8> =
                    words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
                let record = record(kind, 0, &body);
                let id = table.parse_id_trailer(record);
                assert_eq!((id.time, id.id), (Some(TimestampNs(700)), Some(2)), "type {kind}");
                assert_eq!(table.trailer_time(record), Some(TimestampNs(700)));
                assert_eq!(table.own(record).body.len(), fields.len() * 8 + 16);
            }
        }
    }

    #[test]
    fn ids_have_their_events_near_and_far() {
        for ids in [
            &[][..],
            &[7],
            &[3, 5, 9],
            &[0, u64::MAX],
            &[1 << 40, (1 << 40) + 4095],
            &[5, 5 + 4096],
        ] {
            let events = EventIds::new(ids.iter().copied().zip(10..).collect());
            for (id, event) in ids.iter().zip(10..) {
                assert_eq!(events.get(*id), Some(event), "{ids:?}");
            }
            for other in [1, 4, 4096, 1 << 41, u64::MAX - 1] {
                assert_eq!(events.get(other), None, "{ids:?}");
            }
        }
    }

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
            let record = record(record_type::SWITCH, 0, &body);
            prop_assert_eq!(table.parse_id_trailer(record), whole);
            prop_assert_eq!(table.trailer_time(record), whole.time);
            prop_assert_eq!(table.trailer_cpu(record), whole.cpu);
        }
    }
}
