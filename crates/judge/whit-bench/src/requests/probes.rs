//! perf's probes at the ends of a function. They are the machine's, and go when this is dropped.

use std::path::Path;
use std::process::{Command, Stdio};

use super::FUNCTION;
use crate::peer::perf;

/// The event of the beginning.
const BEGIN: &str = "call";
/// perf names that of the return so.
const END: &str = "call__return";

#[derive(Debug)]
pub(super) struct Probes {
    group: String,
}

impl Probes {
    /// Adds them, or says why there are none.
    pub(super) fn add(program: &Path) -> Result<Probes, String> {
        let probes = Probes { group: format!("whit_bench_{}", std::process::id()) };
        let mut command = Command::new(perf());
        command.args(["probe", "-q", "-x"]).arg(program);
        for place in ["", "%return"] {
            command.arg("-a").arg(format!("{}:{BEGIN}={FUNCTION}{place}", probes.group));
        }
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("cannot run {}: {error}", perf().display()))?;
        match output.status.success() {
            true => Ok(probes),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
        }
    }

    /// The names of their events.
    pub(super) fn events(&self) -> impl Iterator<Item = String> {
        [BEGIN, END].into_iter().map(|end| format!("{}:{end}", self.group))
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        let mut command = Command::new(perf());
        command.args(["probe", "-q", "-d"]).arg(format!("{}:*", self.group));
        let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}
