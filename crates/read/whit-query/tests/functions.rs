//! Functions that give rows, against naive computations.

use proptest::prelude::*;
use whit_perfdata::reader::Recording;
use whit_profile::ReadOptions;
use whit_query::{Options, OutputForm, QueryError, Session, VIEWS, run};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_tables::{Cancel, Database};
use whit_testing::golden::Golden;

fn session_with(golden: &Golden, memory_bytes: u64) -> Session {
    let dirs = DebugDirs { symfs: Some(Golden::folder().join("root")), ..DebugDirs::none() };
    let options = ReadOptions::new(1, SymbolizerConfig::new(dirs));
    let recording = Recording::open(&golden.path).expect("a golden recording");
    let database = Database::new(vec![(recording, options)], Cancel::default());
    Session::new(database, Options { memory_bytes }).expect("a session")
}

fn session(golden: &Golden) -> Session {
    session_with(golden, 64 << 20)
}

fn golden(name: &str) -> Golden {
    Golden::all().into_iter().find(|golden| golden.name == name).expect("a golden recording")
}

fn ask(session: &Session, sql: &str) -> Result<Vec<String>, QueryError> {
    let mut out = Vec::new();
    run(session, sql, OutputForm::Csv, &mut out)?;
    let text = String::from_utf8(out).expect("UTF-8");
    let mut rows: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    rows.sort_unstable();
    Ok(rows)
}

