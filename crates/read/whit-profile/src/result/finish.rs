//! From sums over places to the finished profile: symbols, inlined frames, losses.

use crate::call_chain::chain::CodePlace;
use crate::call_chain::stops::StopCounts;
use crate::facets::{Facets, RawCgroup, RawFacets};
use crate::first_pass::prepare::Prepared;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::{RecordedDso, RecordedKind};
use crate::model::{
    BlockContext, BlockWeight, Blocks, CallNode, CgroupId, CgroupInfo, CommId, DsoId, DsoInfo,
    DsoKind, EventId, EventInfo, FacetsId, FileId, Frame, FrameId, FunctionId, FunctionInfo,
    NodeId, Profile, RecordedGroup, SampleRow, SingleSample, Singles, TextId, ThreadId, ThreadInfo,
};
use crate::naming::place_symbols::{NamedCode, PlaceNamer};
use crate::precision::Precision;
use crate::reading::Reading;
use crate::result::describe::is_read;
use crate::result::tree_order::{order_of_nodes, order_of_places};
use crate::samples::Samples;
use crate::second_pass::aggregate::{Aggregate, NO_NODE};
use crate::second_pass::companion_fetch;
use crate::second_pass::singles::RawSingle;
use crate::sums::block_sums::{BlockSums, Chain};
use crate::sums::row_key::RowKey;
use crate::warning::Warning;
use rustc_hash::FxHashMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use whit_perfdata::blocked::is_blocked;
use whit_perfdata::feature::GroupDesc;
use whit_perfdata::read_split::ReadSplit;
use whit_perfdata::reader::Recording;
use whit_types::{OutsideText, Pid, Svma, Tid};

/// Places that one thread names before it takes the next ones.
const PLACES_PER_TASK: usize = 256;

/// The name of a group that has none.
const NO_NAME: &str = "{anon_group}";

/// Names everything and builds the profile.
pub(crate) fn finish(
    reading: Reading<'_>,
    question: &Samples,
    prepared: &Prepared,
    sums: Aggregate,
    stops: &StopCounts,
) -> Profile {
    let fetched = companion_fetch::fetch(prepared, &reading.options.names.companions, &sums, &[]);
    let mut profile = finish_with(reading, question, prepared, sums, stops, |_| ()).0;
    profile.warnings.extend(fetched);
    profile
}

/// The same, with `more` drawn from the same tables.
pub(crate) fn finish_with<T>(
    reading: Reading<'_>,
    question: &Samples,
    prepared: &Prepared,
    mut sums: Aggregate,
    stops: &StopCounts,
    more: impl FnOnce(&mut Builder) -> T,
) -> (Profile, T) {
    let recording = reading.recording;
    let order = order_of_places(&sums.places.values);
    let (threads, names_kernel) = (reading.threads(), question.names_kernel);
    let named = name_places(prepared, &sums.places.values, &order, threads, names_kernel);
    let mut builder = Builder::new(prepared);
    builder.keeps_singles = sums.singles.is_some();
    builder.add_frames(&sums.places.values, named, &order);
    builder.add_nodes(&sums, &order);
    builder.profile.texts = sums.texts.values.iter().map(OutsideText::from).collect();
    builder.add_rows(&sums);
    builder.profile.singles = question.singles.map(|_| Singles {
        samples: builder.singles(sums.singles.take().unwrap_or_default()),
        slice_ns: question.facets.time_quantum_ns.map(NonZeroU64::get),
        loss_windows: prepared.loss_windows.clone(),
    });
    if let Some(blocks) = sums.blocks.take() {
        builder.add_blocks(blocks, &sums);
    }
    let more = more(&mut builder);
    let overflowed = builder.overflowed;
    let groups = groups(recording, &prepared.scan.samples_by_event);
    let mut profile = builder.profile;
    profile.events = events(recording, prepared, &profile);
    profile.groups = groups;
    crate::result::describe::describe(
        &mut profile,
        recording,
        prepared,
        &sums,
        stops,
        names_kernel,
    );
    profile.is_part = reading.selection().is_part();
    let unmatched = crate::result::without_match::warnings(reading.selection(), prepared, &profile);
    profile.warnings.extend(unmatched);
    profile.warnings.extend(crate::result::one_frame::warning(reading, question, &profile));
    let blocks = prepared.scan.wrapped.auxtrace;
    profile.warnings.extend((blocks > 0).then_some(Warning::HardwareTrace { blocks }));
    if overflowed {
        profile.warnings.push(Warning::PeriodOverflow);
    }
    (profile, more)
}

