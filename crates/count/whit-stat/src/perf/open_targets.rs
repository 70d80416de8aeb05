//! In which places each counter is counted.

use whit_host::target::{CpuScope, Plan};
use whit_types::{CpuId, Tid};

use crate::counter::{Absence, Counter};

/// A CPU and a thread; each may be *any*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenTarget {
    /// `None` is any.
    pub(super) cpu: Option<CpuId>,
    /// Index among the plan's threads.
    pub(super) thread: usize,
    /// The thread; `None` counts all threads of the CPU.
    pub(super) tid: Option<Tid>,
}

/// The places of all counters.
#[derive(Debug)]
pub(super) struct Places {
    of_counter: Vec<Vec<OpenTarget>>,
    /// Where a counter's first place stands among the slots of all.
    first_slot: Vec<usize>,
}

impl Places {
    /// Where the plan and the PMUs want each. Marks counters that can be counted in none.
    pub(super) fn of(counters: &mut [Counter], plan: &Plan) -> Places {
        let mut of_counter: Vec<_> =
            counters.iter_mut().map(|counter| places(counter, plan)).collect();
        for (index, counter) in counters.iter().enumerate() {
            if counter.event.tool.is_some() {
                // There is one such value, wherever events are counted.
                of_counter[index].truncate(1);
            }
            let choosy = counter.leader.and_then(|leader| choosy_member(counters, leader));
            if let Some(choosy) = choosy.filter(|&choosy| choosy != index) {
                of_counter[index] = of_counter[choosy].clone();
            }
        }
        let mut next = 0;
        let mut first = |places: &Vec<OpenTarget>| {
            next += places.len();
            next - places.len()
        };
        let first_slot = of_counter.iter().map(&mut first).collect();
        Places { of_counter, first_slot }
    }

    pub(super) fn of_counter(&self, counter: usize) -> &[OpenTarget] {
        &self.of_counter[counter]
    }

    /// The slot of a counter in one of its places.
    pub(super) fn slot(&self, counter: usize, place: usize) -> usize {
        self.first_slot[counter] + place
    }
}

/// The member of a group whose PMU has CPUs of its own: the others are counted there with it.
fn choosy_member(counters: &[Counter], leader: usize) -> Option<usize> {
    let is_choosy =
        |counter: &Counter| counter.leader == Some(leader) && counter.event.cpus.is_some();
    counters.iter().position(is_choosy)
}

/// A PMU that counts on some CPUs only is asked on those of them that were asked for.
fn places(counter: &mut Counter, plan: &Plan) -> Vec<OpenTarget> {
    let everywhere = || all(&plan.cpus, plan);
    if counter.event.uncore && !plan.is_system_wide() {
        counter.absence.get_or_insert(Absence::NeedsCpus);
        return everywhere();
    }
    let Some(own) = counter.event.cpus.as_ref().filter(|_| plan.cpus != CpuScope::Any) else {
        return everywhere();
    };
    let cpus: Vec<CpuId> =
        plan.cpus.named().iter().copied().filter(|cpu| own.contains(cpu)).collect();
    if cpus.is_empty() {
        counter.absence.get_or_insert(Absence::OnOtherCpus);
        return everywhere();
    }
    all(&CpuScope::Each(cpus), plan)
}

fn all(cpus: &CpuScope, plan: &Plan) -> Vec<OpenTarget> {
    let of = |cpu| {
        let threads = plan.threads.iter().enumerate();
        threads.map(move |(thread, tid)| OpenTarget { cpu, thread, tid })
    };
    cpus.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;
    use whit_host::target::ThreadScope;

    fn on_any_cpu(threads: &[i32]) -> Plan {
        let threads = ThreadScope::Each(threads.iter().copied().map(Tid).collect());
        Plan { cpus: CpuScope::Any, threads, inherit: true }
    }

    fn of_cpus(cpus: &[u32]) -> Plan {
        let cpus = CpuScope::Each(cpus.iter().copied().map(CpuId).collect());
        Plan { cpus, threads: ThreadScope::All, inherit: true }
    }

    #[test]
    fn slots_follow_each_other_by_counter_cpu_and_thread() {
        let mut two = counters("cs,faults");
        let places = Places::of(&mut two, &on_any_cpu(&[7, 8]));
        assert_eq!(places.of_counter(1).len(), 2);
        assert_eq!((places.slot(0, 1), places.slot(1, 0), places.slot(1, 1)), (1, 2, 3));
    }

    #[test]
    fn a_pmu_with_cpus_of_its_own_is_asked_there_only() {
        let mut one = counters("cs");
        one[0].event.cpus = Some(vec![CpuId(0), CpuId(2)]);
        one[0].event.uncore = true;
        let on = |one: &mut Vec<Counter>, cpus: &[u32]| {
            let places = Places::of(one, &of_cpus(cpus));
            places.of_counter(0).iter().map(|place| place.cpu.unwrap().0).collect::<Vec<_>>()
        };
        assert_eq!(on(&mut one, &[0, 1, 2, 3]), [0, 2]);
        assert_eq!(one[0].absence, None);
        assert_eq!(on(&mut one, &[1]), [1]);
        assert_eq!(one[0].absence.take(), Some(Absence::OnOtherCpus));
        Places::of(&mut one, &on_any_cpu(&[7]));
        assert_eq!(one[0].absence, Some(Absence::NeedsCpus));
    }

    #[test]
    fn members_of_a_group_are_counted_where_the_choosiest_is() {
        let mut group = counters("{cs,faults},cs");
        group[1].event.cpus = Some(vec![CpuId(1)]);
        let places = Places::of(&mut group, &of_cpus(&[0, 1]));
        assert_eq!(places.of_counter(0), places.of_counter(1));
        assert_eq!(places.of_counter(0).len(), 1);
        assert_eq!(places.of_counter(2).len(), 2);
    }
}
