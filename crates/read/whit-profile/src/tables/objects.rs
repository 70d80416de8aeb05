//! Objects of waits by number, each named once.

use crate::first_pass::prepare::Prepared;
use crate::switches::{NamedObject, ObjectKey, object_name};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};
use whit_types::{Pid, TimestampNs};

/// Objects that have a number; further ones have none.
const MAX_OBJECTS: usize = 1 << 18;

#[derive(Debug, Default)]
struct Named {
    numbers: FxHashMap<(Pid, ObjectKey), u32>,
    objects: Vec<NamedObject>,
}

/// The objects that were asked for.
#[derive(Debug, Default)]
pub(super) struct WaitObjects(Mutex<Named>);

impl WaitObjects {
    /// The number of an object that a process waited for at a moment; `None` where it is not recorded.
    pub(super) fn number(
        &self,
        prepared: &Prepared,
        pid: Pid,
        key: ObjectKey,
        at: TimestampNs,
    ) -> Option<u32> {
        // A futex belongs to a process.
        let pid = if key.futex() == 0 { Pid(0) } else { pid };
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = named.numbers.get(&(pid, key)) {
            return Some(*number);
        }
        let number = named.objects.len();
        if number >= MAX_OBJECTS {
            return None;
        }
        let object = object_name(prepared, pid, key, at)?;
        named.numbers.insert((pid, key), number as u32);
        named.objects.push(object);
        Some(number as u32)
    }

    pub(super) fn get(&self, number: u32) -> Option<NamedObject> {
        let named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        named.objects.get(number as usize).cloned()
    }
}
