//! The attribute that an event is opened with.
//!
//! Source: `perf_event_attr` in `include/uapi/linux/perf_event.h`; which flags: `pmc_reprogram_counter` of
//! `arch/x86/kvm/pmu.c`.

use super::HostOptions;
use crate::event::EventConfig;

/// `PERF_ATTR_SIZE_VER5`.
const SIZE_BYTES: usize = 112;
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_RAW: u32 = 4;
const PERF_COUNT_SW_DUMMY: u64 = 9;
const DISABLED: u64 = 1;
const PINNED: u64 = 1 << 2;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const EXCLUDE_HOST: u64 = 1 << 19;
const EXCLUDE_GUEST: u64 = 1 << 20;

/// An event of the host, as `perf_event_attr` names it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostEvent {
    /// `type`.
    pub kind: u32,
    /// `config`: the event in the numbering of its type.
    pub config: u64,
}

impl HostEvent {
    /// Nanoseconds that the thread has run, by a clock of each CPU.
    pub const CPU_CLOCK: HostEvent = HostEvent { kind: PERF_TYPE_SOFTWARE, config: 0 };
    /// Nanoseconds that the thread has run.
    pub const TASK_CLOCK: HostEvent = HostEvent { kind: PERF_TYPE_SOFTWARE, config: 1 };
    /// Times that the thread was switched away.
    pub const CONTEXT_SWITCHES: HostEvent = HostEvent { kind: PERF_TYPE_SOFTWARE, config: 3 };

    pub(super) const fn is_clock(self) -> bool {
        self.is_software() && self.config <= HostEvent::TASK_CLOCK.config
    }

    pub(super) const fn is_software(self) -> bool {
        self.kind == PERF_TYPE_SOFTWARE
    }

    /// A hardware event, as an event select says it.
    #[must_use]
    pub const fn raw(config: u64) -> HostEvent {
        HostEvent { kind: PERF_TYPE_RAW, config }
    }
}

/// The bytes of the `perf_event_attr` for a guest's event.
#[must_use]
pub fn attribute(
    host: HostEvent,
    config: &EventConfig,
    period: u64,
    options: &HostOptions,
) -> Vec<u8> {
    let mut flags = privileges(config);
    flags |= if options.pinned { PINNED } else { 0 };
    flags |= if options.guest_only { EXCLUDE_HOST } else { 0 };
    bytes(host, period, flags)
}

/// The same event where no guest is.
pub(super) fn without_guests(host: HostEvent, config: &EventConfig) -> Vec<u8> {
    bytes(host, 0, privileges(config) | DISABLED | EXCLUDE_GUEST)
}

/// An event that counts nothing.
pub(super) fn of_anchor() -> Vec<u8> {
    let dummy = HostEvent { kind: PERF_TYPE_SOFTWARE, config: PERF_COUNT_SW_DUMMY };
    bytes(dummy, 0, EXCLUDE_KERNEL | EXCLUDE_HV)
}

const fn privileges(config: &EventConfig) -> u64 {
    (if config.user { 0 } else { EXCLUDE_USER }) | (if config.kernel { 0 } else { EXCLUDE_KERNEL })
}

fn bytes(host: HostEvent, period: u64, flags: u64) -> Vec<u8> {
    let mut attr = vec![0; SIZE_BYTES];
    attr[0..4].copy_from_slice(&host.kind.to_ne_bytes());
    attr[4..8].copy_from_slice(&(SIZE_BYTES as u32).to_ne_bytes());
    attr[8..16].copy_from_slice(&host.config.to_ne_bytes());
    attr[16..24].copy_from_slice(&period.to_ne_bytes());
    attr[40..48].copy_from_slice(&flags.to_ne_bytes());
    attr
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CounterIndex;

    fn config(user: bool, kernel: bool) -> EventConfig {
        EventConfig { counter: CounterIndex::General(0), select: 0xc0, user, kernel }
    }

    /// Type and size, configuration, period, and the flags of the kernel's bit field.
    fn words(attr: &[u8]) -> [u64; 4] {
        assert_eq!(attr.len(), 112);
        [0, 8, 16, 40].map(|at| u64::from_ne_bytes(attr[at..at + 8].try_into().unwrap()))
    }

    #[test]
    fn attributes_are_those_that_kvm_opens() {
        let plain = HostOptions { pinned: false, guest_only: false, ..HostOptions::default() };
        let kvm = HostOptions { pinned: true, guest_only: true, ..plain };
        let size = 112 << 32;
        let host = HostEvent::raw(0x1c2);
        let words_of =
            |user, kernel, options| words(&attribute(host, &config(user, kernel), 77, &options));
        assert_eq!(words_of(true, true, plain), [4 | size, 0x1c2, 77, 0]);
        assert_eq!(words_of(false, true, plain), [4 | size, 0x1c2, 77, 0x10]);
        assert_eq!(words_of(true, false, plain), [4 | size, 0x1c2, 77, 0x20]);
        assert_eq!(words_of(false, true, kvm), [4 | size, 0x1c2, 77, 0x8_0014]);
        let other = without_guests(HostEvent::TASK_CLOCK, &config(true, false));
        assert_eq!(words(&other), [1 | size, 1, 0, 0x10_0021]);
        assert_eq!(words(&of_anchor()), [1 | size, 9, 0, 0x60]);
    }

    #[test]
    fn clocks_are_the_two_of_software() {
        let facts = [HostEvent::CPU_CLOCK, HostEvent::TASK_CLOCK, HostEvent::CONTEXT_SWITCHES]
            .map(|host| (host.is_software(), host.is_clock()));
        assert_eq!(facts, [(true, true), (true, true), (true, false)]);
        let raw = HostEvent::raw(0);
        assert!(!raw.is_software() && !raw.is_clock());
    }
}
