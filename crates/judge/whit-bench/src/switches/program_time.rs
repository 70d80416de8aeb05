//! The time that whit's programs take at a switch that is not sampled.
//!
//! By the kernel's statistics. These leave out the way into a program and out of it, and put in the time that
//! they take themselves: an empty program beside them, at the same switches, shows how much that is.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use whit_bpf::nothing::Nothing;
use whit_sys::bpf::RunStatistics;

use crate::error::{self, Error};
use crate::program_runs::{Runs, of_process};
use crate::record::recorder::Recorder;
use crate::record::run::RunLimits;
use crate::record::workload::Job;

/// A mean is taken over this time.
const WINDOW: Duration = Duration::from_millis(100);
/// A window with fewer switches is before the load begins, or after it ends.
const SWITCHES_MIN: u64 = 1000;

/// Means of one window.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct ProgramTime {
    /// Programs that ran at each switch.
    pub(crate) programs: usize,
    /// Time in all of them for one switch, without the time of the statistics.
    pub(crate) switch_ns: f64,
    /// Time that the kernel gives for an empty program: that of the statistics.
    pub(crate) empty_ns: f64,
}

/// Records the job once; windows with the load in them. There are none where the kernel refuses an empty program or keeps
/// no statistics: the row of the recorder then says why it refuses.
pub(super) fn windows(
    whit: &Recorder,
    options: &[String],
    job: &Job,
    place: RunLimits<'_>,
) -> Result<Vec<ProgramTime>, Error> {
    let (Ok(nothing), Ok(_kept)) = (Nothing::attach(), whit_sys::bpf::enable_run_statistics())
    else {
        return Ok(Vec::new());
    };
    place.scratch.clear()?;
    let mut command = whit.command(options, &place.scratch.path().join("recording"), &job.words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let failed = error::run(&whit.program);
    let mut child = command.spawn().map_err(&failed)?;
    let (mut found, begin) = (Vec::new(), Instant::now());
    let mut before = (Runs::new(), RunStatistics::default());
    while child.try_wait().map_err(&failed)?.is_none() {
        if begin.elapsed() > place.limit {
            child.kill().map_err(&failed)?;
        }
        let after = (of_process(child.id()), nothing.statistics().unwrap_or_default());
        found.extend(window(&before, &after));
        before = after;
        sleep(WINDOW);
    }
    place.scratch.clear()?;
    Ok(found)
}

/// Means of the window between two readings; nothing where the load did not run in it.
fn window(before: &(Runs, RunStatistics), after: &(Runs, RunStatistics)) -> Option<ProgramTime> {
    let empty_runs = after.1.runs.saturating_sub(before.1.runs);
    let empty_ns = after.1.run_time_ns.saturating_sub(before.1.run_time_ns);
    let empty_ns = (empty_runs >= SWITCHES_MIN).then(|| empty_ns as f64 / empty_runs as f64)?;
    let runs = after.0.iter().filter_map(|(id, (runs, time_ns))| {
        let (runs_before, time_before_ns) = before.0.get(id)?;
        Some((runs.saturating_sub(*runs_before), time_ns.saturating_sub(*time_before_ns)))
    });
    // The recorder's other programs run at mappings and ends of threads.
    let runs: Vec<_> = runs.filter(|(runs, _)| *runs >= empty_runs / 2).collect();
    let whole_ns: f64 = runs.iter().map(|(runs, time_ns)| *time_ns as f64 / *runs as f64).sum();
    (!runs.is_empty()).then_some(ProgramTime {
        programs: runs.len(),
        switch_ns: whole_ns - empty_ns * runs.len() as f64,
        empty_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(switches: u64) -> (Runs, RunStatistics) {
        let runs =
            [(1, (switches, 120 * switches)), (2, (switches, 80 * switches)), (3, (7, 9000))];
        (Runs::from(runs), RunStatistics { runs: switches, run_time_ns: 50 * switches, missed: 0 })
    }

    #[test]
    fn the_time_of_the_statistics_is_taken_off_each_program() {
        let expected = ProgramTime { programs: 2, switch_ns: 100.0, empty_ns: 50.0 };
        assert_eq!(window(&reading(5000), &reading(7000)), Some(expected));
    }

    #[test]
    fn windows_without_the_load_have_no_time() {
        assert_eq!(window(&reading(5000), &reading(5999)), None);
        // The recorder's programs are not yet there.
        let empty = (Runs::new(), reading(5000).1);
        assert_eq!(window(&empty, &reading(7000)), None);
    }
}
