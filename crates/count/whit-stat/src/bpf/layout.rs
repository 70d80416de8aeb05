//! In which order a CPU's events stand, and how each is read.

use std::os::fd::{AsFd, BorrowedFd};

use whit_bpf::cgroup::{Count, How, Of};

use super::cpu::CpuEvents;
use crate::counter::Counter;
use crate::perf::OpenGroup;

/// The events that every CPU has, in the program's order.
#[derive(Debug)]
pub(super) struct Layout {
    how: Vec<How>,
    /// The distinct event of each; `None` for one of ours, that leads.
    events: Vec<Option<usize>>,
    /// Where each unit begins, by its first distinct event.
    begins: Vec<(usize, usize)>,
}

/// The distinct events of a unit, the leader first.
fn members(group: &OpenGroup) -> impl Iterator<Item = Option<usize>> {
    group.events.iter().map(|event| event.slot)
}

/// The key of a unit: the first of its events that the kernel counts.
fn key(group: &OpenGroup) -> Option<usize> {
    members(group).flatten().next()
}

impl Layout {
    /// The common layout of the events that are open on all CPUs.
    pub(super) fn of(distinct: &[Counter], cpus: &[CpuEvents]) -> Layout {
        let mut groups: Vec<(usize, Vec<Option<usize>>)> = Vec::new();
        for group in cpus.iter().flat_map(|cpu| &cpu.groups) {
            let Some(key) = key(group) else { continue };
            let members: Vec<_> = members(group).collect();
            match groups.iter_mut().find(|(known, _)| *known == key) {
                // A CPU that went offline meanwhile may lack some.
                Some((_, most)) if most.len() < members.len() => *most = members,
                Some(_) => {}
                None => groups.push((key, members)),
            }
        }
        let mut layout = Layout { how: Vec::new(), events: Vec::new(), begins: Vec::new() };
        for (key, members) in groups {
            layout.begins.push((key, layout.events.len()));
            let counter = |event: Option<usize>| event.map(|event| &distinct[event]);
            // A leader that waits for the PMU holds up its members.
            let never_waits = members.iter().all(|&event| is_software(counter(event)));
            for (number, &event) in members.iter().enumerate() {
                let how = how(counter(event), number == 0);
                let in_memory = if number == 0 { never_waits } else { is_software(counter(event)) };
                layout.how.push(if in_memory { how.in_software() } else { how });
                layout.events.push(event);
            }
        }
        layout
    }

    pub(super) fn how(&self) -> &[How] {
        &self.how
    }

    /// The place of a distinct event; `None` for one that could not be opened.
    pub(super) fn place(&self, distinct: usize) -> Option<usize> {
        self.events.iter().position(|event| *event == Some(distinct))
    }

    /// The events of a unit with their places.
    fn places<'a>(&'a self, group: &'a OpenGroup) -> impl Iterator<Item = Option<usize>> + 'a {
        let known = self.begins.iter().find(|(known, _)| Some(*known) == key(group));
        let begin = known.map_or(self.events.len(), |(_, begin)| *begin);
        members(group).map(move |event| {
            let after = self.events.get(begin..)?;
            after.iter().position(|other| *other == event).map(|at| begin + at)
        })
    }

    /// The descriptors of a CPU's events, by place.
    pub(super) fn descriptors<'a>(&self, groups: &'a [OpenGroup]) -> Vec<Option<BorrowedFd<'a>>> {
        let mut all = vec![None; self.events.len()];
        for group in groups {
            for (event, place) in group.events.iter().zip(self.places(group)) {
                if let Some(place) = place {
                    all[place] = Some(event.fd.as_fd());
                }
            }
        }
        all
    }

    /// The counts of a CPU's events by place, each event read by itself.
    pub(super) fn shown(&self, groups: &[OpenGroup]) -> Vec<Count> {
        let mut all = vec![Count::default(); self.events.len()];
        for group in groups {
            for (reading, place) in group.read_apart().into_iter().zip(self.places(group)) {
                if let (Some(place), Some(reading)) = (place, reading) {
                    all[place] = Count {
                        value: reading.value,
                        enabled_ns: reading.enabled_ns,
                        running_ns: reading.running_ns,
                    };
                }
            }
        }
        all
    }
}

/// How an event of a unit is read: the first one has the times of all.
fn how(counter: Option<&Counter>, is_first: bool) -> How {
    let is = |of: fn(&Counter) -> bool| counter.is_some_and(of);
    let of = match (is(Counter::is_of_switches), is(Counter::is_clock)) {
        (true, _) => Of::Switches,
        (_, true) => Of::Time,
        // The tool's own measurements need the times alone.
        _ if counter.is_none() => Of::Time,
        _ => Of::Events,
    };
    How { of, is_timed: is_first, is_software: false }
}

