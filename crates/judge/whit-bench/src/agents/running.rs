//! Programs that run beside a measurement.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use wait4::Wait4;
use whit_measure::process_tree::kill;

use crate::error::{self, Error};

/// A process that is killed with all below it when this is dropped.
pub(super) struct Running {
    pub(super) child: Child,
    /// It was waited for: its number may be another process's by now.
    is_over: bool,
}

impl Running {
    pub(super) fn new(child: Child) -> Running {
        Running { child, is_over: false }
    }

    /// Starts a program whose messages go to the file `log`.
    pub(super) fn start(mut command: Command, log: &Path) -> Result<Running, Error> {
        let file = File::create(log).map_err(error::file("create", log))?;
        let second = file.try_clone().map_err(error::file("open", log))?;
        let program = command.get_program().to_owned();
        let child = command.stdin(Stdio::null()).stdout(file).stderr(second).spawn();
        Ok(Running::new(child.map_err(error::run(program))?))
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> Result<bool, Error> {
        self.child.try_wait().map(|end| end.is_some()).map_err(error::file("wait for", "a program"))
    }

    /// Waits for its end. Gives its CPU time, with that of the processes that it has waited for.
    pub(super) fn cpu_time(&mut self) -> Result<Duration, Error> {
        let used = self.child.wait4().map_err(error::file("wait for", "a program"))?.rusage;
        self.is_over = true;
        Ok(used.utime + used.stime)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = kill(&mut self.child);
            let _ = self.child.wait();
        }
    }
}

/// The last message in a log.
pub(super) fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it says nothing")
        .trim()
        .to_owned()
}
