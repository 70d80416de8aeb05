//! The header, as far as it is known before the first record.

use whit_engine_api::Engine;
use whit_engine_api::event_plan::WAKING;
use whit_engine_api::open_event::OpenEvent;
use whit_host::roots::Roots;
use whit_perfdata::attr::pmu_type;
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{ClockData, CompressedDesc, EventDesc, Feature, Features, GroupDesc};
use whit_perfdata::record::record_type;
use whit_sys::clock::ClockId;
use whit_types::TimestampNs;

use crate::error::CaptureError;
use crate::machine;
use crate::plan::HeaderPlan;
use crate::stream::DECODED_BYTES_MAX;
use crate::tracing_data;

use super::code;

/// perf's name for groups without one.
const UNNAMED_GROUP: &str = "{anon_group}";

/// The header as far as it is known before the first record: every output begins with it.
pub(super) struct KnownHeader {
    /// All events as the file describes them.
    pub(super) descriptions: Vec<EventDesc>,
    /// All features but those that only the end tells.
    pub(super) features: Features,
}

impl KnownHeader {
    /// For these events of this engine.
    pub(super) fn new(
        plan: &HeaderPlan,
        roots: &Roots,
        events: &[OpenEvent],
        engine: &dyn Engine,
    ) -> Result<KnownHeader, CaptureError> {
        let mut descriptions: Vec<_> = events.iter().map(description).collect();
        engine.describe(&mut descriptions, events);
        let features = known_beforehand(plan, roots, events, &descriptions)?;
        Ok(KnownHeader { descriptions, features })
    }

    /// The names of events as records, for readers of pipes.
    pub(super) fn names(&self) -> Vec<u8> {
        names(&self.descriptions)
    }
}

fn description(event: &OpenEvent) -> EventDesc {
    EventDesc {
        attr: event.event.attr.clone(),
        ids: event.instances.iter().map(|instance| instance.id).collect(),
        name: event.event.spec.name().to_owned(),
    }
}

fn known_beforehand(
    plan: &HeaderPlan,
    roots: &Roots,
    events: &[OpenEvent],
    descriptions: &[EventDesc],
) -> Result<Features, CaptureError> {
    let mut features = Features::default();
    machine::describe(&mut features, roots);
    features.set_string(Feature::VERSION, &plan.version);
    features.set_cmdline(&plan.command_line);
    features.set_event_desc(descriptions);
    if !plan.wait_reasons.is_empty() {
        features.set_wait_reasons(&plan.wait_reasons);
    }
    let ids = code::kernel_build_ids(plan.choices, roots);
    if !ids.is_empty() {
        features.set_build_ids(&ids);
    }
    let groups = groups(events);
    if !groups.is_empty() {
        features.set_group_desc(&groups);
    }
    if let Some(clock) = plan.clock {
        set_clock(&mut features, clock)?;
    }
    if descriptions.iter().any(|event| event.attr.pmu_type == pmu_type::TRACEPOINT) {
        features.set(Feature::TRACING_DATA, tracing_data(roots, events, plan.wakeups)?);
    }
    if let Some(level) = plan.compression_level {
        features.set_compressed(&CompressedDesc::zstd(level as u32, 1, DECODED_BYTES_MAX));
    }
    Ok(features)
}

/// perf takes the names of events in pipes from EVENT_UPDATE records only.
fn names(events: &[EventDesc]) -> Vec<u8> {
    /// `PERF_EVENT_UPDATE__NAME`.
    const UPDATE_NAME: u64 = 2;
    let mut out = Vec::new();
    for event in events {
        let Some(id) = event.ids.first() else { continue };
        let mut body = [UPDATE_NAME.to_le_bytes(), id.to_le_bytes()].concat();
        body.extend(event.name.as_bytes());
        body.push(0);
        body.resize(body.len().next_multiple_of(8), 0);
        push_record(&mut out, record_type::EVENT_UPDATE, 0, &body);
    }
    out
}

fn tracing_data(
    roots: &Roots,
    events: &[OpenEvent],
    wakeups: bool,
) -> Result<Vec<u8>, CaptureError> {
    let specs = events.iter().map(|event| &event.event.spec).filter(|spec| spec.is_tracepoint());
    let mut names: Vec<_> =
        specs.map(|spec| tracing_data::name_in(roots, spec)).collect::<Result<_, _>>()?;
    names.extend(wakeups.then(|| WAKING.to_owned()));
    tracing_data::collect(&tracing_data::mounted(roots, names.first().map_or("", |n| n))?, &names)
}

fn groups(events: &[OpenEvent]) -> Vec<GroupDesc> {
    let leader = |event: &OpenEvent| event.event.spec.leader;
    let members = |index| events.iter().filter(|event| leader(event) == Some(index)).count();
    (0..events.len())
        .filter(|&index| leader(&events[index]) == Some(index) && members(index) > 1)
        .map(|index| GroupDesc {
            name: UNNAMED_GROUP.to_owned(),
            leader_index: index as u32,
            nr_members: members(index) as u32,
        })
        .collect()
}

/// The clock's resolution, and one moment on it and on the wall clock.
fn set_clock(features: &mut Features, clock: ClockId) -> Result<(), CaptureError> {
    let error = || CaptureError::system("read the clock of the time stamps");
    features.set_word(Feature::CLOCKID, clock.resolution_ns().map_err(error())?);
    let wall_clock_ns = ClockId::REALTIME.now_ns().map_err(error())?;
    features.set_clock_data(ClockData {
        clockid: clock.0 as u32,
        wall_clock_ns,
        clock_ns: TimestampNs(clock.now_ns().map_err(error())?),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::record::RawRecord;

    #[test]
    fn names_are_found_by_the_events_first_id() {
        let event = |name: &str, ids: &[u64]| EventDesc {
            name: name.to_owned(),
            ids: ids.to_vec(),
            ..EventDesc::default()
        };
        let bytes = names(&[event("cycles:u", &[7, 8]), event("gone", &[])]);
        let (record, rest) = RawRecord::split(&bytes).unwrap();
        assert!(rest.is_empty());
        assert_eq!(record.header.kind, record_type::EVENT_UPDATE);
        assert_eq!(record.body[..16], [2u64.to_le_bytes(), 7u64.to_le_bytes()].concat());
        assert_eq!(&record.body[16..], b"cycles:u\0\0\0\0\0\0\0\0");
    }
}
