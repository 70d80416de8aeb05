//! Waits of goroutines: where they park, for how long, and who ends the wait.

mod class;
mod history;
mod pair;
mod row;
mod site;

pub use history::GoroutineId;
pub(crate) use history::{GoTasks, OnThread, Steps};
use pair::MAX_WAITS;
pub use pair::{GoPairing, GoWait, GoWaker, WaitEnd};
pub use row::{GoPart, GoRow};

use crate::error::WhyError;
use crate::losses::Losses;
use row::rows;
use site::Sites;
pub(crate) use site::of_goroutine;
use std::sync::Arc;
use whit_profile::tables::{Goroutine, StreamEnd, TableSource, Tables};
use whit_profile::warning::Warning;
use whit_profile::{Question, Reading};

/// Which waits: the question that [`Goroutines`] answers.
#[derive(Clone, Debug, Default)]
pub struct GoroutineWaits {
    /// Only those for a reason that has this in its name.
    pub reason: Option<String>,
    /// Only those with a function in the call chain that has this in its name.
    pub function: Option<String>,
    /// Only waits of at least so long.
    pub longer_than_ns: u64,
    /// Goroutines of Go's runtime, too.
    pub runtime: bool,
}

/// The waits of a recording's goroutines.
pub struct Goroutines {
    /// The recording.
    pub source: TableSource,
    /// The waits that were asked for, in order of their beginnings.
    pub waits: Vec<GoWait>,
    /// By reason and function, the longest sum first; those without an end last.
    pub rows: Vec<GoRow>,
    /// Goroutines that wait in them.
    pub goroutines: u64,
    /// Ends of waits that began before the recording, or whose beginning was lost.
    pub begun_before: u64,
    /// Waits that are left out: records were lost meanwhile.
    pub uncertain: u64,
    /// Waits of goroutines of Go's runtime, where they are left out.
    pub of_runtime: u64,
    reasons: Vec<Arc<str>>,
}

impl Question for GoroutineWaits {
    type Answer = Goroutines;
    type Error = WhyError;

    fn read(self, reading: Reading<'_>) -> Result<Goroutines, WhyError> {
        let source = reading.answer(Tables)?;
        if !source.has_goroutines() {
            return Err(WhyError::NoGoroutines(source.info().path.into_exact()));
        }
        let path = || source.info().path.into_exact();
        let mut pairing = GoPairing::default();
        let read = source.goroutine_changes(&mut |change| {
            let process = source.thread(change.thread).map(|thread| thread.pid.0 as u32);
            pairing.add(process.unwrap_or(u32::MAX), change);
        });
        if let Err(StreamEnd::Load(error)) = read {
            return Err(error.into());
        }
        if pairing.is_full() {
            return Err(WhyError::TooManyGoroutineWaits { path: path(), max: MAX_WAITS });
        }
        let (mut waits, begun_before) = pairing.finish();
        let losses = Losses::of(&source);
        let reasons = source.wait_reasons();
        let last = waits.iter().map(|wait| wait.end.map_or(wait.from, |end| end.ready)).max();
        let all = waits.len();
        waits.retain(|wait| {
            let to = wait.end.map(|end| end.ready).or(last).unwrap_or(wait.from);
            !losses.touch(wait.from, to)
        });
        let uncertain = (all - waits.len()) as u64;
        let mut sites = Sites::default();
        let certain = waits.len();
        waits.retain(|wait| self.runtime || !sites.is_of_runtime(&source, wait.callsite));
        let of_runtime = (certain - waits.len()) as u64;
        waits.retain(|wait| {
            let of_reason = |part: &String| reason_of(&reasons, wait.reason).contains(&**part);
            let of_function = |part: &String| has_function(&source, wait.callsite, part);
            self.reason.as_ref().is_none_or(of_reason)
                && self.function.as_ref().is_none_or(of_function)
                && (self.longer_than_ns == 0
                    || wait.blocked_ns().is_none_or(|ns| ns >= self.longer_than_ns))
        });
        let mut known: Vec<Goroutine> = waits.iter().map(|wait| wait.goroutine).collect();
        known.sort_unstable();
        known.dedup();
        let rows = rows(&source, &mut sites, &waits);
        let goroutines = known.len() as u64;
        Ok(Goroutines {
            source,
            waits,
            rows,
            goroutines,
            begun_before,
            uncertain,
            of_runtime,
            reasons,
        })
    }
}

fn reason_of(reasons: &[Arc<str>], number: Option<u64>) -> String {
    let name = number.and_then(|number| reasons.get(usize::try_from(number).ok()?));
    match (name, number) {
        (Some(name), _) if !name.is_empty() => name.to_string(),
        (_, Some(number)) => format!("reason {number}"),
        (_, None) => "unknown reason".to_owned(),
    }
}

fn has_function(source: &TableSource, callsite: Option<u32>, part: &str) -> bool {
    site::frames(source, callsite).iter().any(|name| name.contains(part))
}

impl Goroutines {
    /// The name of a reason, as Go's runtime prints it.
    pub fn reason(&self, number: Option<u64>) -> String {
        reason_of(&self.reasons, number)
    }

    /// The innermost function of the program in a call chain; without any, the one that the goroutine began with.
    pub fn function(&self, callsite: Option<u32>) -> Option<Arc<str>> {
        site::site(&self.chain(callsite))
    }

    /// The functions of a call chain, innermost first. Inlined ones are in it.
    pub fn chain(&self, callsite: Option<u32>) -> Vec<Arc<str>> {
        site::frames(&self.source, callsite)
    }

    /// The file that a goroutine waits for, by its number: whether it reads or writes, its call chain says.
    pub fn file(&self, wait: &GoWait) -> Option<u64> {
        const WRITES: &str = "waitWrite";
        const READS: &str = "waitRead";
        let chain = self.chain(wait.callsite);
        let has = |part: &str| chain.iter().any(|name| name.ends_with(part));
        match () {
            () if has(READS) => wait.object.read_file,
            () if has(WRITES) => wait.object.write_file,
            () => None,
        }
    }

    /// Defects of the recording.
    pub fn warnings(&self) -> Vec<Warning> {
        self.source.warnings()
    }
}
