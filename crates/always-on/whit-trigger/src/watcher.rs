//! The thread that waits for all rules.

use crate::channel::{Outlet, channel};
use crate::meter::{self, now_ns};
use crate::rule::Rule;
use crate::settings::{Settings, SettingsError};
use crate::socket::{Message, Socket};
use crate::trigger::{Kind, Trigger};
use crate::watched::{Source, State, Watched};
use serde::Serialize;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use whit_host::roots::Roots;
use whit_sys::scheduling::hurry;
use whit_sys::{Errno, Poller, Ready, Signal, SignalWatch, Waker};

/// Tokens of the poller: rules have their index.
const WAKER: u64 = u64::MAX;
const SOCKET: u64 = u64::MAX - 1;
const SIGNALS: u64 = u64::MAX - 2;
/// Between two looks for files and processes that are missing.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Files that are polled are read so many times in a window.
const READS_PER_WINDOW: u32 = 10;

/// Requests that wait for the thread.
const REQUESTS_MAX: usize = 1024;

/// Why no trigger is watched for.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings are not valid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The path of the socket is taken or cannot be made.
    #[error("cannot listen at {path} for latencies and requests: {source}")]
    Socket {
        /// As the settings have it.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The kernel refused something else.
    #[error("cannot wait for triggers: {0}")]
    System(#[from] Errno),
    /// No thread.
    #[error("cannot start a thread that waits for triggers: {0}")]
    Thread(io::Error),
}

/// A rule and its state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RuleStatus {
    /// As the settings have it, in its shortest form.
    pub rule: String,
    /// How its event is noticed.
    #[serde(flatten)]
    pub state: State,
    /// Events so far.
    pub events: u64,
}

/// All rules, and the messages on the socket.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Status {
    /// In the order of the settings.
    pub rules: Vec<RuleStatus>,
    /// Messages on the socket.
    pub messages: u64,
    /// Messages that could not be read.
    pub unknown_messages: u64,
    /// Triggers that found the channel full.
    pub lost_triggers: u64,
}

/// A request that the recording has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedRequest {
    /// As `--request` of the recorder gives it.
    pub name: String,
    /// From its beginning to its end.
    pub took: Duration,
    /// The rest that is known about it: its thread, its key.
    pub detail: String,
}

/// Rules that are watched, until this is dropped.
#[derive(Debug)]
pub struct Triggers {
    shared: Arc<Shared>,
    outlet: Outlet,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    status: Mutex<Status>,
    requests: Mutex<Vec<RecordedRequest>>,
    is_over: AtomicBool,
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, Vec<RecordedRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts to watch. Where a rule is `signal`, the calling program has blocked SIGUSR2 before it started any thread
/// ([`whit_sys::SignalFd`]).
///
/// # Errors
/// The settings are not valid, or the socket cannot be made. A missing cgroup or process is no error: it is waited for.
pub fn start(
    settings: &Settings,
    roots: Roots,
) -> Result<(Triggers, Receiver<Trigger>), StartError> {
    settings.validate()?;
    let (outlet, receiver) = channel();
    let (shared, waker) = (Arc::<Shared>::default(), Waker::new()?);
    let parts = (outlet.clone(), shared.clone(), waker.clone());
    let mut watcher = Watcher::new(settings, roots, parts)?;
    watcher.look();
    watcher.publish();
    let thread = std::thread::Builder::new().name("whit-trigger".into());
    let run = move || {
        // An event is often one of busy CPUs.
        hurry();
        watcher.run();
    };
    let thread = thread.spawn(run).map_err(StartError::Thread)?;
    Ok((Triggers { shared, outlet, waker, thread: Some(thread) }, receiver))
}

impl Triggers {
    /// The state of all rules.
    pub fn status(&self) -> Status {
        Status { lost_triggers: self.outlet.lost(), ..self.shared.status().clone() }
    }

    /// Hands a request on that has ended.
    pub fn report(&self, request: RecordedRequest) {
        let mut requests = self.shared.requests();
        if requests.len() >= REQUESTS_MAX {
            return self.outlet.lose();
        }
        requests.push(request);
        let _ = self.waker.wake();
    }

    /// Sends a trigger of the program itself.
    pub fn send(&self, trigger: Trigger) {
        self.outlet.send(trigger);
    }
}

impl Drop for Triggers {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watcher {
    poller: Poller,
    roots: Roots,
    rules: Vec<Watched>,
    socket: Option<Socket>,
    signals: Option<SignalWatch>,
    outlet: Outlet,
    shared: Arc<Shared>,
    waker: Waker,
    messages: u64,
    unknown_messages: u64,
    next_look: Instant,
    next_read: Instant,
}

impl Watcher {
    fn new(
        settings: &Settings,
        roots: Roots,
        (outlet, shared, waker): (Outlet, Arc<Shared>, Waker),
    ) -> Result<Watcher, StartError> {
        let poller = Poller::new()?;
        poller.add(&waker, WAKER)?;
        let socket = settings.socket.as_ref().map(|path| {
            Socket::bind(path, settings.socket_mode)
                .map_err(|source| StartError::Socket { path: path.clone(), source })
        });
        let socket = socket.transpose()?;
        socket.as_ref().map_or(Ok(()), |socket| poller.add(socket, SOCKET))?;
        let signals =
            settings.on.contains(&Rule::Signal).then(|| SignalWatch::new(&[Signal::User2]));
        let signals = signals.transpose()?;
        signals.as_ref().map_or(Ok(()), |signals| poller.add(signals, SIGNALS))?;
        Ok(Watcher {
            poller,
            roots,
            rules: settings.on.iter().cloned().map(Watched::new).collect(),
            socket,
            signals,
            outlet,
            shared,
            waker,
            messages: 0,
            unknown_messages: 0,
            next_look: Instant::now() + LOOK_INTERVAL,
            next_read: Instant::now(),
        })
    }

