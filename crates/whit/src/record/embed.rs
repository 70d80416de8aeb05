//! `whit record --embed-symbols`: the names of frames, written into the recording when it is complete.

use super::RecordArgs;
use super::off_cpu::is_stream;
use crate::failure::bail_usage;
use crate::message;
use crate::own_names::{self, Extent};
use crate::symbol_args::SymbolArgs;
use anyhow::Result;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};
use whit_capture::options::Output;
use whit_capture::session::{End, Outcome};
use whit_perfdata::reader::Recording;
use whit_symbolize::RunningList;
use whit_sys::capability::Capability;
use whit_sys::privilege;

/// The names that were written.
#[derive(Debug)]
pub(super) struct Written {
    bytes: u64,
    time: Duration,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kib, seconds) = (self.bytes.div_ceil(1 << 10), self.time.as_secs_f64());
        write!(f, "the names of frames take {kib} KiB of the recording, written in {seconds:.2} s")
    }
}

impl RecordArgs {
    /// Refuses an output that cannot be completed.
    pub(super) fn check_embedding(&self, output: &Output) -> Result<()> {
        let is_file = matches!(output, Output::File(path) if !is_stream(path));
        if self.embed_symbols.is_some() && !is_file {
            bail_usage!(
                "--embed-symbols completes the recording when it has ended, which a pipe or a device does not allow: name a \
                 file with -o"
            );
        }
        Ok(())
    }
}

/// Adds names. The recording is whole without them, so that a failure is a message.
pub(super) fn embed(outcome: &Outcome, extent: Extent) -> Option<Written> {
    if let End::WriteFailed(_) = outcome.end {
        return None;
    }
    let begin = Instant::now();
    let path = Path::new(&outcome.summary.output);
    match add(path, extent) {
        Ok(bytes) => Some(Written { bytes, time: begin.elapsed() }),
        Err(error) => {
            // Said in any case: the user asked for them.
            message::error(without_names(path, &error));
            None
        }
    }
}

fn without_names(path: &Path, error: &anyhow::Error) -> String {
    format!(
        "the recording does not carry the names of its frames, and is as it was without them: {error:#} (whit export \
         --archive -i {} -o FILE writes them)",
        path.display()
    )
}

fn add(path: &Path, extent: Extent) -> Result<u64> {
    let running_list = {
        let _in_force = privilege::raise(&[Capability::Syslog]);
        // Where there is none, the kernel's frames have no names.
        RunningList::open().ok()
    };
    let symbols = SymbolArgs::of_this_machine(running_list);
    let options = symbols.options(&Recording::open(path)?)?;
    own_names::embed(path, options, extent)
}
