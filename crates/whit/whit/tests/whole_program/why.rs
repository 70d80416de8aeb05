//! `whit why` of a pipeline with a planted slow stage, which says how long each stage computed.

use std::path::Path;

use serde_json::Value;
use whit_testing::run::{output, stderr};
use whit_testing::wait::Busy;

use crate::python_stacks::python;
use crate::support::tools::{command, number, record, text, whit, workload};
use crate::support::{Skip, check, probe};

const ITEMS: u64 = 100;

/// Time that a hand-over may add to the path or take from it: between the thread's own clock and the kernel's switch lie
/// the queue's code and the switch.
const HAND_OVER_NS: u64 = 50_000;

/// Records the pipeline; gives its output.
fn recorded(data: &Path) -> Result<String, Skip> {
    probe::bpf_stacks()?;
    let program = workload("pipeline")?;
    let mut recorder = whit();
    recorder.args(["record", "-q", "--engine=bpf", "--wakeups", "-F", "997", "-o"]).arg(data);
    recorder.arg("--").arg(program);
    let said = record(recorder.args(["--iterations", &ITEMS.to_string()]))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn cpu_ns(said: &str, stage: &str) -> u64 {
    let line = said.lines().find(|line| line.starts_with(&format!("stage name={stage} ")));
    let (_, ns) = line.and_then(|line| line.split_once("cpu_ns=")).expect("the stage's line");
    ns.parse().expect("a number")
}

fn tid<'a>(said: &'a str, stage: &str) -> &'a str {
    let line = said.lines().find(|line| line.starts_with(&format!("stage name={stage} ")));
    let (_, rest) = line.and_then(|line| line.split_once("tid=")).expect("the stage's line");
    rest.split(' ').next().expect("a number")
}

#[test]
fn the_slow_stage_of_a_pipeline_is_why() {
    check("the_slow_stage_of_a_pipeline_is_why", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let said = recorded(&data)?;
        let json = text(whit().args(["why", "--json", "-i"]).arg(&data));
        let why: Value = serde_json::from_str(&json).expect("JSON");
        let (duration, interval) = (number(&why, "duration_ns"), &why["intervals"][0]);
        // Both add up to the nanosecond, and pieces follow each other.
        let mut at = number(interval, "from_ns");
        for piece in interval["pieces"].as_array().expect("pieces") {
            assert_eq!(number(piece, "from_ns"), at, "{piece}");
            at += number(piece, "duration_ns");
        }
        assert_eq!(at, number(interval, "to_ns"));
        let groups = why["groups"].as_array().expect("groups");
        assert_eq!(groups.iter().map(|it| number(it, "duration_ns")).sum::<u64>(), duration);
        let on_path = |stage: &str, activities: &[&str]| {
            let of_stage = groups.iter().filter(|it| it["name"] == stage);
            let chosen =
                of_stage.filter(|it| activities.iter().any(|word| it["activity"] == *word));
            chosen.map(|it| number(it, "duration_ns")).sum::<u64>()
        };
        // A stage computes on the path, or while the path is at another thread. A kernel that hides switches makes
        // pieces unknown, and none wrong.
        let bound = ITEMS * HAND_OVER_NS;
        for stage in ["read", "transform", "write"] {
            let (computing, stated) = (on_path(stage, &["running"]), cpu_ns(&said, stage));
            let elsewhere =
                duration - computing - on_path(stage, &["preempted", "run-queue", "waiting"]);
            assert!(computing <= stated + bound, "{stage}: {computing} of {stated}: {groups:?}");
            assert!(computing + elsewhere + bound >= stated, "{stage}: {computing}: {groups:?}");
        }
        let (slow, unknown) = (on_path("transform", &["running"]), number(&why, "unknown_ns"));
        assert!(slow > 5 * on_path("write", &["running"]), "{slow}: {groups:?}");
        assert!(unknown < duration / 2, "{unknown} of {duration}: {groups:?}");
        // The first row of computing names the stage and its function.
        let running = groups.iter().find(|it| it["activity"] == "running").expect("a row");
        assert_eq!(running["name"], "transform", "{groups:?}");
        assert_eq!(running["functions"][0]["name"], "transform_item", "{running}");
        let shown = text(whit().args(["why", "-i"]).arg(&data));
        assert!(shown.contains("on CPU: transform_item"), "{shown}");
        let folded = text(whit().args(["why", "--folded", "-i"]).arg(&data));
        let ns = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
        assert_eq!(folded.lines().map(|line| ns(line).expect("a time")).sum::<u64>(), duration);
        let is_slow = |line: &&str| {
            let outer = line.split_once(";[on CPU];").map(|(outer, _)| outer);
            outer
                .and_then(|it| it.rsplit(';').next())
                .is_some_and(|it| it.starts_with("transform ("))
        };
        let folded_ns = folded.lines().filter(is_slow).filter_map(ns).sum::<u64>();
        assert_eq!(folded_ns, slow, "{folded}");
        assert!(folded.contains(";transform_item"), "{folded}");
        let path = text(whit().args(["why", "--path", "-i"]).arg(&data));
        assert!(path.lines().count() > ITEMS as usize, "{path}");
        Ok(())
    });
}

