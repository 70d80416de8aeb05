//! One profile of several recordings.
//!
//! Events, commands, cgroups, binaries, functions, files and call chains are the same where their names are. Threads are the
//! same where their numbers are, since views tell them apart by these alone. Ledgers, context switches and blocks of
//! time belong to one recording, and a merged profile has none of them.

use crate::facets::Facets;
use crate::model::{
    CallNode, CgroupId, CgroupInfo, CommId, DsoId, DsoInfo, EventId, EventInfo, FacetsId, FileId,
    Frame, FrameId, FunctionId, FunctionInfo, LossReport, NodeId, Profile, RecordStats, SampleRow,
    TextId, ThreadId, ThreadInfo,
};
use crate::warning::Warning;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use whit_types::{BuildId, OutsideText, Pid, Tid};

/// Adds up profiles. `None` without any; one alone stays as it is.
pub fn merge(profiles: Vec<Profile>) -> Option<Profile> {
    let count = profiles.len();
    let mut profiles = profiles.into_iter();
    let first = profiles.next()?;
    if count == 1 {
        return Some(first);
    }
    let mut merger = Merger::default();
    merger.merged.recording = first.recording.clone();
    for profile in std::iter::once(first).chain(profiles) {
        merger.add(&profile);
    }
    Some(merger.finish())
}

/// Distinct values with the numbers that they got.
struct Known<K>(FxHashMap<K, u32>);

impl<K> Default for Known<K> {
    fn default() -> Self {
        Known(FxHashMap::default())
    }
}

impl<K: Hash + Eq> Known<K> {
    fn number<T>(&mut self, key: K, list: &mut Vec<T>, value: impl FnOnce() -> T) -> u32 {
        *self.0.entry(key).or_insert_with(|| {
            list.push(value());
            (list.len() - 1) as u32
        })
    }
}

type RowKey = (u32, u32, u32, u32, u32);
/// Function, address, file and line, whether inlined, whether of the kernel.
type FrameKey = (u32, u64, Option<(u32, u32)>, bool, bool);

#[derive(Default)]
struct Merger {
    merged: Profile,
    paths: Vec<String>,
    events: Known<OutsideText>,
    comms: Known<OutsideText>,
    cgroups: Known<OutsideText>,
    facets: Known<Facets>,
    texts: Known<OutsideText>,
    threads: Known<(Pid, Tid)>,
    dsos: Known<(OutsideText, Option<BuildId>)>,
    functions: Known<(u32, OutsideText, bool)>,
    files: Known<OutsideText>,
    frames: Known<FrameKey>,
    nodes: Known<(u32, u32)>,
    rows: FxHashMap<RowKey, usize>,
    overflowed: bool,
}

/// The numbers of one profile's parts in the merged one.
struct Numbers {
    events: Vec<u32>,
    comms: Vec<u32>,
    facets: Vec<u32>,
    threads: Vec<u32>,
    nodes: Vec<u32>,
}

impl Merger {
    fn add(&mut self, profile: &Profile) {
        let comms = self.names(&profile.comms);
        let dsos = self.dsos(profile);
        let frames = self.frames(profile, &dsos);
        let numbers = Numbers {
            events: self.events(&profile.events),
            facets: self.facets(profile, &frames, &dsos),
            threads: self.threads(&profile.threads, &comms),
            nodes: self.nodes(profile, &frames),
            comms,
        };
        for row in &profile.rows {
            self.row(row, &numbers);
        }
        self.describe(profile, &numbers);
    }

    fn names(&mut self, comms: &[OutsideText]) -> Vec<u32> {
        let number = |comm: &OutsideText| {
            self.comms.number(comm.clone(), &mut self.merged.comms, || comm.clone())
        };
        comms.iter().map(number).collect()
    }

