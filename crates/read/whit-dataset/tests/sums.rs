//! `sample_sum` has the sums of `sample`, over recordings and datasets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;
use whit_dataset::{Dataset, Facts, export};
use whit_perfdata::reader::Recording;
use whit_profile::ReadOptions;
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_tables::{
    AnyTable, Budget, Cancel, Database, SAMPLE, SAMPLE_SUM, Store, TableError, Value, Wanted, find,
};
use whit_testing::golden::Golden;

/// Columns that tell samples apart.
const KEYS: [&[&str]; 8] = [
    &[],
    &["recording_id", "event"],
    &["comm"],
    &["utid"],
    &["upid", "cpu"],
    &["cgroup_id", "event"],
    &["callsite_id"],
    &["recording_id", "event", "utid", "upid", "cpu", "cgroup_id", "comm", "callsite_id"],
];

/// Weight and number of samples.
type Sums = BTreeMap<Vec<String>, (i128, i64)>;

fn database(goldens: &[&Golden], threads: usize) -> Database {
    let open = |golden: &&Golden| {
        let dirs = DebugDirs { symfs: Some(Golden::folder().join("root")), ..DebugDirs::none() };
        let recording = Recording::open(&golden.path).expect("a golden recording");
        (recording, ReadOptions::new(threads, SymbolizerConfig::new(dirs)))
    };
    Database::new(goldens.iter().map(open).collect(), Cancel::default())
}

fn dataset(folder: &TempDir, goldens: &[&Golden]) -> Dataset {
    let (now, modified) = (UNIX_EPOCH + Duration::from_secs(1 << 32), UNIX_EPOCH);
    for golden in goldens {
        let facts = Facts { version: "1.2.3", now, modified, force: false };
        export(folder.path(), &database(&[golden], 2), facts).expect("an export");
    }
    Dataset::open(folder.path(), Cancel::default()).expect("a dataset")
}

fn place(table: &dyn AnyTable, name: &str) -> usize {
    let columns = table.columns();
    columns.iter().position(|column| column.name == name).expect("a column")
}

fn int(value: Value) -> i64 {
    let Value::Int(number) = value else { panic!("{value:?} is no number") };
    number
}

/// The rows of a table that pass, by the values of columns. Only these columns are asked for.
fn rows(
    store: &dyn Store,
    table: &'static dyn AnyTable,
    columns: &[&str],
    wanted: &Wanted,
) -> Result<Vec<Vec<Value>>, TableError> {
    let places: Vec<usize> = columns.iter().map(|name| place(table, name)).collect();
    let used = places.iter().fold(0, |bits, place| bits | 1 << place);
    let mut cursor = store.open(table, &Wanted { columns: used, ..wanted.clone() });
    let mut rows = Vec::new();
    while cursor.advance()? {
        rows.push(places.iter().map(|place| cursor.value(*place)).collect());
    }
    Ok(rows)
}

fn key(values: &[Value]) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Text(text) => text.to_string(),
        Value::Name(name) => (*name).to_owned(),
        other => format!("{other:?}"),
    };
    values.iter().map(text).collect()
}

/// Sums of `sample`, with the constraints that are left to the reader of `sample_sum`.
fn of_samples(store: &dyn Store, keys: &[&str], wanted: &Wanted) -> Sums {
    let columns: Vec<&str> = keys.iter().copied().chain(["ts", "weight"]).collect();
    let mut sums = Sums::new();
    for row in rows(store, SAMPLE, &columns, wanted).expect("samples") {
        let (values, rest) = row.split_at(keys.len());
        let ts = int(rest[0].clone());
        if wanted.from.is_none_or(|from| ts >= from) && wanted.to.is_none_or(|to| ts <= to) {
            let sum = sums.entry(key(values)).or_default();
            sum.0 += i128::from(int(rest[1].clone()));
            sum.1 += 1;
        }
    }
    sums
}

/// Sums of `sample_sum`, and the number of its rows.
fn of_sums(store: &dyn Store, keys: &[&str], wanted: &Wanted) -> (Sums, usize) {
    let columns: Vec<&str> = keys.iter().copied().chain(["weight", "samples"]).collect();
    let rows = rows(store, SAMPLE_SUM, &columns, wanted).expect("sums");
    let mut sums = Sums::new();
    for row in &rows {
        let (values, rest) = row.split_at(keys.len());
        let sum = sums.entry(key(values)).or_default();
        sum.0 += i128::from(int(rest[0].clone()));
        sum.1 += int(rest[1].clone());
    }
    (sums, rows.len())
}

