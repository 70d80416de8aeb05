//! The distance between a sample and the counted event: the precision of an event, by its attributes.

use std::fmt;
use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
use whit_perfdata::feature::EventDesc;
use whit_perfdata::reader::Recording;

/// `PERF_COUNT_SW_CPU_CLOCK`, `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];
const NS_PER_SECOND: u64 = 1_000_000_000;

/// The precision of an event's samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// Not known.
    #[default]
    Unknown,
    /// A timer of the kernel: where its interrupt came.
    Timer {
        /// Nanoseconds between samples; 0 where that is not known.
        period_ns: u64,
        /// How often the recorder has drawn the period anew.
        redraws: u64,
    },
    /// The kernel itself counts up, at the sample.
    Exact,
    /// A counter of the PMU, with this `precise_ip`.
    Pmu(u8),
}

impl Precision {
    /// That of an event. `redraws`: how often the periods of clocks were drawn anew.
    pub fn of(attr: &Attr, redraws: u64) -> Precision {
        match attr.pmu_type {
            pmu_type::SOFTWARE if CLOCKS.contains(&attr.config) => {
                let rate = attr.sample_period_or_freq;
                let is_frequency = attr.has(AttrFlags::FREQ);
                let period_ns =
                    if is_frequency { NS_PER_SECOND.checked_div(rate).unwrap_or(0) } else { rate };
                Precision::Timer { period_ns, redraws: if is_frequency { redraws } else { 0 } }
            }
            pmu_type::SOFTWARE | pmu_type::TRACEPOINT | pmu_type::BREAKPOINT => Precision::Exact,
            _ => Precision::Pmu(attr.precise_ip()),
        }
    }

    /// One word for programs; `None` where nothing is known.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Precision::Unknown => None,
            Precision::Timer { .. } => Some("timer"),
            Precision::Exact => Some("exact"),
            Precision::Pmu(_) => Some("pmu"),
        }
    }
}

/// For each event, whether it is a clock.
pub(crate) fn clocks(recording: &Recording) -> Vec<bool> {
    let is_clock =
        |event: &EventDesc| matches!(Precision::of(&event.attr, 0), Precision::Timer { .. });
    recording.events.iter().map(is_clock).collect()
}

/// Whether a recording may have context switches beside samples of a clock, by its events.
pub(crate) fn records_switches_and_clocks(recording: &Recording) -> bool {
    let has_switches = |event: &EventDesc| event.attr.has(AttrFlags::CONTEXT_SWITCH);
    recording.events.iter().any(has_switches) && clocks(recording).contains(&true)
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Precision::Unknown => f.write_str("unknown"),
            Precision::Timer { period_ns, redraws } => {
                let us = period_ns / 1000;
                match (period_ns, redraws) {
                    (0, _) => f.write_str("timer"),
                    (_, 0) => write!(f, "timer, every {us} us: periodic work may keep step"),
                    (_, times) => {
                        write!(f, "timer, every {us} us on average, redrawn {times} times")
                    }
                }
            }
            Precision::Exact => f.write_str("at the event itself"),
            Precision::Pmu(0) => f.write_str("some instructions behind the event (precise_ip 0)"),
            Precision::Pmu(1) => {
                f.write_str("a constant number of instructions behind the event (precise_ip 1)")
            }
            Precision::Pmu(level @ 2) => {
                write!(f, "at the event, if the PMU can (precise_ip {level})")
            }
            Precision::Pmu(level) => write!(f, "at the event (precise_ip {level})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(pmu_type: u32, config: u64, rate: u64, flags: AttrFlags) -> Attr {
        Attr { pmu_type, config, sample_period_or_freq: rate, flags, ..Attr::default() }
    }

    #[test]
    fn precision_is_that_of_the_attributes() {
        let timer = |period_ns, redraws| Precision::Timer { period_ns, redraws };
        let clock = attr(pmu_type::SOFTWARE, 0, 4000, AttrFlags::FREQ);
        assert_eq!(Precision::of(&clock, 7), timer(250_000, 7));
        // A period that was asked for by number is not drawn.
        let fixed = attr(pmu_type::SOFTWARE, 1, 1_000_000, AttrFlags::default());
        assert_eq!(Precision::of(&fixed, 7), timer(1_000_000, 0));
        let nonsense = attr(pmu_type::SOFTWARE, 0, 0, AttrFlags::FREQ);
        assert_eq!(Precision::of(&nonsense, 0), timer(0, 0));
        let faults = attr(pmu_type::SOFTWARE, 2, 1, AttrFlags::default());
        assert_eq!(Precision::of(&faults, 7), Precision::Exact);
        let mut cycles = attr(pmu_type::HARDWARE, 0, 4000, AttrFlags::FREQ);
        assert_eq!(Precision::of(&cycles, 7), Precision::Pmu(0));
        cycles.set_precise_ip(2);
        assert_eq!(
            Precision::of(&cycles, 0).to_string(),
            "at the event, if the PMU can (precise_ip 2)"
        );
        assert!(
            timer(250_000, 0).to_string().ends_with("every 250 us: periodic work may keep step")
        );
        assert_eq!((Precision::Unknown.name(), timer(1, 1).name()), (None, Some("timer")));
    }
}
