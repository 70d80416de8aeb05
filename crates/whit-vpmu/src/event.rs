//! The event of a guest's counter.

use crate::model::CounterIndex;
use crate::msr::evtsel;

/// The event of a counter, as the host has to count it. Two selects that differ in bits of no
/// interest to the host (interrupt, enable, pin control) have the same configuration.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct EventConfig {
    /// For which counter.
    pub counter: CounterIndex,
    /// Event select, unit mask, edge, invert, counter mask and AMD's bits 11:8 of the event select, where
    /// the register has them. A fixed counter has its event's code (0xc0, 0x3c, 0x300, 0x400).
    pub select: u64,
    /// Count in the guest's user mode.
    pub user: bool,
    /// Count in the guest's kernel mode.
    pub kernel: bool,
}

impl EventConfig {
    /// Event of an event select; `None` where it is disabled or counts in no mode.
    pub(crate) const fn of_select(counter: CounterIndex, select: u64) -> Option<EventConfig> {
        let (user, kernel) = (select & evtsel::USR != 0, select & evtsel::OS != 0);
        if select & evtsel::EN == 0 || !(user || kernel) {
            return None;
        }
        Some(EventConfig { counter, select: select & evtsel::RAW, user, kernel })
    }

    /// The event's number: 8 bits, AMD 12.
    #[must_use]
    pub const fn event(&self) -> u16 {
        ((self.select & evtsel::EVENT) | ((self.select & evtsel::AMD_EVENT_HIGH) >> 24)) as u16
    }

    /// The unit mask.
    #[must_use]
    pub const fn umask(&self) -> u8 {
        ((self.select & evtsel::UMASK) >> 8) as u8
    }
}
