//! Parts of a sample, beside thread, command and call chain, by which rows can be told apart.
//!
//! Each sort key asks for its own part. A profile whose keys ask for none has one [`Facets`], and no
//! sample is looked at for them.

use crate::cgroups::CgroupIndex;
use crate::model::CgroupId;
use crate::parallelism::Parallelism;
use std::num::NonZeroU64;
use whit_types::{CpuId, TimestampNs};

/// Parts of a sample that rows are told apart by; absent where nobody asked, or the sample has none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Facets<C = CgroupId> {
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
}

impl<C> Default for Facets<C> {
    fn default() -> Self {
        Facets { cpu: None, cgroup: None, time: None, weight: None, parallelism: None }
    }
}

/// Facets before cgroups have their ids.
pub(crate) type RawFacets = Facets<RawCgroup>;

/// A cgroup of the recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum RawCgroup {
    /// One whose path was recorded.
    Named(CgroupIndex),
    /// The number of one whose path was not.
    Unnamed(u64),
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
    /// How many threads ran, where the loader tells.
    pub parallelism: bool,
}

impl WantedFacets {
    pub(crate) fn any(self) -> bool {
        self != WantedFacets::default()
    }
}
