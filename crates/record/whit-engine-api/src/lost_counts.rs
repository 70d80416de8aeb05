//! How many records the kernel dropped for want of room, as its events count it (`PERF_FORMAT_LOST`).

use std::collections::HashMap;

use whit_perfdata::attr::ReadFormat;
use whit_sys::PerfEventFd;

use crate::open_event::OpenEvent;

/// Words of the largest group that can be opened: the kernel limits the read of a group to 16 KiB
/// (`perf_event_validate_size`).
const GROUP_WORDS_MAX: usize = 2048;
/// Value, two times, id, lost.
const SINGLE_WORDS_MAX: usize = 5;

/// Adds the counts of an event, or of each member of its group, by their ids.
pub fn read(event: &OpenEvent, all: &mut HashMap<u64, u64>) {
    let format = event.event.attr.read_format;
    event.instances.iter().for_each(|instance| all.extend(read_one(&instance.fd, format)));
}

/// The same of one instance. An event in error reads as nothing; its loss is then not known better than by
/// the LOST records.
pub fn read_one(event: &PerfEventFd, format: ReadFormat) -> Vec<(u64, u64)> {
    let is_group = format.contains(ReadFormat::GROUP);
    let mut words = vec![0u64; if is_group { GROUP_WORDS_MAX } else { SINGLE_WORDS_MAX }];
    event.read(&mut words).map(|count| lost_counts(format, &words[..count])).unwrap_or_default()
}

/// Ids and lost counts in the result of `read(2)` on an event with ids and lost counts
/// (`perf_event_open(2)`, «Reading results»).
fn lost_counts(format: ReadFormat, words: &[u64]) -> Vec<(u64, u64)> {
    let times = [ReadFormat::TOTAL_TIME_ENABLED, ReadFormat::TOTAL_TIME_RUNNING];
    let times = times.iter().filter(|time| format.contains(**time)).count();
    if format.contains(ReadFormat::GROUP) {
        let values = words.get(1 + times..).unwrap_or_default();
        return values.chunks_exact(3).map(|value| (value[1], value[2])).collect();
    }
    let value = words.get(1 + times..3 + times);
    value.map(|value| (value[0], value[1])).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventSpec, software};
    use crate::open_event::{ConfiguredEvent, open_one};
    use crate::ring_slices::RingSlices;
    use whit_host::open::{EventTarget, Tasks};
    use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
    use whit_sys::{OpenFlags, Ring};

    #[test]
    fn no_group_that_can_be_opened_is_too_large() {
        let read_format = ReadFormat::ID | ReadFormat::LOST | ReadFormat::GROUP;
        let attr = Attr {
            pmu_type: pmu_type::SOFTWARE,
            config: software::DUMMY,
            flags: AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            read_format,
            ..Attr::default()
        };
        let open = |leader: Option<&PerfEventFd>| {
            PerfEventFd::open(&attr.to_bytes(), 0, -1, leader, OpenFlags::default())
        };
        let Ok(leader) = open(None) else {
            return whit_testing::skip(
                "no_group_is_too_large",
                "an event with lost counts cannot be opened (Linux 6.0 has them)",
            );
        };
        // 341 were too many once; other tests of this process need descriptors, too.
        let members: Vec<_> = std::iter::from_fn(|| open(Some(&leader)).ok()).take(400).collect();
        let nr_read = read_one(&leader, read_format).len();
        assert_eq!(nr_read, members.len() + 1);
    }

    #[test]
    fn what_a_full_ring_drops_is_counted_by_the_id_of_its_event() {
        let attr = Attr {
            pmu_type: pmu_type::SOFTWARE,
            config: software::DUMMY,
            flags: AttrFlags::COMM | AttrFlags::EXCLUDE_KERNEL,
            read_format: ReadFormat::ID | ReadFormat::LOST,
            ..Attr::default()
        };
        let target = EventTarget { cpu: None, tasks: Tasks::Own };
        let Ok(instance) = open_one(&attr.to_bytes(), target) else {
            return whit_testing::skip(
                "what_a_full_ring_drops",
                "an event with lost counts cannot be opened (Linux 6.0 has them)",
            );
        };
        let mut ring = Ring::map(&instance.fd, 1).unwrap();
        let id = instance.id;
        let spec = EventSpec::new("dummy", attr.pmu_type, attr.config);
        let event = ConfiguredEvent::new(spec, attr);
        let event = OpenEvent::new(event, vec![Some(instance)]);
        // Each gives this thread its name once more, and a page has no room for so many records.
        const RENAMES: u64 = 300;
        let name = std::fs::read("/proc/thread-self/comm").unwrap();
        (0..RENAMES).for_each(|_| std::fs::write("/proc/thread-self/comm", &name).unwrap());
        let kept = ring.drain(|slices| RingSlices(slices).records_from(0).count()).unwrap();
        let mut all = HashMap::from([(id + 1, 5)]);
        read(&event, &mut all);
        assert_eq!(all, HashMap::from([(id + 1, 5), (id, RENAMES - kept as u64)]));
    }

    #[test]
    fn lost_counts_are_found_in_every_format() {
        let base = ReadFormat::ID | ReadFormat::LOST;
        let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
        assert_eq!(lost_counts(base, &[100, 7, 3]), [(7, 3)]);
        assert_eq!(lost_counts(base | times, &[100, 1, 1, 7, 3]), [(7, 3)]);
        let group = base | ReadFormat::GROUP;
        assert_eq!(lost_counts(group, &[2, 100, 7, 3, 200, 8, 4]), [(7, 3), (8, 4)]);
        let all = [2, 1, 1, 100, 7, 3, 200, 8, 4];
        assert_eq!(lost_counts(group | times, &all), [(7, 3), (8, 4)]);
        assert_eq!(lost_counts(base, &[]), []);
        assert_eq!(lost_counts(group, &[]), []);
    }
}
