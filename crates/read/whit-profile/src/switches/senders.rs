//! Threads that end a wait by a packet: it arrives in an interrupt of the sender's own call.

use super::interval::Switch;
use super::object_key::ObjectKey;
use crate::object_table::ObjectTable;
use rustc_hash::FxHashMap;
use whit_perfdata::wait_object::WaitObject;

/// Pairs of sockets that are remembered.
const MAX_PAIRS: usize = 1 << 16;

/// Pairs of sockets: whether packets of the one arrive at the other.
#[derive(Debug, Default)]
pub(super) struct Senders<'a> {
    objects: Option<&'a ObjectTable>,
    pairs: FxHashMap<(u32, u32), bool>,
}

impl<'a> Senders<'a> {
    pub(super) fn new(objects: &'a ObjectTable) -> Senders<'a> {
        Senders { objects: Some(objects), pairs: FxHashMap::default() }
    }

    /// Has the wake-up of a wait be one by the thread, where the thread has sent the packet that ended it.
    pub(super) fn judge(&mut self, switch: &mut Switch) {
        if let Some(woken) = &mut switch.woken
            && woken.from_interrupt
            && self.is_sender(woken.sends_to, switch.object)
        {
            woken.from_interrupt = false;
        }
    }

    fn is_sender(&mut self, sends_to: ObjectKey, waits_at: ObjectKey) -> bool {
        let (Some(objects), ObjectKey::Described(sender), ObjectKey::Described(waiter)) =
            (self.objects, sends_to, waits_at)
        else {
            return false;
        };
        if self.pairs.len() >= MAX_PAIRS {
            self.pairs.clear();
        }
        *self.pairs.entry((sender, waiter)).or_insert_with(|| {
            match (objects.get(sender), objects.get(waiter)) {
                (WaitObject::Inet(sender), WaitObject::Inet(waiter)) => waiter.takes_from(&sender),
                _ => false,
            }
        })
    }
}
