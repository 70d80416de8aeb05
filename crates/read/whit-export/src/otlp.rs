//! OTLP profiles: `ProfilesData` as protobuf, one profile for each event.
//!
//! The signal is Alpha, so the version is pinned: `v1development` of opentelemetry-proto 1.9 to 1.11. Index 0 of each table is the
//! empty value that the protocol asks for.

use crate::content::{Content, Moment};
use crate::delivery::Delivery;
use crate::proto::otlp::{
    AnyValue, Function, InstrumentationScope, KeyValue, KeyValueAndUnit, Line, Link, Location,
    Mapping, Profile, ProfilesDictionary, Resource, Sample, Stack, Value, ValueType,
};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use whit_profile::model::{CgroupId, CommId, DsoKind, EventId, NodeId, SampleRow, ThreadId};

/// Writes the data: the dictionary last, when everything has its number there. That of a window, for a receiver that
/// has many, has its notes in the profiles: they change, and a resource is told apart by its attributes.
pub(crate) fn write(
    content: &Content<'_>,
    delivery: Option<&Delivery>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut dictionary = Dictionary::new(content);
    let moments = content.moments();
    let mut scope_profiles = Vec::new();
    let scope = InstrumentationScope {
        name: "whit".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    put(&mut scope_profiles, 1, &scope.encode_to_vec());
    for event in content.sampled_events() {
        let profile = profile(content, event, delivery, &moments, &mut dictionary)?;
        put(&mut scope_profiles, 2, &profile);
    }
    let mut resource_profiles = Vec::new();
    put(&mut resource_profiles, 1, &resource(content, delivery).encode_to_vec());
    put(&mut resource_profiles, 2, &scope_profiles);
    drop(scope_profiles);
    write_field(out, 1, &resource_profiles)?;
    drop(resource_profiles);
    write_field(out, 2, &dictionary.finish()?)
}

/// Appends a field that is a message.
fn put(out: &mut Vec<u8>, tag: u32, message: &[u8]) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(message.len() as u64, out);
    out.extend_from_slice(message);
}

fn write_field(out: &mut dyn Write, tag: u32, message: &[u8]) -> io::Result<()> {
    let mut head = Vec::new();
    encode_key(tag, WireType::LengthDelimited, &mut head);
    encode_varint(message.len() as u64, &mut head);
    out.write_all(&head)?;
    out.write_all(message)
}

fn text(text: &str) -> Option<AnyValue> {
    Some(AnyValue { value: Some(Value::Text(text.to_owned())) })
}

fn resource(content: &Content<'_>, delivery: Option<&Delivery>) -> Resource {
    let info = &content.profile.recording;
    let mut attributes = vec![
        ("host.name", delivery.map_or(info.hostname.exact(), |it| it.host(content)).to_owned()),
        ("host.arch", info.arch.exact().to_owned()),
        ("os.type", "linux".to_owned()),
        ("os.version", info.os_release.exact().to_owned()),
    ];
    match delivery {
        None => attributes.extend(notes_by_key(content)),
        Some(delivery) => {
            let own = delivery.identity.iter().map(|(key, text)| (key.as_str(), text.clone()));
            let own: Vec<_> = own.collect();
            attributes.retain(|(key, _)| own.iter().all(|(other, _)| other != key));
            attributes.extend(own);
        }
    }
    let pair =
        |(key, value): &(&str, String)| KeyValue { key: (*key).to_owned(), value: text(value) };
    Resource { attributes: attributes.iter().map(pair).collect() }
}

/// Keys of attributes are unique, those of notes are not.
fn notes_by_key(content: &Content<'_>) -> Vec<(&'static str, String)> {
    let mut by_key: Vec<(&str, String)> = Vec::new();
    for note in content.notes() {
        match by_key.iter_mut().find(|(key, _)| *key == note.key) {
            Some((_, text)) => *text = format!("{text}\n{}", note.text),
            None => by_key.push((note.key, note.text)),
        }
    }
    by_key
}

/// Samples that share these are one message with many times.
type Key = (ThreadId, CommId, Option<CgroupId>, NodeId);

/// The values of such samples, with their times where these were kept.
#[derive(Default)]
struct Group {
    values: Vec<i64>,
    times: Vec<u64>,
}

