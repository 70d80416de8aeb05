//! Beside the kernel's cgroup events, on the same work at the same time.

use crate::stat::cgroup::Cgroup;
use crate::stat::engines::{ON, assert_agreement, slack_of_events};
use crate::stat::support::{check, counted, probe, said, whit};
use crate::stat::table::{assert_close, count, rows, unseen};

#[test]
fn a_steady_load_counts_as_the_kernel_counts_it() {
    check("bpf::a_steady_load_counts_as_the_kernel_counts_it", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("steady", &["a", "b"])?;
        let work = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; \
                    i=0; while [ $i -lt 60 ]; do i=$((i+1)); /bin/true; done";
        let [a, b] = ["a", "b"].map(|c| format!("sh -c '{}; {work}'", group.go_to(c)));
        let script = format!("{a} & {b} & wait");
        let cgroups = format!("{0}/a,{0}/b,{0}", group.name);
        let events = "page-faults,minor-faults:u,context-switches,cpu-clock,task-clock";
        assert_agreement(&["-a", "--for-each-cgroup", &cgroups, "-e", events], &script)
    });
}

#[test]
fn a_task_that_moves_between_cgroups_counts_where_it_is() {
    check("bpf::a_task_that_moves_between_cgroups", || {
        probe::bpf_cgroups()?;
        probe::bpf_moves_of_running_tasks()?;
        let group = Cgroup::make("moves", &["a", "b"])?;
        let work = |n: u32| format!("i=0; while [ $i -lt {n} ]; do i=$((i+1)); done; ");
        let (to_a, to_b) = (group.go_to("a"), group.go_to("b"));
        let (long, short) = (work(60_000), work(20_000));
        let script = format!("{to_a}; {long} {to_b}; {short} {to_a}; {long} {to_b}; {short}");
        let cgroups = format!("{0}/a,{0}/b,{0}", group.name);
        let line = ["-a", "--for-each-cgroup", &cgroups, "-e", "cpu-clock"];
        assert_agreement(&line, &format!("sh -c '{script}'"))
    });
}

/// Where there are hardware events: more than the PMU has counters for, so that they take turns.
#[test]
fn events_that_take_turns_are_estimated_alike() {
    check("bpf::events_that_take_turns", || {
        probe::bpf_cgroups()?;
        probe::hardware_events()?;
        let group = Cgroup::make("turns", &["a"])?;
        let work = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{}; {work}'", group.go_to("a"));
        let others: Vec<_> =
            (0..12).map(|n| format!("branches/name=b{n}/u,cycles/name=c{n}/")).collect();
        let events = format!("instructions:u,{}", others.join(","));
        let name = group.of("a");
        let one = counted(&[ON, "-a", "-e", "instructions:u", "-G", &name, "sh", "-c", &script]);
        let line = [ON, "-a", "-e", &events, "--for-each-cgroup", &name, "sh", "-c", &script];
        let turns = counted(&line);
        let [alone, shared] =
            [&one, &turns].map(|text| count(&rows(text), "instructions:u", &name));
        // An estimate from a part of the time.
        assert_close(&turns, [alone, shared], 0.25, 0.0);
        Ok(())
    });
}

#[test]
fn events_beyond_bpf_are_counted_without_it_and_named() {
    check("bpf::what_bpf_cannot_count_is_counted_beside_it", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("beside", &["a"])?;
        let name = group.of("a");
        let script = group.work_in("a");
        let events = "page-faults,page-faults:D,duration_time,{page-faults:D,cs}";
        let line = [ON, "-a", "-e", events, "--for-each-cgroup", &name, "sh", "-c", &script];
        let output = whit(&line).output().unwrap();
        let text = said(&output);
        assert!(output.status.success(), "{text}");
        let warning =
            "not counted by BPF but by the kernel's cgroup events: page-faults:D, cs: pinned";
        assert!(text.contains(warning), "{text}");
        let rows = rows(&text);
        let [shared, pinned] = ["page-faults", "page-faults:D"].map(|e| count(&rows, e, &name));
        assert!(shared > 100.0, "{text}");
        assert_close(&text, [shared, pinned], 0.03, 4.0 + slack_of_events(unseen(&text))?);
        // The tool's own times have a unit.
        assert!(count(&rows, "ns", "duration_time") > 0.0, "{text}");
        Ok(())
    });
}

#[test]
fn more_events_than_fit_are_counted_with_the_others() {
    check("bpf::more_events_than_fit", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("many", &["a"])?;
        let (name, script) = (group.of("a"), group.work_in("a"));
        let kinds = "faults minor-faults major-faults alignment-faults emulation-faults cs \
                     cgroup-switches migrations task-clock cpu-clock";
        let kinds: Vec<_> = kinds.split_whitespace().collect();
        let modes = ["", ":u", ":k", ":h", ":uk", ":uh", ":kh"];
        let all = kinds.iter().flat_map(|kind| modes.map(|mode| format!("{kind}{mode}")));
        let all = all.collect::<Vec<_>>().join(",");
        let line = [ON, "-a", "-e", &all, "--for-each-cgroup", &name, "sh", "-c", &script];
        let text = said(&whit(&line).output().unwrap());
        assert!(text.contains("BPF counts up to 63 different events"), "{text}");
        let rows = rows(&text);
        for (event, other) in [("faults", "faults:uk"), ("task-clock", "cpu-clock:kh")] {
            let slack = 4.0 + slack_of_events(unseen(&text))?;
            assert_close(&text, [event, other].map(|e| count(&rows, e, &name)), 0.03, slack);
        }
        Ok(())
    });
}
