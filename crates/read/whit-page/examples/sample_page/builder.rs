//! Builds profiles out of stacks written as text.

use std::collections::HashMap;

use whit_profile::model::*;
use whit_types::{BuildId, CpuId, Pid, Svma, Tid, TimestampNs};

/// The same numbers on every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A profile in the making.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) profile: Profile,
    dsos: HashMap<String, DsoId>,
    functions: HashMap<(String, DsoId), FunctionId>,
    files: HashMap<String, FileId>,
    frames: HashMap<String, FrameId>,
    nodes: HashMap<(NodeId, FrameId), NodeId>,
    rows: HashMap<(EventId, ThreadId, CommId, NodeId), usize>,
}

impl Builder {
    pub(crate) fn event(&mut self, name: &str) -> EventId {
        self.profile.events.push(EventInfo { name: name.into(), ..EventInfo::default() });
        EventId(self.profile.events.len() as u32 - 1)
    }

    pub(crate) fn comm(&mut self, name: &str) -> CommId {
        let comms = &mut self.profile.comms;
        let index = comms.iter().position(|c| *c == name).unwrap_or_else(|| {
            comms.push(name.into());
            comms.len() - 1
        });
        CommId(index as u32)
    }

    pub(crate) fn thread(&mut self, pid: i32, tid: i32, name: &str) -> ThreadId {
        let comm = self.comm(name);
        self.profile.threads.push(ThreadInfo { pid: Pid(pid), tid: Tid(tid), comm });
        ThreadId(self.profile.threads.len() as u32 - 1)
    }

    fn dso(&mut self, tag: &str) -> DsoId {
        let (path, kind) = match tag {
            "k" => ("[kernel.kallsyms]", DsoKind::Kernel),
            "m" => ("/lib/modules/6.18.0/kernel/fs/xfs/xfs.ko", DsoKind::KernelModule),
            "v" => ("[vdso]", DsoKind::Vdso),
            "j" => ("[JIT] tid 5120", DsoKind::Jit),
            "c" => ("/usr/lib/x86_64-linux-gnu/libc.so.6", DsoKind::Elf),
            "z" => ("/usr/lib/x86_64-linux-gnu/libzstd.so.1.5.5", DsoKind::Elf),
            "n" => ("/usr/bin/node", DsoKind::Elf),
            "?" => ("[unknown]", DsoKind::Unknown),
            _ => ("/opt/kvstore/bin/kvstored", DsoKind::Elf),
        };
        *self.dsos.entry(path.into()).or_insert_with(|| {
            let short_name = path.rsplit('/').next().unwrap_or(path).into();
            let build_id = BuildId::new(path.as_bytes()).filter(|_| kind == DsoKind::Elf);
            self.profile.dsos.push(DsoInfo { path: path.into(), short_name, build_id, kind });
            DsoId(self.profile.dsos.len() as u32 - 1)
        })
    }

    /// A frame from `TAG|NAME`, `TAG|NAME|FILE|LINE`; tag `i` is an inlined frame.
    pub(crate) fn frame(&mut self, text: &str) -> FrameId {
        if let Some(&frame) = self.frames.get(text) {
            return frame;
        }
        let mut parts = text.split('|');
        let tag = parts.next().unwrap_or_default();
        let name = parts.next().unwrap_or(tag).to_owned();
        let dso = self.dso(tag);
        let known = !name.starts_with("0x");
        let function = *self.functions.entry((name.clone(), dso)).or_insert_with(|| {
            self.profile.functions.push(FunctionInfo { name: name.into(), dso, known });
            FunctionId(self.profile.functions.len() as u32 - 1)
        });
        let source = parts.next().map(|file| {
            let files = &mut self.profile.files;
            let file = *self.files.entry(file.into()).or_insert_with(|| {
                files.push(file.into());
                FileId(files.len() as u32 - 1)
            });
            (file, parts.next().and_then(|line| line.parse().ok()).unwrap_or(0))
        });
        let address = Svma(0x1000 + 16 * self.profile.frames.len() as u64);
        let (inlined, kernel) = (tag == "i", matches!(tag, "k" | "m"));
        self.profile.frames.push(Frame { function, address, source, inlined, kernel });
        let frame = FrameId(self.profile.frames.len() as u32 - 1);
        self.frames.insert(text.into(), frame);
        frame
    }

    pub(crate) fn node(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        *self.nodes.entry((parent, frame)).or_insert_with(|| {
            self.profile.nodes.push(CallNode { parent, frame });
            NodeId(self.profile.nodes.len() as u32 - 1)
        })
    }

    /// The node of a stack of frames, root first.
    pub(crate) fn stack<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>) -> NodeId {
        frames.into_iter().fold(NodeId::NONE, |parent, text| {
            let frame = self.frame(text);
            self.node(parent, frame)
        })
    }

    /// Gives each sample a time: those of a row are spread over the part of `span_ns` that `part` gives for its thread,
    /// in thousandths.
    pub(crate) fn spread(
        &mut self,
        span_ns: u64,
        cpus: u32,
        part: impl Fn(ThreadId) -> (u64, u64),
    ) {
        const BEGIN_NS: u64 = 5_000_000_000;
        let mut random = Random(5);
        let mut samples = Vec::new();
        for (index, row) in self.profile.rows.iter().enumerate() {
            let (from, to) = part(row.thread);
            for number in 0..row.samples {
                let at = from * 1_000_000 + random.below(1_000_000) * (to - from);
                let rest = if number == 0 { row.period % row.samples } else { 0 };
                samples.push(SingleSample {
                    time: TimestampNs(BEGIN_NS + span_ns / 1_000 * at / 1_000_000),
                    row: index as u32,
                    cpu: Some(CpuId(random.below(u64::from(cpus)) as u32)),
                    period: row.period / row.samples + rest,
                });
            }
        }
        samples.sort_unstable();
        self.profile.singles = Some(Singles { samples, ..Singles::default() });
    }

    pub(crate) fn add(
        &mut self,
        event: EventId,
        thread: ThreadId,
        node: NodeId,
        samples: u64,
        period: u64,
    ) -> usize {
        let comm = self.profile.threads[thread.index()].comm;
        let info = &mut self.profile.events[event.index()];
        info.samples += samples;
        info.period += period;
        let rows = &mut self.profile.rows;
        let row = *self.rows.entry((event, thread, comm, node)).or_insert_with(|| {
            rows.push(SampleRow {
                event,
                thread,
                comm,
                facets: FacetsId(0),
                node,
                samples: 0,
                period: 0,
            });
            rows.len() - 1
        });
        rows[row].samples += samples;
        rows[row].period += period;
        row
    }
}