fn events(recording: &Recording, prepared: &Prepared, profile: &Profile) -> Vec<EventInfo> {
    let redraws = recording.features.ledger().map_or(0, |ledger| ledger.period_redraws);
    let samplers = samplers(recording);
    let mut events: Vec<_> = recording
        .events
        .iter()
        .zip(&prepared.scan.lost_samples_by_event)
        .zip(samplers)
        .map(|((event, lost), sampler)| EventInfo {
            name: event.name.as_str().into(),
            lost_samples: *lost,
            precision: Precision::of(&recording.events[sampler].attr, redraws),
            is_blocked: is_blocked(event),
            ..EventInfo::default()
        })
        .collect();
    for row in &profile.rows {
        let event = &mut events[row.event.index()];
        event.samples += row.samples;
        event.period += row.period;
    }
    events
}

/// For each event, the one that takes its samples: itself, or the leader of its group where the leader alone samples.
fn samplers(recording: &Recording) -> Vec<usize> {
    let mut samplers: Vec<_> = (0..recording.events.len()).collect();
    let Some(split) = ReadSplit::of(&recording.events) else { return samplers };
    for group in recording.features.group_desc().unwrap_or_default() {
        let leader = group.leader_index as usize;
        let members = samplers.iter_mut().skip(leader).take(group.nr_members as usize);
        for (sampler, event) in members.zip(recording.events.iter().skip(leader)) {
            if event.attr.sample_period_or_freq == 0 && split.splits(leader, *sampler) {
                *sampler = leader;
            }
        }
    }
    samplers
}

/// Groups as the recording describes them. Their events follow each other. Events that were only read with their
/// leader's samples are left out where these cannot be split: to have no samples is no share of zero then.
fn groups(recording: &Recording, samples_by_event: &[u64]) -> Vec<RecordedGroup> {
    let described = recording.features.group_desc().unwrap_or_default();
    let events = recording.events.len() as u32;
    let split = ReadSplit::of(&recording.events);
    let group = |group: GroupDesc| {
        let end = group.leader_index.checked_add(group.nr_members).filter(|end| *end <= events)?;
        let is_named = !group.name.is_empty() && group.name != NO_NAME;
        let reads = is_read(&recording.events.get(group.leader_index as usize)?.attr);
        let is_member = |event: &u32| {
            let (leader, event) = (group.leader_index as usize, *event as usize);
            let is_split = split.as_ref().is_some_and(|split| split.splits(leader, event));
            let samples = samples_by_event.get(event);
            event == leader || !reads || is_split || samples.is_some_and(|samples| *samples > 0)
        };
        let events: Vec<_> = (group.leader_index..end).filter(is_member).map(EventId).collect();
        let name = is_named.then(|| group.name.into());
        (events.len() > 1).then_some(RecordedGroup { name, events })
    };
    described.into_iter().filter_map(group).collect()
}

