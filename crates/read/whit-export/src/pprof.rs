//! pprof: `profile.proto` in gzip, for `go tool pprof` and the many tools that read its format.
//!
//! The file is written in parts that are messages of their own; a reader takes them as one. Each event has two values,
//! its samples and its periods. A recording with context switches has the time on and off the CPU beside them.

use crate::content::Content;
use crate::delivery::Delivery;
use crate::proto::pprof::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use whit_profile::model::{CgroupId, CommId, EventId, NodeId, ThreadId};

/// Values of switches: time on a CPU, time of waits, number of switches.
const SWITCH_VALUES: [(&str, &str); 3] =
    [("cpu", "nanoseconds"), ("wait", "nanoseconds"), ("switches", "count")];

/// Names of these values where an event is called `cpu`.
const SWITCH_NAMES_WITH_CPU: [&str; 3] = ["running", "wait", "switches"];

/// Writes the profile. That of a window, for a receiver that has many, has names that are words in selectors there, and
/// no threads and processes by number: each number would be a series.
pub(crate) fn write(
    content: &Content<'_>,
    delivery: Option<&Delivery>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut file = File {
        content,
        delivery,
        out: GzEncoder::new(out, Compression::fast()),
        buffer: Vec::new(),
        strings: Strings::default(),
        events: content.sampled_events(),
        mapping_ids: Vec::new(),
        location_ids: location_ids(content),
    };
    // Index 0 is the empty string by the format's definition.
    file.strings.index("");
    file.header()?;
    file.mappings()?;
    file.functions()?;
    file.locations()?;
    file.samples()?;
    file.comments()?;
    let list = std::mem::take(&mut file.strings.list);
    for text in list {
        file.put(&Profile { string_table: vec![text], ..Profile::default() })?;
    }
    file.out.finish()?;
    Ok(())
}

/// Distinct texts, by number.
#[derive(Default)]
struct Strings {
    list: Vec<String>,
    by_text: FxHashMap<String, i64>,
}

impl Strings {
    fn index(&mut self, text: &str) -> i64 {
        if let Some(index) = self.by_text.get(text) {
            return *index;
        }
        let index = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.by_text.insert(text.to_owned(), index);
        index
    }
}

struct File<'c, 'a, W: Write> {
    content: &'c Content<'a>,
    delivery: Option<&'c Delivery>,
    out: GzEncoder<W>,
    buffer: Vec<u8>,
    strings: Strings,
    events: Vec<EventId>,
    /// By the number of the binary.
    mapping_ids: Vec<u64>,
    /// By the number of the physical frame.
    location_ids: Vec<u64>,
}

/// Numbers from 1 on without gaps: there are readers that take no others.
fn location_ids(content: &Content<'_>) -> Vec<u64> {
    let mut ids = vec![0; content.profile.frames.len()];
    for (range, id) in content.frames_by_location().zip(1..) {
        ids[range.start] = id;
    }
    ids
}

/// Samples that share these are one.
type Key = (Option<ThreadId>, Option<CommId>, Option<CgroupId>, NodeId);

