//! A profile's samples by the address that was executing.

use rustc_hash::FxHashMap;
use whit_profile::model::{DsoId, EventId, FrameId, FunctionId, NodeId, Profile};
use whit_types::Svma;

/// Samples and the sum of their periods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weight {
    /// Number of samples.
    pub samples: u64,
    /// Sum of periods.
    pub period: u64,
}

impl Weight {
    /// Adds another one.
    pub fn add(&mut self, other: Weight) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
    }
}

/// Weights by event, in the order of the events; events without samples are left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventWeights(Vec<(EventId, Weight)>);

impl EventWeights {
    /// Adds a weight of one event.
    pub fn add(&mut self, event: EventId, weight: Weight) {
        match self.0.binary_search_by_key(&event, |(event, _)| *event) {
            Ok(at) => self.0[at].1.add(weight),
            Err(at) => self.0.insert(at, (event, weight)),
        }
    }

    /// Adds those of all events.
    pub fn add_all(&mut self, other: &EventWeights) {
        other.iter().for_each(|(event, weight)| self.add(event, weight));
    }

    /// The weight of an event; none without samples.
    pub fn of(&self, event: EventId) -> Weight {
        let found = self.0.binary_search_by_key(&event, |(event, _)| *event);
        found.map_or_else(|_| Weight::default(), |at| self.0[at].1)
    }

    /// Those that have samples.
    pub fn iter(&self) -> impl Iterator<Item = (EventId, Weight)> + '_ {
        self.0.iter().copied()
    }

    /// True without samples.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Code that was executing in samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) dso: DsoId,
    pub(crate) address: Svma,
    /// The function that owns the code, and no inlined one.
    pub(crate) function: FunctionId,
    pub(crate) kernel: bool,
    pub(crate) weights: EventWeights,
}

/// The samples of a profile by address.
pub struct Weights<'p> {
    pub(crate) profile: &'p Profile,
    pub(crate) places: Vec<Place>,
    /// The place of each node of the call tree that samples end in.
    place_of_node: FxHashMap<NodeId, u32>,
}

impl<'p> Weights<'p> {
    /// Adds up the samples of a profile.
    pub fn new(profile: &'p Profile) -> Weights<'p> {
        let mut weights =
            Weights { profile, places: Vec::new(), place_of_node: FxHashMap::default() };
        let mut known: FxHashMap<(DsoId, Svma, FunctionId), u32> = FxHashMap::default();
        for row in &profile.rows {
            let Some(frame) = physical_frame(profile, row.node) else { continue };
            let frame = profile.frames[frame.index()];
            let dso = profile.functions[frame.function.index()].dso;
            let places = &mut weights.places;
            let number = *known.entry((dso, frame.address, frame.function)).or_insert_with(|| {
                let (address, function, kernel) = (frame.address, frame.function, frame.kernel);
                let weights = EventWeights::default();
                places.push(Place { dso, address, function, kernel, weights });
                (places.len() - 1) as u32
            });
            let weight = Weight { samples: row.samples, period: row.period };
            places[number as usize].weights.add(row.event, weight);
            weights.place_of_node.insert(row.node, number);
        }
        weights
    }

    /// The code that a node of the call tree ends in, if samples do.
    pub fn address_of(&self, node: NodeId) -> Option<(DsoId, Svma, FunctionId)> {
        let place = &self.places[*self.place_of_node.get(&node)? as usize];
        Some((place.dso, place.address, place.function))
    }
}

/// The frame that owns the code of a node: inlined ones stand below it.
fn physical_frame(profile: &Profile, mut node: NodeId) -> Option<FrameId> {
    loop {
        let at = profile.nodes.get(node.index())?;
        let frame = profile.frames.get(at.frame.index())?;
        if !frame.inlined {
            return Some(at.frame);
        }
        node = at.parent;
    }
}