/// Names all places, several threads at once; neighbours in a binary go to the same thread.
/// The kernel stands last in the order: its symbols are still being loaded.
pub(crate) fn name_places(
    prepared: &Prepared,
    places: &[CodePlace],
    order: &[u32],
    threads: usize,
    names_kernel: bool,
) -> Vec<NamedCode> {
    // No task spans two binaries, so that two threads can open two of them at a time.
    let same_dso = |a: &u32, b: &u32| places[*a as usize].dso == places[*b as usize].dso;
    let tasks: Vec<_> =
        order.chunk_by(same_dso).flat_map(|part| part.chunks(PLACES_PER_TASK)).collect();
    let next = AtomicUsize::new(0);
    let name = |namer: &PlaceNamer<'_>, place: &CodePlace| {
        if place.kernel && !names_kernel {
            return NamedCode { address: Svma(place.place), ..NamedCode::default() };
        }
        namer.name(place)
    };
    let worker = || {
        let namer = PlaceNamer::new(&prepared.dsos, &prepared.binaries);
        let mut done = Vec::new();
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.extend(task.iter().map(|i| (*i, name(&namer, &places[*i as usize]))));
        }
        done
    };
    let mut named = vec![NamedCode::default(); places.len()];
    let workers = threads.min(tasks.len()).max(1);
    let (own, others) = prepared.kernel_load.run_during(workers, worker);
    // A namer that panicked leaves its places without names; they show as addresses.
    let others = others.into_iter().filter_map(Result::ok).flatten();
    for (index, name) in own.into_iter().chain(others) {
        named[index as usize] = name;
    }
    named
}

/// A profile in the making.
pub(crate) struct Builder {
    profile: Profile,
    functions: FxHashMap<(DsoId, Arc<str>), FunctionId>,
    files: FxHashMap<Arc<str>, FileId>,
    /// Per place: its frames, the physical one first, then those of inlined functions.
    frames_of_place: Vec<Vec<FrameId>>,
    /// Per node of the sums.
    node_of: Vec<NodeId>,
    /// Per thread of the sums.
    thread_of: Vec<ThreadId>,
    facets_of: Vec<FacetsId>,
    /// Where the rows of the sums went, if samples are kept one by one.
    row_of: FxHashMap<RowKey, u32>,
    keeps_singles: bool,
    comm_of_model: FxHashMap<u32, CommId>,
    comm_by_name: FxHashMap<Arc<str>, CommId>,
    comm_names: Vec<Arc<str>>,
    cgroup_paths: Vec<Arc<str>>,
    cgroups: FxHashMap<RawCgroup, CgroupId>,
    last_comms: FxHashMap<(Pid, Tid), u32>,
    /// Number of events.
    events: usize,
    /// True where the periods of an event add up to more than 64 bits hold.
    overflowed: bool,
}

impl Builder {
    fn new(prepared: &Prepared) -> Builder {
        let dsos = prepared.dsos.iter().map(|(index, dso)| dso_info(prepared, index, dso));
        let mapped = prepared.dsos.iter().map(|(index, _)| prepared.dsos.mapped_bytes(index));
        let bases = prepared.dsos.iter().map(|(index, _)| prepared.binaries.base_of_opened(index));
        let (dsos, mapped_bytes) = (dsos.collect(), mapped.collect());
        let base_addresses = bases.collect();
        Builder {
            profile: Profile { dsos, mapped_bytes, base_addresses, ..Profile::default() },
            functions: FxHashMap::default(),
            files: FxHashMap::default(),
            frames_of_place: Vec::new(),
            node_of: Vec::new(),
            thread_of: Vec::new(),
            facets_of: Vec::new(),
            row_of: FxHashMap::default(),
            keeps_singles: false,
            comm_of_model: FxHashMap::default(),
            comm_by_name: FxHashMap::default(),
            comm_names: prepared.model.comm_names().to_vec(),
            cgroup_paths: prepared.cgroups.paths().to_vec(),
            cgroups: FxHashMap::default(),
            last_comms: FxHashMap::default(),
            events: prepared.events.len(),
            overflowed: false,
        }
        .with_last_comms(prepared)
    }

    fn with_last_comms(mut self, prepared: &Prepared) -> Builder {
        let all = prepared.model.last_comms();
        self.last_comms.extend(all.map(|(thread, comm)| (thread, comm.0)));
        self
    }

