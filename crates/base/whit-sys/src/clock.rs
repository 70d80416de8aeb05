//! Clocks by number and by the names that `-k/--clockid` takes.

use std::mem::MaybeUninit;

use crate::{Errno, check};

/// A clock id of `clock_gettime(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockId(pub i32);

/// Name, short name and clock. Perf events can be stamped with these.
const NAMES: [(&str, &str, ClockId); 5] = [
    ("monotonic", "mono", ClockId::MONOTONIC),
    ("monotonic_raw", "raw", ClockId::MONOTONIC_RAW),
    ("realtime", "real", ClockId::REALTIME),
    ("boottime", "boot", ClockId::BOOTTIME),
    ("tai", "tai", ClockId::TAI),
];

impl ClockId {
    /// Wall-clock time.
    pub const REALTIME: ClockId = ClockId(libc::CLOCK_REALTIME);
    /// Time since boot, slewed by NTP, without suspend.
    pub const MONOTONIC: ClockId = ClockId(libc::CLOCK_MONOTONIC);
    /// Time since boot, not slewed, without suspend.
    pub const MONOTONIC_RAW: ClockId = ClockId(libc::CLOCK_MONOTONIC_RAW);
    /// Time since boot with suspend.
    pub const BOOTTIME: ClockId = ClockId(libc::CLOCK_BOOTTIME);
    /// International atomic time.
    pub const TAI: ClockId = ClockId(libc::CLOCK_TAI);

    /// From a name (with or without `CLOCK_`, in any case) or a number.
    pub fn parse(text: &str) -> Option<ClockId> {
        if let Ok(number) = text.parse() {
            return Some(ClockId(number));
        }
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_prefix("clock_").unwrap_or(&lower);
        NAMES.iter().find(|(long, short, _)| name == *long || name == *short).map(|n| n.2)
    }

    /// The long name, for the clocks that have one.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|n| n.2 == self).map(|n| n.0)
    }

    /// Every name that [`ClockId::parse`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|n| n.0)
    }

    /// The time now, in nanoseconds.
    pub fn now_ns(self) -> Result<u64, Errno> {
        let mut time = MaybeUninit::<libc::timespec>::zeroed();
        // SAFETY: the result points to a live, writable timespec.
        check(i64::from(unsafe { libc::clock_gettime(self.0, time.as_mut_ptr()) }))?;
        // SAFETY: all-zero is a valid timespec, and the call has filled it.
        Ok(nanoseconds(unsafe { time.assume_init_ref() }))
    }

    /// The resolution, in nanoseconds.
    pub fn resolution_ns(self) -> Result<u64, Errno> {
        let mut time = MaybeUninit::<libc::timespec>::zeroed();
        // SAFETY: the result points to a live, writable timespec.
        check(i64::from(unsafe { libc::clock_getres(self.0, time.as_mut_ptr()) }))?;
        // SAFETY: all-zero is a valid timespec, and the call has filled it.
        Ok(nanoseconds(unsafe { time.assume_init_ref() }))
    }
}

fn nanoseconds(time: &libc::timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_every_spelling_give_the_clock() {
        for text in ["raw", "RAW", "monotonic_raw", "CLOCK_MONOTONIC_RAW", "4"] {
            assert_eq!(ClockId::parse(text), Some(ClockId::MONOTONIC_RAW), "{text}");
        }
        assert_eq!(ClockId::parse("wall"), None);
        assert_eq!(ClockId::TAI.name(), Some("tai"));
        assert_eq!(ClockId(99).name(), None);
    }

    #[test]
    fn clocks_tick_and_have_a_resolution() {
        let clock = ClockId::MONOTONIC;
        let before = clock.now_ns().unwrap();
        assert!(clock.now_ns().unwrap() >= before);
        assert!(clock.resolution_ns().unwrap() > 0);
        assert_eq!(ClockId(99).now_ns(), Err(Errno::INVAL));
    }
}