/// Whether the kernel counts it, which it does those of ours.
fn is_software(counter: Option<&Counter>) -> bool {
    counter.is_none_or(Counter::is_counted_by_kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;
    use crate::perf::{OpenEvent, shared_attr};
    use std::os::fd::AsRawFd;
    use whit_sys::{OpenFlags, PerfEventFd};
    use whit_types::CpuId;

    /// A unit of open events that count nothing, in the name of these; `None` is one of ours.
    fn group(members: &[Option<usize>]) -> OpenGroup {
        let mut group = OpenGroup::new(members.len() > 1);
        for &slot in members {
            let attr = shared_attr(&counters("dummy:u")[0].event);
            let fd = PerfEventFd::open(&attr, 0, -1, None, OpenFlags::default()).unwrap();
            group.events.push(OpenEvent { fd, slot });
        }
        group
    }

    fn cpu(number: u32, groups: &[&[Option<usize>]]) -> CpuEvents {
        let groups = groups.iter().map(|members| group(members)).collect();
        CpuEvents { cpu: CpuId(number), groups, enabled_ns: 0 }
    }

    #[test]
    fn the_first_of_a_unit_has_the_times_of_all() {
        let distinct = counters("cs,{cs,cpu-clock,faults},cpu-clock,cycles");
        let groups: [&[Option<usize>]; 3] =
            [&[None, Some(0), Some(4)], &[Some(1), Some(2), Some(3)], &[Some(5)]];
        let layout = Layout::of(&distinct, &[cpu(0, &groups)]);
        let (timed, untimed) = (How::TIMED, How::UNTIMED);
        let clock = How { is_timed: true, ..How::CLOCK };
        let ours = [clock, untimed.of_switches(), How::CLOCK].map(How::in_software);
        let group = [timed.of_switches(), How::CLOCK, untimed].map(How::in_software);
        assert_eq!(layout.how(), [&ours[..], &group[..], &[timed]].concat());
        let places: Vec<_> = (0..7).map(|distinct| layout.place(distinct)).collect();
        assert_eq!(places, [Some(1), Some(3), Some(4), Some(5), Some(2), Some(6), None]);
    }

    #[test]
    fn leaders_wait_with_their_pmu_members() {
        let distinct = counters("{faults,cycles,cs},{cpu-clock,faults},task-clock");
        let groups: [&[Option<usize>]; 3] =
            [&[Some(0), Some(1), Some(2)], &[Some(3), Some(4)], &[Some(5)]];
        let layout = Layout::of(&distinct, &[cpu(0, &groups)]);
        let (timed, untimed) = (How::TIMED, How::UNTIMED);
        let clock = How { is_timed: true, ..How::CLOCK }.in_software();
        let mixed = [timed, untimed, untimed.of_switches().in_software()];
        let software = [clock, untimed.in_software(), clock];
        assert_eq!(layout.how(), [mixed, software].concat());
    }

    #[test]
    fn a_cpu_that_lacks_an_event_has_the_others_in_their_places() {
        let distinct = counters("{cycles,instructions},cs");
        let whole: [&[Option<usize>]; 2] = [&[Some(0), Some(1)], &[Some(2)]];
        let cpus = [cpu(0, &[&[Some(0)], &[Some(2)]]), cpu(1, &whole), cpu(2, &[&[Some(2)]])];
        let layout = Layout::of(&distinct, &cpus);
        assert_eq!(layout.how().len(), 3);
        let open = |cpu: &CpuEvents| {
            let fds = layout.descriptors(&cpu.groups);
            fds.iter().map(|fd| fd.map(|fd| fd.as_raw_fd())).collect::<Vec<_>>()
        };
        let own = |cpu: &CpuEvents, group: usize, event: usize| {
            Some(cpu.groups[group].events[event].fd.as_fd().as_raw_fd())
        };
        assert_eq!(open(&cpus[0]), [own(&cpus[0], 0, 0), None, own(&cpus[0], 1, 0)]);
        let all = [own(&cpus[1], 0, 0), own(&cpus[1], 0, 1), own(&cpus[1], 1, 0)];
        assert_eq!(open(&cpus[1]), all);
        assert_eq!(open(&cpus[2]), [None, None, own(&cpus[2], 0, 0)]);
        assert_eq!(layout.shown(&cpus[1].groups).len(), 3);
    }
}