    fn add_frames(&mut self, places: &[CodePlace], mut named: Vec<NamedCode>, order: &[u32]) {
        self.frames_of_place = vec![Vec::new(); places.len()];
        for index in order {
            let (place, name) =
                (&places[*index as usize], std::mem::take(&mut named[*index as usize]));
            let dso = DsoId(place.dso.0);
            let (text, known) = match name.function.or(name.stand_in) {
                Some(text) => (text, true),
                None => (format!("{:#018x}", name.address.0).into(), false),
            };
            let code = name.function_size_bytes.map(|size_bytes| (name.function_start, size_bytes));
            let function = self.function(dso, text, known, code);
            let mut source = self.source(name.source);
            let mut frames = vec![self.frame(place, name.address, function, source, false)];
            for inlined in name.inlined {
                // The location inside an inlined function; that of its caller is the call.
                let function = self.function(dso, inlined.name, true, None);
                source = self.source(inlined.source);
                frames.push(self.frame(place, name.address, function, source, true));
            }
            self.frames_of_place[*index as usize] = frames;
        }
    }

    fn frame(
        &mut self,
        place: &CodePlace,
        address: Svma,
        function: FunctionId,
        source: Option<(FileId, u32)>,
        inlined: bool,
    ) -> FrameId {
        let frames = &mut self.profile.frames;
        frames.push(Frame { function, address, source, inlined, kernel: place.kernel });
        FrameId((frames.len() - 1) as u32)
    }

    fn function(
        &mut self,
        dso: DsoId,
        name: Arc<str>,
        known: bool,
        code: Option<(Svma, u64)>,
    ) -> FunctionId {
        let functions = &mut self.profile.functions;
        let starts = &mut self.profile.function_starts;
        let sizes = &mut self.profile.function_sizes_bytes;
        let id = *self.functions.entry((dso, name)).or_insert_with_key(|(_, name)| {
            functions.push(FunctionInfo { name: name.into(), dso, known });
            starts.push(None);
            sizes.push(None);
            FunctionId((functions.len() - 1) as u32)
        });
        // The one of that name may have been met inlined before.
        let (start, size) = (&mut starts[id.index()], &mut sizes[id.index()]);
        *start = start.or(code.map(|(start, _)| start));
        *size = size.or(code.map(|(_, size_bytes)| size_bytes));
        id
    }

    fn source(&mut self, source: Option<(Arc<str>, u32)>) -> Option<(FileId, u32)> {
        let (file, line) = source?;
        let files = &mut self.profile.files;
        let id = *self.files.entry(file).or_insert_with_key(|file| {
            files.push(file.into());
            FileId((files.len() - 1) as u32)
        });
        Some((id, line))
    }

    /// Parents come before their children in the order, and so they do in the profile's tree.
    fn add_nodes(&mut self, sums: &Aggregate, order_of_places: &[u32]) {
        let nodes = &sums.nodes.values;
        self.node_of = vec![NodeId::NONE; nodes.len()];
        for index in order_of_nodes(nodes, order_of_places) {
            let node = nodes[index as usize];
            let mut parent = match node.parent {
                NO_NODE => NodeId::NONE,
                parent => self.node_of[parent as usize],
            };
            for frame in &self.frames_of_place[node.place as usize] {
                self.profile.nodes.push(CallNode { parent, frame: *frame });
                parent = NodeId((self.profile.nodes.len() - 1) as u32);
            }
            self.node_of[index as usize] = parent;
        }
    }

    /// Threads in order of their numbers, which equally heavy rows go by: the order in which they
    /// were found depends on which thread of ours decoded what. Gives back the id of each as it was
    /// found.
    fn add_threads(&mut self, sums: &Aggregate) -> Vec<ThreadId> {
        let found = &sums.threads.values;
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_unstable_by_key(|index| found[*index]);
        let mut ids = vec![ThreadId(0); found.len()];
        for index in order {
            let (pid, tid) = found[index];
            let comm = self.last_comms.get(&(pid, tid)).copied();
            let comm = self.comm(comm.unwrap_or(u32::MAX), tid);
            ids[index] = ThreadId(self.profile.threads.len() as u32);
            self.profile.threads.push(ThreadInfo { pid, tid, comm });
        }
        ids
    }

    /// Facets in an order that no thread of ours decides, after those of rows that are told apart by
    /// none. Gives back the id of each as it was found.
    fn add_facets(&mut self, found: &[RawFacets]) -> Vec<FacetsId> {
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_unstable_by_key(|index| found[*index]);
        let mut ids = vec![FacetsId(0); found.len()];
        self.profile.facets.push(Facets::default());
        for index in order {
            let facets = self.facets(found[index]);
            if facets != Facets::default() {
                ids[index] = FacetsId(self.profile.facets.len() as u32);
                self.profile.facets.push(facets);
            }
        }
        ids
    }

