//! CPU time is charged for the time that is recorded, not for the time in which the recorder set up or was
//! paused.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::tools::{record, text, whit};
use crate::support::{Skip, check};

const ENGINES: [&str; 2] = ["--engine=ring", "--engine=bpf"];
/// Keeps one CPU busy until it is killed.
const SPIN: &str = "while :; do :; done";

fn switches(data: &Path) -> Value {
    let json = text(whit().args(["switches", "--json", "--kallsyms", "/dev/null", "-i"]).arg(data));
    serde_json::from_str(&json).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn cpu_ns(json: &Value) -> u64 {
    number(&json["total"]["cpu_ns"]) + number(&json["total"]["lossy_cpu_ns"])
}

/// Records with `arguments` and gives the switches, with the time that the whole command took.
fn recorded(engine: &str, arguments: &[&str]) -> Result<(Value, Duration), Skip> {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("perf.data");
    let begin = Instant::now();
    record(
        whit()
            .args(["record", engine, "--switch-events", "-e", "cpu-clock", "-F", "999", "-o"])
            .arg(&data)
            .args(arguments)
            .stdout(Stdio::null()),
    )?;
    Ok((switches(&data), begin.elapsed()))
}

/// Set-up of the BPF engine takes seconds, in which sideband is recorded.
#[test]
fn cpus_have_no_more_time_than_was_recorded() {
    check("cpus_have_no_more_time_than_was_recorded", || {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        for engine in ENGINES {
            let (json, _) = recorded(engine, &["-a", "--", "sleep", "0.5"])?;
            let recorded_ns = number(&json["recorded_ns"]);
            // `sleep` runs inside of it.
            assert!(recorded_ns >= 500_000_000, "{engine}: {recorded_ns}");
            let span = &json["span_ns"];
            assert_eq!(number(&span[1]) - number(&span[0]), recorded_ns, "{engine}");
            let most_ns = cpus * recorded_ns;
            // Clocks of CPUs differ by microseconds.
            assert!(cpu_ns(&json) <= most_ns + most_ns / 1000, "{engine}: {json}");
            let warnings = json["warnings"].to_string();
            assert!(!warnings.contains("CPU times are wrong"), "{engine}: {warnings}");
        }
        Ok(())
    });
}

struct Spinner(std::process::Child);

impl Spinner {
    fn start() -> Spinner {
        Spinner(Command::new("sh").args(["-c", SPIN]).spawn().expect("run sh"))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that runs when recording begins, and may not switch once.
#[test]
fn one_thread_has_no_more_time_than_was_recorded() {
    check("one_thread_has_no_more_time_than_was_recorded", || {
        for engine in ENGINES {
            let spinner = Spinner::start();
            let pid = spinner.0.id().to_string();
            let (json, _) = recorded(engine, &["-p", &pid, "--", "sleep", "0.5"])?;
            let recorded_ns = number(&json["recorded_ns"]);
            assert!(recorded_ns >= 500_000_000, "{engine}: {recorded_ns}");
            assert!(cpu_ns(&json) > 0 && cpu_ns(&json) <= recorded_ns, "{engine}: {json}");
        }
        Ok(())
    });
}

/// Events are on for 100 ms, twice; the loop runs all the time.
#[test]
fn time_between_ranges_is_not_charged() {
    check("time_between_ranges_is_not_charged", || {
        for engine in ENGINES {
            let spinner = Spinner::start();
            let pid = spinner.0.id().to_string();
            let (json, wall) =
                recorded(engine, &["-D", "200-300,600-700", "-p", &pid, "--", "sleep", "1"])?;
            let recorded_ns = number(&json["recorded_ns"]);
            // The recorder switches events on and off late where it does not get a CPU, but it was off for
            // as long as it slept between: 200, 300 and 300 ms.
            assert!(recorded_ns > 0, "{engine}: {json}");
            assert!(recorded_ns + 300_000_000 < wall.as_nanos() as u64, "{engine}: {json}");
            assert!(cpu_ns(&json) > 0 && cpu_ns(&json) <= recorded_ns, "{engine}: {json}");
            let span = &json["span_ns"];
            let gap = number(&span[1]) - number(&span[0]) - recorded_ns;
            assert!(gap > 100_000_000, "{engine}: {json}");
        }
        Ok(())
    });
}
