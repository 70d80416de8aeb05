//! Requests of a Go server that logs its own.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::tools::{number, page_data, record, text, whit, workload};
use crate::support::{Skip, check, probe};

const REQUESTS: u64 = 200;
/// Calls within another one have numbers from here on.
const NESTED: u64 = 1 << 20;
/// A goroutine computes so long while it holds the lock.
const HELD_NS: u64 = 5_000_000;

/// A call as the server saw it from within.
#[derive(Clone, Copy, Debug)]
struct Stated {
    goroutine: u64,
    holder: u64,
    begin: u64,
    end: u64,
    /// Around its waits.
    wait: u64,
    /// Around that for the lock.
    lock: u64,
}

fn field(line: &str, key: &str) -> u64 {
    let (_, rest) = line.split_once(key).unwrap_or_else(|| panic!("no {key} in {line}"));
    rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Records the server; gives its calls by number, and how many panicked.
fn recorded(data: &Path) -> Result<(BTreeMap<u64, Stated>, u64), Skip> {
    probe::bpf_stacks()?;
    probe::uprobes()?;
    let program = workload("gorequests-go")?;
    let mut recorder = whit();
    recorder.args(["record", "-q", "--engine=bpf", "-F", "2000", "-o"]).arg(data);
    recorder.args(["--request", &format!("web={}:main.handle,key=%ax", program.display())]);
    recorder.arg("--").arg(&program);
    let said = record(recorder.args(["-requests", &REQUESTS.to_string()]))?;
    let said = String::from_utf8_lossy(&said);
    let calls = said.lines().filter(|line| line.starts_with("request "));
    let calls = calls.map(|line| {
        let stated = Stated {
            goroutine: field(line, "goroutine="),
            holder: field(line, "holder="),
            begin: field(line, "begin="),
            end: field(line, "end="),
            wait: field(line, "wait="),
            lock: field(line, "lock="),
        };
        (field(line, "number="), stated)
    });
    let left = said.lines().find(|line| line.starts_with("left ")).expect("calls that it left");
    Ok((calls.collect(), field(left, "count=")))
}

fn json(data: &Path, args: &[&str]) -> Value {
    let json = text(whit().args(args).arg("--json").arg("-i").arg(data));
    serde_json::from_str(&json).expect("JSON")
}

/// The kernel hides a switch-in now and then, and nothing else is unknown.
fn is_explained(part: &Value) -> bool {
    part["reason"].is_null() || part["reason"] == "switches may be missing"
}

/// Calls within a request have waits of their own.
fn calls_another(key: u64) -> bool {
    key < NESTED && key % 7 == 6
}

/// Whether a request waits for the lock for long.
fn waits_for_the_lock(key: u64, stated: &Stated) -> bool {
    key < NESTED && !calls_another(key) && stated.lock >= HELD_NS / 2
}

/// Nanoseconds of the parts of a call that the test takes.
fn sum(call: &Value, is_wanted: impl Fn(&Value) -> bool) -> u64 {
    let parts = call["parts"].as_array().expect("parts").iter();
    parts.filter(|part| is_wanted(part)).map(|part| number(part, "duration_ns")).sum()
}

#[test]
fn calls_of_goroutines_are_those_that_the_server_logs() {
    check("calls_of_goroutines_are_those_that_the_server_logs", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let (stated, left) = recorded(&data)?;
        let all = json(&data, &["requests", "--nested", "--slowest", "100000"]);
        let of_name = &all["requests"][0];
        assert_eq!(&all["warnings"], &Value::Array([].into()));
        assert_eq!(number(of_name, "count"), stated.len() as u64);
        // One that panics is left where the next call of the goroutine begins at its place, or never.
        assert_eq!(number(of_name, "left") + number(of_name, "open"), left, "{of_name}");
        let calls = of_name["slowest"].as_array().expect("calls");
        let calls: BTreeMap<u64, &Value> = calls.iter().map(|it| (number(it, "key"), it)).collect();
        assert_eq!(calls.keys().collect::<Vec<_>>(), stated.keys().collect::<Vec<_>>());
        let mut queued = 0;
        for (key, call) in &calls {
            let (from, duration) = (number(call, "from_ns"), number(call, "duration_ns"));
            let stated = stated[key];
            assert!(from <= stated.begin && stated.end <= from + duration, "{stated:?}: {call}");
            assert_eq!(call["goroutine"], true);
            assert_eq!(number(call, "tid"), stated.goroutine, "{call}");
            assert_eq!(number(call, "depth"), u64::from(*key >= NESTED), "{call}");
            assert_eq!(sum(call, |_| true), duration, "{call}");
            assert!(call["parts"].as_array().unwrap().iter().all(is_explained), "{call}");
            if calls_another(*key) {
                continue;
            }
            // The clock of the program is around its waits.
            let in_handle = |part: &Value| part["place"] == "main.handle";
            let waits = |class: &str| sum(call, |it| in_handle(it) && it["class"] == class);
            assert!(waits("queue") + waits("lock") <= stated.wait, "{stated:?}: {call}");
            assert!(waits("lock") <= stated.lock, "{stated:?}: {call}");
            queued += u64::from(waits("queue") > 0);
        }
        // The answer may be there before a goroutine asks for it, where it was taken off its CPU meanwhile.
        assert!(queued > 0, "{stated:?}");
        // The first of two goroutines that hold the lock may be done before the request asks.
        let long = stated.iter().filter(|(key, it)| waits_for_the_lock(**key, it)).count();
        assert!(long > 0, "{stated:?}");
        paths_lead_to_the_holder(&data, &stated);
        views_have_the_requests(&data, &calls);
        Ok(())
    });
}

