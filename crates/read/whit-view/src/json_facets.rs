//! Members of JSON rows for the keys of facets: transactions, tracepoints, branches, accesses to memory.

use serde::Serialize;
use whit_perfdata::sample::BranchEntry;
use whit_profile::model::{FrameId, Profile};
use whit_profile::{BranchFacet, DataPlace, Facets};

use crate::hists::{CACHE_LINE_BYTES, HistRow, SortKey, data_source};

/// Members that a key asks for; `null` where the samples have nothing of the kind.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FacetMembers<'a> {
    /// Key `transaction`: `PERF_TXN_*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<Option<u64>>,
    /// Key `trace`: text of the tracepoint's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Option<&'a str>>,
    /// Key `symbol_size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol_bytes: Option<Option<u64>>,
    /// Key `dso_size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dso_bytes: Option<Option<u64>>,
    /// Key `code_page_size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    code_page_bytes: Option<Option<u64>>,
    /// Keys `ins_lat` and `local_ins_lat`: of one sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction_latency: Option<Option<u16>>,
    /// Key `addr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Option<u64>>,
    /// Keys of branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<BranchMembers<'a>>,
    /// Keys of accesses to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<AccessMembers<'a>>,
}

/// A branch, as far as keys ask for it.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BranchMembers<'a> {
    /// Keys `dso_from`, `symbol_from` and `srcline_from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<EndMembers<'a>>,
    /// Keys `dso_to`, `symbol_to` and `srcline_to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<EndMembers<'a>>,
    /// Key `mispredict`; `null` where the CPU does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mispredicted: Option<Option<bool>>,
    /// Key `in_tx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_transaction: Option<bool>,
    /// Key `abort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    aborted: Option<bool>,
    /// Key `cycles`; zero where the CPU does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<u64>,
}

/// One end of a branch.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EndMembers<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    dso: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<&'a str>,
    /// `file:line`; `null` where no line is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Option<String>>,
}

/// An access to memory, as far as keys ask for it.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AccessMembers<'a> {
    /// Key `symbol_daddr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Option<u64>>,
    /// Key `dcacheline`: the address at which the line begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Option<u64>>,
    /// Keys `symbol_daddr` and `dcacheline`: the variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<Option<&'a str>>,
    /// Key `dso_daddr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dso: Option<Option<&'a str>>,
    /// Key `phys_daddr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_address: Option<Option<u64>>,
    /// Key `data_page_size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    page_bytes: Option<Option<u64>>,
    /// Key `mem`.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    /// Key `snoop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    snoop: Option<String>,
    /// Key `tlb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tlb: Option<String>,
    /// Key `locked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<&'static str>,
    /// Key `blocked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<&'static str>,
}

impl<'a> FacetMembers<'a> {
    /// Fills the member that a key asks for.
    pub(crate) fn set(&mut self, profile: &'a Profile, key: SortKey, row: &HistRow) {
        let facets = row.context.facets.and_then(|id| profile.facets.get(id.index()));
        let facets = facets.copied().unwrap_or_default();
        match key {
            SortKey::Transaction => self.transaction = Some(facets.transaction),
            SortKey::Trace => {
                let text = facets.trace.map(|text| profile.texts[text.index()].exact());
                self.trace = Some(text);
            }
            SortKey::SymbolSize => self.symbol_bytes = Some(row.place.symbol_bytes),
            SortKey::DsoSize => self.dso_bytes = Some(row.place.dso_bytes),
            SortKey::CodePageSize => self.code_page_bytes = Some(facets.code_page_size_bytes),
            SortKey::InsLat | SortKey::LocalInsLat => {
                self.instruction_latency = Some(facets.instruction_latency);
            }
            SortKey::Addr => self.address = Some(facets.address.map(|address| address.0)),
            key if SortKey::OF_BRANCHES.contains(&key) => {
                let branch = facets.branch.unwrap_or_default();
                self.branch.get_or_insert_default().set(profile, key, &branch);
            }
            key if SortKey::OF_MEMORY.contains(&key) => {
                self.access.get_or_insert_default().set(profile, key, &facets);
            }
            _ => {}
        }
    }
}

impl<'a> BranchMembers<'a> {
    fn set(&mut self, profile: &'a Profile, key: SortKey, branch: &BranchFacet) {
        let has = |bit: u64| Some(branch.flags & bit != 0);
        match key {
            SortKey::Mispredict => {
                self.mispredicted = Some(match branch.flags & BranchEntry::PREDICTION {
                    0 => None,
                    bits => Some(bits == 1),
                });
            }
            SortKey::InTx => self.in_transaction = has(BranchEntry::IN_TRANSACTION),
            SortKey::Abort => self.aborted = has(BranchEntry::ABORT),
            SortKey::Cycles => self.cycles = Some((branch.flags & BranchEntry::CYCLES) >> 4),
            SortKey::DsoFrom | SortKey::SymbolFrom | SortKey::SrcLineFrom => {
                self.from.get_or_insert_default().set(profile, key, branch.from);
            }
            _ => self.to.get_or_insert_default().set(profile, key, branch.to),
        }
    }
}

impl<'a> EndMembers<'a> {
    fn set(&mut self, profile: &'a Profile, key: SortKey, frame: Option<FrameId>) {
        let Some(frame) = frame.and_then(|frame| profile.frames.get(frame.index())) else { return };
        let function = &profile.functions[frame.function.index()];
        match key {
            SortKey::SymbolFrom | SortKey::SymbolTo => self.symbol = Some(function.name.exact()),
            SortKey::DsoFrom | SortKey::DsoTo => {
                self.dso = Some(profile.dsos[function.dso.index()].short_name.exact());
            }
            _ => {
                let line = frame.source.map(|(file, line)| {
                    format!("{}:{line}", profile.files[file.index()].base_name().exact())
                });
                self.source = Some(line);
            }
        }
    }
}

impl<'a> AccessMembers<'a> {
    fn set(&mut self, profile: &'a Profile, key: SortKey, facets: &Facets) {
        let source = facets.data_src.unwrap_or(0);
        let data = facets.data;
        let address = data.map(|data| data.address);
        let symbol = |data: Option<DataPlace>| {
            data.and_then(|data| data.symbol).map(|symbol| profile.texts[symbol.index()].exact())
        };
        match key {
            SortKey::SymbolDaddr => {
                (self.address, self.symbol) = (Some(address), Some(symbol(data)))
            }
            SortKey::DcacheLine => {
                self.line = Some(address.map(|address| address & !(CACHE_LINE_BYTES - 1)));
                self.symbol = Some(symbol(data));
            }
            SortKey::DsoDaddr => {
                let dso = data.and_then(|data| data.dso);
                self.dso = Some(dso.map(|dso| profile.dsos[dso.index()].short_name.exact()));
            }
            SortKey::PhysDaddr => self.physical_address = Some(facets.phys_addr),
            SortKey::DataPageSize => self.page_bytes = Some(facets.data_page_size_bytes),
            SortKey::Mem => self.level = Some(data_source::level(source)),
            SortKey::Snoop => self.snoop = Some(data_source::snoop(source)),
            SortKey::Tlb => self.tlb = Some(data_source::tlb(source)),
            SortKey::Locked => self.locked = Some(data_source::locked(source)),
            _ => self.blocked = Some(data_source::blocked(source).trim()),
        }
    }
}
