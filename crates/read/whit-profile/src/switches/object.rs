//! Objects of waits: from raw data to keys, and from keys to names.

use super::futex_symbols;
use super::model::{Futex, NamedObject};
use super::object_key::ObjectKey;
use crate::first_pass::prepare::Prepared;
use crate::object_table::{ObjectTable, TOO_MANY};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use whit_perfdata::wait_object::WaitObject;
use whit_types::{Pid, TimestampNs};

/// One thread's way to the table: it remembers the numbers, so that threads do not wait for each other.
pub(super) struct ObjectReader<'a> {
    table: &'a ObjectTable,
    numbers: FxHashMap<Box<[u8]>, u32>,
}

impl<'a> ObjectReader<'a> {
    pub(super) fn new(table: &'a ObjectTable) -> Self {
        ObjectReader { table, numbers: FxHashMap::default() }
    }

    /// The object of a wait, from the raw data of the switch's sample. `futex` is what the data has of a futex.
    pub(super) fn read(&mut self, raw: &[u8], futex: u64) -> ObjectKey {
        let Some(description) = WaitObject::bytes_in_raw(raw).filter(|_| futex == 0) else {
            return ObjectKey::of_futex(futex);
        };
        self.described(description)
    }

    /// The object of a description.
    pub(super) fn described(&mut self, description: &[u8]) -> ObjectKey {
        if let Some(number) = self.numbers.get(description) {
            return ObjectKey::Described(*number);
        }
        let number = self.table.intern(description);
        if number != TOO_MANY {
            self.numbers.insert(description.into(), number);
        }
        ObjectKey::Described(number)
    }
}

/// The name of an object, which a process has at a moment; `None` without an object.
pub(crate) fn object_name(
    prepared: &Prepared,
    pid: Pid,
    key: ObjectKey,
    at: TimestampNs,
) -> Option<NamedObject> {
    match key {
        ObjectKey::Futex(address) => {
            let symbol = futex_symbols::find(prepared, pid, address, at);
            Some(NamedObject::Futex(Futex { address, symbol }))
        }
        ObjectKey::Described(number) => {
            Some(NamedObject::Described(prepared.wait_objects.get(number)))
        }
        ObjectKey::None => None,
    }
}

/// The names of some objects, by process and key.
#[derive(Debug, Default)]
pub(super) struct ObjectNames {
    /// In order, without duplicates.
    names: Vec<NamedObject>,
    numbers: FxHashMap<(Pid, ObjectKey), u32>,
}

impl ObjectNames {
    /// Names objects. `first` are times at which processes have them.
    pub(super) fn of(
        prepared: &Prepared,
        first: &FxHashMap<(Pid, ObjectKey), TimestampNs>,
    ) -> ObjectNames {
        let named: Vec<_> = first
            .iter()
            .filter_map(|(key, at)| Some((*key, object_name(prepared, key.0, key.1, *at)?)))
            .collect();
        let names: BTreeSet<_> = named.iter().map(|(_, name)| name.clone()).collect();
        let names: Vec<_> = names.into_iter().collect();
        let number = |name: &NamedObject| names.partition_point(|other| other < name) as u32;
        let numbers = named.iter().map(|(key, name)| (*key, number(name))).collect();
        ObjectNames { names, numbers }
    }

    /// The index of an object in [`ObjectNames::into_names`].
    pub(super) fn number(&self, pid: Pid, key: ObjectKey) -> Option<u32> {
        self.numbers.get(&(pid, key)).copied()
    }

    pub(super) fn into_names(self) -> Vec<NamedObject> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_table::MAX_OBJECTS;
    use whit_perfdata::wait_object::{Brings, UnknownObject};

    fn raw(words: &[u64]) -> Vec<u8> {
        let state = 0x8000_0001u32.to_le_bytes();
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        state.into_iter().chain(words).collect()
    }

    #[test]
    fn threads_that_read_number_objects_alike() {
        let table = ObjectTable::default();
        let (mut a, mut b) = (ObjectReader::new(&table), ObjectReader::new(&table));
        let pipe = |inode| raw(&[0, 3, inode]);
        let one = a.read(&pipe(1), 0);
        let two = b.read(&pipe(2), 0);
        assert_ne!(one, two);
        assert_eq!((a.read(&pipe(2), 0), b.read(&pipe(1), 0)), (two, one));
        let ObjectKey::Described(number) = two else { panic!("{two:?}") };
        assert_eq!(table.get(number), WaitObject::Pipe { inode: 2 });
        assert_eq!(a.read(&raw(&[0xabc]), 0xabc), ObjectKey::Futex(0xabc));
        assert_eq!(a.read(&raw(&[]), 0), ObjectKey::None);
    }

    #[test]
    fn numbers_say_what_comes_by_the_object() {
        let table = ObjectTable::default();
        let mut reader = ObjectReader::new(&table);
        let mut unix = |flags: u64| reader.read(&raw(&[0, 6 | flags << 8, 9, 10]), 0);
        let keys = [0, 1, 2, 4].map(&mut unix);
        let wanted = [Brings::Unknown, Brings::Work, Brings::Answers, Brings::Work];
        assert_eq!(keys.map(ObjectKey::brings), wanted);
        for (key, brings) in keys.into_iter().zip(wanted) {
            let ObjectKey::Described(number) = key else { panic!("{key:?}") };
            assert_eq!(table.get(number).brings(), brings);
        }
        assert_eq!(ObjectKey::Futex(u64::MAX).brings(), Brings::Unknown);
    }

    #[test]
    fn beyond_the_bound_objects_are_unknown() {
        let table = ObjectTable::default();
        let mut reader = ObjectReader::new(&table);
        for inode in 0..=MAX_OBJECTS as u64 {
            reader.read(&raw(&[0, 3, inode]), 0);
        }
        let last = reader.read(&raw(&[0, 3, MAX_OBJECTS as u64]), 0);
        let ObjectKey::Described(number) = last else { panic!("{last:?}") };
        assert_eq!(table.get(number), WaitObject::Unknown(UnknownObject::TooMany));
        assert_eq!(last.brings(), Brings::Unknown);
        assert_eq!(reader.read(&raw(&[0, 3, 5]), 0), ObjectKey::Described(5));
    }
}
