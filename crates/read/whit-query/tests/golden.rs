//! SQL over the golden recordings gives the sums of the loader, with and without constraints for the reader.

use std::collections::BTreeMap;
use whit_perfdata::reader::Recording;
use whit_profile::model::{NodeId, Profile};
use whit_profile::switches::{SamplesAndSwitches, Switches};
use whit_profile::{ReadOptions, Reading, Samples};
use whit_query::{Options, OutputForm, Session, VIEWS, run};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_tables::{Cancel, Database, TABLES};
use whit_testing::golden::Golden;

const MEMORY_BYTES: u64 = 64 << 20;

fn options(threads: usize) -> ReadOptions {
    let dirs = DebugDirs { symfs: Some(Golden::folder().join("root")), ..DebugDirs::none() };
    ReadOptions::new(threads, SymbolizerConfig::new(dirs))
}

fn session(goldens: &[&Golden], threads: usize) -> Session {
    let open = |golden: &&Golden| {
        (Recording::open(&golden.path).expect("a golden recording"), options(threads))
    };
    let recordings = goldens.iter().map(open).collect();
    let database = Database::new(recordings, Cancel::default());
    Session::new(database, Options { memory_bytes: MEMORY_BYTES }).expect("a session")
}

/// The rows of a statement, with a line for each.
fn rows(session: &Session, sql: &str) -> Vec<String> {
    let mut out = Vec::new();
    run(session, sql, OutputForm::Csv, &mut out).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let text = String::from_utf8(out).expect("UTF-8");
    text.lines().skip(1).map(str::to_owned).collect()
}

fn number(session: &Session, sql: &str) -> i64 {
    rows(session, sql)[0].parse().unwrap_or_else(|_| panic!("{sql}: no number"))
}

fn profile(golden: &Golden) -> Profile {
    let recording = Recording::open(&golden.path).expect("a golden recording");
    Reading::open(&recording, &options(1)).answer(Samples::default()).expect("a profile")
}

fn switches(golden: &Golden) -> Switches {
    let recording = Recording::open(&golden.path).expect("a golden recording");
    let answer = Reading::open(&recording, &options(1)).answer(SamplesAndSwitches::default());
    answer.expect("switches").1
}

/// Self and total weight by event, function and binary.
type Sums = BTreeMap<(String, String, String), (u64, u64)>;

fn sums_of_profile(profile: &Profile) -> Sums {
    let mut sums = Sums::new();
    for row in &profile.rows {
        let event = profile.events[row.event.index()].name.exact().to_owned();
        let mut seen = Vec::new();
        let mut node = row.node;
        while node != NodeId::NONE {
            let frame = profile.frames[profile.nodes[node.index()].frame.index()];
            if !seen.contains(&frame.function) {
                let function = &profile.functions[frame.function.index()];
                let dso = profile.dsos[function.dso.index()].path.exact().to_owned();
                let name = function.name.exact().to_owned();
                let sum = sums.entry((event.clone(), name, dso)).or_default();
                sum.0 += if seen.is_empty() { row.period } else { 0 };
                sum.1 += row.period;
                seen.push(frame.function);
            }
            node = profile.nodes[node.index()].parent;
        }
    }
    sums
}

fn sums_of_query(session: &Session) -> Sums {
    let mut out = Vec::new();
    let sql = "SELECT event, name, mapping_name, self_weight, total_weight FROM top_functions";
    run(session, sql, OutputForm::Json, &mut out).expect("rows");
    let rows: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let rows = rows.as_array().expect("an array").iter().map(|row| {
        let text = |name: &str| row[name].as_str().expect("a text").to_owned();
        let number = |name: &str| row[name].as_u64().expect("a number");
        let key = (text("event"), text("name"), text("mapping_name"));
        (key, (number("self_weight"), number("total_weight")))
    });
    rows.collect()
}

/// Golden recordings whose periods fit into SQLite's numbers.
fn all() -> Vec<(Golden, Profile)> {
    let all = Golden::all().into_iter().map(|golden| {
        let profile = profile(&golden);
        (golden, profile)
    });
    let all: Vec<_> = all.collect();
    assert!(all.len() > 20, "{}", all.len());
    all
}

