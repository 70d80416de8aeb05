//! The class of each wait, in a program of threads that have the class in their names.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::tools::{command, number, record, text, whit, workload};
use crate::support::{Skip, check, probe};

/// Threads of the program with a class in their name.
const WAYS: usize = 17;

/// Records the program, whose tables are made in `dir`.
pub(crate) fn recorded(data: &Path, dir: &Path) -> Result<(), Skip> {
    probe::bpf_stacks()?;
    let mut program = command(workload("wait_classes")?);
    let program = program.arg(dir).args(["--milliseconds", "500"]);
    let mut recorder = whit();
    recorder.args(["record", "--engine=bpf", "--wakeups", "-q", "-o"]).arg(data);
    recorder.arg("--").arg(program.get_program()).args(program.get_args());
    record(&mut recorder).map(|_| ())
}

fn switches(data: &Path, arguments: &[&str]) -> Value {
    let json = text(whit().args(["switches", "--json", "-i"]).arg(data).args(arguments));
    serde_json::from_str(&json).expect("JSON")
}

/// Time of voluntary waits by thread name and class.
fn by_class(json: &Value) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut all: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for row in json["rows"].as_array().expect("rows") {
        let (comm, class) = (row["comm"].as_str().unwrap(), row["wait_class"].as_str().unwrap());
        let sum = all.entry(comm.to_owned()).or_default().entry(class.to_owned()).or_default();
        *sum += number(&row["sums"], "sync_wait_ns");
    }
    all
}

#[test]
fn threads_wait_for_what_their_names_say() {
    check("threads_wait_for_what_their_names_say", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        recorded(&data, dir.path())?;
        let all = by_class(&switches(&data, &[]));
        let named: Vec<_> = all.iter().filter(|(comm, _)| comm.contains(':')).collect();
        assert_eq!(named.len(), WAYS, "{all:?}");
        for (comm, classes) in named {
            let longest = classes.iter().max_by_key(|(_, ns)| **ns).expect("a class").0;
            let wanted = match comm.split_once(':').expect("a class").0 {
                "fault" => "page-fault",
                class => class,
            };
            assert_eq!(longest, wanted, "{comm}: {classes:?}");
        }
        filters_divide_the_waits(&data);
        delays_are_the_runnable_time(&switches(&data, &[]));
        Ok(())
    });
}

/// The delays of a thread are what its sums have in three columns.
fn delays_are_the_runnable_time(json: &Value) {
    let delays = json["run_queue"].as_array().expect("delays");
    assert!(delays.len() > WAYS, "{delays:?}");
    for of_thread in delays {
        let sums = &json["threads"][of_thread["thread"].as_u64().unwrap() as usize]["sums"];
        let runnable = ["runnable_ns", "preempt_wait_ns", "new_wait_ns"];
        let runnable_ns: u64 = runnable.iter().map(|key| number(sums, key)).sum();
        assert_eq!(number(of_thread, "total_ns"), runnable_ns, "{of_thread} {sums}");
        let [p50, p95, p99, max] =
            ["p50_ns", "p95_ns", "p99_ns", "max_ns"].map(|key| number(of_thread, key));
        assert!(p50 <= p95 && p95 <= p99 && p99 <= max, "{of_thread}");
    }
}

/// A class and all others have each wait once.
fn filters_divide_the_waits(data: &Path) {
    let wait_ns = |arguments: &[&str]| {
        let total = switches(data, arguments)["total"].clone();
        ["sync_wait_ns", "preempt_wait_ns", "new_wait_ns"].map(|key| number(&total, key))
    };
    let all = wait_ns(&[]);
    for class in ["lock", "io", "preempted"] {
        let (only, rest) = (wait_ns(&["--only-class", class]), wait_ns(&["--not-class", class]));
        assert!(only.iter().sum::<u64>() > 0, "{class}");
        let sums: Vec<_> = only.iter().zip(rest).map(|(only, rest)| only + rest).collect();
        assert_eq!(sums, all, "{class}");
    }
    let locks = switches(data, &["--only-class", "lock", "--worst", "5"]);
    let worst = locks["worst"].as_array().expect("waits");
    assert_eq!(worst.len(), 5);
    assert!(worst.iter().all(|wait| wait["wait_class"] == "lock"), "{worst:?}");
}

/// Two threads take a lock in turn, one waits for items, and a worker is idle.
const PYTHON: &str = "\
import queue, threading, time
from concurrent.futures import ThreadPoolExecutor
lock, items, end = threading.Lock(), queue.Queue(), time.monotonic() + 1
def hold():
    while time.monotonic() < end:
        with lock:
            time.sleep(0.002)
def take():
    while items.get() is not None:
        pass
pool = ThreadPoolExecutor(1)
pool.submit(int).result()
threads = [threading.Thread(target=work) for work in (hold, hold, take)]
for thread in threads:
    thread.start()
while time.monotonic() < end:
    items.put(1)
    time.sleep(0.01)
items.put(None)
for thread in threads:
    thread.join()
";

#[test]
fn threads_of_python_wait_for_what_their_functions_say() {
    check("threads_of_python_wait_for_what_their_functions_say", || {
        probe::bpf_stacks()?;
        let python = crate::python_stacks::python(&[], "3.11")?;
        let dir = tempfile::tempdir().expect("a folder");
        let (data, program) = (dir.path().join("perf.data"), dir.path().join("program.py"));
        std::fs::write(&program, PYTHON).expect("write a program");
        let mut recorder = whit();
        recorder.args(["record", "-N", "--engine=bpf", "--wakeups", "-q", "-o"]).arg(&data);
        recorder.arg("--").arg(python).arg(&program);
        record(&mut recorder)?;
        let waited = |function: &str, class: &str| {
            let arguments = ["--symbols", function, "--only-class", class];
            number(&switches(&data, &arguments)["total"], "sync_wait_ns")
        };
        // The other class is that of Python's own lock, for which a thread waits for moments.
        for (function, class, other) in [
            ("py::__main__.hold", "lock", "queue"),
            ("py::__main__.take", "queue", "lock"),
            ("py::concurrent.futures.thread._worker", "queue", "lock"),
        ] {
            let (wanted, unwanted) = (waited(function, class), waited(function, other));
            assert!(
                wanted > 4 * unwanted,
                "{function}: {wanted} of {class}, {unwanted} of {other}"
            );
        }
        let locks = text(whit().args(["locks", "--by", "callsite", "-i"]).arg(&data));
        assert!(locks.contains("  py::__main__.hold ("), "{locks}");
        Ok(())
    });
}
