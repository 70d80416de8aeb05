//! `whit diff --dataset`: the same verdicts as over the recordings, and parts of a dataset by build, time and cgroup.

use std::collections::BTreeMap;
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
    let sql = format!("SELECT DISTINCT build_id FROM mapping WHERE name LIKE '%/{program}'");
    let mut query = whit();
    query.args(["query", "--csv", "--dataset"]).arg(lake).args(["-c", &sql]);
    text(&mut query).lines().nth(1).expect("a build id").to_owned()
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

/// A wait loses a nanosecond at each of the 47 bounds of blocks that it crosses, and the recording has eight threads. The
/// bounds are others in a dataset, which does not state the recorded time before the first switch.
const BOUNDS_NS: f64 = 47.0 * 8.0;

/// All but CPU time by call stack, which a dataset does not have: of `waits`, `locks` and `requests`.
#[test]
fn waits_locks_and_requests_of_a_dataset_are_those_of_its_recordings() {
    let folder = tempfile::tempdir().expect("make a directory");
    const OF_WAITS: &[&str] = &["waiting", "waits", "length"];
    const OF_REQUESTS: &[&str] = &["duration", "requests", "p50", "p90", "p99"];
    for (name, quantities, arguments) in [
        ("waits", OF_WAITS, &["--waits"][..]),
        ("waits", OF_WAITS, &["--waits", "-s", "wait_class"]),
        ("waits", OF_WAITS, &["--waits", "-s", "comm,wait_object"]),
        ("waits", OF_WAITS, &["--locks"]),
        ("waits", OF_WAITS, &["--locks", "-s", "lock"]),
        ("requests", OF_REQUESTS, &["--requests"]),
    ] {
        let recording = repository().join(format!("tests/recordings/{name}/{name}.data"));
        let lake = folder.path().join(name);
        if !lake.exists() {
            export(&lake, &[&recording]);
        }
        let json = |diff: &mut Command| -> Value {
            let output = diff.args(arguments).output().expect("run whit");
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
        };
        let expected = json(whit().args(["diff", "--json"]).args([&recording, &recording]));
        let host = text(
            whit()
                .args(["query", "--csv", "-c", "SELECT host FROM recording", "-i"])
                .arg(&recording),
        );
        let part = format!("host={}", host.lines().nth(1).expect("a host"));
        let of_part = |part: &str| {
            json(whit().args(["diff", "--json", "--dataset"]).arg(&lake).args([part, part]))
        };
        let found = of_part(&part);
        if name == "waits" {
            assert_eq!(
                of_part(&format!("build={}", build_in(&lake, "mutexes")))["rows"],
                found["rows"]
            );
        }
        let names = found["quantities"].as_array().expect("quantities").iter();
        assert_eq!(names.map(|of| &of["name"]).collect::<Vec<_>>(), quantities, "{arguments:?}");
        // Rows that only ran have waited for 0 ns.
        let [expected, found] = [expected, found].map(|document| {
            let is_shared = |((_, quantity), sum): &((String, String), f64)| {
                *sum > 0.0 && quantities.contains(&quantity.trim_matches('"'))
            };
            sums(&document).into_iter().filter(is_shared).collect::<BTreeMap<_, _>>()
        });
        assert!(!expected.is_empty(), "{arguments:?}");
        for (key, sum) in &expected {
            let of_dataset = found.get(key).copied().unwrap_or(f64::NAN);
            let is_time = ["waiting", "length"].iter().any(|of| key.1.contains(of));
            // The rest is that of a division by seconds.
            let error = 1e-9 * sum + if is_time { BOUNDS_NS } else { 0.0 };
            assert!((of_dataset - sum).abs() <= error, "{arguments:?} {key:?}: {of_dataset} {sum}");
        }
        assert_eq!(found.len(), expected.len(), "{arguments:?}");
    }
}

#[test]
fn a_dataset_refuses_rows_that_it_does_not_have() {
    let folder = tempfile::tempdir().expect("make a directory");
    export(folder.path(), &[&repository().join("tests/recordings/waits/waits.data")]);
    for (arguments, expected) in [
        (&["--wall", "host=a", "host=b"][..], "--dataset has no effect with --wall"),
        (&["--stat", "host=a", "host=b"], "--dataset has no effect with --stat"),
        (&["--waits", "-s", "cgroup", "host=a", "host=b"], "no cgroups"),
        (&["--requests", "unit=a", "unit=b"], "no cgroups"),
    ] {
        let mut diff = whit();
        diff.args(["diff", "--dataset"]).arg(folder.path()).args(arguments);
        let output = diff.output().expect("run whit");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(said(&output).contains(expected), "{arguments:?}: {output:?}");
    }
    let mut diff = whit();
    diff.args(["diff", "--waits", "--dataset"]).arg(folder.path()).args(["host=nowhere", "host=b"]);
    let output = diff.output().expect("run whit");
    assert!(said(&output).contains("has no waits of host=nowhere"), "{output:?}");
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