#[test]
fn functions_have_the_weights_of_the_profile() {
    for (golden, profile) in all() {
        let session = session(&[&golden], 2);
        assert_eq!(sums_of_query(&session), sums_of_profile(&profile), "{}", golden.name);
        let samples: u64 = profile.events.iter().map(|event| event.samples).sum();
        let counted = number(&session, "SELECT COUNT(*) FROM sample");
        assert_eq!(counted as u64, samples, "{}", golden.name);
    }
}

/// `whit query` makes some views of `sample_sum`; other engines have `sample` alone.
#[test]
fn views_have_the_rows_that_their_published_statements_give() {
    let mut seen = std::collections::BTreeMap::<&str, usize>::new();
    for golden in Golden::all() {
        let session = session(&[&golden], 2);
        for name in ["callsite_weight", "cgroup_share", "top_functions"] {
            let view = VIEWS.iter().find(|view| view.name == name).expect("a view");
            let published = view.sql.replace(&format!("VIEW {name} AS"), "TEMP VIEW published AS");
            let published = published.replace("FROM callsite_weight", "FROM published_weight");
            let weight = VIEWS.iter().find(|view| view.name == "callsite_weight").expect("a view");
            let weight =
                weight.sql.replace("VIEW callsite_weight AS", "TEMP VIEW published_weight AS");
            let make = format!("{weight}; {published}; SELECT 1");
            rows(&session, &make);
            let ours = sorted(rows(&session, &format!("SELECT * FROM {name}")));
            let theirs = sorted(rows(&session, "SELECT * FROM published"));
            assert_eq!(ours, theirs, "{}: {name}", golden.name);
            *seen.entry(name).or_default() += ours.len();
            rows(&session, "DROP VIEW published; DROP VIEW published_weight; SELECT 1");
        }
    }
    assert!(seen.values().all(|rows| *rows > 20), "{seen:?}");
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}

#[test]
fn sums_of_a_range_are_those_of_its_samples() {
    let goldens = Golden::all();
    let golden = goldens.iter().find(|golden| golden.name == "perf-fp").expect("a golden");
    let session = session(&[golden], 2);
    let times = rows(&session, "SELECT ts FROM sample ORDER BY ts");
    let (from, to) = (&times[1], &times[3]);
    let sums = format!(
        "SELECT event, comm, SUM(weight), SUM(samples) FROM sample_sum WHERE from_ts = {from} AND to_ts = {to} GROUP BY 1, 2"
    );
    let samples = format!(
        "SELECT event, comm, SUM(weight), COUNT(*) FROM sample WHERE ts BETWEEN {from} AND {to} GROUP BY 1, 2"
    );
    let found = rows(&session, &sums);
    assert_eq!(found, rows(&session, &samples));
    assert!(!found.is_empty() && times.len() > 4);
}

#[test]
fn conditions_that_are_no_arguments_are_reported() {
    let session = session(&[&Golden::all()[0]], 1);
    for wrong in ["from_ts > 5", "to_ts BETWEEN 1 AND 2", "from_ts IN (1, 2)"] {
        let sql = format!("SELECT SUM(weight) FROM sample_sum WHERE {wrong}");
        let error = run(&session, &sql, OutputForm::Csv, &mut Vec::new()).expect_err(&sql);
        assert!(error.to_string().contains("is an argument: write"), "{sql}: {error}");
    }
}

#[test]
fn roots_of_the_summary_tree_have_the_weight_of_all_samples() {
    for (golden, profile) in all() {
        let session = session(&[&golden], 2);
        let weight: u64 = profile.events.iter().map(|event| event.period).sum();
        let sql = "SELECT COALESCE(SUM(total_weight), 0) FROM summary_tree WHERE parent_id IS NULL";
        assert_eq!(number(&session, sql) as u64, weight, "{}", golden.name);
        let own = number(&session, "SELECT COALESCE(SUM(self_weight), 0) FROM summary_tree");
        assert_eq!(own as u64, weight, "{}", golden.name);
    }
}

