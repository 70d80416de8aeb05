//! Waits of goroutines of a program that logs its own.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use whit_testing::run::{command, output, repository, stderr, succeed};

use crate::support::tools::{number, record, text, whit, workload};
use crate::support::{Skip, check, probe};

const ROUNDS: u64 = 10;
const IDLE: u64 = 3;
/// Functions that wait, and the time for which the program lets each wait at least.
const HOLDS_NS: [(&str, u64); 4] = [
    ("main.lockMutex", 20_000_000),
    ("main.receive", 10_000_000),
    ("main.selectOne", 5_000_000),
    ("main.readAnswer", 30_000_000),
];

/// A wait as the program saw it from around.
#[derive(Debug)]
struct Stated {
    reason: String,
    goroutine: u64,
    waker: u64,
    ns: u64,
}

fn field<'a>(line: &'a str, key: &str) -> &'a str {
    let (_, rest) = line.split_once(key).unwrap_or_else(|| panic!("no {key} in {line}"));
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split(' ').next(),
    }
    .expect("a value")
}

/// Records the program; gives its waits by function.
fn recorded(
    data: &Path,
    program: &Path,
    options: &[&str],
) -> Result<BTreeMap<String, Vec<Stated>>, Skip> {
    probe::bpf_stacks()?;
    probe::uprobes()?;
    let mut recorder = whit();
    recorder.args(["record", "-q", "--goroutines"]).args(options).arg("-o").arg(data);
    recorder.arg("--").arg(program);
    recorder.args(["-rounds", &ROUNDS.to_string(), "-idle", &IDLE.to_string()]);
    let said = record(&mut recorder)?;
    let mut waits: BTreeMap<String, Vec<Stated>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&said).lines() {
        let count = |key| field(line, key).parse().expect("a number");
        let stated = Stated {
            reason: field(line, "reason=").to_owned(),
            goroutine: count("goroutine="),
            waker: count("waker="),
            ns: count("ns="),
        };
        waits.entry(field(line, "function=").to_owned()).or_default().push(stated);
    }
    Ok(waits)
}

fn goroutines(data: &Path, args: &[&str]) -> Value {
    let json = text(whit().args(["goroutines", "--json", "-i"]).arg(data).args(args));
    serde_json::from_str(&json).expect("JSON")
}

/// Waits in a function, in order of time.
fn waits_in(data: &Path, function: &str) -> Vec<Value> {
    let json = goroutines(data, &["--worst", "100000", "--function", function]);
    assert_eq!((number(&json, "uncertain"), &json["warnings"]), (0, &Value::Array([].into())));
    let mut waits = json["worst"].as_array().expect("waits").clone();
    waits.sort_by_key(|wait| number(wait, "from_ns"));
    waits
}

fn has(stack: &Value, function: &str) -> bool {
    stack.as_array().expect("a stack").iter().any(|name| name == function)
}

#[test]
fn waits_of_goroutines_are_those_that_the_program_logs() {
    check("waits_of_goroutines_are_those_that_the_program_logs", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let stated = recorded(&data, &workload("goroutines-go")?, &[])?;
        for (function, hold_ns) in HOLDS_NS {
            let waits = waits_in(&data, function);
            assert_eq!((waits.len(), stated[function].len()), (10, 10), "{function}");
            for (wait, stated) in waits.iter().zip(&stated[function]) {
                let duration = number(wait, "duration_ns");
                // It was let wait from a moment on at which it waited, and the program's clock is around the wait.
                let all = duration + number(wait, "runnable_ns");
                assert!(duration >= hold_ns && all <= stated.ns, "{hold_ns} {stated:?}: {wait}");
                assert_eq!(wait["reason"], *stated.reason, "{wait}");
                assert_eq!(number(&wait["goroutine"], "number"), stated.goroutine, "{wait}");
                assert!(has(&wait["stack"], function) && has(&wait["stack"], "main.main"));
                let waker = &wait["waker"];
                if stated.waker == 0 {
                    assert_eq!(
                        (&waker["kind"], &waker["goroutine"]),
                        (&"poller".into(), &Value::Null)
                    );
                    // The poller says when, and a thread runs the goroutine later.
                    assert!(number(wait, "runnable_ns") > 0, "{wait}");
                    assert!(
                        wait["object"].as_str().is_some_and(|it| it.starts_with("fd ")),
                        "{wait}"
                    );
                } else {
                    assert_eq!(waker["kind"], "goroutine", "{wait}");
                    assert_eq!(number(&waker["goroutine"], "number"), stated.waker, "{wait}");
                    assert!(has(&waker["stack"], "main.measured.func1"), "{wait}");
                }
            }
        }
        // A lock and a channel of each round have an address of their own.
        for (function, kind) in [("main.lockMutex", "lock 0x"), ("main.receive", "channel 0x")] {
            for wait in waits_in(&data, function) {
                assert!(wait["object"].as_str().is_some_and(|it| it.starts_with(kind)), "{wait}");
            }
        }
        rows_add_waits_up(&data);
        Ok(())
    });
}

