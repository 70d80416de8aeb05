//! The program under test; everything else is the harness's.

use std::process::Command;

pub(crate) use whit_testing::parse::{report, script, stats};
pub(crate) use whit_testing::{Skip, check, probe};

/// The programs that the tests run.
pub(crate) mod tools {
    pub(crate) use super::{record, whit};
    pub(crate) use whit_testing::probe::tracefs;
    pub(crate) use whit_testing::run::{command, perf, repository, succeed, text};
    pub(crate) use whit_testing::workload;
}

/// The whit under test.
pub(crate) fn whit() -> Command {
    whit_testing::run::whit(env!("CARGO_BIN_EXE_whit"))
}

/// Records; gives the standard output of the command.
pub(crate) fn record(recorder: &mut Command) -> Result<Vec<u8>, Skip> {
    whit_testing::run::record(recorder).map(|output| output.stdout)
}