#[test]
fn waits_and_runs_have_the_sums_of_the_switches() {
    let mut seen = 0;
    for golden in Golden::all() {
        let switches = switches(&golden);
        if !switches.sources.has_switches() {
            let session = session(&[&golden], 1);
            assert_eq!(number(&session, "SELECT COUNT(*) FROM sched"), 0, "{}", golden.name);
            continue;
        }
        seen += 1;
        let session = session(&[&golden], 2);
        let sum = |of: fn(&whit_profile::switches::SwitchSums) -> u64| -> u64 {
            switches.rows.iter().map(|row| of(&row.sums)).sum()
        };
        for (kind, count, wait_ns) in [
            ("sync", sum(|sums| sums.sync_count), sum(|sums| sums.sync_wait_ns)),
            ("preempt", sum(|sums| sums.preempt_count), sum(|sums| sums.preempt_wait_ns)),
            ("new", sum(|sums| sums.new_count), sum(|sums| sums.new_wait_ns)),
        ] {
            let is = format!("FROM wait WHERE kind = '{kind}'");
            let counted = number(&session, &format!("SELECT COUNT(*) {is} AND begun_before = 0"));
            assert_eq!(counted as u64, count, "{} {kind}", golden.name);
            let ns = format!("SELECT COALESCE(SUM(dur), 0) {is} AND certain = 1");
            assert_eq!(number(&session, &ns) as u64, wait_ns, "{} {kind}", golden.name);
        }
        let cpu_ns = number(&session, "SELECT COALESCE(SUM(dur), 0) FROM sched WHERE certain = 1");
        assert_eq!(cpu_ns as u64, sum(|sums| sums.cpu_ns), "{}", golden.name);
        let runnable = "SELECT COALESCE(SUM(runnable_dur), 0) FROM wait WHERE kind = 'sync'";
        let runnable = number(&session, runnable);
        assert_eq!(runnable as u64, sum(|sums| sums.runnable_ns), "{}", golden.name);
        let running = "SELECT COALESCE(SUM(dur), 0) FROM thread_state WHERE state = 'Running'";
        let all = "SELECT COALESCE(SUM(dur), 0) FROM sched";
        assert_eq!(number(&session, running), number(&session, all), "{}", golden.name);
        let states = "SELECT COALESCE(SUM(dur), 0) FROM thread_state WHERE state <> 'Running'";
        let waits = "SELECT COALESCE(SUM(dur), 0) FROM wait";
        assert_eq!(number(&session, states), number(&session, waits), "{}", golden.name);
    }
    assert!(seen >= 2, "{seen}");
}

/// The reader gets constraints on a plain column. A `+` in front of the column keeps them from it.
#[test]
fn constraints_of_the_reader_leave_the_wanted_rows() {
    for golden in Golden::all() {
        let session = session(&[&golden], 2);
        for (table, column) in [
            ("sample", "utid"),
            ("sample", "upid"),
            ("sample", "cgroup_id"),
            ("sample", "recording_id"),
            ("wait", "utid"),
            ("sched", "utid"),
            ("thread_state", "utid"),
            ("callsite", "id"),
            ("thread", "utid"),
        ] {
            let values = rows(&session, &format!("SELECT DISTINCT {column} FROM {table} LIMIT 5"));
            for value in values.iter().filter(|value| !value.is_empty()).map(String::as_str) {
                let count = |column: &str| {
                    number(
                        &session,
                        &format!("SELECT COUNT(*) FROM {table} WHERE {column} = {value}"),
                    )
                };
                let stated = count(column);
                assert!(stated > 0, "{}: {table}.{column} = {value}", golden.name);
                assert_eq!(
                    stated,
                    count(&format!("+{column}")),
                    "{}: {table}.{column}",
                    golden.name
                );
            }
            let none = format!(
                "SELECT COUNT(*) FROM {table} WHERE {column} IN (-1, 1099511627776, 4294967295)"
            );
            assert_eq!(number(&session, &none), 0, "{}: {table}.{column}", golden.name);
        }
        for table in ["sample", "wait", "sched", "thread_state"] {
            for moment in
                rows(&session, &format!("SELECT ts FROM {table} ORDER BY ts LIMIT 3 OFFSET 2"))
            {
                for comparison in ["=", "<", "<=", ">", ">=", "<>"] {
                    let count = |column: &str| {
                        let is = format!("{column} {comparison} {moment}");
                        number(&session, &format!("SELECT COUNT(*) FROM {table} WHERE {is}"))
                    };
                    assert_eq!(count("ts"), count("+ts"), "{}: {table} {comparison}", golden.name);
                }
            }
        }
    }
}

