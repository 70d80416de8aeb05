//! Facets that rows do not tell apart: of those that look alike under the sort keys, the first stands for all.

use rustc_hash::FxHashMap;
use whit_perfdata::sample::BranchEntry;
use whit_profile::Facets;
use whit_profile::model::{DsoId, FacetsId, FrameId, Profile};

use super::sort_key::SortKey;

/// Size of a line of the cache.
pub(crate) const CACHE_LINE_BYTES: u64 = 64;

/// One end of a branch, as far as keys ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct EndKey<'p> {
    dso: Option<&'p str>,
    function: Option<u32>,
    source: Option<(u32, u32)>,
}

/// The facets that keys ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct FacetKey<'p> {
    instruction_latency: Option<u16>,
    transaction: Option<u64>,
    code_page_size_bytes: Option<u64>,
    address: Option<u64>,
    trace: Option<u32>,
    data_address: Option<u64>,
    data_line: Option<u64>,
    data_dso: Option<&'p str>,
    data_src: Option<u64>,
    phys_addr: Option<u64>,
    data_page_size_bytes: Option<u64>,
    is_branch: bool,
    from: EndKey<'p>,
    to: EndKey<'p>,
    flags: u64,
}

/// For each facets of the profile, those that stand for them; empty where no key asks.
pub(super) fn first_facets(profile: &Profile, keys: &[SortKey]) -> Vec<FacetsId> {
    let maker = KeyMaker { profile, keys };
    if !keys.iter().any(|key| is_of_facets(*key)) {
        return Vec::new();
    }
    let mut first = FxHashMap::default();
    let all = profile.facets.iter().zip(0..);
    all.map(|(facets, id)| *first.entry(maker.key(facets)).or_insert(FacetsId(id))).collect()
}

/// True for keys whose values are in facets alone.
fn is_of_facets(key: SortKey) -> bool {
    use SortKey as K;
    let others = [K::Transaction, K::Trace, K::CodePageSize, K::LocalInsLat, K::InsLat, K::Addr];
    [&others[..], &K::OF_BRANCHES, &K::OF_MEMORY].concat().contains(&key)
}

struct KeyMaker<'p, 'k> {
    profile: &'p Profile,
    keys: &'k [SortKey],
}

impl<'p> KeyMaker<'p, '_> {
    fn has(&self, keys: &[SortKey]) -> bool {
        keys.iter().any(|key| self.keys.contains(key))
    }

    fn key(&self, facets: &Facets) -> FacetKey<'p> {
        use SortKey as K;
        let data = facets.data;
        let by_address = self.has(&[K::SymbolDaddr]);
        let by_line = self.has(&[K::DcacheLine]);
        let by_dso = self.has(&[K::DsoDaddr, K::DcacheLine]);
        let branch = facets.branch.unwrap_or_default();
        let masks = [
            (K::Mispredict, BranchEntry::PREDICTION),
            (K::InTx, BranchEntry::IN_TRANSACTION),
            (K::Abort, BranchEntry::ABORT),
            (K::Cycles, BranchEntry::CYCLES),
        ];
        let masks = masks.iter().filter(|(key, _)| self.keys.contains(key));
        FacetKey {
            instruction_latency: facets
                .instruction_latency
                .filter(|_| self.has(&[K::LocalInsLat, K::InsLat])),
            transaction: facets.transaction.filter(|_| self.has(&[K::Transaction])),
            code_page_size_bytes: facets
                .code_page_size_bytes
                .filter(|_| self.has(&[K::CodePageSize])),
            address: facets.address.filter(|_| self.has(&[K::Addr])).map(|address| address.0),
            trace: facets.trace.filter(|_| self.has(&[K::Trace])).map(|text| text.0),
            data_address: data.filter(|_| by_address).map(|data| data.address),
            data_line: data.filter(|_| by_line).map(|data| data.address / CACHE_LINE_BYTES),
            data_dso: data.filter(|_| by_dso).and_then(|data| data.dso).map(|dso| self.dso(dso)),
            data_src: facets.data_src,
            phys_addr: facets.phys_addr.filter(|_| self.has(&[K::PhysDaddr])),
            data_page_size_bytes: facets
                .data_page_size_bytes
                .filter(|_| self.has(&[K::DataPageSize])),
            is_branch: facets.branch.is_some(),
            from: self.end(branch.from, K::DsoFrom, K::SymbolFrom, K::SrcLineFrom),
            to: self.end(branch.to, K::DsoTo, K::SymbolTo, K::SrcLineTo),
            flags: branch.flags & masks.fold(0, |all, (_, mask)| all | mask),
        }
    }

    fn dso(&self, dso: DsoId) -> &'p str {
        self.profile.dsos.get(dso.index()).map_or("", |dso| dso.short_name.exact())
    }

    fn end(
        &self,
        frame: Option<FrameId>,
        dso: SortKey,
        symbol: SortKey,
        source: SortKey,
    ) -> EndKey<'p> {
        let Some(frame) = frame.and_then(|id| self.profile.frames.get(id.index())) else {
            return EndKey::default();
        };
        let function = &self.profile.functions[frame.function.index()];
        // Lines that are not known are told apart by function.
        let line = frame.source.map_or((u32::MAX, frame.function.0), |(file, line)| (file.0, line));
        EndKey {
            dso: self.has(&[dso]).then(|| self.dso(function.dso)),
            function: self.has(&[symbol]).then_some(frame.function.0),
            source: self.has(&[source]).then_some(line),
        }
    }
}
