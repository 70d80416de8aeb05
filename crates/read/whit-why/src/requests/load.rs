//! The requests of a recording.

use super::call::{Call, Counts};
use super::calls::{calls, sort};
use super::parts::Parts;
use super::quantile::{QUANTILES, Quantile, rank};
use super::tail::{Group, SLOWEST_PERCENT, Tail, tail};
use crate::error::WhyError;
use crate::histories::Histories;
use crate::losses::Losses;

use crate::place::{Places, ThreadName};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use whit_profile::tables::{TableSource, Tables};
use whit_profile::warning::Warning;
use whit_profile::{Question, Reading};

/// Which requests: the question that [`Requests`] answers.
#[derive(Clone, Debug, Default)]
pub struct AllRequests {
    /// Only those of this name.
    pub name: Option<String>,
    /// Only those with this text in their keys.
    pub key: Option<String>,
    /// Only calls that took at least so long.
    pub longer_than_ns: u64,
    /// Calls within others of the same name, too. Their time is a part of the outer call's.
    pub nested: bool,
}

/// Requests of one name.
pub struct RequestsOfName {
    /// As `--request` gave it.
    pub name: Arc<str>,
    /// Calls in the order of their durations, the shortest first.
    pub calls: Vec<Call>,
    /// Calls whose duration is not known.
    pub counts: Counts,
    /// Calls within others, where they are left out.
    pub nested: u64,
    /// Calls that the question leaves out: others by their key, or shorter.
    pub not_asked: u64,
    /// Some of them, by their durations.
    pub quantiles: Vec<Quantile>,
    /// The slowest calls beside those of the middle.
    pub tail: Tail,
}

/// The requests of a recording, by name.
pub struct Requests {
    /// The recording.
    pub source: TableSource,
    /// By name, in the order in which they were recorded.
    pub names: Vec<RequestsOfName>,
    histories: Histories,
}

impl Question for AllRequests {
    type Answer = Requests;
    type Error = WhyError;

    /// Reads a recording twice: the marks of requests, then the switches.
    fn read(self, reading: Reading<'_>) -> Result<Requests, WhyError> {
        let source = reading.answer(Tables)?;
        let all = calls(&source, self.name.as_deref())?;
        let of_calls: FxHashSet<u32> =
            all.iter().flat_map(|(_, calls, _)| calls).map(|call| call.thread).collect();
        // Any thread may run a goroutine.
        let mut calls_made = all.iter().flat_map(|(_, calls, _)| calls);
        let has_goroutines = calls_made.any(|call| call.goroutine.is_some());
        let histories = match source.has_switches() {
            true => {
                Histories::of(&source, None, &|thread| has_goroutines || of_calls.contains(&thread))
            }
            false => Ok(Histories::default()),
        };
        let histories = histories.map_err(|error| match error {
            WhyError::TooMany => WhyError::TooManyOfRequests,
            error => error,
        })?;
        let losses = Losses::of(&source);
        let mut places = Places::of_several();
        let names = all
            .into_iter()
            .map(|(name, calls, counts)| {
                let taken = Taken { question: &self, losses: &losses };
                taken.of_name(name, (calls, counts), |call| {
                    Parts::of(&source, &mut places, &histories, call)
                })
            })
            .collect();
        Ok(Requests { source, names, histories })
    }
}

/// The calls that are wanted, and the times in which records were lost.
struct Taken<'a> {
    question: &'a AllRequests,
    losses: &'a Losses,
}

impl Taken<'_> {
    fn of_name(
        &self,
        name: Arc<str>,
        (mut calls, mut counts): (Vec<Call>, Counts),
        mut parts_of: impl FnMut(&Call) -> Parts,
    ) -> RequestsOfName {
        let all = calls.len();
        calls.retain(|call| !self.losses.touch(call.from, call.to));
        counts.uncertain = (all - calls.len()) as u64;
        let certain = calls.len();
        calls.retain(|call| self.question.nested || call.depth == 0);
        let nested = (certain - calls.len()) as u64;
        let outer = calls.len();
        calls.retain(|call| {
            let has_key = self.question.key.as_deref().is_none_or(|key| call.has_key(key));
            has_key && call.duration_ns() >= self.question.longer_than_ns
        });
        let not_asked = (outer - calls.len()) as u64;
        sort(&mut calls);
        let quantiles = QUANTILES.into_iter().filter_map(|(name, thousandths)| {
            let call = rank(calls.len(), thousandths)?;
            let parts = parts_of(&calls[call]);
            Some(Quantile { name, call, duration_ns: calls[call].duration_ns(), parts })
        });
        let quantiles = quantiles.collect();
        let slow = (calls.len() * SLOWEST_PERCENT).div_ceil(100);
        let (mut slowest, mut middle) = (Group::default(), Group::default());
        calls[calls.len() - slow..].iter().for_each(|call| slowest.add(&parts_of(call)));
        let quarter = calls.len() / 4;
        let halves = quarter..calls.len() - quarter.max(slow);
        calls.get(halves).into_iter().flatten().for_each(|call| middle.add(&parts_of(call)));
        let tail = tail(&slowest, &middle);
        RequestsOfName { name, calls, counts, nested, not_asked, quantiles, tail }
    }
}

impl Requests {
    /// The parts of the time of a call.
    pub fn parts(&self, call: &Call) -> Parts {
        Parts::of(&self.source, &mut Places::default(), &self.histories, call)
    }

    /// The thread or goroutine of a call.
    pub fn caller(&self, call: &Call) -> ThreadName {
        let number = self.histories.number(call.goroutine, call.thread);
        ThreadName::of(&self.source, &self.histories.goroutines, number)
    }

    /// Whether the recording has context switches, without which no time has parts.
    pub fn has_switches(&self) -> bool {
        self.source.has_switches()
    }

    /// Defects of the recording.
    pub fn warnings(&self) -> Vec<Warning> {
        self.source.warnings()
    }
}
