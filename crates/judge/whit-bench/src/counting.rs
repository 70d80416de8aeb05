//! The command `stat` of perf and of whit, which writes counts until an interrupt ends it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use wait4::ResourceUsage;
use whit_measure::measure::{End, anonymous_file, wait_for_end};

use crate::error::{self, Error};
use crate::record::recorder::refusal;
use crate::running::Running;

/// A process that counts. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) running: Running,
    pub(crate) begin: Instant,
    stderr: File,
}

impl Counting {
    /// Starts a program that writes its counts into `output`; `prepare` has the last word on the command.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        output: &Path,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Counting, Error> {
        // Counts of the run before would be taken for those of this one.
        let _ = std::fs::remove_file(output);
        let failed = error::run(program);
        let stderr = anonymous_file().map_err(&failed)?;
        let mut command = Command::new(program);
        command.args(arguments).env("PERF_CONFIG", "/dev/null");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(stderr.try_clone().map_err(&failed)?);
        prepare(&mut command);
        whit_sys::reset_signal_disposition(&mut command, whit_sys::Signal::Interrupt);
        let begin = Instant::now();
        Ok(Counting { running: Running::spawn(&mut command)?, begin, stderr })
    }

    /// Whether it ends within the limit.
    pub(crate) fn ends_within(&self, limit: Duration) -> Result<bool, Error> {
        let end = wait_for_end(&self.running.child, limit, &|| None);
        Ok(end.map_err(error::file("wait for", "a program"))? == End::ByItself)
    }

    /// Interrupts it. Gives its CPU time, or the message that it did not end.
    pub(crate) fn interrupt(
        &mut self,
        limit: Duration,
    ) -> Result<Result<ResourceUsage, String>, Error> {
        if let Some(pid) = i32::try_from(self.running.child.id()).ok().and_then(Pid::from_raw) {
            let sent = kill_process(pid, Signal::INT);
            sent.map_err(|errno| error::file("interrupt", "a program")(errno.into()))?;
        }
        match self.ends_within(limit)? {
            true => Ok(Ok(self.running.used()?)),
            false => Ok(Err(format!("did not end within {} s", limit.as_secs()))),
        }
    }

    /// Its message.
    pub(crate) fn refusal(&mut self) -> String {
        let mut text = String::new();
        // An unreadable output is not shown.
        let _ = self.stderr.seek(SeekFrom::Start(0));
        let _ = self.stderr.read_to_string(&mut text);
        refusal(&text)
    }
}