/// Hand-overs of a query: to the proxy, to the backend, and back the same way.
const HAND_OVERS: u64 = 4;
const QUERIES: u64 = 50;

/// The path of a client leads through the connections of two other processes, which it has made.
#[test]
fn a_path_leads_through_connections_to_other_processes() {
    check("a_path_leads_through_connections_to_other_processes", || {
        probe::bpf_stacks()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let program = workload("relay")?;
        let mut recorder = whit();
        recorder.args(["record", "-q", "--engine=bpf", "--wakeups", "-o"]).arg(&data);
        recorder.arg("--").arg(program);
        let said = record(recorder.args(["--iterations", &QUERIES.to_string()]))?;
        let said = String::from_utf8_lossy(&said);
        let (_, stated) = said.trim().split_once("cpu_ns=").expect("the line of the backend");
        let stated: u64 = stated.parse().expect("a number");
        let json = text(whit().args(["why", "--json", "-i"]).arg(&data));
        let why: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(why["intervals"][0]["thread"]["name"], "client");
        let groups = why["groups"].as_array().expect("groups");
        let of_backend = groups.iter().filter(|it| it["name"] == "backend");
        let running: Vec<_> = of_backend.filter(|it| it["activity"] == "running").collect();
        let ns: u64 = running.iter().map(|it| number(it, "duration_ns")).sum();
        let bound = QUERIES * HAND_OVERS * HAND_OVER_NS;
        // A kernel that hides switches makes pieces unknown, and none wrong.
        let unknown = number(&why, "unknown_ns");
        assert!(
            ns <= stated + bound && ns + unknown + bound >= stated,
            "{ns} of {stated}: {groups:?}"
        );
        assert!(unknown < number(&why, "duration_ns") / 2, "{unknown}: {groups:?}");
        // The proxy waits by epoll for the answer of the backend, to which it has connected.
        let longest = running.iter().max_by_key(|it| number(it, "duration_ns")).expect("a row");
        assert_eq!(longest["explains"]["name"], "proxy", "{longest}");
        assert_eq!(longest["explains"]["class"], "peer", "{longest}");
        let object = longest["explains"]["object"].as_str().unwrap_or_default();
        assert!(object.starts_with("tcp 127.0.0.1:"), "{longest}");
        assert_eq!(longest["functions"][0]["name"], "answer_query", "{longest}");
        Ok(())
    });
}

/// The main thread waits for one that computes in functions of the interpreter.
const REPORT: &str = "\
import threading, time
def slow_report():
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        sum(range(500))
worker = threading.Thread(target=slow_report)
worker.start()
worker.join()
";

#[test]
fn a_function_of_python_is_why_and_not_its_runtime() {
    check("a_function_of_python_is_why_and_not_its_runtime", || {
        probe::bpf_stacks()?;
        let python = python(&[], "3.11")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let mut recorder = whit();
        recorder.args(["record", "-q", "--engine=bpf", "--wakeups", "-F", "997", "-o"]).arg(&data);
        recorder.arg("--").arg(python);
        record(recorder.args(["-c", REPORT]))?;
        let json = text(whit().args(["why", "--json", "--no-debuginfod", "-i"]).arg(&data));
        let why: Value = serde_json::from_str(&json).expect("JSON");
        let groups = why["groups"].as_array().expect("groups");
        let running = groups.iter().find(|it| it["activity"] == "running").expect("a row");
        assert_eq!(running["functions"][0]["name"], "py::__main__.slow_report", "{running}");
        assert!(!running["explains"].is_null(), "{running}");
        Ok(())
    });
}

/// Each moment of a path with its thread and activity, between two times.
fn clipped(why: &Value, from: u64, to: u64) -> Vec<(u64, u64, Value, Value)> {
    let pieces = why["pieces"].as_array().expect("pieces").iter();
    let clip = |piece: &Value| {
        let begin = number(piece, "from_ns");
        let end = begin + number(piece, "duration_ns");
        (begin.max(from), end.min(to), piece["tid"].clone(), piece["activity"].clone())
    };
    pieces.map(clip).filter(|(begin, end, ..)| begin < end).collect()
}

