//! Programs that run during a measurement.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use wait4::{ResourceUsage, Wait4};
use whit_measure::process_tree::kill;

use crate::error::{self, Error};

/// A process that is killed with all below it when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    /// It was waited for: its number may be another process's by now.
    is_over: bool,
}

impl Running {
    /// Starts a program.
    pub(crate) fn spawn(command: &mut Command) -> Result<Running, Error> {
        let child = command.spawn().map_err(error::run(command.get_program()))?;
        Ok(Running { child, is_over: false })
    }

    /// Starts a program without input and output.
    pub(crate) fn silent(command: &mut Command) -> Result<Running, Error> {
        Running::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Starts a program whose messages go to the file `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Running, Error> {
        let file = File::create(log).map_err(error::file("create", log))?;
        let second = file.try_clone().map_err(error::file("open", log))?;
        Running::spawn(command.stdin(Stdio::null()).stdout(file).stderr(second))
    }

    /// How it has ended by itself.
    pub(crate) fn end(&mut self) -> Result<Option<ExitStatus>, Error> {
        let end = self.child.try_wait().map_err(error::file("wait for", "a program"))?;
        self.is_over |= end.is_some();
        Ok(end)
    }

    pub(crate) fn has_ended(&mut self) -> Result<bool, Error> {
        Ok(self.end()?.is_some())
    }

    /// Waits for its end. Gives its CPU time, with that of the processes that it has waited for.
    pub(crate) fn used(&mut self) -> Result<ResourceUsage, Error> {
        let used = self.child.wait4().map_err(error::file("wait for", "a program"))?.rusage;
        self.is_over = true;
        Ok(used)
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
pub(crate) fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it says nothing")
        .trim()
        .to_owned()
}