impl<W: Write> File<'_, '_, W> {
    fn put(&mut self, part: &Profile) -> io::Result<()> {
        self.buffer.clear();
        part.encode(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType { kind: self.strings.index(kind), unit: self.strings.index(unit) }
    }

    fn header(&mut self) -> io::Result<()> {
        let content = self.content;
        let mut part = Profile::default();
        for event in self.events.clone() {
            let (samples, value) = self.names(event);
            part.sample_type.push(self.value_type(&samples, "count"));
            part.sample_type.push(self.value_type(&value, content.unit(event).name()));
        }
        if content.switches.is_some() {
            for (at, (kind, unit)) in SWITCH_VALUES.into_iter().enumerate() {
                let kind = self.delivery.map_or(kind, |_| SWITCH_NAMES_WITH_CPU[at]);
                part.sample_type.push(self.value_type(kind, unit));
            }
        }
        if let Some(main) = content.main_event() {
            let (_, name) = self.names(main);
            let main_type = self.value_type(&name, content.unit(main).name());
            part.default_sample_type = main_type.kind;
            part.period_type = Some(main_type);
            part.period = as_i64(content.period(main));
        }
        let (start_ns, duration_ns) = match self.delivery {
            Some(delivery) => (delivery.start_unix_ns, delivery.duration_ns),
            None => {
                let (first, last) = content.span();
                (content.unix_ns(first).0, last.since(first))
            }
        };
        part.time_nanos = as_i64(start_ns);
        part.duration_nanos = as_i64(duration_ns);
        self.put(&part)
    }

    /// The names of an event's samples and of its periods.
    fn names(&self, event: EventId) -> (String, String) {
        if self.delivery.is_some() {
            let name = self.content.series_name(event);
            let is_main = self.content.main_event() == Some(event);
            let samples = if is_main { "samples".to_owned() } else { format!("samples_{name}") };
            return (samples, name);
        }
        let name = self.content.event_name(event);
        let is_only = self.events.len() == 1;
        let samples = if is_only { "samples".to_owned() } else { format!("samples:{name}") };
        (samples, name.to_owned())
    }

    /// The first mapping is the one that pprof names as the profiled program: the binary of a user program with the most
    /// samples of its own.
    fn mappings(&mut self) -> io::Result<()> {
        let profile = self.content.profile;
        let mut own = vec![0u64; profile.dsos.len()];
        for row in &profile.rows {
            let frame = &profile.frames[profile.nodes[row.node.index()].frame.index()];
            own[profile.functions[frame.function.index()].dso.index()] += row.samples;
        }
        let mut order: Vec<usize> = (0..profile.dsos.len()).collect();
        let is_elf = |at: usize| profile.dsos[at].kind == whit_profile::model::DsoKind::Elf;
        order.sort_by_key(|&at| (!is_elf(at), std::cmp::Reverse(own[at])));
        let mut has_lines = vec![false; profile.dsos.len()];
        for frame in profile.frames.iter().filter(|frame| frame.source.is_some()) {
            has_lines[profile.functions[frame.function.index()].dso.index()] = true;
        }
        self.mapping_ids = vec![0; profile.dsos.len()];
        for (at, id) in order.into_iter().zip(1..) {
            self.mapping_ids[at] = id;
            let dso = &profile.dsos[at];
            let build_id = dso.build_id.map(|id| id.to_string()).unwrap_or_default();
            let mapping = Mapping {
                id,
                memory_limit: profile.mapped_bytes.get(at).copied().flatten().unwrap_or(0),
                filename: self.strings.index(dso.path.exact()),
                build_id: self.strings.index(&build_id),
                has_functions: true,
                has_filenames: has_lines[at],
                has_line_numbers: has_lines[at],
                has_inline_frames: has_lines[at],
                ..Mapping::default()
            };
            self.put(&Profile { mapping: vec![mapping], ..Profile::default() })?;
        }
        Ok(())
    }

    fn functions(&mut self) -> io::Result<()> {
        let files = self.content.files_of_functions();
        for (at, function) in self.content.profile.functions.iter().enumerate() {
            let name = self.strings.index(function.name.exact());
            let filename = self.strings.index(files[at]);
            // pprof takes a name that is that of the linker for a mangled one, and cuts the arguments of templates off.
            let function = Function { id: at as u64 + 1, name, system_name: 0, filename };
            self.put(&Profile { function: vec![function], ..Profile::default() })?;
        }
        Ok(())
    }

    fn locations(&mut self) -> io::Result<()> {
        let profile = self.content.profile;
        for range in self.content.frames_by_location() {
            let physical = &profile.frames[range.start];
            let line = profile.frames[range.clone()].iter().rev().map(|frame| Line {
                function_id: u64::from(frame.function.0) + 1,
                line: frame.source.map_or(0, |(_, line)| i64::from(line)),
            });
            let location = Location {
                id: self.location_ids[range.start],
                mapping_id: self.mapping_ids
                    [profile.functions[physical.function.index()].dso.index()],
                address: physical.address.0,
                line: line.collect(),
            };
            self.put(&Profile { location: vec![location], ..Profile::default() })?;
        }
        Ok(())
    }

    fn samples(&mut self) -> io::Result<()> {
        let content = self.content;
        let width = 2 * self.events.len() + content.switches.map_or(0, |_| SWITCH_VALUES.len());
        let at_event = |event: EventId| self.events.binary_search(&event).ok();
        let mut values: FxHashMap<Key, Vec<u64>> = FxHashMap::default();
        for row in &content.profile.rows {
            let Some(at) = at_event(row.event) else { continue };
            let key = self.key(row.thread, row.comm, content.cgroup(row), row.node);
            let sums = values.entry(key).or_insert_with(|| vec![0; width]);
            sums[2 * at] += row.samples;
            sums[2 * at + 1] = sums[2 * at + 1].saturating_add(row.period);
        }
        for row in content.switches.iter().flat_map(|switches| &switches.rows) {
            let key = self.key(row.thread, row.comm, None, row.node);
            let more = [row.sums.cpu_ns, row.sums.wait_ns(), row.sums.count()];
            if more != [0; 3] {
                let sums = values.entry(key).or_insert_with(|| vec![0; width]);
                let own = sums[width - SWITCH_VALUES.len()..].iter_mut();
                own.zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            }
        }
        let mut all: Vec<_> = values.into_iter().collect();
        all.sort_unstable();
        for (key, values) in all {
            let sample = self.sample(key, &values);
            self.put(&Profile { sample: vec![sample], ..Profile::default() })?;
        }
        Ok(())
    }

    fn key(&self, thread: ThreadId, comm: CommId, cgroup: Option<CgroupId>, node: NodeId) -> Key {
        let Some(delivery) = self.delivery else { return (Some(thread), Some(comm), cgroup, node) };
        let labels = delivery.labels;
        let cgroup = cgroup.filter(|_| labels.cgroup || labels.workload);
        (None, Some(comm).filter(|_| labels.comm), cgroup, node)
    }

    fn sample(&mut self, (thread, comm, cgroup, node): Key, values: &[u64]) -> Sample {
        let content = self.content;
        let mut label = Vec::new();
        if let Some(comm) = comm {
            label.push(self.text_label("comm", content.profile.comms[comm.index()].exact()));
        }
        if let Some(thread) = thread {
            let info = &content.profile.threads[thread.index()];
            label.push(self.number_label("pid", i64::from(info.pid.0)));
            label.push(self.number_label("tid", i64::from(info.tid.0)));
        }
        if let Some(cgroup) = cgroup {
            label.extend(self.cgroup_labels(cgroup));
        }
        Sample {
            location_id: content
                .locations(node)
                .map(|frame| self.location_ids[frame.index()])
                .collect(),
            value: values.iter().copied().map(as_i64).collect(),
            label,
        }
    }

    fn cgroup_labels(&mut self, cgroup: CgroupId) -> Vec<Label> {
        let labels = self.delivery.map(|delivery| delivery.labels);
        let mut pairs = Vec::new();
        if labels.is_none_or(|labels| labels.cgroup) {
            pairs.push(("cgroup", Some(self.content.cgroup_path(cgroup))));
        }
        let workload = self.content.workload(cgroup);
        if labels.is_some_and(|labels| labels.workload) {
            pairs.extend([
                ("container", workload.container),
                ("pod", workload.pod.as_deref()),
                ("unit", workload.unit),
            ]);
        }
        let label = |(key, text): (&str, Option<&str>)| Some(self.text_label(key, text?));
        pairs.into_iter().filter_map(label).collect()
    }

    fn text_label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.strings.index(key), str: self.strings.index(text), num: 0 }
    }

    fn number_label(&mut self, key: &str, num: i64) -> Label {
        Label { key: self.strings.index(key), str: 0, num }
    }

    fn comments(&mut self) -> io::Result<()> {
        let notes = self.content.notes();
        let mut comment: Vec<_> = notes.iter().map(|note| self.strings.index(&note.text)).collect();
        let main = self.content.main_event().filter(|_| self.delivery.is_some());
        if let Some(density) = main.map(|event| self.content.density(event)) {
            comment.push(self.strings.index(&density.to_string()));
        }
        self.put(&Profile { comment, ..Profile::default() })
    }
}

/// Numbers that do not fit are the largest.
fn as_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
