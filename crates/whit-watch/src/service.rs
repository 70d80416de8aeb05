//! The service: its loop waits for the end of a window, for signals, for the recorder, and for triggers.

use crate::clock::{Now, WindowClock};
use crate::config::Source;
use crate::counters::Counters;
use crate::log::Log;
use crate::notify::Notify;
use crate::recorder::{LiveStream, Recorder, StartError};
use crate::settings::Settings;
use crate::shared::{Parts, Shared};
use crate::sinks::{Sink, Sinks};
use crate::triggers::{Event, Fire, Keeper, Trigger};
use crate::window::{HeldBytes, Window};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime};
use whit_live::Bounds;
use whit_profile::KeptSymbols;
use whit_sys::clock::ClockId;
use whit_sys::{Errno, Poller, Signal, SignalFd, Waker, system};
use whit_types::ByteSize;

/// The signals in the poller, and the waker.
const SIGNAL: u64 = 0;
const NEWS: u64 = 1;
/// Waits before the recorder is started again: doubled each time, from the first to the last.
const BACKOFF: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(60);
/// A recorder that ran this long did not fail at its start.
const STEADY: Duration = Duration::from_secs(60);
/// Windows between two looks for processes and symbols that nobody needs any more.
const TRIM_WINDOWS: u64 = 4;

/// The service cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The kernel refuses something that everything else needs.
    #[error("cannot wait for signals: {0}")]
    Kernel(#[from] Errno),
    /// The program is not there.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The first recorder failed: its messages say why.
    #[error("{messages}")]
    Recorder {
        /// Those of the recorder.
        messages: String,
        /// Its exit code.
        code: u8,
    },
}

/// The keeper of the last seconds, with the part of the stream that it needs.
pub type KeeperParts = (Arc<dyn Keeper>, Bounds);

/// Makes the parts that the settings ask for. Called at the start and at each reload.
pub trait Maker {
    /// All sinks.
    ///
    /// # Errors
    /// One cannot be used: the text says why.
    fn sinks(&self, settings: &Settings) -> Result<Vec<Arc<dyn Sink>>, String>;
    /// All triggers, each started.
    ///
    /// # Errors
    /// One cannot be used: the text says why.
    fn triggers(&self, settings: &Settings, fire: &Fire) -> Result<Vec<Arc<dyn Trigger>>, String>;
    /// The keeper of the last seconds, with the part of the stream that it needs.
    ///
    /// # Errors
    /// It cannot be used: the text says why.
    fn keeper(&self, settings: &Settings) -> Result<Option<KeeperParts>, String>;
}

/// How a recorder is doing.
enum Recording {
    Runs { recorder: Recorder, since: Instant, is_announced: bool },
    Waits { until: Instant, ended: Instant },
    Ended,
}

/// A running service.
pub struct Service<'a> {
    program: PathBuf,
    source: Source,
    settings: Settings,
    maker: &'a dyn Maker,
    log: Log,
    notify: Notify,
    shared: Arc<Shared>,
    signals: SignalFd,
    poller: Poller,
    waker: Waker,
    origin: Instant,
    clock: WindowClock,
    recording: Recording,
    backoff: Duration,
    had_begun: bool,
    sinks: Sinks,
    triggers: Vec<Arc<dyn Trigger>>,
    keeper: Option<Arc<dyn Keeper>>,
    keeper_bounds: Option<Bounds>,
    fire: Fire,
    events: Receiver<Event>,
    held: HeldBytes,
    symbols: KeptSymbols,
    number: u64,
    fed: Instant,
}

impl std::fmt::Debug for Service<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("program", &self.program).finish_non_exhaustive()
    }
}

/// The signals that the service waits for. Before any other thread is started.
///
/// # Errors
/// The kernel refuses.
pub fn block_signals() -> Result<SignalFd, Errno> {
    SignalFd::block(&[Signal::Interrupt, Signal::Terminate, Signal::HangUp, Signal::User2])
}

/// The beginning of a service.
#[derive(Debug)]
pub struct Start {
    /// The recorder.
    pub program: PathBuf,
    /// Where settings come from.
    pub source: Source,
    /// The first settings.
    pub settings: Settings,
    /// Where lines go.
    pub log: Log,
    /// systemd.
    pub notify: Notify,
    /// The state for other threads.
    pub shared: Arc<Shared>,
    /// From [`block_signals`].
    pub signals: SignalFd,
}

