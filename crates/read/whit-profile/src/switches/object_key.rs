//! Objects of waits by number.

use crate::object_table::{BRINGS_ANSWERS, BRINGS_WORK};
use whit_perfdata::wait_object::Brings;

/// The object of a wait, by a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) enum ObjectKey {
    /// The recording does not have it, or it is not asked for.
    #[default]
    None,
    /// The address of a futex in the process that waits.
    Futex(u64),
    /// In the [`ObjectTable`](crate::object_table::ObjectTable).
    Described(u32),
}

impl ObjectKey {
    /// The key of an address, which is 0 for none.
    pub(crate) fn of_futex(address: u64) -> ObjectKey {
        if address == 0 { ObjectKey::None } else { ObjectKey::Futex(address) }
    }

    /// The kind of news by the object.
    pub(crate) fn brings(self) -> Brings {
        match self {
            ObjectKey::Described(number) if number & BRINGS_WORK != 0 => Brings::Work,
            ObjectKey::Described(number) if number & BRINGS_ANSWERS != 0 => Brings::Answers,
            _ => Brings::Unknown,
        }
    }

    /// The address of a futex; 0 for any other object.
    pub(crate) fn futex(self) -> u64 {
        if let ObjectKey::Futex(address) = self { address } else { 0 }
    }
}