#[test]
fn the_path_of_a_part_is_the_part_of_the_path() {
    check("the_path_of_a_part_is_the_part_of_the_path", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let said = recorded(&data)?;
        let tid = tid(&said, "write");
        let why = |time: &[&str]| -> Value {
            let mut why = whit();
            why.args(["why", "--json", "--tid", tid, "-i"]).arg(&data).args(time);
            let why: Value = serde_json::from_str(&text(&mut why)).expect("JSON");
            why["intervals"][0].clone()
        };
        let (whole, part) = (why(&[]), why(&["--time", "20%-60%"]));
        assert_eq!(part["thread"]["name"], "write");
        let (from, to) = (number(&part, "from_ns"), number(&part, "to_ns"));
        assert!(number(&whole, "from_ns") <= from && to < number(&whole, "to_ns"));
        let of_part = clipped(&part, from, to);
        assert_eq!(of_part.iter().map(|(begin, end, ..)| end - begin).sum::<u64>(), to - from);
        assert_eq!(of_part, clipped(&whole, from, to));
        let missing = output(whit().args(["why", "--tid", "1", "-i"]).arg(&data));
        assert!(stderr(&missing).contains("whit report --tasks lists the threads"), "{missing:?}");
        let several = output(whit().args(["why", "--time", "10%/1,10%/3", "-i"]).arg(&data));
        assert_eq!(several.status.code(), Some(2), "{several:?}");
        assert!(stderr(&several).contains("one part"), "{several:?}");
        Ok(())
    });
}

#[test]
fn waits_for_a_cpu_name_the_thread_that_had_it() {
    check("waits_for_a_cpu_name_the_thread_that_had_it", || {
        probe::bpf_stacks()?;
        probe::whole_cpus()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let other = Busy::by(command("taskset").args(["-c", "0", "sh"]));
        let mut recorder = whit();
        recorder.args(["record", "-q", "-a", "--engine=bpf", "--wakeups", "-F", "97", "-o"]);
        recorder.arg(&data);
        recorder.args(["--", "taskset", "-c", "0"]).arg(workload("pipeline")?);
        let said = record(recorder.args(["--iterations", "20"]))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let json = text(
            whit()
                .args(["why", "--json", "-i"])
                .arg(&data)
                .args(["--tid", tid(&said, "transform")]),
        );
        let why: Value = serde_json::from_str(&json).expect("JSON");
        let groups = why["groups"].as_array().expect("groups");
        let preempted =
            groups.iter().find(|it| it["activity"] == "preempted" && it["explains"].is_null());
        let preempted = preempted.unwrap_or_else(|| panic!("no preemption: {groups:?}"));
        let behind = preempted["behind"].as_array().expect("threads");
        let sum: u64 = behind.iter().map(|it| number(it, "duration_ns")).sum();
        assert!(sum <= number(preempted, "duration_ns"), "{preempted}");
        assert!(2 * sum > number(preempted, "duration_ns"), "{preempted}");
        // It can run at all times, so that no other thread on the CPU has the right to more.
        let is_other = |it: &&Value| it["thread"]["tid"].as_u64() == Some(u64::from(other.id()));
        let had = behind.iter().find(is_other).map_or(0, |it| number(it, "duration_ns"));
        assert!(had >= sum / behind.len() as u64, "{}: {preempted}", other.id());
        the_run_queue_names_it_too(&data, tid(&said, "transform"), other.id());
        Ok(())
    });
}

/// The delays of a thread are behind threads and behind none, to the nanosecond; `other` has the right to its share.
fn the_run_queue_names_it_too(data: &Path, waits: &str, other: u32) {
    let json = text(whit().args(["switches", "--json", "-i"]).arg(data));
    let switches: Value = serde_json::from_str(&json).expect("JSON");
    let tid_of = |it: &Value| number(&switches["threads"][number(it, "thread") as usize], "tid");
    let queues = switches["run_queue"].as_array().expect("delays");
    for queue in queues {
        let behind = queue["behind"].as_array().expect("threads").iter();
        let known: u64 = behind.map(|it| number(it, "ns")).sum();
        assert_eq!(known + number(queue, "unattributed_ns"), number(queue, "total_ns"), "{queue}");
    }
    let waits: u64 = waits.parse().expect("a number");
    let queue = queues.iter().find(|it| tid_of(it) == waits).expect("delays of the thread");
    let behind = queue["behind"].as_array().expect("threads");
    let known: u64 = behind.iter().map(|it| number(it, "ns")).sum();
    assert!(2 * known > number(queue, "total_ns"), "{queue}");
    let of_other = behind.iter().find(|it| tid_of(it) == u64::from(other));
    let had = of_other.map_or(0, |it| number(it, "ns"));
    assert!(had >= known / behind.len() as u64, "{other}: {queue}");
}

#[test]
fn recordings_without_wake_ups_name_the_way_out() {
    check("recordings_without_wake_ups_name_the_way_out", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let mut recorder = whit();
        recorder.args(["record", "-q", "--engine=ring", "-e", "cpu-clock", "-o"]).arg(&data);
        record(recorder.arg("--").arg(command("true").get_program()))?;
        let refused = output(whit().args(["why", "-i"]).arg(&data));
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains("whit record --engine=bpf --wakeups"), "{refused:?}");
        Ok(())
    });
}
