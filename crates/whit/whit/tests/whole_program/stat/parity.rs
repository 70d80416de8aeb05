//! The same work under `perf stat` and under `whit stat`.

use super::support::{Skip, check, counted, fields, perf, probe, text, values, whit, workload};
use std::collections::BTreeSet;

/// A shell that writes a file; dd faults and switches about the same whenever it runs.
const WORK: [&str; 4] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M"];
const COUNT: &str = "count=20";

fn work(options: &[&'static str]) -> Vec<&'static str> {
    [options, &["--"], &WORK, &[COUNT, "status=none"]].concat()
}

/// Both tools on the same work, in turn, so that what changes meanwhile changes for both.
fn both(options: &[&'static str]) -> Result<(String, String), Skip> {
    let line = work(options);
    Ok((counted(&line), text(perf(&line)?)))
}

/// Events whose number does not depend on the machine's load.
const STEADY: &str = "page-faults,minor-faults,page-faults:u,{page-faults,minor-faults}";

#[test]
fn counts_are_those_of_perf() {
    check("counts_are_those_of_perf", || {
        let options = ["-x;", "-e", STEADY];
        for _ in 0..3 {
            let (ours, theirs) = both(&options)?;
            let (ours, theirs) = (fields(&ours), fields(&theirs));
            assert_eq!(ours.len(), theirs.len());
            for (our, their) in ours.iter().zip(&theirs) {
                let [our_count, their_count]: [f64; 2] =
                    [our, their].map(|line| line[0].parse().unwrap());
                let close = (our_count - their_count).abs() <= 0.05 * their_count + 5.0;
                assert!(close, "{our:?} is not about {their:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn processes_and_their_exits_are_counted_as_perf_counts_them() {
    check("processes_and_their_exits_are_counted_as_perf_counts_them", || {
        let forks = workload("forks")?;
        let program = forks.to_str().unwrap();
        let line =
            ["-x;", "-e", "page-faults,cpu-migrations,page-faults:u", program, "--count", "30"];
        let ours = values(&fields(&counted(&line)), "page-faults", 0)[0];
        let theirs = values(&fields(&text(perf(&line)?)), "page-faults", 0)[0];
        // Short of memory, the kernel takes pages from a process that it then faults in again.
        assert!((ours - theirs).abs() <= 0.1 * theirs, "{ours} {theirs}");
        // Thirty children touch more than one process does.
        let alone = [&line[..2], &["page-faults", "-i"], &line[3..]].concat();
        let alone = values(&fields(&counted(&alone)), "page-faults", 0)[0];
        assert!(alone < ours / 2.0, "without children {alone}, with them {ours}");
        Ok(())
    });
}

#[test]
fn instructions_are_those_of_perf() {
    check("instructions_are_those_of_perf", || {
        let line = work(&["-x;", "-e", "instructions:u"]);
        let (ours, theirs) = (fields(&counted(&line)), fields(&text(perf(&line)?)));
        if probe::hardware_events().is_err() {
            assert_eq!(ours[0][0], theirs[0][0]);
        }
        probe::hardware_events()?;
        let [our, their]: [f64; 2] = [&ours, &theirs].map(|lines| lines[0][0].parse().unwrap());
        assert!((our - their).abs() <= 0.02 * their, "{our} {their}");
        Ok(())
    });
}

/// A field with its digits taken for one another: counts and times differ from run to run.
fn form(field: &str) -> String {
    let is_number = field.trim_end_matches('%').parse::<f64>().is_ok();
    if is_number { "number".to_owned() } else { field.to_owned() }
}

/// `/sec`, `K/sec` and `M/sec` are the same unit.
fn unit_free(field: String) -> String {
    if field.ends_with("/sec") { "/sec".to_owned() } else { field }
}

fn forms(text: &str) -> Vec<Vec<String>> {
    let form = |line: Vec<String>| line.iter().map(|f| unit_free(form(f))).collect();
    fields(text).into_iter().map(form).collect()
}

#[test]
fn csv_has_perfs_fields_in_perfs_order() {
    check("csv_has_perfs_fields_in_perfs_order", || {
        // Without a clock: beside one, perf takes times for counts and gives their rate.
        let events = "task-clock,page-faults,cpu-clock,dummy,cycles";
        for options in [
            &["-x;", "-e", events][..],
            &["-x;"],
            &["-x;", "-d", "-d", "-d"],
            &["-x;", "-e", "duration_time,page-faults"],
            &["-x;", "-r", "2", "-e", "task-clock,page-faults"],
            &["-x;", "-e", "{page-faults,minor-faults},task-clock:u"],
            &["-x;", "--no-scale", "-e", events],
        ] {
            let (ours, theirs) = both(options)?;
            assert_eq!(forms(&ours), forms(&theirs), "{options:?}");
        }
        Ok(())
    });
}

#[test]
fn csv_of_whole_cpus_has_perfs_fields() {
    check("csv_of_whole_cpus_has_perfs_fields", || {
        probe::whole_cpus()?;
        let events = "cpu-clock,page-faults,context-switches";
        for mode in ["-A", "--per-core", "--per-die", "--per-socket", "--per-node"] {
            let (ours, theirs) = both(&["-x;", "-a", mode, "-e", events])?;
            assert_eq!(forms(&ours), forms(&theirs), "{mode}");
        }
        Ok(())
    });
}

/// Keys of each object, in order.
fn keys(text: &str) -> Vec<Vec<String>> {
    let object = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect(line);
        value.as_object().expect(line).keys().cloned().collect()
    };
    text.lines().map(object).collect()
}

#[test]
fn json_has_perfs_keys() {
    check("json_has_perfs_keys", || {
        for options in [
            &["-j", "-e", "task-clock,page-faults,cycles"][..],
            &["-j", "-r", "2", "-e", "task-clock,page-faults"],
        ] {
            let (ours, theirs) = both(options)?;
            assert_eq!(keys(&ours), keys(&theirs), "{options:?}");
        }
        // perf may leave the last interval out, and then prints nothing of a command that is shorter than an interval.
        let intervals = ["-j", "-I", "100", "-e", "task-clock,page-faults", "sleep", "0.25"];
        let (ours, theirs) = (keys(&counted(&intervals)), keys(&text(perf(&intervals)?)));
        assert_eq!(ours[..2], theirs[..2]);
        probe::whole_cpus()?;
        for mode in ["-A", "--per-core", "--per-die", "--per-socket", "--per-node"] {
            let (ours, theirs) = both(&["-j", "-a", mode, "-e", "cpu-clock,page-faults"])?;
            assert_eq!(keys(&ours), keys(&theirs), "{mode}");
        }
        Ok(())
    });
}

#[test]
fn text_names_the_same_things() {
    check("text_names_the_same_things", || {
        let words = |text: &str| {
            let lines = text.lines().take_while(|line| !line.contains(" # cycles"));
            let words =
                lines.flat_map(str::split_whitespace).map(|word| unit_free(word.to_owned()));
            words.filter(|w| w.parse::<f64>().is_err()).collect::<BTreeSet<String>>()
        };
        let (ours, theirs) = both(&["-e", "task-clock,page-faults,cycles,duration_time"])?;
        assert_eq!(words(&ours), words(&theirs));
        Ok(())
    });
}

#[test]
fn repeats_give_the_mean_and_its_spread() {
    check("repeats_give_the_mean_and_its_spread", || {
        let (ours, theirs) = both(&["-x;", "-r", "5", "-e", "page-faults"])?;
        let (ours, theirs) = (fields(&ours), fields(&theirs));
        let [our, their]: [f64; 2] = [&ours, &theirs].map(|l| l[0][0].parse().unwrap());
        assert!((our - their).abs() <= 0.05 * their, "{our} {their}");
        assert!(ours[0][3].ends_with('%'), "{ours:?}");
        let text = counted(&work(&["-r", "5", "--table"]));
        assert!(text.contains("(5 runs)") && text.contains("+-"), "{text}");
        let runs = text.lines().filter(|line| line.trim_end().ends_with('#'));
        assert_eq!(runs.count(), 5, "{text}");
        Ok(())
    });
}

#[test]
fn exit_codes_and_output_are_the_commands() {
    let output = whit(&["-e", "page-faults", "sh", "-c", "echo out; exit 7"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    let killed = whit(&["-e", "page-faults", "sh", "-c", "kill -9 $$"]).output().unwrap();
    assert_eq!(killed.status.code(), Some(137));
    let missing = whit(&["no-such-program"]).output().unwrap();
    assert!(!missing.status.success());
    assert!(super::support::said(&missing).contains("no-such-program"));
}
