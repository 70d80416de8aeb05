//! Counting in cgroups, by BPF where the kernel allows it and by its own events.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::cgroup::Cgroup;
use super::support::{Skip, check, counted, fields, perf, probe, said, text, values, whit};

/// The command line of the patch series on cgroup switches, with events that every machine has.
#[test]
fn the_seeds_command_is_understood_and_counts() {
    check("the_seeds_command_is_understood_and_counts", || {
        let auto = the_seeds_command("--bpf-counters=auto")?;
        let off = the_seeds_command("--bpf-counters=off")?;
        assert_eq!(auto, off, "columns do not depend on what counts");
        Ok(())
    });
}

/// Counts, and gives the columns of the summary's lines that are no numbers.
fn the_seeds_command(engine: &str) -> Result<Vec<Vec<String>>, Skip> {
    let children = ["c1", "c2", "c3", "c4", "c5", "c6"];
    let group = Cgroup::make("seed", &children)?;
    let pair = ["-e", "page-faults,task-clock"];
    let names: Vec<String> = children.iter().map(|child| group.of(child)).collect();
    let twice = |name: &String| format!("{name},{name}");
    let lists: Vec<String> =
        names.chunks(2).map(|two| two.iter().map(twice).collect::<Vec<_>>().join(",")).collect();
    let parent = twice(&group.name);
    // Seven pairs are for cgroups; one, behind -a, is for everything.
    let mut line: Vec<&str> = pair.repeat(7);
    lists.iter().for_each(|list| line.extend(["-G", list]));
    line.extend(["-G", &parent, "-a"]);
    line.extend(pair);
    let script = children.iter().map(|child| group.work_in(child)).collect::<Vec<_>>().join("\n");
    let rest = ["-I", "1000", "-x;", "--summary", engine, "sh", "-c", &script];
    let lines = fields(&counted(&[&line[..], &rest].concat()));
    let summary: Vec<_> = lines.into_iter().filter(|line| line[0] == "summary").collect();
    assert_eq!(summary.len(), 16, "{summary:?}");
    let faults = |cgroup: &str| {
        let of = summary.iter().find(|l| l[3] == "page-faults" && l[4] == cgroup);
        of.unwrap_or_else(|| panic!("{cgroup} in {summary:?}"))[1].parse::<f64>().unwrap()
    };
    let children: f64 = names.iter().map(|name| faults(name)).sum();
    let (parent, everything) = (faults(&group.name), faults(""));
    assert!(children > 100.0, "{summary:?}");
    assert!((children - parent).abs() <= 0.01 * parent, "{children} in {parent}");
    assert!(parent <= everything, "{parent} in {everything}");
    let of = |line: &Vec<String>| {
        let own = line[4].replace(&group.name, "group");
        vec![line[2].clone(), line[3].clone(), own, line.len().to_string()]
    };
    Ok(summary.iter().map(of).collect())
}

#[test]
fn lists_patterns_and_all_cgroups() {
    check("lists_patterns_and_all_cgroups", || {
        let group = Cgroup::make("lists", &["a", "b"])?;
        let script = format!("{}\n{}", group.work_in("a"), group.work_in("b"));
        let run = |options: &[&str]| {
            let line = ["-a", "-x;", "-e", "page-faults", "sh", "-c", &script];
            fields(&counted(&[options, &line].concat()))
        };
        let both = format!("{0}/a,{0}/b", group.name);
        let pattern = format!("{}/*", group.name);
        let expression = format!("^{}/[ab]$", group.name);
        for choice in [&both, &pattern, &expression] {
            let lines = run(&["--for-each-cgroup", choice]);
            let names: Vec<_> = lines.iter().map(|line| line[3].as_str()).collect();
            assert_eq!(names.join(","), both, "{choice}");
            assert!(
                values(&lines, "page-faults", 0).iter().all(|count| *count > 10.0),
                "{lines:?}"
            );
        }
        let all = run(&["--all-cgroups"]);
        let count = |name: &str| {
            let line = all.iter().find(|line| line[3] == name).expect(name);
            line[0].parse::<f64>().unwrap_or(0.0)
        };
        let (a, b) = (count(&format!("{}/a", group.name)), count(&format!("{}/b", group.name)));
        assert!((a + b - count(&group.name)).abs() <= 0.01 * (a + b), "{all:?}");
        assert!(count("/") >= a + b, "{all:?}");
        Ok(())
    });
}

