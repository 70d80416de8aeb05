//! The distance between samples, where it is changed while recording goes on.
//!
//! The kernel writes into each sample of an event of a PMU the period that was in force. Into those of a clock it
//! writes the first period for ever. So the moments of changes are kept here, and readers correct the samples of clocks
//! ([`super::stretched_decoder`]).
//!
//! A change cancels the timer of a CPU and starts it with the new distance. The last sample with the old one is older
//! than the end of the call, and the first one with the new is later than its begin by the new distance, which is
//! longer than the call takes.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whit_engine_api::open_event::{Instance, OpenEvent};
use whit_perfdata::attr::{AttrFlags, pmu_type};
use whit_sys::clock::ClockId;
use whit_types::TimestampNs;

use crate::event::software;
use crate::record_clock;

const NS_PER_SECOND: u64 = 1_000_000_000;
/// Redrawn distances may be less than the nominal one, by so many percent.
const SHORTEST_PERCENT: u64 = 80;
/// Changes that are kept for readers. There are at most some ten a second, and readers look once a second.
const CHANGES_MAX: usize = 256;

/// Whether the event is a clock of software: a timer of the kernel.
pub(super) fn is_clock(event: &OpenEvent) -> bool {
    let attr = &event.event.attr;
    attr.pmu_type == pmu_type::SOFTWARE
        && matches!(attr.config, software::CPU_CLOCK | software::TASK_CLOCK)
}

/// The distance between the samples of a clock, as it was asked for.
pub(super) fn nominal_ns(event: &OpenEvent) -> u64 {
    let attr = &event.event.attr;
    let wanted = attr.sample_period_or_freq;
    if attr.has(AttrFlags::FREQ) { NS_PER_SECOND / wanted.max(1) } else { wanted }
}

/// Whether all instances change with their own calls: the kernel changes no events that threads inherited.
pub(super) fn can_change(event: &OpenEvent) -> bool {
    let inherits = event.event.attr.has(AttrFlags::INHERIT);
    // The kernel samples these at each hit, whatever their period is.
    let by_hit = [pmu_type::SOFTWARE, pmu_type::TRACEPOINT, pmu_type::BREAKPOINT];
    let has_period = is_clock(event) || !by_hit.contains(&event.event.attr.pmu_type);
    let is_sampled =
        has_period && event.event.attr.sample_period_or_freq > 0 && !event.event.is_side_band;
    is_sampled
        && event.event.spec.leader.is_none()
        && event.instances.iter().all(|one| one.tid.is_none() || !inherits)
}

/// The moments at which one instance has changed.
type Changes = VecDeque<(TimestampNs, u32)>;

#[derive(Debug)]
struct State {
    stretch: u32,
    /// By the id of an instance.
    changes: HashMap<u64, Changes>,
}

/// The present stretch, and the former ones of clocks.
#[derive(Debug)]
pub(super) struct Stretches {
    clock: Option<ClockId>,
    /// Nothing has to be corrected before.
    has_changed: AtomicBool,
    state: Mutex<State>,
}

/// The stretch while nobody changes it.
pub(super) struct Held<'a>(MutexGuard<'a, State>);

impl Held<'_> {
    pub(super) fn stretch(&self) -> u32 {
        self.0.stretch
    }
}

impl Stretches {
    /// By the clock of the records.
    pub(super) fn new(clock: Option<ClockId>) -> Arc<Stretches> {
        let state = Mutex::new(State { stretch: 1, changes: HashMap::new() });
        Arc::new(Stretches { clock, has_changed: AtomicBool::new(false), state })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the stretch while periods are drawn.
    pub(super) fn hold(&self) -> Held<'_> {
        Held(self.lock())
    }

    /// Stretches all events that can change.
    pub(super) fn set(&self, events: &[OpenEvent], stretch: u32) {
        let mut state = self.lock();
        state.stretch = stretch;
        for event in events.iter().filter(|event| can_change(event)) {
            let factor = u64::from(stretch);
            let attr = &event.event.attr;
            let wanted = attr.sample_period_or_freq;
            let clock_ns = is_clock(event).then(|| nominal_ns(event).saturating_mul(factor));
            let value = match clock_ns {
                Some(period_ns) => period_ns,
                None if attr.has(AttrFlags::FREQ) => (wanted / factor).max(1),
                None => wanted.saturating_mul(factor),
            };
            for instance in &event.instances {
                let from = self.change(instance, value, clock_ns);
                if let (Some(from), true) = (from, clock_ns.is_some()) {
                    let changes = state.changes.entry(instance.id).or_default();
                    changes.push_back((from, stretch));
                    if changes.len() > CHANGES_MAX {
                        changes.pop_front();
                    }
                    self.has_changed.store(true, Ordering::Release);
                }
            }
        }
    }

