//! Datasets of `whit export --parquet`: killed exports, answers as over the recordings, and messages.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use whit_testing::golden::Golden;

use super::{golden, said};
use crate::support::tools::{text, whit};

/// Killed exports, each at another moment.
const KILLS: u32 = 12;

/// The views, and statements over each kind of table, without numbers that are those of the program.
pub(crate) const STATEMENTS: [&str; 12] = [
    "SELECT event, name, mapping_name, self_weight, total_weight FROM top_functions",
    "SELECT event, depth, name, mapping_name, self_weight, total_weight FROM summary_tree",
    "SELECT tid, name, delays, total_dur, max_dur FROM scheduler_latency",
    "SELECT r.path, threads, dur FROM thread_level_parallelism JOIN recording r ON r.id = recording_id",
    "SELECT event, path, container, samples, weight, percent FROM cgroup_share",
    "SELECT tid, name, kind, state, waits, total_dur, max_dur FROM waits_by_kind",
    "SELECT r.host, s.ts, t.tid, p.pid, s.cpu, s.event, s.weight, s.comm FROM sample s JOIN thread t ON t.utid = s.utid
        JOIN process p ON p.upid = s.upid JOIN recording r ON r.id = s.recording_id",
    "SELECT r.path, ts, dur, ring, records FROM loss JOIN recording r ON r.id = recording_id",
    "SELECT r.path, key, value, unit FROM ledger JOIN recording r ON r.id = recording_id",
    "SELECT f.name, m.build_id, c.depth FROM callsite c JOIN frame f ON f.id = c.frame_id JOIN mapping m ON m.id = f.mapping",
    "SELECT t.tid, s.ts, s.dur, s.state, w.tid FROM thread_state s JOIN thread t ON t.utid = s.utid
        LEFT JOIN thread w ON w.utid = s.waker_utid",
    "SELECT t.name, COUNT(*), MIN(s.ts), MAX(s.ts) FROM sample s JOIN thread t USING (utid)
        WHERE s.ts BETWEEN 1000000 AND 2000000000 GROUP BY t.name",
];

/// Names come from the golden recordings' files alone.
fn symbols() -> [OsString; 4] {
    let golden = Golden::folder();
    [
        "--symfs".into(),
        golden.join("root").into(),
        "--kallsyms".into(),
        golden.join("kallsyms").into(),
    ]
}

fn export(dataset: &Path) -> Command {
    let mut export = whit();
    export.args(["export", "--parquet"]).arg(dataset).args(symbols());
    for golden in Golden::all() {
        export.arg("-i").arg(golden.path);
    }
    export
}

fn sorted_rows(query: &mut Command, sql: &str) -> Vec<String> {
    let json = text(query.args(["--json", "-c", sql]));
    let rows: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let rows = rows.as_array().expect("an array").iter();
    let mut rows: Vec<String> = rows.map(Value::to_string).collect();
    rows.sort_unstable();
    rows
}

pub(super) fn over_dataset(dataset: &Path) -> Command {
    let mut query = whit();
    query.args(["query", "--dataset"]).arg(dataset);
    query
}

fn over_recordings() -> Command {
    let mut query = whit();
    query.arg("query").args(symbols());
    for golden in Golden::all() {
        query.arg("-i").arg(golden.path);
    }
    query
}

fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| if path.is_dir() { files(&path) } else { 1 })
        .sum()
}

fn sum_of_sql(dataset: &Path) -> Vec<String> {
    sorted_rows(&mut over_dataset(dataset), "SELECT COUNT(*), SUM(weight) FROM sample")
}

pub(super) fn made() -> TempDir {
    let folder = tempfile::tempdir().expect("make a directory");
    text(&mut export(&folder.path().join("lake")));
    folder
}

#[test]
fn a_dataset_gives_the_answers_of_its_recordings() {
    let folder = made();
    let dataset = folder.path().join("lake");
    for sql in STATEMENTS {
        let expected = sorted_rows(&mut over_recordings(), sql);
        // Golden recordings have no ledger.
        assert!(!expected.is_empty() || sql.contains("FROM ledger"), "{sql}");
        assert_eq!(sorted_rows(&mut over_dataset(&dataset), sql), expected, "{sql}");
    }
}

