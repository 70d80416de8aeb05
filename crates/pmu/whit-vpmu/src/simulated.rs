//! A simulated host: its events occur when a test says so.

use alloc::collections::{BTreeMap, VecDeque};

use crate::event::EventConfig;
use crate::source::{Arm, CounterSource, OpenError, Reading, SourceError, Token};

/// A host whose virtual time is the number of events that have occurred. Exact: notices come with the event
/// that they are about, and nothing is counted in between.
#[derive(Debug)]
pub struct Simulated {
    events: BTreeMap<u64, HostEvent>,
    next: u64,
    notices: VecDeque<Token>,
    open_max: usize,
    lingers: bool,
    refusal: Option<OpenError>,
    most_open: usize,
    calls: u64,
}

/// An open event of a [`Simulated`] host.
#[derive(Debug)]
pub struct SimulatedEvent(u64);

#[derive(Debug)]
struct HostEvent {
    config: EventConfig,
    token: Token,
    state: State,
    /// The period that it was armed with, and the rest of the current one.
    period: u64,
    left: u64,
    unread: u64,
    due: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    Running,
    /// Paused, and counts on.
    Lingering,
    Stopped,
    /// Pinned and without a counter.
    Error,
}

impl HostEvent {
    fn counts(&self, select: u64, kernel: bool) -> bool {
        let privilege = if kernel { self.config.kernel } else { self.config.user };
        matches!(self.state, State::Running | State::Lingering)
            && privilege
            && self.config.select == select
    }

    fn arm(&mut self, arm: Arm) {
        (self.period, self.left, self.token) = (arm.left, arm.left, arm.token);
    }
}

impl Default for Simulated {
    fn default() -> Simulated {
        Simulated::new()
    }
}

impl Simulated {
    /// A host without a limit, on which events stop at once.
    #[must_use]
    pub fn new() -> Simulated {
        Simulated {
            events: BTreeMap::new(),
            next: 0,
            notices: VecDeque::new(),
            open_max: usize::MAX,
            lingers: false,
            refusal: None,
            most_open: 0,
            calls: 0,
        }
    }

    /// The same, but paused events count on until they are settled, as host events may.
    #[must_use]
    pub fn lingering() -> Simulated {
        Simulated { lingers: true, ..Simulated::new() }
    }

    /// From now on so many events can be open at once.
    pub fn set_open_max(&mut self, open_max: usize) {
        self.open_max = open_max;
    }

    /// From now on events cannot be opened, for this reason.
    pub fn refuse(&mut self, reason: Option<OpenError>) {
        self.refusal = reason;
    }

    /// Somebody else takes the host's counters: all open events stop counting.
    pub fn take_counters_away(&mut self) {
        self.events.values_mut().for_each(|event| event.state = State::Error);
    }

    /// Host events between their opening and closing.
    #[must_use]
    pub fn open_events(&self) -> usize {
        self.events.len()
    }

    /// The most that have been open at once.
    #[must_use]
    pub fn most_open_events(&self) -> usize {
        self.most_open
    }

    /// Calls of the trait that a host would answer with system calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The guest's event with this select occurs up to `count` times: until the first notice. The result is
    /// how many times are left.
    pub fn occur(&mut self, select: u64, kernel: bool, count: u64) -> u64 {
        let counting = |event: &&mut HostEvent| event.counts(select, kernel);
        let first = self.events.values_mut().filter(counting).map(|event| event.left).min();
        let step = first.unwrap_or(count).min(count);
        for event in self.events.values_mut().filter(counting) {
            event.unread += step;
            event.left -= step;
            if event.left == 0 {
                event.left = event.period;
                event.due = true;
                self.notices.push_back(event.token);
            }
        }
        count - step
    }

    /// The next notice, for [`Vpmu::on_overflow`](crate::Vpmu::on_overflow).
    pub fn take_notice(&mut self) -> Option<Token> {
        self.notices.pop_front()
    }

    fn event(&mut self, event: &SimulatedEvent) -> Result<&mut HostEvent, SourceError> {
        self.calls += 1;
        let event = self.events.get_mut(&event.0).ok_or(SourceError::Host(9))?;
        if event.state == State::Error { Err(SourceError::Unschedulable) } else { Ok(event) }
    }
}

impl CounterSource for Simulated {
    type Event = SimulatedEvent;

    fn open(&mut self, config: &EventConfig, arm: Arm) -> Result<SimulatedEvent, OpenError> {
        self.calls += 1;
        if let Some(reason) = self.refusal {
            return Err(reason);
        }
        if self.events.len() >= self.open_max {
            return Err(OpenError::TooManyOpen);
        }
        let event = HostEvent {
            config: *config,
            token: arm.token,
            state: State::Running,
            period: arm.left,
            left: arm.left,
            unread: 0,
            due: false,
        };
        self.next += 1;
        self.events.insert(self.next, event);
        self.most_open = self.most_open.max(self.events.len());
        Ok(SimulatedEvent(self.next))
    }

    fn read(&mut self, event: &mut SimulatedEvent) -> Result<Reading, SourceError> {
        let event = self.event(event)?;
        let (events, due) = (core::mem::take(&mut event.unread), core::mem::take(&mut event.due));
        Ok(Reading { events, due })
    }

    fn pause(&mut self, event: &mut SimulatedEvent) -> Result<Reading, SourceError> {
        let state = if self.lingers { State::Lingering } else { State::Stopped };
        let reading = self.read(event)?;
        self.event(event)?.state = state;
        Ok(reading)
    }

    fn resume(&mut self, event: &mut SimulatedEvent, arm: Arm) -> Result<(), SourceError> {
        let event = self.event(event)?;
        if event.due || arm.moved {
            event.arm(arm);
        }
        (event.state, event.unread, event.due) = (State::Running, 0, false);
        event.token = arm.token;
        Ok(())
    }

    fn rearm(&mut self, event: &mut SimulatedEvent, arm: Arm) -> Result<(), SourceError> {
        self.event(event)?.arm(arm);
        Ok(())
    }

    fn settle(&mut self, event: &mut SimulatedEvent) -> bool {
        let Ok(event) = self.event(event) else { return false };
        let lingered = event.state == State::Lingering;
        if lingered {
            event.state = State::Stopped;
        }
        lingered
    }

    fn close(&mut self, event: SimulatedEvent) {
        self.calls += 1;
        self.events.remove(&event.0);
    }
}
