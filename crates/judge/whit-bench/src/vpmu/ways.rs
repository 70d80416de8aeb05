//! The ways that are compared, and the events that they are compared on.

use serde::Serialize;
use whit_perfdata::attr::pmu_type;
use whit_types::{HardwareEvent, SoftwareEvent};
use whit_vpmu::host::{EventMap, HostEvent, HostOptions, HostPerf};
use whit_vpmu::{Arm, Backing, CounterIndex, CounterSource, EventConfig, Token};

/// The event that is counted alone.
pub(super) const COUNTED: usize = 5;

/// A way of using host events.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// An event is closed when its counter stops, and another opened: KVM before Linux 5.5.
    #[default]
    Recreate,
    /// It is used again, stopped and started by calls, as in the series of Like Xu (2019).
    Reuse,
    /// It is used again, and runs on for a while: ours.
    Linger,
}

/// Those of sessions that begin without an event on the machine.
pub(super) const COLD: [Way; 2] = [Way::Recreate, Way::Linger];

impl Way {
    /// Every way, in the order of printing.
    pub(crate) const ALL: [Way; 3] = [Way::Recreate, Way::Reuse, Way::Linger];

    /// The description in the table.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Way::Recreate => "close and open",
            Way::Reuse => "reuse",
            Way::Linger => "reuse, stopped lazily",
        }
    }

    pub(super) const fn backing(self) -> Backing {
        match self {
            Way::Recreate => Backing::Recreate,
            Way::Reuse | Way::Linger => Backing::Reuse,
        }
    }

    pub(super) fn options(self) -> HostOptions {
        let mut options = HostOptions::default();
        // Nobody is in a guest here.
        options.guest_only = false;
        options.page = self == Way::Linger;
        options.linger = self == Way::Linger;
        options.anchor = self != Way::Recreate;
        options
    }
}

/// The guest's ten events on the host.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    host: Vec<HostEvent>,
    names: Vec<&'static str>,
}

impl Events {
    /// Hardware events where this machine counts them; others of them take the first one's place. Else clocks.
    pub(crate) fn detect() -> Events {
        let counts: Vec<usize> =
            (0..HardwareEvent::ALL.len()).filter(|n| opens(hardware(*n))).collect();
        let Some(first) = counts.first() else { return Events::clocks() };
        let numbers =
            (0..HardwareEvent::ALL.len()).map(|n| if counts.contains(&n) { n } else { *first });
        let numbers: Vec<usize> = numbers.collect();
        Events {
            host: numbers.iter().map(|n| hardware(*n)).collect(),
            names: numbers.iter().map(|n| HardwareEvent::ALL[*n].name()).collect(),
        }
    }

    /// No events.
    pub(super) const fn detect_nothing() -> Events {
        Events { host: Vec::new(), names: Vec::new() }
    }

    fn clocks() -> Events {
        let clocks = [
            (HostEvent::TASK_CLOCK, SoftwareEvent::TaskClock.name()),
            (HostEvent::CPU_CLOCK, SoftwareEvent::CpuClock.name()),
        ];
        let events = (0..HardwareEvent::ALL.len()).map(|n| clocks[n % 2]);
        let (host, names) = events.unzip();
        Events { host, names }
    }

    /// The way, for the reader of the result.
    pub(crate) fn words(&self) -> String {
        let hardware = self.host.iter().any(|event| event.kind == pmu_type::HARDWARE);
        let kind = if hardware {
            "hardware events"
        } else {
            "software events (this machine counts no hardware events)"
        };
        format!("{kind}: {}", self.names.join(", "))
    }

    /// Number of events that are open.
    pub(super) fn len(&self) -> usize {
        self.host.len()
    }

    /// The guest's select for an event, user mode alone: the handler is not counted.
    pub(super) const fn select(number: usize) -> u64 {
        const USR: u64 = 1 << 16;
        Events::code(number) | USR
    }

    /// Numbers that no architectural event has.
    const fn code(number: usize) -> u64 {
        0x1000 | (number as u64 + 1)
    }

    pub(super) fn map(&self) -> EventMap {
        let events = self.host.iter().enumerate();
        EventMap::Table(events.map(|(number, event)| (Events::code(number), *event)).collect())
    }
}

const fn hardware(number: usize) -> HostEvent {
    HostEvent { kind: pmu_type::HARDWARE, config: number as u64 }
}

/// Whether the machine counts an event for this thread.
fn opens(event: HostEvent) -> bool {
    let map = EventMap::Table(vec![(0, event)]);
    let mut options = Way::Recreate.options();
    options.anchor = false;
    let Ok(mut host) = HostPerf::for_this_thread(map, options) else { return false };
    let config =
        EventConfig { counter: CounterIndex::General(0), select: 0, user: true, kernel: false };
    let arm = Arm { left: 1 << 40, moved: false, token: Token::from_bits(0) };
    let Ok(mut event) = host.open(&config, arm) else { return false };
    host.read(&mut event).is_ok()
}
