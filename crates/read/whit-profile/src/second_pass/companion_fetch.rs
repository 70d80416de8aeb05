//! Fetches debug companions once the samples are added up: those of the binaries that have a share of them.
//!
//! Shares are of the samples whose call chain passes through a binary, or of the waits, whichever is larger. All chains
//! begin in the C library, whose debug information is large. So names are fetched for the binaries that chains pass
//! through, and inlined functions and lines for those that chains do more than begin in.

use crate::call_chain::chain::CodePlace;
use crate::companions::{Companions, Fetch, Wanted};
use crate::first_pass::prepare::Prepared;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::RecordedKind;
use crate::second_pass::aggregate::{Aggregate, NO_NODE};
use crate::warning::{NotFetched, Warning};
use rustc_hash::FxHashMap;
use whit_types::OutsideText;

/// Binaries of one recording that are asked for.
const MAX_BINARIES: usize = 256;
/// Binaries that warnings name.
const MAX_NAMED: usize = 8;
/// Least share of a binary that [`Companions::Offer`] counts.
const OFFER_LEAST_SHARE: f64 = 0.01;
/// The code at the entry point of a program, which calls the C library, is shorter.
const ENTRY_MAX_BYTES: u64 = 128;

/// A binary's part in the samples, or in the waits.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Share {
    dso: DsoIndex,
    /// Chains that pass through it.
    all: f64,
    /// Those without the chains that only begin in it.
    inner: f64,
}

/// Binaries, those with most first.
#[derive(Debug, Default)]
struct Shares(Vec<Share>);

impl Shares {
    fn of(sums: &Aggregate, waits: &[(u32, u64)], beginnings: &[bool]) -> Shares {
        let mut shares: FxHashMap<DsoIndex, [f64; 2]> = FxHashMap::default();
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
            let all = weights.iter().sum::<u64>().max(1) as f64;
            for (dso, through) in through(sums, &weights, beginnings) {
                for (share, weight) in shares.entry(dso).or_default().iter_mut().zip(through) {
                    *share = share.max(weight as f64 / all);
                }
            }
        }
        let share = |(dso, [all, inner]): (DsoIndex, [f64; 2])| Share { dso, all, inner };
        let mut shares: Vec<_> = shares.into_iter().map(share).filter(|it| it.all > 0.0).collect();
        shares.sort_by(|a, b| b.all.total_cmp(&a.all).then(a.dso.cmp(&b.dso)));
        Shares(shares)
    }
}

/// The weights of the chains that pass through each binary, and of those that do more than begin in it.
fn through(sums: &Aggregate, own: &[u64], beginnings: &[bool]) -> FxHashMap<DsoIndex, [u64; 2]> {
    let nodes = &sums.nodes.values;
    let mut weights = own.to_vec();
    // Parents come before their children.
    for (number, node) in nodes.iter().enumerate().rev() {
        if node.parent != NO_NODE {
            weights[node.parent as usize] += weights[number];
        }
    }
    let mut through: FxHashMap<DsoIndex, [u64; 2]> = FxHashMap::default();
    for node in 0..nodes.len() as u32 {
        let (dso, number) = (dso_of(sums, node), node as usize);
        let [all, inner] = through.entry(dso).or_default();
        // A chain that comes back to a binary counts once.
        let mut callers = callers(sums, node).filter(|caller| dso_of(sums, *caller) == dso);
        let is_beginning = |node: u32| beginnings[node as usize];
        if callers.clone().next().is_none() {
            *all += weights[number];
        }
        if is_beginning(node) {
            *inner += own[number];
        } else if callers.all(is_beginning) {
            *inner += weights[number];
        }
    }
    through
}

fn dso_of(sums: &Aggregate, node: u32) -> DsoIndex {
    sums.places.values[sums.nodes.values[node as usize].place as usize].dso
}

/// The callers of a node, innermost first.
fn callers(sums: &Aggregate, node: u32) -> impl Iterator<Item = u32> + Clone + '_ {
    let parent = |node: u32| {
        Some(sums.nodes.values[node as usize].parent).filter(|parent| *parent != NO_NODE)
    };
    std::iter::successors(parent(node), move |node| parent(*node))
}

