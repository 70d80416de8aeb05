//! The clock by which the kernel stamps records, read by this process.
//!
//! Where the user chose none, that is the scheduler's clock, which no system call reads. But the kernel
//! stamps a COMM record when a thread is given a name: this thread is given the name that it has, and a
//! dummy event of its own records that.

use whit_engine::ring_slices::RingSlices;
use whit_engine::time_layout::TimeLayout;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::record::record_type;
use whit_sys::clock::ClockId;
use whit_sys::{Errno, OpenFlags, PerfEventFd, Ring};
use whit_types::TimestampNs;

use crate::event::software;

/// One COMM record is all that it has to hold.
const RING_PAGES: usize = 1;

/// The time on the clock that stamps the records of events with `clock`. Fails where the user's locked
/// memory is used up, or the kernel refuses the event.
pub(crate) fn now(clock: Option<ClockId>) -> Result<TimestampNs, Errno> {
    match clock {
        Some(clock) => clock.now_ns().map(TimestampNs),
        None => scheduler_clock(),
    }
}

fn scheduler_clock() -> Result<TimestampNs, Errno> {
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
    let mut ring = Ring::map(&event, RING_PAGES)?;
    let name = rustix::thread::name()?;
    rustix::thread::set_name(&name)?;
    let layout = TimeLayout::new(&attr);
    let time = ring.drain(|slices| {
        let ring_slices = RingSlices(slices);
        let mut records = ring_slices.records_from(0);
        let comm = records.find(|seen| seen.kind == record_type::COMM)?;
        layout.time(&ring_slices, comm)
    });
    time.flatten().ok_or(Errno::NODATA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_sys::affinity;

    #[test]
    fn the_clock_of_records_goes_forward_and_keeps_the_threads_name() {
        let before = rustix::thread::name().unwrap();
        for clock in [None, Some(ClockId::MONOTONIC)] {
            let first = now(clock);
            if let (None, Err(Errno::ACCESS | Errno::PERM)) = (clock, &first) {
                whit_testing::skip("the_clock_of_records", "perf_event_open is refused here");
                continue;
            }
            let sleep = std::time::Duration::from_millis(5);
            std::thread::sleep(sleep);
            let elapsed = now(clock).unwrap().since(first.unwrap());
            // A thread sleeps no shorter than it asked for; the clocks differ in rate by less than 1 %.
            assert!(elapsed >= sleep.as_nanos() as u64 * 99 / 100, "{elapsed}");
        }
        assert_eq!(rustix::thread::name().unwrap(), before);
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