    /// Since when it is so; `None` where it is as it was: a CPU that went offline has no event any more.
    fn change(
        &self,
        instance: &Instance,
        value: u64,
        clock_ns: Option<u64>,
    ) -> Option<TimestampNs> {
        let before = record_clock::now(self.clock).ok()?;
        instance.fd.set_period(value).ok()?;
        let after = record_clock::now(self.clock).ok()?;
        let first_ns = clock_ns.unwrap_or(0) / 100 * SHORTEST_PERCENT;
        Some(after.min(TimestampNs(before.0.saturating_add(first_ns))))
    }

    /// Whether samples may have to be corrected.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Acquire)
    }

    /// Looks stretches up. A sample in a ring is older than this call, so that its change is known.
    pub(super) fn look(&self) -> Look<'_> {
        Look(self.lock())
    }
}

/// The stretches of samples that are in rings.
pub(super) struct Look<'a>(MutexGuard<'a, State>);

impl Look<'_> {
    /// The stretch of an instance at a moment; `None` for an event that never changed.
    pub(super) fn at(&self, id: u64, time: TimestampNs) -> Option<u32> {
        let changes = self.0.changes.get(&id)?;
        let behind = changes.partition_point(|(from, _)| *from <= time);
        Some(behind.checked_sub(1).map_or(1, |at| changes[at].1))
    }
}

#[cfg(test)]
impl Stretches {
    /// As if this instance had changed.
    pub(super) fn pretend(&self, id: u64, from: TimestampNs, stretch: u32) {
        self.lock().changes.entry(id).or_default().push_back((from, stretch));
        self.has_changed.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use whit_engine_api::event::EventSpec;
    use whit_engine_api::open_event::ConfiguredEvent;
    use whit_perfdata::attr::Attr;
    use whit_sys::PerfEventFd;
    use whit_types::Tid;

    fn event(pmu_type: u32, config: u64, flags: AttrFlags, tid: Option<Tid>) -> OpenEvent {
        let attr = Attr { pmu_type, config, flags, sample_period_or_freq: 100, ..Attr::default() };
        let event = ConfiguredEvent::new(EventSpec::new("event", pmu_type, config), attr);
        let fd = PerfEventFd::fake(File::open("/dev/null").unwrap().into());
        OpenEvent::new(event, vec![Some(Instance { fd, id: 1, cpu: None, tid })])
    }

    #[test]
    fn clocks_and_events_of_a_pmu_change_unless_threads_inherit_them() {
        let (none, inherit) = (AttrFlags::default(), AttrFlags::INHERIT);
        let (clock, faults) = (software::CPU_CLOCK, 2);
        let thread = Some(Tid(7));
        for (kind, config, flags, tid, wanted) in [
            (pmu_type::SOFTWARE, clock, none, None, true),
            (pmu_type::SOFTWARE, clock, inherit, None, true),
            (pmu_type::SOFTWARE, clock, none, thread, true),
            (pmu_type::SOFTWARE, clock, inherit, thread, false),
            (pmu_type::HARDWARE, 0, none, None, true),
            (pmu_type::SOFTWARE, faults, none, None, false),
            (pmu_type::TRACEPOINT, 300, none, None, false),
        ] {
            let event = event(kind, config, flags, tid);
            assert_eq!(can_change(&event), wanted, "{kind} {config} {flags:?} {tid:?}");
        }
    }

    #[test]
    fn an_event_that_cannot_be_changed_keeps_its_periods() {
        let stretches = Stretches::new(Some(ClockId::MONOTONIC));
        // The kernel knows no such event.
        let events = [event(pmu_type::SOFTWARE, software::CPU_CLOCK, AttrFlags::FREQ, None)];
        stretches.set(&events, 8);
        assert_eq!(stretches.hold().stretch(), 8);
        assert!(
            !stretches.has_changed() && stretches.look().at(1, TimestampNs(u64::MAX)).is_none()
        );
        assert_eq!(nominal_ns(&events[0]), 10_000_000);
    }
}
