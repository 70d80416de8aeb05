//! The answers to all questions and views over the golden recordings are kept, and those of each engine are the same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use whit_testing::assert_published;

use super::dataset::{made, over_dataset};
use super::questions::{engine, script};
use crate::support::tools::{command, repository, text};
use crate::support::{Skip, check, probe};

/// The kept answers, from the root of the repository.
const ANSWERS: &str = "tests/recordings/answers.json";

/// The statements of a folder of `sql`, by their names.
fn statements(folder: &str, statement: impl Fn(&str, &Path) -> String) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(repository().join(folder)).expect("a folder of statements");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_sql = |path: &PathBuf| path.extension().is_some_and(|it| it == "sql");
    let of_path = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name.clone(), statement(&name, &path))
    };
    paths.filter(is_sql).map(of_path).collect()
}

/// The answers of whit, one row a line, in an order that no engine decides.
fn answers(dataset: &Path) -> String {
    let read = |_: &str, path: &Path| std::fs::read_to_string(path).expect("a statement");
    let mut all: BTreeMap<_, _> = statements("sql/questions", read).into_iter().collect();
    all.extend(statements("sql", |view, _| format!("SELECT * FROM {view}")));
    assert_eq!(all.len(), 12 + 12);
    let mut out = String::new();
    for (name, sql) in all {
        let json = text(over_dataset(dataset).args(["--json", "-c", &format!("\n{sql}")]));
        let rows: Value = serde_json::from_str(&json).unwrap_or_else(|it| panic!("{it}: {json}"));
        let rows = rows.as_array().expect("rows").iter();
        let mut rows: Vec<_> = rows.map(Value::to_string).collect();
        rows.sort_unstable();
        let begin = if out.is_empty() { "{" } else { ",\n" };
        write!(out, "{begin}\"{name}\": [\n{}\n]", rows.join(",\n")).expect("into memory");
    }
    out + "}\n"
}

/// Asks an engine, and compares.
fn assert_answers_are_equal(ask: &mut Command, folder: &Path) {
    let found = folder.join("found.json");
    std::fs::write(&found, text(ask)).expect("write answers");
    let mut compare = command("python3");
    compare.arg(script("compare.py")).arg(repository().join(ANSWERS)).arg(found);
    let said = text(&mut compare);
    assert!(said.contains("24 answers are equal"), "{said}");
}

#[test]
fn answers_over_golden_recordings_are_kept() {
    let folder = made();
    assert_published(ANSWERS, &answers(&folder.path().join("lake")));
}

#[test]
fn other_engines_give_the_kept_answers() {
    let folder = made();
    for name in ["duckdb", "datafusion"] {
        check(&format!("other_engines_give_the_kept_answers {name}"), || {
            let mut ask = engine(name)?;
            ask.arg(script("ask.py")).arg(name).arg(folder.path().join("lake")).arg("--views");
            assert_answers_are_equal(&mut ask, folder.path());
            Ok(())
        });
    }
}

/// Spark, where `make cluster` has fetched it: a master and a worker.
#[test]
fn spark_gives_the_kept_answers() {
    check("spark_gives_the_kept_answers", || {
        probe::program("java")?;
        let place = repository().join("target/cluster");
        let (spark, python) = (place.join("pyspark"), place.join("python/bin/python"));
        if !spark.join("deps/jars").exists() || !python.exists() {
            return Err(Skip("Spark is not installed here (make cluster)".to_owned()));
        }
        let folder = made();
        let mut ask = command(script("spark.sh"));
        ask.arg(spark).arg(folder.path().join("spark")).arg("1").arg(python);
        ask.arg(script("ask.py")).arg("spark").arg(folder.path().join("lake"));
        ask.args(["--views", "--master"]).current_dir(folder.path());
        assert_answers_are_equal(&mut ask, folder.path());
        Ok(())
    });
}
