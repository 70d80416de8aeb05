//! Whether samples stand for the CPU time of those that are recorded.
//!
//! An event of a thread is hit first at the end of a whole period. Where threads run for less than that in all, they have
//! few samples or none, and nothing is lost. The event counts all the same: a clock's count is the time.

use whit_engine_api::Engine;
use whit_engine_api::open_event::OpenEvent;
use whit_perfdata::attr::{AttrFlags, pmu_type};

use crate::event::software;
use crate::notice::Notice;
use crate::plan::RecordPlan;

/// Fewer samples than this are expected of too little time to judge.
const LEAST_EXPECTED: u64 = 30;
/// Words of an event that is read; the count is the first.
const COUNT_WORDS: usize = 8;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// Says if less than half of the time has samples. `samples`: those there are, and those that were lost.
pub(super) fn compare(
    plan: &RecordPlan,
    events: &[OpenEvent],
    engine: &dyn Engine,
    samples: u64,
) -> Option<Notice> {
    let is_one_output = plan.output.files.switch.is_none() && !plan.events.overwrite;
    let is_comparable =
        !engine.capabilities().shares_periods && !plan.events.target.covers_cpus() && is_one_output;
    is_comparable.then(|| comparison(events, samples)).flatten()
}

fn comparison(events: &[OpenEvent], samples: u64) -> Option<Notice> {
    let sampled = events.iter().filter(|event| !event.event.is_side_band);
    let times = sampled.map(|event| Some((period_ns(event)?, time_ns(event)))).collect();
    judge(times, samples)
}

/// `times` has the period and the counted time of each sampled event; `None` where one is no clock.
fn judge(times: Option<Vec<(u64, u64)>>, samples: u64) -> Option<Notice> {
    let times = times?;
    let expected: u64 = times.iter().map(|(period_ns, time_ns)| time_ns / period_ns).sum();
    let period_ns = times.iter().map(|(period_ns, _)| *period_ns).min()?;
    let is_short = expected >= LEAST_EXPECTED && samples < expected / 2;
    is_short.then_some(Notice::TimeWithoutSamples { samples, expected, period_ns })
}

/// The period of a clock that is hit in every mode.
fn period_ns(event: &OpenEvent) -> Option<u64> {
    let attr = &event.event.attr;
    let is_clock = attr.pmu_type == pmu_type::SOFTWARE
        && matches!(attr.config, software::CPU_CLOCK | software::TASK_CLOCK);
    let is_whole = !attr.has(AttrFlags::EXCLUDE_USER) && !attr.has(AttrFlags::EXCLUDE_KERNEL);
    let wanted = attr.sample_period_or_freq;
    if !is_clock || !is_whole || wanted == 0 {
        return None;
    }
    let period = if attr.has(AttrFlags::FREQ) { NS_PER_SECOND / wanted } else { wanted };
    (period > 0).then_some(period)
}

fn time_ns(event: &OpenEvent) -> u64 {
    let count = |words: &mut [u64; COUNT_WORDS], fd: &whit_sys::PerfEventFd| {
        fd.read(words).ok().filter(|read| *read > 0).map_or(0, |_| words[0])
    };
    event.instances.iter().map(|instance| count(&mut [0; COUNT_WORDS], &instance.fd)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_samples_is_said_where_it_is_gross() {
        let short = |samples, expected: u64| {
            judge(Some(vec![(10_000_000, expected * 10_000_000)]), samples).is_some()
        };
        assert!(short(0, 80) && short(39, 80) && short(0, LEAST_EXPECTED));
        assert!(!short(40, 80) && !short(0, LEAST_EXPECTED - 1) && !short(0, 0));
        // Two clocks have samples each.
        assert!(judge(Some(vec![(10, 1000), (10, 1000)]), 99).is_some());
        assert!(judge(Some(vec![(10, 1000), (10, 1000)]), 100).is_none());
        assert!(judge(None, 0).is_none() && judge(Some(Vec::new()), 0).is_none());
    }
}
