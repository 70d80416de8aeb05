//! How long BPF programs take at a switch, by the kernel's statistics of their runs.
//!
//! These leave out the way into a program and out of it, and put in the time that they take themselves: an
//! empty program shows how much that is.

use whit_bpf::nothing::Nothing;

use super::load::Load;
use crate::error::Error;
use crate::program_runs::{Runs, of_process};
use whit_measure::summary::Spread;

/// Windows in which runs are timed. They are left out of the times of hops, since this takes time
/// too. Each has a mean; where the hypervisor has run something else meanwhile it is far too long.
const WINDOWS: usize = 8;

/// The program's owner.
#[derive(Debug)]
pub(super) enum Owner<'a> {
    /// The one of this process's that does nothing.
    Nothing(&'a Nothing),
    /// Another process, by its id: the program that it has called most often.
    Process(u32),
}

impl Owner<'_> {
    /// How long a run takes while the token goes around, in nanoseconds: the median of the windows' means;
    /// `None` where the kernel does not tell.
    pub(super) fn run_ns(&self, load: &mut Load) -> Result<Option<f64>, Error> {
        let Ok(_kept) = whit_sys::bpf::enable_run_statistics() else { return Ok(None) };
        let mut means = Vec::new();
        for _ in 0..WINDOWS {
            let before = self.runs();
            load.measure()?;
            means.extend(mean_ns(&before, &self.runs()));
        }
        Ok(Spread::of(means).map(|means| means.median))
    }

    fn runs(&self) -> Runs {
        match self {
            Owner::Nothing(program) => {
                let found = program.statistics().ok();
                found.map(|found| (0, (found.runs, found.run_time_ns))).into_iter().collect()
            }
            Owner::Process(pid) => of_process(*pid),
        }
    }
}

/// Time of the program that ran most often.
fn mean_ns(before: &Runs, after: &Runs) -> Option<f64> {
    let new = after.iter().map(|(id, (runs, time_ns))| {
        let (runs_before, time_before_ns) = before.get(id).copied().unwrap_or_default();
        (runs.saturating_sub(runs_before), time_ns.saturating_sub(time_before_ns))
    });
    let (runs, time_ns) = new.max()?;
    (runs > 0).then(|| time_ns as f64 / runs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_ran_most_is_reported() {
        let before = Runs::from([(1, (10, 1000)), (2, (0, 0))]);
        let after = Runs::from([(1, (30, 3000)), (2, (1, 900)), (3, (5, 50))]);
        assert_eq!(mean_ns(&before, &after), Some(100.0));
        assert_eq!(mean_ns(&after, &after), None);
        assert_eq!(mean_ns(&before, &Runs::new()), None);
    }
}
