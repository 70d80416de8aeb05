//! Counts of the same work, twice: a switch that the kernel does not show brings the faults of another task to a
//! cgroup, so that the median of several pairs is judged.

use std::io::{Read, Write};

use crate::stat::cgroup::Cgroup;
use crate::stat::engines::ON;
use crate::stat::support::{check, counted, fields, probe, said, start, values, whit};
use crate::stat::table::{assert_same_work, count, rows};

#[test]
fn repeats_and_limits_of_time_go_with_it() {
    check("bpf::repeats_and_limits_of_time", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("repeats", &["a"])?;
        let (name, script) = (group.of("a"), group.work_in("a"));
        let events = ["-a", "-e", "page-faults,cs", "--for-each-cgroup", &name];
        let text = counted(&[&[ON, "-r", "3"], &events[..], &["sh", "-c", &script]].concat());
        assert!(text.contains("(3 runs)"), "{text}");
        assert!(count(&rows(&text), "page-faults", &name) > 100.0, "{text}");
        let text = counted(&[&[ON, "--timeout", "100"], &events[..], &["sleep", "100"]].concat());
        assert!(text.contains("no task of the cgroup ran"), "{text}");
        let late = format!("sleep 0.3; {script}");
        assert_same_work(|| {
            let whole = counted(&[&[ON], &events[..], &["sh", "-c", &script]].concat());
            let delayed = [&[ON, "-D", "100"], &events[..], &["sh", "-c", &late]].concat();
            let delayed = said(&whit(&delayed).output().unwrap());
            assert!(delayed.contains("Events disabled\nEvents enabled\n"), "{delayed}");
            Ok([&whole, &delayed].map(|text| count(&rows(text), "page-faults", &name)))
        })?;
        let early = format!("{script}; sleep 2");
        let line = [&[ON, "-x;", "-D", "1900"], &events[..], &["sh", "-c", &early]].concat();
        let text = said(&whit(&line).output().unwrap());
        assert_eq!(text.matches("<not counted>").count(), 2, "{text}");
        Ok(())
    });
}

#[test]
fn events_count_between_switching_on_and_off() {
    check("bpf::what_is_switched_on_and_off", || {
        probe::bpf_cgroups()?;
        assert_same_work(|| {
            let group = Cgroup::make("control", &["a"])?;
            let (name, script) = (group.of("a"), group.work_in("a"));
            let dir = tempfile::tempdir().unwrap();
            let [control, ack] = ["control", "ack"].map(|name| {
                let path = dir.path().join(name);
                assert!(
                    std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()
                );
                path
            });
            let channel = format!("fifo:{},{}", control.display(), ack.display());
            let line =
                [ON, "-a", "-x;", "-D", "-1", "--control", &channel, "--for-each-cgroup", &name];
            let whit = start(&[&line[..], &["-e", "page-faults,cs", "sleep", "1000"]].concat());
            let mut orders = std::fs::OpenOptions::new().write(true).open(&control).unwrap();
            let mut answers = std::fs::OpenOptions::new().read(true).open(&ack).unwrap();
            let work = || {
                let done = std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
                assert!(done.success());
            };
            work();
            for order in ["enable", "disable", "enable", "disable", "stop"] {
                orders.write_all(format!("{order}\n").as_bytes()).unwrap();
                let mut answer = [0; 4];
                answers.read_exact(&mut answer).unwrap();
                work();
            }
            let output = whit.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            let text = said(&output);
            let lines = fields(&text);
            let between = values(&lines, "page-faults", 0)[0];
            assert!(values(&lines, "cs", 0)[0] < 1e6, "{text}");
            let once = [ON, "-a", "-x;", "--for-each-cgroup", &name, "-e", "page-faults"];
            let once = fields(&counted(&[&once[..], &["sh", "-c", &script]].concat()));
            let once = values(&once, "page-faults", 0)[0];
            Ok([between, 2.0 * once])
        })
    });
}

#[test]
fn a_cgroup_that_is_removed_keeps_its_count_and_another_of_its_name_is_another() {
    check("bpf::a_cgroup_that_is_removed_keeps_its_count", || {
        probe::bpf_cgroups()?;
        assert_same_work(|| {
            let group = Cgroup::make("removed", &["a"])?;
            let work = group.work_in("a");
            let a = group.path.join("a");
            // The kernel takes a moment to let go of tasks that have ended.
            let again = format!("until rmdir {0} 2>/dev/null; do :; done; mkdir {0}", a.display());
            let script = format!("{work}; {again}; {work}");
            let cgroups = format!("{},{}", group.of("a"), group.name);
            let line = [ON, "-a", "-x;", "-I", "10", "--summary", "--for-each-cgroup", &cgroups];
            let line = [&line[..], &["-e", "page-faults", "sh", "-c", &script]].concat();
            let lines = fields(&counted(&line));
            let summary: Vec<_> = lines.iter().filter(|line| line[0] == "summary").collect();
            let of = |index: usize| summary[index][1].parse::<f64>().unwrap();
            let (first, both) = (of(0), of(1));
            assert!(first > 100.0);
            let parts: f64 = values(&lines[..lines.len() - 2], "page-faults", 1).iter().sum();
            assert_eq!(parts, first + both, "intervals add up to the total");
            Ok([2.0 * first, both])
        })
    });
}

#[test]
fn cgroups_that_are_made_while_counting_count_for_their_parent() {
    check("bpf::cgroups_made_while_counting", || {
        probe::bpf_cgroups()?;
        assert_same_work(|| {
            let group = Cgroup::make("made", &["old"])?;
            let new = group.path.join("new");
            let script = format!(
                "mkdir -p {0}/deep; {1}; {2}",
                new.display(),
                group.work_in("new/deep"),
                group.work_in("old")
            );
            let cgroups = format!("{},{}", group.of("old"), group.name);
            let line = [ON, "-a", "--for-each-cgroup", &cgroups, "-e", "page-faults"];
            let text = counted(&[&line[..], &["sh", "-c", &script]].concat());
            let rows = rows(&text);
            let [old, all] =
                [&group.of("old"), &group.name].map(|g| count(&rows, "page-faults", g));
            Ok([2.0 * old, all])
        })
    });
}

#[test]
fn twenty_levels_count_their_subtrees() {
    check("bpf::twenty_levels", || {
        probe::bpf_cgroups()?;
        assert_same_work(|| {
            let group = Cgroup::make("deep", &[])?;
            let levels: Vec<String> = (1..=20).map(|depth| vec!["n"; depth].join("/")).collect();
            let names: Vec<String> = levels.iter().map(|level| group.child(level)).collect();
            let (middle, deepest) = (&names[9], &names[19]);
            let script = format!("{}; {}", group.work_in(&levels[19]), group.work_in(&levels[14]));
            let cgroups = format!("{deepest},{middle},{}", group.name);
            let line = [ON, "-a", "--for-each-cgroup", &cgroups, "-e", "page-faults"];
            let text = counted(&[&line[..], &["sh", "-c", &script]].concat());
            let rows = rows(&text);
            let of = |name: &str| count(&rows, "page-faults", name);
            assert_eq!(of(middle), of(&group.name), "{text}");
            Ok([2.0 * of(deepest), of(middle)])
        })
    });
}