fn rows_add_waits_up(data: &Path) {
    let json = goroutines(data, &[]);
    let rows = json["rows"].as_array().expect("rows");
    let row = |function: &str| {
        rows.iter().find(|row| row["function"] == function).unwrap_or_else(|| panic!("{json}"))
    };
    for (function, _) in HOLDS_NS {
        let waits = waits_in(data, function);
        let total: u64 = waits.iter().map(|wait| number(wait, "duration_ns")).sum();
        let longest = waits.iter().map(|wait| number(wait, "duration_ns")).max();
        let row = row(function);
        assert_eq!((number(row, "count"), number(row, "total_ns")), (ROUNDS, total), "{row}");
        assert_eq!(Some(number(row, "max_ns")), longest);
        let wakers = row["wakers"].as_array().expect("wakers");
        assert_eq!((wakers.len(), number(&wakers[0], "count")), (1, ROUNDS), "{row}");
    }
    let idle = row("main.idle");
    assert_eq!((number(idle, "count"), number(idle, "open")), (0, IDLE), "{idle}");
    assert_eq!(number(idle, "goroutines"), IDLE);
    // Go's runtime has goroutines of its own.
    let of_runtime = |json: &Value| {
        let rows = json["rows"].as_array().expect("rows").iter();
        rows.filter(|row| row["function"] == "runtime.bgsweep" || row["reason"] == "GC sweep wait")
            .count()
    };
    assert_eq!(of_runtime(&json), 0);
    assert!(of_runtime(&goroutines(data, &["--runtime"])) > 0);
    let shown = text(whit().args(["goroutines", "-g", "--reason", "Mutex", "-i"]).arg(data));
    for wanted in
        ["sync.Mutex.Lock in main.lockMutex (1 goroutine)", "100.0%  main.", "runtime.gopark"]
    {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    assert!(!shown.contains("chan receive"), "{shown}");
}

/// Debug information says where numbers and objects are; without it they are unknown, and waits are the same.
#[test]
fn goroutines_without_debug_information_have_no_numbers() {
    check("goroutines_without_debug_information_have_no_numbers", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        // Its debug information is nowhere, as a copy's without would be by its build id.
        probe::program("go")?;
        let built = |name: &str, flags: &str| {
            let program = folder.path().join(name);
            let mut compiler = command("go");
            compiler.args(["build", flags, "-o"]).arg(&program);
            succeed(compiler.arg(repository().join("bench/workloads/goroutines.go")));
            program
        };
        let program = built("bare", "-ldflags=-w");
        recorded(&data, &program, &[])?;
        let waits = waits_in(&data, "main.receive");
        assert_eq!(waits.len() as u64, ROUNDS);
        for wait in waits {
            assert!(number(&wait, "duration_ns") >= 10_000_000, "{wait}");
            assert_eq!(
                (&wait["goroutine"]["number"], &wait["object"]),
                (&Value::Null, &Value::Null)
            );
            assert_eq!(wait["waker"]["kind"], "unknown", "{wait}");
            assert!(has(&wait["stack"], "main.receive"), "{wait}");
        }
        let stripped = built("stripped", "-ldflags=-s");
        let refused = output(
            whit().args(["record", "--goroutines", "-o"]).arg(&data).arg("--").arg(&stripped),
        );
        assert!(stderr(&refused).contains("it has no symbol runtime.gopark"), "{refused:?}");
        Ok(())
    });
}

#[test]
fn what_is_no_go_program_is_refused() {
    check("what_is_no_go_program_is_refused", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let refuse = |args: &[&str]| {
            let mut recorder = whit();
            recorder.args(["record", "--goroutines", "-o"]).arg(&data).args(args);
            let refused = output(&mut recorder);
            assert!(!refused.status.success(), "{args:?}");
            stderr(&refused)
        };
        assert!(refuse(&["--", "sleep", "0"]).contains("sleep: it is no Go program"));
        assert!(
            refuse(&["-a", "--", "sleep", "0"])
                .contains("give its command, or its process with -p")
        );
        let none = output(
            whit()
                .args(["goroutines", "-i"])
                .arg(whit_testing::golden::Golden::folder().join("../waits/waits.data")),
        );
        assert!(stderr(&none).contains("whit record --goroutines"), "{none:?}");
        Ok(())
    });
}
