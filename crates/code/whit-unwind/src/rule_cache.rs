//! Rules that were looked up before, by module and address inside the module.

use crate::rule::Rule;

/// Number of entries; a power of two. At 32 bytes each the cache takes 256 KiB per unwinder, which
/// stays in a second-level cache.
const ENTRY_COUNT: usize = 1 << 13;

/// Entries that share a place: a hot leaf then does not throw out the hot caller that hashes alike.
const WAYS: usize = 2;

#[derive(Clone, Copy)]
struct Entry {
    svma: u64,
    /// [`ModuleUnwindInfo`](crate::ModuleUnwindInfo)'s id; zero for an empty entry.
    module: u32,
    rule: Rule,
}

/// How often the cache knew the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Look-ups that it answered.
    pub hits: u64,
    /// Look-ups that had to go to the unwind information.
    pub misses: u64,
}

/// A two-way set-associative cache; the entry used last stands first.
pub(crate) struct RuleCache {
    sets: Box<[[Entry; WAYS]]>,
    pub(crate) stats: CacheStats,
}

impl RuleCache {
    pub(crate) fn new() -> RuleCache {
        let empty = Entry { svma: 0, module: 0, rule: Rule::Uncovered };
        RuleCache {
            sets: vec![[empty; WAYS]; ENTRY_COUNT / WAYS].into(),
            stats: CacheStats::default(),
        }
    }

    #[inline]
    fn set_index(module: u32, svma: u64) -> usize {
        // Fibonacci hashing; the upper bits are the well-mixed ones.
        let key = svma ^ u64::from(module) << 40;
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - (ENTRY_COUNT / WAYS).ilog2())) as usize
    }

    #[inline]
    pub(crate) fn get(&mut self, module: u32, svma: u64) -> Option<Rule> {
        let set = &mut self.sets[Self::set_index(module, svma)];
        if set[0].svma == svma && set[0].module == module {
            self.stats.hits += 1;
            return Some(set[0].rule);
        }
        if set[1].svma == svma && set[1].module == module {
            self.stats.hits += 1;
            set.swap(0, 1);
            return Some(set[0].rule);
        }
        self.stats.misses += 1;
        None
    }

    pub(crate) fn insert(&mut self, module: u32, svma: u64, rule: Rule) {
        let set = &mut self.sets[Self::set_index(module, svma)];
        set[1] = set[0];
        set[0] = Entry { svma, module, rule };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_used_last_survives() {
        let mut cache = RuleCache::new();
        let home = RuleCache::set_index(1, 0);
        let rivals: Vec<u64> =
            (0..).filter(|svma| RuleCache::set_index(1, *svma) == home).take(3).collect();
        cache.insert(1, rivals[0], Rule::Root);
        cache.insert(1, rivals[1], Rule::General);
        assert_eq!(cache.get(1, rivals[0]), Some(Rule::Root));
        cache.insert(1, rivals[2], Rule::General);
        assert_eq!(cache.get(1, rivals[0]), Some(Rule::Root));
        assert_eq!(cache.get(1, rivals[1]), None);
        assert_eq!(cache.get(2, rivals[0]), None);
        assert_eq!(cache.stats, CacheStats { hits: 2, misses: 2 });
    }
}
