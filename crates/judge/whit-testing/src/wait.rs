//! Waiting for other processes, signalling them, keeping them busy.

use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes that a test waits for, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// A recorder has samples of so much work.
pub const WORK: Duration = Duration::from_millis(50);
/// At least between two looks.
const LOOK: Duration = Duration::from_millis(5);
/// A look may run a program, which then leaves so many times its duration to the process that it waits for.
const PAUSES_PER_LOOK: u32 = 3;

/// Waits until something is true.
///
/// # Panics
///
/// Where it is not after [`PATIENCE`].
pub fn wait_until(what: &str, is_true: impl FnMut() -> bool) {
    assert!(is_soon(is_true), "waited in vain until {what}");
}

/// Waits until something is true; gives whether it is within [`PATIENCE`]. For destructors, which must not
/// panic.
pub fn is_soon(is_true: impl FnMut() -> bool) -> bool {
    is_within(PATIENCE, is_true)
}

/// Waits until something is true; gives whether it is within this time. For events that need not come.
pub fn is_within(patience: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        let looked = Instant::now();
        if is_true() {
            return true;
        }
        if begin.elapsed() > patience {
            return false;
        }
        std::thread::sleep(LOOK.max(PAUSES_PER_LOOK * looked.elapsed()));
    }
}

/// Waits until the command that a recorder or counter has started runs under this name: its exec starts the
/// events. Gives its process.
///
/// # Panics
///
/// Where it does not run after [`PATIENCE`].
pub fn wait_for_command(parent: &Child, name: &str) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let mut command = None;
    wait_until("the command runs", || {
        let ids = std::fs::read_to_string(&children).unwrap_or_default();
        let comm = |id: &str| std::fs::read_to_string(format!("/proc/{id}/comm"));
        let mut ids = ids.split_ascii_whitespace();
        let id = ids.find(|id| comm(id).is_ok_and(|comm| comm.trim() == name));
        command = id.and_then(|id| id.parse().ok());
        command.is_some()
    });
    command.expect("it runs")
}

/// Waits until the main thread of a process has had the CPU for so much longer.
///
/// # Panics
///
/// Where it has not after [`PATIENCE`].
pub fn wait_for_work(process: u32, work: Duration) {
    let path = format!("/proc/{process}/schedstat");
    let worked = || {
        let text = std::fs::read_to_string(&path).expect("it runs");
        let first = text.split(' ').next().unwrap_or_default();
        Duration::from_nanos(first.parse().expect("nanoseconds"))
    };
    let wanted = worked() + work;
    wait_until("the process has worked", || worked() >= wanted);
}

/// Waits until a process has open perf events.
///
/// # Panics
///
/// Where it has none after [`PATIENCE`].
pub fn wait_for_events(process: &Child) {
    let directory = format!("/proc/{}/fd", process.id());
    wait_until("events are open", || {
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.any(|link| link.to_string_lossy().contains("perf_event"))
    });
}

/// Sends a signal: `-INT`.
///
/// # Panics
///
/// Where the process is gone.
pub fn signal(process: &Child, name: &str) {
    let status = Command::new("kill").args([name, &process.id().to_string()]).status();
    assert!(status.expect("run kill").success(), "send {name}");
}

/// A process that is killed when this is dropped: also where a test fails meanwhile.
#[derive(Debug)]
pub struct Load(Child);

impl Load {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// Where it cannot be started.
    pub fn start(command: &mut Command) -> Load {
        Load(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("run a load"))
    }

    /// Starts it; gives its standard output, too.
    ///
    /// # Panics
    ///
    /// Where it cannot be started.
    pub fn with_output(command: &mut Command) -> (Load, ChildStdout) {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("run a load");
        let output = child.stdout.take().expect("its output");
        (Load(child), output)
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Kills it and waits for its end.
    pub fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process that burns CPU until it is dropped.
#[derive(Debug)]
pub struct Busy(Load);

impl Busy {
    /// A shell of this user.
    ///
    /// # Panics
    ///
    /// Where there is no shell.
    pub fn start() -> Busy {
        Busy::by(&mut Command::new("sh"))
    }

    /// By the shell that a command names.
    ///
    /// # Panics
    ///
    /// Where it cannot be started.
    pub fn by(shell: &mut Command) -> Busy {
        Busy(Load::start(shell.args(["-c", "while :; do :; done"])))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it has had the CPU for some time.
    ///
    /// # Panics
    ///
    /// Where it has not after [`PATIENCE`].
    pub fn wait_for_work(&self) {
        wait_for_work(self.0.id(), WORK);
    }

    /// Kills the process before its work is done.
    pub fn end(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_ends_with_the_test_that_fails() {
        let (id, receiver) = std::sync::mpsc::channel();
        let failed = std::thread::spawn(move || {
            let load = Load::start(Command::new("sleep").arg("1000"));
            id.send(load.id()).unwrap();
            panic!("a test fails");
        });
        assert!(failed.join().is_err());
        let path = format!("/proc/{}", receiver.recv().unwrap());
        assert!(!std::path::Path::new(&path).exists(), "{path} runs on");
    }
}