    fn events(&mut self, events: &[EventInfo]) -> Vec<u32> {
        let list = &mut self.merged.events;
        let samples = &mut self.merged.stats.samples_by_event;
        let mut number = |event: &EventInfo| {
            let number = self.events.number(event.name.clone(), list, || {
                samples.push(0);
                EventInfo { name: event.name.clone(), ..EventInfo::default() }
            });
            let merged = &mut list[number as usize];
            merged.lost_samples = merged.lost_samples.saturating_add(event.lost_samples);
            number
        };
        events.iter().map(&mut number).collect()
    }

    fn facets(&mut self, profile: &Profile, frames: &[u32], dsos: &[u32]) -> Vec<u32> {
        let known = &mut self.cgroups;
        let list = &mut self.merged.cgroups;
        let cgroup = |cgroup: &CgroupInfo| {
            CgroupId(known.number(cgroup.path.clone(), list, || cgroup.clone()))
        };
        let cgroups: Vec<CgroupId> = profile.cgroups.iter().map(cgroup).collect();
        let texts = &mut self.texts;
        let list = &mut self.merged.texts;
        let text = |text: &OutsideText| TextId(texts.number(text.clone(), list, || text.clone()));
        let texts: Vec<TextId> = profile.texts.iter().map(text).collect();
        let number = |facets: &Facets| {
            let cgroup = |id: CgroupId| cgroups.get(id.index()).copied();
            let frame = |id: FrameId| frames.get(id.index()).copied().map(FrameId);
            let text = |id: TextId| texts.get(id.index()).copied();
            let mut facets = facets.renumbered(cgroup, frame, text);
            if let Some(data) = &mut facets.data {
                data.dso = data.dso.and_then(|id| dsos.get(id.index()).copied().map(DsoId));
            }
            self.facets.number(facets, &mut self.merged.facets, || facets)
        };
        profile.facets.iter().map(number).collect()
    }

    fn threads(&mut self, threads: &[ThreadInfo], comms: &[u32]) -> Vec<u32> {
        let number = |thread: &ThreadInfo| {
            let comm = CommId(comms[thread.comm.index()]);
            self.threads.number((thread.pid, thread.tid), &mut self.merged.threads, || ThreadInfo {
                comm,
                ..thread.clone()
            })
        };
        threads.iter().map(number).collect()
    }

    fn dsos(&mut self, profile: &Profile) -> Vec<u32> {
        let list = &mut self.merged.dsos;
        let dso = |dso: &DsoInfo| {
            self.dsos.number((dso.path.clone(), dso.build_id), list, || dso.clone())
        };
        let dsos: Vec<u32> = profile.dsos.iter().map(dso).collect();
        take_known(&mut self.merged.mapped_bytes, &dsos, &profile.mapped_bytes);
        take_known(&mut self.merged.base_addresses, &dsos, &profile.base_addresses);
        dsos
    }

    fn frames(&mut self, profile: &Profile, dsos: &[u32]) -> Vec<u32> {
        let merged = &mut self.merged;
        let function = |function: &FunctionInfo| {
            let dso = dsos[function.dso.index()];
            let key = (dso, function.name.clone(), function.known);
            self.functions.number(key, &mut merged.functions, || FunctionInfo {
                dso: DsoId(dso),
                ..function.clone()
            })
        };
        let functions: Vec<u32> = profile.functions.iter().map(function).collect();
        take_known(&mut merged.function_sizes_bytes, &functions, &profile.function_sizes_bytes);
        take_known(&mut merged.function_starts, &functions, &profile.function_starts);
        let file = |file: &OutsideText| {
            self.files.number(file.clone(), &mut merged.files, || file.clone())
        };
        let files: Vec<u32> = profile.files.iter().map(file).collect();
        let frame = |frame: &Frame| {
            let function = functions[frame.function.index()];
            let source = frame.source.map(|(file, line)| (files[file.index()], line));
            let key = (function, frame.address.0, source, frame.inlined, frame.kernel);
            self.frames.number(key, &mut merged.frames, || Frame {
                function: FunctionId(function),
                source: source.map(|(file, line)| (FileId(file), line)),
                ..*frame
            })
        };
        profile.frames.iter().map(frame).collect()
    }