#[test]
fn cgroups_that_come_and_go_do_not_stop_the_others() {
    check("cgroups_that_come_and_go_do_not_stop_the_others", || {
        let group = Cgroup::make("coming", &["stays"])?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let names: Vec<_> = (0..50).map(|number| format!("goes{number}")).collect();
                    names.iter().for_each(|name| drop(group.child(name)));
                    let remove = |name| std::fs::remove_dir(group.path.join(name));
                    names.iter().for_each(|name| remove(name).expect("remove a cgroup"));
                }
            });
            let script = group.work_in("stays");
            let run = |mode: &str| {
                let line = [mode, "-a", "--all-cgroups", "-x;", "-e", "page-faults"];
                let lines = fields(&counted(&[&line[..], &["sh", "-c", &script]].concat()));
                let stays = format!("{}/stays", group.name);
                let line = lines.iter().find(|line| line[3] == stays).expect("the one that stays");
                assert!(line[0].parse::<f64>().expect("a count") > 10.0, "{line:?}");
            };
            let runs = || {
                for _ in 0..5 {
                    run("--bpf-counters=auto");
                    run("--bpf-counters=off");
                }
            };
            // The thread has to end in any case.
            let result = catch_unwind(AssertUnwindSafe(runs));
            is_over.store(true, Ordering::Relaxed);
            result.unwrap_or_else(|panic| resume_unwind(panic));
        });
        Ok(())
    });
}

#[test]
fn fields_with_cgroups_are_those_of_perf() {
    check("fields_with_cgroups_are_those_of_perf", || {
        let group = Cgroup::make("parity", &["a"])?;
        let script = group.work_in("a");
        let inside = format!("{}/a,{}", group.name, group.name);
        for form in ["-x;", "-j"] {
            let line = [form, "-a", "-e", "page-faults,page-faults:u", "-G", &inside, "-e", "cs"];
            let line = [&line[..], &["--", "sh", "-c", &script]].concat();
            let (ours, theirs) = (counted(&line), text(perf(&line)?));
            let shape = |text: &str| {
                let digits = |c: char| c.is_ascii_digit() || c == '.';
                text.replace("(null)", "").replace(digits, "").trim().to_owned()
            };
            assert_eq!(shape(&ours), shape(&theirs));
        }
        // Both count the same run: no two runs have the same faults.
        let place = tempfile::tempdir().expect("make a directory");
        let file = place.path().join("theirs").display().to_string();
        let line = ["-x;", "-a", "--for-each-cgroup", &inside, "-e", "page-faults"];
        let inner = perf(&[&line[..], &["-o", &file, "sh", "-c", &script]].concat())?;
        let mut outer = whit(&line);
        outer.arg("--").arg(inner.get_program()).args(inner.get_args());
        let ours = fields(&text(outer));
        let theirs = std::fs::read_to_string(&file).expect("read perf's counts");
        let theirs = fields(theirs.split_once("\n\n").expect("a line of its own").1);
        let counts = |all: &[Vec<String>]| -> Vec<Vec<String>> {
            all.iter().map(|line| line[..4].to_vec()).collect()
        };
        assert_eq!(counts(&ours), counts(&theirs));
        assert!(ours[0][0].parse::<u64>().expect("a count") > 100, "{ours:?}");
        Ok(())
    });
}

#[test]
fn a_cgroup_that_is_not_there_is_named() {
    check("a_cgroup_that_is_not_there_is_named", || {
        probe::whole_cpus()?;
        // The way to list cgroups: find in the mounted hierarchy, or systemd's tool.
        for (line, name, way_out) in [
            (&["-a", "-e", "cs", "-G", "no/such"][..], "no/such", "find /"),
            (&["-a", "--for-each-cgroup", "no/such"], "no/such", "find /"),
            (&["-a", "--for-each-cgroup", "no-such-*"], "no-such-*", "systemd-cgls"),
        ] {
            let output = whit(&[line, &["true"]].concat()).output().unwrap();
            assert!(!output.status.success());
            let said = said(&output);
            assert!(said.contains(name) && said.contains(way_out), "{said}");
        }
        let group = Cgroup::make("idle", &[])?;
        let line = ["-a", "-e", "cs", "-G", &group.name, "true"];
        let text = counted(&line);
        assert!(text.contains("<not counted>: no task of the cgroup ran"), "{text}");
        Ok(())
    });
}
