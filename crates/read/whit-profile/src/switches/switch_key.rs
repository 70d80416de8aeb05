//! The properties by which switches are summed up.

use super::object_key::ObjectKey;
use super::switch_event::StackRef;
use whit_perfdata::wait_object::Brings;

/// No command name.
pub(crate) const NO_COMM: u32 = u32::MAX;

/// The properties that distinguish rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SwitchKey {
    pub(crate) thread: u32,
    /// [`NO_COMM`] where the thread has no name.
    pub(crate) comm: u32,
    pub(crate) stack: StackRef,
    /// The object of voluntary waits, where rows differ by it.
    pub(crate) object: ObjectKey,
    /// The kind of news by the object.
    pub(crate) brings: Brings,
    /// The block of time, where rows differ by it.
    pub(crate) block: u16,
}
