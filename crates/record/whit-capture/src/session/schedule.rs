//! Scheduled actions: events are switched on and off, the output is switched.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::options::{Start, SwitchOutput};

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Switch the events on, so many milliseconds after the start.
    Enable { after_ms: u64 },
    /// Switch them off.
    Disable { after_ms: u64 },
    /// Switch to a new output.
    Switch,
}

/// Steps, each with its time.
#[derive(Debug)]
pub(super) struct Schedule {
    steps: VecDeque<(Instant, Step)>,
    switch_every: Option<Duration>,
    next_switch: Option<Instant>,
}

impl Schedule {
    /// As the options have it, from `now` on.
    pub(super) fn new(start: &Start, switch: Option<SwitchOutput>, now: Instant) -> Schedule {
        let at = |ms: u64| now + Duration::from_millis(ms);
        let steps = match start {
            Start::AtOnce | Start::Disabled => VecDeque::new(),
            Start::AfterMs(ms) => VecDeque::from([(at(*ms), Step::Enable { after_ms: *ms })]),
            Start::Ranges(ranges) => ranges
                .iter()
                .flat_map(|&(from, to)| {
                    let on = (at(from), Step::Enable { after_ms: from });
                    [on, (at(to), Step::Disable { after_ms: to })]
                })
                .collect(),
        };
        let switch_every = match switch {
            Some(SwitchOutput::Every(time)) => Some(time),
            _ => None,
        };
        let mut schedule = Schedule { steps, switch_every, next_switch: None };
        schedule.switched(now);
        schedule
    }

    /// How long nothing is due; `None` for ever.
    pub(super) fn timeout(&self, now: Instant) -> Option<Duration> {
        let step = self.steps.front().map(|(at, _)| *at);
        let next = step.into_iter().chain(self.next_switch).min();
        next.map(|at| at.saturating_duration_since(now))
    }

    /// Takes the next step that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Step> {
        if self.steps.front().is_some_and(|(at, _)| *at <= now) {
            return self.steps.pop_front().map(|(_, step)| step);
        }
        self.next_switch.take_if(|at| *at <= now).map(|_| Step::Switch)
    }

    /// The output was switched, by schedule or by command: its time begins again.
    pub(super) fn switched(&mut self, now: Instant) {
        self.next_switch = self.switch_every.and_then(|time| now.checked_add(time));
    }
}

/// Adds up the time during which something was on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    total: Duration,
    since: Option<Instant>,
}

impl Stopwatch {
    pub(super) fn start(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    pub(super) fn stop(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.total += now.saturating_duration_since(since);
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.since.is_some()
    }

    /// The time so far; begins again at zero and goes on as it was.
    pub(super) fn lap(&mut self, now: Instant) -> Duration {
        let runs = self.since.is_some();
        self.stop(now);
        if runs {
            self.start(now);
        }
        std::mem::take(&mut self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_in_order_and_when_they_are_due() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let start = Start::Ranges(vec![(10, 20), (30, 40)]);
        let every = SwitchOutput::Every(Duration::from_millis(25));
        let mut schedule = Schedule::new(&start, Some(every), now);
        assert_eq!(schedule.timeout(now), Some(Duration::from_millis(10)));
        assert_eq!(schedule.due(at(9)), None);
        assert_eq!(schedule.due(at(12)), Some(Step::Enable { after_ms: 10 }));
        assert_eq!(schedule.due(at(12)), None);
        assert_eq!(schedule.timeout(at(24)), Some(Duration::ZERO));
        assert_eq!(schedule.due(at(26)), Some(Step::Disable { after_ms: 20 }));
        assert_eq!(schedule.due(at(26)), Some(Step::Switch));
        schedule.switched(at(26));
        assert_eq!(schedule.due(at(40)), Some(Step::Enable { after_ms: 30 }));
        assert_eq!(schedule.due(at(40)), Some(Step::Disable { after_ms: 40 }));
        assert_eq!(schedule.timeout(at(40)), Some(Duration::from_millis(11)));
        let mut never = Schedule::new(&Start::AtOnce, None, now);
        assert_eq!((never.timeout(now), never.due(at(1 << 40))), (None, None));
    }

    #[test]
    fn a_stopwatch_adds_up_what_was_on() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut watch = Stopwatch::default();
        watch.start(at(0));
        watch.start(at(5));
        watch.stop(at(10));
        watch.stop(at(20));
        watch.start(at(30));
        assert_eq!(watch.lap(at(35)), Duration::from_millis(15));
        watch.stop(at(37));
        assert_eq!(watch.lap(at(50)), Duration::from_millis(2));
        assert_eq!(watch.lap(at(60)), Duration::ZERO);
    }
}
