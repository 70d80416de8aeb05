//! The call tree of switches and CPU time, from either end.

use super::stacks::{ChainEntry, Stacks};
use crate::held_up::HeldUp;
use crate::hists::ChainOrder;
use rustc_hash::FxHashMap;
use whit_profile::model::Profile;
use whit_profile::switches::{NodeClasses, SwitchSums, Switches, WaitClassSet};

/// A function in the tree.
#[derive(Clone, Debug)]
pub struct StackNode {
    /// Function.
    pub place: ChainEntry,
    /// Sums of all stacks through here.
    pub sums: SwitchSums,
    /// Classes of its waits.
    pub classes: WaitClassSet,
    /// Nodes below, the one with the longest waits first.
    pub children: Vec<u32>,
}

/// Stacks, merged from the outermost function inward.
#[derive(Clone, Debug, Default)]
pub struct StackTree {
    /// Nodes; parents come before their children.
    pub nodes: Vec<StackNode>,
    /// The topmost nodes, likewise in order.
    pub roots: Vec<u32>,
    /// Sums of all stacks.
    pub total: SwitchSums,
}

impl StackTree {
    /// Adds up what the filters let pass.
    pub fn new(stacks: Stacks<'_>, switches: &Switches, order: ChainOrder) -> StackTree {
        StackTree::weighed(stacks, switches, order, weight)
    }

    /// The waits alone, by the function in which each leaves user mode: all waits have the kernel's scheduler above it.
    /// Waits of the kernel itself keep their whole stacks. The first functions are those in which waits held work up for
    /// the longest time; idle loops, threads of the kernel and the recorder follow.
    pub fn of_waits(stacks: Stacks<'_>, switches: &Switches) -> StackTree {
        let profile = stacks.profile();
        let trim = |sums: &SwitchSums, frames: Vec<ChainEntry>| {
            let first = frames.iter().position(|place| !place.is_of_kernel(profile));
            has_waits(sums).then(|| frames[first.unwrap_or(0)..].to_vec())
        };
        let mut tree = StackTree::made(stacks, switches, ChainOrder::Callee, weight, &trim);
        let held_up = HeldUp::new(profile, switches);
        let mut sums: FxHashMap<ChainEntry, u64> = FxHashMap::default();
        for (_, row, frames) in stacks.rows(switches) {
            let Some(waits) = held_up.waits(row) else { continue };
            if let Some(root) = trim(&row.sums, frames).and_then(|frames| frames.first().copied()) {
                let sum = sums.entry(root).or_default();
                *sum = sum.saturating_add(waits.ns);
            }
        }
        let StackTree { nodes, roots, .. } = &mut tree;
        let held_ns = |root: &u32| sums.get(&nodes[*root as usize].place).copied().unwrap_or(0);
        roots.sort_by_key(|root| std::cmp::Reverse(held_ns(root)));
        tree
    }

    /// The same with the heaviest nodes first by another weight.
    pub(crate) fn weighed<K: Ord>(
        stacks: Stacks<'_>,
        switches: &Switches,
        order: ChainOrder,
        weight: fn(&SwitchSums) -> K,
    ) -> StackTree {
        StackTree::made(stacks, switches, order, weight, &|_, frames| Some(frames))
    }

    /// `trim` leaves rows out, or frames of them.
    fn made<K: Ord>(
        stacks: Stacks<'_>,
        switches: &Switches,
        order: ChainOrder,
        weight: fn(&SwitchSums) -> K,
        trim: Trim<'_>,
    ) -> StackTree {
        let mut tree = StackTree::default();
        let mut index: FxHashMap<(Option<u32>, ChainEntry), u32> = FxHashMap::default();
        let nodes = switches.rows.iter().map(|row| row.node);
        let classes = NodeClasses::of(stacks.profile(), nodes);
        for (_, row, frames) in stacks.rows(switches) {
            let Some(mut frames) = trim(&row.sums, frames) else { continue };
            let of_row = classes.of_row(row);
            if order == ChainOrder::Caller {
                frames.reverse();
            }
            tree.total.add(&row.sums);
            let mut parent = None;
            for place in frames {
                let node =
                    *index.entry((parent, place)).or_insert_with(|| tree.add_node(parent, place));
                let at = &mut tree.nodes[node as usize];
                at.sums.add(&row.sums);
                at.classes = at.classes.and(of_row);
                parent = Some(node);
            }
        }
        tree.sort(stacks.profile(), weight);
        tree
    }

    fn add_node(&mut self, parent: Option<u32>, place: ChainEntry) -> u32 {
        let node = self.nodes.len() as u32;
        let sums = SwitchSums::default();
        let classes = WaitClassSet::default();
        self.nodes.push(StackNode { place, sums, classes, children: Vec::new() });
        match parent {
            Some(parent) => self.nodes[parent as usize].children.push(node),
            None => self.roots.push(node),
        }
        node
    }

    fn sort<K: Ord>(&mut self, profile: &Profile, weight: fn(&SwitchSums) -> K) {
        let keys: Vec<_> = self.nodes.iter().map(|node| weight(&node.sums)).collect();
        let places: Vec<_> = self.nodes.iter().map(|node| node.place).collect();
        let key = |node: &u32| {
            let node = *node as usize;
            (std::cmp::Reverse(&keys[node]), places[node].order(profile))
        };
        self.roots.sort_by(|a, b| key(a).cmp(&key(b)));
        for node in &mut self.nodes {
            node.children.sort_by(|a, b| key(a).cmp(&key(b)));
        }
    }
}

/// Gives the frames of a row that stand in the tree; `None` leaves the row out.
type Trim<'a> = &'a dyn Fn(&SwitchSums, Vec<ChainEntry>) -> Option<Vec<ChainEntry>>;

fn has_waits(sums: &SwitchSums) -> bool {
    let counts = [sums.count(), sums.new_count, sums.lossy_count, sums.open_count];
    counts.into_iter().any(|count| count > 0) || sums.throughout_count > 0
}

/// The order: the longest waits first, also the uncertain ones; then CPU time. Rows that waited throughout are last:
/// there are many idle threads.
pub(super) fn weight(sums: &SwitchSums) -> (u64, u64, u64, u64) {
    let waits = [sums.wait_ns(), sums.lossy_wait_ns, sums.open_wait_ns];
    let wait_ns = waits.into_iter().fold(0u64, u64::saturating_add);
    let cpu_ns = sums.cpu_ns.saturating_add(sums.lossy_cpu_ns);
    (wait_ns, cpu_ns, sums.count(), sums.throughout_wait_ns)
}

/// Whether any column has at least `percent` of its total.
pub fn is_shown(sums: &SwitchSums, total: &SwitchSums, percent: f64) -> bool {
    let columns: [fn(&SwitchSums) -> u64; 8] = [
        |sums| sums.cpu_ns,
        SwitchSums::wait_ns,
        |sums| sums.sync_count,
        |sums| sums.preempt_count,
        |sums| sums.new_count,
        |sums| sums.lossy_count,
        |sums| sums.open_count,
        |sums| sums.throughout_count,
    ];
    columns.iter().any(|column| {
        let (part, whole) = (column(sums), column(total));
        part > 0 && part as f64 * 100.0 >= whole as f64 * percent
    })
}
