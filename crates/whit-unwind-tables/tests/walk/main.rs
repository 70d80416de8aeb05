//! The walk that runs in the kernel, compiled for this machine and compared with the offline unwinder:
//! on recorded stacks of real programs, and on whatever bytes there may be.

mod host;
mod hostile;
mod recorded;

use std::io::Write;

/// Says what is not tested, where the summary of all tests finds it.
pub(crate) fn skip(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(log) = std::env::var_os("WHIT_SKIP_LOG")
        && let Ok(mut file) = std::fs::File::options().append(true).create(true).open(log)
    {
        let _ = writeln!(file, "walk: {why}");
    }
}
