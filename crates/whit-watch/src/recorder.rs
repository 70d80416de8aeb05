//! The recorder: a process of its own, whose stream goes into a window.

use crate::log::Log;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use whit_live::{Bounds, StreamError, Window};
use whit_sys::{SignalFd, Waker, system};

/// Messages of the recorder that are kept.
const MESSAGES_BYTES_MAX: usize = 64 << 10;
/// Bytes that a pipe holds.
const READ_BYTES: usize = 64 << 10;
/// A target that does nothing has no records: after this time, it is taken for one.
const QUIET_TARGET: Duration = Duration::from_secs(4);
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

#[derive(Debug)]
struct Stream {
    window: Window,
    is_over: bool,
    /// When the last bytes came.
    heard: Instant,
    /// When the events of the recording were named.
    announced: Option<Instant>,
    error: Option<StreamError>,
}

/// The way of commands to the recorder.
#[derive(Debug, Default)]
struct Control {
    pipe: Option<ChildStdin>,
    /// The number of the last order to empty the rings.
    asked: u64,
}

/// The records of the last while. Clones share them.
#[derive(Clone, Debug)]
pub struct LiveStream {
    stream: Arc<Mutex<Stream>>,
    /// The stream has a mark more, or has ended.
    marked: Arc<Condvar>,
    control: Arc<Mutex<Control>>,
    /// The moment from which times are counted.
    origin: Instant,
}

impl LiveStream {
    /// Times are counted from `origin`.
    pub fn new(bounds: Bounds, origin: Instant) -> LiveStream {
        let window = Window::new(bounds);
        let (is_over, heard) = (false, Instant::now());
        let stream = Stream { window, is_over, heard, announced: None, error: None };
        let (stream, marked) = (Arc::new(Mutex::new(stream)), Arc::default());
        LiveStream { stream, marked, control: Arc::default(), origin }
    }

    /// Has the recorder empty its rings; gives the number of the mark that follows in its stream.
    fn ask_to_drain(&self) -> Option<u64> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        control.asked += 1;
        let (number, line) = (control.asked, format!("drain {}\n", control.asked));
        // A pipe takes a line whole.
        let sent =
            control.pipe.as_mut().is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok());
        sent.then_some(number)
    }

    /// Has the recorder write something, where it still does.
    pub fn ask_for_a_sign(&self) {
        let _ = self.ask_to_drain();
    }

    /// Time since the last bytes came.
    pub fn silent_for(&self) -> Duration {
        self.lock().heard.elapsed()
    }

    /// Has the recorder empty its rings, and waits until their records are here; false where it does not in time.
    pub fn drain(&self, patience: Duration) -> bool {
        let Some(number) = self.ask_to_drain() else { return false };
        let is_waiting = |stream: &mut Stream| {
            !stream.is_over && stream.window.drained().is_none_or(|drained| drained < number)
        };
        let waited = self.marked.wait_timeout_while(self.lock(), patience, is_waiting);
        let (stream, _) = waited.unwrap_or_else(PoisonError::into_inner);
        stream.window.drained().is_some_and(|drained| drained >= number)
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the records, as they are by now; gives the time from the origin in nanoseconds, too.
    pub fn with_window<T>(&self, use_it: impl FnOnce(&mut Window, u64) -> T) -> T {
        let mut stream = self.lock();
        let now_ns = self.origin.elapsed().as_nanos() as u64;
        use_it(&mut stream.window, now_ns)
    }

    /// Reads to the end; wakes when the recording begins, and when it ends.
    fn read(&self, mut from: impl Read, waker: &Waker) {
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let read = match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let mut stream = self.lock();
            stream.heard = Instant::now();
            let now_ns = self.origin.elapsed().as_nanos() as u64;
            let before = (stream.window.has_begun(), stream.window.has_rounds());
            let drained = stream.window.drained();
            if let Err(error) = stream.window.push(&bytes[..read], now_ns) {
                stream.error = Some(error);
                break;
            }
            if stream.window.drained() != drained {
                self.marked.notify_all();
            }
            if stream.announced.is_none() && stream.window.has_begun() {
                stream.announced = Some(Instant::now());
            }
            if before != (stream.window.has_begun(), stream.window.has_rounds()) {
                let _ = waker.wake();
            }
        }
        self.lock().is_over = true;
        self.marked.notify_all();
        let _ = waker.wake();
    }

    /// Whether events are recorded by now.
    pub fn has_begun(&self) -> bool {
        let stream = self.lock();
        let is_quiet = |since: Instant| since.elapsed() > QUIET_TARGET;
        stream.window.has_rounds() || stream.announced.is_some_and(is_quiet)
    }

    /// Whether the stream has ended.
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    fn error(&self) -> Option<StreamError> {
        self.lock().error.clone()
    }
}

