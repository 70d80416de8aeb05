//! Requests of a server that logs its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use whit_testing::run::{output, stderr};
use whit_testing::wait::is_soon;

use crate::postgres::Postgres;
use crate::support::tools::{command, number, page_data, record, text, whit, workload};
use crate::support::{Skip, check, engines, probe};

const REQUESTS: u64 = 400;
/// Calls within another one have numbers from here on.
const NESTED: u64 = 1 << 20;
const SLEEP_NS: u64 = 20_000_000;
/// A thread leaves its CPU behind the beginning of its sleep, and an interrupt may come between.
const SLEEP_OFF_CPU_NS: u64 = SLEEP_NS / 2;
const HOLD_NS: u64 = 1_000_000;

/// A call as the server saw it from within.
#[derive(Clone, Copy, Debug)]
struct Stated {
    begin: u64,
    end: u64,
}

fn field(line: &str, key: &str) -> u64 {
    let (_, rest) = line.split_once(key).unwrap_or_else(|| panic!("no {key} in {line}"));
    rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Records the server; gives its calls by number, and how many it left.
fn recorded(data: &Path) -> Result<(BTreeMap<u64, Stated>, u64), Skip> {
    probe::bpf_stacks()?;
    probe::uprobes()?;
    let program = workload("requests")?;
    let function = |name: &str, function: &str| format!("{name}={}:{function}", program.display());
    let mut recorder = whit();
    recorder.args(["record", "-q", "--engine=bpf", "-o"]).arg(data);
    recorder.args(["--request", &(function("call", "handle") + ",key=%di")]);
    recorder.args(["--request", &function("left", "leave_early")]);
    recorder.args(["--request", &function("pair", "begin..requests:end,key=arg1")]);
    recorder.arg("--").arg(&program);
    let said = record(recorder.args(["--requests", &REQUESTS.to_string()]))?;
    let said = String::from_utf8_lossy(&said);
    let calls = said.lines().filter(|line| line.starts_with("request "));
    let calls = calls.map(|line| {
        let stated = Stated { begin: field(line, "begin="), end: field(line, "end=") };
        (field(line, "number="), stated)
    });
    let left = said.lines().find(|line| line.starts_with("left ")).expect("calls that it left");
    Ok((calls.collect(), field(left, "count=")))
}

fn requests(data: &Path, args: &[&str]) -> Value {
    let json = text(whit().args(["requests", "--json", "-i"]).arg(data).args(args));
    serde_json::from_str(&json).expect("JSON")
}

fn waits(call: &Value, class: &str) -> u64 {
    let parts = call["parts"].as_array().expect("parts").iter();
    parts.filter(|part| part["class"] == class).map(|part| number(part, "duration_ns")).sum()
}

#[test]
fn calls_are_those_that_the_server_logs() {
    check("calls_are_those_that_the_server_logs", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let (stated, left) = recorded(&data)?;
        let all = requests(&data, &["--nested", "--slowest", "100000"]);
        let of_name = &all["requests"][0];
        assert_eq!(
            (of_name["name"].as_str(), &all["warnings"]),
            (Some("call"), &Value::Array([].into()))
        );
        assert_eq!(number(of_name, "count"), stated.len() as u64);
        let calls: BTreeMap<u64, &Value> = of_name["slowest"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (number(it, "key"), it))
            .collect();
        assert_eq!(calls.keys().collect::<Vec<_>>(), stated.keys().collect::<Vec<_>>());
        let mut last_end = 0;
        for (key, call) in &calls {
            let (from, duration) = (number(call, "from_ns"), number(call, "duration_ns"));
            let Stated { begin, end } = stated[key];
            assert!(from <= begin && end <= from + duration, "{begin} {end}: {call}");
            let split: u64 =
                call["split"].as_object().unwrap().values().map(|it| it.as_u64().unwrap()).sum();
            let parts =
                call["parts"].as_array().unwrap().iter().map(|it| number(it, "duration_ns"));
            assert_eq!((split, parts.sum()), (duration, duration), "{call}");
            let is_nested = *key >= NESTED;
            assert_eq!(number(call, "depth"), u64::from(is_nested), "{call}");
            if !is_nested {
                // The calls of a thread follow each other.
                assert!(last_end <= begin && from >= last_end, "{call}");
                last_end = end;
            }
            let sleeps = |number: u64| number % 50 == 49;
            let calls_another = !is_nested && key % 8 == 7;
            let has_slept = sleeps(*key) || (calls_another && sleeps(key + NESTED));
            let sleeps_long = call["parts"].as_array().expect("parts").iter().any(|part| {
                part["object"] == "20ms" && number(part, "duration_ns") >= SLEEP_OFF_CPU_NS
            });
            assert_eq!(sleeps_long, has_slept, "{call}");
        }
        let locks: u64 = calls.values().map(|call| waits(call, "lock")).sum();
        assert!(locks > HOLD_NS, "{locks}");
        pairs_of_probes_are_around_calls(&data, &calls);
        waits_within_calls_have_their_callers(&data);
        outer_calls_have_quantiles(&data, &calls);
        pages_have_the_requests(&data, &calls);
        queries_have_the_requests(&data, &calls);
        views_take_the_time_of_requests(&data, &calls);
        // The last one has no other behind it, which would show that it was left.
        let of_left = &all["requests"][1];
        assert_eq!(number(of_left, "left") + number(of_left, "open"), left, "{of_left}");
        assert_eq!(number(of_left, "count"), 0);
        Ok(())
    });
}

