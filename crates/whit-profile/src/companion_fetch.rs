//! Fetches debug companions once the samples are added up: those of the binaries that have a share of them.
//!
//! Shares are of the samples whose call chain passes through a binary, or of the waits, whichever is larger.

use crate::aggregate::{Aggregate, NO_NODE};
use crate::companions::{Companions, Fetch, Wanted};
use crate::dso_index::DsoIndex;
use crate::dso_table::RecordedKind;
use crate::options::LoadOptions;
use crate::prepare::Prepared;
use crate::warning::{NotFetched, Warning};
use rustc_hash::FxHashMap;
use whit_types::OutsideText;

/// Binaries of one recording that are asked for.
const MAX_BINARIES: usize = 256;
/// Binaries that warnings name.
const MAX_NAMED: usize = 8;
/// Least share of a binary that [`Companions::Offer`] counts.
const OFFER_LEAST_SHARE: f64 = 0.01;

/// Binaries by the share of the samples, or waits, that pass through them.
#[derive(Debug, Default)]
struct Shares(Vec<(DsoIndex, f64)>);

impl Shares {
    fn of(sums: &Aggregate, waits: &[(u32, u64)]) -> Shares {
        let mut shares: FxHashMap<DsoIndex, f64> = FxHashMap::default();
        let mut samples = vec![0; sums.nodes.values.len()];
        for (row, weight) in &sums.rows {
            samples[row.node as usize] += weight.samples;
        }
        let mut blocked = vec![0; samples.len()];
        for (node, count) in waits {
            if let Some(sum) = blocked.get_mut(*node as usize) {
                *sum += count;
            }
        }
        for weights in [samples, blocked] {
            let all: u64 = weights.iter().sum();
            for (dso, weight) in through(sums, weights) {
                let share = shares.entry(dso).or_default();
                *share = share.max(weight as f64 / all.max(1) as f64);
            }
        }
        let mut shares: Vec<_> = shares.into_iter().filter(|(_, share)| *share > 0.0).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Shares(shares)
    }
}

/// The weights of the chains that pass through each binary.
fn through(sums: &Aggregate, mut weights: Vec<u64>) -> FxHashMap<DsoIndex, u64> {
    let nodes = &sums.nodes.values;
    // Parents come before their children.
    for (number, node) in nodes.iter().enumerate().rev() {
        if node.parent != NO_NODE {
            weights[node.parent as usize] += weights[number];
        }
    }
    let dso = |node: u32| sums.places.values[nodes[node as usize].place as usize].dso;
    let callers = |node: u32| {
        let parent = |node: u32| Some(nodes[node as usize].parent).filter(|it| *it != NO_NODE);
        std::iter::successors(parent(node), move |node| parent(*node))
    };
    let mut sums: FxHashMap<DsoIndex, u64> = FxHashMap::default();
    for node in 0..nodes.len() as u32 {
        let own = dso(node);
        // A chain that comes back to a binary counts once.
        if !callers(node).any(|caller| dso(caller) == own) {
            *sums.entry(own).or_default() += weights[node as usize];
        }
    }
    sums
}

/// Fetches what the user wants, between the sums and the names. `waits` are nodes of the sums with numbers of waits.
pub(crate) fn fetch(
    prepared: &Prepared,
    options: &LoadOptions,
    sums: &Aggregate,
    waits: &[(u32, u64)],
) -> Vec<Warning> {
    match &options.companions {
        Companions::Off => Vec::new(),
        Companions::Offer => offer(prepared, sums, waits),
        Companions::Fetch { by, least_share, debug_info } => {
            let lacking = lacking(prepared, sums, waits, *least_share, *debug_info);
            fetch_all(prepared, lacking, &**by, (*least_share, *debug_info))
        }
    }
}

/// Binaries that lack something, and the number of those that have too small a share.
struct Lacking {
    wanted: Vec<(DsoIndex, Wanted)>,
    below: usize,
}

