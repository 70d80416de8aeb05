//! Call chains that came lately, with their nodes: threads that take turns switch at few places.

use crate::call_chain::chain_entry::ChainEntry;
use crate::machine_model::process::SpaceId;

/// With chains of 30 frames they fit into the cache of a core.
const SLOTS: u64 = 64;

/// Entries of a chain that choose its slot.
const CHOOSING_ENTRIES: usize = 8;

/// A number without a pattern in its bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Each chain has one slot, and the last one there stays.
#[derive(Debug, Default)]
pub(super) struct RecentChains(Vec<RecentChain>);

#[derive(Clone, Debug, Default)]
struct RecentChain {
    space: Option<SpaceId>,
    entries: Vec<ChainEntry>,
    node: u32,
}

fn slot(chain: &[ChainEntry]) -> usize {
    let step = chain.len().div_ceil(CHOOSING_ENTRIES).max(1);
    let chosen = chain.iter().step_by(step);
    let mix = |hash: u64, entry: &ChainEntry| {
        (hash.rotate_left(5) ^ entry.address.0).wrapping_mul(FACTOR)
    };
    ((chosen.fold(chain.len() as u64, mix) >> 32) % SLOTS) as usize
}

impl RecentChains {
    pub(super) fn get(&self, space: SpaceId, chain: &[ChainEntry]) -> Option<u32> {
        let recent = self.0.get(slot(chain))?;
        (recent.space == Some(space) && recent.entries == chain).then_some(recent.node)
    }

    pub(super) fn put(&mut self, space: SpaceId, chain: &[ChainEntry], node: u32) {
        self.0.resize(SLOTS as usize, RecentChain::default());
        let recent = &mut self.0[slot(chain)];
        (recent.space, recent.node) = (Some(space), node);
        recent.entries.clear();
        recent.entries.extend_from_slice(chain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_chain::chain_entry::Side;
    use whit_types::Avma;

    const ENTRIES: u64 = 30;

    /// A chain with another address at one place.
    fn chain(other: u64) -> Vec<ChainEntry> {
        let address = |at| Avma(if at == other { 0x1000 + at } else { at });
        (0..ENTRIES).map(|at| ChainEntry::exact(address(at), Side::User)).collect()
    }

    #[test]
    fn chains_that_differ_in_any_entry_are_different() {
        let mut recent = RecentChains::default();
        let (space, known) = (SpaceId(1), chain(ENTRIES));
        assert_eq!(recent.get(space, &known), None);
        recent.put(space, &known, 7);
        assert_eq!(recent.get(space, &known), Some(7));
        assert_eq!(recent.get(SpaceId(2), &known), None);
        assert_eq!(recent.get(space, &known[1..]), None);
        for other in 0..ENTRIES {
            assert_eq!(recent.get(space, &chain(other)), None);
        }
        recent.put(space, &chain(3), 8);
        assert_eq!(recent.get(space, &chain(3)), Some(8));
    }
}
