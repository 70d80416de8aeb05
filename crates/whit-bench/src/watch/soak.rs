//! One service for a long time, with a row of figures each minute.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::process::ProcessCost;
use super::service::{Service, State};
use super::{Machine, Settings};
use crate::Error;
use crate::scratch::Scratch;
use crate::setup::Setup;
use crate::system::System;

/// Part of the time after which memory has to stay: the recorder still learns about binaries before.
const SETTLED_SHARE: f64 = 0.2;

/// Settings.
#[derive(Clone, Debug)]
pub struct SoakOptions {
    /// Other work of the machine.
    pub machine: Machine,
    /// Settings of the service.
    pub settings: Settings,
    /// Length of the run.
    pub length: Duration,
    /// Time between two rows.
    pub interval: Duration,
    /// Programs and files.
    pub setup: Setup,
}

/// Figures after some time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SoakRow {
    /// Seconds since the service recorded.
    pub at_s: f64,
    /// The service, since the row before.
    pub watch: ProcessCost,
    /// Its recorder; zero where another one runs than before.
    pub recorder: ProcessCost,
    /// Windows since the row before.
    pub windows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the files that are kept.
    pub kept_bytes: u64,
    /// Counters of losses so far.
    pub losses: Vec<(String, u64)>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Soak {
    /// The machine.
    pub system: System,
    /// Other work of the machine.
    pub machine: Machine,
    /// Settings of the service.
    pub settings: Settings,
    /// One for each interval.
    pub rows: Vec<SoakRow>,
    /// Whether the service answered to the end.
    pub is_whole: bool,
}

impl Soak {
    /// Growth of the service's memory, and of the recorder's: from the time at which both have settled, to the most.
    pub fn growth_bytes(&self) -> (i64, i64) {
        let settled = (self.rows.len() as f64 * SETTLED_SHARE) as usize;
        let rows = self.rows.get(settled..).unwrap_or_default();
        let growth = |of: fn(&SoakRow) -> u64| {
            let first = rows.first().map_or(0, of);
            rows.iter().map(of).max().unwrap_or(0) as i64 - first as i64
        };
        (growth(|row| row.watch.resident_bytes), growth(|row| row.recorder.resident_bytes))
    }
}

/// Runs the service, and says each row as soon as it is there.
///
/// # Errors
/// A folder or a load cannot be made, or the service does not begin.
pub fn soak(options: &SoakOptions, say: &mut dyn FnMut(&SoakRow)) -> Result<Soak, Error> {
    let scratch = Scratch::new(&options.setup.directory)?;
    let _load = options.machine.start()?;
    let service = Service::start(&options.setup.whit, scratch.path(), &options.settings)?;
    let begin = Instant::now();
    let (mut rows, mut is_whole) = (Vec::new(), true);
    let mut before = (0.0, service.state().unwrap_or_default());
    while begin.elapsed() < options.length && is_whole {
        let due = options.interval * (rows.len() as u32 + 1);
        sleep(due.min(options.length).saturating_sub(begin.elapsed()));
        let at_s = begin.elapsed().as_secs_f64();
        match service.state() {
            Some(state) => {
                rows.push(row(at_s, &before.1, &state, at_s - before.0));
                rows.last().into_iter().for_each(&mut *say);
                before = (at_s, state);
            }
            None => is_whole = false,
        }
    }
    let (machine, settings) = (options.machine, options.settings.clone());
    Ok(Soak { system: System::detect(), machine, settings, rows, is_whole })
}

fn row(at_s: f64, before: &State, now: &State, seconds: f64) -> SoakRow {
    let is_same = before.recorder_pid == now.recorder_pid;
    let recorder = now.recorder.since(&before.recorder, seconds);
    SoakRow {
        at_s,
        watch: now.watch.since(&before.watch, seconds),
        recorder: if is_same { recorder } else { ProcessCost::default() },
        windows: now.windows - before.windows,
        bytes: now.window_bytes - before.window_bytes,
        kept_bytes: now.kept_bytes,
        losses: now.losses.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(recorder: u32, mib: u64, windows: u64) -> State {
        let mut state = State { recorder_pid: Some(recorder), windows, ..State::default() };
        state.recorder.resident_bytes = mib << 20;
        state
    }

    #[test]
    fn a_row_covers_the_time_since_the_one_before() {
        let now = row(120.0, &state(1, 10, 3), &state(1, 12, 9), 60.0);
        assert_eq!((now.windows, now.recorder.resident_bytes), (6, 12 << 20));
        let other = row(120.0, &state(1, 10, 3), &state(2, 12, 9), 60.0);
        assert_eq!(other.recorder, ProcessCost::default());
    }

    #[test]
    fn growth_begins_when_memory_has_settled() {
        let of = |mib| row(0.0, &state(1, 0, 0), &state(1, mib, 0), 60.0);
        let rows = [5, 40, 50, 48, 53, 50, 50, 50, 50, 50].map(of).to_vec();
        let settings =
            Settings { frequency_hz: 19, has_waits: false, window_s: 30, more: Vec::new() };
        let system = System::default();
        let soak = Soak { system, machine: Machine::Idle, settings, rows, is_whole: true };
        assert_eq!(soak.growth_bytes(), (0, 3 << 20));
    }
}
