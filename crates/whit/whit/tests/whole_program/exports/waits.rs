//! Classes of waits, in the table of waits and in exports.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::consumers;
use super::readers::read;
use super::recordings::Example;
use crate::support::check;
use crate::support::tools::text;
use crate::wait_classes::recorded;

type ByClass = BTreeMap<String, u64>;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Time of waits by class, as a query over the recording or over a dataset sums it up.
fn of_query(query: &mut std::process::Command, only: &str) -> ByClass {
    let sql = format!("SELECT class, SUM(dur) AS ns FROM wait WHERE {only} GROUP BY class");
    let rows = json(&text(query.args(["--json", "-c", &sql])));
    let row = |row: &Value| {
        (row["class"].as_str().expect("a class").to_owned(), row["ns"].as_u64().unwrap_or(0))
    };
    let mut sums: ByClass = rows.as_array().expect("rows").iter().map(row).collect();
    sums.retain(|_, ns| *ns > 0);
    sums
}

/// Time of voluntary waits by class in `whit switches`.
fn of_switches(example: &Example) -> ByClass {
    let switches = json(&text(example.whit("switches").arg("--json")));
    let mut sums = ByClass::new();
    for row in switches["rows"].as_array().expect("rows") {
        let ns = row["sums"]["sync_wait_ns"].as_u64().expect("a time");
        if ns > 0 {
            *sums.entry(row["wait_class"].as_str().expect("a class").to_owned()).or_default() += ns;
        }
    }
    sums
}

/// Milliseconds of markers by class.
fn of_firefox(file: &Path) -> ByClass {
    let content: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).expect("JSON");
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for thread in content["threads"].as_array().expect("threads") {
        let markers = &thread["markers"];
        let times = |column: &str| markers[column].as_array().unwrap().iter().map(Value::as_f64);
        let data = markers["data"].as_array().unwrap().iter();
        for (data, (start, end)) in data.zip(times("startTime").zip(times("endTime"))) {
            if let (Some(class), Some(start), Some(end)) = (data["class"].as_str(), start, end) {
                assert_eq!(data["type"], "wait");
                *sums.entry(class.to_owned()).or_default() += end - start;
            }
        }
    }
    sums.into_iter().map(|(class, ms)| (class, ms.round() as u64)).collect()
}

#[test]
fn classes_of_waits_are_those_of_the_switches() {
    check("exports_wait_classes", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let path = folder.path().join("perf.data");
        recorded(&path, folder.path())?;
        let example = Example { name: "classes", path, options: Vec::new() };
        let certain = "kind = 'sync' AND certain = 1";
        let switches = of_switches(&example);
        assert!(switches.len() >= 9, "{switches:?}");
        assert_eq!(of_query(&mut example.whit("query"), certain), switches);
        let all = of_query(&mut example.whit("query"), "kind = 'sync'");
        let others = of_query(&mut example.whit("query"), "kind != 'sync'");
        assert!(others.keys().all(|class| class == "preempted" || class == "new"), "{others:?}");

        let lake = folder.path().join("lake");
        text(example.whit("export").arg("--parquet").arg(&lake));
        let mut dataset = crate::support::tools::whit();
        dataset.args(["query", "--dataset"]).arg(&lake);
        assert_eq!(of_query(&mut dataset, "kind = 'sync'"), all);

        let in_ms: ByClass =
            all.iter().map(|(class, ns)| (class.clone(), ns / 1_000_000)).collect();
        for (class, ms) in of_firefox(&example.export("firefox", folder.path())) {
            assert!(in_ms[&class].abs_diff(ms) <= 1, "{class}: {ms} {in_ms:?}");
        }
        consumers::python("read_perfetto.py")?;
        let found = read("read_perfetto.py", &example.export("perfetto", folder.path()), &[])?;
        let waits: ByClass = serde_json::from_value(found["waits"].clone()).expect("sums");
        assert_eq!(waits, all);
        Ok(())
    });
}
