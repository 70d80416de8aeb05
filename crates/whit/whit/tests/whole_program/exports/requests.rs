//! Requests on the time lines of their threads.

use std::path::Path;

use serde_json::Value;

use super::readers::read;
use super::recordings::Example;
use crate::support::check;
use crate::support::tools::{number, repository, text};

/// Duration in nanoseconds, and key.
type Calls = Vec<(u64, String)>;

fn example() -> Example {
    let path = repository().join("tests/recordings/requests/requests.data");
    Example { name: "requests", path, options: Vec::new() }
}

/// All calls of the name `call`, nested ones too.
fn of_requests(example: &Example) -> Calls {
    let mut requests = example.whit("requests");
    requests.args(["--json", "--nested", "--slowest", "100000", "--request", "call"]);
    let json: Value = serde_json::from_str(&text(&mut requests)).expect("JSON");
    let calls = json["requests"][0]["slowest"].as_array().expect("calls");
    let key = |call: &Value| number(call, "key").to_string();
    sorted(calls.iter().map(|call| (number(call, "duration_ns"), key(call))).collect())
}

fn sorted(mut calls: Calls) -> Calls {
    calls.sort();
    calls
}

/// Markers of all threads. Times are milliseconds there.
fn of_firefox(file: &Path) -> Calls {
    let content: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).expect("JSON");
    let mut calls = Calls::new();
    for thread in content["threads"].as_array().expect("threads") {
        let markers = &thread["markers"];
        let column = |name: &str| markers[name].as_array().expect("a column").iter();
        let times = column("startTime").zip(column("endTime"));
        for ((data, name), (start, end)) in column("data").zip(column("name")).zip(times) {
            if data["type"] == "request" {
                let name = &thread["stringArray"][name.as_u64().expect("a number") as usize];
                assert_eq!(name, "call");
                let ms = end.as_f64().expect("an end") - start.as_f64().expect("a start");
                let key = data["key"].as_str().expect("a key").to_owned();
                calls.push(((ms * 1e6).round() as u64, key));
            }
        }
    }
    sorted(calls)
}

#[test]
fn exports_with_times_have_all_requests() {
    check("exports_requests", || {
        let (example, folder) = (example(), tempfile::tempdir().expect("make a directory"));
        let wanted = of_requests(&example);
        assert!(wanted.len() > 100, "{wanted:?}");
        assert_eq!(of_firefox(&example.export("firefox", folder.path())), wanted);
        for format in ["perfetto", "perfetto-v57"] {
            let found = read("read_perfetto.py", &example.export(format, folder.path()), &[])?;
            let calls = serde_json::from_value(found["requests"]["call"].clone());
            assert_eq!(sorted(calls.expect("requests")), wanted, "{format}");
        }
        Ok(())
    });
}