#[test]
fn rows_do_not_depend_on_the_number_of_threads() {
    for golden in Golden::all() {
        let (one, many) = (session(&[&golden], 1), session(&[&golden], 3));
        for table in TABLES {
            let sql = format!("SELECT * FROM {}", table.name());
            assert_eq!(rows(&one, &sql), rows(&many, &sql), "{}: {}", golden.name, table.name());
        }
    }
}

#[test]
fn recordings_are_distinguished_and_added_up() {
    let goldens = Golden::all();
    let of = |name: &str| goldens.iter().find(|golden| golden.name == name).expect("a golden");
    let parts = [of("perf-fp"), of("losses"), of("perf-fp")];
    let all = session(&parts, 2);
    assert_eq!(number(&all, "SELECT COUNT(*) FROM recording"), 3);
    for (id, part) in parts.iter().enumerate() {
        let alone = session(&[part], 2);
        let sums = "SELECT f.name, SUM(s.weight) FROM sample s JOIN callsite c ON c.id = s.callsite_id
            JOIN frame f ON f.id = c.frame_id JOIN thread t ON t.utid = s.utid JOIN recording r ON r.id = t.recording_id";
        let of_part =
            rows(&all, &format!("{sums} WHERE s.recording_id = {id} AND r.id = {id} GROUP BY 1"));
        assert!(!of_part.is_empty());
        assert_eq!(of_part, rows(&alone, &format!("{sums} GROUP BY 1")));
    }
    let both = number(&all, "SELECT SUM(self_weight) FROM top_functions WHERE name = 'burn'");
    let alone = session(&[parts[0]], 2);
    let one = number(&alone, "SELECT SUM(self_weight) FROM top_functions WHERE name = 'burn'");
    assert_eq!(both, 2 * one);
    for (table, id) in
        [("thread", "utid"), ("process", "upid"), ("callsite", "id"), ("frame", "id")]
    {
        let sql = format!("SELECT COUNT(*) - COUNT(DISTINCT {id}) FROM {table}");
        assert_eq!(number(&all, &sql), 0, "{table}");
    }
}

#[test]
fn losses_have_their_ring_and_number() {
    let goldens = Golden::all();
    for golden in &goldens {
        let profile = profile(golden);
        let session = session(&[golden], 1);
        let lost = profile.losses.lost_records + profile.losses.lost_samples;
        let sql = "SELECT COALESCE(SUM(records), 0) FROM loss";
        assert_eq!(number(&session, sql) as u64, lost, "{}", golden.name);
        let sql = "SELECT lost_records + lost_samples FROM recording";
        assert_eq!(number(&session, sql) as u64, lost, "{}", golden.name);
    }
    let golden = goldens.iter().find(|golden| golden.name == "losses").expect("a golden");
    let session = session(&[golden], 1);
    let losses = rows(&session, "SELECT ts, dur, ring, records FROM loss ORDER BY ts");
    assert_eq!(losses, ["1000000,400000,1,123", "1700000,300000,1,7"]);
}

#[test]
fn ends_of_unwinding_are_those_of_the_profile() {
    let mut seen = 0;
    for (golden, profile) in all() {
        let session = session(&[&golden], 2);
        let mut ends = rows(&session, "SELECT reason, samples FROM unwind_end");
        let stops = profile.stats.unwind_stops.iter();
        let mut stops: Vec<_> =
            stops.map(|(reason, samples)| format!("{reason},{samples}")).collect();
        ends.sort();
        stops.sort();
        assert_eq!(ends, stops, "{}", golden.name);
        seen += ends.len();
    }
    assert!(seen > 0);
}