fn profile(
    content: &Content<'_>,
    event: EventId,
    delivery: Option<&Delivery>,
    moments: &[Moment<'_>],
    dictionary: &mut Dictionary<'_, '_>,
) -> io::Result<Vec<u8>> {
    let (first, last) = content.span();
    let (unix_ns, is_certain) = match delivery {
        None => content.unix_ns(first),
        Some(delivery) => (delivery.start_unix_ns, true),
    };
    let name =
        delivery.map_or(content.event_name(event).to_owned(), |_| content.series_name(event));
    let kind = ValueType {
        type_strindex: dictionary.string(&name),
        unit_strindex: dictionary.string(content.unit(event).name()),
    };
    let mut attributes = vec![dictionary.text_attribute("whit.event", content.event_name(event))];
    if !is_certain {
        let text = "estimated from the time at which the file was written";
        attributes.push(dictionary.text_attribute("whit.time_of_day", text));
    }
    if delivery.is_some() {
        attributes.extend(dictionary.density(event));
        let notes = notes_by_key(content);
        attributes.extend(notes.iter().map(|(key, text)| dictionary.text_attribute(key, text)));
    }
    let head = Profile {
        sample_type: Some(kind),
        time_unix_nano: unix_ns,
        duration_nano: delivery.map_or(last.since(first), |delivery| delivery.duration_ns),
        period_type: Some(kind),
        period: content.period(event) as i64,
        profile_id: profile_id(unix_ns, event),
        attribute_indices: attributes,
        ..Profile::default()
    };
    let mut bytes = head.encode_to_vec();
    for (key, group) in groups(content, event, moments) {
        let sample = dictionary.sample(key, group);
        Profile { samples: vec![sample], ..Profile::default() }
            .encode(&mut bytes)
            .map_err(io::Error::other)?;
    }
    Ok(bytes)
}

/// The samples of an event: one by one, or added up where their times were not kept.
fn groups(content: &Content<'_>, event: EventId, moments: &[Moment<'_>]) -> Vec<(Key, Group)> {
    let mut groups: FxHashMap<Key, Group> = FxHashMap::default();
    let key = |row: &SampleRow| (row.thread, row.comm, content.cgroup(row), row.node);
    for moment in moments.iter().filter(|moment| moment.row.event == event) {
        let group = groups.entry(key(moment.row)).or_default();
        group.values.push(moment.period as i64);
        group.times.push(content.unix_ns(moment.time).0);
    }
    if content.profile.singles.is_none() {
        for row in content.profile.rows.iter().filter(|row| row.event == event) {
            let group = groups.entry(key(row)).or_default();
            let sum = group.values.pop().unwrap_or(0).saturating_add_unsigned(row.period);
            group.values.push(sum);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_unstable_by_key(|(key, _)| *key);
    groups
}

/// 16 bytes that are the same for the same recording.
fn profile_id(unix_ns: u64, event: EventId) -> Vec<u8> {
    [unix_ns.to_be_bytes(), (u64::from(event.0) + 1).to_be_bytes()].concat()
}

/// The tables that all profiles share.
struct Dictionary<'c, 'a> {
    content: &'c Content<'a>,
    strings: Vec<String>,
    string_numbers: FxHashMap<String, i32>,
    attributes: Vec<KeyValueAndUnit>,
    attribute_numbers: FxHashMap<(i32, Result<i32, i64>), i32>,
    stacks: Vec<Stack>,
    stack_numbers: FxHashMap<NodeId, i32>,
    /// By the number of the physical frame.
    locations: Vec<i32>,
}

impl<'c, 'a> Dictionary<'c, 'a> {
    fn new(content: &'c Content<'a>) -> Dictionary<'c, 'a> {
        let mut locations = vec![0; content.profile.frames.len()];
        for (number, range) in content.frames_by_location().enumerate() {
            locations[range.start] = number as i32 + 1;
        }
        let mut dictionary = Dictionary {
            content,
            strings: Vec::new(),
            string_numbers: FxHashMap::default(),
            attributes: vec![KeyValueAndUnit::default()],
            attribute_numbers: FxHashMap::default(),
            stacks: vec![Stack::default()],
            stack_numbers: FxHashMap::default(),
            locations,
        };
        dictionary.string("");
        dictionary
    }

    fn string(&mut self, text: &str) -> i32 {
        if let Some(known) = self.string_numbers.get(text) {
            return *known;
        }
        let number = self.strings.len() as i32;
        self.strings.push(text.to_owned());
        self.string_numbers.insert(text.to_owned(), number);
        number
    }

    fn attribute(&mut self, key: &str, value: Value) -> i32 {
        let key_strindex = self.string(key);
        let identity = match &value {
            Value::Text(text) => Ok(self.string(text)),
            Value::Int(number) => Err(*number),
        };
        let next = self.attributes.len() as i32;
        let number = *self.attribute_numbers.entry((key_strindex, identity)).or_insert(next);
        if number == next {
            let value = Some(AnyValue { value: Some(value) });
            self.attributes.push(KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
        }
        number
    }

    fn text_attribute(&mut self, key: &str, text: &str) -> i32 {
        self.attribute(key, Value::Text(text.to_owned()))
    }

    fn stack(&mut self, node: NodeId) -> i32 {
        if node == NodeId::NONE {
            return 0;
        }
        if let Some(known) = self.stack_numbers.get(&node) {
            return *known;
        }
        let locations = self.content.locations(node);
        let location_indices = locations.map(|frame| self.locations[frame.index()]).collect();
        let number = self.stacks.len() as i32;
        self.stacks.push(Stack { location_indices });
        self.stack_numbers.insert(node, number);
        number
    }

    fn sample(&mut self, (thread, comm, cgroup, node): Key, group: Group) -> Sample {
        let content = self.content;
        let info = &content.profile.threads[thread.index()];
        let comm = content.profile.comms[comm.index()].exact();
        let mut attribute_indices = vec![
            self.attribute("process.pid", Value::Int(i64::from(info.pid.0))),
            self.attribute("thread.id", Value::Int(i64::from(info.tid.0))),
            self.text_attribute("thread.name", comm),
            self.text_attribute("process.executable.name", content.process_name(info.pid)),
        ];
        if let Some(cgroup) = cgroup {
            let path = content.cgroup_path(cgroup);
            attribute_indices.push(self.text_attribute("linux.cgroup.path", path));
            attribute_indices.extend(self.workload(cgroup));
        }
        Sample {
            stack_index: self.stack(node),
            attribute_indices,
            values: group.values,
            timestamps_unix_nano: group.times,
        }
    }

    /// The names in the cgroup's path.
    fn workload(&mut self, cgroup: CgroupId) -> impl Iterator<Item = i32> + use<> {
        let workload = self.content.workload(cgroup);
        let pairs = [
            ("container.id", workload.container),
            ("k8s.pod.uid", workload.pod.as_deref()),
            ("systemd.unit", workload.unit),
        ];
        pairs
            .map(|(key, text)| text.map(|text| self.text_attribute(key, text)))
            .into_iter()
            .flatten()
    }

    /// How densely the window was sampled: windows of different densities are added up by it.
    fn density(&mut self, event: EventId) -> impl Iterator<Item = i32> + use<> {
        let density = self.content.density(event);
        let pairs = [
            ("whit.samples_per_second", density.per_second),
            ("whit.cpus", density.cpus.map(u64::from)),
        ];
        let number = |(key, number): (&str, Option<u64>)| {
            number.map(|number| self.attribute(key, Value::Int(number as i64)))
        };
        pairs.map(number).into_iter().flatten()
    }

    fn mappings(&mut self) -> Vec<Mapping> {
        let profile = self.content.profile;
        let mut mappings = vec![Mapping::default()];
        for (at, dso) in profile.dsos.iter().enumerate() {
            let build_id = dso.build_id.map(|id| id.to_string());
            let attribute =
                |id: String| self.text_attribute("process.executable.build_id.gnu", &id);
            let attribute_indices = build_id.map(attribute).into_iter().collect();
            mappings.push(Mapping {
                memory_limit: profile.mapped_bytes.get(at).copied().flatten().unwrap_or(0),
                filename_strindex: self.string(dso.path.exact()),
                attribute_indices,
            });
        }
        mappings
    }

    fn functions(&mut self) -> Vec<Function> {
        let files = self.content.files_of_functions();
        let mut functions = vec![Function::default()];
        for (at, function) in self.content.profile.functions.iter().enumerate() {
            let name_strindex = self.string(function.name.exact());
            let filename_strindex = self.string(files[at]);
            functions.push(Function { name_strindex, filename_strindex, system_name_strindex: 0 });
        }
        functions
    }

    fn locations(&mut self) -> Vec<Location> {
        let profile = self.content.profile;
        let mut locations = vec![Location::default()];
        for range in self.content.frames_by_location() {
            let physical = &profile.frames[range.start];
            let dso = profile.functions[physical.function.index()].dso;
            let kind = match profile.dsos[dso.index()].kind {
                _ if physical.kernel => "kernel",
                DsoKind::Jit => "jit",
                _ => "native",
            };
            let lines = profile.frames[range.clone()].iter().rev().map(|frame| Line {
                function_index: frame.function.0 as i32 + 1,
                line: frame.source.map_or(0, |(_, line)| i64::from(line)),
            });
            locations.push(Location {
                mapping_index: dso.0 as i32 + 1,
                address: physical.address.0,
                lines: lines.collect(),
                attribute_indices: vec![self.text_attribute("profile.frame.type", kind)],
            });
        }
        locations
    }

    fn finish(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut add = |part: &ProfilesDictionary| part.encode(&mut bytes).map_err(io::Error::other);
        add(&ProfilesDictionary {
            mapping_table: self.mappings(),
            ..ProfilesDictionary::default()
        })?;
        add(&ProfilesDictionary {
            location_table: self.locations(),
            ..ProfilesDictionary::default()
        })?;
        add(&ProfilesDictionary {
            function_table: self.functions(),
            ..ProfilesDictionary::default()
        })?;
        add(&ProfilesDictionary {
            link_table: vec![Link::default()],
            string_table: self.strings,
            attribute_table: self.attributes,
            stack_table: self.stacks,
            ..ProfilesDictionary::default()
        })?;
        Ok(bytes)
    }
}