/// Without `--nested`, calls within others are in no number but their own.
fn outer_calls_have_quantiles(data: &Path, calls: &BTreeMap<u64, &Value>) {
    let outer = requests(data, &[]);
    let of_name = &outer["requests"][0];
    let nested = calls.keys().filter(|key| **key >= NESTED).count() as u64;
    assert_eq!((number(of_name, "count"), number(of_name, "nested")), (REQUESTS, nested));
    let durations =
        calls.iter().filter(|(key, _)| **key < NESTED).map(|(_, it)| number(it, "duration_ns"));
    let mut durations: Vec<u64> = durations.collect();
    durations.sort_unstable();
    let quantiles = of_name["quantiles"].as_array().expect("quantiles").iter();
    let found: Vec<_> =
        quantiles.map(|it| (it["name"].as_str().unwrap(), number(it, "duration_ns"))).collect();
    let at = |rank: usize| durations[rank - 1];
    let wanted = [
        ("p50", at(200)),
        ("p90", at(360)),
        ("p99", at(396)),
        ("p99.9", at(400)),
        ("max", at(400)),
    ];
    assert_eq!(found, wanted);
    tail_adds_the_slowest_up(of_name, calls);
    let longer = requests(data, &["--longer-than", "20ms", "--request", "call"]);
    let slow = durations.iter().filter(|ns| **ns >= SLEEP_NS).count() as u64;
    assert_eq!(number(&longer["requests"][0], "count"), slow);
    // The command that the text names explains the slowest one.
    let shown = text(whit().args(["requests", "-i"]).arg(data));
    assert!(shown.contains("took so long: whit why --request call\n"), "{shown}");
    for (request, rank) in [("call", 1), ("call:1", 1), ("call:17", 17)] {
        let mut explain = whit();
        explain.args(["why", "--json", "--request", request, "-i"]).arg(data);
        let why: Value = serde_json::from_str(&text(&mut explain)).expect("JSON");
        assert_eq!(number(&why, "duration_ns"), durations[durations.len() - rank], "{request}");
        let groups = why["groups"].as_array().expect("groups");
        let own = groups.iter().filter(|it| it["explains"].is_null());
        let named =
            own.map(|it| (number(it, "duration_ns"), number(&it["requests"][0], "duration_ns")));
        assert!(
            named.clone().count() > 0 && named.clone().all(|(all, of_request)| all == of_request)
        );
    }
    let none = output(whit().args(["why", "--request", "call:1000", "-i"]).arg(data));
    assert!(stderr(&none).contains("there is no request call:1000: 400 requests"), "{none:?}");
    let both =
        output(whit().args(["why", "--request", "call:2", "--slowest", "3", "-i"]).arg(data));
    assert_eq!(both.status.code(), Some(2), "{both:?}");
    assert!(stderr(&both).contains("leave :2 out"), "{both:?}");
}

