//! Intervals, limits of time, delays, and who controls a count.

use super::support::{
    check, counted, fields, probe, said, signal, start, text, values, wait_for_command, whit,
};
use std::io::{Read, Write};

/// Pages that no process touches by itself.
const FAULTS: &str = "i=0; while [ $i -lt 40 ]; do dd if=/dev/zero of=/dev/null bs=1M count=2 \
                      status=none; i=$((i+1)); done";

#[test]
fn intervals_add_up_to_the_total() {
    for length in ["1", "7", "50"] {
        let line = [
            "-x;",
            "-I",
            length,
            "--summary",
            "-e",
            "page-faults,minor-faults",
            "sh",
            "-c",
            FAULTS,
        ];
        let lines = fields(&counted(&line));
        let (summary, intervals): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line[0] == "summary");
        for event in ["page-faults", "minor-faults"] {
            let parts = values(&intervals, event, 1);
            let total = values(&summary, event, 1);
            assert_eq!(total.len(), 1);
            assert!(total[0] > 1000.0, "{total:?}");
            assert_eq!(parts.iter().sum::<f64>(), total[0], "of {} intervals", parts.len());
        }
        let times: Vec<f64> = intervals.iter().map(|line| line[0].parse().unwrap()).collect();
        assert!(times.is_sorted() && times[0] > 0.0);
    }
}

#[test]
fn a_count_of_whole_cpus_in_intervals_adds_up_too() {
    check("a_count_of_whole_cpus_in_intervals_adds_up_too", || {
        probe::whole_cpus()?;
        let line =
            ["-a", "-x;", "-I", "5", "--summary", "-A", "-e", "page-faults", "sh", "-c", FAULTS];
        let lines = fields(&counted(&line));
        let (summary, intervals): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line[0] == "summary");
        let total: f64 = values(&summary, "page-faults", 2).iter().sum();
        assert_eq!(values(&intervals, "page-faults", 2).iter().sum::<f64>(), total);
        Ok(())
    });
}

#[test]
fn intervals_become_longer_where_they_cost_too_much_and_still_add_up() {
    let line = |percent| {
        let budget = ["--max-overhead", percent];
        let fixed = ["-x;", "-I", "1", "--summary", "-e", "page-faults", "sh", "-c", FAULTS];
        whit_testing::run::run(&mut whit(&[&budget[..], &fixed].concat()))
    };
    let rows = |output: &std::process::Output| {
        let lines = fields(&said(output));
        let (summary, intervals): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line[0] == "summary");
        let parts = values(&intervals, "page-faults", 1);
        assert_eq!(parts.iter().sum::<f64>(), values(&summary, "page-faults", 1)[0]);
        parts.len()
    };
    let [free, limited] = ["100", "0.01"].map(line);
    let message = "times the length that was asked for";
    assert!(said(&limited).contains(message), "{}", said(&limited));
    assert!(!said(&free).contains(message), "{}", said(&free));
    let [free, limited] = [rows(&free), rows(&limited)];
    assert!(limited * 4 < free, "{limited} of {free} intervals");
}

#[test]
fn so_many_intervals_are_printed_and_the_command_ended() {
    let line = ["-x;", "-I", "10", "--interval-count", "3", "-e", "dummy", "sleep", "100"];
    let lines = fields(&counted(&line));
    assert_eq!(lines.len(), 3, "{lines:?}");
    let end = counted(&["--timeout", "20", "-e", "dummy", "sleep", "100"]);
    assert!(end.contains("seconds time elapsed"), "{end}");
    // Where perf wants one or the other.
    let both = counted(&["-x;", "-I", "1000", "--timeout", "20", "-e", "dummy", "sleep", "100"]);
    assert_eq!(fields(&both).len(), 1, "{both}");
}

#[test]
fn a_delayed_count_leaves_the_beginning_out() {
    let whole = "sh -c :; sleep 0.3";
    let all = values(
        &fields(&counted(&["-x;", "-e", "page-faults", "sh", "-c", whole])),
        "page-faults",
        0,
    );
    let line = ["-x;", "-D", "150", "-e", "page-faults", "sh", "-c", whole];
    let output = whit(&line).output().unwrap();
    let text = said(&output);
    assert!(text.contains("Events disabled\nEvents enabled\n"), "{text}");
    let late = values(&fields(&text), "page-faults", 0);
    assert!(late[0] < all[0] / 2.0, "{late:?} {all:?}");
}

#[test]
fn a_signal_ends_a_count_and_prints_it() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let whit = start(&["-e", "page-faults", "sleep", "1000"]);
        wait_for_command(&whit, "sleep");
        signal(&whit, name);
        let output = whit.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}");
        assert!(said(&output).contains("page-faults"), "{}", said(&output));
    }
}

#[test]
fn a_command_that_handles_a_signal_is_counted_to_its_end() {
    let script = "trap 'echo handled; exit 3' INT; echo ready; while :; do sleep 0.01; done";
    let mut whit = start(&["-e", "page-faults", "sh", "-c", script]);
    let mut ready = [0; 6];
    whit.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    signal(&whit, "-INT");
    let output = whit.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "handled\n");
    assert_eq!(output.status.code(), Some(130));
    assert!(said(&output).contains("seconds user"), "{}", said(&output));
}

#[test]
fn a_count_without_a_command_ends_with_a_signal() {
    check("a_count_without_a_command_ends_with_a_signal", || {
        probe::whole_cpus()?;
        let whit = start(&["-a", "-e", "context-switches"]);
        super::support::wait_for_events(&whit);
        signal(&whit, "-INT");
        let output = whit.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        assert!(said(&output).contains("'system wide'"), "{}", said(&output));
        Ok(())
    });
}

#[test]
fn a_count_is_controlled_through_pipes() {
    let dir = tempfile::tempdir().unwrap();
    let [control, ack] = ["control", "ack"].map(|name| {
        let path = dir.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    });
    let channel = format!("fifo:{},{}", control.display(), ack.display());
    let line = ["-D", "-1", "--control", &channel, "-x;", "-e", "page-faults", "sleep", "1000"];
    let whit = start(&line);
    let mut orders = std::fs::OpenOptions::new().write(true).open(&control).unwrap();
    let mut answers = std::fs::OpenOptions::new().read(true).open(&ack).unwrap();
    for order in ["ping", "enable", "disable", "evlist", "dance", "stop"] {
        orders.write_all(format!("{order}\n").as_bytes()).unwrap();
        if order != "dance" {
            let mut answer = [0; 4];
            answers.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"ack\n", "{order}");
        }
    }
    let output = whit.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = said(&output);
    for wanted in ["Events enabled", "Events disabled", "'dance' is no command", ";page-faults;"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
}

#[test]
fn commands_run_before_and_after_each_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = whit(&["-r", "2", "--null", "--pre", "echo pre >> log", "--post"]);
    command.args(["echo post >> log", "-S", "sh", "-c", "echo run >> log"]).current_dir(dir.path());
    text(command);
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log.split_whitespace().collect::<Vec<_>>().join(" "), "pre run post pre run post");
    let failed = whit(&["--pre", "exit 3", "--null", "true"]).output().unwrap();
    assert!(!failed.status.success() && said(&failed).contains("'exit 3'"));
}

#[test]
fn runs_for_ever_end_with_a_signal() {
    let mut whit = start(&["-r", "0", "-x;", "-e", "page-faults", "true"]);
    let mut first = [0; 200];
    whit.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    signal(&whit, "-INT");
    let output = whit.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8_lossy(&first);
    assert!(text.lines().filter(|line| line.contains(";page-faults;")).count() > 1, "{text}");
}