fn compare(store: &dyn Store, name: &str, wanted: &Wanted) -> usize {
    let mut samples = 0;
    for keys in KEYS {
        let (found, nr_rows) = of_sums(store, keys, wanted);
        let expected = of_samples(store, keys, wanted);
        assert_eq!(found, expected, "{name}: {keys:?} {wanted:?}");
        samples = expected.values().map(|sum| sum.1 as usize).sum();
        assert!(nr_rows <= samples, "{name}: {nr_rows} rows of {samples} samples");
    }
    samples
}

fn all() -> Vec<Golden> {
    let all = Golden::all();
    assert!(all.len() > 20, "{}", all.len());
    all
}

#[test]
fn recordings_have_the_sums_of_their_samples() {
    let mut samples = 0;
    for golden in all() {
        samples += compare(&database(&[&golden], 2), &golden.name, &Wanted::everything());
    }
    assert!(samples > 100, "{samples}");
}

#[test]
fn datasets_have_the_sums_of_their_samples() {
    let (goldens, folder) = (all(), tempfile::tempdir().expect("a folder"));
    let goldens: Vec<&Golden> = goldens.iter().collect();
    let dataset = dataset(&folder, &goldens);
    let samples = compare(&dataset, "all", &Wanted::everything());
    assert!(samples > 100, "{samples}");
}

#[test]
fn several_recordings_are_distinguished() {
    let goldens = all();
    let parts: Vec<&Golden> = goldens.iter().take(4).collect();
    let database = database(&parts, 2);
    assert!(compare(&database, "four", &Wanted::everything()) > 0);
    let one = Wanted { recording: Some(2), ..Wanted::everything() };
    let alone = of_sums(&database, &["recording_id"], &one).0;
    assert_eq!(alone.into_keys().collect::<Vec<_>>(), [["Int(2)"]]);
}

#[test]
fn samples_outside_of_the_range_are_left_out() {
    let (mut seen, folder) = (0, tempfile::tempdir().expect("a folder"));
    for golden in all() {
        let database = database(&[&golden], 2);
        let times = rows(&database, SAMPLE, &["ts"], &Wanted::everything()).expect("samples");
        let times: Vec<i64> = times.into_iter().map(|row| int(row[0].clone())).collect();
        if times.len() < 5 {
            continue;
        }
        let (from, to) = (times[times.len() / 3], times[2 * times.len() / 3]);
        for (from, to) in [(Some(from), Some(to)), (Some(from), None), (None, Some(to))] {
            let wanted = Wanted { from, to, ..Wanted::everything() };
            let samples = compare(&database, &golden.name, &wanted);
            assert!(0 < samples && samples <= times.len(), "{}: {samples}", golden.name);
            seen += usize::from(samples < times.len());
        }
    }
    assert!(seen > 5, "{seen}");
    let golden = all().into_iter().find(|golden| golden.name == "perf-fp").expect("a golden");
    let dataset = dataset(&folder, &[&golden]);
    let times = rows(&dataset, SAMPLE, &["ts"], &Wanted::everything()).expect("samples");
    let second = Some(int(times[1][0].clone()));
    let wanted = Wanted { from: second, to: second, ..Wanted::everything() };
    assert!(compare(&dataset, "dataset", &wanted) < times.len());
}

