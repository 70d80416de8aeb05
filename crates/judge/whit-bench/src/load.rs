//! Loads of the machine beside a measured program. Each ends when it is dropped.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use clap::ValueEnum;

use crate::error::Error;
use crate::named::named;
use crate::running::Running;

/// Other work of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Machine {
    /// Nothing of ours.
    Idle,
    /// A busy process on each CPU.
    Busy,
    /// Processes that begin and end.
    Execs,
    /// Two threads that wake each other all the time.
    PingPong,
}

impl Machine {
    /// The load ends when the value is dropped.
    pub(crate) fn start(self) -> Result<Option<Box<dyn Load>>, Error> {
        Ok(match self {
            Machine::Idle => None,
            Machine::Busy => Some(Box::new(Shells::run("while :; do :; done")?)),
            Machine::Execs => Some(Box::new(Shells::run(EXECS)?)),
            Machine::PingPong => Some(Box::new(PingPong::start())),
        })
    }
}

named!(Machine);

/// A load until it is dropped.
pub(crate) trait Load {}

impl Load for Shells {}
impl Load for PingPong {}

/// Processes that begin and end as fast as a shell starts them.
pub(crate) const EXECS: &str = "while :; do /bin/true; done";

/// Processes of the shell, one for each CPU.
struct Shells {
    _running: Vec<Running>,
}

impl Shells {
    fn run(line: &str) -> Result<Shells, Error> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let shell = |_| Running::silent(Command::new("sh").args(["-c", line]));
        Ok(Shells { _running: (0..count).map(shell).collect::<Result<_, _>>()? })
    }
}

/// Two threads that pass a byte to and fro.
struct PingPong {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl PingPong {
    fn start() -> PingPong {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        if let (Ok((one_in, mut one_out)), Ok((other_in, other_out))) = (pipe(), pipe()) {
            let _ = one_out.write_all(b"x");
            for (from, to) in [(one_in, other_out), (other_in, one_out)] {
                let is_over = is_over.clone();
                threads.push(std::thread::spawn(move || pass(from, to, &is_over)));
            }
        }
        PingPong { is_over, threads }
    }
}

fn pass(mut from: PipeReader, mut to: PipeWriter, is_over: &AtomicBool) {
    let mut byte = [0];
    while !is_over.load(Ordering::Relaxed)
        && from.read_exact(&mut byte).is_ok()
        && to.write_all(&byte).is_ok()
    {}
}

impl Drop for PingPong {
    fn drop(&mut self) {
        // The end of one ends the other: its pipes are closed.
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_wake_each_other_end() {
        drop(Machine::PingPong.start().unwrap());
    }
}
