//! The outcome of an attack.

use std::fmt;

/// Failures that are printed in full.
const SHOWN_MAX: usize = 20;

/// Runs, and the failures among them.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Attempts.
    pub(crate) runs: u64,
    /// Figures that the attack measured, one line each.
    pub(crate) figures: Vec<String>,
    /// Attempts that this machine cannot make, with the reason.
    pub(crate) skipped: Vec<String>,
    /// One line for each failure.
    pub(crate) failures: Vec<String>,
}

impl Verdict {
    /// Counts an attempt; `problem` where it failed.
    pub(crate) fn attempt(&mut self, problem: Option<String>) {
        self.runs += 1;
        self.failures.extend(problem);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs, {} failed", self.runs, self.failures.len())?;
        self.figures.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        self.skipped.iter().try_for_each(|line| write!(f, "\n  skipped: {line}"))?;
        self.failures.iter().take(SHOWN_MAX).try_for_each(|line| write!(f, "\n  FAILED {line}"))?;
        match self.failures.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
