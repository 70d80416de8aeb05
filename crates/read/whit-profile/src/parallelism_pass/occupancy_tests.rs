use super::*;
use proptest::prelude::*;

fn occupancy(of: ParallelismOf) -> Occupancy {
    Occupancy::new(of, [(Pid(1), 70)].into_iter())
}

fn task(pid: i32, tid: i32) -> Task {
    Task { pid: Pid(pid), tid: Tid(tid) }
}

fn cpu(number: u32) -> Slot {
    Slot::Cpu(CpuId(number))
}

const NOW: TimestampNs = TimestampNs(100);

#[test]
fn running_threads_are_counted_by_set() {
    for (of, expected) in [(ParallelismOf::All, 3), (ParallelismOf::Process, 2)] {
        let mut all = occupancy(of);
        all.begin(&[(cpu(0), Some(task(1, 1))), (cpu(1), None), (cpu(2), Some(task(0, 0)))]);
        all.comes(cpu(1), task(1, 2), NOW);
        all.comes(cpu(2), task(9, 9), NOW);
        assert_eq!(all.level(task(1, 2)), Parallelism::Threads(expected));
        assert_eq!(all.level(task(0, 0)), Parallelism::Threads(0));
        all.leaves(cpu(1), NOW);
        assert_eq!(all.level(task(1, 1)), Parallelism::Threads(expected - 1));
    }
}

#[test]
fn a_thread_is_in_the_cgroup_of_its_samples_or_of_its_process() {
    let mut all = occupancy(ParallelismOf::Cgroup);
    all.begin(&[(cpu(0), Some(task(1, 1))), (cpu(1), Some(task(2, 2)))]);
    assert_eq!(all.level(task(1, 1)), Parallelism::Unknown);
    all.sampled(cpu(1), task(2, 2), Some(70), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(2));
    all.sampled(cpu(1), task(2, 2), Some(71), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(1));
    all.fork(task(2, 2), task(3, 3));
    all.comes(cpu(0), task(3, 3), NOW);
    assert_eq!(all.level(task(2, 2)), Parallelism::Threads(2));
}

#[test]
fn after_a_loss_only_later_records_of_the_cpu_count() {
    let mut all = occupancy(ParallelismOf::All);
    all.begin(&[(cpu(0), Some(task(1, 1))), (cpu(1), None)]);
    all.lose(Some(CpuId(1)), TimestampNs(200));
    assert_eq!((all.level(task(1, 1)), all.anybody()), (Parallelism::Unknown, None));
    all.comes(cpu(1), task(1, 2), TimestampNs(199));
    all.sampled(cpu(0), task(1, 1), None, TimestampNs(300));
    assert_eq!(all.level(task(1, 1)), Parallelism::Unknown);
    all.sampled(cpu(1), task(1, 2), None, TimestampNs(200));
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(2));
    all.lose(None, TimestampNs(400));
    all.leaves(cpu(1), TimestampNs(400));
    assert_eq!(all.level(task(1, 1)), Parallelism::Unknown);
    all.leaves(cpu(0), TimestampNs(400));
    assert_eq!(all.anybody(), Some(false));
}

#[test]
fn a_missing_switch_out_makes_the_cpu_uncertain() {
    let mut all = occupancy(ParallelismOf::All);
    all.begin(&[(cpu(0), Some(task(1, 1))), (cpu(1), None)]);
    all.comes(cpu(1), task(1, 1), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Unknown);
    all.leaves(cpu(0), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(1));
}

#[test]
fn without_cpus_each_thread_has_its_own_place() {
    let mut all = occupancy(ParallelismOf::All);
    let place = |tid| Slot::of(None, Tid(tid));
    all.begin(&[(place(1), Some(task(1, 1)))]);
    all.comes(place(2), task(1, 2), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(2));
    all.leaves(place(2), NOW);
    all.lose(None, NOW);
    all.sampled(place(1), task(1, 1), None, NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Unknown, "thread 2 may have come back");
    all.exit(place(2), task(1, 2), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(1));
    assert_eq!(all.slots.len(), 1);
}