/// The goroutine that computes while it holds the lock explains the wait of the slowest request that waits for it.
fn paths_lead_to_the_holder(data: &Path, stated: &BTreeMap<u64, Stated>) {
    let outer = json(data, &["requests", "--slowest", "100000"]);
    let calls = outer["requests"][0]["slowest"].as_array().expect("calls");
    let keys = calls.iter().map(|call| number(call, "key"));
    let found = keys.enumerate().find(|(_, key)| waits_for_the_lock(*key, &stated[key]));
    let (place, _) = found.expect("a request that waits for a lock");
    let rank = format!("web:{}", place + 1);
    let why = json(data, &["why", "--request", &rank]);
    let groups = why["groups"].as_array().expect("groups");
    assert!(groups.iter().all(is_explained), "{why}");
    let lengths: u64 = groups.iter().map(|group| number(group, "duration_ns")).sum();
    assert_eq!(lengths, number(&why, "duration_ns"));
    let explains = groups.iter().filter(|group| group["explains"]["class"] == "lock");
    let running = explains.filter(|group| group["activity"] == "running");
    let longest = running.max_by_key(|group| number(group, "duration_ns")).expect("a holder");
    assert_eq!(longest["goroutine"], true, "{longest}");
    // Its own goroutine may be done with the lock, and that of another request have it.
    let numbers: Vec<_> = longest["tids"].as_array().expect("numbers").iter().collect();
    let is_holder = |it: &Stated| numbers.contains(&&it.holder.into());
    assert!(stated.values().any(is_holder), "{longest}");
    assert_eq!(longest["explains"]["place"], "main.handle", "{longest}");
    let functions = longest["functions"].as_array().expect("functions").iter();
    let names: Vec<_> = functions.map(|it| it["name"].as_str().unwrap_or_default()).collect();
    assert!(names.contains(&"main.compute") || names.contains(&"main.now"), "{longest}");
    let said = text(whit().args(["why", "--request", &rank, "-i"]).arg(data));
    assert!(
        said.contains("gorequests-go goroutine (") && said.contains("lock in main.handle"),
        "{said}"
    );
}

