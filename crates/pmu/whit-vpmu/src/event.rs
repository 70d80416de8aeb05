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

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTER: CounterIndex = CounterIndex::General(1);
    const ENABLED: u64 = 1 << 22;

    #[test]
    fn a_select_counts_where_it_is_enabled_and_in_its_modes() {
        let modes = |select| {
            EventConfig::of_select(COUNTER, select).map(|config| (config.user, config.kernel))
        };
        assert_eq!(modes(ENABLED | 1 << 16), Some((true, false)));
        assert_eq!(modes(ENABLED | 1 << 17), Some((false, true)));
        assert_eq!(modes(ENABLED | 3 << 16), Some((true, true)));
        assert_eq!([modes(ENABLED), modes(3 << 16), modes(0)], [None; 3]);
    }

    #[test]
    fn the_host_sees_what_selects_the_event_and_nothing_else() {
        let all = EventConfig::of_select(COUNTER, u64::MAX).unwrap();
        // Event, unit mask, edge (bit 18), invert (23), counter mask, AMD's bits 11:8.
        assert_eq!((all.counter, all.select), (COUNTER, 0xf_ff84_ffff));
        assert_eq!((all.event(), all.umask()), (0xfff, 0xff));
        let one = EventConfig::of_select(COUNTER, 0x5_0000_12c0 | ENABLED | 3 << 16).unwrap();
        assert_eq!((one.event(), one.umask()), (0x5c0, 0x12));
    }
}
