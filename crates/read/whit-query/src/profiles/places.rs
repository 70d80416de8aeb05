//! Binaries, functions, frames and the call tree of a recording.

use rusqlite::{Connection, Result};
use std::collections::{HashMap, HashSet};
use whit_profile::model::{
    CallNode, DsoId, DsoInfo, DsoKind, Frame, FrameId, FunctionId, FunctionInfo, NodeId, Profile,
};
use whit_types::{BuildId, Svma};

/// Code that no table has.
const UNKNOWN: &str = "[unknown]";

/// Places of a recording by the numbers of the tables.
#[derive(Default)]
pub(super) struct Places {
    pub(super) nodes: HashMap<i64, NodeId>,
    /// Nodes whose chain has code of the selected build.
    pub(super) of_build: HashSet<NodeId>,
}

/// Reads those of a recording.
pub(super) struct PlaceReader<'s> {
    pub(super) connection: &'s Connection,
    pub(super) id: i64,
    /// The first digits of the selected build.
    pub(super) build: Option<&'s str>,
}

impl PlaceReader<'_> {
    /// Fills binaries, functions, frames and the call tree.
    pub(super) fn read(&self, profile: &mut Profile) -> Result<Places> {
        let (dsos, builds) = self.binaries(profile)?;
        let (frames, frames_of_build) = self.frames(profile, &dsos, &builds)?;
        let mut places = Places::default();
        let sql = "SELECT id, parent_id, frame_id FROM callsite WHERE recording_id = ?1 ORDER BY depth, id";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            let (id, parent, frame): (i64, Option<i64>, i64) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let parent = parent.and_then(|id| places.nodes.get(&id).copied());
            let Some(frame) = frames.get(&frame).copied() else { continue };
            let node = NodeId(profile.nodes.len() as u32);
            profile.recording.has_callchains |= parent.is_some();
            if frames_of_build.contains(&frame)
                || parent.is_some_and(|it| places.of_build.contains(&it))
            {
                places.of_build.insert(node);
            }
            profile.nodes.push(CallNode { parent: parent.unwrap_or(NodeId::NONE), frame });
            places.nodes.insert(id, node);
        }
        Ok(places)
    }

    /// Binaries by the numbers of `mapping`, and those of the selected build.
    fn binaries(&self, profile: &mut Profile) -> Result<(HashMap<i64, DsoId>, HashSet<DsoId>)> {
        let (mut dsos, mut of_build) = (HashMap::new(), HashSet::new());
        let sql = "SELECT id, name, build_id, kind FROM mapping WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            let build: String = row.get::<_, Option<String>>(2)?.unwrap_or_default();
            let id = DsoId(profile.dsos.len() as u32);
            if self.build.is_some_and(|digits| build.starts_with(digits)) {
                of_build.insert(id);
            }
            dsos.insert(row.get(0)?, id);
            let path = row.get::<_, Option<String>>(1)?.unwrap_or_default();
            profile.dsos.push(binary(path, &build, &row.get::<_, String>(3)?));
        }
        Ok((dsos, of_build))
    }

    /// Frames by the numbers of `frame`, and those in these binaries.
    fn frames(
        &self,
        profile: &mut Profile,
        dsos: &HashMap<i64, DsoId>,
        builds: &HashSet<DsoId>,
    ) -> Result<(HashMap<i64, FrameId>, HashSet<FrameId>)> {
        let (mut frames, mut of_build) = (HashMap::new(), HashSet::new());
        let mut functions: HashMap<(DsoId, String), FunctionId> = HashMap::new();
        let sql =
            "SELECT id, mapping, name, rel_pc, is_inlined, is_kernel, is_symbolized FROM frame
                   WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            let Some(dso) = dsos.get(&row.get::<_, i64>(1)?).copied() else { continue };
            let name: String = row.get(2)?;
            let known = row.get::<_, i64>(6)? != 0;
            let function = *functions.entry((dso, name)).or_insert_with_key(|(dso, name)| {
                let info = FunctionInfo { name: name.as_str().into(), dso: *dso, known };
                add_function(profile, info)
            });
            let id = FrameId(profile.frames.len() as u32);
            profile.frames.push(Frame {
                function,
                address: Svma(row.get::<_, Option<i64>>(3)?.unwrap_or(0) as u64),
                source: None,
                inlined: row.get::<_, i64>(4)? != 0,
                kernel: row.get::<_, i64>(5)? != 0,
            });
            frames.insert(row.get(0)?, id);
            if builds.contains(&dso) {
                of_build.insert(id);
            }
        }
        Ok((frames, of_build))
    }
}

impl Places {
    /// The node of samples without a call chain.
    pub(super) fn unknown(&mut self, profile: &mut Profile) -> NodeId {
        const NOWHERE: i64 = -1;
        if let Some(node) = self.nodes.get(&NOWHERE) {
            return *node;
        }
        let dso = DsoId(profile.dsos.len() as u32);
        profile.dsos.push(binary(UNKNOWN.to_owned(), "", "unknown"));
        let function =
            add_function(profile, FunctionInfo { name: UNKNOWN.into(), dso, known: false });
        let frame = FrameId(profile.frames.len() as u32);
        let address = Svma(0);
        profile.frames.push(Frame {
            function,
            address,
            source: None,
            inlined: false,
            kernel: false,
        });
        let node = NodeId(profile.nodes.len() as u32);
        profile.nodes.push(CallNode { parent: NodeId::NONE, frame });
        self.nodes.insert(NOWHERE, node);
        node
    }
}

fn add_function(profile: &mut Profile, info: FunctionInfo) -> FunctionId {
    let id = FunctionId(profile.functions.len() as u32);
    profile.functions.push(info);
    profile.function_sizes_bytes.push(None);
    profile.function_starts.push(None);
    id
}

fn binary(path: String, build: &str, kind: &str) -> DsoInfo {
    let last = path.rsplit('/').next().unwrap_or(&path);
    let short_name = if path.starts_with('[') { path.as_str() } else { last };
    let kind = match kind {
        "elf" => DsoKind::Elf,
        "kernel" => DsoKind::Kernel,
        "module" => DsoKind::KernelModule,
        "vdso" => DsoKind::Vdso,
        "jit" => DsoKind::Jit,
        _ => DsoKind::Unknown,
    };
    let digits: Option<Vec<u8>> = (0..build.len() / 2)
        .map(|at| u8::from_str_radix(build.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    let build_id = digits.and_then(|bytes| BuildId::new(&bytes));
    DsoInfo { short_name: short_name.into(), path: path.into(), build_id, kind }
}
