//! `whit watch --flight`: events write the last seconds into a file.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;
use whit_testing::cgroups::Limited;
use whit_testing::probe;
use whit_testing::run::{needs_of_line, stderr, stdout};
use whit_testing::wait::{Busy, Load, is_soon, signal, wait_until};

use crate::support::tools::{command, number, perf, sibling, whit, whole_files, workload};
use crate::support::{Skip, check};

/// A service that keeps the last seconds.
struct Flight {
    child: Child,
    place: tempfile::TempDir,
}

impl Flight {
    fn start(rules: &str) -> Result<Flight, Skip> {
        Flight::start_with(rules, &["--flight=3s"])
    }

    fn start_with(rules: &str, options: &[&str]) -> Result<Flight, Skip> {
        needs_of_line(["record", "-a"])?;
        sibling("whit-watch");
        let place = tempfile::tempdir().unwrap();
        let log = fs::File::create(place.path().join("log")).unwrap();
        let mut watch = whit();
        watch.args(["watch", "--format=none", "--idle", "--event=cpu-clock"]);
        watch.arg("--folder").arg(place.path()).arg("--socket").arg(place.path().join("status"));
        watch.args(["--set", "trigger.min-interval-s=0", "--set", &format!("trigger.on={rules}")]);
        watch.args(options);
        let socket = place.path().join("socket");
        watch.arg("--set").arg(format!("trigger.socket={}", socket.display()));
        let child = watch.env("HOME", place.path()).stderr(log).spawn().unwrap();
        let flight = Flight { child, place };
        if !is_soon(|| flight.log().contains("whit watch: recording: a window ends")) {
            panic!("no recording: {}", flight.log());
        }
        Ok(flight)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.path().join("log")).unwrap_or_default()
    }

    fn send(&self, message: &str) {
        let socket = UnixDatagram::unbound().unwrap();
        socket.send_to(message.as_bytes(), self.place.path().join("socket")).unwrap();
    }

    fn dumps(&self) -> Vec<PathBuf> {
        let mut dumps = whole_files(&self.place.path().join("dumps"));
        dumps.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
        dumps
    }

    /// Waits until there are so many; gives the newest one.
    fn dump(&self, number: usize) -> PathBuf {
        if !is_soon(|| self.dumps().len() >= number) {
            panic!("{} dumps: {}", self.dumps().len(), self.log());
        }
        self.dumps().pop().unwrap()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        signal(&self.child, "-TERM");
        let _ = self.child.wait();
    }
}

