//! Sort keys: what makes two samples fall into the same row.

use std::num::NonZeroU64;
use whit_perfdata::sample::BranchEntry;
use whit_profile::{Counted, WantedBranches, WantedData, WantedFacets, WantedTrace};

use super::data_source::bits;

macro_rules! sort_keys {
    ($($(#[$doc:meta])* $key:ident = $name:literal, $heading:literal, $width:literal;)*) => {
        /// One key of `--sort`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum SortKey {
            $($(#[$doc])* $key,)*
        }

        impl SortKey {
            /// Every key, in the order in which an abbreviation is looked up.
            pub const ALL: &'static [SortKey] = &[$(SortKey::$key,)*];

            /// The key's name in `--sort`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(SortKey::$key => $name,)*
                }
            }

            /// Column heading, as perf has it.
            pub const fn heading(self) -> &'static str {
                match self {
                    $(SortKey::$key => $heading,)*
                }
            }

            /// Least width of the column, as perf has it.
            pub const fn min_width(self) -> usize {
                match self {
                    $(SortKey::$key => $width,)*
                }
            }
        }
    };
}

sort_keys! {
    /// Task: thread id and command name (perf's `pid`, whose man page says "tid of the task").
    Pid = "pid", "    Pid:Command", 0;
    /// The same rows as [`SortKey::Pid`] under the heading that says what the number is.
    Tid = "tid", "    Tid:Command", 0;
    /// Process: thread group id and command name.
    Tgid = "tgid", "    Pid:Command", 0;
    /// Command name.
    Comm = "comm", "Command", 0;
    /// Command name with `<N>` in the place of numbers.
    CommNoDigit = "comm_nodigit", "CommandNoDigit", 0;
    /// Binary.
    Dso = "dso", "Shared Object", 0;
    /// Function.
    Symbol = "symbol", "Symbol", 0;
    /// Caller that `--parent` chooses.
    Parent = "parent", "Parent symbol", 0;
    /// CPU of the sample, as a number.
    Cpu = "cpu", "CPU", 3;
    /// Source file and line.
    SrcLine = "srcline", "Source:Line", 0;
    /// Source file.
    SrcFile = "srcfile", "Source File", 0;
    /// Socket of the CPU.
    Socket = "socket", "Socket", 6;
    /// Weight of one sample.
    LocalWeight = "local_weight", "Local Weight", 12;
    /// Weight of one sample times the number of samples, as in perf.
    Weight = "weight", "Weight", 12;
    /// Path of the task's control group.
    Cgroup = "cgroup", "Cgroup", 6;
    /// Container, by the cgroup's path.
    Container = "container", "Container", 0;
    /// Pod, by the cgroup's path.
    Pod = "pod", "Pod", 0;
    /// Unit of systemd, by the cgroup's path.
    Unit = "unit", "Unit", 0;
    /// Stretch of time.
    Time = "time", "Time", 12;
    /// Threads of the profiled set that ran at the time of the sample.
    Parallelism = "parallelism", "Parallelism", 11;
    /// Flags of the transaction.
    Transaction = "transaction", "Transaction                ", 0;
    /// Text of a tracepoint's record.
    Trace = "trace", "Trace output", 0;
    /// Size of the function's code.
    SymbolSize = "symbol_size", "Symbol size", 0;
    /// Size of the binary's mapping.
    DsoSize = "dso_size", "DSO size", 0;
    /// Size of the page that holds the instruction.
    CodePageSize = "code_page_size", "Code Page Size", 6;
    /// Latency of one instruction.
    LocalInsLat = "local_ins_lat", "Local INSTR Latency", 13;
    /// Latency of one instruction times the number of samples.
    InsLat = "ins_lat", "INSTR Latency", 13;
    /// Address of the instruction.
    Addr = "addr", "Address", 18;
    /// Binary that holds a branch.
    DsoFrom = "dso_from", "Source Shared Object", 0;
    /// Binary that a branch leads to.
    DsoTo = "dso_to", "Target Shared Object", 0;
    /// Function that holds a branch.
    SymbolFrom = "symbol_from", "Source Symbol", 0;
    /// Function that a branch leads to.
    SymbolTo = "symbol_to", "Target Symbol", 0;
    /// Whether the branch was predicted wrong.
    Mispredict = "mispredict", "Branch Mispredicted", 0;
    /// Whether the branch was in a transaction.
    InTx = "in_tx", "Branch in transaction", 0;
    /// Whether the branch aborted a transaction.
    Abort = "abort", "Transaction abort", 0;
    /// Cycles since the branch before.
    Cycles = "cycles", "Basic Block Cycles", 0;
    /// Line that holds a branch.
    SrcLineFrom = "srcline_from", "From Source:Line", 0;
    /// Line that a branch leads to.
    SrcLineTo = "srcline_to", "To Source:Line", 0;
    /// Variable that was accessed.
    SymbolDaddr = "symbol_daddr", "Data Symbol", 0;
    /// Binary or memory that was accessed.
    DsoDaddr = "dso_daddr", "Data Object", 0;
    /// Whether the access was locked.
    Locked = "locked", "Locked", 6;
    /// Level of the TLB that had the address.
    Tlb = "tlb", "TLB access", 22;
    /// Level of memory that had the data.
    Mem = "mem", "Memory access", 24;
    /// State of the other caches.
    Snoop = "snoop", "Snoop", 12;
    /// Line of the cache that holds the data.
    DcacheLine = "dcacheline", "Data Cacheline", 0;
    /// Physical address of the data.
    PhysDaddr = "phys_daddr", "Data Physical Address", 22;
    /// Size of the page that holds the data.
    DataPageSize = "data_page_size", "Data Page Size", 22;
    /// Why a load was blocked.
    Blocked = "blocked", "Blocked", 10;
}

