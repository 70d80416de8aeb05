//! One service for a long time, with a row of figures each minute.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use super::service::{Between, Service, State};
use super::{Machine, Options, Settings};
use crate::bench::Say;
use crate::error::Error;
use crate::scratch::Scratch;

/// Part of the time after which memory has to stay: the recorder still learns about binaries before.
const SETTLED_SHARE: f64 = 0.2;

/// Figures after some time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct SoakRow {
    /// Seconds since the service recorded.
    pub(crate) at_s: f64,
    #[serde(flatten)]
    pub(crate) between: Between,
    pub(crate) kept_bytes: u64,
    /// Counters of losses so far.
    pub(crate) losses: Vec<(String, u64)>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Soak {
    /// Other work of the machine.
    pub(crate) machine: Machine,
    pub(crate) settings: Settings,
    /// One for each interval.
    pub(crate) rows: Vec<SoakRow>,
    /// Whether the service answered to the end.
    pub(crate) is_whole: bool,
}

impl Soak {
    /// Growth of the service's memory, and of the recorder's: from the time at which both have settled, to the most.
    pub(crate) fn growth_bytes(&self) -> (i64, i64) {
        let settled = (self.rows.len() as f64 * SETTLED_SHARE) as usize;
        let rows = self.rows.get(settled..).unwrap_or_default();
        let growth = |of: fn(&SoakRow) -> u64| {
            let first = rows.first().map_or(0, of);
            rows.iter().map(of).max().unwrap_or(0) as i64 - first as i64
        };
        (
            growth(|row| row.between.watch.resident_bytes),
            growth(|row| row.between.recorder.resident_bytes),
        )
    }
}

/// Runs the service with the first load at the first frequency, and says each row as soon as it is there.
pub(super) fn soak(options: &Options, length: Duration, say: Say<'_>) -> Result<Soak, Error> {
    let first = options.machines.first().zip(options.frequencies_hz.first());
    let (&machine, &frequency_hz) = first.context("--soak needs a machine and a frequency")?;
    let settings = options.settings(frequency_hz, !options.no_waits);
    let scratch = Scratch::new(&options.setup.directory)?;
    let _load = machine.start()?;
    let service = Service::start(&options.setup.whit, scratch.path(), &settings)?;
    let begin = Instant::now();
    let (mut rows, mut is_whole) = (Vec::new(), true);
    let mut before = (0.0, service.state().unwrap_or_default());
    while begin.elapsed() < length && is_whole {
        let due = options.interval * (rows.len() as u32 + 1);
        sleep(due.min(length).saturating_sub(begin.elapsed()));
        let at_s = begin.elapsed().as_secs_f64();
        match service.state() {
            Some(state) => {
                let row = row(at_s, &before.1, &state, at_s - before.0);
                say(&serde_json::to_string(&row)?);
                rows.push(row);
                before = (at_s, state);
            }
            None => is_whole = false,
        }
    }
    Ok(Soak { machine, settings, rows, is_whole })
}

fn row(at_s: f64, before: &State, now: &State, seconds: f64) -> SoakRow {
    SoakRow {
        at_s,
        between: now.since(before, seconds),
        kept_bytes: now.kept_bytes,
        losses: now.losses.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::ProcessCost;

    fn state(recorder: u32, mib: u64, windows: u64) -> State {
        let mut state = State { recorder_pid: Some(recorder), windows, ..State::default() };
        state.recorder.resident_bytes = mib << 20;
        state
    }

    #[test]
    fn a_row_covers_the_time_since_the_one_before() {
        let now = row(120.0, &state(1, 10, 3), &state(1, 12, 9), 60.0);
        assert_eq!((now.between.windows, now.between.recorder.resident_bytes), (6, 12 << 20));
        let other = row(120.0, &state(1, 10, 3), &state(2, 12, 9), 60.0);
        assert_eq!(other.between.recorder, ProcessCost::default());
    }

    #[test]
    fn growth_begins_when_memory_has_settled() {
        let of = |mib| row(0.0, &state(1, 0, 0), &state(1, mib, 0), 60.0);
        let rows = [5, 40, 50, 48, 53, 50, 50, 50, 50, 50].map(of).to_vec();
        let settings =
            Settings { frequency_hz: 19, has_waits: false, window_s: 30, more: Vec::new() };
        let soak = Soak { machine: Machine::Idle, settings, rows, is_whole: true };
        assert_eq!(soak.growth_bytes(), (0, 3 << 20));
    }
}
