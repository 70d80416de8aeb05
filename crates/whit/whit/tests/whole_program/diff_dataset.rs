//! `whit diff --dataset`: the same verdicts as over the recordings, and parts of a dataset by build, time and cgroup.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::query::questions::{export, renamed};
use crate::support::tools::{record, repository, text, whit, workload};
use crate::support::{Skip, check, probe};

/// About a third of a second.
const ITERATIONS: &str = "40000";

/// Two builds of one program on two hosts, as recordings and as a dataset.
struct Fleet {
    folder: tempfile::TempDir,
    before: PathBuf,
    after: PathBuf,
}

impl Fleet {
    fn record() -> Result<Fleet, Skip> {
        probe::program("python3")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let recorded = |host: &str, program: &str, clock: &[&str]| {
            let path = folder.path().join(format!("{host}.data"));
            let mut recorder = whit();
            recorder
                .args(["record", "--engine=ring", "-q", "-F", "1999", "-g"])
                .args(clock)
                .arg("-o")
                .arg(&path)
                .arg("--");
            record(recorder.arg(workload(program)?).args(["--iterations", ITERATIONS]))?;
            renamed(&path, &["--host", host]);
            Ok(path)
        };
        let before = recorded("a", "deep-static", &["-k", "monotonic"])?;
        let after = recorded("b", "deep-fp", &[])?;
        export(&folder.path().join("lake"), &[&before, &after]);
        Ok(Fleet { folder, before, after })
    }

