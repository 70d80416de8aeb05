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
use whit_setup::shell_word;
use whit_symbolize::RunningList;
use whit_sys::capability::Capability;
use whit_sys::{Poller, Signal, SignalFd, Waker, privilege};

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

/// The end of this step.
#[derive(Debug)]
pub(super) enum Embedded {
    /// With names.
    Written(Written),
    /// Without, for which a message gave the reason.
    Without,
    /// The user wanted an end before names were written.
    Stopped(Signal),
}

/// Adds names. The recording is whole without them, so that a failure is a message. A signal ends the work: it leaves
/// the recording as it was, whenever it comes.
pub(super) fn embed(outcome: &Outcome, extent: Extent) -> Embedded {
    let path = match (&outcome.end, &outcome.summary.path) {
        (End::WriteFailed(_), _) | (_, None) => return Embedded::Without,
        (_, Some(path)) => path,
    };
    let begin = Instant::now();
    match add_until_signal(path, extent) {
        Ok(Ok(bytes)) => Embedded::Written(Written { bytes, time: begin.elapsed() }),
        Ok(Err(signal)) => {
            let number = signal.number();
            let reason = anyhow::anyhow!("signal {number} came before they were written");
            message::error(without_names(path, &reason));
            Embedded::Stopped(signal)
        }
        Err(error) => {
            // Said in any case: the user asked for them.
            message::error(without_names(path, &error));
            Embedded::Without
        }
    }
}

fn without_names(path: &Path, error: &anyhow::Error) -> String {
    format!(
        "the recording does not carry the names of its frames, and is as it was without them: {error:#} (whit export \
         --archive -i {} -o FILE writes them)",
        shell_word(path)
    )
}

const NAMES: u64 = 0;
const SIGNALS: u64 = 1;
/// A thread that fails wakes nobody.
const LOOK: Duration = Duration::from_millis(500);

/// Gives the size of the names, or the signal that came first. The thread goes on until the process ends.
fn add_until_signal(path: &Path, extent: Extent) -> Result<Result<u64, Signal>> {
    // Before the thread is there, which then has them blocked as well.
    let signals = SignalFd::block(&[Signal::Interrupt, Signal::Terminate, Signal::HangUp])?;
    let waker = Waker::new()?;
    let mut poller = Poller::new()?;
    poller.add(&waker, NAMES)?;
    poller.add(&signals, SIGNALS)?;
    let (path, woken) = (path.to_owned(), waker.clone());
    let work = move || {
        let added = add(&path, extent);
        let _ = woken.wake();
        added
    };
    let thread = std::thread::Builder::new().name("whit-embed".to_owned()).spawn(work)?;
    loop {
        let is_awake = poller.wait(Some(LOOK))?.iter().any(|ready| ready.token == NAMES);
        if is_awake || thread.is_finished() {
            let added = thread.join().map_err(|_| anyhow::anyhow!("the work on names failed"))?;
            return added.map(Ok);
        }
        if let Some(signal) = signals.next()? {
            return Ok(Err(signal));
        }
    }
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