/// Moments are spread over the time that a whole export takes.
#[test]
fn exports_that_were_killed_leave_whole_recordings_and_are_completed() {
    let folder = tempfile::tempdir().expect("make a directory");
    let whole = folder.path().join("whole");
    let begin = Instant::now();
    text(&mut export(&whole));
    let time = begin.elapsed();
    let dataset = folder.path().join("killed");
    let mut random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), time);
    let (mut stopped, mut seen) = (0, 0);
    for _ in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let wait = time.mul_f64((random >> 40) as f64 / f64::from(1 << 24) / 3.0);
        let mut child = export(&dataset).stdout(Stdio::null()).spawn().expect("run whit");
        std::thread::sleep(wait.max(Duration::from_millis(1)));
        child.kill().expect("kill whit");
        stopped += u32::from(!child.wait().expect("wait for whit").success());
        // A sample of `orphans` belongs to no event, and is no row.
        let samples = "SELECT r.id FROM recording r WHERE (SELECT COUNT(*) FROM sample s WHERE s.recording_id = r.id) < r.samples
            AND path NOT LIKE '%orphans%'";
        let output = over_dataset(&dataset).args(["--csv", "-c", samples]).output();
        let output = output.expect("run whit");
        let none_yet = said(&output).contains("there is no dataset");
        assert!(output.status.success() || none_yet, "{}", said(&output));
        if !none_yet {
            let rows = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(rows.lines().count(), 1, "recordings with missing samples: {rows}");
            let counted =
                sorted_rows(&mut over_dataset(&dataset), "SELECT COUNT(*) AS n FROM recording");
            let counted: Value = serde_json::from_str(&counted[0]).expect("a row");
            let counted = counted["n"].as_u64().expect("a number");
            assert!(counted >= seen, "recordings stay: {counted} of {seen}");
            seen = counted;
        }
    }
    assert!(stopped > 0, "no export was killed");
    text(&mut export(&dataset));
    assert_eq!(sum_of_sql(&dataset), sum_of_sql(&whole));
    assert_eq!(files(&dataset), files(&whole), "nothing is left of killed exports");
    let last = text(&mut export(&dataset));
    let known = last.lines().filter(|line| line.contains("nothing was written")).count();
    assert_eq!(known, Golden::all().len());
}

#[test]
fn hosts_and_days_are_columns_that_star_leaves_out() {
    let folder = made();
    let dataset = folder.path().join("lake");
    let rows = |sql: &str| sorted_rows(&mut over_dataset(&dataset), sql);
    let star = rows("SELECT COUNT(*) FROM pragma_table_info('sample')");
    assert_eq!(star, rows("SELECT 12 AS \"COUNT(*)\""));
    let of_host = rows("SELECT COUNT(*) AS n FROM sample WHERE host = 'golden'");
    assert_eq!(of_host, rows("SELECT COUNT(*) AS n FROM sample WHERE +host = 'golden'"));
    let folded = rows("SELECT COUNT(*) AS n FROM sample WHERE host = 'GOLDEN' COLLATE NOCASE");
    assert_eq!(folded, of_host);
    assert_ne!(of_host, rows("SELECT COUNT(*) AS n FROM sample"));
    for comparison in ["=", "<", "<=", ">", ">=", "<>"] {
        let of = |column: &str| {
            let day = "(SELECT MAX(date) FROM recording)";
            rows(&format!("SELECT COUNT(*) AS n FROM sample WHERE {column} {comparison} {day}"))
        };
        assert_eq!(of("date"), of("+date"), "{comparison}");
    }
}

fn failed(command: &mut Command) -> Output {
    let output = command.output().expect("run whit");
    assert!(!output.status.success());
    output
}