    fn lake(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    fn diff(&self, arguments: &[&str]) -> Output {
        let mut diff = whit();
        diff.args(["diff", "--dataset"]).arg(self.lake()).args(arguments);
        diff.output().expect("run whit")
    }
}

fn build_in(lake: &Path, program: &str) -> String {
    value_in(lake, &format!("SELECT DISTINCT build_id FROM mapping WHERE name LIKE '%/{program}'"))
}

fn events(output: &Output) -> Value {
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    json["events"].clone()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn two_hosts_of_a_dataset_compare_as_their_recordings() {
    check("two_hosts_of_a_dataset_compare_as_their_recordings", || {
        let fleet = Fleet::record()?;
        let recordings: [&Path; 2] = [&fleet.before, &fleet.after];
        let expected = whit().args(["diff", "--json"]).args(recordings).output().expect("run whit");
        let found = fleet.diff(&["--json", "host=a", "host=b"]);
        assert_eq!(events(&found), events(&expected));
        let rows = events(&expected)[0]["rows"].as_array().map_or(0, Vec::len);
        assert!(rows > 10, "{rows} functions");
        let failed = fleet.diff(&["--fail-above", "2%", "host=a", "host=b"]);
        assert_eq!(failed.status.code(), Some(3), "{failed:?}");
        let equal = fleet.diff(&["--fail-above", "0%", "host=a", "host=a"]);
        assert_eq!(equal.status.code(), Some(0), "{equal:?}");
        assert!(String::from_utf8_lossy(&equal.stdout).contains("; 0 differences"), "{equal:?}");
        Ok(())
    });
}

#[test]
fn two_builds_are_found_by_the_first_digits() {
    check("two_builds_are_found_by_the_first_digits", || {
        let fleet = Fleet::record()?;
        let [before, after] = ["deep-static", "deep-fp"].map(|name| build_in(&fleet.lake(), name));
        let term = |build: &str| format!("build={}", build[..12].to_ascii_uppercase());
        let found = fleet.diff(&["--json", &term(&before), &term(&after)]);
        let expected = fleet.diff(&["--json", "host=a", "host=b"]);
        assert_eq!(events(&found), events(&expected));
        // Each term narrows.
        let nowhere = fleet.diff(&[&format!("host=b,{}", term(&before)), "host=b"]);
        assert_eq!(nowhere.status.code(), Some(1), "{nowhere:?}");
        assert!(said(&nowhere).contains("has no samples of host=b,build="), "{nowhere:?}");
        Ok(())
    });
}

#[test]
fn times_choose_samples_where_recordings_state_them() {
    check("times_choose_samples_where_recordings_state_them", || {
        let fleet = Fleet::record()?;
        let whole = fleet.diff(&["--json", "host=a,from=2020-01-01,to=9999-12-31T23:59", "host=b"]);
        assert_eq!(events(&whole), events(&fleet.diff(&["--json", "host=a", "host=b"])));
        let never = fleet.diff(&["host=a,to=2020-01-01", "host=b"]);
        assert!(said(&never).contains("has no samples of host=a,to=2020-01-01"), "{never:?}");
        let unstated = fleet.diff(&["host=a", "host=b,from=2020-01-01"]);
        assert!(said(&unstated).contains("do not state the time of day"), "{unstated:?}");
        let wrong = fleet.diff(&["host=a,from=yesterday-ish", "host=b"]);
        assert!(said(&wrong).contains("is no time"), "{wrong:?}");
        Ok(())
    });
}

/// The dataset of a recording that the repository has, in a folder.
fn lake_of(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let recording = repository().join(format!("tests/recordings/{name}/{name}.data"));
    let lake = folder.join(name);
    if !lake.exists() {
        export(&lake, &[&recording]);
    }
    (recording, lake)
}

/// A document of `whit diff` with some more arguments.
fn document(diff: &mut Command, arguments: &[&str]) -> Value {
    let output = diff.args(arguments).output().expect("run whit");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// A part of a dataset, compared with itself.
fn of_part(lake: &Path, part: &str, arguments: &[&str]) -> Value {
    document(whit().args(["diff", "--json", "--dataset"]).arg(lake).args([part, part]), arguments)
}

/// The only value of a statement over a dataset.
fn value_in(lake: &Path, sql: &str) -> String {
    let mut query = whit();
    query.args(["query", "--csv", "--dataset"]).arg(lake).args(["-c", sql]);
    text(&mut query).lines().nth(1).expect("a row").to_owned()
}

/// Sums of a document by row and quantity: rates times seconds.
fn sums(document: &Value) -> BTreeMap<(String, String), f64> {
    let seconds = document["before"]["seconds"].as_f64().expect("a number of seconds");
    let rates = document["quantities"].as_array().expect("quantities").iter();
    let rates: Vec<_> = rates.filter(|of| of["per"] == "second").map(|of| &of["name"]).collect();
    let mut sums = BTreeMap::new();
    for row in document["rows"].as_array().expect("rows") {
        for value in row["values"].as_array().expect("values") {
            let factor = if rates.contains(&&value["quantity"]) { seconds } else { 1.0 };
            let sum = value["before"].as_f64().expect("a number") * factor;
            sums.insert((row["name"].to_string(), value["quantity"].to_string()), sum);
        }
    }
    sums
}

/// A wait or a run loses a nanosecond at each of the 47 bounds of blocks that it crosses, and the recording has eight
/// threads. The bounds are others in a dataset, which does not state the recorded time before the first switch.
const BOUNDS_NS: f64 = 47.0 * 8.0;

/// Compares the sums of a dataset and its recording: these quantities, of `waits` or of `requests`.
fn compare_sums(folder: &Path, name: &str, quantities: &[&str], arguments: &[&str]) {
    let (recording, lake) = lake_of(folder, name);
    let expected =
        document(whit().args(["diff", "--json"]).args([&recording, &recording]), arguments);
    let host = value_in(&lake, "SELECT host FROM recording");
    let found = of_part(&lake, &format!("host={host}"), arguments);
    let program = if name == "waits" { "mutexes" } else { "server" };
    let of_build = of_part(&lake, &format!("build={}", build_in(&lake, program)), arguments);
    assert_eq!(of_build["rows"], found["rows"], "{arguments:?}");
    let names = |document: &Value| -> Vec<String> {
        let all = document["quantities"].as_array().expect("quantities").iter();
        all.map(|of| of["name"].as_str().expect("a name").to_owned()).collect()
    };
    let (of_recording, of_dataset) = (names(&expected), names(&found));
    assert!(of_recording.starts_with(&of_dataset), "{of_recording:?} {of_dataset:?}");
    let [expected, found] = [expected, found].map(|document| {
        let is_wanted = |((_, quantity), sum): &((String, String), f64)| {
            *sum > 0.0 && quantities.contains(&quantity.trim_matches('"'))
        };
        sums(&document).into_iter().filter(is_wanted).collect::<BTreeMap<_, _>>()
    });
    let of: HashSet<&str> = expected.keys().map(|(_, of)| of.trim_matches('"')).collect();
    assert_eq!(of, quantities.iter().copied().collect(), "{arguments:?}");
    for (key, sum) in &expected {
        let of_dataset = found.get(key).copied().unwrap_or(f64::NAN);
        let is_count = ["waits", "requests"].contains(&key.1.trim_matches('"'));
        // The rest is that of a division by seconds.
        let error = 1e-9 * sum + if is_count { 0.0 } else { BOUNDS_NS };
        assert!((of_dataset - sum).abs() <= error, "{arguments:?} {key:?}: {of_dataset} {sum}");
    }
    assert_eq!(found.len(), expected.len(), "{arguments:?}");
}

#[test]
fn waits_locks_and_requests_of_a_dataset_are_those_of_its_recordings() {
    let folder = tempfile::tempdir().expect("make a directory");
    const OF_WAITS: &[&str] = &["waiting", "waits", "length"];
    // The time of a thread depends neither on the call sites of its samples nor on its names.
    const OF_THREADS: &[&str] = &["waiting", "waits", "length", "running"];
    const OF_WALL: &[&str] = &["wall time", "waiting", "run queue", "running"];
    for (quantities, arguments) in [
        (OF_WAITS, &["--waits"][..]),
        (OF_WAITS, &["--waits", "-s", "wait_class"]),
        (OF_WAITS, &["--waits", "-s", "comm,wait_object"]),
        (OF_THREADS, &["--waits", "-s", "cgroup"]),
        (OF_WALL, &["--wall", "-s", "cgroup"]),
        (&["waiting", "run queue"], &["--wall"]),
        (OF_WAITS, &["--locks"]),
        (OF_WAITS, &["--locks", "-s", "lock"]),
    ] {
        compare_sums(folder.path(), "waits", quantities, arguments);
    }
    let of_requests = ["duration", "requests", "p50", "p90", "p99"];
    compare_sums(folder.path(), "requests", &of_requests, &["--requests"]);
}

/// CPU time by function, as `whit switches` has it over the recording as a whole.
fn cpu_time_by_function(recording: &Path) -> BTreeMap<String, f64> {
    let json = text(whit().args(["switches", "--json", "-i"]).arg(recording));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let mut sums = BTreeMap::new();
    for row in json["rows"].as_array().expect("rows") {
        let ns = row["sums"]["cpu_ns"].as_f64().expect("a number");
        let stack = row["stack"].as_array().expect("a stack").iter();
        let functions = stack.map(|number| {
            let of = &json["functions"][number.as_u64().expect("a number") as usize];
            let name = of["name"].as_str().expect("a name");
            let name = name.strip_suffix(" (inlined)").unwrap_or(name);
            Value::from(vec![Value::from(name), of["dso"].clone()]).to_string()
        });
        for function in functions.collect::<HashSet<_>>() {
            *sums.entry(function).or_default() += ns;
        }
    }
    sums.retain(|_, ns| *ns > 0.0);
    sums
}

#[test]
fn cpu_time_of_a_dataset_is_that_of_its_recording() {
    let folder = tempfile::tempdir().expect("make a directory");
    for name in ["waits", "requests"] {
        let (recording, lake) = lake_of(folder.path(), name);
        let expected = cpu_time_by_function(&recording);
        let part = format!("host={}", value_in(&lake, "SELECT host FROM recording"));
        let found = sums(&of_part(&lake, &part, &["--wall"]));
        assert!(expected.len() > 20, "{name}: {expected:?}");
        for (function, ns) in expected {
            let of_dataset = found.get(&(function.clone(), "\"running\"".to_owned()));
            let of_dataset = of_dataset.copied().unwrap_or(f64::NAN);
            // A division by seconds.
            assert!((of_dataset - ns).abs() <= 1e-9 * ns, "{name} {function}: {of_dataset} {ns}");
        }
    }
}

#[test]
fn times_divide_waits_and_requests() {
    let folder = tempfile::tempdir().expect("make a directory");
    let (_, lake) = lake_of(folder.path(), "requests");
    let middle = value_in(
        &lake,
        "SELECT strftime('%Y-%m-%dT%H:%M:%f', ((first_ts + last_ts) / 2 + clock_offset_ns) / 1e9, 'unixepoch')
         FROM recording",
    );
    for (arguments, quantity) in [
        (&["--requests"][..], "requests"),
        (&["--waits", "-s", "comm"], "waits"),
        (&["--wall", "-s", "comm"], "running"),
    ] {
        let total = |part: &str| -> f64 {
            let sums = sums(&of_part(&lake, part, arguments));
            sums.iter()
                .filter(|((_, of), _)| of.trim_matches('"') == quantity)
                .map(|(_, sum)| sum)
                .sum()
        };
        let parts = [total(&format!("to={middle}")), total(&format!("from={middle}"))];
        let whole = total("from=2020-01-01");
        assert!(parts.iter().all(|part| *part > 0.1 * whole), "{arguments:?} {parts:?} {whole}");
        let error = if quantity == "running" { BOUNDS_NS } else { 1e-6 };
        let sum = parts[0] + parts[1];
        assert!((sum - whole).abs() <= error, "{arguments:?}: {parts:?} {whole}");
    }
}

#[test]
fn parts_of_different_engines_are_refused() {
    let folder = tempfile::tempdir().expect("make a directory");
    let recordings = ["waits/waits.data", "golden/perf-switches/recording.data"]
        .map(|name| repository().join("tests/recordings").join(name));
    export(folder.path(), &recordings.each_ref().map(PathBuf::as_path));
    let mut diff = whit();
    diff.args(["diff", "--wall", "--dataset"]).arg(folder.path()).args(["host=vm", "host=golden"]);
    let output = diff.output().expect("run whit");
    assert!(said(&output).contains("engine: bpf in "), "{output:?}");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn a_dataset_refuses_rows_that_it_does_not_have() {
    let folder = tempfile::tempdir().expect("make a directory");
    let (_, waits) = lake_of(folder.path(), "waits");
    let (_, requests) = lake_of(folder.path(), "requests");
    let without_stacks = folder.path().join("perf-switches");
    let golden = repository().join("tests/recordings/golden/perf-switches/recording.data");
    export(&without_stacks, &[&golden]);
    for (lake, code, arguments, expected) in [
        (&waits, 2, &["--stat", "host=a", "host=b"][..], "--dataset has no effect with --stat"),
        (&waits, 1, &["--waits", "host=nowhere", "host=b"], "has no waits of host=nowhere"),
        (&waits, 1, &["--wall", "unit=a", "unit=b"], "has no waits of unit=a"),
        (&requests, 1, &["--requests", "unit=a", "unit=b"], "has no requests of unit=a"),
        (
            &requests,
            1,
            &["--waits", "-s", "cgroup", "from=2020-01-01", "from=2020-01-01"],
            "record again with --all-cgroups",
        ),
        (&without_stacks, 2, &["--locks", "HOST", "HOST"], "has no call stacks of switches"),
    ] {
        let host = format!("host={}", value_in(lake, "SELECT host FROM recording"));
        let arguments =
            arguments.iter().map(|word| if *word == "HOST" { host.as_str() } else { *word });
        let mut diff = whit();
        diff.args(["diff", "--dataset"]).arg(lake).args(arguments);
        let output = diff.output().expect("run whit");
        assert!(said(&output).contains(expected), "{output:?}");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
}

#[test]
fn what_selects_nothing_is_named() {
    let folder = tempfile::tempdir().expect("make a directory");
    let golden = whit_testing::golden::Golden::all();
    let paths: Vec<&Path> = golden.iter().take(2).map(|golden| golden.path.as_path()).collect();
    let lake = folder.path().join("lake");
    export(&lake, &paths);
    let diff = |arguments: &[&str]| {
        let output = whit().args(["diff", "--dataset"]).arg(&lake).args(arguments).output();
        output.expect("run whit")
    };
    for (arguments, code, expected) in [
        (&["host=nobody", "host=nobody"][..], 1, "has no samples of host=nobody"),
        (&["hosts=a", "host=b"], 2, "there is no key 'hosts'"),
        (&["a.data", "b.data"], 2, "write KEY=VALUE"),
        (&[], 2, "name the part before and the part after"),
        (&["host=a"], 2, "name one recording before and one after"),
        (&["--pid", "1", "host=a", "host=b"], 2, "cannot be used with"),
        (&["--symfs", "/", "host=a", "host=b"], 2, "cannot be used with"),
    ] {
        let output = diff(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        assert!(said(&output).contains(expected), "{arguments:?}: {output:?}");
    }
}
