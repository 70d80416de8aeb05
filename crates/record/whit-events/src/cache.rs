//! Hardware-cache events (`PERF_TYPE_HW_CACHE`): a cache, an operation and a result.
//!
//! Numbers are the kernel's `enum perf_hw_cache_id`, `perf_hw_cache_op_id` and
//! `perf_hw_cache_op_result_id`; spellings, and which operations a cache has, are perf's
//! (`evsel__hw_cache*` in `tools/perf/util/evsel.c`).

use std::fmt;

macro_rules! cache_part {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident: $($spelling:literal)|+;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
        }

        impl $name {
            /// All of them, in the order of the kernel's numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Every spelling.
            pub const fn names(self) -> &'static [&'static str] {
                match self {
                    $($name::$variant => &[$($spelling),+],)*
                }
            }
        }
    };
}

cache_part!(
    /// Which cache.
    Cache {
        /// First-level data cache.
        L1d: "L1-dcache" | "l1-d" | "l1d" | "L1-data";
        /// First-level instruction cache.
        L1i: "L1-icache" | "l1-i" | "l1i" | "L1-instruction";
        /// Last-level cache.
        Ll: "LLC" | "L2";
        /// Data translation buffer.
        Dtlb: "dTLB" | "d-tlb" | "Data-TLB";
        /// Instruction translation buffer.
        Itlb: "iTLB" | "i-tlb" | "Instruction-TLB";
        /// Branch predictor.
        Bpu: "branch" | "branches" | "bpu" | "btb" | "bpc";
        /// Memory of the NUMA node.
        Node: "node";
    }
);

cache_part!(
    /// Operation on the cache.
    CacheOp {
        /// Loads from the cache.
        Read: "load" | "loads" | "read";
        /// Stores into the cache.
        Write: "store" | "stores" | "write";
        /// Requests by the prefetcher.
        Prefetch: "prefetch" | "prefetches" | "speculative-read" | "speculative-load";
    }
);

cache_part!(
    /// Result of the operation.
    CacheResult {
        /// Every access.
        Access: "refs" | "Reference" | "ops" | "access";
        /// Only the misses.
        Miss: "misses" | "miss";
    }
);

/// A hardware-cache event. `L1-dcache` alone means its read accesses, as in perf.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CacheEvent {
    /// Which cache.
    pub cache: Cache,
    /// Which operation.
    pub op: CacheOp,
    /// Which outcome.
    pub result: CacheResult,
}

impl Cache {
    /// The operations that make sense: instruction caches are never written, and the instruction
    /// TLB and the branch predictor are only looked up.
    pub const fn ops(self) -> &'static [CacheOp] {
        match self {
            Cache::L1d | Cache::Ll | Cache::Dtlb | Cache::Node => CacheOp::ALL,
            Cache::L1i => &[CacheOp::Read, CacheOp::Prefetch],
            Cache::Itlb | Cache::Bpu => &[CacheOp::Read],
        }
    }
}

impl CacheEvent {
    /// `perf_event_attr.config` of the event.
    pub const fn config(self) -> u64 {
        self.cache as u64 | (self.op as u64) << 8 | (self.result as u64) << 16
    }

    /// Parses perf's spelling: a cache, then an operation and a result, both optional. `None` where
    /// the word is something else. Whether the cache has the operation is not checked: see
    /// [`Cache::ops`].
    pub fn from_name(word: &str) -> Option<CacheEvent> {
        let caches = Cache::ALL.iter().flat_map(|&c| c.names().iter().map(move |&n| (c, n)));
        caches
            .filter_map(|(cache, name)| Some((cache, word.strip_prefix(name)?)))
            .find_map(|(cache, rest)| Self::from_parts(cache, rest))
    }

    fn from_parts(cache: Cache, rest: &str) -> Option<CacheEvent> {
        let (mut op, mut result) = (None, None);
        let mut rest = rest;
        while !rest.is_empty() {
            let part = rest.strip_prefix('-')?;
            if let (None, Some((found, tail))) =
                (op, match_part(part, CacheOp::ALL, CacheOp::names))
            {
                (op, rest) = (Some(found), tail);
            } else if let (None, Some((found, tail))) =
                (result, match_part(part, CacheResult::ALL, CacheResult::names))
            {
                (result, rest) = (Some(found), tail);
            } else {
                return None;
            }
        }
        let op = op.unwrap_or(CacheOp::Read);
        Some(CacheEvent { cache, op, result: result.unwrap_or(CacheResult::Access) })
    }
}

