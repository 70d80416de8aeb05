//! The objects of waits that a recording describes, by number.

use rustc_hash::FxHashMap;
use std::sync::{PoisonError, RwLock};
use whit_perfdata::wait_object::{Brings, UnknownObject, WaitObject};

/// Distinct objects that have a number of their own; further ones are unknown.
pub(crate) const MAX_OBJECTS: usize = 1 << 16;
/// The number of these.
pub(crate) const TOO_MANY: u32 = NUMBER;
/// In the numbers of objects by which work or answers come: this is asked at each wait.
pub(crate) const BRINGS_WORK: u32 = 1 << 31;
pub(crate) const BRINGS_ANSWERS: u32 = 1 << 30;
/// The rest of a number.
const NUMBER: u32 = BRINGS_ANSWERS - 1;

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
        let object = WaitObject::parse(description);
        let flag = match object.brings() {
            Brings::Unknown => 0,
            Brings::Work => BRINGS_WORK,
            Brings::Answers => BRINGS_ANSWERS,
        };
        let number = known.objects.len() as u32 | flag;
        known.numbers.insert(description.into(), number);
        known.objects.push(object);
        number
    }

    /// An object by its number.
    pub(crate) fn get(&self, number: u32) -> WaitObject {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let too_many = WaitObject::Unknown(UnknownObject::TooMany);
        known.objects.get((number & NUMBER) as usize).cloned().unwrap_or(too_many)
    }
}