    /// Parents come before their children in each profile, and so they do here.
    fn nodes(&mut self, profile: &Profile, frames: &[u32]) -> Vec<u32> {
        let mut nodes: Vec<u32> = Vec::with_capacity(profile.nodes.len());
        for node in &profile.nodes {
            let parent = nodes.get(node.parent.index()).copied().unwrap_or(NodeId::NONE.0);
            let frame = frames[node.frame.index()];
            let merged = CallNode { parent: NodeId(parent), frame: FrameId(frame) };
            nodes.push(self.nodes.number((parent, frame), &mut self.merged.nodes, || merged));
        }
        nodes
    }

    fn row(&mut self, row: &SampleRow, numbers: &Numbers) {
        let event = numbers.events[row.event.index()];
        let info = &mut self.merged.events[event as usize];
        // No view can overflow if not even the sum of all rows does.
        let period = row.period.min(u64::MAX - info.period);
        self.overflowed |= period < row.period;
        info.period += period;
        info.samples += row.samples;
        let merged = SampleRow {
            event: EventId(event),
            thread: ThreadId(numbers.threads[row.thread.index()]),
            comm: CommId(numbers.comms[row.comm.index()]),
            facets: FacetsId(numbers.facets.get(row.facets.index()).copied().unwrap_or(0)),
            node: NodeId(numbers.nodes.get(row.node.index()).copied().unwrap_or(NodeId::NONE.0)),
            samples: 0,
            period: 0,
        };
        let key = (event, merged.thread.0, merged.comm.0, merged.facets.0, merged.node.0);
        let rows = &mut self.merged.rows;
        let slot = *self.rows.entry(key).or_insert_with(|| {
            rows.push(merged);
            rows.len() - 1
        });
        rows[slot].samples += row.samples;
        rows[slot].period += period;
    }

    fn describe(&mut self, profile: &Profile, numbers: &Numbers) {
        let path = profile.recording.path.exact().to_owned();
        let from = |warning: &Warning| Warning::OfRecording {
            path: profile.recording.path.clone(),
            warning: Box::new(warning.clone()),
        };
        self.merged.warnings.extend(profile.warnings.iter().map(from));
        self.paths.push(path);
        let recording = &mut self.merged.recording;
        recording.has_callchains |= profile.recording.has_callchains;
        if self.paths.len() > 1 {
            recording.size_bytes += profile.recording.size_bytes;
            let [first, last] = [profile.recording.first_sample, profile.recording.last_sample];
            recording.first_sample = recording.first_sample.into_iter().chain(first).min();
            recording.last_sample = recording.last_sample.into_iter().chain(last).max();
        }
        match (&mut self.merged.parallelism, &profile.parallelism) {
            (Some(sum), Some(more)) => sum.add(more),
            (sum @ None, more) => *sum = *more,
            (Some(_), None) => {}
        }
        add_losses(&mut self.merged.losses, &profile.losses);
        add_stats(&mut self.merged.stats, &profile.stats, &numbers.events);
    }

    fn finish(mut self) -> Profile {
        self.merged.recording.path = self.paths.join(", ").into();
        if self.overflowed {
            self.merged.warnings.push(Warning::MergedPeriodOverflow);
        }
        self.merged
    }
}

/// The first known value of each is taken.
fn take_known<T: Copy>(to: &mut Vec<Option<T>>, numbers: &[u32], values: &[Option<T>]) {
    for (number, value) in numbers.iter().zip(values) {
        let number = *number as usize;
        if to.len() <= number {
            to.resize(number + 1, None);
        }
        to[number] = to[number].or(*value);
    }
}

fn add_losses(to: &mut LossReport, from: &LossReport) {
    let sums = [
        (&mut to.lost_records, from.lost_records),
        (&mut to.lost_chunks, from.lost_chunks),
        (&mut to.lost_samples, from.lost_samples),
        (&mut to.paused_ns, from.paused_ns),
        (&mut to.elapsed_ns, from.elapsed_ns),
        (&mut to.truncated_bytes, from.truncated_bytes),
    ];
    sums.into_iter().for_each(|(to, from)| *to = to.saturating_add(from));
}