/// The end of a recorder.
#[derive(Debug)]
pub struct Ended {
    /// As a shell would say it.
    pub how: String,
    /// Its exit code, where it has one.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last messages that it printed.
    pub messages: String,
}

/// A running recorder.
#[derive(Debug)]
pub struct Recorder {
    child: Child,
    stream: LiveStream,
    readers: Vec<JoinHandle<()>>,
    messages: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    /// Starts `program` with these arguments.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(
        program: &Path,
        arguments: &[String],
        stream: LiveStream,
        signals: &SignalFd,
        (waker, log): (&Waker, &Log),
    ) -> Result<Recorder, StartError> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // It is no service of its own.
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
        signals.leave_out_of(&mut command);
        let failed = |source| StartError { program: program.to_owned(), source };
        let mut child = command.spawn().map_err(failed)?;
        // Where memory is short, the service stays: it can start another recorder.
        let _ = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), ENDS_FIRST);
        let messages = Arc::<Mutex<Vec<u8>>>::default();
        stream.control.lock().unwrap_or_else(PoisonError::into_inner).pipe = child.stdin.take();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (into, waker) = (stream.clone(), waker.clone());
        let (said, log) = (messages.clone(), log.clone());
        let read = move || out.into_iter().for_each(|out| into.read(out, &waker));
        let listen = move || err.into_iter().for_each(|err| keep_messages(err, &said, &log));
        let readers = vec![std::thread::spawn(read), std::thread::spawn(listen)];
        Ok(Recorder { child, stream, readers, messages })
    }

    /// Its records.
    pub fn stream(&self) -> &LiveStream {
        &self.stream
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to write all that it has, and to end. The stream ends a little later.
    pub fn ask_to_end(&self) {
        let _ = system::terminate(self.child.id() as i32);
    }

    /// Ends it at once. Its stream ends a moment later.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Ends it where it still runs; its stream is read to the end.
    pub fn end(mut self) -> Ended {
        let exit = self.stop();
        self.readers.drain(..).for_each(|reader| drop(reader.join()));
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = String::from_utf8_lossy(&messages).trim_end().to_owned();
        let how = match (self.stream.error(), exit) {
            (Some(error), _) => error.to_string(),
            (None, Some(exit)) => exit.to_string(),
            (None, None) => "its exit is unknown".to_owned(),
        };
        let (code, signal) =
            (exit.and_then(|exit| exit.code()), exit.and_then(|exit| exit.signal()));
        Ended { how, code, signal, messages }
    }

    fn stop(&mut self) -> Option<ExitStatus> {
        let exit = |child: &mut Child| child.try_wait().ok().flatten();
        if let Some(exit) = exit(&mut self.child) {
            return Some(exit);
        }
        self.ask_to_end();
        let until = Instant::now() + END_TIMEOUT;
        while Instant::now() < until {
            if let Some(exit) = exit(&mut self.child) {
                return Some(exit);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Keeps the end of all messages, and repeats warnings in the log.
fn keep_messages(mut from: impl Read, messages: &Mutex<Vec<u8>>, log: &Log) {
    let mut bytes = [0; 4096];
    let mut line = Vec::new();
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        for byte in &bytes[..read] {
            if *byte != b'\n' {
                line.push(*byte);
                line.truncate(MESSAGES_BYTES_MAX);
                continue;
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            if let Some(warning) = text.strip_prefix("whit: ") {
                log.say(format_args!("recorder: {warning}"));
            }
            line.clear();
        }
        let mut kept = messages.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&bytes[..read]);
        let excess = kept.len().saturating_sub(MESSAGES_BYTES_MAX);
        kept.drain(..excess);
    }
}
