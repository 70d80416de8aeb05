//! An order of places and call chains that no thread decides.
//!
//! Each thread meets places and chains in the order of its blocks, and threads are merged as they end. Files in other
//! tools' formats have numbers and rows in the order of the profile, so this order makes their bytes the same each time.

use crate::call_chain::chain::CodePlace;
use crate::second_pass::aggregate::{NO_NODE, PlaceNode};

/// Places by binary and address: the number of the place at each position.
pub(crate) fn order_of_places(places: &[CodePlace]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..places.len() as u32).collect();
    order.sort_unstable_by_key(|index| {
        let place = places[*index as usize];
        (place.kernel, place.dso, place.place)
    });
    order
}

/// Nodes, each behind its parent, and the children of one in the order of their places.
pub(crate) fn order_of_nodes(nodes: &[PlaceNode], order_of_places: &[u32]) -> Vec<u32> {
    let mut rank_of_place = vec![0; order_of_places.len()];
    for (rank, place) in order_of_places.iter().enumerate() {
        rank_of_place[*place as usize] = rank as u32;
    }
    let key = |node: &PlaceNode| (node.parent, rank_of_place[node.place as usize]);
    let mut families: Vec<_> = nodes.iter().map(key).zip(0..nodes.len() as u32).collect();
    families.sort_unstable();
    // Where the children of each node begin; roots, whose parent has the largest number, stand last.
    let mut begin = vec![families.len(); nodes.len()];
    let roots = families.partition_point(|((parent, _), _)| *parent != NO_NODE);
    for (at, ((parent, _), _)) in families[..roots].iter().enumerate().rev() {
        begin[*parent as usize] = at;
    }
    let mut order: Vec<u32> = families[roots..].iter().map(|(_, node)| *node).collect();
    let mut next = 0;
    while let Some(parent) = order.get(next).copied() {
        let family = families.get(begin[parent as usize]..roots).unwrap_or_default();
        let children = family.iter().take_while(|((of, _), _)| *of == parent);
        order.extend(children.map(|(_, node)| *node));
        next += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_model::dso_index::DsoIndex;
    use proptest::prelude::*;

    /// Places and nodes of chains, in the order in which they are met.
    fn tree(chains: &[Vec<u64>]) -> (Vec<CodePlace>, Vec<PlaceNode>) {
        let (mut places, mut nodes) = (Vec::new(), Vec::new());
        for chain in chains {
            let mut parent = NO_NODE;
            for address in chain {
                let place = CodePlace { dso: DsoIndex(3), place: *address, kernel: *address > 2 };
                let place = number(&mut places, place);
                parent = number(&mut nodes, PlaceNode { parent, place });
            }
        }
        (places, nodes)
    }

    fn number<T: PartialEq>(values: &mut Vec<T>, value: T) -> u32 {
        let known = values.iter().position(|known| *known == value);
        let number = known.unwrap_or(values.len());
        if known.is_none() {
            values.push(value);
        }
        number as u32
    }

    /// The chain of each node, in the new order.
    fn chains(places: &[CodePlace], nodes: &[PlaceNode]) -> Vec<Vec<u64>> {
        let order = order_of_nodes(nodes, &order_of_places(places));
        let mut met = vec![false; nodes.len()];
        let chain = |node: u32| {
            let mut chain = Vec::new();
            let mut at = node;
            while at != NO_NODE {
                chain.push(places[nodes[at as usize].place as usize].place);
                at = nodes[at as usize].parent;
            }
            chain
        };
        for node in &order {
            let parent = nodes[*node as usize].parent;
            assert!(parent == NO_NODE || met[parent as usize], "a parent stands behind its child");
            met[*node as usize] = true;
        }
        order.into_iter().map(chain).collect()
    }

    proptest! {
        #[test]
        fn the_order_does_not_depend_on_that_of_the_chains(
            mut all in prop::collection::vec(prop::collection::vec(0u64..6, 1..6), 0..40),
            shift in 0usize..40,
        ) {
            let (places, nodes) = tree(&all);
            let first = chains(&places, &nodes);
            prop_assert_eq!(first.len(), nodes.len());
            let middle = shift.min(all.len());
            all.rotate_left(middle);
            all.reverse();
            let (places, nodes) = tree(&all);
            prop_assert_eq!(chains(&places, &nodes), first);
        }
    }
}
