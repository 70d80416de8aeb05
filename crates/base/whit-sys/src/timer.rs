//! A clock that ticks at fixed distances (`timerfd_create(2)`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::Errno;

/// A descriptor that is readable when a tick is due. Ticks are counted by the kernel from the
/// moment at which it was made: they do not drift, however late each of them is taken.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// Ticks every `length` from now on; `Errno::INVAL` for no time at all.
    pub fn every(length: Duration) -> Result<Timer, Errno> {
        if length.is_zero() {
            return Err(Errno::INVAL);
        }
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let length = Timespec::try_from(length).map_err(|_| Errno::INVAL)?;
        let times = Itimerspec { it_interval: length, it_value: length };
        timerfd_settime(&fd, TimerfdTimerFlags::empty(), &times)?;
        Ok(Timer(fd))
    }

    /// Takes the ticks that have come since they were last taken: more than one where somebody was
    /// late.
    pub fn take(&self) -> Result<u64, Errno> {
        let mut ticks = [0u8; 8];
        match rustix::io::read(&self.0, &mut ticks) {
            Ok(_) => Ok(u64::from_ne_bytes(ticks)),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Poller;
    use std::time::Instant;

    #[test]
    fn ticks_are_counted_from_the_start_however_late_they_are_taken() {
        let length = Duration::from_millis(2);
        let before = Instant::now();
        let timer = Timer::every(length).unwrap();
        let after = Instant::now();
        let mut poller = Poller::new().unwrap();
        poller.add(&timer, 7).unwrap();
        let mut ticks = 0;
        while ticks < 20 {
            assert_eq!(poller.wait(None).unwrap()[0].token, 7);
            ticks += timer.take().unwrap();
            std::thread::sleep(Duration::from_millis(3));
        }
        // Between the two moments at which it may have begun lies the true number.
        let earliest = (after.elapsed().as_micros() / length.as_micros()) as u64;
        ticks += timer.take().unwrap();
        let latest = (before.elapsed().as_micros() / length.as_micros()) as u64;
        assert!(ticks >= earliest && ticks <= latest, "{earliest} {ticks} {latest}");
        assert_eq!(Timer::every(Duration::ZERO).unwrap_err(), Errno::INVAL);
    }
}
