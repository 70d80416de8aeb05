//! Frames and call sites, numbered as streams meet them.

use crate::call_chain::chain::CodePlace;
use crate::first_pass::prepare::Prepared;
use crate::machine_model::dso_index::DsoIndex;
use crate::naming::place_symbols::{NamedCode, PlaceNamer};
use crate::result::finish::name_places;
use crate::result::tree_order::{order_of_nodes, order_of_places};
use crate::second_pass::aggregate::{Aggregate, MAX_TREE_NODES, NO_NODE, PlaceNode};
use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Call sites, those of inlined functions not counted. A chain that would need more is cut at its inner end.
pub const MAX_CALLSITES: usize = MAX_TREE_NODES;

/// A code location.
#[derive(Clone, Debug)]
pub struct FrameRow {
    /// Name of the function; an address in hexadecimal where no symbol covers it.
    pub name: Arc<str>,
    /// False where the name is an address.
    pub is_known: bool,
    /// Number of the function: by binary and name.
    pub function: u32,
    /// Number of the binary.
    pub binary: u32,
    /// As the binary states it.
    pub address: u64,
    /// Source file and line.
    pub source: Option<(Arc<str>, u32)>,
    /// True where it was inlined into its caller.
    pub is_inlined: bool,
    /// True for code of the kernel.
    pub is_kernel: bool,
}

/// A frame with its callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallsiteRow {
    /// The caller.
    pub parent: Option<u32>,
    /// Code location.
    pub frame: u32,
    /// Number of callers.
    pub depth: u32,
    /// False where a caller is the same function.
    pub is_outermost: bool,
}

/// A node that a worker met for the first time.
pub(crate) struct NewNode {
    parent: u32,
    place: CodePlace,
    /// Absent where the table has the place.
    named: Option<NamedCode>,
}

/// The table that all streams of a source share.
#[derive(Default)]
pub(crate) struct StackTable {
    inner: RwLock<Stacks>,
}

#[derive(Default)]
struct Stacks {
    frames: Vec<FrameRow>,
    /// The frames of a place: the physical one first, then those of inlined functions.
    places: FxHashMap<CodePlace, (u32, u32)>,
    functions: FxHashMap<(DsoIndex, Arc<str>), u32>,
    callsites: Vec<CallsiteRow>,
    /// By parent and first frame of the place, the innermost call site.
    by_frame: FxHashMap<(u32, u32), u32>,
    cut_chains: u64,
}

impl StackTable {
    fn read(&self) -> RwLockReadGuard<'_, Stacks> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Stacks> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn frame(&self, frame: u32) -> Option<FrameRow> {
        self.read().frames.get(frame as usize).cloned()
    }

    pub(crate) fn callsite(&self, callsite: u32) -> Option<CallsiteRow> {
        self.read().callsites.get(callsite as usize).copied()
    }

    /// The frames of a call site and its callers, innermost first.
    pub(crate) fn chain(&self, callsite: u32) -> Vec<FrameRow> {
        let stacks = self.read();
        let leaf = stacks.callsites.get(callsite as usize);
        let chain = std::iter::successors(leaf, |at| stacks.callsites.get(at.parent? as usize));
        chain.map(|at| stacks.frames[at.frame as usize].clone()).collect()
    }

    pub(crate) fn cut_chains(&self) -> u64 {
        self.read().cut_chains
    }

    /// Takes new nodes of a worker over. `numbers` are those of its nodes before, and grow.
    pub(crate) fn adopt(&self, numbers: &mut Vec<u32>, new: &mut Vec<NewNode>) {
        if new.is_empty() {
            return;
        }
        let mut stacks = self.write();
        for NewNode { parent, place, named } in new.drain(..) {
            let parent = if parent == NO_NODE { NO_NODE } else { numbers[parent as usize] };
            numbers.push(stacks.callsite_of(parent, place, named));
        }
    }

    /// Takes a whole call tree over, and gives the call site of each of its nodes. Nodes that are new here get their
    /// numbers in an order that no thread decides.
    pub(crate) fn adopt_tree(
        &self,
        prepared: &Prepared,
        tree: &Aggregate,
        threads: usize,
    ) -> Vec<u32> {
        let (places, nodes) = (&tree.places.values, &tree.nodes.values);
        let order = order_of_places(places);
        let mut unnamed = order.clone();
        {
            let known = self.read();
            unnamed.retain(|place| !known.places.contains_key(&places[*place as usize]));
        }
        let mut named = name_places(prepared, places, &unnamed, threads, true);
        let mut callsites = vec![NO_NODE; nodes.len()];
        let mut stacks = self.write();
        for at in order_of_nodes(nodes, &order) {
            let PlaceNode { parent, place } = nodes[at as usize];
            // Parents come before their children.
            let parent = if parent == NO_NODE { NO_NODE } else { callsites[parent as usize] };
            let (code, named) =
                (places[place as usize], std::mem::take(&mut named[place as usize]));
            callsites[at as usize] = stacks.callsite_of(parent, code, Some(named));
        }
        callsites
    }

    /// Samples whose chain is cut, because a worker's table was full.
    pub(crate) fn note_cut(&self, chains: u64) {
        let mut stacks = self.write();
        stacks.cut_chains = stacks.cut_chains.max(chains);
    }
}

