//! The questions of `sql/questions` over datasets of three hosts: each engine gives the answers of `whit query`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::dataset::over_dataset;
use crate::exports::consumers::installed;
use crate::support::tools::{command, repository, text, whit, workload};
use crate::support::{Skip, check, probe};

/// Each question has a file.
const QUESTIONS: usize = 12;

/// An hour, in seconds.
const HOUR: u64 = 3600;

/// Standard deviations that two estimates may differ by: one comparison in 15,000 does so by chance.
const DEVIATIONS: f64 = 4.0;

type Answers = BTreeMap<String, Value>;

pub(super) fn script(name: &str) -> PathBuf {
    repository().join("scripts/cluster").join(name)
}

fn questions() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository().join("sql/questions")).expect("the questions");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert_eq!(paths.len(), QUESTIONS);
    paths
}

/// The rows of each question.
fn answers(dataset: &Path) -> Answers {
    let answer = |path: PathBuf| {
        let json = text(over_dataset(dataset).arg("--json").arg("-f").arg(&path));
        let rows = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), rows)
    };
    questions().into_iter().map(answer).collect()
}

fn rows<'a>(answers: &'a Answers, question: &str) -> &'a [Value] {
    answers[question].as_array().expect("rows")
}

/// Records three hosts, where this machine can.
fn hosts(folder: &Path) -> Result<PathBuf, Skip> {
    probe::root()?;
    probe::own_events()?;
    probe::bpf_stacks()?;
    probe::cgroup_events()?;
    probe::program("python3")?;
    let workloads = workload("mutexes")?.parent().expect("a folder").to_owned();
    for other in ["pingpong", "shares"] {
        workload(other)?;
    }
    let mut make = command(script("hosts.sh"));
    text(make.arg(whit().get_program()).arg(workloads).arg(folder).arg("50"));
    Ok(folder.join("lake"))
}

/// The Python of the test's set-up, where it has the package of an engine.
pub(super) fn engine(package: &str) -> Result<Command, Skip> {
    let python = installed("python/bin/python");
    let import = format!("import {package}");
    let found = Command::new(&python).args(["-c", &import]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        return Err(Skip(format!("PyPI's {package} is not installed here")));
    }
    Ok(command(python))
}

#[test]
fn engines_give_the_answers_of_whit_over_three_hosts() {
    check("engines_give_the_answers_of_whit_over_three_hosts", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let dataset = hosts(folder.path())?;
        let expected = answers(&dataset);
        for (question, rows) in &expected {
            assert!(rows.as_array().is_some_and(|rows| !rows.is_empty()), "{question}");
        }
        let ours = folder.path().join("whit.json");
        std::fs::write(&ours, serde_json::to_vec(&expected).expect("JSON")).expect("write answers");
        for name in ["duckdb", "datafusion"] {
            check(&format!("engines_give_the_answers_of_whit_over_three_hosts {name}"), || {
                let theirs = folder.path().join(format!("{name}.json"));
                let mut ask = engine(name)?;
                let found = text(ask.arg(script("ask.py")).arg(name).arg(&dataset));
                std::fs::write(&theirs, found).expect("write answers");
                let said = text(engine(name)?.arg(script("compare.py")).arg(&ours).arg(&theirs));
                assert!(said.contains("12 answers are equal"), "{said}");
                Ok(())
            });
        }
        Ok(())
    });
}

pub(crate) fn renamed(recording: &Path, options: &[&str]) {
    text(command("python3").arg(script("rename.py")).arg(recording).args(options));
}

pub(crate) fn export(dataset: &Path, recordings: &[&Path]) {
    let mut export = whit();
    export.args(["export", "--parquet"]).arg(dataset);
    for recording in recordings {
        export.arg("-i").arg(recording);
    }
    text(&mut export);
}

