//! The views are plain SQL: DuckDB gives the same rows over the same tables.

use std::path::Path;

use serde_json::{Map, Value};

use super::rows;
use crate::exports::consumers::python;
use crate::exports::recordings::{Example, recorded};
use crate::support::tools::{repository, text};
use crate::support::{Skip, check};

const TABLES: [&str; 16] = [
    "recording",
    "process",
    "thread",
    "cpu",
    "cgroup",
    "mapping",
    "frame",
    "callsite",
    "sample",
    "sched",
    "thread_state",
    "wait",
    "request",
    "loss",
    "ledger",
    "unwind_end",
];

/// Each before those that use it.
const VIEWS: [&str; 12] = [
    "perf_sample",
    "stack_profile_mapping",
    "stack_profile_frame",
    "stack_profile_callsite",
    "callsite_weight",
    "summary_tree",
    "top_functions",
    "fleet_share",
    "scheduler_latency",
    "thread_level_parallelism",
    "cgroup_share",
    "waits_by_kind",
];

/// Writes all tables, read by one program, since the numbers of call sites are those of the program.
fn write_tables(example: &Example, folder: &Path) {
    let mut schema = Map::new();
    for table in TABLES {
        let columns = format!("SELECT name, type FROM pragma_table_info('{table}')");
        schema.insert(table.to_owned(), Value::Array(rows(example, &columns)));
    }
    let mut query = example.whit("query");
    let statements: Vec<_> = TABLES.iter().map(|table| format!("SELECT * FROM {table}")).collect();
    let all = text(query.args(["--json", "-c", &statements.join(";")]));
    let all: Vec<&str> = all.split("\n\n").collect();
    assert_eq!(all.len(), TABLES.len());
    for (table, rows) in TABLES.iter().zip(all) {
        std::fs::write(folder.join(format!("{table}.json")), rows).expect("write a table");
    }
    let schema = Value::Object(schema).to_string();
    std::fs::write(folder.join("schema.json"), schema).expect("write the schema");
}

/// Rows as texts, in an order that no engine decides; fractions by their first digits.
fn comparable(rows: &[Value]) -> Vec<String> {
    let cell = |value: &Value| match value.as_f64() {
        Some(number) => format!("{number:.6}"),
        None => value.to_string(),
    };
    // Numbers of call sites and frames are those of the program that gave them.
    let is_stable = |name: &str| !matches!(name, "id" | "parent_id" | "callsite_id" | "frame_id");
    let row = |row: &Value| {
        let cells = row.as_object().expect("a row").iter();
        let cells = cells.filter(|(name, _)| is_stable(name));
        cells.map(|(name, value)| format!("{name}={}", cell(value))).collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<_> = rows.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn duckdb_gives_the_same_rows_for_each_view() {
    check("duckdb_gives_the_same_rows_for_each_view", || {
        let mut reader = python("read_duckdb.py")?;
        let mut probe = std::process::Command::new(reader.get_program());
        if !probe.args(["-c", "import duckdb"]).output().is_ok_and(|it| it.status.success()) {
            return Err(Skip("PyPI's duckdb is not installed here".to_owned()));
        }
        let folder = tempfile::tempdir().expect("make a directory");
        // The program works some 10 ms, mostly in the kernel: a rate of 997 Hz can miss its own code.
        let options = ["-c", "20000", "--switch-events", "-g"];
        let command = ["pingpong", "--threads", "2", "--iterations", "1000"];
        let example = recorded("duckdb", folder.path(), &options, &command)?;
        write_tables(&example, folder.path());
        for view in VIEWS {
            let file = format!("{view}.sql");
            let sql = repository().join("sql").join(&file);
            std::fs::copy(sql, folder.path().join(&file)).expect("copy a view");
        }
        let answers = text(reader.arg(folder.path()).args(VIEWS));
        let answers: Value = serde_json::from_str(&answers).expect("JSON");
        for view in VIEWS {
            let theirs = answers[view].as_array().expect("rows");
            let ours = rows(&example, &format!("SELECT * FROM {view}"));
            assert_eq!(comparable(theirs), comparable(&ours), "{view}");
            assert!(!ours.is_empty(), "{view}");
        }
        Ok(())
    });
}
