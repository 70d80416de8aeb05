//! With every other option of a count.

use crate::stat::cgroup::Cgroup;
use crate::stat::engines::ON;
use crate::stat::support::{check, counted, fields, probe, values};

/// A text without its numbers.
fn shape(text: &str, group: &str) -> String {
    let lines = text.replace(group, "group");
    let no_number = |c: char| !c.is_ascii_digit() && c != '.';
    let lines = lines.lines().filter(|line| !line.contains(" # ") || line.contains("group"));
    lines.map(|line| line.chars().filter(|c| no_number(*c)).collect::<String>() + "\n").collect()
}

#[test]
fn every_form_and_sum_has_the_same_rows_both_ways() {
    check("bpf::every_form_and_sum", || {
        probe::bpf_cgroups()?;
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
fn short_intervals_add_up_to_the_total() {
    check("bpf::short_intervals", || {
        probe::bpf_cgroups()?;
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
fn text_names_the_counting_engine_and_other_forms_do_not() {
    check("bpf::text_says_what_counted", || {
        probe::bpf_cgroups()?;
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
