//! Requests of a server by its sockets, beside the times that the server and its clients log.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;
use whit_testing::measure::TOO_BUSY;
use whit_testing::run::{output, stderr};

use crate::support::tools::{command, newest_perf, number, perf, record, text, whit, workload};
use crate::support::{Skip, check, probe};

const CLIENTS: u64 = 4;
const REQUESTS: u64 = 60;
const SLEEPS_EVERY: u64 = 50;
/// A thread leaves its CPU behind the beginning of its sleep of 20 ms, and an interrupt may come between.
const SLEEP_NS: u64 = 10_000_000;

/// A request as the client and the server saw it.
#[derive(Clone, Debug)]
struct Stated {
    sent: u64,
    read: u64,
    answers: u64,
    answered: u64,
    number: u64,
    writer: u64,
    peer: u64,
}

fn stated(line: &str) -> Stated {
    let field = |key: &str| {
        let (_, rest) = line.split_once(key).unwrap_or_else(|| panic!("no {key} in {line}"));
        rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    Stated {
        sent: field("sent="),
        read: field("read="),
        answers: field("answers="),
        answered: field("answered="),
        number: field("number="),
        writer: field("writer="),
        peer: field("peer="),
    }
}

/// Records the server with a socket; gives its requests.
fn recorded(data: &Path, socket: &str, server: &[&str]) -> Result<Vec<Stated>, Skip> {
    let program = workload("sockets")?;
    let mut recorder = whit();
    recorder.args(["record", "-q", "-o"]).arg(data).arg("--request").arg(format!("web={socket}"));
    recorder.arg("--").arg(&program).args(["--clients", &CLIENTS.to_string()]);
    recorder.args(["--requests", &REQUESTS.to_string()]).args(server);
    let said = record(&mut recorder)?;
    Ok(String::from_utf8_lossy(&said).lines().map(stated).collect())
}

fn requests(data: &Path) -> Value {
    let json = text(whit().args(["requests", "--json", "--slowest", "100000", "-i"]).arg(data));
    serde_json::from_str(&json).expect("JSON")
}

/// Whether a recorded request is one that the server logs: it begins after the client sends and before the server has
/// read, and ends while the server sends the last piece. `cut`: a part of it may have been read before the recording, or sent
/// after it.
fn is_it(call: &Value, stated: &Stated, cut: [bool; 2]) -> bool {
    let (from, duration) = (number(call, "from_ns"), number(call, "duration_ns"));
    let to = from + duration;
    let key = call["key"].as_str().expect("a key");
    let is_peer =
        || key.ends_with(&format!(":{}", stated.peer)) || key == format!("process {}", stated.peer);
    stated.sent <= from
        && from <= if cut[0] { stated.answers } else { stated.read }
        && to >= if cut[1] { stated.read } else { stated.answers }
        && to <= stated.answered
        && number(call, "tid") == stated.writer
        && is_peer()
}

/// Every recorded request is one that the server logs. The first and the last one of a connection may be cut if the server
/// ran before the recording and after it. Gives their number.
fn all_are_stated(of_name: &Value, stated: &[Stated], ran_already: bool) -> u64 {
    let calls = of_name["slowest"].as_array().expect("calls");
    let is_before = |one: &Value, other: &Value| {
        one["key"] == other["key"] && number(one, "from_ns") < number(other, "from_ns")
    };
    let mut matched: BTreeMap<usize, &Value> = BTreeMap::new();
    for call in calls {
        let is_first = !calls.iter().any(|other| is_before(other, call));
        let is_last = !calls.iter().any(|other| is_before(call, other));
        let cut = [ran_already && is_first, ran_already && is_last];
        let found = stated.iter().position(|stated| is_it(call, stated, cut));
        let found = found.unwrap_or_else(|| panic!("nobody logs {call}"));
        assert!(matched.insert(found, call).is_none(), "twice: {:?}", stated[found]);
        let parts = call["parts"].as_array().expect("parts").iter();
        let sum: u64 = parts.map(|part| number(part, "duration_ns")).sum();
        assert_eq!(sum, number(call, "duration_ns"), "{call}");
        if cut == [false; 2] && stated[found].number % SLEEPS_EVERY == SLEEPS_EVERY - 1 {
            let slept =
                call["parts"].as_array().expect("parts").iter().any(|part| {
                    part["object"] == "20ms" && number(part, "duration_ns") >= SLEEP_NS
                });
            assert!(slept, "{call}");
        }
    }
    calls.len() as u64
}

/// One that no other server has.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    listener.local_addr().expect("an address").port()
}

/// Samples by their events, as a program lists them.
fn events(lists: &mut std::process::Command, data: &Path) -> BTreeMap<String, usize> {
    let listed = text(lists.args(["script", "-F", "event", "-i"]).arg(data));
    let mut events = BTreeMap::new();
    for line in listed.lines().map(str::trim).filter(|line| line.starts_with("request:")) {
        *events.entry(line.trim_end_matches(':').to_owned()).or_default() += 1;
    }
    events
}

