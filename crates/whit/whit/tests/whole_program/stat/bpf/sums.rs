//! Sums that must agree.

use crate::stat::cgroup::Cgroup;
use crate::stat::engines::{ON, slack_of_events};
use crate::stat::support::{check, counted, fields, probe};
use crate::stat::table::{assert_close, count, rows, unseen};

const EVENTS: &str = "page-faults,context-switches,cpu-clock,task-clock";

#[test]
fn children_make_up_their_parent_and_the_root_is_everything() {
    check("bpf::children_make_up_their_parent", || {
        probe::bpf_cgroups()?;
        let children = ["a", "b", "c"];
        let group = Cgroup::make("sums", &children)?;
        let names: Vec<_> = children.iter().map(|child| group.of(child)).collect();
        let script: Vec<_> = children.iter().map(|c| format!("{} &", group.work_in(c))).collect();
        let script = format!("{}\nwait", script.join("\n"));
        let all = format!("{},{},/", names.join(","), group.name);
        let line = [ON, "-a", "--for-each-cgroup", &all, "-e", EVENTS, "sh", "-c", &script];
        let text = counted(&line);
        let rows = rows(&text);
        for event in EVENTS.split(',') {
            let sum = names.iter().map(|name| count(&rows, event, name)).sum();
            assert!(names.iter().all(|name| count(&rows, event, name) > 0.0), "{text}");
            assert_close(event, [sum, count(&rows, event, &group.name)], 0.01, 0.0);
            assert!(count(&rows, event, &group.name) <= count(&rows, event, "/"), "{text}");
        }
        Ok(())
    });
}

/// The cgroups at the top and the tasks outside of them make up the machine: with the root of the
/// hierarchy and without any cgroup the counts are the same, by the same reads.
#[test]
fn tops_and_remainder_are_the_machine() {
    check("bpf::tops_and_remainder_are_the_machine", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("machine", &["a"])?;
        let script = group.work_in("a");
        let name = group.of("a");
        let inside = format!("{name},{name},/,/");
        let pair = "page-faults,cpu-clock";
        let line = ["-a", "-e", pair, "-e", pair, "-G", &inside, "-e", pair, "sh", "-c", &script];
        let text = counted(&[&[ON], &line[..]].concat());
        let rows = rows(&text);
        for event in ["page-faults", "cpu-clock"] {
            let everything = count(&rows, event, "");
            assert_eq!(count(&rows, event, "/"), everything, "{text}");
            assert!(count(&rows, event, &name) < everything, "{text}");
        }
        Ok(())
    });
}

#[test]
fn nothing_waits_where_nothing_is_counted_in_turn() {
    check("bpf::nothing_waits", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("waits", &["a"])?;
        let script = group.work_in("a");
        let line = [ON, "-a", "-x;", "-I", "5", "-A", "--for-each-cgroup"];
        let events = "page-faults,cpu-clock,{cs,page-faults},cgroup-switches";
        let line = [&line[..], &[&group.name, "-e", events, "sh", "-c", &script]].concat();
        let lines = fields(&counted(&line));
        assert!(lines.len() >= 10, "{}", lines.len());
        // time, CPU, count, unit, event, cgroup, time running, percent
        for line in lines.iter().filter(|line| line[2] != "<not counted>") {
            assert_eq!(line[7], "100.00", "{line:?}");
        }
        Ok(())
    });
}

#[test]
fn modes_make_up_the_whole_and_switches_are_counted_alike() {
    check("bpf::modes_make_up_the_whole", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("modes", &["a"])?;
        let loop_ = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); /bin/true; done";
        let script = format!("sh -c '{}; {loop_}'", group.go_to("a"));
        let events = "page-faults,page-faults:u,page-faults:k,context-switches,cgroup-switches";
        let line = [ON, "-a", "-e", events, "-G", &group.name, "sh", "-c", &script];
        let text = counted(&line);
        let rows = rows(&text);
        let of = |event: &str| count(&rows, event, &group.name);
        assert_eq!(of("page-faults:u") + of("page-faults:k"), of("page-faults"), "{text}");
        assert!(of("page-faults:u") > 1000.0, "{text}");
        assert!(of("cgroup-switches") > 0.0, "{text}");
        assert!(of("cgroup-switches") <= of("context-switches"), "{text}");
        Ok(())
    });
}

#[test]
fn tracepoints_of_switches_are_switches() {
    check("bpf::tracepoints_of_switches_are_switches", || {
        probe::bpf_cgroups()?;
        probe::tracepoints()?;
        let group = Cgroup::make("tracepoints", &["a"])?;
        let script = group.work_in("a");
        for events in
            ["sched:sched_switch,context-switches", "{context-switches,sched:sched_switch}"]
        {
            let line = [ON, "-a", "--for-each-cgroup", &group.name, "-e", events];
            let text = counted(&[&line[..], &["sh", "-c", &script]].concat());
            let rows = rows(&text);
            let [traced, counted] = ["sched:sched_switch", "context-switches"]
                .map(|event| count(&rows, event, &group.name));
            assert!(counted > 0.0, "{text}");
            // Switches that the kernel does not show are in neither; too many of them leave nothing to compare.
            let unseen = unseen(&text);
            slack_of_events(unseen)?;
            assert_close(&text, [traced, counted], 0.0, 2.0 + unseen);
        }
        Ok(())
    });
}