fn rows(session: &Session, sql: &str) -> Vec<String> {
    ask(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    ts: i64,
    dur: i64,
    key: i64,
}

fn intervals() -> impl Strategy<Value = Vec<Interval>> {
    let interval = (0..30_i64, 0..8_i64, 0..3_i64);
    let interval = interval.prop_map(|(ts, dur, key)| Interval { ts, dur, key });
    prop::collection::vec(interval, 1..14)
}

/// A SELECT that gives these intervals, with their places as numbers.
fn select(intervals: &[Interval]) -> String {
    let row =
        |(id, Interval { ts, dur, key }): (usize, &Interval)| format!("({id}, {ts}, {dur}, {key})");
    let rows: Vec<String> = intervals.iter().enumerate().map(row).collect();
    format!("WITH v(id, ts, dur, key) AS (VALUES {}) SELECT * FROM v", rows.join(", "))
}

fn shares_time(one: &Interval, other: &Interval) -> bool {
    let (end, other_end) = (one.ts + one.dur, other.ts + other.dur);
    match (one.dur, other.dur) {
        (0, 0) => one.ts == other.ts,
        (0, _) => (other.ts..other_end).contains(&one.ts),
        (_, 0) => (one.ts..end).contains(&other.ts),
        _ => one.ts < other_end && other.ts < end,
    }
}

fn naive(left: &[Interval], right: &[Interval]) -> Vec<String> {
    let mut rows = Vec::new();
    for (id_0, one) in left.iter().enumerate() {
        for (id_1, other) in right.iter().enumerate() {
            if one.key == other.key && shares_time(one, other) {
                let begin = one.ts.max(other.ts);
                let end = (one.ts + one.dur).min(other.ts + other.dur);
                rows.push(format!("{begin},{},{},{id_0},{id_1}", end - begin, one.key));
            }
        }
    }
    rows.sort_unstable();
    rows
}

#[test]
fn intersections_are_those_of_all_pairs() {
    let session = session(&golden("losses"));
    let mut runner = proptest::test_runner::TestRunner::default();
    let ran = runner.run(&(intervals(), intervals()), |(left, right)| {
        let sql =
            format!("SELECT * FROM interval_intersect('{}', '{}')", select(&left), select(&right));
        prop_assert_eq!(rows(&session, &sql), naive(&left, &right));
        Ok(())
    });
    ran.expect("equal rows");
}

#[test]
fn sides_are_tables_and_may_lack_numbers_and_keys() {
    let session = session(&golden("losses"));
    let one = "CREATE TEMP TABLE one AS SELECT 10 AS ts, 5 AS dur UNION ALL SELECT 40, NULL;
        SELECT 1";
    rows(&session, one);
    let sql = "SELECT ts, dur, key, id_0, id_1 FROM interval_intersect('one', 'SELECT 12 AS ts, 9 AS dur, 7 AS id;')";
    assert_eq!(rows(&session, sql), ["12,3,,,7"]);
    let joined = "SELECT i.ts FROM (SELECT 'one' AS name) n, interval_intersect(n.name, n.name) i";
    assert_eq!(rows(&session, joined), ["10"]);
}

#[test]
fn wrong_arguments_are_reported() {
    let session = session(&golden("losses"));
    for (arguments, said) in [
        ("'SELECT 1 AS ts'", "takes two statements"),
        ("'SELECT 1 AS ts', 'sample'", "gives no column dur: it gives ts"),
        ("'nothing', 'sample'", "no such table: nothing"),
        ("'SELECT 1 AS ts, -1 AS dur', 'sched'", "dur is negative"),
        ("'SELECT ''x'' AS ts, 1 AS dur', 'sched'", "ts is no whole number"),
        ("'SELECT 1); DROP TABLE sample; --', 'sched'", "interval_intersect"),
        ("1, 2", "its arguments are texts"),
    ] {
        let sql = format!("SELECT * FROM interval_intersect({arguments})");
        let error = ask(&session, &sql).expect_err(&sql).to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn functions_hold_no_more_than_their_memory() {
    let session = session_with(&golden("losses"), 4 << 20);
    let many = "WITH RECURSIVE n(ts) AS (SELECT 1 UNION ALL SELECT ts + 1 FROM n WHERE ts < 1000000) SELECT ts, 1 AS dur FROM n";
    let sql =
        format!("SELECT COUNT(*) FROM interval_intersect('{many}', 'SELECT 1 AS ts, 1 AS dur')");
    let error = ask(&session, &sql).expect_err("too many rows").to_string();
    assert!(error.contains("more memory than --memory allows"), "{error}");
    // The memory was given back.
    let few = sql.replace("1000000", "1000");
    assert_eq!(rows(&session, &few), ["1"]);
}

/// The view of this name in other engines, over a table of weights.
fn view_over(weights: &str) -> String {
    let view = VIEWS.iter().find(|view| view.name == "summary_tree").expect("the view");
    let (_, select) = view.sql.split_once(" AS\n").expect("a view");
    assert!(select.contains("FROM callsite_weight"));
    select.replace("FROM callsite_weight", &format!("FROM {weights}"))
}

const COLUMNS: &str =
    "recording_id, event, id, parent_id, depth, name, mapping_name, self_weight, total_weight";

#[test]
fn the_call_tree_is_that_of_the_view() {
    let mut seen = 0;
    for golden in Golden::all() {
        let session = session(&golden);
        let naive = rows(&session, &view_over("callsite_weight"));
        assert_eq!(rows(&session, "SELECT * FROM summary_tree"), naive, "{}", golden.name);
        seen += naive.len();
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn the_call_tree_of_any_weights_is_that_of_the_view() {
    let session = session(&golden("perf-dwarf"));
    let sites =
        rows(&session, "SELECT COUNT(*) FROM callsite")[0].parse::<usize>().expect("a number");
    assert!(sites > 3, "{sites}");
    rows(&session, "CREATE TEMP TABLE w(recording_id, event, callsite_id, weight); SELECT 1");
    let mut runner = proptest::test_runner::TestRunner::default();
    let weights = prop::collection::vec((0..3_u8, 0..sites, 0..1000_i64), 0..12);
    let ran = runner.run(&weights, |weights| {
        rows(&session, "DELETE FROM w; SELECT 1");
        for (event, site, weight) in weights {
            let insert = format!("INSERT INTO w SELECT 0, 'e{event}', (SELECT id FROM callsite LIMIT 1 OFFSET {site}), {weight}");
            rows(&session, &format!("{insert}; SELECT 1"));
        }
        let ours = rows(&session, &format!("SELECT {COLUMNS} FROM summary_tree('w')"));
        prop_assert_eq!(ours, rows(&session, &view_over("w")));
        Ok(())
    });
    ran.expect("equal rows");
}

#[test]
fn a_call_tree_of_any_statement_has_its_sum_at_the_roots() {
    let session = session(&golden("perf-dwarf"));
    let samples = "SELECT callsite_id, ts % 1000 + 1 AS weight FROM sample";
    let roots =
        format!("SELECT SUM(total_weight) FROM summary_tree('{samples}') WHERE parent_id IS NULL");
    let sum = "SELECT SUM(ts % 1000 + 1) FROM sample WHERE callsite_id IS NOT NULL";
    assert_eq!(rows(&session, &roots), rows(&session, sum));
}

#[test]
fn a_missing_call_site_is_reported() {
    let sql = "SELECT * FROM summary_tree('SELECT 12345678 AS callsite_id, 1 AS weight')";
    let error = ask(&session(&golden("losses")), sql).expect_err("no call site").to_string();
    assert!(error.contains("there is no call site 12345678"), "{error}");
}
