//! Command lines as people write them: published ones, quoted names, output into files, and refused
//! ones.

use super::support::{check, counted, fields, probe, said, whit};
use std::process::Command;

/// Runs a line as a shell does; `whit` is the one under test.
fn shell(line: &str) -> std::process::Output {
    let whit = env!("CARGO_BIN_EXE_whit");
    let script = format!("whit() {{ \"{whit}\" \"$@\"; }}\n{line}\n");
    Command::new("bash").args(["-c", &script]).env("LC_ALL", "C").output().unwrap()
}

#[test]
fn quoted_names_are_kept_exactly() {
    let name = "PAGE_FAULTS:kind=ALL:cmask=0x1 (all)";
    let events =
        format!("software/config=2,name=\\'{name}\\'/,software/config=2,name=\\\"{name}\\\"/");
    let output = shell(&format!("whit stat -x';' -e \"{events}\" true"));
    assert!(output.status.success(), "{}", said(&output));
    let lines = fields(&said(&output));
    assert_eq!((lines[0][2].as_str(), lines[1][2].as_str()), (name, name));
    let json = shell(&format!("whit stat -j -e \"{events}\" true"));
    for line in said(&json).lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["event"], name);
    }
}

/// A line of Alexey Budankov's talk on perf's advancements (Linux Piter 2019); where the machine has no such
/// PMU, the error names place and event.
#[test]
fn a_published_line_with_a_named_raw_event_is_understood() {
    let name = "CPU_CLK_UNHALTED.THREAD:cmask=0x1";
    let line =
        format!("whit stat -e cpu/name=\\'{name}\\',period=0x3567e0,event=0x3c,cmask=0x1/Duk true");
    let output = shell(&line);
    let text = said(&output);
    match output.status.success() {
        true => assert!(text.contains(name), "{text}"),
        false => assert!(text.contains("no PMU cpu") && text.contains('^'), "{text}"),
    }
}

#[test]
fn values_may_be_attached_and_names_abbreviated() {
    let lines = fields(&counted(&["-x;", "-I100", "-epage-faults", "true"]));
    assert_eq!(lines.len(), 1);
    assert!(counted(&["-r2", "--time", "50", "-edummy", "true"]).contains("(2 runs)"));
    let after = counted(&["-x;", "-e", "dummy", "--", "sh", "-c", "exit 0", "-x,"]);
    assert!(after.contains(";dummy;"), "options behind the command are its own: {after}");
}

#[test]
fn output_is_written_to_the_named_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out");
    let path = file.to_str().unwrap();
    let run = |options: &[&str]| {
        let output = whit(&[options, &["-e", "dummy", "true"]].concat()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
        std::fs::read_to_string(&file).unwrap()
    };
    let first = run(&["-o", path, "-x;"]);
    assert!(first.starts_with("# started on "), "{first}");
    assert_eq!(run(&["-o", path, "-x;"]).lines().count(), first.lines().count());
    assert!(run(&["-o", path, "--append", "-j"]).starts_with(&first[..10]));
    let output = shell(&format!("whit stat --log-fd 3 -x';' -e dummy true 3>{path}"));
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
    assert!(std::fs::read_to_string(&file).unwrap().contains(";dummy;"));
    let quiet = whit(&["--quiet", "true"]).output().unwrap();
    assert!(quiet.status.success() && quiet.stderr.is_empty());
    let refused = whit(&["-o", "/no/such/dir/x", "true"]).output().unwrap();
    assert!(said(&refused).contains("/no/such/dir/x"));
}

