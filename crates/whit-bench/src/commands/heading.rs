//! Headings of groups of options in `--help`.

pub(super) const COMPARED: &str = "Comparison";
pub(super) const RUNS: &str = "Runs";
pub(super) const EVENTS: &str = "Events and samples";
pub(super) const SETUP: &str = "Setup";
pub(super) const SETUP_OF_HOST: &str = "Setup, with --host";
pub(super) const RESULTS: &str = "Results";
