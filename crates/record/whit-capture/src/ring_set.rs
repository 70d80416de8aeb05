//! Rings for open events: one per CPU, or one per thread for events on any CPU. All other events of
//! the same place are redirected into it. Events whose samples are overwritten have rings of their
//! own. CPUs with sideband alone have small ones.

use std::collections::HashMap;

use whit_engine_api::open_event::{
    ConfiguredEvent, Instance, InstanceIndex, OpenEvent, SIDEBAND_RING_BYTES,
};
use whit_engine_api::rings::{AnyRing, MappedRing};
use whit_host::roots::Roots;
use whit_host::target::Plan;
use whit_perfdata::attr::AttrFlags;
use whit_sys::{Errno, system};
use whit_types::{CpuId, Tid};

use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::options::RingSize;

/// `perf_event_mlock_kb` where the kernel does not say: 512 KiB and a page.
const DEFAULT_MLOCK_KB: usize = 516;
/// Largest ring that can be asked for.
pub const MAX_RING_BYTES: usize = 1 << 30;

/// Limit of all rings together unless the user chose their size: thousands of threads, each with a
/// ring of its own, must not use up the machine.
pub const RINGS_TOTAL_BYTES: usize = 256 << 20;

/// Number of rings for samples that these events need.
pub fn count(plan: &Plan, events: &[ConfiguredEvent]) -> usize {
    let backward = events.iter().filter(|e| e.attr.has(AttrFlags::WRITE_BACKWARD)).count();
    let kinds = usize::from(backward > 0) + usize::from(backward < events.len());
    plan.nr_rings() * kinds
}

