//! The header of a recording, beyond the machine and the command line.

use whit_perfdata::feature::{ClockData, CompressedDesc, EventDesc, Feature, Features};
use whit_perfdata::reader::{Form, Recording};
use whit_types::OutsideText;

/// An event as the header has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderEvent {
    /// As the recording calls it.
    pub name: OutsideText,
    /// The kernel's ids of its instances.
    pub ids: Vec<u64>,
    /// The attributes by perf's names, those that are not zero.
    pub attributes: Vec<(String, String)>,
}

/// Sections of the header.
#[derive(Clone, Debug, Default)]
pub struct HeaderFacts {
    /// Where the records begin, and their size; of a single file.
    pub data: Option<(u64, u64)>,
    /// Features that are there.
    pub present: Vec<Feature>,
    /// All of them, those without samples too.
    pub events: Vec<HeaderEvent>,
    /// Types and names of PMUs.
    pub pmus: Option<Vec<(u32, OutsideText)>>,
    /// Name of each group, and those of its events.
    pub groups: Vec<(OutsideText, Vec<OutsideText>)>,
    /// Resolution of the clock in nanoseconds.
    pub clock_resolution_ns: Option<u64>,
    /// Layout of a directory.
    pub directory_version: Option<u64>,
    /// Ids of BPF programs.
    pub bpf_programs: Vec<u32>,
    /// Ids of BPF types.
    pub bpf_types: Vec<u32>,
    /// Compression.
    pub compressed: Option<CompressedDesc>,
    /// Names of PMUs, each with its capabilities.
    pub capabilities: Vec<(OutsideText, Vec<(OutsideText, OutsideText)>)>,
    /// One moment on two clocks.
    pub clock: Option<ClockData>,
}

impl HeaderFacts {
    pub(crate) fn of(recording: &Recording) -> HeaderFacts {
        let features = &recording.features;
        let pmus = features.pmu_mappings();
        let data = recording.streams.first().filter(|_| recording.form == Form::File);
        HeaderFacts {
            data: data.map(|stream| stream.data()),
            present: features.iter().map(|(feature, _)| feature).collect(),
            events: recording.events.iter().map(|event| header_event(event, features)).collect(),
            pmus: pmus.map(|list| list.into_iter().map(|(of, name)| (of, name.into())).collect()),
            groups: groups(recording),
            clock_resolution_ns: features.word(Feature::CLOCKID),
            directory_version: features.word(Feature::DIR_FORMAT),
            bpf_programs: features.bpf_programs().unwrap_or_default(),
            bpf_types: features.bpf_types().unwrap_or_default(),
            compressed: features.compressed(),
            capabilities: capabilities(features),
            clock: features.clock_data(),
        }
    }
}

fn header_event(event: &EventDesc, features: &Features) -> HeaderEvent {
    let mut attributes = event.attr.fields();
    if let Some(size) = features.attr_size_bytes() {
        // Behind the type, which is left out where it is zero.
        let at = usize::from(event.attr.pmu_type != 0);
        attributes.insert(at, ("size".to_owned(), size.to_string()));
    }
    HeaderEvent { name: event.name.as_str().into(), ids: event.ids.clone(), attributes }
}

/// perf's name of a group without one.
const NO_NAME: &str = "{anon_group}";

fn groups(recording: &Recording) -> Vec<(OutsideText, Vec<OutsideText>)> {
    let described = recording.features.group_desc().unwrap_or_default();
    let named = described.into_iter().filter_map(|group| {
        let end = group.leader_index.checked_add(group.nr_members)?;
        let members = recording.events.get(group.leader_index as usize..end as usize)?;
        let name = if group.name == NO_NAME { String::new() } else { group.name };
        Some((name.into(), members.iter().map(|event| event.name.as_str().into()).collect()))
    });
    named.collect()
}

fn capabilities(features: &Features) -> Vec<(OutsideText, Vec<(OutsideText, OutsideText)>)> {
    let of = features.pmu_capabilities().into_iter();
    of.map(|of| {
        (
            of.pmu.into(),
            of.list.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        )
    })
    .collect()
}