/// Other views have the same requests, and the time of the threads that ran them.
fn views_have_the_requests(data: &Path, calls: &BTreeMap<u64, &Value>) {
    let select = "SELECT ts, dur, key, goroutine FROM request ORDER BY key + 0";
    let rows = text(whit().args(["query", "--json", "-c", select, "-i"]).arg(data));
    let rows: Vec<Value> = serde_json::from_str(&rows).expect("rows");
    assert_eq!(rows.len(), calls.len());
    for (row, (key, call)) in rows.iter().zip(calls) {
        assert_eq!(row["key"], key.to_string());
        for (column, member) in [("ts", "from_ns"), ("dur", "duration_ns"), ("goroutine", "tid")] {
            assert_eq!(number(row, column), number(call, member), "{column}: {call}");
        }
    }
    // The first goroutine is the one that the command explains, and any other on demand.
    let first = json(data, &["why"]);
    let of = |why: &Value| why["intervals"][0]["thread"].clone();
    assert_eq!((number(&of(&first), "tid"), &of(&first)["goroutine"]), (1, &true.into()));
    let (_, call) = calls.first_key_value().expect("a call");
    let goroutine = number(call, "tid").to_string();
    let other = json(data, &["why", "--goroutine", &goroutine]);
    assert_eq!(number(&of(&other), "tid").to_string(), goroutine);
    // On a CPU, a request is as long as the threads were that ran it, in its time.
    let mut outer: Vec<_> = calls.values().filter(|call| number(call, "depth") == 0).collect();
    outer.sort_by_key(|call| std::cmp::Reverse(number(call, "duration_ns")));
    let is_whole = |call: &&Value| sum(call, |part| part["activity"] == "unknown") == 0;
    let whole = outer.iter().position(|call| is_whole(call)).expect("a request without losses");
    let request = format!("web:{}", whole + 1);
    let wall = json(data, &["report", "--wall", "--request", &request]);
    let threads = wall["threads"].as_array().expect("threads");
    let cpu: u64 = threads.iter().map(|thread| number(&thread["sums"], "cpu_ns")).sum();
    assert_eq!(cpu, number(&outer[whole]["split"], "on_cpu_ns"), "{}", outer[whole]);
    let page = data.with_extension("html");
    text(whit().args(["report", "-i"]).arg(data).arg("--html").arg(&page));
    let of_name = &page_data(&page)["requests"]["names"][0];
    for call in of_name["calls"].as_array().expect("calls") {
        let name = call["thread"].as_str().unwrap_or_default();
        assert!(name.starts_with("gorequests-go goroutine (") && call["tid"].is_null(), "{call}");
    }
    let lanes = of_name["calls"][0]["path"]["lanes"].as_array().expect("the slowest has a path");
    assert!(lanes[0][1].is_null() && lanes[0][2] == of_name["calls"][0]["thread"], "{lanes:?}");
    traces_have_the_requests(data, calls);
}

/// Slices of one track of a trace follow each other, and there are as many as requests.
fn traces_have_the_requests(data: &Path, calls: &BTreeMap<u64, &Value>) {
    let trace = data.with_extension("json");
    text(whit().args(["export", "--format=firefox", "-i"]).arg(data).arg("-o").arg(&trace));
    let profile: Value =
        serde_json::from_slice(&std::fs::read(&trace).expect("a trace")).expect("JSON");
    let threads = profile["threads"].as_array().expect("threads").iter();
    let markers = threads.filter_map(|thread| thread["markers"]["data"].as_array()).flatten();
    let of_requests = markers.filter(|data| data["type"] == "request");
    let found: BTreeMap<u64, u64> = of_requests
        .map(|data| {
            let key = data["key"].as_str().and_then(|key| key.parse().ok()).expect("a key");
            (key, number(data, "goroutine"))
        })
        .collect();
    let wanted = calls.iter().map(|(key, call)| (*key, number(call, "tid")));
    assert_eq!(found, wanted.collect::<BTreeMap<_, _>>());
}
