//! Parts of a sample, beside thread, command and call chain, by which rows can be told apart.
//!
//! Each sort key asks for its own part. A profile whose keys ask for none has one [`Facets`], and no
//! sample is looked at for them. The number of distinct facets is bounded
//! ([`MAX_FACETS`](crate::second_pass::aggregate::MAX_FACETS)): addresses and texts may differ in every sample.

use crate::ids::{CgroupId, DsoId, FrameId, TextId};
use crate::machine_model::cgroups::CgroupIndex;
use crate::parallelism::Parallelism;
use std::num::NonZeroU64;
use whit_types::{Avma, CpuId, TimestampNs};

/// Parts of a sample that rows are told apart by; absent where nobody asked, or the sample has none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Facets<C = CgroupId, F = FrameId, T = TextId> {
    /// Where the sample was taken.
    pub cpu: Option<CpuId>,
    /// Cgroup at the time of the sample.
    pub cgroup: Option<C>,
    /// Beginning of the stretch of time that the sample lies in.
    pub time: Option<TimestampNs>,
    /// Weight of one sample: on memory events, the latency of the access.
    pub weight: Option<u64>,
    /// Threads of the profiled set that ran at the time of the sample.
    pub parallelism: Option<Parallelism>,
    /// Cycles that the instruction took.
    pub instruction_latency: Option<u16>,
    /// Flags of the transaction.
    pub transaction: Option<u64>,
    /// Size of the page that holds the instruction.
    pub code_page_size_bytes: Option<u64>,
    /// Address of the instruction.
    pub address: Option<Avma>,
    /// Text of a tracepoint's record.
    pub trace: Option<T>,
    /// The data that was accessed.
    pub data: Option<DataPlace<T>>,
    /// Level of memory, snoop, lock and TLB of the access: those bits of `union perf_mem_data_src` that are wanted.
    pub data_src: Option<u64>,
    /// Physical address of the data.
    pub phys_addr: Option<u64>,
    /// Size of the page that holds the data.
    pub data_page_size_bytes: Option<u64>,
    /// Branch that the row is made of.
    pub branch: Option<BranchFacet<F>>,
}

/// Data at an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DataPlace<T = TextId> {
    /// Address in memory; zero where only the binary is wanted.
    pub address: u64,
    /// Binary or memory that holds the data; `None` where no mapping explains the address.
    pub dso: Option<DsoId>,
    /// Variable.
    pub symbol: Option<T>,
    /// Distance from the start of the variable.
    pub offset: u64,
    /// True where the kernel accessed the data.
    pub kernel: bool,
    /// True where the address is one of code.
    pub is_code: bool,
}

/// One entry of a branch stack, as far as it is wanted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BranchFacet<F = FrameId> {
    /// Code that holds the branch.
    pub from: Option<F>,
    /// Code that it leads to.
    pub to: Option<F>,
    /// Bits of the entry ([`BranchEntry::flags`](whit_perfdata::sample::BranchEntry::flags)) that are wanted.
    pub flags: u64,
}

impl<F> Default for BranchFacet<F> {
    fn default() -> Self {
        BranchFacet { from: None, to: None, flags: 0 }
    }
}

impl<C, F, T> Default for Facets<C, F, T> {
    fn default() -> Self {
        Facets {
            cpu: None,
            cgroup: None,
            time: None,
            weight: None,
            parallelism: None,
            instruction_latency: None,
            transaction: None,
            code_page_size_bytes: None,
            address: None,
            trace: None,
            data: None,
            data_src: None,
            phys_addr: None,
            data_page_size_bytes: None,
            branch: None,
        }
    }
}

impl<C, F, T> Facets<C, F, T> {
    /// The same with other numbers for cgroups, frames and texts.
    pub(crate) fn renumbered<D, G, U>(
        self,
        cgroup: impl FnOnce(C) -> Option<D>,
        mut frame: impl FnMut(F) -> Option<G>,
        mut text: impl FnMut(T) -> Option<U>,
    ) -> Facets<D, G, U> {
        Facets {
            cpu: self.cpu,
            cgroup: self.cgroup.and_then(cgroup),
            time: self.time,
            weight: self.weight,
            parallelism: self.parallelism,
            instruction_latency: self.instruction_latency,
            transaction: self.transaction,
            code_page_size_bytes: self.code_page_size_bytes,
            address: self.address,
            trace: self.trace.and_then(&mut text),
            data: self.data.map(|data| DataPlace {
                address: data.address,
                dso: data.dso,
                symbol: data.symbol.and_then(&mut text),
                offset: data.offset,
                kernel: data.kernel,
                is_code: data.is_code,
            }),
            data_src: self.data_src,
            phys_addr: self.phys_addr,
            data_page_size_bytes: self.data_page_size_bytes,
            branch: self.branch.map(|branch| BranchFacet {
                from: branch.from.and_then(&mut frame),
                to: branch.to.and_then(&mut frame),
                flags: branch.flags,
            }),
        }
    }
}

/// Facets before cgroups, frames and texts have their ids: frames are places, texts are those of an aggregate.
pub(crate) type RawFacets = Facets<RawCgroup, u32, u32>;

/// A cgroup of the recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum RawCgroup {
    /// One whose path was recorded.
    Named(CgroupIndex),
    /// The number of one whose path was not.
    Unnamed(u64),
}

/// How far an address of data is told apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum WantedData {
    /// Addresses of data are not told apart.
    #[default]
    Nothing,
    /// By binary.
    Dso,
    /// Addresses within 64 aligned bytes are one.
    CacheLine,
    /// Each address has a row of its own.
    Address,
}

/// Which ends of a branch are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WantedBranches {
    /// Code that holds the branch.
    pub from: bool,
    /// Code that it leads to.
    pub to: bool,
    /// Bits of the entry.
    pub flags: u64,
}

/// Which [`Facets`] to fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WantedFacets {
    /// Where samples were taken.
    pub cpu: bool,
    /// Paths at the time of each sample.
    pub cgroup: bool,
    /// Time, in stretches of so many nanoseconds.
    pub time_quantum_ns: Option<NonZeroU64>,
    /// Latencies of memory events.
    pub weight: bool,
    /// How many threads ran, where [`Samples::parallelism`](crate::Samples::parallelism) asks.
    pub parallelism: bool,
    /// Cycles that instructions took (key `ins_lat`).
    pub instruction_latency: bool,
    /// Flags of transactions.
    pub transaction: bool,
    /// Key `code_page_size`.
    pub code_page_size: bool,
    /// Addresses of instructions.
    pub address: bool,
    /// Texts of tracepoints.
    pub trace: WantedTrace,
    /// Addresses of data.
    pub data: WantedData,
    /// Bits of `union perf_mem_data_src`.
    pub data_src: u64,
    /// Physical addresses of data.
    pub phys_addr: bool,
    /// Key `data_page_size`.
    pub data_page_size: bool,
    /// Branches, where [`Samples::count`](crate::Samples::count) makes rows of them.
    pub branches: WantedBranches,
}

/// Which text of a tracepoint's record rows are told apart by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WantedTrace {
    /// Rows are not told apart by the record.
    #[default]
    Nothing,
    /// As the event's `print fmt` says.
    Text,
    /// All values with their names, whatever the format is.
    Fields,
}

impl WantedFacets {
    pub(crate) fn any(self) -> bool {
        self != WantedFacets::default()
    }

    /// True where names are needed while samples are read.
    pub(crate) fn needs_names(self) -> bool {
        self.data != WantedData::Nothing || self.trace != WantedTrace::Nothing
    }
}