/// Number of data pages of each of `rings` rings for a wish, a power of two.
pub fn data_pages(
    wish: RingSize,
    rings: usize,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> usize {
    let page = system::page_size();
    let largest = MAX_RING_BYTES / page;
    let wanted = match wish {
        RingSize::Default => {
            let kb = roots.kernel_setting("perf_event_mlock_kb");
            let kb = kb.and_then(|kb| usize::try_from(kb).ok()).unwrap_or(DEFAULT_MLOCK_KB);
            // One page of the allowance is the control page; the rest is rounded down.
            let allowed = (kb * 1024 / page).saturating_sub(1).clamp(1, largest);
            let share = (RINGS_TOTAL_BYTES / rings.max(1) / page).clamp(1, largest);
            if share < allowed {
                let size_bytes = power_of_two_below(share) * page;
                listener.notice(Notice::RingsShared { rings, size_bytes });
            }
            return power_of_two_below(allowed.min(share));
        }
        RingSize::Pages(pages) => pages,
        RingSize::Bytes(bytes) => bytes.div_ceil(page),
    };
    let pages = wanted.clamp(1, largest).next_power_of_two();
    let size_bytes = pages * page;
    if pages < wanted {
        listener.notice(Notice::RingLimited { pages, size_bytes });
    } else if pages > wanted {
        listener.notice(Notice::RingRounded { pages, size_bytes });
    }
    pages
}

fn power_of_two_below(pages: usize) -> usize {
    1 << pages.max(1).ilog2()
}

/// Maps a ring for every place that has events and redirects the others into it; small ones for the
/// CPUs `beside` those that are recorded. Where locked memory does not suffice for `pages`, all rings
/// are mapped smaller.
pub fn map_rings(
    outside: &[CpuId],
    events: &[OpenEvent],
    pages: usize,
    listener: &mut dyn Listener,
) -> Result<Vec<MappedRing>, CaptureError> {
    let groups = places(outside, events);
    let page = system::page_size();
    let mut size = pages;
    let mut cause = None;
    loop {
        match try_map(events, &groups, size) {
            Ok(rings) => {
                if let Some(cause) = cause {
                    let (asked_bytes, size_bytes) = (pages * page, size * page);
                    listener.notice(Notice::RingsShrunk { asked_bytes, size_bytes, cause });
                }
                return Ok(rings);
            }
            Err(Failure { errno: errno @ (Errno::PERM | Errno::NOMEM), .. }) if size > 1 => {
                cause = Some(errno);
                size /= 2;
            }
            Err(Failure { event, errno }) => {
                let all_pages: usize = groups.iter().map(|place| place.pages(pages) + 1).sum();
                return Err(CaptureError::Ring {
                    event: events[event].event.spec.name().to_owned(),
                    size_bytes: size * page,
                    errno,
                    mlock_kb: (all_pages * page).div_ceil(1024),
                });
            }
        }
    }
}

/// The key of a ring: events with equal keys share one.
struct RingPlace {
    cpu: Option<CpuId>,
    is_sideband: bool,
    members: Vec<InstanceIndex>,
}

impl RingPlace {
    fn pages(&self, pages: usize) -> usize {
        match self.is_sideband {
            true => pages.min((SIDEBAND_RING_BYTES / system::page_size()).max(1)),
            false => pages,
        }
    }
}

/// The instances of each place, in the order in which they were opened.
fn places(outside: &[CpuId], events: &[OpenEvent]) -> Vec<RingPlace> {
    let mut index_of = HashMap::new();
    let mut places: Vec<RingPlace> = Vec::new();
    for (e, event) in events.iter().enumerate() {
        for (i, instance) in event.instances.iter().enumerate() {
            let is_backward = event.event.attr.has(AttrFlags::WRITE_BACKWARD);
            let place = (place_of(instance), is_backward);
            let index = *index_of.entry(place).or_insert_with(|| {
                let cpu = instance.cpu;
                let is_sideband = cpu.is_some_and(|cpu| outside.contains(&cpu));
                places.push(RingPlace { cpu, is_sideband, members: Vec::new() });
                places.len() - 1
            });
            places[index].members.push(InstanceIndex { event: e, instance: i });
        }
    }
    places
}

/// Events share a ring on the same CPU; on any CPU, only those of the same thread do.
fn place_of(instance: &Instance) -> (Option<CpuId>, Option<Tid>) {
    (instance.cpu, instance.tid.filter(|_| instance.cpu.is_none()))
}

struct Failure {
    event: usize,
    errno: Errno,
}

fn try_map(
    events: &[OpenEvent],
    places: &[RingPlace],
    pages: usize,
) -> Result<Vec<MappedRing>, Failure> {
    places
        .iter()
        .map(|place| {
            let RingPlace { cpu, is_sideband, members } = place;
            let pages = place.pages(pages);
            let owner = &members[0].of(events).fd;
            let first_event = members[0].event;
            let failure = |event| move |errno| Failure { event, errno };
            let is_backward = events[first_event].event.attr.has(AttrFlags::WRITE_BACKWARD);
            let ring = AnyRing::map(owner, pages, is_backward).map_err(failure(first_event))?;
            for member in &members[1..] {
                let instance = member.of(events);
                instance.fd.set_output(owner).map_err(failure(member.event))?;
            }
            Ok(MappedRing { ring, cpu: *cpu, is_sideband: *is_sideband, members: members.clone() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_pages_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        let page = system::page_size();
        let mut notices = Vec::new();
        let mut pages = |wish| data_pages(wish, 2, &roots, &mut |n| notices.push(n));
        let default = pages(RingSize::Default);
        assert!(default.is_power_of_two() && default * page <= 512 * 1024);
        assert_eq!(pages(RingSize::Pages(128)), 128);
        assert_eq!(pages(RingSize::Pages(100)), 128);
        assert_eq!(pages(RingSize::Pages(0)), 1);
        assert_eq!(pages(RingSize::Bytes(page + 1)), 2);
        assert_eq!(pages(RingSize::Bytes(usize::MAX)) * page, MAX_RING_BYTES);
        let said: Vec<_> = notices.iter().map(ToString::to_string).collect();
        let [hundred, none, most] = &said[..] else { panic!("{said:?}") };
        assert!(hundred.contains("rounded up to 512 KiB (128 pages)"), "{hundred}");
        assert!(none.contains("rounded up to 4 KiB (1 pages)"), "{none}");
        assert!(most.contains("lowered to 1048576 KiB (262144 pages), the largest"), "{most}");
    }

    #[test]
    fn cpus_outside_the_target_have_small_rings() {
        let place = |is_sideband| RingPlace { cpu: None, is_sideband, members: Vec::new() };
        let most = SIDEBAND_RING_BYTES / system::page_size();
        assert_eq!((place(false).pages(4096), place(true).pages(4096)), (4096, most));
        assert_eq!((place(false).pages(1), place(true).pages(1)), (1, 1));
    }

    #[test]
    fn thousands_of_rings_share_a_bounded_amount() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        let page = system::page_size();
        for rings in [1, 512, 5000, 10_000_000] {
            let mut notices = Vec::new();
            let pages = data_pages(RingSize::Default, rings, &roots, &mut |n| notices.push(n));
            assert!(pages == 1 || pages * page * rings <= RINGS_TOTAL_BYTES, "{rings}");
            assert_eq!(notices.len(), usize::from(rings > 512), "{rings}");
        }
    }

    #[test]
    fn the_default_leaves_room_for_the_control_page() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        std::fs::create_dir_all(dir.path().join("sys/kernel")).unwrap();
        let page = system::page_size();
        for (kb, bytes) in [(516, 512 * 1024), (512, 256 * 1024), (0, page)] {
            std::fs::write(dir.path().join("sys/kernel/perf_event_mlock_kb"), format!("{kb}"))
                .unwrap();
            let pages = data_pages(RingSize::Default, 2, &roots, &mut |_| ());
            if page == 4096 {
                assert_eq!(pages * page, bytes, "{kb} KiB");
            }
        }
    }
}
