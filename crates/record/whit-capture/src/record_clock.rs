//! The clock by which the kernel stamps records, read by this process.
//!
//! Where the user chose none, that is the scheduler's clock, which no system call reads. But the kernel
//! stamps a COMM record when a thread is given a name: this thread is given the name that it has, and a
//! dummy event of its own records that.

use std::ffi::CString;

use whit_engine_api::ring_slices::RingSlices;
use whit_engine_api::time_layout::TimeLayout;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::clocks::ClockReading;
use whit_perfdata::record::record_type;
use whit_sys::clock::ClockId;
use whit_sys::{Errno, OpenFlags, PerfEventFd, Ring};
use whit_types::TimestampNs;

use crate::event::software;

/// One COMM record is all that it has to hold.
const RING_PAGES: usize = 1;

/// Times that the clocks are read for one reading; the one that took the shortest counts.
const TURNS: usize = 5;

/// The clock that stamps the records of events with `clock`, `CLOCK_MONOTONIC` and the wall clock at one moment. Fails as
/// [`now`] does.
pub(crate) fn read_all(clock: Option<ClockId>) -> Result<ClockReading, Errno> {
    let mut source = match clock {
        Some(_) => None,
        None => Some(SchedulerClock::open()?),
    };
    let mut best: Option<ClockReading> = None;
    for _ in 0..TURNS {
        let before = ClockId::MONOTONIC.now_ns()?;
        let stamped = match (&mut source, clock) {
            (Some(source), _) => source.stamp().map(|()| None)?,
            (None, Some(clock)) => Some(TimestampNs(clock.now_ns()?)),
            (None, None) => None,
        };
        let after = ClockId::MONOTONIC.now_ns()?;
        let wall_clock_ns = ClockId::REALTIME.now_ns()?;
        let record = match (stamped, &mut source) {
            (Some(time), _) => time,
            (None, Some(source)) => source.stamped()?,
            (None, None) => return Err(Errno::NODATA),
        };
        let took_ns = after.saturating_sub(before);
        let within_ns = u32::try_from(took_ns).unwrap_or(u32::MAX);
        if best.is_none_or(|best| within_ns < best.within_ns) {
            let monotonic_ns = before + took_ns / 2;
            best = Some(ClockReading { record, monotonic_ns, wall_clock_ns, within_ns });
        }
    }
    best.ok_or(Errno::NODATA)
}

/// The time on the clock that stamps the records of events with `clock`. Fails where the user's locked
/// memory is used up, or the kernel refuses the event.
pub(crate) fn now(clock: Option<ClockId>) -> Result<TimestampNs, Errno> {
    match clock {
        Some(clock) => clock.now_ns().map(TimestampNs),
        None => {
            let mut source = SchedulerClock::open()?;
            source.stamp()?;
            source.stamped()
        }
    }
}

/// The scheduler's clock, by a dummy event of this thread.
struct SchedulerClock {
    ring: Ring,
    layout: TimeLayout,
    name: CString,
    /// The ring is mapped as long as its event is open.
    _event: PerfEventFd,
}

impl SchedulerClock {
    fn open() -> Result<SchedulerClock, Errno> {
        let flags = AttrFlags::COMM | AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL;
        let attr = Attr {
            pmu_type: pmu_type::SOFTWARE,
            config: software::DUMMY,
            sample_type: SampleType::TIME,
            flags,
            ..Attr::default()
        };
        let this_thread = 0;
        let any_cpu = -1;
        let event =
            PerfEventFd::open(&attr.to_bytes(), this_thread, any_cpu, None, OpenFlags::default())?;
        let ring = Ring::map(&event, RING_PAGES)?;
        let name = rustix::thread::name()?;
        let layout = TimeLayout::new(&attr);
        Ok(SchedulerClock { ring, layout, name, _event: event })
    }

    /// Has the kernel stamp a record.
    fn stamp(&self) -> Result<(), Errno> {
        rustix::thread::set_name(&self.name)
    }

    /// The time of the record.
    fn stamped(&mut self) -> Result<TimestampNs, Errno> {
        let layout = &self.layout;
        let time = self.ring.drain(|slices| {
            let ring_slices = RingSlices(slices);
            let mut records = ring_slices.records_from(0);
            let comm = records.find(|seen| seen.kind == record_type::COMM)?;
            layout.time(&ring_slices, comm)
        });
        time.flatten().ok_or(Errno::NODATA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_sys::affinity;
    use whit_testing::wait::wait_until;

    #[test]
    fn the_clock_of_records_advances_and_keeps_the_threads_name() {
        let before = rustix::thread::name().unwrap();
        for clock in [None, Some(ClockId::MONOTONIC)] {
            let first = now(clock);
            if let (None, Err(Errno::ACCESS | Errno::PERM)) = (clock, &first) {
                whit_testing::skip("the_clock_of_records", "perf_event_open is refused here");
                continue;
            }
            // The clocks differ in rate by less than 1 %.
            let begin = read_all(clock).unwrap();
            let mut end = begin;
            wait_until("some time has passed", || {
                end = read_all(clock).unwrap();
                end.monotonic_ns - begin.monotonic_ns > 5_000_000
            });
            let (elapsed, wanted) =
                (end.record.since(begin.record), end.monotonic_ns - begin.monotonic_ns);
            let within = u64::from(begin.within_ns) + u64::from(end.within_ns) + wanted / 100;
            assert!(elapsed.abs_diff(wanted) <= within, "{begin:?} {end:?}");
            assert!(end.record > first.unwrap());
        }
        assert_eq!(rustix::thread::name().unwrap(), before);
    }

    #[test]
    fn clocks_are_read_at_one_moment() {
        for clock in [None, Some(ClockId::MONOTONIC), Some(ClockId::MONOTONIC_RAW)] {
            let before = [ClockId::MONOTONIC.now_ns().unwrap(), now(clock).map_or(0, |it| it.0)];
            let read = match read_all(clock) {
                Err(Errno::ACCESS | Errno::PERM) if clock.is_none() => {
                    whit_testing::skip("clocks_are_read", "perf_event_open is refused here");
                    continue;
                }
                read => read.unwrap(),
            };
            let after = [ClockId::MONOTONIC.now_ns().unwrap(), now(clock).unwrap().0];
            assert!((before[0]..=after[0]).contains(&read.monotonic_ns), "{before:?} {read:?}");
            assert!((before[1]..=after[1]).contains(&read.record.0), "{before:?} {read:?}");
            if clock == Some(ClockId::MONOTONIC) {
                let apart = read.record.0.abs_diff(read.monotonic_ns);
                assert!(apart <= u64::from(read.within_ns), "{read:?}");
            }
        }
    }

    #[test]
    fn the_clock_is_read_on_every_cpu() {
        for cpu in affinity::get(0).unwrap() {
            affinity::set(0, &[cpu]).unwrap();
            match now(None) {
                Err(Errno::ACCESS | Errno::PERM) => {
                    let reason = "perf_event_open is refused here";
                    return whit_testing::skip("the_clock_is_read_on_every_cpu", reason);
                }
                time => assert!(time.unwrap().0 > 0),
            }
        }
    }
}
