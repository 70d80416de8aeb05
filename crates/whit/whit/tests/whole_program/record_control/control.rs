//! `--control`, `-D`.

use super::support::{
    TestFolder, WORK, has_perf, perf, samples, stderr, wait_for_command, wait_for_work,
};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs until it is ended.
const ENDLESS: &str = "while :; do :; done";

/// The two ends of a control channel.
pub(crate) struct Channel {
    control: File,
    ack: BufReader<File>,
}

impl Channel {
    pub(crate) fn make(place: &TestFolder) -> Channel {
        let open = |name: &str| {
            let path = place.path(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            File::options().read(true).write(true).open(path).unwrap()
        };
        Channel { control: open("ctl"), ack: BufReader::new(open("ack")) }
    }

    fn send(&mut self, command: &str) {
        self.control.write_all(format!("{command}\n").as_bytes()).unwrap();
    }

    /// Sends, and waits for the answer.
    pub(crate) fn ask(&mut self, command: &str) {
        self.send(command);
        let mut answer = String::new();
        self.ack.read_line(&mut answer).unwrap();
        assert_eq!(answer, "ack\n", "{command}");
    }
}

fn controlled(modes: &[&str]) {
    let place = TestFolder::new();
    let mut channel = Channel::make(&place);
    let events = "cpu-clock:u,task-clock:u";
    let fixed = ["-e", events, "-D", "-1", "--control", "fifo:ctl,ack", "-o", "out"];
    let command = ["--", "sh", "-c", ENDLESS];
    let whit = place.start(&[&fixed[..], modes, &command].concat());
    let command = wait_for_command(&whit, "sh");
    let burn = || wait_for_work(command, WORK);
    channel.ask("ping");
    burn();
    channel.ask("enable task-clock:u");
    burn();
    channel.ask("disable");
    channel.ask("evlist -F");
    channel.ask("evlist -v");
    channel.send("dance");
    channel.ask("enable nonsense");
    channel.ask("enable");
    burn();
    channel.ask("stop");
    let output = whit.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stderr(&output);
    for wanted in [
        "cpu-clock:u: sample_freq=4000",
        "sample_type: IP|TID|TIME",
        "Events disabled",
        "'task-clock:u' enabled",
        "'dance' is no command",
        "no event 'nonsense' is recorded",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    assert!(samples(&output)[0] > 0, "{text}");
    if !has_perf("controlled") {
        return;
    }
    let script = perf(&["script", "-F", "event,time"], &place.path("out"));
    let time = |line: &str| {
        let time = line.split_ascii_whitespace().find_map(|w| w.strip_suffix(':')?.parse().ok());
        time.unwrap_or_else(|| panic!("no time in {line}"))
    };
    let of =
        |event: &str| script.lines().filter(|l| l.contains(event)).map(time).collect::<Vec<f64>>();
    let (cpu, task) = (of("cpu-clock"), of("task-clock"));
    assert!(!cpu.is_empty() && !task.is_empty(), "{script}");
    let before = task.iter().filter(|time| **time < cpu[0]).count();
    assert!(before > 0, "one event was on before the other");
    // In the order of time there is a gap, in which everything was off.
    let mut times = task;
    times.sort_by(f64::total_cmp);
    assert!(times.windows(2).any(|pair| pair[0] < cpu[0] && pair[1] >= cpu[0] - 0.02));
}

#[test]
fn commands_switch_events_and_are_answered() {
    controlled(&[]);
}

#[test]
fn commands_go_with_parallel_asynchronous_compressed_streams() {
    controlled(&["--threads", "--aio", "-z", "--affinity=cpu"]);
}

/// Number of switches, with the recorded time in nanoseconds.
fn switches(place: &TestFolder) -> (u64, u64) {
    let mut whit = Command::new(env!("CARGO_BIN_EXE_whit"));
    whit.args(["switches", "--json", "--kallsyms", "/dev/null", "-i"]).arg(place.path("out"));
    let output = whit.output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let total = &json["total"];
    (number(&total["sync_count"]) + number(&total["preempt_count"]), number(&json["recorded_ns"]))
}

/// The programs that record switches are no events, but are switched on and off with them.
#[test]
fn switches_are_recorded_while_events_are_enabled() {
    whit_testing::check("switches_are_recorded_while_events_are_enabled", || {
        for engine in ["--engine=ring", "--engine=bpf"] {
            whit_testing::run::needs_of_line([engine])?;
            let place = TestFolder::new();
            let mut channel = Channel::make(&place);
            let fixed = ["-D", "-1", "--control", "fifo:ctl,ack", "-o", "out", "--switch-events"];
            let sleeps = "while :; do sleep 0.001; done";
            let command = [engine, "-e", "cpu-clock", "--", "sh", "-c", sleeps];
            let whit = place.start(&[&fixed[..], &command].concat());
            let program = wait_for_command(&whit, "sh");
            let work = || wait_for_work(program, Duration::from_millis(1));
            let (mut least, mut most) = (Duration::ZERO, Duration::ZERO);
            for _ in 0..2 {
                let asked = Instant::now();
                channel.ask("enable");
                let enabled = Instant::now();
                work();
                least += enabled.elapsed();
                channel.ask("disable");
                most += asked.elapsed();
                work();
            }
            channel.ask("stop");
            let output = whit.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let (switches, recorded_ns) = switches(&place);
            assert!(switches > 0, "{engine}");
            // Both halves, and not the time between.
            let recorded = Duration::from_nanos(recorded_ns);
            assert!((least..=most).contains(&recorded), "{least:?} {recorded:?} {most:?}");
        }
        Ok(())
    });
}

#[test]
fn events_are_on_within_ranges_of_time() {
    let place = TestFolder::new();
    let line = ["-v", "-e", "cpu-clock:u", "-D", "1-40,80-5000", "--", "sh", "-c"];
    let script = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.1";
    let output = place.run(&[&line[..], &[script]].concat());
    let text = stderr(&output);
    for wanted in ["on after 1 ms", "off after 40 ms", "on after 80 ms"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    assert!(!text.contains("off after 5000 ms"), "{text}");
}

#[test]
fn a_channel_that_closes_changes_nothing() {
    let place = TestFolder::new();
    let script = "exec 9<&0; whit=$1; shift; exec \"$whit\" record \"$@\"";
    let mut whit = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_whit")])
        .args(["-e", "cpu-clock:u", "--control", "fd:9", "-o", "out", "--", "sleep", "0.2"])
        .current_dir(place.dir.path())
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    whit.stdin.take().unwrap().write_all(b"ping\n").unwrap();
    let output = whit.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(samples(&output).len(), 1);
}

#[test]
fn channels_that_are_not_there_are_named() {
    let place = TestFolder::new();
    for (channel, wanted) in [("fifo:nobody", "fifo:nobody"), ("fd:999", "fd:999"), ("x", "fd:CTL")]
    {
        let output = place.run(&["--control", channel, "-e", "cpu-clock:u", "true"]);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
    }
}