/// The clock of one host is an hour ahead, and another whit recorded there.
#[test]
fn a_wrong_clock_and_another_version_leave_answers_as_they_are() {
    check("a_wrong_clock_and_another_version_leave_answers_as_they_are", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let right = answers(&hosts(folder.path())?);
        let path = |name: &str| folder.path().join(format!("{name}.data"));
        let ahead = HOUR.to_string();
        renamed(&path("web2"), &["--clock-ahead", &ahead, "--version", "0.0.1"]);
        let dataset = folder.path().join("skewed");
        export(&dataset, &[&path("web1"), &path("web2"), &path("db1"), &path("losses")]);
        let mut skewed = answers(&dataset);
        let times = "12_load_by_time_of_day";
        for row in skewed.get_mut(times).and_then(Value::as_array_mut).expect("rows") {
            if row["host"] == "web2" {
                let begin = row["begin_ns"].as_u64().expect("a time");
                row["begin_ns"] = (begin - HOUR * 1_000_000_000).into();
            }
        }
        let costs = "11_cost_of_recording";
        let version = |answers: &Answers| {
            let rows = rows(answers, costs).iter();
            rows.filter(|row| row["host"] == "web2").all(|row| row["version"] == "0.0.1")
        };
        assert!(version(&skewed) && !version(&right));
        let without = |answers: &Answers, question: &str| {
            let mut rows = answers[question].as_array().expect("rows").clone();
            rows.iter_mut().for_each(|row| row["version"] = Value::Null);
            let mut rows: Vec<_> = rows.iter().map(Value::to_string).collect();
            rows.sort_unstable();
            rows
        };
        for question in right.keys() {
            assert_eq!(without(&skewed, question), without(&right, question), "{question}");
        }
        Ok(())
    });
}

/// Samples and weight of each function of a host in the binary `shares`.
fn functions(answers: &Answers, host: &str) -> BTreeMap<String, (f64, f64)> {
    let number = |row: &Value, name: &str| row[name].as_f64().expect("a number");
    let own = |row: &&Value| {
        row["host"] == host
            && row["mapping_name"].as_str().is_some_and(|name| name.ends_with("/shares"))
    };
    let mut functions = BTreeMap::new();
    for row in rows(answers, "02_function_by_host_and_build").iter().filter(own) {
        let name = row["name"].as_str().expect("a name").to_owned();
        functions.insert(name, (number(row, "samples"), number(row, "self_weight")));
    }
    functions
}

/// Two recorders watch the same process, the outer one at a tenth of the rate of the inner one.
#[test]
fn equal_work_has_equal_weight_at_other_rates() {
    check("equal_work_has_equal_weight_at_other_rates", || {
        probe::own_events()?;
        probe::program("python3")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let (slow, fast) = (folder.path().join("a.data"), folder.path().join("b.data"));
        let record = |rate: &str, path: &Path| {
            let (event, path) = ("cpu-clock:u".to_owned(), path.display().to_string());
            let mut line = vec![whit().get_program().to_string_lossy().into_owned()];
            line.extend(["record", "--engine=ring", "-q", "-F", rate, "-e"].map(str::to_owned));
            line.extend([event, "-o".to_owned(), path, "--".to_owned()]);
            line
        };
        let mut line = record("99", &slow);
        line.extend(record("997", &fast));
        line.push(workload("shares")?.display().to_string());
        text(command(&line[0]).args(&line[1..]).args(["flat", "4"]));
        renamed(&slow, &["--host", "a"]);
        renamed(&fast, &["--host", "b"]);
        let dataset = folder.path().join("lake");
        export(&dataset, &[&slow, &fast]);
        let answers = answers(&dataset);
        let (slow, fast) = (functions(&answers, "a"), functions(&answers, "b"));
        let sum = |of: &BTreeMap<String, (f64, f64)>| {
            of.values().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
        };
        let (all_slow, all_fast) = (sum(&slow), sum(&fast));
        assert!(all_fast.0 > 5.0 * all_slow.0, "{all_fast:?} and {all_slow:?} samples");
        let ratio = all_slow.1 / all_fast.1;
        let interval = 2.0 / f64::sqrt(all_slow.0);
        assert!((ratio - 1.0).abs() <= interval, "{ratio}: {all_slow:?} {all_fast:?}");
        assert!(fast.len() >= 10, "{fast:?}");
        for (name, (_, weight)) in &fast {
            let share = weight / all_fast.1;
            let found = slow.get(name).map_or(0.0, |it| it.1 / all_slow.1);
            let variance = share * (1.0 - share) * (1.0 / all_slow.0 + 1.0 / all_fast.0);
            // A sample more or less of a rare function.
            let interval = DEVIATIONS * variance.sqrt() + 1.0 / all_slow.0;
            assert!((share - found).abs() <= interval, "{name}: {share} {found} ± {interval}");
        }
        Ok(())
    });
}
