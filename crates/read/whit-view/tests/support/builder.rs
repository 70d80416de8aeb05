//! Builds profiles by hand, sample by sample.

use std::collections::HashMap;
use std::hash::Hash;

use whit_profile::Facets;
use whit_profile::model::*;
use whit_types::{CpuId, Pid, Svma, Tid};

/// A frame as a test writes it down.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct At {
    pub function: String,
    pub dso: String,
    pub address: u64,
    pub source: Option<(String, u32)>,
    pub inlined: bool,
    pub kernel: bool,
    pub known: bool,
}

/// A user function of a binary; the address tells code locations apart.
pub fn at(function: &str, dso: &str, address: u64) -> At {
    At {
        function: function.into(),
        dso: dso.into(),
        address,
        source: None,
        inlined: false,
        kernel: false,
        known: true,
    }
}

#[allow(dead_code, reason = "each test program uses a part")]
impl At {
    pub fn line(self, file: &str, line: u32) -> At {
        At { source: Some((file.into(), line)), ..self }
    }

    pub fn inlined(self) -> At {
        At { inlined: true, ..self }
    }

    pub fn kernel(self) -> At {
        At { kernel: true, ..self }
    }

    pub fn unknown(self) -> At {
        At { known: false, ..self }
    }
}

/// The sampled thread.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    pub comm: &'a str,
    pub pid: i32,
    pub tid: i32,
    pub cpu: Option<u32>,
}

/// Builds a [`Profile`].
#[derive(Default)]
pub struct Builder {
    pub profile: Profile,
    /// The next samples get these; the CPU is that of [`Who`].
    pub next_facets: Facets,
    comms: HashMap<String, CommId>,
    dsos: HashMap<String, DsoId>,
    functions: HashMap<(String, String), FunctionId>,
    files: HashMap<String, FileId>,
    frames: HashMap<At, FrameId>,
    nodes: HashMap<(NodeId, FrameId), NodeId>,
    threads: HashMap<(i32, i32), ThreadId>,
    facets: HashMap<Facets, FacetsId>,
    rows: HashMap<(EventId, ThreadId, CommId, FacetsId, NodeId), usize>,
}

fn intern<K: Eq + Hash, I: Copy, T>(
    map: &mut HashMap<K, I>,
    list: &mut Vec<T>,
    key: K,
    id: fn(u32) -> I,
    value: impl FnOnce() -> T,
) -> I {
    *map.entry(key).or_insert_with(|| {
        list.push(value());
        id(list.len() as u32 - 1)
    })
}

impl Builder {
    pub fn event(&mut self, name: &str) -> EventId {
        self.profile.events.push(EventInfo { name: name.into(), ..EventInfo::default() });
        self.profile.stats.samples_by_event.push(0);
        EventId(self.profile.events.len() as u32 - 1)
    }

    /// Adds one sample; `chain` begins at the root.
    pub fn sample(&mut self, event: EventId, who: Who<'_>, chain: &[At], period: u64) {
        let comm = self.comm(who.comm);
        let thread = intern(
            &mut self.threads,
            &mut self.profile.threads,
            (who.pid, who.tid),
            ThreadId,
            || ThreadInfo { pid: Pid(who.pid), tid: Tid(who.tid), comm },
        );
        self.profile.threads[thread.index()].comm = comm;
        let node = chain.iter().fold(NodeId::NONE, |parent, at| self.node(parent, at));
        let cpu = who.cpu.map(CpuId);
        let facets = Facets { cpu, ..self.next_facets };
        let list = &mut self.profile.facets;
        let facets = intern(&mut self.facets, list, facets, FacetsId, || facets);
        let rows = &mut self.profile.rows;
        let slot = *self.rows.entry((event, thread, comm, facets, node)).or_insert_with(|| {
            rows.push(SampleRow { event, thread, comm, facets, node, samples: 0, period: 0 });
            rows.len() - 1
        });
        rows[slot].samples += 1;
        rows[slot].period += period;
        let info = &mut self.profile.events[event.index()];
        (info.samples, info.period) = (info.samples + 1, info.period + period);
        self.profile.stats.samples_by_event[event.index()] += 1;
        self.profile.recording.has_callchains |= chain.len() > 1;
    }

    fn comm(&mut self, name: &str) -> CommId {
        let list = &mut self.profile.comms;
        intern(&mut self.comms, list, name.to_owned(), CommId, || name.into())
    }

    fn node(&mut self, parent: NodeId, at: &At) -> NodeId {
        let frame = self.frame(at);
        let nodes = &mut self.profile.nodes;
        intern(&mut self.nodes, nodes, (parent, frame), NodeId, || CallNode { parent, frame })
    }

    fn frame(&mut self, at: &At) -> FrameId {
        let function = self.function(at);
        let source = at.source.as_ref().map(|(file, line)| {
            let list = &mut self.profile.files;
            (intern(&mut self.files, list, file.clone(), FileId, || file.as_str().into()), *line)
        });
        intern(&mut self.frames, &mut self.profile.frames, at.clone(), FrameId, || Frame {
            function,
            address: Svma(at.address),
            source,
            inlined: at.inlined,
            kernel: at.kernel,
        })
    }

    fn function(&mut self, at: &At) -> FunctionId {
        let dso =
            intern(&mut self.dsos, &mut self.profile.dsos, at.dso.clone(), DsoId, || DsoInfo {
                path: at.dso.as_str().into(),
                short_name: at.dso.rsplit('/').next().unwrap_or_default().into(),
                build_id: None,
                kind: match at.dso.as_str() {
                    "[unknown]" => DsoKind::Unknown,
                    "[kernel.kallsyms]" => DsoKind::Kernel,
                    _ => DsoKind::Elf,
                },
            });
        let key = (at.dso.clone(), at.function.clone());
        intern(&mut self.functions, &mut self.profile.functions, key, FunctionId, || FunctionInfo {
            name: at.function.as_str().into(),
            dso,
            known: at.known,
        })
    }
}

/// Gives each row the period `part(row, block)` in each block.
#[allow(dead_code, reason = "each test program uses a part")]
pub fn with_blocks(
    mut profile: Profile,
    blocks: usize,
    part: impl Fn(usize, usize) -> u64,
) -> Profile {
    let mut weights = vec![Vec::new(); blocks];
    let mut contexts = Vec::new();
    for (context, row) in profile.rows.iter_mut().enumerate() {
        let (event, thread, comm, facets) = (row.event, row.thread, row.comm, row.facets);
        contexts.push(BlockContext { event, thread, comm, facets });
        row.period = 0;
        for (block, weights) in weights.iter_mut().enumerate() {
            let period = part(context, block);
            weights.push(BlockWeight { context: context as u32, node: row.node, period });
            row.period += period;
        }
    }
    for (id, event) in profile.events.iter_mut().enumerate() {
        let rows = profile.rows.iter().filter(|row| row.event.index() == id);
        event.period = rows.map(|row| row.period).sum();
    }
    profile.blocks = Some(Blocks { length_ns: 1 << 20, contexts, weights });
    profile
}
