//! The service: its loop waits for the end of a window, for signals, for the recorder, and for triggers.

mod care;
mod memory;
mod reload;

use care::Backoff;
use memory::Memory;

use crate::clock::{Ended as EndedWindow, Now, WindowClock};
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
use whit_sys::{Errno, Poller, Signal, SignalFd, Waker, system};
use whit_types::ByteSize;

/// The signals in the poller, and the waker.
const SIGNAL: u64 = 0;
const NEWS: u64 = 1;
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
    /// A sink, a trigger or the flight recorder cannot be used.
    #[error("{0}")]
    Part(String),
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
    Runs { recorder: Recorder, since: Instant, is_announced: bool, asked: Option<Instant> },
    Waits { until: Instant },
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
    backoff: Backoff,
    memory: Memory,
    /// The settings before, until a recorder with the new ones has begun.
    fallback: Option<Settings>,
    had_begun: bool,
    /// Since when no recorder has recorded.
    gap_since: Option<Instant>,
    /// The part of this time that is counted by now.
    gap_counted: Duration,
    /// Those of this recorder that are counted by now.
    mappings_lost: u64,
    /// Time without a recorder in the window that runs, up to the last recorder's begin.
    window_gap: Duration,
    sinks: Sinks,
    triggers: Vec<Arc<dyn Trigger>>,
    keeper: Option<Arc<dyn Keeper>>,
    keeper_bounds: Option<Bounds>,
    fire: Fire,
    events: Receiver<Event>,
    held: HeldBytes,
    symbols: KeptSymbols,
    number: u64,
    /// Ends of windows, whether or not a sink wanted them.
    cuts: u64,
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
        let unusable = ServiceError::Part;
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
            backoff: Backoff::default(),
            memory: Memory::of_self(),
            fallback: None,
            had_begun: false,
            gap_since: Some(origin),
            gap_counted: Duration::ZERO,
            mappings_lost: 0,
            window_gap: Duration::ZERO,
            sinks,
            triggers,
            keeper,
            keeper_bounds,
            fire,
            events,
            held: HeldBytes::default(),
            symbols: KeptSymbols::default(),
            number: 0,
            cuts: 0,
            fed: origin,
        };
        service.say_sizes();
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
        if let Recording::Waits { until } = &self.recording {
            wait = wait.min(until.saturating_duration_since(Instant::now()));
        }
        if let Recording::Runs { is_announced: false, .. } = &self.recording {
            // A quiet target wakes nobody.
            wait = wait.min(Duration::from_secs(1));
        }
        wait = wait.min(self.until_silence());
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
        let own = match self.sinks.is_empty() {
            false => Bounds {
                keep_ns: self.settings.keep().as_nanos() as u64,
                bytes_max: self.settings.window_bytes.0.0 as usize,
            },
            true => Bounds { keep_ns: 0, bytes_max: 0 },
        };
        match self.keeper_bounds {
            Some(more) => Bounds {
                keep_ns: own.keep_ns.max(more.keep_ns),
                bytes_max: own.bytes_max.max(more.bytes_max),
            },
            None => own,
        }
    }

    /// Ends the window, and gives it to the sinks.
    fn cut(&mut self) {
        let ended = self.clock.cut(now(self.origin));
        let gap = std::mem::take(&mut self.window_gap);
        self.count_gap();
        if let Some(step) = ended.step {
            self.counters().clock_steps.one();
            let step = step.as_secs_f64();
            self.log.say_always(format_args!("the clock of the machine was set by {step:.1} s"));
        }
        let Recording::Runs { recorder, is_announced: true, .. } = &self.recording else { return };
        let stream = recorder.stream().clone();
        let (from_ns, to_ns) = (ended.from.as_nanos() as u64, self.clock.begun().as_nanos() as u64);
        self.cuts += 1;
        if !self.sinks.is_empty() {
            self.make_window(&stream, &ended, (from_ns, to_ns), gap);
        }
        self.count_mappings_lost(&stream);
        if self.cuts.is_multiple_of(TRIM_WINDOWS) {
            self.symbols.trim();
            stream.with_window(|window, _| window.prune(system::is_running));
        }
        self.publish();
    }

    fn make_window(
        &mut self,
        stream: &LiveStream,
        ended: &EndedWindow,
        (from_ns, to_ns): (u64, u64),
        gap: Duration,
    ) {
        if self.held.get() > self.settings.queue_bytes.0.0 {
            self.counters().windows_lost_by_queue_bytes.one();
            self.log.say("sinks hold more windows than queue-bytes allows: a window is dropped");
            stream.with_window(|window, _| window.want_from(to_ns));
            return;
        }
        self.number += 1;
        let times = (ended.start, ended.end);
        let window = Window::make(self.number, times, (&self.held, &self.symbols), |mut out| {
            let (frozen, lost) = stream.with_window(|window, _| match self.keeper_bounds {
                // The keeper wants them, too.
                Some(_) => (window.freeze_since(from_ns), window.want_from(to_ns)),
                None => window.take_since(from_ns, to_ns),
            });
            frozen.move_to(&mut out)?;
            Ok(lost)
        });
        match window {
            Ok(window) => self.hand_on(window.with_gap(gap)),
            Err(error) => {
                self.counters().windows_lost_by_memory.one();
                self.log.say(format_args!("no memory for a window: {error}"));
            }
        }
    }

    fn count_mappings_lost(&mut self, stream: &LiveStream) {
        let dropped = stream.with_window(|window, _| window.sideband().dropped());
        let before = std::mem::replace(&mut self.mappings_lost, dropped);
        // Each recorder begins at zero.
        self.counters().mappings_lost.add(dropped.saturating_sub(before));
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

    fn keep(&self, event: &Event) {
        match &self.keeper {
            Some(keeper) => keeper.keep(event),
            None => self.log.say(format_args!("{}: no seconds are kept (flight)", event.reason)),
        }
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
