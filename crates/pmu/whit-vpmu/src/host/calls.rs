//! System calls, counted where they are made.

/// System calls by kind.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub struct HostCalls {
    /// `perf_event_open`.
    pub open: u64,
    /// `fcntl`: who gets the signal.
    pub control: u64,
    /// `mmap` of the event's page.
    pub map: u64,
    /// Number of `read` calls.
    pub read: u64,
    /// `ioctl` ENABLE.
    pub enable: u64,
    /// `ioctl` DISABLE.
    pub disable: u64,
    /// `ioctl` PERIOD.
    pub period: u64,
    /// `close`, and `munmap` where there was a page.
    pub close: u64,
}

impl HostCalls {
    /// Number of calls of every kind.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.open
            + self.control
            + self.map
            + self.read
            + self.enable
            + self.disable
            + self.period
            + self.close
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_has_each_kind_once() {
        let calls = HostCalls {
            open: 1,
            control: 2,
            map: 4,
            read: 8,
            enable: 16,
            disable: 32,
            period: 64,
            close: 128,
        };
        assert_eq!(calls.total(), 255);
    }
}