/// Nodes in which all chains begin: frames of the C library with no callers but others of it, and maybe the entry point
/// of a program.
fn beginnings(
    sums: &Aggregate,
    is_c_library: impl Fn(DsoIndex) -> bool,
    is_entry: impl Fn(CodePlace) -> bool,
) -> Vec<bool> {
    let nodes = &sums.nodes.values;
    let mut found = vec![false; nodes.len()];
    // Parents come before their children.
    for (number, node) in nodes.iter().enumerate() {
        found[number] = is_c_library(dso_of(sums, number as u32))
            && (node.parent == NO_NODE || {
                let parent = &nodes[node.parent as usize];
                let place = || sums.places.values[parent.place as usize];
                found[node.parent as usize] || parent.parent == NO_NODE && is_entry(place())
            });
    }
    found
}

/// The beginnings of a recording's chains.
fn beginnings_of(prepared: &Prepared, sums: &Aggregate) -> Vec<bool> {
    let mut known: FxHashMap<DsoIndex, bool> = FxHashMap::default();
    for place in &sums.places.values {
        let is = || is_c_library(&prepared.dsos.get(place.dso).path);
        known.entry(place.dso).or_insert_with(is);
    }
    let is_entry = |place: CodePlace| {
        let binary = prepared.binaries.get(place.dso);
        binary.and_then(|binary| binary.symbols.elf()).is_some_and(|image| {
            let entry = image.file_offset_of(image.entry()).map_or(0, |offset| offset.0);
            entry > 0 && (entry..entry + ENTRY_MAX_BYTES).contains(&place.place)
        })
    };
    beginnings(sums, |dso| known.get(&dso) == Some(&true), is_entry)
}

