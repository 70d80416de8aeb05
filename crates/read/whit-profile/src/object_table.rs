//! The objects of waits that a recording describes, by number.

use rustc_hash::FxHashMap;
use std::sync::{PoisonError, RwLock};
use whit_perfdata::wait_object::{UnknownObject, WaitObject};

/// Distinct objects that have a number of their own; further ones are unknown.
pub(crate) const MAX_OBJECTS: usize = 1 << 16;
/// The number of these.
pub(crate) const TOO_MANY: u32 = u32::MAX;

/// The descriptions of a recording, which several threads add to.
#[derive(Debug, Default)]
pub(crate) struct ObjectTable(RwLock<Descriptions>);

#[derive(Debug, Default)]
struct Descriptions {
    numbers: FxHashMap<Box<[u8]>, u32>,
    objects: Vec<WaitObject>,
}

impl ObjectTable {
    /// The number of a description; [`TOO_MANY`] beyond the bound.
    pub(crate) fn intern(&self, description: &[u8]) -> u32 {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(description) {
            return *number;
        }
        if known.objects.len() >= MAX_OBJECTS {
            return TOO_MANY;
        }
        let number = known.objects.len() as u32;
        known.numbers.insert(description.into(), number);
        known.objects.push(WaitObject::parse(description));
        number
    }

    /// An object by its number.
    pub(crate) fn get(&self, number: u32) -> WaitObject {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let too_many = WaitObject::Unknown(UnknownObject::TooMany);
        known.objects.get(number as usize).cloned().unwrap_or(too_many)
    }
}
