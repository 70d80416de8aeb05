//! One host event, and the kernel's view of it.

use whit_sys::{CounterPage, Errno, PerfEventFd};

use super::HostCalls;
use crate::source::{Arm, Reading, SourceError};

/// An open perf event.
#[derive(Debug)]
pub struct HostPerfEvent {
    fd: PerfEventFd,
    page: Option<CounterPage>,
    /// The kernel's count when it was last read.
    seen: u64,
    state: State,
    /// The period that the kernel has, and the rest of the current one as of `seen`.
    distance: Distance,
    /// Shortest period that it is given.
    period_min: u64,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    Running,
    /// Paused, but the kernel does not know yet.
    Lingering,
    Disabled,
}

/// Events from which on an overflow is so far away that a notice which comes too early costs nothing.
const FAR: u64 = 1 << 32;

/// How far an event is from its next notice, by its count.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Distance {
    period: u64,
    left: u64,
    due: bool,
}

impl Distance {
    const fn new(period: u64) -> Distance {
        Distance { period, left: period, due: false }
    }

    /// Whether a counter can start without another period. Its notice may come early but never late.
    fn serves(&self, arm: Arm) -> bool {
        let exact_enough = !arm.moved || (self.left >= FAR && self.left >= arm.left / 2);
        exact_enough && !self.due && self.left <= arm.left
    }

    /// The kernel begins the same period again whenever one is over.
    fn advance(&mut self, events: u64) {
        if events < self.left {
            self.left -= events;
        } else {
            self.due = true;
            self.left = self.period - (events - self.left) % self.period;
        }
    }
}

impl HostPerfEvent {
    /// State of an event that was opened with the period `left`, or with `period_min` where that is
    /// longer.
    pub(super) fn new(
        fd: PerfEventFd,
        page: Option<CounterPage>,
        left: u64,
        period_min: u64,
    ) -> HostPerfEvent {
        let distance = Distance::new(left.max(period_min));
        HostPerfEvent { fd, page, seen: 0, state: State::Running, distance, period_min }
    }

    pub(super) fn has_page(&self) -> bool {
        self.page.is_some()
    }

    pub(super) fn read(&mut self, calls: &mut HostCalls) -> Result<Reading, SourceError> {
        let events = self.advance(calls)?;
        Ok(Reading { events, due: std::mem::take(&mut self.distance.due) })
    }

    pub(super) fn pause(
        &mut self,
        linger: bool,
        calls: &mut HostCalls,
    ) -> Result<Reading, SourceError> {
        if linger {
            let reading = self.read(calls)?;
            self.state = State::Lingering;
            return Ok(reading);
        }
        self.disable(calls)?;
        self.read(calls)
    }

    pub(super) fn resume(&mut self, arm: Arm, calls: &mut HostCalls) -> Result<(), SourceError> {
        if self.state == State::Lingering {
            // Counts of the pause are dropped.
            self.advance(calls)?;
        }
        let arm = Arm { left: arm.left.max(self.period_min), ..arm };
        if !self.distance.serves(arm) {
            self.arm(arm.left, calls)?;
        }
        if self.state == State::Disabled {
            calls.enable += 1;
            self.fd.enable().map_err(host_error)?;
        }
        self.state = State::Running;
        Ok(())
    }

    /// Begins a new period.
    pub(super) fn arm(&mut self, left: u64, calls: &mut HostCalls) -> Result<(), SourceError> {
        let left = left.max(self.period_min);
        calls.period += 1;
        self.fd.set_period(left).map_err(host_error)?;
        self.distance = Distance::new(left);
        Ok(())
    }

    pub(super) fn settle(&mut self, calls: &mut HostCalls) -> bool {
        // An error is met again, and answered for, when the event is resumed.
        self.state == State::Lingering && self.disable(calls).is_ok() && self.advance(calls).is_ok()
    }

    fn disable(&mut self, calls: &mut HostCalls) -> Result<(), SourceError> {
        calls.disable += 1;
        self.fd.disable().map_err(host_error)?;
        self.state = State::Disabled;
        Ok(())
    }

    /// Count since the last look.
    fn advance(&mut self, calls: &mut HostCalls) -> Result<u64, SourceError> {
        let count = self.count(calls)?;
        let events = count.wrapping_sub(std::mem::replace(&mut self.seen, count));
        self.distance.advance(events);
        Ok(events)
    }

    fn count(&self, calls: &mut HostCalls) -> Result<u64, SourceError> {
        // A running event that is on no counter may be in error, which a read tells.
        let of_page = self.page.as_ref().and_then(CounterPage::read);
        if let Some(page) = of_page.filter(|page| page.counting || self.state == State::Disabled) {
            return Ok(page.count);
        }
        calls.read += 1;
        let mut words = [0];
        match self.fd.read(&mut words) {
            Ok(0) => Err(SourceError::Unschedulable),
            Ok(_) => Ok(words[0]),
            Err(error) => Err(host_error(error)),
        }
    }
}

fn host_error(error: Errno) -> SourceError {
    SourceError::Host(error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::{Distance, FAR};
    use crate::source::{Arm, Token};

    #[test]
    fn a_period_serves_where_its_notice_is_not_late() {
        let arm = |left, moved| Arm { left, moved, token: Token::from_bits(0) };
        let mut distance = Distance::new(100);
        distance.advance(10);
        assert!(distance.serves(arm(90, false)) && distance.serves(arm(95, false)));
        assert!(!distance.serves(arm(89, false)), "late");
        assert!(!distance.serves(arm(90, true)), "as the guest wrote it: exactly");
        distance.advance(90);
        assert!(!distance.serves(arm(100, false)), "due");
        let mut far = Distance::new(4 * FAR);
        far.advance(FAR);
        assert!(far.serves(arm(4 * FAR, true)));
        assert!(!far.serves(arm(2 * FAR, true)) && !far.serves(arm(8 * FAR, true)));
    }

    #[test]
    fn periods_follow_each_other() {
        let mut distance = Distance::new(100);
        distance.advance(99);
        assert_eq!(distance, Distance { period: 100, left: 1, due: false });
        distance.advance(1);
        assert_eq!(distance, Distance { period: 100, left: 100, due: true });
        distance.advance(250);
        assert_eq!(distance, Distance { period: 100, left: 50, due: true });
    }
}