/// A word in a `--sort` list that names no key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot sort by `{word}`: no such key; the keys are {}", SortKey::names())]
pub struct UnknownSortKey {
    /// The rejected text.
    pub word: String,
}

impl SortKey {
    /// perf's default: `comm,dso,symbol`.
    pub const DEFAULT: [SortKey; 3] = [SortKey::Comm, SortKey::Dso, SortKey::Symbol];

    /// perf's default for rows of branches.
    pub const DEFAULT_OF_BRANCHES: [SortKey; 5] =
        [SortKey::Comm, SortKey::DsoFrom, SortKey::SymbolFrom, SortKey::SymbolTo, SortKey::Cycles];

    /// perf's default for accesses to memory.
    pub const DEFAULT_OF_MEMORY: [SortKey; 11] = [
        SortKey::LocalWeight,
        SortKey::Mem,
        SortKey::Symbol,
        SortKey::Dso,
        SortKey::SymbolDaddr,
        SortKey::DsoDaddr,
        SortKey::Snoop,
        SortKey::Tlb,
        SortKey::Locked,
        SortKey::Blocked,
        SortKey::LocalInsLat,
    ];

    /// The default keys of rows that count so.
    pub(super) fn default_of(count: Counted) -> &'static [SortKey] {
        match count {
            Counted::Samples => &SortKey::DEFAULT,
            Counted::Branches | Counted::Blocks => &SortKey::DEFAULT_OF_BRANCHES,
            Counted::Weights => &SortKey::DEFAULT_OF_MEMORY,
        }
    }

    /// Keys that need the cgroups of samples.
    pub const OF_CGROUPS: [SortKey; 4] =
        [SortKey::Cgroup, SortKey::Container, SortKey::Pod, SortKey::Unit];

    /// Keys of rows that are branches.
    pub const OF_BRANCHES: [SortKey; 10] = [
        SortKey::DsoFrom,
        SortKey::DsoTo,
        SortKey::SymbolFrom,
        SortKey::SymbolTo,
        SortKey::Mispredict,
        SortKey::InTx,
        SortKey::Abort,
        SortKey::Cycles,
        SortKey::SrcLineFrom,
        SortKey::SrcLineTo,
    ];

    /// Keys of accesses to memory.
    pub const OF_MEMORY: [SortKey; 10] = [
        SortKey::SymbolDaddr,
        SortKey::DsoDaddr,
        SortKey::Locked,
        SortKey::Tlb,
        SortKey::Mem,
        SortKey::Snoop,
        SortKey::DcacheLine,
        SortKey::PhysDaddr,
        SortKey::DataPageSize,
        SortKey::Blocked,
    ];

    /// The names of all keys, with commas between them.
    pub fn names() -> String {
        SortKey::ALL.iter().map(|key| key.name()).collect::<Vec<_>>().join(", ")
    }

    /// The parts of samples that rows under these keys are told apart by.
    pub fn wanted_facets(keys: &[SortKey], time_quantum_ns: NonZeroU64) -> WantedFacets {
        use SortKey as K;
        let has = |wanted: &[SortKey]| keys.iter().any(|key| wanted.contains(key));
        let mask = |of: &[(SortKey, u64)]| {
            let bits = of.iter().filter(|(key, _)| keys.contains(key));
            bits.fold(0, |mask, (_, bits)| mask | bits)
        };
        let data = match () {
            () if has(&[K::SymbolDaddr]) => WantedData::Address,
            () if has(&[K::DcacheLine]) => WantedData::CacheLine,
            () if has(&[K::DsoDaddr]) => WantedData::Dso,
            () => WantedData::Nothing,
        };
        WantedFacets {
            cpu: has(&[K::Cpu, K::Socket]),
            cgroup: has(&K::OF_CGROUPS),
            time_quantum_ns: has(&[K::Time]).then_some(time_quantum_ns),
            weight: has(&[K::Weight, K::LocalWeight]),
            parallelism: has(&[K::Parallelism]),
            instruction_latency: has(&[K::LocalInsLat, K::InsLat]),
            transaction: has(&[K::Transaction]),
            code_page_size: has(&[K::CodePageSize]),
            address: has(&[K::Addr]),
            trace: if has(&[K::Trace]) { WantedTrace::Text } else { WantedTrace::Nothing },
            data,
            data_src: mask(&[
                (K::Locked, bits::LOCK),
                (K::Tlb, bits::TLB),
                (K::Mem, bits::LEVELS),
                (K::Snoop, bits::SNOOPS),
                (K::Blocked, bits::BLOCKED),
            ]),
            phys_addr: has(&[K::PhysDaddr]),
            data_page_size: has(&[K::DataPageSize]),
            branches: WantedBranches {
                from: has(&[K::DsoFrom, K::SymbolFrom, K::SrcLineFrom]),
                to: has(&[K::DsoTo, K::SymbolTo, K::SrcLineTo]),
                flags: mask(&[
                    (K::Mispredict, BranchEntry::PREDICTION),
                    (K::InTx, BranchEntry::IN_TRANSACTION),
                    (K::Abort, BranchEntry::ABORT),
                    (K::Cycles, BranchEntry::CYCLES),
                ]),
            },
        }
    }

    /// Parses a comma-separated list. As in perf, a key may be abbreviated to any prefix and case
    /// does not matter; a key that is named twice counts once.
    ///
    /// # Errors
    /// [`UnknownSortKey`] for a word that is no prefix of a key.
    pub fn parse_list(list: &str) -> Result<Vec<SortKey>, UnknownSortKey> {
        let mut keys = Vec::new();
        for word in list.split([',', ' ']).filter(|w| !w.is_empty()) {
            let key = SortKey::parse(word)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    pub(super) fn parse(word: &str) -> Result<SortKey, UnknownSortKey> {
        let lower = word.to_ascii_lowercase();
        let named = |key: &&SortKey| key.name().starts_with(&lower);
        let found = SortKey::ALL.iter().find(named).copied();
        found.ok_or_else(|| UnknownSortKey { word: word.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_abbreviations_and_drop_repetitions() {
        assert_eq!(
            SortKey::parse_list("sym,Comm,dso,sym,srcl").unwrap(),
            [SortKey::Symbol, SortKey::Comm, SortKey::Dso, SortKey::SrcLine]
        );
        assert_eq!(SortKey::parse_list("").unwrap(), []);
    }

    #[test]
    fn each_whole_name_is_its_key() {
        for key in SortKey::ALL {
            assert_eq!(SortKey::parse(key.name()), Ok(*key));
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_the_known_ones() {
        let error = SortKey::parse_list("comm,weather").unwrap_err().to_string();
        assert!(error.contains("`weather`") && error.contains("srcline"), "{error}");
    }
}