/// Splits one whole part (up to the end or the next hyphen) off the front of `text`.
fn match_part<'t, T: Copy>(
    text: &'t str,
    all: &[T],
    names: impl Fn(T) -> &'static [&'static str],
) -> Option<(T, &'t str)> {
    all.iter().find_map(|&part| {
        names(part).iter().find_map(|name| {
            let tail = text.strip_prefix(name)?;
            (tail.is_empty() || tail.starts_with('-')).then_some((part, tail))
        })
    })
}

impl fmt::Display for CacheEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(canonical_name(*self))
    }
}

/// Names of all valid cache events, in perf's spelling (`L1-dcache-loads`,
/// `L1-dcache-load-misses`).
pub fn cache_event_names() -> impl Iterator<Item = &'static str> {
    CANONICAL.iter().map(|(_, name)| *name)
}

fn canonical_name(event: CacheEvent) -> &'static str {
    CANONICAL
        .iter()
        .find(|(config, _)| *config == event.config())
        .map_or("unknown-cache-event", |(_, name)| name)
}

macro_rules! canonical {
    ($($cache:ident $name:literal: $($op:ident)+;)*) => {
        &[$($(canonical!(@ $cache $name $op Access), canonical!(@ $cache $name $op Miss),)+)*]
    };
    (@ $cache:ident $name:literal Read Access) => { canonical!(= $cache Read Access concat!($name, "-loads")) };
    (@ $cache:ident $name:literal Read Miss) => { canonical!(= $cache Read Miss concat!($name, "-load-misses")) };
    (@ $cache:ident $name:literal Write Access) => { canonical!(= $cache Write Access concat!($name, "-stores")) };
    (@ $cache:ident $name:literal Write Miss) => { canonical!(= $cache Write Miss concat!($name, "-store-misses")) };
    (@ $cache:ident $name:literal Prefetch Access) => { canonical!(= $cache Prefetch Access concat!($name, "-prefetches")) };
    (@ $cache:ident $name:literal Prefetch Miss) => { canonical!(= $cache Prefetch Miss concat!($name, "-prefetch-misses")) };
    (= $cache:ident $op:ident $result:ident $text:expr) => {
        (CacheEvent { cache: Cache::$cache, op: CacheOp::$op, result: CacheResult::$result }.config(), $text)
    };
}

/// The valid combinations with the one spelling that we print.
const CANONICAL: &[(u64, &str)] = canonical! {
    L1d "L1-dcache": Read Write Prefetch;
    L1i "L1-icache": Read Prefetch;
    Ll "LLC": Read Write Prefetch;
    Dtlb "dTLB": Read Write Prefetch;
    Itlb "iTLB": Read;
    Bpu "branch": Read;
    Node "node": Read Write Prefetch;
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_valid_combination_reads_back_from_every_spelling() {
        let mut valid = 0;
        for &cache in Cache::ALL {
            for &op in cache.ops() {
                for &result in CacheResult::ALL {
                    let event = CacheEvent { cache, op, result };
                    assert_eq!(CacheEvent::from_name(&event.to_string()), Some(event));
                    valid += 1;
                    for (c, o, r) in spellings(event) {
                        assert_eq!(CacheEvent::from_name(&format!("{c}-{o}-{r}")), Some(event));
                        assert_eq!(CacheEvent::from_name(&format!("{c}-{r}-{o}")), Some(event));
                    }
                }
            }
        }
        assert_eq!(valid, cache_event_names().count());
    }

    fn spellings(event: CacheEvent) -> Vec<(&'static str, &'static str, &'static str)> {
        let mut all = Vec::new();
        for c in event.cache.names() {
            for o in event.op.names() {
                all.extend(event.result.names().iter().map(|r| (*c, *o, *r)));
            }
        }
        all
    }

    #[test]
    fn missing_parts_mean_read_accesses() {
        let loads = CacheEvent::from_name("L1-dcache-loads").unwrap();
        assert_eq!(CacheEvent::from_name("L1-dcache"), Some(loads));
        assert_eq!(CacheEvent::from_name("L1-dcache-refs"), Some(loads));
        assert_eq!(CacheEvent::from_name("dTLB-misses").unwrap().config(), 0x1_0003);
    }

    #[test]
    fn words_that_only_begin_like_a_cache_are_none() {
        for word in
            ["L1-dcachex", "branch-instructions", "node-loads-loads", "L2-", "l1d-misses-miss"]
        {
            assert_eq!(CacheEvent::from_name(word), None, "{word}");
        }
    }
}
