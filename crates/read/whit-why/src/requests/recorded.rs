//! The requests of a recording one by one, without the parts of their time.

use super::calls::calls;
use super::pair::Call;
use crate::error::WhyError;
use crate::losses::Losses;
use std::sync::Arc;
use whit_profile::tables::Tables;
use whit_profile::{Question, Reading};
use whit_types::{Pid, Tid};

/// All requests: the question that [`RecordedCalls`] answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct EachCall;

/// A call, and its thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCall {
    /// The number of its name in [`RecordedCalls::names`].
    pub name: u32,
    /// Process and thread that served it.
    pub thread: (Pid, Tid),
    /// Its times and its key.
    pub call: Call,
}

/// All calls that have a duration, and that no loss touches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedCalls {
    /// In the order in which they were recorded.
    pub names: Vec<Arc<str>>,
    /// By name.
    pub calls: Vec<RecordedCall>,
}

impl Question for EachCall {
    type Answer = RecordedCalls;
    type Error = WhyError;

    fn read(self, reading: Reading<'_>) -> Result<RecordedCalls, WhyError> {
        let source = reading.answer(Tables)?;
        let losses = Losses::of(&source);
        let mut recorded = RecordedCalls::default();
        for (number, (name, calls, _)) in (0..).zip(calls(&source, None)?) {
            recorded.names.push(name);
            let certain = calls.into_iter().filter(|call| !losses.touch(call.from, call.to));
            recorded.calls.extend(certain.filter_map(|call| {
                let thread = source.thread(call.thread)?;
                Some(RecordedCall { name: number, thread: (thread.pid, thread.tid), call })
            }));
        }
        Ok(recorded)
    }
}