/// The report of a dump, with its warnings.
fn report(dump: &Path, options: &[&str]) -> String {
    let mut report = whit();
    report.args(["report", "--stdio", "-g", "none"]).args(options).arg("-i").arg(dump);
    let output = report.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// Counts by type that both tools print in the same form.
fn counts(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains("events:"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn signals_latencies_and_requests_are_dumped() {
    check("flight::signals_latencies_and_requests_are_dumped", || {
        let flight = Flight::start("signal,latency:shop:250ms")?;
        signal(&flight.child, "-USR2");
        let text = report(&flight.dump(1), &[]);
        assert!(text.contains("Triggered by signal") && text.contains("SIGUSR2"), "{text}");
        for ms in [1, 100, 250] {
            flight.send(&format!("latency shop {ms}"));
        }
        flight.send("latency shop 251");
        let text = report(&flight.dump(2), &[]);
        assert!(text.contains("Triggered by latency") && text.contains("took 251ms"), "{text}");
        flight.send("dump please");
        let dump = flight.dump(3);
        let text = report(&dump, &[]);
        assert!(text.contains("Triggered by request"), "{text}{}", flight.log());
        assert_eq!(flight.dumps().len(), 3, "short latencies are no event");
        let mut perf = perf()?;
        let of_perf = stdout(&perf.args(["report", "--stats", "-i"]).arg(&dump).output().unwrap());
        let of_whit =
            stdout(&whit().args(["report", "--stats", "-i"]).arg(&dump).output().unwrap());
        assert_eq!(counts(&of_whit), counts(&of_perf));
        assert!(counts(&of_perf).iter().any(|line| line.starts_with("SWITCH_CPU_WIDE")));
        Ok(())
    });
}

#[test]
fn programs_that_are_gone_have_names() {
    check("flight::programs_that_are_gone_have_names", || {
        let flight = Flight::start("signal")?;
        // It runs before the kept seconds begin, and ends within them.
        let gone = flight.place.path().join("gone-program");
        whit_testing::run::copy_program("/bin/sh", &gone);
        let mut load = Load::start(Command::new(&gone).args(["-c", "while :; do :; done"]));
        let mut dumps = 0;
        let is_whole = || {
            dumps += 1;
            flight.send("dump");
            !report(&flight.dump(dumps), &[]).contains("wanted")
        };
        wait_until("the recorder is older than the kept seconds", is_whole);
        load.end();
        flight.send("dump");
        let dump = flight.dump(dumps + 1);
        fs::remove_file(&gone).unwrap();
        let text = report(&dump, &["--sort", "comm,dso"]);
        let is_named = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().skip(2).collect();
            words == ["gone-program", "gone-program"]
        };
        assert!(text.lines().any(is_named), "{text}");
        assert!(text.contains("this is a dump: the last ") && !text.contains("wanted"), "{text}");
        Ok(())
    });
}

#[test]
fn the_end_of_a_process_is_dumped() {
    check("flight::the_end_of_a_process_is_dumped", || {
        probe::pidfd()?;
        let mut busy = Busy::start();
        let flight = Flight::start(&format!("exit:{}", busy.id()))?;
        assert!(flight.dumps().is_empty());
        busy.end();
        assert!(report(&flight.dump(1), &[]).contains("Triggered by exit"));
        Ok(())
    });
}

#[test]
fn a_throttled_cgroup_is_dumped() {
    check("flight::a_throttled_cgroup_is_dumped", || {
        let mount = probe::cgroups_v2()?;
        let name = format!("whit-flight-{}", std::process::id());
        let flight = Flight::start(&format!("throttle:50ms/1s@{name}"))?;
        let _limited = Limited::start(&mount, &name, 10)?;
        let text = report(&flight.dump(1), &[]);
        assert!(text.contains("Triggered by throttling") && text.contains(&name), "{text}");
        Ok(())
    });
}

#[test]
fn stalls_are_dumped() {
    check("flight::stalls_are_dumped", || {
        fs::OpenOptions::new()
            .write(true)
            .open("/proc/pressure/cpu")
            .map_err(|error| Skip(format!("/proc/pressure/cpu cannot be written: {error}")))?;
        let flight = Flight::start("psi:cpu:some:20ms/1s")?;
        let cpus = std::thread::available_parallelism().unwrap().get();
        let _crowd: Vec<Busy> = (0..2 * cpus).map(|_| Busy::start()).collect();
        assert!(report(&flight.dump(1), &[]).contains("Triggered by pressure"));
        Ok(())
    });
}

/// The server knows the keys of its slow calls.
#[test]
fn slow_requests_are_dumped_and_named() {
    check("flight::slow_requests_are_dumped_and_named", || {
        probe::uprobes()?;
        const SLOW: [u64; 3] = [23, 49, 99];
        const LIMIT_NS: u64 = 10_000_000;
        let program = workload("requests")?;
        let spec = format!("--request=call={}:handle,key=%di", program.display());
        let recorder = format!("--record-options=[{spec:?}]");
        let flight = Flight::start_with("request:call:10ms", &["--flight=10s", &recorder])?;
        let served = command(&program).args(["--requests", "100"]).output().unwrap();
        assert!(served.status.success(), "{}", stderr(&served));
        let mut named = BTreeSet::new();
        let mut read = 0;
        wait_until("all slow requests are dumped", || {
            for dump in flight.dumps().into_iter().skip(read) {
                read += 1;
                named.insert(key_of_named_request(&dump, LIMIT_NS));
            }
            SLOW.iter().all(|key| named.contains(key))
        });
        let has_line = |line: &&str| line.contains("after slow-request: request:call:10ms, took ");
        wait_until("the log has each dump", || {
            flight.log().lines().filter(has_line).count() == flight.dumps().len()
        });
        Ok(())
    });
}

/// The key of the request that a dump names. The dump has this request, which is above the limit.
fn key_of_named_request(dump: &Path, limit_ns: u64) -> u64 {
    let mut requests = whit();
    requests.args(["requests", "--json", "--slowest=1000", "-i"]).arg(dump);
    let requests: Value = serde_json::from_str(&stdout(&requests.output().unwrap())).unwrap();
    let warnings = requests["warnings"].as_array().expect("warnings").iter();
    let is_of_dump = |text: &&str| text.contains("Triggered by slow-request");
    let line = warnings.filter_map(Value::as_str).find(is_of_dump);
    let line = line.unwrap_or_else(|| panic!("{requests}"));
    // A busy recorder may add that it was late.
    let line = line.split_once(" (the newest").map_or(line, |(line, _)| line);
    let of_name = &requests["requests"][0];
    assert_eq!(of_name["name"], "call", "{requests}");
    let calls = of_name["slowest"].as_array().expect("calls").iter();
    let is_named = |call: &&Value| {
        let took = Duration::from_nanos(number(call, "duration_ns"));
        line.contains(&format!("took {took:?} in thread {} of", call["tid"]))
            && line.ends_with(&format!(", key {}", call["key"]))
    };
    let call = calls.into_iter().find(is_named).unwrap_or_else(|| panic!("{line}: {of_name}"));
    assert!(number(call, "duration_ns") > limit_ns, "{call}");
    number(call, "key")
}

#[test]
fn dumps_continue_after_the_recorder_was_killed() {
    check("flight::dumps_continue_after_the_recorder_was_killed", || {
        let flight = Flight::start("signal")?;
        let children = format!("/proc/{0}/task/{0}/children", flight.child.id());
        // Another child reads files of others.
        let is_recorder = |pid: &&str| {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
            comm.is_ok_and(|comm| comm != "whit-helper\n")
        };
        let recorder = || {
            let pids = fs::read_to_string(&children).unwrap();
            pids.split_whitespace().find(is_recorder).unwrap_or_default().to_owned()
        };
        let old = recorder();
        assert!(Command::new("kill").args(["-KILL", &old]).status().unwrap().success());
        wait_until("another recorder runs", || !recorder().is_empty() && recorder() != old);
        // The first events may come before it records.
        let has_dump = || {
            flight.send("dump");
            !flight.dumps().is_empty()
        };
        wait_until("there is a dump", has_dump);
        assert!(report(&flight.dump(1), &[]).contains("Triggered by request"));
        Ok(())
    });
}
