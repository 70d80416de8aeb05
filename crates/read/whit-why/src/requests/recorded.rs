//! The requests of a recording one by one, without the parts of their time.

use super::call::Call;
use super::calls::{ChosenRequests, all_calls, chosen};
use crate::error::WhyError;
use crate::goroutines::OnThread;
use crate::histories::Histories;
use crate::losses::Losses;
use std::sync::Arc;
use whit_profile::call_times::CallTimes;
use whit_profile::tables::{TableSource, Tables};
use whit_profile::time_filter::TimeRange;
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
    /// No loss touches it.
    pub is_certain: bool,
}

/// All calls that have a duration.
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
        RecordedCalls::of(&source)
    }
}

impl RecordedCalls {
    /// Those of a recording; none where it has no requests.
    ///
    /// # Errors
    /// The recording changed while it was read.
    pub fn of(source: &TableSource) -> Result<RecordedCalls, WhyError> {
        let losses = Losses::of(source);
        let mut recorded = RecordedCalls::default();
        for (number, (name, calls, _)) in (0..).zip(all_calls(source)?) {
            recorded.names.push(name);
            recorded.calls.extend(calls.into_iter().filter_map(|call| {
                let row = source.thread(call.thread)?;
                let is_certain = !losses.touch(call.from, call.to);
                Some(RecordedCall { name: number, thread: (row.pid, row.tid), call, is_certain })
            }));
        }
        Ok(recorded)
    }
}

/// The times of some requests in their threads, for a [`Selection`](whit_profile::Selection): a question.
#[derive(Clone, Debug)]
pub struct TimesOfRequests(pub ChosenRequests);

impl Question for TimesOfRequests {
    /// There is at least one call.
    type Answer = CallTimes;
    type Error = WhyError;

    fn read(self, reading: Reading<'_>) -> Result<CallTimes, WhyError> {
        let source = reading.answer(Tables)?;
        let calls = chosen(&source, &self.0)?;
        // Those of a goroutine are in the threads that run it.
        let histories = match calls.iter().any(|call| call.goroutine.is_some()) {
            true => Histories::of(&source, None, &|_| false)?,
            false => Histories::default(),
        };
        let turns = calls.iter().flat_map(|call| {
            let caller = histories.number(call.goroutine, call.thread);
            histories.goroutines.on_threads(caller, call.from, call.to)
        });
        let times = turns.filter_map(|OnThread { from, to, thread }| {
            Some((source.thread(thread)?.tid, TimeRange { from, to }))
        });
        Ok(CallTimes::new(times))
    }
}