fn stock_perf_counts_the_same(data: &Path) {
    let ours = events(&mut whit(), data);
    assert_eq!(ours.keys().collect::<Vec<_>>(), ["request:web:begin", "request:web:end"]);
    for (name, perf) in [("perf", perf()), ("newest perf", newest_perf())] {
        match perf {
            Ok(mut perf) => assert_eq!(events(&mut perf, data), ours, "{name}"),
            Err(skip) => whit_testing::skip(&format!("requests by sockets in {name}"), &skip.0),
        }
    }
}

#[test]
fn requests_by_sockets_are_those_that_the_server_logs() {
    check("requests_by_sockets_are_those_that_the_server_logs", || {
        probe::bpf_stacks()?;
        probe::kernel_since(6, 3)?;
        let folder = tempfile::tempdir().expect("make a directory");
        let [data, path] = ["perf.data", "socket"].map(|name| folder.path().join(name));
        let path = path.display().to_string();
        // The port of another test's server would be in use.
        let port = free_port().to_string();
        let places: [(String, [&str; 2]); 3] = [
            (format!("tcp:{port}"), ["--port", &port]),
            (format!("unix:{path}"), ["--unix", &path]),
            (format!("unix:@whit-{port}"), ["--unix", &format!("@whit-{port}")]),
        ];
        for (socket, place) in &places {
            for mode in ["threads", "loop", "queue"] {
                let _ = fs::remove_file(&path);
                let server = [&place[..], &["--mode", mode]].concat();
                let stated = recorded(&data, socket, &server)?;
                assert_eq!(stated.len() as u64, CLIENTS * REQUESTS, "{socket} {mode}");
                let of_name = &requests(&data)["requests"][0];
                let left_out = CLIENTS * REQUESTS - all_are_stated(of_name, &stated, false);
                for none in ["open", "left", "without_begin", "uncertain"] {
                    assert_eq!(number(of_name, none), 0, "{none}");
                }
                let handed_over = number(of_name, "handed_over");
                match mode {
                    // Where the kernel calls no program at the beginning of a call, all are left out.
                    // scripts/kernels.sh records this server on kernels that do.
                    "queue" => {
                        let (count, ambiguous) =
                            (number(of_name, "count"), number(of_name, "ambiguous"));
                        assert_eq!(handed_over, count);
                        assert!(left_out == 0 || (count == 0 && ambiguous > 0), "{of_name}");
                    }
                    _ => assert_eq!((left_out, handed_over), (0, 0), "{socket} {mode}"),
                }
            }
        }
        stock_perf_counts_the_same(&data);
        Ok(())
    });
}

/// Requests of a server that runs already, which began and ended while it was recorded.
#[test]
fn a_server_that_runs_already_has_requests() {
    check("a_server_that_runs_already_has_requests", || {
        probe::bpf_stacks()?;
        probe::kernel_since(6, 3)?;
        let folder = tempfile::tempdir().expect("make a directory");
        let [data, log] = ["perf.data", "log"].map(|name| folder.path().join(name));
        for by_process in [false, true] {
            let port = free_port().to_string();
            let mut server = command(workload("sockets")?);
            server.args(["--port", &port, "--clients", "2", "--requests", "10000"]);
            let output = fs::File::create(&log).expect("make a file");
            let mut server = server.stdout(output).spawn().expect("start the server");
            let pid = server.id().to_string();
            let target: &[&str] = if by_process { &["-p", &pid] } else { &["-a"] };
            let mut recorder = whit();
            recorder.args(["record", "-q", "--request", &format!("web=tcp:{port}"), "-o"]);
            recorder.arg(&data).args(target).args(["--", "sleep", "0.2"]);
            let recorded = record(&mut recorder);
            let has_ended = server.try_wait().expect("look at the server").is_some();
            server.wait().expect("wait for the server");
            recorded?;
            if has_ended {
                return Err(Skip(format!("{TOO_BUSY}: the server ended before the recording did")));
            }
            let said = fs::read_to_string(&log).expect("read the log");
            let stated: Vec<_> = said.lines().map(stated).collect();
            let of_name = &requests(&data)["requests"][0];
            assert!(all_are_stated(of_name, &stated, true) > 10, "{of_name}");
        }
        Ok(())
    });
}

#[test]
fn a_recording_without_requests_says_what_was_recorded() {
    check("a_recording_without_requests_says_what_was_recorded", || {
        probe::bpf_stacks()?;
        probe::kernel_since(6, 3)?;
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let mut recorder = whit();
        recorder.args(["record", "-q", "--request", &format!("web=tcp:{}", free_port()), "-o"]);
        record(recorder.arg(&data).args(["--", "true"]))?;
        let said = text(whit().args(["requests", "-i"]).arg(&data));
        assert!(said.contains("no call is recorded: without -a and -p"), "{said}");
        let mut by_rings = whit();
        by_rings.args(["record", "--engine=ring", "--request", "web=tcp:80", "--", "true"]);
        let refused = stderr(&output(&mut by_rings));
        assert!(refused.contains("the ring engine takes no --request of a socket"), "{refused}");
        Ok(())
    });
}