/// Other views use the time of chosen requests, and no other.
fn views_take_the_time_of_requests(data: &Path, calls: &BTreeMap<u64, &Value>) {
    let slow =
        calls.iter().filter(|(key, it)| **key < NESTED && number(it, "duration_ns") >= SLEEP_NS);
    let slow: BTreeMap<u64, u64> =
        slow.map(|(_, it)| (number(it, "from_ns"), number(it, "duration_ns"))).collect();
    let option = ["--request", "call", "--request-longer-than", "20ms"];
    let json = |args: &[&str], option: &[&str]| -> Value {
        let said = text(whit().args(args).args(option).arg("--json").arg("-i").arg(data));
        serde_json::from_str(&said).expect("JSON")
    };
    let wall = json(&["report", "--wall"], &option);
    let [thread] = &wall["threads"].as_array().expect("threads")[..] else { panic!("{wall}") };
    let sum =
        |sums: &Value, kinds: &[&str]| kinds.iter().map(|kind| number(sums, kind)).sum::<u64>();
    let kinds = [
        "cpu_ns",
        "waiting_ns",
        "preempted_ns",
        "throttled_ns",
        "run_queue_ns",
        "lossy_ns",
        "uncovered_ns",
    ];
    let elapsed: u64 = slow.values().sum();
    assert_eq!(
        (number(&thread["sums"], "elapsed_ns"), sum(&thread["sums"], &kinds)),
        (elapsed, elapsed)
    );
    // The same runs and waits are in both views.
    let waits = json(&["switches"], &option);
    let rows = waits["rows"].as_array().expect("rows");
    // A busy machine may lose a record: the time that a loss touches is time, too.
    let kinds = [
        "sync_wait_ns",
        "preempt_wait_ns",
        "cpu_ns",
        "lossy_wait_ns",
        "lossy_cpu_ns",
        "open_wait_ns",
    ];
    let in_rows = rows.iter().map(|row| sum(&row["sums"], &kinds));
    assert_eq!(in_rows.sum::<u64>(), elapsed, "{waits}");
    let mut lines = whit();
    lines.args(["script", "-F", "time,event", "--ns", "-i"]).arg(data).args(option);
    let is_inside =
        |ns: u64| slow.range(..=ns).next_back().is_some_and(|(from, it)| ns <= from + it);
    let lines = text(&mut lines);
    let times = lines.lines().map(|line| {
        let (time, _) = line.trim_start().split_once(':').expect("a time");
        time.replace('.', "").parse::<u64>().expect("nanoseconds")
    });
    let (inside, outside): (Vec<u64>, Vec<u64>) = times.partition(|ns| is_inside(*ns));
    assert!(inside.len() >= 2 * slow.len() && outside.is_empty(), "{inside:?} {outside:?}");
    // The key of the slowest one chooses that one alone, among those with this text in their keys.
    let slowest = calls.values().max_by_key(|it| number(it, "duration_ns")).expect("a call");
    let key = number(slowest, "key").to_string();
    let of_key =
        |it: &&&Value| number(it, "depth") == 0 && number(it, "key").to_string().contains(&key);
    let with_key: u64 = calls.values().filter(of_key).map(|it| number(it, "duration_ns")).sum();
    let wall = json(&["report", "--wall"], &["--request", "call", "--request-key", &key]);
    assert_eq!(number(&wall["total"], "elapsed_ns"), with_key, "{key}");
    let begins = calls.values().filter(|it| is_inside(number(it, "from_ns"))).count();
    let mut code = whit();
    code.args(["annotate", "handle", "--event", "request:call:begin", "-i"]).arg(data).args(option);
    let code = text(&mut code);
    assert!(code.contains(&format!("({begins} samples")), "{begins}: {code}");
    let none =
        output(whit().args(["report", "--request", "call", "--request-key", "x", "-i"]).arg(data));
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    assert!(stderr(&none).contains("none of 400 requests 'call' has 'x' in its key"), "{none:?}");
}

/// SQL has each call with its key.
fn queries_have_the_requests(data: &Path, calls: &BTreeMap<u64, &Value>) {
    const CALLS: &str = "SELECT CAST(key AS INTEGER) AS key, ts, dur, depth, tid, certain \
                         FROM request JOIN thread USING (utid) WHERE request.name = 'call' ORDER BY ts";
    let rows = text(whit().args(["query", "--json", "-c", CALLS, "-i"]).arg(data));
    let rows: Vec<Value> = serde_json::from_str(&rows).expect("rows");
    assert_eq!(rows.len(), calls.len());
    assert!(rows.is_sorted_by_key(|row| number(row, "ts")));
    for row in &rows {
        let call = calls[&number(row, "key")];
        let columns = ["ts", "dur", "depth", "tid"].map(|column| number(row, column));
        let members = ["from_ns", "duration_ns", "depth", "tid"].map(|name| number(call, name));
        assert_eq!((columns, number(row, "certain")), (members, 1), "{row}");
    }
}