fn add_stats(to: &mut RecordStats, from: &RecordStats, events: &[u32]) {
    add_counts(&mut to.by_type, &from.by_type);
    add_counts(&mut to.unwind_stops, &from.unwind_stops);
    to.continued_chains += from.continued_chains;
    for (event, samples) in events.iter().zip(&from.samples_by_event) {
        to.samples_by_event[*event as usize] += samples;
    }
}

fn add_counts<K: PartialEq + Clone>(to: &mut Vec<(K, u64)>, from: &[(K, u64)]) {
    for (key, count) in from {
        match to.iter_mut().find(|(known, _)| known == key) {
            Some((_, sum)) => *sum += count,
            None => to.push((key.clone(), *count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of one function of a thread, and one event more for `others`.
    fn profile(others: &[&str], tid: i32, function: &str, period: u64) -> Profile {
        let mut profile = Profile::default();
        for name in others.iter().chain(&["cycles"]) {
            profile.events.push(EventInfo { name: (*name).into(), ..EventInfo::default() });
            profile.stats.samples_by_event.push(0);
        }
        let event = EventId(others.len() as u32);
        profile.comms.push("app".into());
        let (pid, tid) = (Pid(1), Tid(tid));
        profile.threads.push(ThreadInfo { pid, tid, comm: CommId(0) });
        let (path, short_name) = ("/bin/app".into(), "app".into());
        let kind = crate::model::DsoKind::Elf;
        profile.dsos.push(DsoInfo { path, short_name, build_id: None, kind });
        let mut parent = NodeId::NONE;
        for (i, name) in ["main", function].into_iter().enumerate() {
            let dso = DsoId(0);
            profile.functions.push(FunctionInfo { name: name.into(), dso, known: true });
            let function = FunctionId(i as u32);
            let address = whit_types::Svma(i as u64);
            let frame = Frame { function, address, source: None, inlined: false, kernel: false };
            profile.frames.push(frame);
            profile.nodes.push(CallNode { parent, frame: FrameId(i as u32) });
            parent = NodeId(i as u32);
        }
        let (thread, comm, facets) = (ThreadId(0), CommId(0), FacetsId(0));
        let row = SampleRow { event, thread, comm, facets, node: parent, samples: 1, period };
        profile.rows.push(row);
        profile.losses.lost_records = 3;
        profile.warnings.push(Warning::PeriodOverflow);
        profile.recording.path = function.into();
        profile
    }

    #[test]
    fn equal_names_are_one_and_others_stay_apart() {
        let parts = vec![
            profile(&[], 7, "leaf", 10),
            profile(&["faults"], 7, "leaf", 5),
            profile(&[], 8, "other", 1),
        ];
        let merged = merge(parts).unwrap();
        let events: Vec<_> = merged.events.iter().map(|e| (e.name.exact(), e.period)).collect();
        assert_eq!(events, [("cycles", 16), ("faults", 0)]);
        let rows: Vec<_> = merged.rows.iter().map(|row| (row.samples, row.period)).collect();
        assert_eq!(rows, [(2, 15), (1, 1)]);
        assert_eq!((merged.nodes.len(), merged.functions.len(), merged.threads.len()), (3, 3, 2));
        assert_eq!(merged.losses.lost_records, 9);
        assert_eq!(merged.recording.path.exact(), "leaf, leaf, other");
        let Warning::OfRecording { path, warning } = &merged.warnings[2] else { panic!() };
        assert!(path.exact() == "other" && matches!(**warning, Warning::PeriodOverflow));
    }

    #[test]
    fn sums_end_at_the_largest_number() {
        let parts = vec![profile(&[], 7, "leaf", u64::MAX - 1), profile(&[], 7, "leaf", 5)];
        let merged = merge(parts).unwrap();
        assert_eq!((merged.events[0].period, merged.rows[0].period), (u64::MAX, u64::MAX));
        assert!(matches!(merged.warnings.last(), Some(Warning::MergedPeriodOverflow)));
        assert!(merge(Vec::new()).is_none());
    }
}
