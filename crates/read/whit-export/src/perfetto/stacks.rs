//! Interned call stacks: names, binaries and frames go out with the first stack that needs them.

use super::name_bytes;
use crate::content::Content;
use crate::proto::perfetto::{Callstack, Frame, InternedData, InternedString, Mapping};
use rustc_hash::FxHashSet;
use whit_profile::model::{FrameId, NodeId};

/// Things that a sequence has interned, by their numbers in the profile; a sequence counts from one.
pub(super) struct Stacks<'c, 'a> {
    content: &'c Content<'a>,
    nodes: FxHashSet<u32>,
    frames: FxHashSet<u32>,
    functions: FxHashSet<u32>,
    dsos: FxHashSet<u32>,
    files: FxHashSet<u32>,
}

fn string(iid: u64, str: Vec<u8>) -> InternedString {
    InternedString { iid: Some(iid), str: Some(str) }
}

fn iid(number: u32) -> u64 {
    u64::from(number) + 1
}

impl<'c, 'a> Stacks<'c, 'a> {
    pub(super) fn new(content: &'c Content<'a>) -> Stacks<'c, 'a> {
        Stacks {
            content,
            nodes: FxHashSet::default(),
            frames: FxHashSet::default(),
            functions: FxHashSet::default(),
            dsos: FxHashSet::default(),
            files: FxHashSet::default(),
        }
    }

    /// The number of a call stack, and data that its packet has to bring along.
    pub(super) fn intern(&mut self, node: NodeId) -> (Option<u64>, Option<InternedData>) {
        if node == NodeId::NONE {
            return (None, None);
        }
        let number = iid(node.0);
        if !self.nodes.insert(node.0) {
            return (Some(number), None);
        }
        let mut data = InternedData::default();
        let mut frames: Vec<FrameId> = self.content.chain(node).collect();
        frames.reverse();
        frames.iter().for_each(|frame| self.frame(*frame, &mut data));
        let frame_ids = frames.iter().map(|frame| iid(frame.0)).collect();
        data.callstacks.push(Callstack { iid: Some(number), frame_ids });
        (Some(number), Some(data))
    }

    fn frame(&mut self, id: FrameId, data: &mut InternedData) {
        if !self.frames.insert(id.0) {
            return;
        }
        let profile = self.content.profile;
        let frame = self.content.frame(id);
        let function = &profile.functions[frame.function.index()];
        if self.functions.insert(frame.function.0) {
            let name = name_bytes(function.name.borrowed());
            data.function_names.push(string(iid(frame.function.0), name));
        }
        if self.dsos.insert(function.dso.0) {
            self.mapping(function.dso.0, data);
        }
        if let Some((file, _)) = frame.source
            && self.files.insert(file.0)
        {
            let path = name_bytes(profile.files[file.index()].borrowed());
            data.source_paths.push(string(iid(file.0), path));
        }
        data.frames.push(Frame {
            iid: Some(iid(id.0)),
            function_name_id: Some(iid(frame.function.0)),
            mapping_id: Some(iid(function.dso.0)),
            rel_pc: Some(frame.address.0),
            source_path_iid: frame.source.map(|(file, _)| iid(file.0)),
            line_number: frame.source.map(|(_, line)| line),
        });
    }

    fn mapping(&mut self, number: u32, data: &mut InternedData) {
        let dso = &self.content.profile.dsos[number as usize];
        let build_id = dso.build_id.map_or_else(Vec::new, |id| id.as_bytes().to_vec());
        data.build_ids.push(string(iid(number), build_id));
        data.mapping_paths.push(string(iid(number), name_bytes(dso.path.borrowed())));
        let size = self.content.profile.mapped_bytes.get(number as usize).copied().flatten();
        data.mappings.push(Mapping {
            iid: Some(iid(number)),
            build_id: Some(iid(number)),
            start: Some(0),
            end: size,
            path_string_ids: vec![iid(number)],
        });
    }
}