impl Stacks {
    fn callsite_of(&mut self, parent: u32, place: CodePlace, named: Option<NamedCode>) -> u32 {
        let (first, count) = match self.places.get(&place) {
            Some(known) => *known,
            None => self.add_place(place, named.unwrap_or_default()),
        };
        if let Some(known) = self.by_frame.get(&(parent, first)) {
            return *known;
        }
        if self.by_frame.len() >= MAX_CALLSITES && parent != NO_NODE {
            self.cut_chains += 1;
            return parent;
        }
        let mut callsite = parent;
        for frame in first..first + count {
            callsite = self.push(callsite, frame);
        }
        self.by_frame.insert((parent, first), callsite);
        callsite
    }

    fn push(&mut self, parent: u32, frame: u32) -> u32 {
        let caller = self.callsites.get(parent as usize);
        let depth = caller.map_or(0, |caller| caller.depth + 1);
        let function = self.frames[frame as usize].function;
        let callers = std::iter::successors(caller, |at| self.callsites.get(at.parent? as usize));
        let mut functions = callers.map(|at| self.frames[at.frame as usize].function);
        let is_outermost = !functions.any(|caller| caller == function);
        let parent = caller.map(|_| parent);
        self.callsites.push(CallsiteRow { parent, frame, depth, is_outermost });
        (self.callsites.len() - 1) as u32
    }

    fn add_place(&mut self, place: CodePlace, named: NamedCode) -> (u32, u32) {
        let first = self.frames.len() as u32;
        let (name, is_known) = match named.function.or(named.stand_in) {
            Some(name) => (name, true),
            None => (format!("{:#018x}", named.address.0).into(), false),
        };
        let physical = FrameRow {
            function: self.function(place.dso, &name),
            name,
            is_known,
            binary: place.dso.0,
            address: named.address.0,
            source: named.source,
            is_inlined: false,
            is_kernel: place.kernel,
        };
        self.frames.push(physical.clone());
        for inlined in named.inlined {
            let function = self.function(place.dso, &inlined.name);
            self.frames.push(FrameRow {
                function,
                name: inlined.name,
                is_known: true,
                source: inlined.source,
                is_inlined: true,
                ..physical.clone()
            });
        }
        let frames = (first, self.frames.len() as u32 - first);
        self.places.insert(place, frames);
        frames
    }

    fn function(&mut self, dso: DsoIndex, name: &Arc<str>) -> u32 {
        let next = self.functions.len() as u32;
        *self.functions.entry((dso, name.clone())).or_insert(next)
    }
}

/// Finds the new nodes of one worker's call tree, and names their places.
pub(crate) struct NodeAnnouncer<'a> {
    namer: PlaceNamer<'a>,
    table: &'a StackTable,
    announced: usize,
}

impl<'a> NodeAnnouncer<'a> {
    pub(crate) fn new(prepared: &'a Prepared, table: &'a StackTable) -> Self {
        let namer = PlaceNamer::new(&prepared.dsos, &prepared.binaries);
        NodeAnnouncer { namer, table, announced: 0 }
    }

    /// Appends the nodes that were not told before.
    pub(crate) fn announce(&mut self, sums: &Aggregate, out: &mut Vec<NewNode>) {
        let nodes = sums.nodes.values.get(self.announced..).unwrap_or_default();
        self.announced = sums.nodes.values.len();
        let begin = out.len();
        out.extend(nodes.iter().map(|node| NewNode {
            parent: node.parent,
            place: sums.places.values[node.place as usize],
            named: None,
        }));
        let known = self.table.read();
        let new = out[begin..].iter_mut();
        let unnamed: Vec<_> = new.filter(|node| !known.places.contains_key(&node.place)).collect();
        drop(known);
        for node in unnamed {
            node.named = Some(self.namer.name(&node.place));
        }
    }
}