impl<'a> Service<'a> {
    /// Starts the recorder and all parts.
    ///
    /// # Errors
    /// The kernel refuses, the program is missing, or a part cannot be used.
    pub fn start(start: Start, maker: &'a dyn Maker) -> Result<Service<'a>, ServiceError> {
        let Start { program, source, settings, log, notify, shared, signals } = start;
        let unusable = |messages| ServiceError::Recorder { messages, code: 2 };
        let (poller, waker) = (Poller::new()?, Waker::new()?);
        poller.add(&signals, SIGNAL)?;
        poller.add(&waker, NEWS)?;
        let (fire, events) = Fire::new(&waker);
        let sinks = Sinks::start(maker.sinks(&settings).map_err(unusable)?, &log);
        let triggers = maker.triggers(&settings, &fire).map_err(unusable)?;
        let keeper = maker.keeper(&settings).map_err(unusable)?;
        let (keeper, keeper_bounds) = keeper.unzip();
        let origin = Instant::now();
        let mut service = Service {
            clock: WindowClock::new(settings.window.0, now(origin)),
            recording: Recording::Ended,
            program,
            source,
            settings,
            maker,
            log,
            notify,
            shared,
            signals,
            poller,
            waker,
            origin,
            backoff: *BACKOFF.start(),
            had_begun: false,
            sinks,
            triggers,
            keeper,
            keeper_bounds,
            fire,
            events,
            held: HeldBytes::default(),
            symbols: KeptSymbols::default(),
            number: 0,
            fed: origin,
        };
        service.start_recorder()?;
        service.publish();
        Ok(service)
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Runs until a signal ends it.
    ///
    /// # Errors
    /// The first recorder fails, or the kernel refuses.
    pub fn run(mut self) -> Result<(), ServiceError> {
        loop {
            let ready = self.poller.wait(Some(self.until_next()))?;
            self.counters().wake_ups.one();
            if ready.iter().any(|ready| ready.token == NEWS) {
                self.waker.clear()?;
            }
            while let Ok(event) = self.events.try_recv() {
                self.keep(&event);
            }
            while let Some(signal) = self.signals.next()? {
                match signal {
                    Signal::HangUp => self.reload(),
                    Signal::User2 => self.fire.fire(Event {
                        trigger: "signal".to_owned(),
                        reason: "SIGUSR2".to_owned(),
                        at: Instant::now(),
                    }),
                    _ => return self.end(),
                }
            }
            self.look_after_recorder()?;
            if self.origin.elapsed() >= self.clock.ends() {
                self.cut();
            }
            self.feed_watchdog();
        }
    }

    /// Time until something is due.
    fn until_next(&self) -> Duration {
        let mut wait = self.clock.ends().saturating_sub(self.origin.elapsed());
        if let Recording::Waits { until, .. } = &self.recording {
            wait = wait.min(until.saturating_duration_since(Instant::now()));
        }
        if let Some(interval) = self.notify.watchdog() {
            wait = wait.min((self.fed + interval).saturating_duration_since(Instant::now()));
        }
        wait
    }

    fn feed_watchdog(&mut self) {
        let Some(interval) = self.notify.watchdog() else { return };
        if self.fed.elapsed() >= interval {
            self.fed = Instant::now();
            self.notify.is_alive();
        }
    }

    fn bounds(&self) -> Bounds {
        let own = Bounds {
            keep_ns: self.settings.keep().as_nanos() as u64,
            bytes_max: self.settings.window_bytes.0.0 as usize,
        };
        match self.keeper_bounds {
            Some(more) => Bounds {
                keep_ns: own.keep_ns.max(more.keep_ns),
                bytes_max: own.bytes_max.max(more.bytes_max),
            },
            None => own,
        }
    }

    fn start_recorder(&mut self) -> Result<(), StartError> {
        let stream = LiveStream::new(self.bounds(), self.origin);
        let begun_ns = self.clock.begun().as_nanos() as u64;
        stream.with_window(|window, _| window.want_from(begun_ns));
        let arguments = self.settings.recorder_arguments();
        let talk = (&self.waker, &self.log);
        let recorder = Recorder::start(&self.program, &arguments, stream, &self.signals, talk)?;
        self.shared.set_recorder(Some(recorder.pid()));
        let since = Instant::now();
        self.recording = Recording::Runs { recorder, since, is_announced: false };
        Ok(())
    }

    /// Sees its begin and its end, and starts it again.
    fn look_after_recorder(&mut self) -> Result<(), ServiceError> {
        match &mut self.recording {
            Recording::Runs { recorder, is_announced, .. }
                if !*is_announced && recorder.stream().has_begun() =>
            {
                *is_announced = true;
                if !std::mem::replace(&mut self.had_begun, true) {
                    self.log.tell("records");
                    self.notify.is_ready();
                }
            }
            Recording::Waits { until, .. } if Instant::now() >= *until => return self.again(),
            _ => {}
        }
        match &self.recording {
            Recording::Runs { recorder, .. } if recorder.stream().is_over() => self.has_ended(),
            _ => Ok(()),
        }
    }

    /// Nobody asked the recorder to end.
    fn has_ended(&mut self) -> Result<(), ServiceError> {
        if self.had_begun {
            self.cut();
        }
        let recording = std::mem::replace(&mut self.recording, Recording::Ended);
        let Recording::Runs { recorder, since, .. } = recording else { return Ok(()) };
        self.shared.set_recorder(None);
        let ended = recorder.end();
        if !self.had_begun {
            let code = ended.code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0);
            return Err(ServiceError::Recorder {
                messages: ended.messages,
                code: code.unwrap_or(1),
            });
        }
        self.counters().recorder_ends.one();
        if since.elapsed() >= STEADY {
            self.backoff = *BACKOFF.start();
        }
        let (wait, now) = (self.backoff, Instant::now());
        self.backoff = (wait * 2).min(*BACKOFF.end());
        let last = ended.messages.lines().last().unwrap_or_default();
        self.log
            .say(format_args!("the recorder ended ({}): it is started again. {last}", ended.how));
        self.recording = Recording::Waits { until: now + wait, ended: now };
        Ok(())
    }

    fn again(&mut self) -> Result<(), ServiceError> {
        let Recording::Waits { ended, .. } = self.recording else { return Ok(()) };
        let gap = ended.elapsed();
        self.counters().gap_ms.add(gap.as_millis() as u64);
        if let Err(error) = self.start_recorder() {
            // The program may be replaced at this moment.
            self.log.say(error);
            let (wait, now) = (self.backoff, Instant::now());
            self.backoff = (wait * 2).min(*BACKOFF.end());
            self.recording = Recording::Waits { until: now + wait, ended: now };
            return Ok(());
        }
        self.log.say(format_args!("{:.1} s are in no window: no recorder ran", gap.as_secs_f64()));
        Ok(())
    }

    /// Ends the window, and gives it to the sinks.
    fn cut(&mut self) {
        let ended = self.clock.cut(now(self.origin));
        if let Some(step) = ended.step {
            self.counters().clock_steps.one();
            let step = step.as_secs_f64();
            self.log.tell(format_args!("the clock of the machine was set by {step:.1} s"));
        }
        let Recording::Runs { recorder, is_announced: true, .. } = &self.recording else { return };
        let stream = recorder.stream().clone();
        let (from_ns, to_ns) = (ended.from.as_nanos() as u64, self.clock.begun().as_nanos() as u64);
        if self.held.get() > self.settings.queue_bytes.0.0 {
            self.counters().windows_lost_by_queue_bytes.one();
            self.log.say("sinks hold more windows than queue-bytes allows: a window is dropped");
            stream.with_window(|window, _| window.want_from(to_ns));
            return;
        }
        self.number += 1;
        let times = (ended.start, ended.end);
        let window = Window::make(self.number, times, (&self.held, &self.symbols), |mut out| {
            stream.with_window(|window, _| {
                window.write_since(from_ns, &mut out)?;
                Ok(window.want_from(to_ns))
            })
        });
        match window {
            Ok(window) => self.hand_on(window),
            Err(error) => {
                self.counters().windows_lost_by_memory.one();
                self.log.say(format_args!("no memory for a window: {error}"));
            }
        }
        if self.number.is_multiple_of(TRIM_WINDOWS) {
            self.symbols.trim();
            stream.with_window(|window, _| window.prune(system::is_running));
        }
        self.publish();
    }

    fn hand_on(&self, window: Window) {
        let counters = self.counters();
        counters.windows.one();
        counters.window_bytes.add(window.bytes());
        if window.lost.records > 0 {
            counters.records_lost_by_window_bytes.add(window.lost.records);
            self.log.say("a window has more records than window-bytes allows: the oldest ones go");
        }
        self.sinks.give(&Arc::new(window));
    }

    fn keep(&mut self, event: &Event) {
        let Recording::Runs { recorder, .. } = &self.recording else {
            self.log.say(format_args!("{}: no recorder runs, nothing is kept", event.reason));
            return;
        };
        match self.keeper.as_ref().map(|keeper| keeper.keep(event, recorder.stream())) {
            Some(Ok(line)) => self.log.tell(line),
            Some(Err(line)) => self.log.say(line),
            None => self.log.say(format_args!("{}: no trigger is configured", event.reason)),
        }
    }

    /// Reads the configuration again. A bad one changes nothing.
    fn reload(&mut self) {
        let now_ns = ClockId::MONOTONIC.now_ns().unwrap_or_default();
        self.notify.is_reloading(now_ns / 1000);
        if let Err(reason) = self.try_reload() {
            self.counters().reloads_refused.one();
            self.log.tell(format_args!("the old settings stay: {reason}"));
        } else {
            self.counters().reloads.one();
            self.log.tell("the configuration was read again");
        }
        self.notify.is_ready();
        self.publish();
    }

    fn try_reload(&mut self) -> Result<(), String> {
        let settings = self.source.load().map_err(|error| error.to_string())?;
        if settings == self.settings {
            return Ok(());
        }
        let sinks = self.maker.sinks(&settings)?;
        let triggers = self.maker.triggers(&settings, &self.fire)?;
        let keeper = self.maker.keeper(&settings)?;
        let is_other_recorder = settings.recorder_arguments() != self.settings.recorder_arguments();
        self.cut();
        self.settings = settings;
        (self.keeper, self.keeper_bounds) = keeper.unzip();
        self.triggers = triggers;
        let old = std::mem::replace(&mut self.sinks, Sinks::start(sinks, &self.log));
        old.end();
        self.clock = WindowClock::new(self.settings.window.0, now(self.origin));
        let bounds = self.bounds();
        if let Recording::Runs { recorder, .. } = &self.recording {
            let begun_ns = self.clock.begun().as_nanos() as u64;
            recorder.stream().with_window(|window, _| {
                window.set_bounds(bounds);
                window.want_from(begun_ns);
            });
        }
        if is_other_recorder { self.replace_recorder() } else { Ok(()) }
    }

    fn replace_recorder(&mut self) -> Result<(), String> {
        if let Recording::Runs { recorder, .. } =
            std::mem::replace(&mut self.recording, Recording::Ended)
        {
            recorder.end();
        }
        self.start_recorder().map_err(|error| error.to_string())
    }

    /// Ends the recorder, and gives the last window to the sinks.
    fn end(mut self) -> Result<(), ServiceError> {
        self.notify.is_stopping();
        if let Recording::Runs { recorder, .. } = &self.recording {
            recorder.ask_to_end();
            let until = Instant::now() + Duration::from_secs(5);
            while !recorder.stream().is_over() && Instant::now() < until {
                self.poller.wait(Some(until.saturating_duration_since(Instant::now())))?;
                self.waker.clear()?;
                // A second signal does not wait.
                if self.signals.next()?.is_some() {
                    break;
                }
            }
        }
        self.cut();
        self.triggers.clear();
        self.sinks.end();
        self.log.close();
        Ok(())
    }

    /// Shows the state to others.
    fn publish(&self) {
        self.shared.set_parts(Parts {
            sinks: self.sinks.statuses(),
            triggers: self.triggers.clone(),
            keeper: self.keeper.clone(),
            fire: Some(self.fire.clone()),
            held: self.held.clone(),
        });
        let counted = self.counters().get();
        let size = ByteSize(counted.window_bytes);
        self.notify.status(&format!("{} windows, {size} of recordings", counted.windows));
    }
}

fn now(origin: Instant) -> Now {
    Now { monotonic: origin.elapsed(), wall: SystemTime::now() }
}
