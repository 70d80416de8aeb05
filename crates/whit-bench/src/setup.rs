//! Settings of every comparison that runs programs.

use std::path::PathBuf;
use std::time::Duration;

/// Where programs and files are, and how long a program may run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The whit to compare.
    pub whit: PathBuf,
    /// Where workloads are.
    pub workloads: PathBuf,
    /// Where recordings and counts are written and removed.
    pub directory: PathBuf,
    /// Limit for one run.
    pub limit: Duration,
}
