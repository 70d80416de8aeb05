//! Counted events and their periods.

use crate::period::{Period, Reload};

/// When an event gives samples.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Sampling {
    /// The event counts and gives no samples.
    Counting,
    /// Each time so many events have occurred. The period does not change by itself.
    Period(u64),
    /// Also, but the period will be changed to meet a rate; it begins with this one.
    Frequency(u64),
}

impl Sampling {
    pub(crate) const fn period(self) -> Option<u64> {
        match self {
            Sampling::Counting => None,
            Sampling::Period(period) | Sampling::Frequency(period) => Some(period),
        }
    }
}

/// The counted event.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct EventConfig {
    /// The event select as the register has it; its EN and INT bits are the driver's. For a fixed
    /// counter the code of its event (0xc0, 0x3c, 0x300, 0x400) with USR and OS.
    pub select: u64,
    /// When it gives samples.
    pub sampling: Sampling,
    /// Samples are PEBS records that the hardware writes.
    pub precise: bool,
    /// Samples carry branch records.
    pub branches: bool,
}

impl EventConfig {
    /// Counts an event in both privileges without samples.
    #[must_use]
    pub const fn counting(code: u64) -> EventConfig {
        let select = code | crate::bits::evtsel::USR | crate::bits::evtsel::OS;
        EventConfig { select, sampling: Sampling::Counting, precise: false, branches: false }
    }

    /// Samples an event in both privileges with a fixed period.
    #[must_use]
    pub const fn sampling(code: u64, period: u64) -> EventConfig {
        EventConfig { sampling: Sampling::Period(period), ..EventConfig::counting(code) }
    }
}

/// An event with its count; on a counter or, between two turns, off it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Event {
    pub(crate) config: EventConfig,
    pub(crate) count: u64,
    pub(crate) period: Period,
}

impl Event {
    /// An event that has not counted yet.
    #[must_use]
    pub const fn new(config: EventConfig) -> Event {
        let period = match config.sampling.period() {
            Some(period) => period,
            None => 1,
        };
        Event { config, count: 0, period: Period::new(period) }
    }

    /// The counted event.
    #[must_use]
    pub const fn config(&self) -> &EventConfig {
        &self.config
    }

    /// Events since the start, wrapped parts included.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// A counting event overflows as rarely as the counter allows, and no period of it ends.
    pub(crate) fn next_period(&mut self, max: u64) -> Reload {
        match self.config.sampling {
            Sampling::Counting => Reload { left: max, due: false },
            Sampling::Period(_) | Sampling::Frequency(_) => self.period.reload(max),
        }
    }
}