/// The parts of the slowest hundredth, four calls, and of the middle half are the sums of those of the calls.
fn tail_adds_the_slowest_up(of_name: &Value, calls: &BTreeMap<u64, &Value>) {
    let kind = |part: &Value| (part["activity"].to_string(), part["class"].to_string());
    let sums = |parts: &mut dyn Iterator<Item = (&Value, u64)>| {
        let mut sums: BTreeMap<_, u64> = BTreeMap::new();
        parts.for_each(|(part, ns)| *sums.entry(kind(part)).or_default() += ns);
        sums.retain(|_, ns| *ns > 0);
        sums
    };
    let mut outer: Vec<&Value> =
        calls.iter().filter(|(key, _)| **key < NESTED).map(|(_, call)| *call).collect();
    outer.sort_by_key(|call| (number(call, "duration_ns"), number(call, "from_ns")));
    let tail = &of_name["tail"];
    assert_eq!((number(tail, "slow_calls"), number(tail, "middle_calls")), (4, 200));
    for (member, of_group) in [("slow_ns", &outer[396..]), ("middle_ns", &outer[100..300])] {
        let parts = tail["parts"].as_array().expect("parts").iter();
        let found = sums(&mut parts.map(|part| (part, number(part, member))));
        let parts = of_group.iter().flat_map(|call| call["parts"].as_array().expect("parts"));
        let wanted = sums(&mut parts.map(|part| (part, number(part, "duration_ns"))));
        assert_eq!(found, wanted, "{member}");
    }
    let sleeps = tail["parts"].as_array().expect("parts").iter().find(|it| it["object"] == "20ms");
    let slow_sleeps = outer[396..].iter().filter(|call| waits(call, "sleep") >= SLEEP_NS).count();
    let slept_ns = sleeps.map_or(0, |part| number(part, "slow_ns"));
    assert!(slept_ns >= slow_sleeps as u64 * SLEEP_NS, "{sleeps:?} of {slow_sleeps}");
}

/// Both pages have the calls, and a page of a part of the recording has none.
fn pages_have_the_requests(data: &Path, calls: &BTreeMap<u64, &Value>) {
    let page = data.with_extension("html");
    for subcommand in ["report", "switches"] {
        text(whit().args([subcommand, "-i"]).arg(data).arg("--html").arg(&page));
        let of_name = &page_data(&page)["requests"]["names"][0];
        assert_eq!((of_name["name"].as_str(), number(of_name, "count")), (Some("call"), REQUESTS));
        let listed = of_name["calls"].as_array().expect("calls");
        for call in listed {
            let key: u64 = call["key"].as_str().and_then(|key| key.parse().ok()).expect("a key");
            assert_eq!(number(call, "durationNs"), number(calls[&key], "duration_ns"), "{call}");
        }
        let paths = listed.iter().filter(|call| !call["path"].is_null());
        assert_eq!((listed.len(), paths.count()), (200, 20));
    }
    let part = output(
        whit().args(["report", "--time", "0%-50%", "-i"]).arg(data).arg("--html").arg(&page),
    );
    assert!(
        stderr(&part).contains("a page of a part of the recording has no requests"),
        "{part:?}"
    );
    assert_eq!(page_data(&page)["requests"], Value::Null);
}

/// The probes are around the calls of the thread.
fn pairs_of_probes_are_around_calls(data: &Path, calls: &BTreeMap<u64, &Value>) {
    let json = requests(data, &["--request", "pair", "--slowest", "100000"]);
    let of_name = &json["requests"][0];
    assert_eq!((number(of_name, "count"), number(of_name, "left")), (REQUESTS, 0));
    for pair in of_name["slowest"].as_array().expect("pairs") {
        let call = calls[&number(pair, "key")];
        let span =
            |it: &Value| (number(it, "from_ns"), number(it, "from_ns") + number(it, "duration_ns"));
        assert!(span(pair).0 <= span(call).0 && span(pair).1 >= span(call).1, "{pair} {call}");
    }
}