    fn facets(&mut self, found: RawFacets) -> Facets {
        let cgroup = found.cgroup.map(|cgroup| self.cgroup(cgroup));
        let frames = &self.frames_of_place;
        let frame = |place: u32| frames.get(place as usize)?.first().copied();
        found.renumbered(|_| cgroup, frame, |text| Some(TextId(text)))
    }

    fn cgroup(&mut self, cgroup: RawCgroup) -> CgroupId {
        let cgroups = &mut self.profile.cgroups;
        let paths = &self.cgroup_paths;
        *self.cgroups.entry(cgroup).or_insert_with(|| {
            let (path, known) = match cgroup {
                RawCgroup::Named(index) => (OutsideText::from(&paths[index.0 as usize]), true),
                RawCgroup::Unnamed(number) => (format!("[cgroup {number}]").into(), false),
            };
            cgroups.push(CgroupInfo { path, known });
            CgroupId((cgroups.len() - 1) as u32)
        })
    }

    fn add_rows(&mut self, sums: &Aggregate) {
        let threads = self.add_threads(sums);
        let thread_of = |key: &RowKey| threads[key.thread as usize];
        let facets = self.add_facets(&sums.facets.values);
        let facets_of = |key: &RowKey| facets_id(&facets, key.facets);
        let mut rows: Vec<_> = sums.rows.iter().collect();
        rows.sort_unstable_by_key(|(key, _)| {
            (key.event, thread_of(key), key.comm, facets_of(key), self.node_of[key.node as usize])
        });
        // No view can overflow if not even the sum of all rows does.
        let mut room = vec![u64::MAX; self.events];
        for (key, weight) in rows {
            let room = &mut room[key.event as usize];
            let period = weight.period.min(*room);
            *room -= period;
            self.overflowed |= period < weight.period;
            let (_, tid) = sums.threads.values[key.thread as usize];
            let row = SampleRow {
                event: EventId(key.event),
                thread: thread_of(key),
                comm: self.comm(key.comm, tid),
                facets: facets_of(key),
                node: self.node_of[key.node as usize],
                samples: weight.samples,
                period,
            };
            if self.keeps_singles {
                self.row_of.insert(*key, self.profile.rows.len() as u32);
            }
            self.profile.rows.push(row);
            if !sums.examples.is_empty() {
                self.profile.examples.push(sums.examples.of(key).to_vec());
            }
        }
        (self.thread_of, self.facets_of) = (threads, facets);
    }

    /// Samples in an order that no thread of ours decides.
    fn singles(&mut self, found: Vec<RawSingle>) -> Vec<SingleSample> {
        let row_of = std::mem::take(&mut self.row_of);
        let named = found.into_iter().filter_map(|single| {
            let RawSingle { time, cpu, period, row } = single;
            Some(SingleSample { time, row: *row_of.get(&row)?, cpu, period })
        });
        let mut samples: Vec<_> = named.collect();
        samples.sort_unstable();
        samples
    }

    /// The sums of a block are parts of those of the rows, whose periods fit into 64 bits or were cut there.
    fn add_blocks(&mut self, blocks: BlockSums, sums: &Aggregate) {
        let mut room = vec![u64::MAX; self.events];
        let mut contexts = Vec::with_capacity(blocks.contexts.values.len());
        for context in &blocks.contexts.values {
            let (_, tid) = sums.threads.values[context.thread as usize];
            contexts.push(BlockContext {
                event: EventId(context.event),
                thread: self.thread_of[context.thread as usize],
                comm: self.comm(context.comm, tid),
                facets: facets_id(&self.facets_of, context.facets),
            });
        }
        let length_ns = blocks.length_ns();
        let mut weight = |(chain, period): (Chain, u64)| {
            let room = &mut room[contexts[chain.context as usize].event.index()];
            let period = period.min(*room);
            *room -= period;
            BlockWeight { context: chain.context, node: self.node_of[chain.node as usize], period }
        };
        let weights = blocks
            .into_blocks()
            .map(|block| block.into_iter().map(&mut weight).collect())
            .collect();
        self.profile.blocks = Some(Blocks { length_ns, contexts, weights });
    }

