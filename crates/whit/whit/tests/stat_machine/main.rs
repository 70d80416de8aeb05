//! `whit stat` counts cgroups while the whole machine changes: a CPU goes offline, the `perf_event`
//! controller moves to a hierarchy of version 1. Runs only if `WHIT_TEST_MACHINE` is set: it would
//! spoil measurements by others.

#[path = "../whole_program/stat/cgroup.rs"]
#[allow(dead_code, unused_imports)]
mod cgroup;
#[path = "../whole_program/stat/engines.rs"]
#[allow(dead_code, unused_imports)]
mod engines;
#[path = "../whole_program/stat/support.rs"]
#[allow(dead_code, unused_imports)]
mod support;
#[path = "../whole_program/stat/table.rs"]
#[allow(dead_code, unused_imports)]
mod table;

use crate::cgroup::Cgroup;
use crate::engines::{ON, assert_agreement};
use crate::support::{check, counted, probe, said, signal, start, wait_for_command};
use crate::table::{assert_close, count, rows};
use std::process::Command;
use std::time::Duration;
use whit_testing::cgroups::{OldHierarchy, perf_event_controller};
use whit_testing::hotplug::Offline;

#[test]
fn the_old_hierarchy_counts_alike() {
    check("the_old_hierarchy_counts_alike", || {
        let _alone = probe::may_change_the_machine()?;
        probe::bpf_cgroups()?;
        let _mount = OldHierarchy::of_perf_event()?;
        let group = Cgroup::make("old", &["a", "b"])?;
        assert_ne!(perf_event_controller().0, 0, "this is about version 1");
        let script = format!("{} & {} & wait", group.work_in("a"), group.work_in("b"));
        let cgroups = format!("{0}/a,{0}/b,{0}", group.name);
        let events = "page-faults,context-switches,cpu-clock";
        let line = ["-a", "--for-each-cgroup", &cgroups, "-e", events];
        assert_agreement(&line, &script)?;
        let text = counted(&[&[ON], &line[..], &["sh", "-c", &script]].concat());
        let rows = rows(&text);
        for event in events.split(',') {
            let sum = ["a", "b"].map(|child| count(&rows, event, &group.of(child))).iter().sum();
            assert_close(event, [sum, count(&rows, event, &group.name)], 0.01, 0.0);
        }
        Ok(())
    });
}

#[test]
fn a_cpu_that_was_offline_is_counted_again() {
    check("a_cpu_that_goes_and_comes_back", || {
        let _alone = probe::may_change_the_machine()?;
        probe::bpf_cgroups()?;
        let group = Cgroup::make("hotplug", &["a"])?;
        let work = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); /bin/true; done";
        let work = format!("taskset -c 1 sh -c '{}; {work}'", group.go_to("a"));
        let done = || assert!(Command::new("sh").args(["-c", &work]).status().unwrap().success());
        drop(Offline::take(1)?);
        for (interval, end) in [("10", "is online and counted again"), ("100000", "is missing")] {
            let name = group.of("a");
            let line = [ON, "-v", "-a", "-I", interval, "--summary", "--for-each-cgroup", &name];
            let whit = start(&[&line[..], &["-e", "page-faults", "sleep", "1000"]].concat());
            wait_for_command(&whit, "sleep");
            done();
            let offline = Offline::take(1).expect("it went once");
            std::thread::sleep(Duration::from_millis(100));
            drop(offline);
            std::thread::sleep(Duration::from_millis(100));
            done();
            signal(&whit, "-INT");
            let text = said(&whit.wait_with_output().unwrap());
            assert!(text.contains("CPU 1 went offline") && text.contains(end), "{text}");
            assert!(count(&rows(&text), "page-faults", &name) > 1000.0, "{text}");
        }
        Ok(())
    });
}