/// The kernel has put another return address on the stack of each call.
fn waits_within_calls_have_their_callers(data: &Path) {
    let json = text(whit().args(["switches", "--json", "-i"]).arg(data));
    let switches: Value = serde_json::from_str(&json).expect("JSON");
    let functions = switches["functions"].as_array().expect("functions");
    let mut waits = 0;
    for row in switches["rows"].as_array().expect("rows") {
        let stack = row["stack"].as_array().expect("a stack").iter();
        let names: Vec<_> = stack
            .map(|it| functions[it.as_u64().unwrap() as usize]["name"].as_str().unwrap())
            .collect();
        if names.contains(&"handle") && number(&row["sums"], "sync_count") > 0 {
            assert!(names.contains(&"serve"), "{names:?}");
            waits += 1;
        }
    }
    assert!(waits > 0, "{switches}");
}

/// The query that holds a row until another session has waited for it for a second. It is one message, so that its
/// session never waits for its client meanwhile.
const HOLDER: &str = "DO 'BEGIN \
    UPDATE pgbench_branches SET bbalance = 7 WHERE bid = 1; \
    LOOP \
        PERFORM pg_sleep(0.2); \
        PERFORM pg_stat_clear_snapshot(); \
        EXIT WHEN EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = ''Lock''); \
    END LOOP; \
    PERFORM pg_sleep(1); END'";

/// A session that holds a row, and another one that wants it as soon as the first one sleeps. It never looks for a
/// deadlock meanwhile: a timer would end its wait, and kernels that hide the idle thread do not say that.
const LOCK: &str = "\
query=$1; shift
\"$@\" -c \"$query\" &
until \"$@\" -tc \"SELECT 'sleeps' FROM pg_stat_activity WHERE wait_event = 'PgSleep'\" | grep -q sleeps; do :; done
PGOPTIONS='-c deadlock_timeout=100s' \"$@\" -c 'UPDATE pgbench_branches SET bbalance = 8 WHERE bid = 1'
wait";

/// Two commands name the query of the session that holds the lock of a slow one.
#[test]
fn the_query_of_a_lock_holder_is_named() {
    check("the_query_of_a_lock_holder_is_named", || {
        probe::bpf_stacks()?;
        probe::uprobes()?;
        probe::whole_cpus()?;
        let postgres = Postgres::idle()?;
        let server = Postgres::programs()?.join("postgres");
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let mut recorder = whit();
        recorder.args(["record", "-q", "--engine=bpf", "-a", "--request"]);
        recorder
            .arg(format!("query={}:query__start..query__done,key=arg1:string", server.display()));
        recorder.arg("-o").arg(&data);
        let session = postgres.client("psql", &["-q", "postgres"]);
        recorder.args(["--", "sh", "-c", LOCK, "sh", HOLDER]).arg(session.get_program());
        record(recorder.args(session.get_args()).current_dir("/"))?;
        let json = requests(&data, &["--slowest", "1000", "--no-debuginfod"]);
        let calls = json["requests"][0]["slowest"].as_array().expect("calls");
        let is_waiter =
            |call: &Value| call["key"] == "UPDATE pgbench_branches SET bbalance = 8 WHERE bid = 1";
        let rank = calls.iter().position(is_waiter);
        let counts = ["count", "open", "left", "without_begin", "uncertain"]
            .map(|it| (it, &json["requests"][0][it]));
        let rank = 1 + rank.unwrap_or_else(|| panic!("no query that waits: {counts:?} {json}"));
        let waiter = &calls[rank - 1];
        let lock: u64 = waits(waiter, "lock");
        assert!(2 * lock > number(waiter, "duration_ns"), "{waiter}");
        let shown = text(
            whit()
                .args(["why", "--no-debuginfod", "--request", &format!("query:{rank}"), "-i"])
                .arg(&data),
        );
        // A row has the holder, the waiter and the holder's query. On a busy machine, a wait for a CPU may be longer.
        let lines: Vec<_> = shown.lines().collect();
        let names_the_query = |lines: &[&str]| {
            let query = format!("in query {HOLDER} 100%");
            let parts = ["waits: poll", "waits: lock", &query];
            lines.iter().zip(parts).all(|(line, part)| line.contains(part))
        };
        assert!(lines.windows(3).any(names_the_query), "{shown}");
        Ok(())
    });
}

/// Processes that one process has forked take turns on one CPU, and end one after the other. The kernel exchanges events
/// of such processes, and takes probes of one out of the other.
const SIBLINGS: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void handle(int n) { __asm__ volatile("" : : "r"(n) : "memory"); }
static void work(int calls) {
    for (int i = 0; i < calls; i++) { handle(i); sched_yield(); }
    _exit(0);
}
int main(int argc, char **argv) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; !CPU_COUNT(&one); cpu++) if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    // With an argument, a child forks them.
    if (argc > 1 && fork()) { wait(0); return 0; }
    for (int i = 1; i <= 4; i++) if (!fork()) work(500 * i);
    while (wait(0) > 0) {}
    return 0;
}
"#;
const SIBLINGS_CALLS: u64 = 500 + 1000 + 1500 + 2000;

