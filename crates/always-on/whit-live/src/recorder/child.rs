//! The process of a recorder.

use super::messages::Messages;
use super::stream::LiveStream;
use crate::StreamError;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use whit_sys::scheduling::hurry;
use whit_sys::system;

/// The pipe has room for so much, where the kernel allows it: each time it is full, the recorder waits for a CPU to
/// empty it.
const PIPE_BYTES: usize = 1 << 20;
/// Between two looks at a recorder that is to end.
const END_INTERVAL: Duration = Duration::from_millis(5);

/// The surroundings of a recorder.
pub struct Parts {
    /// Where its records go.
    pub stream: LiveStream,
    /// Called when the recording begins, and when the stream has ended.
    pub changed: Box<dyn Fn() + Send>,
    /// It reads commands from its input. Otherwise that is empty.
    pub obeys: bool,
    /// Called with each line that it says.
    pub said: Box<dyn FnMut(&str) + Send>,
    /// Somebody waits for its records: its threads run before others.
    pub is_hurried: bool,
    /// How long it may take to end before it is killed. It only writes into a pipe.
    pub end_timeout: Duration,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// The end of a recorder.
#[derive(Debug, Default)]
pub struct Ended {
    /// As a shell would say it.
    pub how: String,
    /// Its exit code, where it has one.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last messages that it printed.
    pub messages: String,
    /// Its stream could not be read on.
    pub error: Option<StreamError>,
}

/// A running recorder.
#[derive(Debug)]
pub struct Recorder {
    child: Child,
    stream: LiveStream,
    readers: Vec<JoinHandle<()>>,
    messages: Messages,
    end_timeout: Duration,
}

impl Recorder {
    /// Starts the command, whose output is a stream.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(mut command: Command, parts: Parts) -> io::Result<Recorder> {
        let Parts { stream, changed, mut said, obeys, is_hurried, end_timeout } = parts;
        command.stdin(if obeys { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut command, is_hurried)?;
        stream.command_by(child.stdin.take());
        let (out, err) = (child.stdout.take(), child.stderr.take());
        // Without so much room, the recorder waits more often.
        let _ = out.as_ref().map(|out| system::widen_pipe(out, PIPE_BYTES));
        let messages = Messages::default();
        let (into, kept) = (stream.clone(), messages.clone());
        let read = move || {
            if is_hurried {
                hurry();
            }
            let mut bytes = vec![0; PIPE_BYTES];
            out.into_iter().for_each(|out| into.read(out, &mut bytes, &*changed));
        };
        let listen = move || err.into_iter().for_each(|err| kept.read(err, &mut *said));
        let readers = vec![std::thread::spawn(read), std::thread::spawn(listen)];
        Ok(Recorder { child, stream, readers, messages, end_timeout })
    }

    /// Its records.
    pub fn stream(&self) -> &LiveStream {
        &self.stream
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The last messages that it has printed by now.
    pub fn messages(&self) -> String {
        self.messages.text()
    }

    /// Its exit, where it has ended.
    pub fn exit(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
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
    pub fn end(&mut self) -> Ended {
        let exit = self.stop();
        self.readers.drain(..).for_each(|reader| drop(reader.join()));
        let error = self.stream.error();
        let how = match (&error, exit) {
            (Some(error), _) => error.to_string(),
            (None, Some(exit)) => exit.to_string(),
            (None, None) => "its exit is unknown".to_owned(),
        };
        let code = exit.and_then(|exit| exit.code());
        let signal = exit.and_then(|exit| exit.signal());
        Ended { how, code, signal, messages: self.messages.text(), error }
    }

    fn stop(&mut self) -> Option<ExitStatus> {
        if let Some(exit) = self.exit() {
            return Some(exit);
        }
        self.ask_to_end();
        let until = Instant::now() + self.end_timeout;
        while Instant::now() < until {
            if let Some(exit) = self.exit() {
                return Some(exit);
            }
            std::thread::sleep(END_INTERVAL);
        }
        self.kill();
        self.child.wait().ok()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A process begins with the priority of the thread that starts it.
fn spawn(command: &mut Command, is_hurried: bool) -> io::Result<Child> {
    if !is_hurried {
        return command.spawn();
    }
    std::thread::scope(|scope| {
        let hurried = scope.spawn(|| {
            hurry();
            command.spawn()
        });
        hurried.join().unwrap_or_else(|_| Err(io::Error::other("a thread has ended")))
    })
}