    fn run(mut self) {
        while !self.shared.is_over.load(Ordering::SeqCst) {
            match self.poller.wait(self.timeout()) {
                Ok(ready) => ready.into_iter().for_each(|ready| self.take(ready)),
                // Nothing of this thread's own can be at fault; other rules go on being read.
                Err(_) => std::thread::sleep(LOOK_INTERVAL),
            }
            let now = Instant::now();
            if self.read_interval().is_some() && now >= self.next_read {
                self.read();
            }
            if now >= self.next_look {
                self.look();
            }
            self.publish();
        }
    }

    /// How often files are read, where some are.
    fn read_interval(&self) -> Option<Duration> {
        let windows = self.rules.iter().filter_map(|watched| match &watched.source {
            Source::Meter(meter) => Some(meter.window()),
            _ => None,
        });
        windows.min().map(|window| window / READS_PER_WINDOW)
    }

    /// Nobody wakes the thread where nothing is polled or missing.
    fn timeout(&self) -> Option<Duration> {
        let look = self.rules.iter().any(Watched::is_waiting).then_some(self.next_look);
        let read = self.read_interval().map(|_| self.next_read);
        let next = look.into_iter().chain(read).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    fn look(&mut self) {
        for (token, watched) in self.rules.iter_mut().enumerate() {
            if watched.is_waiting() {
                watched.look(&self.roots, &self.poller, token as u64);
            }
        }
        self.next_look = Instant::now() + LOOK_INTERVAL;
    }

    fn read(&mut self) {
        for watched in &mut self.rules {
            let Source::Meter(meter) = &mut watched.source else { continue };
            let kind = meter.kind();
            match meter.read(now_ns()) {
                Ok(None) => {}
                Ok(Some(measured)) => fire(watched, &self.outlet, kind, &measured),
                Err(error) => watched.is_gone(&self.poller, error.to_string()),
            }
        }
        self.next_read = Instant::now() + self.read_interval().unwrap_or(LOOK_INTERVAL);
    }

    fn take(&mut self, ready: Ready) {
        match ready.token {
            WAKER => self.take_requests(),
            SOCKET => self.take_messages(),
            SIGNALS => self.take_signals(),
            token => self.take_event(token as usize, ready.hung_up),
        }
    }

    fn take_event(&mut self, index: usize, is_gone: bool) {
        let Some(watched) = self.rules.get_mut(index) else { return };
        match (&watched.source, &watched.rule) {
            (Source::Process(_), _) => {
                fire(watched, &self.outlet, Kind::Exit, "ended");
                watched.is_gone(&self.poller, String::new());
            }
            (Source::Kernel { .. }, _) if is_gone => {
                watched.is_gone(&self.poller, "the cgroup is gone".to_owned());
            }
            (Source::Kernel { path, .. }, Rule::Pressure(rule)) => {
                let average = meter::average(path, rule.is_full);
                let measured = average.unwrap_or_else(|| "noticed by the kernel".to_owned());
                fire(watched, &self.outlet, Kind::Pressure, &measured);
            }
            _ => {}
        }
    }

    fn take_requests(&mut self) {
        let _ = self.waker.clear();
        for request in std::mem::take(&mut *self.shared.requests()) {
            for watched in &mut self.rules {
                let is_event = matches!(&watched.rule, Rule::Request { name, longest }
                    if *name == request.name && request.took > *longest);
                if is_event {
                    let measured = format!("took {:?}{}", request.took, request.detail);
                    fire(watched, &self.outlet, Kind::SlowRequest, &measured);
                }
            }
        }
    }

    fn take_messages(&mut self) {
        let Some(socket) = &self.socket else { return };
        for message in socket.take() {
            self.messages += 1;
            match message {
                None => self.unknown_messages += 1,
                Some(Message::Dump(reason)) => {
                    self.outlet.send(Trigger::now(Kind::Request, reason));
                }
                Some(message) => {
                    for watched in &mut self.rules {
                        if let Some(measured) = message.is_event_of(&watched.rule) {
                            fire(watched, &self.outlet, Kind::Latency, &measured);
                        }
                    }
                }
            }
        }
    }

    fn take_signals(&mut self) {
        let Some(signals) = &self.signals else { return };
        while let Ok(Some(_)) = signals.next() {
            let of_signal = self.rules.iter_mut().find(|watched| watched.rule == Rule::Signal);
            of_signal.into_iter().for_each(|watched| {
                fire(watched, &self.outlet, Kind::Signal, "SIGUSR2");
            });
        }
    }

    fn publish(&self) {
        let of_rule = |watched: &Watched| RuleStatus {
            rule: watched.rule.to_string(),
            state: watched.state.clone(),
            events: watched.events,
        };
        *self.shared.status() = Status {
            rules: self.rules.iter().map(of_rule).collect(),
            messages: self.messages,
            unknown_messages: self.unknown_messages,
            lost_triggers: 0,
        };
    }
}

fn fire(watched: &mut Watched, outlet: &Outlet, kind: Kind, measured: &str) {
    watched.events += 1;
    outlet.send(Trigger::now(kind, format!("{}, {measured}", watched.rule)));
}

#[cfg(test)]
mod tests;