#[test]
fn requests_of_processes_that_one_forked_are_whole() {
    check("requests_of_processes_that_one_forked_are_whole", || {
        probe::uprobes()?;
        probe::program("cc")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let [source, program, data] =
            ["siblings.c", "siblings", "perf.data"].map(|name| folder.path().join(name));
        std::fs::write(&source, SIBLINGS).expect("write a program");
        text(command("cc").args(["-O1", "-o"]).arg(&program).arg(&source));
        for engine in engines("requests of forked processes") {
            for generation in [&[][..], &["grandchildren"]] {
                let mut recorder = whit();
                recorder.args(["record", "-v", engine, "--request"]);
                recorder.arg(format!("call={}:handle", program.display()));
                recorder.arg("-o").arg(&data).arg("--").arg(&program).args(generation);
                let said = stderr(&whit_testing::run::record(&mut recorder)?);
                if said.contains("a probe may miss calls in processes that one process has forked")
                {
                    return Err(Skip("Linux before 6.13 exchanges events of processes".to_owned()));
                }
                let all = requests(&data, &[]);
                let of_name = &all["requests"][0];
                let counts =
                    ["count", "open", "left", "without_begin"].map(|it| number(of_name, it));
                assert_eq!(counts, [SIBLINGS_CALLS, 0, 0, 0], "{engine} {generation:?} {said}");
            }
        }
        Ok(())
    });
}

#[test]
fn requests_that_cannot_be_recorded_say_why() {
    check("requests_that_cannot_be_recorded_say_why", || {
        probe::uprobes()?;
        let program = workload("requests")?.display().to_string();
        let go = workload("gorequests-go")?.display().to_string();
        let refused = |request: &[String]| {
            let mut recorder = whit();
            recorder.args(["record", "--dry-run"]);
            request.iter().for_each(|it| {
                recorder.args(["--request", it]);
            });
            let output = output(recorder.arg("true"));
            assert!(!output.status.success());
            stderr(&output)
        };
        for (request, wanted) in [
            (format!("a={program}:handel"), "has no function 'handel'".to_owned()),
            (format!("a={program}:andl"), "it has __dso_handle, handle".to_owned()),
            (format!("a={program}:handle,key=%zz"), "the kernel refuses a probe at ".to_owned()),
            (format!("a={go}:main.nothing"), "it does not begin with a frame".to_owned()),
            (format!("a={go}:main.handel"), "has no function 'main.handel'".to_owned()),
            ("a=nothing-here:main".to_owned(), "there is no command nothing-here".to_owned()),
            ("a".to_owned(), "a request is NAME=BINARY:FUNCTION".to_owned()),
        ] {
            let said = refused(&[request]);
            assert!(said.contains(&wanted), "{said}");
        }
        let twice = format!("a={program}:handle");
        let said = refused(&[twice.clone(), twice]);
        assert!(said.contains("the name 'a' is given twice"), "{said}");
        Ok(())
    });
}

/// The kernel keeps the definitions of a recorder that was killed; the next one removes them.
#[test]
fn probes_of_a_killed_recorder_are_removed() {
    check("probes_of_a_killed_recorder_are_removed", || {
        probe::bpf_stacks()?;
        let list = probe::uprobes()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let program = workload("requests")?;
        let recorder = |file: &str| {
            let mut recorder = whit();
            recorder.args(["record", "-q", "-o"]).arg(folder.path().join(file));
            let request = format!("a={}:handle", program.display());
            recorder.args(["--request", &request]);
            recorder.arg("--");
            recorder
        };
        let mut killed =
            recorder("killed").args(["sleep", "60"]).stdin(Stdio::null()).spawn().expect("run");
        let group = format!(":whit_{}/", killed.id());
        let has_probes =
            || fs::read_to_string(&list).expect("the list").matches(&group).count() == 2;
        assert!(is_soon(has_probes), "no probes in the list");
        killed.kill().expect("kill");
        killed.wait().expect("wait");
        assert!(has_probes());
        record(recorder("next").arg("true"))?;
        let left = fs::read_to_string(&list).expect("the list");
        assert!(!left.contains(&group), "{left}");
        Ok(())
    });
}