/// The reader need not leave rows out; those that it gives are the wanted ones and others.
#[test]
fn constraints_leave_the_wanted_sums() {
    let mut seen = BTreeMap::<&str, usize>::new();
    for golden in all() {
        let database = database(&[&golden], 2);
        for column in ["utid", "upid", "cgroup_id", "event"] {
            let all = of_sums(&database, &[column], &Wanted::everything()).0;
            let values = rows(&database, SAMPLE_SUM, &[column], &Wanted::everything());
            for value in values.expect("sums").into_iter().map(|row| row[0].clone()) {
                let mut wanted = Wanted::everything();
                match (column, &value) {
                    (_, Value::Null) => continue,
                    ("event", Value::Text(name)) => wanted.event = Some(name.to_string()),
                    ("utid", value) => wanted.thread = Some(int(value.clone())),
                    ("upid", value) => wanted.process = Some(int(value.clone())),
                    (_, value) => wanted.cgroup = Some(int(value.clone())),
                }
                let found = of_sums(&database, &[column], &wanted).0;
                let key = key(&[value]);
                assert_eq!(found.get(&key), all.get(&key), "{}: {column}", golden.name);
                assert_eq!(found.len(), 1, "{}: {column}: {found:?}", golden.name);
                *seen.entry(column).or_default() += usize::from(all.len() > 1);
            }
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen.values().all(|choices| *choices > 1), "{seen:?}");
}

#[test]
fn sums_without_room_are_those_of_all_samples() {
    let (goldens, folder) = (all(), tempfile::tempdir().expect("a folder"));
    let no_room = Wanted { budget: Some(Arc::new(Budget::new(0))), ..Wanted::everything() };
    let keys = ["event", "comm"];
    let (mut joined, mut alone) = (0, 0);
    for golden in &goldens {
        let database = database(&[golden], 2);
        let (sums, nr_rows) = of_sums(&database, &keys, &no_room);
        assert_eq!(sums, of_samples(&database, &keys, &Wanted::everything()), "{}", golden.name);
        joined += of_sums(&database, &keys, &Wanted::everything()).1;
        alone += nr_rows;
    }
    assert!(alone > 2 * joined, "{alone} rows, else {joined}");
    let goldens: Vec<&Golden> = goldens.iter().collect();
    let dataset = dataset(&folder, &goldens);
    let found = of_sums(&dataset, &keys, &no_room).0;
    assert_eq!(found, of_samples(&dataset, &keys, &Wanted::everything()));
}

#[test]
fn memory_is_given_back() {
    let golden = &all()[0];
    let budget = Arc::new(Budget::new(1 << 20));
    let wanted = Wanted { budget: Some(budget.clone()), ..Wanted::everything() };
    let database = database(&[golden], 2);
    for _ in 0..20 {
        of_sums(&database, KEYS[7], &wanted);
    }
    assert!(budget.take(1 << 20), "some is still held");
}

#[test]
fn sums_and_numbers_do_not_depend_on_the_number_of_threads() {
    for golden in all() {
        let of = |threads| {
            let database = database(&[&golden], threads);
            let columns: Vec<&str> = KEYS[7].iter().copied().chain(["weight", "samples"]).collect();
            let sums = rows(&database, SAMPLE_SUM, &columns, &Wanted::everything());
            let table = |name: &str| {
                let table = find(name).expect("a table");
                let columns = table.columns();
                let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
                rows(&database, table, &names, &Wanted::everything()).expect("rows")
            };
            (sums.expect("sums"), table("callsite"), table("frame"), table("unwind_end"))
        };
        assert_eq!(of(1), of(3), "{}", golden.name);
    }
}

/// The whole recording is known behind the sums, as behind its samples.
#[test]
fn ends_of_unwinding_are_those_of_the_samples() {
    let mut seen = 0;
    for golden in all() {
        let ends = |table: &'static dyn AnyTable| {
            let database = database(&[&golden], 2);
            rows(&database, table, &["callsite_id"], &Wanted::everything()).expect("rows");
            let table = find("unwind_end").expect("a table");
            rows(&database, table, &["reason", "samples"], &Wanted::everything()).expect("rows")
        };
        let of_sums = ends(SAMPLE_SUM);
        assert_eq!(of_sums, ends(SAMPLE), "{}", golden.name);
        seen += of_sums.len();
    }
    assert!(seen > 0);
}

#[test]
fn a_cancelled_reader_ends() {
    let goldens = all();
    let (database, folder) = (database(&[&goldens[0]], 2), tempfile::tempdir().expect("a folder"));
    let dataset = dataset(&folder, &[&goldens[0]]);
    for store in [&database as &dyn Store, &dataset] {
        store.cancel().cancel();
        let end = rows(store, SAMPLE_SUM, &["event", "weight"], &Wanted::everything());
        assert_eq!(end, Err(TableError::Cancelled));
        store.cancel().reset();
        assert!(rows(store, SAMPLE_SUM, &["event"], &Wanted::everything()).is_ok());
    }
}