    /// The id of a node of the sums.
    pub(crate) fn node(&self, node: u32) -> NodeId {
        self.node_of.get(node as usize).copied().unwrap_or(NodeId::NONE)
    }

    /// The id of a thread of the sums.
    pub(crate) fn thread(&self, thread: u32) -> ThreadId {
        self.thread_of[thread as usize]
    }

    /// The command name of the process model; a thread without one goes by its number, as `:TID`.
    pub(crate) fn comm(&mut self, model_comm: u32, tid: Tid) -> CommId {
        if let Some(comm) = self.comm_of_model.get(&model_comm) {
            return *comm;
        }
        let known = self.comm_names.get(model_comm as usize).cloned();
        let is_known = known.is_some();
        let name = known.unwrap_or_else(|| format!(":{}", tid.0).into());
        let comms = &mut self.profile.comms;
        let id = *self.comm_by_name.entry(name).or_insert_with_key(|name| {
            comms.push(name.into());
            CommId((comms.len() - 1) as u32)
        });
        if is_known {
            self.comm_of_model.insert(model_comm, id);
        }
        id
    }
}

/// The id of facets as they were found.
fn facets_id(ids: &[FacetsId], found: u32) -> FacetsId {
    ids.get(found as usize).copied().unwrap_or(FacetsId(0))
}

/// The kind of code that a binary shows as.
pub(crate) fn kind_of(kind: RecordedKind) -> DsoKind {
    match kind {
        RecordedKind::Unknown => DsoKind::Unknown,
        RecordedKind::Kernel => DsoKind::Kernel,
        RecordedKind::KernelModule => DsoKind::KernelModule,
        RecordedKind::Vdso => DsoKind::Vdso,
        RecordedKind::File => DsoKind::Elf,
        RecordedKind::Anonymous(_)
        | RecordedKind::JitDump
        | RecordedKind::KernelSymbol(_)
        | RecordedKind::Interpreted(_) => DsoKind::Jit,
    }
}

fn dso_info(prepared: &Prepared, index: DsoIndex, dso: &RecordedDso) -> DsoInfo {
    let kind = kind_of(dso.kind);
    debug_assert_eq!(prepared.dsos.get(index), dso);
    let path = OutsideText::from(&dso.path);
    let short_name = short_name(dso, path.exact()).into();
    DsoInfo { path, short_name, build_id: dso.build_id, kind }
}

/// The name of a binary in rows and for `--dsos`, as perf writes it.
fn short_name(dso: &RecordedDso, path: &str) -> String {
    let base = path.rsplit('/').next().unwrap_or(path);
    match dso.kind {
        _ if path.starts_with('[') => path.to_owned(),
        RecordedKind::KernelModule => match base.split_once(".ko") {
            Some((module, _)) => format!("[{}]", module.replace('-', "_")),
            None => base.to_owned(),
        },
        RecordedKind::Anonymous(pid) => format!("[JIT] tid {}", pid.0),
        _ => base.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binaries_have_the_short_names_of_perf() {
        let named = |path: &str, kind| {
            short_name(&RecordedDso { path: path.into(), kind, ..RecordedDso::unknown() }, path)
        };
        let module = RecordedKind::KernelModule;
        assert_eq!(named("/lib/modules/6.1/kernel/sound/snd-pcm.ko.xz", module), "[snd_pcm]");
        assert_eq!(named("/lib/modules/6.1/kernel/fs/ext4/ext4.ko", module), "[ext4]");
        assert_eq!(named("[kvm]", module), "[kvm]");
        assert_eq!(named("/tmp/perf-7.map", RecordedKind::Anonymous(Pid(7))), "[JIT] tid 7");
        assert_eq!(named("/opt/driver.ko", RecordedKind::File), "driver.ko");
        assert_eq!(named("[vdso]", RecordedKind::Vdso), "[vdso]");
    }
}