fn lacking(
    prepared: &Prepared,
    sums: &Aggregate,
    waits: &[(u32, u64)],
    least_share: f64,
    debug_info: bool,
) -> Lacking {
    let mut found = Lacking { wanted: Vec::new(), below: 0 };
    for (dso, share) in Shares::of(sums, waits).0 {
        if prepared.dsos.get(dso).kind != RecordedKind::File {
            continue;
        }
        let binary = prepared.binaries.get(dso);
        let Some(lack) = binary.and_then(|binary| binary.symbols.lack(debug_info)) else {
            continue;
        };
        if share < least_share || found.wanted.len() == MAX_BINARIES {
            found.below += 1;
            continue;
        }
        let name = OutsideText::from(&prepared.dsos.get(dso).path);
        let name = name.base_name().exact().to_owned().into();
        found.wanted.push((dso, Wanted { name, share, lack }));
    }
    found
}

fn offer(prepared: &Prepared, sums: &Aggregate, waits: &[(u32, u64)]) -> Vec<Warning> {
    let lacking = lacking(prepared, sums, waits, OFFER_LEAST_SHARE, false).wanted;
    let names: Vec<_> = lacking.iter().filter(|(_, it)| it.lack.is_of_names()).collect();
    let offer = |(_, first): &&(DsoIndex, Wanted)| Warning::NamesOffered {
        first: first.name.clone(),
        binaries: names.len(),
    };
    names.first().map(offer).into_iter().collect()
}

fn fetch_all(
    prepared: &Prepared,
    lacking: Lacking,
    by: &dyn Fetch,
    (least_share, debug_info): (f64, bool),
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (numbers, wanted): (Vec<_>, Vec<_>) = lacking.wanted.into_iter().unzip();
    // Other threads of the load are done then: signals are this one's.
    prepared.kernel_load.wait_for_end();
    let results = if wanted.is_empty() { Vec::new() } else { by.fetch(&wanted) };
    for ((dso, wanted), result) in numbers.into_iter().zip(wanted).zip(results) {
        let result = result.and_then(|()| {
            prepared.binaries.reopen(dso);
            let left = prepared.binaries.get(dso).and_then(|it| it.symbols.lack(debug_info));
            match left {
                Some(left) if left == wanted.lack => {
                    Err(NotFetched::OtherBuild { folder: by.folder(left.id) })
                }
                _ => Ok(()),
            }
        });
        if let Err(reason) = result {
            let (binary, share) = (wanted.name, wanted.share);
            warnings.push(Warning::NotFetched { binary, share, reason });
        }
    }
    if let binaries @ 1.. = warnings.len().saturating_sub(MAX_NAMED) {
        warnings.truncate(MAX_NAMED);
        warnings.push(Warning::MoreNotFetched { binaries });
    }
    if let binaries @ 1.. = lacking.below {
        warnings.push(Warning::BelowFetchLimit { binaries, least_share });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{PlaceNode, Weight};
    use crate::chain::CodePlace;
    use crate::row_key::{NO_FACETS, RowKey};

    /// A tree of binaries by parent, and samples at its nodes.
    fn sums(tree: &[(u32, u32)], samples: &[(u32, u64)]) -> Aggregate {
        let mut sums = Aggregate::default();
        for (number, (parent, dso)) in tree.iter().enumerate() {
            let dso = DsoIndex(*dso);
            let place = CodePlace { dso, place: number as u64, kernel: false };
            let place = sums.places.intern(place);
            sums.nodes.intern(PlaceNode { parent: *parent, place });
        }
        for (node, samples) in samples {
            let key = RowKey { event: 0, thread: 0, comm: 0, facets: NO_FACETS, node: *node };
            sums.rows.insert(key, Weight { samples: *samples, period: 1 });
        }
        sums
    }

    #[test]
    fn a_chain_counts_once_for_each_binary_that_it_passes_through() {
        // 1 calls 2, which calls 1 back; 1 calls 3.
        let tree = [(NO_NODE, 1), (0, 2), (1, 1), (0, 3)];
        let sums = sums(&tree, &[(2, 60), (3, 30), (0, 10)]);
        let shares = Shares::of(&sums, &[]).0;
        let expected = [(DsoIndex(1), 1.0), (DsoIndex(2), 0.6), (DsoIndex(3), 0.3)];
        assert_eq!(shares, expected);
    }

    #[test]
    fn binaries_without_samples_count_by_their_waits() {
        let tree = [(NO_NODE, 1), (0, 2), (0, 3)];
        let shares = Shares::of(&sums(&tree, &[(1, 100)]), &[(2, 3), (1, 1)]).0;
        assert_eq!(shares[2], (DsoIndex(3), 0.75));
        assert!(Shares::of(&Aggregate::default(), &[]).0.is_empty());
    }
}
