//! The recorder of the service.

use crate::log::Log;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use whit_live::recorder::Parts;
use whit_sys::{SignalFd, Waker};

pub use whit_live::recorder::{Ended, LiveStream, Recorder};

/// How long the recorder may take to end before it is killed. It only writes into a pipe.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// See `proc_pid_oom_score_adj(5)`.
const ENDS_FIRST: &str = "500";

/// A recorder could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {}: {source}", program.display())]
pub struct StartError {
    program: PathBuf,
    source: io::Error,
}

/// Starts `program` with these arguments. `is_hurried`: somebody waits for its records.
pub(crate) fn start(
    (program, arguments): (&Path, &[String]),
    stream: LiveStream,
    is_hurried: bool,
    signals: &SignalFd,
    (waker, log): (&Waker, &Log),
) -> Result<Recorder, StartError> {
    let mut command = Command::new(program);
    command.args(arguments);
    // It is no service of its own.
    command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
    signals.leave_out_of(&mut command);
    let (waker, log) = (waker.clone(), log.clone());
    let parts = Parts {
        stream,
        changed: Box::new(move || {
            let _ = waker.wake();
        }),
        obeys: true,
        said: Box::new(move |line| {
            if let Some(warning) = line.strip_prefix("whit: ") {
                log.say(format_args!("recorder: {warning}"));
            }
        }),
        is_hurried,
        end_timeout: END_TIMEOUT,
    };
    let started = Recorder::start(command, parts);
    let recorder = started.map_err(|source| StartError { program: program.to_owned(), source })?;
    // Where memory is short, the service stays: it can start another recorder.
    let _ = std::fs::write(format!("/proc/{}/oom_score_adj", recorder.pid()), ENDS_FIRST);
    Ok(recorder)
}