#[test]
fn wrong_options_are_named_with_the_remedy() {
    for (line, wanted) in [
        (&["-e", "page-fautls", "true"][..], "did you mean page-faults"),
        (&["-e", "cycles,,cs", "true"], "^"),
        (&["-M", "TopdownL1", "true"], "no tables of vendors' metrics"),
        (&["--topdown", "true"], "no tables of vendors' metrics"),
        (&["record", "true"], "-o"),
        (&["--interval-count", "2", "true"], "add -I"),
        (&["-A", "--per-core", "true"], "choose one"),
        (&["--per-thread", "true"], "-p, -t or -a"),
        (&["-r", "2"], "give one"),
        (&["-x,", "-j", "true"], "cannot be used with"),
        (&["-e", "cs", "-G", "a", "--for-each-cgroup", "b", "-a"], "choose one"),
        (&["-e", "cs", "-G", "a", "true"], "add -a"),
        (&["--bogus", "true"], "--bogus"),
        (&["-e", "cs", "--filter", "x", "true"], "takes tracepoints only"),
        (&["-e", "cs", "--exclude-perf", "true"], "takes tracepoints only"),
    ] {
        let output = whit(line).output().unwrap();
        assert!(!output.status.success(), "{line:?}");
        assert!(said(&output).contains(wanted), "{line:?}: {wanted} in {}", said(&output));
    }
}

#[test]
fn reasons_are_written_below_the_table_and_not_in_csv() {
    // No PMU has this type.
    let text = counted(&["-e", "4294967294:1,page-faults", "true"]);
    assert!(text.contains("<not supported>"), "{text}");
    assert!(text.contains(" # 4294967294:1: <not supported>: not supported here"), "{text}");
    let csv = counted(&["-x;", "-e", "4294967294:1,page-faults", "true"]);
    assert_eq!(csv.lines().count(), 2, "{csv}");
}

#[test]
fn tracepoints_are_filtered() {
    check("tracepoints_are_filtered", || {
        let line =
            ["-x;", "-e", "sched:sched_process_exec", "sh", "-c", "ls >/dev/null; ls >/dev/null"];
        probe::tracepoint("sched", "sched_process_exec")?;
        let all = fields(&counted(&line))[0][0].clone();
        assert_eq!(all, "3");
        let filter = ["--filter", "filename ~ \"*/ls\""];
        let filtered = [&line[..3], &filter, &line[3..]].concat();
        assert_eq!(fields(&counted(&filtered))[0][0], "2");
        Ok(())
    });
}

#[test]
fn modes_and_groups_for_all_events() {
    let faults = "page-faults,minor-faults,major-faults";
    let text = counted(&["-x;", "--all-user", "-g", "-e", faults, "true"]);
    let number = |line: &[String]| line[0].parse::<u64>().expect("a count");
    let [all, minor, major] = [0, 1, 2].map(|line| number(&fields(&text)[line]));
    assert_eq!(all, minor + major, "{text}");
    check("modes_and_groups_for_all_events", || {
        probe::whole_cpus()?;
        let kernel = counted(&["-x;", "--all-kernel", "-e", "page-faults", "true"]);
        let all = counted(&["-x;", "-e", "page-faults", "true"]);
        let [kernel, all]: [f64; 2] = [&kernel, &all].map(|t| fields(t)[0][0].parse().unwrap());
        assert!(kernel < all, "{kernel} {all}");
        Ok(())
    });
}

#[test]
fn a_plan_is_made_before_anything_is_counted() {
    let plan = |arguments: &[&str]| whit(arguments).output().unwrap();
    let output = plan(&["--plan=k10", "-e", "r1,r2,r3,r4,r5,faults", "--", "false"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "the command is not run: {}", output.status);
    assert!(text.contains("80% of the time (4 of 5 turns)"), "{text}");
    assert!(text.ends_with("needs no counter of this PMU: faults\n"), "{text}");
    let output = plan(&["--plan=i386"]);
    assert!(said(&output).contains("choose one of skylake,"), "{}", said(&output));
    // Two cgroups share what BPF counts; the kernel counts each while its tasks run.
    for (engine, heading, times) in [
        ("--bpf-counters=on", "cgroups counted by BPF", 1),
        ("--bpf-counters=off", "while tasks of", 2),
    ] {
        let line = ["--plan=k10", engine, "-a", "-e", "r1,r2", "-G", "a,/b"];
        let text = String::from_utf8_lossy(&plan(&line).stdout).into_owned();
        assert_eq!(text.matches(heading).count(), times, "{text}");
    }
    // Nobody to count is needed; a machine without a PMU says what can be planned for.
    let output = plan(&["--plan", "-e", "cycles"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap() + &said(&output);
    assert!(text.contains("PMU of this CPU: ") || text.contains("--plan=skylake"), "{text}");
}
