//! Call chains from the outside in: a tree of frames for flame graphs, rooted by command.

use whit_profile::model::{CommId, Profile};
use whit_types::OutsideText;

use crate::hists::{
    ChainEntry, ChainMode, ChainOptions, ChainOrder, EventGroup, HistsOptions, SortKey, group_hists,
};

/// At most so many frames are kept; those of the lightest commands are left out.
pub const MAX_FRAMES: usize = 500_000;

/// Tells commands from functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameName {
    /// A command, below which its call chains stand.
    Command(Option<CommId>),
    /// One of a call chain.
    Function(ChainEntry),
}

/// A function below its callers, or a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlameFrame {
    /// The text in it.
    pub name: FrameName,
    /// Weight of all chains through it.
    pub weight: u64,
    /// The weight to the left of it: where it begins.
    pub start: u64,
    /// Frames above it.
    pub depth: usize,
    /// The frame above it.
    pub parent: Option<u32>,
    /// Frames below it, the heaviest first; those below the limit are left out.
    pub children: Vec<u32>,
}

/// The frames of an event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flame {
    /// Frames; each stands behind its parent.
    pub frames: Vec<FlameFrame>,
    /// The commands, the heaviest first.
    pub roots: Vec<u32>,
    /// The weight that shares are of.
    pub total: u64,
}

impl Flame {
    /// The frames with at least `min_percent` of the event, of the samples that the options' filters let pass.
    pub fn new(
        profile: &Profile,
        group: &EventGroup,
        options: &HistsOptions,
        min_percent: f64,
    ) -> Flame {
        let chains = ChainOptions {
            mode: ChainMode::Graph,
            order: Some(ChainOrder::Caller),
            min_percent,
            print_limit: 0,
        };
        let options = HistsOptions {
            sort: vec![SortKey::Comm],
            levels: Vec::new(),
            columns: Vec::new(),
            order: Vec::new(),
            children: false,
            intervals: false,
            examples: 0,
            percent_limit: min_percent,
            chains,
            ..options.clone()
        };
        let hists = group_hists(profile, group, &options);
        let mut flame = Flame { total: hists.total_weight(), ..Flame::default() };
        let mut start = 0;
        for row in hists.shown(min_percent) {
            let weight = row.self_weight(hists.shares);
            let name = FrameName::Command(row.context.comm);
            let root = flame.add(name, weight, start, None);
            flame.roots.push(root);
            let mut work: Vec<(u32, u32, u64)> = Vec::new();
            push_all(&mut work, &row.chains.roots, root, start, |node| {
                row.chains.nodes[node as usize].cumulative()
            });
            while let Some((node, parent, start)) = work.pop() {
                let node = &row.chains.nodes[node as usize];
                let mut parent = parent;
                for entry in &node.entries {
                    let name = FrameName::Function(*entry);
                    parent = flame.add(name, node.cumulative(), start, Some(parent));
                }
                push_all(&mut work, &node.children, parent, start, |node| {
                    row.chains.nodes[node as usize].cumulative()
                });
            }
            start += weight;
            if flame.frames.len() >= MAX_FRAMES {
                break;
            }
        }
        flame
    }

    fn add(&mut self, name: FrameName, weight: u64, start: u64, parent: Option<u32>) -> u32 {
        let id = self.frames.len() as u32;
        let depth = parent.map_or(0, |parent| self.frames[parent as usize].depth + 1);
        self.frames.push(FlameFrame { name, weight, start, depth, parent, children: Vec::new() });
        if let Some(parent) = parent {
            self.frames[parent as usize].children.push(id);
        }
        id
    }
}

/// Puts nodes onto the stack so that the first one comes off first.
fn push_all(
    work: &mut Vec<(u32, u32, u64)>,
    nodes: &[u32],
    parent: u32,
    mut start: u64,
    weight: impl Fn(u32) -> u64,
) {
    let first = work.len();
    for node in nodes {
        work.push((*node, parent, start));
        start += weight(*node);
    }
    work[first..].reverse();
}

impl FrameName {
    /// The frame's text.
    pub fn text(self, profile: &Profile) -> OutsideText {
        match self {
            FrameName::Command(comm) => match comm {
                Some(comm) => profile.comms[comm.index()].clone(),
                None => "[all commands]".into(),
            },
            FrameName::Function(entry) => profile.functions[entry.function.index()].name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};
    use crate::hists::{Grouping, groups};

    fn sampled() -> Profile {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        let (main, sort, read) = (at("main", "a", 1), at("sort", "a", 2), at("read", "a", 3));
        let a = Who { comm: "a", pid: 1, tid: 1, cpu: None };
        let b = Who { comm: "b", pid: 2, tid: 2, cpu: None };
        builder.sample(event, a, &[main.clone(), sort], 50);
        builder.sample(event, a, &[main.clone(), read], 20);
        builder.sample(event, b, &[main], 30);
        builder.profile
    }

    #[test]
    fn frames_are_below_their_callers_and_behind_their_heavier_siblings() {
        let profile = sampled();
        let group = &groups(&profile, Grouping::Apart)[0];
        let flame = Flame::new(&profile, group, &HistsOptions::default(), 0.0);
        let shown: Vec<_> = flame
            .frames
            .iter()
            .map(|frame| {
                let name = frame.name.text(&profile).to_string();
                (name, frame.depth, frame.start, frame.weight)
            })
            .collect();
        let wanted = [
            ("a", 0, 0, 70),
            ("main", 1, 0, 70),
            ("sort", 2, 0, 50),
            ("read", 2, 50, 20),
            ("b", 0, 70, 30),
            ("main", 1, 70, 30),
        ];
        assert_eq!(shown, wanted.map(|(name, a, b, c)| (name.to_owned(), a, b, c)));
        assert_eq!((flame.total, &flame.roots[..]), (100, &[0, 4][..]));
    }

    #[test]
    fn light_frames_and_filtered_samples_are_left_out() {
        let profile = sampled();
        let group = &groups(&profile, Grouping::Apart)[0];
        let mut options = HistsOptions::default();
        let flame = Flame::new(&profile, group, &options, 25.0);
        assert_eq!(flame.frames.len(), 5, "no frame of read");
        options.filters.comms = vec!["b".to_owned()];
        assert_eq!(Flame::new(&profile, group, &options, 0.0).frames.len(), 2);
    }
}
