//! With every other option of a count.

use crate::cgroup::Cgroup;
use crate::engines::{ON, need_bpf};
use crate::support::{check, counted, fields, said, start, values, whit};
use crate::table::{assert_same_work, count, rows};
use std::io::{Read, Write};

/// What is left of a text when its numbers are taken out.
fn shape(text: &str, group: &str) -> String {
    let lines = text.replace(group, "group");
    let no_number = |c: char| !c.is_ascii_digit() && c != '.';
    let lines = lines.lines().filter(|line| !line.contains(" # ") || line.contains("group"));
    lines.map(|line| line.chars().filter(|c| no_number(*c)).collect::<String>() + "\n").collect()
}

#[test]
fn every_form_and_sum_has_the_same_rows_both_ways() {
    check("bpf::every_form_and_sum", || {
        need_bpf()?;
        let group = Cgroup::make("forms", &["a"])?;
        let dd = "dd if=/dev/zero of=/dev/null bs=1M count=20 status=none";
        // Tied to a CPU, so that there is the same to be seen of the others both times.
        let script = format!("taskset -c 0 sh -c '{}; {dd}'; true", group.go_to("a"));
        let inside = format!("{0}/a,{0}/a,,{0},{0}", group.name);
        for options in [
            &["-x;"][..],
            &["-j"],
            &["-x;", "-A"],
            &["-x;", "--per-core"],
            &["-x;", "--per-socket"],
            &["-x;", "--per-node"],
            &["-x;", "--no-scale"],
            &["-x;", "--no-merge"],
            &["-x;", "-C", "0"],
            &["-j", "-A", "-C", "0"],
            &["-x;", "--metric-only"],
        ] {
            let run = |engine: &str| {
                let events = "page-faults,task-clock,task-clock,{cs,page-faults}";
                let line = ["-e", events, "-G", &inside, "sh", "-c", &script];
                let whole = if options.contains(&"-C") { &[][..] } else { &["-a"] };
                let text = counted(&[&[engine], whole, options, &line].concat());
                shape(&text, &group.name)
            };
            assert_eq!(run(ON), run("--bpf-counters=off"), "{options:?}");
        }
        Ok(())
    });
}

#[test]
fn repeats_and_limits_of_time_go_with_it() {
    check("bpf::repeats_and_limits_of_time", || {
        need_bpf()?;
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
fn short_intervals_add_up_to_the_total() {
    check("bpf::short_intervals", || {
        need_bpf()?;
        let group = Cgroup::make("intervals", &["a", "b"])?;
        let script = format!("{} & {}; wait", group.work_in("a"), group.work_in("b"));
        let cgroups = format!("{0}/a,{0}/b,{0}", group.name);
        let line = [ON, "-a", "-x;", "-I", "1", "--summary", "--for-each-cgroup", &cgroups];
        let line = [&line[..], &["-e", "page-faults,cs", "sh", "-c", &script]].concat();
        let lines = fields(&counted(&line));
        let (summary, parts): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line[0] == "summary");
        for event in ["page-faults", "cs"] {
            let (total, sum) = (values(&summary, event, 1), values(&parts, event, 1));
            assert_eq!(total.len(), 3);
            assert_eq!(total.iter().sum::<f64>(), sum.iter().sum::<f64>());
            assert!(sum.iter().all(|count| *count < 1e9), "{event}");
        }
        Ok(())
    });
}

#[test]
fn what_is_switched_on_and_off_is_counted_in_between() {
    check("bpf::what_is_switched_on_and_off", || {
        need_bpf()?;
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
fn text_says_what_counted_and_other_forms_do_not() {
    check("bpf::text_says_what_counted", || {
        need_bpf()?;
        let group = Cgroup::make("says", &["a"])?;
        let script = group.work_in("a");
        let run = |options: &[&str]| {
            let line = ["-a", "-e", "page-faults", "-G", &group.name, "sh", "-c", &script];
            counted(&[options, &line].concat())
        };
        let by_bpf = "counted by BPF: 1 cgroup, from 1 event on each of";
        let by_kernel = "counted by the kernel's cgroup events: 1 cgroup";
        assert!(run(&[]).contains(by_bpf));
        assert!(run(&["--bpf-counters"]).contains(by_bpf), "bare, it is on");
        assert!(run(&["-I", "100"]).starts_with(&format!(" # {by_bpf}")));
        assert!(run(&["--bpf-counters=off"]).contains(by_kernel));
        for form in ["-x;", "-j"] {
            for engine in [ON, "--bpf-counters=off"] {
                assert_eq!(run(&[form, engine]).lines().count(), 1);
            }
        }
        Ok(())
    });
}