/// Whether a file is the C library: glibc's, the one of threads in old releases of it, or musl's.
fn is_c_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["libc.so", "libc-2.", "libpthread.so", "libpthread-2.", "ld-musl-"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// Fetches what the user wants, between the sums and the names. `waits` are nodes of the sums with numbers of waits.
pub(crate) fn fetch(
    prepared: &Prepared,
    companions: &Companions,
    sums: &Aggregate,
    waits: &[(u32, u64)],
) -> Vec<Warning> {
    match companions {
        Companions::Off => Vec::new(),
        Companions::Offer => offer(prepared, sums, waits),
        Companions::Fetch { by, least_share, debug_info } => {
            let lacking = lacking(prepared, sums, waits, *least_share, *debug_info);
            fetch_all(prepared, lacking, &**by, *least_share)
        }
    }
}

/// A binary that lacks something.
struct Lacking {
    dso: DsoIndex,
    wanted: Wanted,
    /// Whether inlined functions and lines are wanted, too.
    debug_info: bool,
}

/// Binaries that lack something, the number of those that have too small a share, and those that only their names are
/// fetched of.
#[derive(Default)]
struct AllLacking {
    wanted: Vec<Lacking>,
    below: usize,
    names_alone: Vec<OutsideText>,
}

fn lacking(
    prepared: &Prepared,
    sums: &Aggregate,
    waits: &[(u32, u64)],
    least_share: f64,
    debug_info: bool,
) -> AllLacking {
    let mut found = AllLacking::default();
    let beginnings = beginnings_of(prepared, sums);
    for Share { dso, all, inner } in Shares::of(sums, waits, &beginnings).0 {
        if prepared.dsos.get(dso).kind != RecordedKind::File {
            continue;
        }
        let binary = prepared.binaries.get(dso);
        let lack = |debug_info| binary.and_then(|binary| binary.symbols.lack(debug_info));
        let Some(all_lack) = lack(debug_info) else { continue };
        if all < least_share || found.wanted.len() == MAX_BINARIES {
            found.below += 1;
            continue;
        }
        let name = OutsideText::from(&prepared.dsos.get(dso).path);
        let name: OutsideText = name.base_name().exact().to_owned().into();
        let debug_info = debug_info && inner >= least_share;
        let own_lack = lack(debug_info);
        if own_lack != Some(all_lack) {
            found.names_alone.push(name.clone());
        }
        if let Some(lack) = own_lack {
            let wanted = Wanted { name, share: all, lack };
            found.wanted.push(Lacking { dso, wanted, debug_info });
        }
    }
    found
}

fn offer(prepared: &Prepared, sums: &Aggregate, waits: &[(u32, u64)]) -> Vec<Warning> {
    let lacking = lacking(prepared, sums, waits, OFFER_LEAST_SHARE, false).wanted;
    let names: Vec<_> = lacking.iter().filter(|it| it.wanted.lack.is_of_names()).collect();
    let offer = |first: &&Lacking| Warning::NamesOffered {
        first: first.wanted.name.clone(),
        binaries: names.len(),
    };
    names.first().map(offer).into_iter().collect()
}

fn fetch_all(
    prepared: &Prepared,
    lacking: AllLacking,
    by: &dyn Fetch,
    least_share: f64,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    // Other threads of the load are done then: signals are this one's.
    prepared.kernel_load.wait_for_end();
    let wanted: Vec<_> = lacking.wanted.iter().map(|it| it.wanted.clone()).collect();
    let results = if wanted.is_empty() { Vec::new() } else { by.fetch(&wanted) };
    for (Lacking { dso, wanted, debug_info }, result) in lacking.wanted.into_iter().zip(results) {
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
    let names_alone = lacking.names_alone.into_iter();
    warnings.extend(names_alone.map(|binary| Warning::NamesAloneFetched { binary }));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_chain::chain::CodePlace;
    use crate::second_pass::aggregate::{PlaceNode, Weight};
    use crate::sums::row_key::{NO_FACETS, RowKey};

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

    const NONE: fn(&Aggregate) -> Vec<bool> = |sums| vec![false; sums.nodes.values.len()];

    fn share(dso: u32, all: f64, inner: f64) -> Share {
        Share { dso: DsoIndex(dso), all, inner }
    }

    #[test]
    fn a_chain_counts_once_for_each_binary_that_it_passes_through() {
        // 1 calls 2, which calls 1 back; 1 calls 3.
        let tree = [(NO_NODE, 1), (0, 2), (1, 1), (0, 3)];
        let sums = sums(&tree, &[(2, 60), (3, 30), (0, 10)]);
        let shares = Shares::of(&sums, &[], &NONE(&sums)).0;
        assert_eq!(shares, [share(1, 1.0, 1.0), share(2, 0.6, 0.6), share(3, 0.3, 0.3)]);
    }

    #[test]
    fn binaries_without_samples_count_by_their_waits() {
        let tree = [(NO_NODE, 1), (0, 2), (0, 3)];
        let sums = sums(&tree, &[(1, 100)]);
        let shares = Shares::of(&sums, &[(2, 3), (1, 1)], &NONE(&sums)).0;
        assert_eq!(shares[2], share(3, 0.75, 0.75));
        assert!(Shares::of(&Aggregate::default(), &[], &[]).0.is_empty());
    }

    #[test]
    fn chains_that_only_begin_in_the_c_library_are_counted_apart() {
        let (program, library) = (1, 2);
        // The entry point, two frames of the library, the program, the library again; a thread that the library begins.
        let tree = [
            (NO_NODE, program),
            (0, library),
            (1, library),
            (2, program),
            (3, library),
            (NO_NODE, library),
            (5, program),
        ];
        let sums = sums(&tree, &[(3, 60), (4, 10), (6, 28), (2, 2)]);
        let is_library = |dso: DsoIndex| dso.0 == library;
        let begin = beginnings(&sums, is_library, |place| place.place == 0);
        assert_eq!(begin, [false, true, true, false, false, true, false]);
        // Ten samples call the library, and two are in its own beginning.
        let shares = Shares::of(&sums, &[], &begin).0;
        assert_eq!(shares, [share(program, 1.0, 1.0), share(library, 1.0, 0.12)]);
        // The outermost frame of the program is any of its functions: a chain without its end.
        let begin = beginnings(&sums, is_library, |_| false);
        assert_eq!(begin, [false, false, false, false, false, true, false]);
    }

    #[test]
    fn the_c_library_is_known_by_its_file() {
        for name in
            ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/libc-2.31.so", "/lib/ld-musl-x86_64.so.1"]
        {
            assert!(is_c_library(name), "{name}");
        }
        for name in ["/usr/lib/libcurl.so.4", "/lib/libc++.so.1", "/usr/bin/libc"] {
            assert!(!is_c_library(name), "{name}");
        }
    }
}