#[test]
fn a_thread_that_ends_is_gone() {
    let mut all = occupancy(ParallelismOf::All);
    all.begin(&[(cpu(0), Some(task(1, 1))), (cpu(1), Some(task(1, 2)))]);
    all.exit(cpu(1), task(1, 3), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(2), "another thread ran there");
    all.exit(cpu(1), task(1, 2), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(1));
    // The switch-out of whole CPUs comes later, from a thread without a number.
    all.leaves(cpu(1), NOW);
    assert_eq!(all.level(task(1, 1)), Parallelism::Threads(1));
}

proptest! {
    /// With a sample of each running thread at each moment, the weights 1/parallelism add up to the time in which
    /// anybody ran; of each process, to the time in which it ran.
    #[test]
    fn weights_add_up_to_the_time_in_which_anybody_ran(
        moves in prop::collection::vec((0u32..4, 0i32..9, 1u64..20), 1..80),
        by_process in any::<bool>(),
    ) {
        let of = if by_process { ParallelismOf::Process } else { ParallelismOf::All };
        let mut all = occupancy(of);
        let mut on_cpu: [Option<Task>; 4] = [None; 4];
        all.begin(&[0, 1, 2, 3].map(|number| (cpu(number), None)));
        let (mut now, mut weights, mut ran) = (0, 0.0, 0.0);
        for (number, tid, length) in moves {
            let next = Some(task(tid % 3, tid)).filter(|next| tid > 0 && !on_cpu.contains(&Some(*next)));
            all.leaves(cpu(number), TimestampNs(now));
            on_cpu[number as usize] = next;
            if let Some(next) = next {
                all.comes(cpu(number), next, TimestampNs(now));
            }
            let running = || on_cpu.iter().flatten();
            let sets: std::collections::BTreeSet<i32> =
                running().map(|it| if by_process { it.pid.0 } else { 0 }).collect();
            for _ in 0..length {
                for sampled in running() {
                    let Parallelism::Threads(count) = all.level(*sampled) else {
                        panic!("nothing was lost")
                    };
                    weights += 1.0 / f64::from(count);
                }
                ran += sets.len() as f64;
            }
            now += length;
        }
        prop_assert!((weights - ran).abs() < 1e-6, "{} {}", weights, ran);
    }

    /// Records in any order, as a damaged recording may have them: the counts stay those of the slots.
    #[test]
    fn counts_are_those_of_the_slots(
        records in prop::collection::vec((0u8..7, 0u32..4, -1i32..4, 0u64..9, any::<bool>()), 0..120),
        of in prop::sample::select(vec![ParallelismOf::All, ParallelismOf::Process, ParallelismOf::Cgroup]),
    ) {
        let mut all = occupancy(of);
        for (kind, number, tid, word, has_cpu) in records {
            let it = task(tid % 2, tid);
            let slot = Slot::of(has_cpu.then_some(CpuId(number)), Tid(tid));
            let time = TimestampNs(word);
            match kind {
                0 => all.comes(slot, it, time),
                1 => all.leaves(slot, time),
                2 => all.sampled(slot, it, Some(word), time),
                3 => all.lose(has_cpu.then_some(CpuId(number)), time),
                4 => all.fork(it, task(1, number as i32)),
                5 => all.exit(slot, it, time),
                _ => all.begin(&[(slot, Some(it)), (cpu(number), None)]),
            }
            let count = |wanted: fn(&State) -> bool| all.slots.values().filter(|it| wanted(it)).count();
            let taken = count(|state| matches!(state, State::Taken(_)));
            prop_assert_eq!(all.running as usize, taken);
            prop_assert_eq!(all.unsure as usize, count(|state| matches!(state, State::Unsure(_))));
            let grouped: u32 = all.by_group.values().sum();
            prop_assert_eq!((grouped + all.groupless) as usize, taken);
            prop_assert!(all.slot_of.len() <= taken);
        }
    }
}
