//! The recorder of a live recording: a process of its own, whose stream goes into a window.

use anyhow::{Context, Result, anyhow};
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use whit_live::{Bounds, StreamError, Window};
use whit_sys::SignalFd;

/// Records of the last while, in bytes. At 99 Hz this is reached on machines with dozens of busy CPUs.
const WINDOW_BYTES_MAX: usize = 32 << 20;
/// Messages of the recorder that are kept.
const MESSAGES_BYTES_MAX: usize = 64 << 10;
/// Bytes that a pipe holds.
const READ_BYTES: usize = 64 << 10;
/// A target that does nothing has no records: after this time, it is taken for one.
const QUIET_TARGET_NS: u64 = 4_000_000_000;
/// How long the recorder may take to end before it is killed. It only writes into a pipe.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Shared by the reading thread and the others.
#[derive(Debug)]
struct Shared {
    begin: Instant,
    stream: Mutex<Stream>,
}

#[derive(Debug)]
struct Stream {
    window: Window,
    /// The stream has ended.
    is_over: bool,
    /// When the events of the recording were first seen.
    announced_ns: Option<u64>,
    error: Option<StreamError>,
}

/// The window, for anyone who makes pictures of it.
#[derive(Clone, Debug)]
pub(super) struct LiveStream(Arc<Shared>);

impl LiveStream {
    fn new(keep: Duration) -> LiveStream {
        let bounds = Bounds { keep_ns: keep.as_nanos() as u64, bytes_max: WINDOW_BYTES_MAX };
        let window = Window::new(bounds);
        let stream = Stream { window, is_over: false, announced_ns: None, error: None };
        LiveStream(Arc::new(Shared { begin: Instant::now(), stream: Mutex::new(stream) }))
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.0.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        self.0.begin.elapsed().as_nanos() as u64
    }

    /// Reads to the end.
    fn read(&self, mut from: impl Read) {
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let read = match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let now_ns = self.now_ns();
            let mut stream = self.lock();
            if let Err(error) = stream.window.push(&bytes[..read], now_ns) {
                stream.error = Some(error);
                break;
            }
        }
        self.lock().is_over = true;
    }

    /// Uses the window, as it is by now.
    pub(super) fn with_window<T>(&self, use_it: impl FnOnce(&mut Window, u64) -> T) -> T {
        let now_ns = self.now_ns();
        use_it(&mut self.lock().window, now_ns)
    }

    /// Whether records of the target come by now.
    pub(super) fn has_begun(&self) -> bool {
        let now_ns = self.now_ns();
        let mut stream = self.lock();
        if !stream.window.has_begun() {
            return false;
        }
        let since_ns = *stream.announced_ns.get_or_insert(now_ns);
        stream.window.has_rounds() || now_ns - since_ns > QUIET_TARGET_NS
    }

    /// Whether there is a recording at all, if one without records.
    pub(super) fn is_announced(&self) -> bool {
        self.lock().window.has_begun()
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    fn error(&self) -> Option<StreamError> {
        self.lock().error.clone()
    }
}

/// A running recorder.
#[derive(Debug)]
pub(super) struct Recorder {
    child: Child,
    stream: LiveStream,
    readers: Vec<JoinHandle<()>>,
    messages: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    pub(super) fn start(
        arguments: &[String],
        keep: Duration,
        signals: Option<&SignalFd>,
    ) -> Result<Recorder> {
        let program = crate::beside::find("whit")?;
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(signals) = signals {
            signals.leave_out_of(&mut command);
        }
        let spawned = command.spawn();
        let mut child = spawned.with_context(|| format!("cannot run {}", program.display()))?;
        let (stream, messages) = (LiveStream::new(keep), Arc::<Mutex<Vec<u8>>>::default());
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (into, said) = (stream.clone(), messages.clone());
        let readers = vec![
            std::thread::spawn(move || out.into_iter().for_each(|out| into.read(out))),
            std::thread::spawn(move || err.into_iter().for_each(|err| keep_messages(err, &said))),
        ];
        Ok(Recorder { child, stream, readers, messages })
    }

    pub(super) fn stream(&self) -> &LiveStream {
        &self.stream
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit, where it has ended.
    pub(super) fn exit(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it where it still runs; gives its messages.
    ///
    /// # Errors
    /// Its stream could not be read.
    pub(super) fn close(&mut self) -> Result<(Option<ExitStatus>, String)> {
        let exit = self.stop();
        self.readers.drain(..).for_each(|reader| drop(reader.join()));
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = String::from_utf8_lossy(&messages).into_owned();
        match self.stream.error() {
            Some(error) => Err(anyhow!(error).context(messages)),
            None => Ok((exit, messages)),
        }
    }

    fn stop(&mut self) -> Option<ExitStatus> {
        if let Some(exit) = self.exit() {
            return Some(exit);
        }
        let _ = whit_sys::system::terminate(self.child.id() as i32);
        let until = Instant::now() + END_TIMEOUT;
        while Instant::now() < until {
            if let Some(exit) = self.exit() {
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

/// The end of all messages.
fn keep_messages(mut from: impl Read, messages: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        let mut kept = messages.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&bytes[..read]);
        let excess = kept.len().saturating_sub(MESSAGES_BYTES_MAX);
        kept.drain(..excess);
    }
}
