//! Calls and their counts.

use crate::goroutines::GoroutineId;
use whit_profile::tables::RequestKey;
use whit_types::TimestampNs;

/// A call that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Number of its thread: of a connection, the one that sent the answer; of a goroutine, the one that ran it at the end.
    pub thread: u32,
    /// The goroutine that made the call; `None` where a thread did.
    pub goroutine: Option<GoroutineId>,
    /// When it began.
    pub from: TimestampNs,
    /// When it returned.
    pub to: TimestampNs,
    /// Calls of the same requests that it is within.
    pub depth: u32,
    /// As it was recorded at the beginning.
    pub key: Option<RequestKey>,
}

impl Call {
    /// How long it took.
    pub fn duration_ns(&self) -> u64 {
        self.to.since(self.from)
    }

    /// Whether its key contains a text.
    pub(crate) fn has_key(&self, text: &str) -> bool {
        self.key.as_ref().is_some_and(|key| key.to_string().contains(text))
    }
}

/// Calls whose duration is not known, and those of two threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// They had not returned when the recording ended, or their end was lost.
    pub open: u64,
    /// They ended without a return: by an exception, by `longjmp`, or with their thread's stack.
    pub left: u64,
    /// Returns of calls that began before the recording, or whose beginning was lost.
    pub without_begin: u64,
    /// Records were lost meanwhile: another call's end may have been taken for theirs.
    pub uncertain: u64,
    /// Another thread answered than the one that read them, and the kernel does not say when its call began: it may be the
    /// answer of an earlier request.
    pub ambiguous: u64,
    /// Calls with a duration that one thread read from a connection, and another one answered.
    pub handed_over: u64,
}
