//! The recorder of a live recording.

use anyhow::{Context, Result};
use std::process::Command;
use std::time::{Duration, Instant};
use whit_cli::sibling;
use whit_live::Bounds;
use whit_live::recorder::{LiveStream, Parts, Recorder};
use whit_sys::SignalFd;

/// Records of the last while, in bytes. At 99 Hz this is reached on machines with dozens of busy CPUs.
const WINDOW_BYTES_MAX: usize = 32 << 20;
/// How long the recorder may take to end before it is killed. It only writes into a pipe.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts it; records stay for so long.
pub(super) fn start(
    arguments: &[String],
    keep: Duration,
    signals: Option<&SignalFd>,
) -> Result<Recorder> {
    let program = sibling::find("whit")?;
    let mut command = Command::new(&program);
    command.args(arguments);
    if let Some(signals) = signals {
        signals.leave_out_of(&mut command);
    }
    let bounds = Bounds { keep_ns: keep.as_nanos() as u64, bytes_max: WINDOW_BYTES_MAX };
    let parts = Parts {
        stream: LiveStream::new(bounds, Instant::now()),
        changed: Box::new(|| ()),
        // A command that is recorded would read from it, too.
        obeys: false,
        said: Box::new(|_| ()),
        is_hurried: false,
        end_timeout: END_TIMEOUT,
    };
    Recorder::start(command, parts).with_context(|| format!("cannot run {}", program.display()))
}
