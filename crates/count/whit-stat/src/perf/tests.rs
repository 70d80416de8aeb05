//! On the running kernel. Software events can be counted by every user, in user mode.

use whit_host::target::{CpuScope, ThreadScope};
use whit_sys::limit::Limit;
use whit_types::{CpuId, OutsideText, Tid};

use super::*;
use crate::counter::Absence;
use crate::counter::tests::counters;

/// No page of a machine is larger.
const STRIDE_BYTES: usize = 2 << 20;
/// Enough memory that it comes from no heap, where it might have been touched before (the C
/// library's `DEFAULT_MMAP_THRESHOLD_MAX`).
const LEAST_FAULTS: usize = 20;

/// Faults at least so many times, and hardly more often.
fn fault(times: usize) {
    assert!(times >= LEAST_FAULTS);
    let mut memory = vec![0u8; times * STRIDE_BYTES];
    for at in (0..memory.len()).step_by(STRIDE_BYTES) {
        memory[at] = std::hint::black_box(1);
    }
    std::hint::black_box(&memory);
}

fn any_cpu(threads: Vec<Tid>) -> Plan {
    Plan { cpus: CpuScope::Any, threads: ThreadScope::Each(threads), inherit: true }
}

fn this_thread() -> Plan {
    let tid = std::fs::read_link("/proc/thread-self").unwrap();
    let tid = tid.file_name().unwrap().to_str().unwrap().parse().unwrap();
    any_cpu(vec![Tid(tid)])
}

fn open(text: &str, plan: &Plan) -> Result<(PerfSource, Vec<Notice>), StatError> {
    let mut notices = Vec::new();
    let roots = Roots::default();
    let request = Request { counters: counters(text), plan, on_exec: false, roots: &roots };
    let source = PerfSource::open(request, &mut |notice| notices.push(notice))?;
    Ok((source, notices))
}

fn values(source: &mut PerfSource) -> Vec<u64> {
    let mut readings = Vec::new();
    source.read(&mut readings).unwrap();
    assert_eq!(readings.len(), source.slots().len());
    readings.iter().map(|reading| reading.value).collect()
}

#[test]
fn groups_lone_events_and_sets_of_ours_count_the_same() {
    let text = "page-faults:u,minor-faults:u,{page-faults:u,minor-faults:u},page-faults:uD";
    let (mut source, _) = open(text, &this_thread()).unwrap();
    assert_eq!(source.groups.len(), 3, "five events are read by three system calls");
    assert_eq!(values(&mut source), [0; 5]);
    source.start().unwrap();
    fault(64);
    source.stop().unwrap();
    let counted = values(&mut source);
    assert!(counted.iter().all(|&count| count >= 64), "{counted:?}");
    // Starting and stopping takes a system call for each unit, between which little may happen.
    let (least, most) = (counted.iter().min().unwrap(), counted.iter().max().unwrap());
    assert!(most - least < 30, "{counted:?}");
    fault(20);
    assert_eq!(values(&mut source), counted, "nothing is counted after the stop");
    let mut readings = Vec::new();
    source.read(&mut readings).unwrap();
    for reading in readings {
        assert!(reading.is_counted() && reading.enabled_ns == reading.running_ns);
    }
}

#[test]
fn missing_events_are_absent_and_the_rest_counts() {
    // No PMU has this type.
    let text = "page-faults:u,4294967294:1,{4294967294:1,page-faults:u}";
    let (mut source, _) = open(text, &this_thread()).unwrap();
    source.start().unwrap();
    fault(64);
    let counted = values(&mut source);
    assert!(counted[0] >= 64 && counted[3] >= 64, "{counted:?}");
    assert_eq!((counted[1], counted[2]), (0, 0));
    let absences: Vec<_> = source.counters().iter().map(|c| c.absence).collect();
    assert!(matches!(absences[1], Some(Absence::NotSupported(_))), "{absences:?}");
    assert!(matches!(absences[2], Some(Absence::NotSupported(_))), "{absences:?}");
    assert_eq!((absences[0], absences[3]), (None, None));
}

#[test]
fn threads_that_end_keep_their_count_and_new_ones_are_inherited() {
    let (mut source, _) = open("page-faults:u,minor-faults:u", &this_thread()).unwrap();
    source.start().unwrap();
    std::thread::spawn(|| fault(64)).join().unwrap();
    let counted = values(&mut source);
    assert!(counted.iter().all(|&count| count >= 64), "{counted:?}");
}

#[test]
fn a_target_that_is_gone_is_an_error() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let plan = any_cpu(vec![Tid(child.id() as i32)]);
    assert!(matches!(open("page-faults:u", &plan), Err(StatError::TargetGone)));
}

#[test]
fn more_instances_than_files_are_refused_before_any_is_opened() {
    let plan = any_cpu(vec![Tid(1); 1 << 22]);
    match open("page-faults:u", &plan) {
        Err(StatError::OpenFiles { needed, .. }) => assert!(needed > 1 << 22),
        // A machine without a limit opens until it is out of something else.
        other => assert!(Limit::OpenFiles.get().hard.is_none(), "{:?}", other.err()),
    }
}

#[test]
fn cgroups_need_cpus_and_one_cgroup_for_a_group() {
    let roots = Roots::default();
    let mut group = counters("{cs,faults}");
    group[0].cgroup = Some(OutsideText::new("a".into()));
    let request = |plan, counters| Request { counters, plan, on_exec: false, roots: &roots };
    let thread = this_thread();
    let refused = PerfSource::open(request(&thread, group.clone()), &mut |_| ());
    assert!(matches!(refused, Err(StatError::CgroupNeedsCpus)));
    let everything =
        Plan { cpus: CpuScope::Each(vec![CpuId(0)]), threads: ThreadScope::All, inherit: true };
    let refused = PerfSource::open(request(&everything, group), &mut |_| ());
    assert!(matches!(refused, Err(StatError::GroupAcrossCgroups { .. })));
}