#[test]
fn wrong_datasets_and_options_name_the_way_out() {
    let folder = tempfile::tempdir().expect("make a directory");
    let mut query = over_dataset(folder.path());
    let none = failed(query.args(["-c", "SELECT 1"]));
    assert!(said(&none).contains("there is no dataset"), "{}", said(&none));
    let mut both = over_dataset(folder.path());
    let both = failed(both.arg("-i").arg(golden("losses")).args(["-c", "SELECT 1"]));
    assert!(said(&both).contains("cannot be used with"), "{}", said(&both));
    let mut filtered = whit();
    filtered.args(["export", "--parquet"]).arg(folder.path()).args(["--pid", "1", "-i"]);
    let filtered = failed(filtered.arg(golden("losses")));
    assert!(said(&filtered).contains("cannot be used with"), "{}", said(&filtered));
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("write a file");
    let mut onto_file = whit();
    onto_file.args(["export", "--parquet"]).arg(&file).arg("-i");
    let onto_file = failed(onto_file.arg(golden("losses")));
    let text = said(&onto_file);
    assert!(text.contains("nothing of") && text.contains("Not a directory"), "{text}");
}

/// The only file of a table.
fn part(dataset: &Path, table: &str) -> PathBuf {
    let mut path = dataset.join(table);
    while path.is_dir() {
        let mut entries = std::fs::read_dir(&path).expect("a folder");
        path = entries.next().expect("an entry").expect("an entry").path();
    }
    path
}

fn cut(dataset: &Path, table: &str) {
    let file = File::options().write(true).open(part(dataset, table)).expect("open a part");
    let length = file.metadata().expect("metadata").len();
    file.set_len(length * 2 / 3).expect("cut a part");
}

fn overwritten(dataset: &Path, table: &str) {
    let path = part(dataset, table);
    let length = std::fs::metadata(&path).expect("metadata").len();
    std::fs::write(path, vec![0; length as usize]).expect("overwrite a part");
}

fn of_another_table(dataset: &Path, table: &str) {
    std::fs::copy(part(dataset, "cpu"), part(dataset, table)).expect("copy a part");
}

fn gone(dataset: &Path, table: &str) {
    std::fs::remove_file(part(dataset, table)).expect("remove a part");
}

#[test]
fn broken_files_are_named_and_written_anew_by_force() {
    let folder = tempfile::tempdir().expect("make a directory");
    let dataset = folder.path().join("lake");
    let export = |options: &[&str]| {
        let mut export = whit();
        export.args(["export", "--parquet"]).arg(&dataset).args(symbols());
        text(export.args(options).arg("-i").arg(golden("perf-fp")))
    };
    let all = "SELECT t.*, r.host FROM top_functions t JOIN recording r";
    export(&[]);
    let before = sorted_rows(&mut over_dataset(&dataset), all);
    assert!(!before.is_empty());
    type Break = fn(&Path, &str);
    let breaks: [(Break, &str); 4] = [
        (cut, "no whole Parquet file"),
        (overwritten, "no whole Parquet file"),
        (of_another_table, "has another table"),
        (gone, "the file is missing"),
    ];
    for table in ["sample", "callsite", "frame", "mapping", "recording"] {
        for (break_it, problem) in breaks {
            let (path, absent) = (part(&dataset, table), problem == "the file is missing");
            // Without its last file it is no recording.
            if table == "recording" && absent {
                continue;
            }
            break_it(&dataset, table);
            let output = failed(over_dataset(&dataset).args(["-c", all]));
            let message = said(&output);
            assert_eq!(output.status.code(), Some(1), "{table}: {message}");
            assert!(message.contains(problem), "{table}: {message}");
            assert!(message.contains(&path.display().to_string()), "{table}: {message}");
            assert!(!message.contains("panicked"), "{table}: {message}");
            export(&["-f"]);
            assert_eq!(sorted_rows(&mut over_dataset(&dataset), all), before, "{table}");
        }
    }
}

#[test]
fn a_query_over_a_dataset_that_needs_too_much_memory_names_the_option() {
    let folder = made();
    let mut query = over_dataset(&folder.path().join("lake"));
    let sql = "SELECT LENGTH(GROUP_CONCAT(HEX(ZEROBLOB(1000000)))) FROM sample";
    let output = failed(query.args(["--memory", "8M", "-c", sql]));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("--memory"), "{}", said(&output));
}
