//! The mappings of a process, as the kernel told them.

use crate::piece::Record;
use std::collections::{BTreeMap, BTreeSet};
use whit_perfdata::record::Mmap;

/// Mappings of a process; the oldest ones go first. The kernel does not say which ones are gone.
pub(crate) const MAPPINGS_MAX: usize = 16_384;

#[derive(Clone, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    record: Record,
}

/// Mappings in the order in which they came. A process may make a hundred thousand of them: none looks at all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    by_age: BTreeMap<u64, Mapping>,
    /// First addresses, each with the key in `by_age`.
    by_start: BTreeSet<(u64, u64)>,
    next: u64,
}

impl Mappings {
    /// Takes one in, and those out that it hides whole. True where an older one went, since there are too many.
    pub(crate) fn add(&mut self, mapping: &Mmap<'_>, record: Record) -> bool {
        let (start, end) = (mapping.start.0, mapping.start.0.saturating_add(mapping.len_bytes));
        let is_hidden = |age: &u64| self.by_age.get(age).is_some_and(|mapping| mapping.end <= end);
        let within = self.by_start.range((start, 0)..(end, 0)).map(|(_, age)| *age);
        let hidden: Vec<u64> = within.filter(is_hidden).collect();
        hidden.into_iter().for_each(|age| self.remove(age));
        let is_full = self.by_age.len() >= MAPPINGS_MAX;
        if is_full && let Some((oldest, _)) = self.by_age.first_key_value() {
            self.remove(*oldest);
        }
        self.by_start.insert((start, self.next));
        self.by_age.insert(self.next, Mapping { start, end, record });
        self.next += 1;
        is_full
    }

    fn remove(&mut self, age: u64) {
        if let Some(mapping) = self.by_age.remove(&age) {
            self.by_start.remove(&(mapping.start, age));
        }
    }

    /// Their records, the oldest first: later ones lie over earlier ones.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.by_age.values().map(|mapping| &mapping.record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::record::MappedFileId;
    use whit_types::{Avma, Pid, Tid};

    fn add(mappings: &mut Mappings, start: u64, len_bytes: u64, record: u8) -> bool {
        let mapping = Mmap {
            pid: Pid(7),
            tid: Tid(7),
            start: Avma(start),
            len_bytes,
            page_offset: 0,
            file_id: MappedFileId::None,
            protection: 0,
            executable: false,
            flags: 0,
            path: b"",
        };
        mappings.add(&mapping, [record].as_slice().into())
    }

    fn kept(mappings: &Mappings) -> Vec<u8> {
        mappings.records().map(|record| record[0]).collect()
    }

    #[test]
    fn a_mapping_hides_those_within_it_and_no_others() {
        let mut mappings = Mappings::default();
        add(&mut mappings, 0x1000, 0x3000, 1);
        add(&mut mappings, 0x1000, 0x1000, 2);
        add(&mut mappings, 0x2000, 0x1000, 3);
        add(&mut mappings, 0x9000, 0x1000, 4);
        assert_eq!(kept(&mappings), [1, 2, 3, 4]);
        // It begins where the first one does, and is smaller than that.
        add(&mut mappings, 0x1000, 0x2000, 5);
        assert_eq!(kept(&mappings), [1, 4, 5]);
        add(&mut mappings, 0, 0xa000, 6);
        assert_eq!(kept(&mappings), [6]);
        assert_eq!(mappings.by_start.len(), 1);
    }

    #[test]
    fn the_oldest_go_where_there_are_too_many() {
        let mut mappings = Mappings::default();
        let count = MAPPINGS_MAX as u64 + 10;
        let went =
            (0..count).filter(|at| add(&mut mappings, (count - at) << 12, 0x1000, *at as u8));
        assert_eq!(went.count(), 10);
        assert_eq!((mappings.by_age.len(), mappings.by_start.len()), (MAPPINGS_MAX, MAPPINGS_MAX));
        assert_eq!(kept(&mappings)[0], 10);
    }
}
