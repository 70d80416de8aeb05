//! Periods of clocks that are drawn anew all the time.
//!
//! `cpu-clock` takes its samples at a fixed distance. Work that comes back at the same distance, or at a multiple, is hit at
//! the same point each time, and its other parts never. So the distance is changed: it is drawn evenly from a range around
//! the one that was asked for, and kept for some tens of samples, in which the samples go over all points of such work.
//! Each CPU has its own, so that their samples are not in step either.
//!
//! The kernel begins a new period where one is changed, and the time since the last sample counts for nothing: in the mean,
//! half a period for each change. The moments of changes do not depend on the work, so that no part of it is preferred.
//!
//! Only events of CPUs can be changed: the kernel changes no events that threads inherited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whit_engine_api::open_event::OpenEvent;
use whit_perfdata::attr::{AttrFlags, pmu_type};
use whit_sys::system;

use super::stretches::Stretches;
use crate::error::CaptureError;
use crate::event::software;

/// Samples in a row that keep a distance, in the mean. A change costs half a sample.
const SAMPLES_KEPT: u64 = 48;
/// Distances are drawn from the one that was asked for, less and more this part of it.
const RANGE_PERCENT: u64 = 20;
/// No distance is kept for less.
const KEPT_MIN: Duration = Duration::from_millis(10);
/// Nor for more: a recording that is shorter has one distance alone.
const KEPT_MAX: Duration = Duration::from_secs(2);
const NS_PER_SECOND: u64 = 1_000_000_000;

/// The thread that draws.
#[derive(Debug)]
pub(super) struct Redraws {
    stop: Arc<AtomicBool>,
    /// Absent once it has ended.
    thread: Option<JoinHandle<u64>>,
}

impl Redraws {
    /// Draws for the clocks among these events; `None` where there is none that can be changed.
    pub(super) fn start(
        events: &Arc<Vec<OpenEvent>>,
        stretches: Option<Arc<Stretches>>,
    ) -> Result<Option<Redraws>, CaptureError> {
        let clocks: Vec<(usize, u64)> = events
            .iter()
            .enumerate()
            .filter_map(|(at, event)| Some((at, period_ns(event)?)))
            .collect();
        if clocks.is_empty() {
            return Ok(None);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (events, ended) = (events.clone(), stop.clone());
        let work = move || draw(&events, &clocks, stretches.as_deref(), &ended);
        let thread = std::thread::Builder::new().name("whit-periods".to_owned()).spawn(work);
        let thread = thread.map_err(|source| CaptureError::Thread { source })?;
        Ok(Some(Redraws { stop, thread: Some(thread) }))
    }

    /// Ends it. Gives how often periods were drawn.
    pub(super) fn end(mut self) -> u64 {
        self.stop()
    }

    fn stop(&mut self) -> u64 {
        let Some(thread) = self.thread.take() else { return 0 };
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl Drop for Redraws {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The distance of the samples of a clock that is on CPUs, in nanoseconds. One that was asked for by number is kept.
fn period_ns(event: &OpenEvent) -> Option<u64> {
    let (attr, spec) = (&event.event.attr, &event.event.spec);
    let is_clock = attr.pmu_type == pmu_type::SOFTWARE
        && matches!(attr.config, software::CPU_CLOCK | software::TASK_CLOCK);
    let is_sampled =
        !event.event.is_side_band && attr.has(AttrFlags::FREQ) && spec.leader.is_none();
    let is_of_cpus = event.instances.iter().all(|one| one.tid.is_none());
    let hz = attr.sample_period_or_freq;
    (is_clock && is_sampled && is_of_cpus && hz > 0).then(|| NS_PER_SECOND / hz)
}

fn draw(
    events: &[OpenEvent],
    clocks: &[(usize, u64)],
    stretches: Option<&Stretches>,
    stop: &AtomicBool,
) -> u64 {
    let mut random = Random::new();
    let mut times = 0;
    let longest = clocks.iter().map(|(_, period)| *period).max().unwrap_or_default();
    while !stop.load(Ordering::Acquire) {
        let held = stretches.map(Stretches::hold);
        let stretch = held.as_ref().map_or(1, |held| u64::from(held.stretch()));
        for (at, period) in clocks {
            let period = period.saturating_mul(stretch);
            for instance in events.get(*at).into_iter().flat_map(|event| &event.instances) {
                // A CPU that went offline has none any more.
                let _ = instance.fd.set_period(drawn_ns(period, &mut random));
            }
        }
        drop(held);
        times += 1;
        rest(kept_for(longest.saturating_mul(stretch), &mut random), stop);
    }
    times
}

/// Waits, unless it is over: then it is woken.
fn rest(time: Duration, stop: &AtomicBool) {
    let until = Instant::now() + time;
    while !stop.load(Ordering::Acquire) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        std::thread::park_timeout(left);
    }
}

/// Evenly from the range.
fn drawn_ns(period_ns: u64, random: &mut Random) -> u64 {
    let range = period_ns / 100 * RANGE_PERCENT;
    period_ns - range + random.below(2 * range + 1)
}

/// From half to one and a half of the mean, so that changes do not keep step either.
fn kept_for(period_ns: u64, random: &mut Random) -> Duration {
    let mean = period_ns.saturating_mul(SAMPLES_KEPT);
    let drawn = Duration::from_nanos(mean / 2 + random.below(mean.max(1)));
    drawn.clamp(KEPT_MIN, KEPT_MAX)
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    /// Another sequence for each process and moment.
    fn new() -> Random {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Random(
            now.map_or(0, |now| now.as_nanos() as u64)
                ^ u64::from(system::pid().unsigned_abs()) << 32,
        )
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_spread_evenly_around_the_one_that_was_asked_for() {
        let mut random = Random(7);
        let drawn: Vec<u64> = (0..100_000).map(|_| drawn_ns(1_000_000, &mut random)).collect();
        assert!(drawn.iter().all(|ns| (800_000..=1_200_000).contains(ns)));
        let mean = drawn.iter().sum::<u64>() / drawn.len() as u64;
        assert!((998_000..1_002_000).contains(&mean), "{mean}");
        let lower = drawn.iter().filter(|ns| **ns < 900_000).count();
        assert!((24_000..26_000).contains(&lower), "{lower}");
        assert_eq!(drawn_ns(0, &mut random), 0);
    }

    #[test]
    fn a_distance_is_kept_for_tens_of_samples_within_bounds() {
        let mut random = Random(7);
        for _ in 0..1000 {
            let kept = kept_for(1_000_000, &mut random);
            assert!((24..=72).contains(&kept.as_millis()), "{kept:?}");
        }
        assert_eq!(kept_for(1, &mut random), KEPT_MIN);
        assert_eq!(kept_for(u64::MAX, &mut random), KEPT_MAX);
    }
}
