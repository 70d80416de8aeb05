//! Queries that cannot be answered say why, and name the way out.

use super::{golden, query, said};
use crate::support::tools::{text, whit};

/// The exit code and the message of statements.
fn failed(arguments: &[&str]) -> (Option<i32>, String) {
    let output = query(&golden("losses"), arguments);
    (output.status.code(), said(&output))
}

#[test]
fn a_wrong_name_has_the_nearest_one() {
    for (sql, nearest) in [
        ("SELECT utdi FROM sample", "there is no column utdi: the nearest is utid of sample"),
        ("SELECT s.callsite FROM sample s", "the nearest is callsite_id of sample"),
        ("SELECT function FROM top_functions", "there is no column function"),
        ("SELECT * FROM samples", "there is no table samples: the nearest is sample"),
        ("SELECT * FROM functions", "the nearest is top_functions"),
        ("SELECT percentil(weight, 50) FROM sample", "the nearest is percentile"),
        ("SELECT * FROM xyzzy", "there are recording, process, thread"),
        ("SELEC 1", "syntax error"),
    ] {
        let (code, said) = failed(&["-c", sql]);
        assert_eq!(code, Some(2), "{sql}: {said}");
        assert!(said.contains(nearest), "{sql}: {said}");
    }
}

#[test]
fn commands_of_the_shell_replace_a_statement() {
    let output = query(&golden("losses"), &["-c", ".tables"]);
    let tables = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && tables.contains("\nsample "), "{tables}");
    let output = query(&golden("losses"), &["-c", ".schema loss"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("records "), "{output:?}");
    for (command, answer) in
        [(".schema los", "the nearest is loss"), (".tabels", "there is no command .tabels")]
    {
        let (code, said) = failed(&["-c", command]);
        assert_eq!(code, Some(2), "{command}: {said}");
        assert!(said.contains(answer), "{command}: {said}");
    }
}

#[test]
fn names_in_messages_are_escaped() {
    let (code, said) = failed(&["-c", "SELECT \"\x1b[2J\" FROM \"\x1b[31m\""]);
    assert_eq!(code, Some(2));
    assert!(said.contains("\\x1b[31m") && !said.contains('\x1b'), "{said:?}");
}

#[test]
fn a_query_that_needs_too_much_memory_names_the_option() {
    let numbers =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000000)";
    for sql in ["SELECT LENGTH(GROUP_CONCAT(x)) FROM n", "SELECT percentile(x, 50) FROM n"] {
        let (code, said) = failed(&["--memory", "8M", "-c", &format!("{numbers} {sql}")]);
        assert_eq!(code, Some(1), "{sql}: {said}");
        assert!(said.contains("--memory"), "{sql}: {said}");
    }
    // A sort of as much writes to files instead.
    let sorted = format!("{numbers} SELECT x FROM n ORDER BY -x LIMIT 1 OFFSET 1999999");
    let output = query(&golden("losses"), &["--memory", "8M", "--csv", "-c", &sorted]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "x\n1\n", "{}", said(&output));
}

#[test]
fn too_little_memory_is_wrong_usage() {
    let (code, said) = failed(&["--memory", "1M", "-c", "SELECT 1"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("at least 4.0M") || said.contains("at least 4"), "{said}");
}

#[test]
fn standard_input_is_for_statements_or_for_a_recording() {
    let mut both = whit();
    both.args(["query", "-i", "-"]).stdin(std::process::Stdio::piped());
    let output = both.output().expect("run whit");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("standard input has the statements"), "{}", said(&output));
    let mut recording = whit();
    recording.args(["query", "--csv", "-i", "-", "-c", "SELECT COUNT(*) AS n FROM sample"]);
    recording.stdin(std::fs::File::open(golden("losses")).expect("open a recording"));
    assert_eq!(text(&mut recording), "n\n3\n");
}

#[test]
fn losses_and_defects_are_printed_with_the_rows() {
    let mut query = whit();
    let cut = tempfile::NamedTempFile::new().expect("make a file");
    let bytes = std::fs::read(golden("perf-fp")).expect("read a recording");
    // Into the last record of the samples.
    let end = bytes.len() - 400;
    std::fs::write(cut.path(), &bytes[..end]).expect("write a recording");
    query.args(["query", "--csv", "-i"]).arg(cut.path());
    let output = query.args(["-c", "SELECT COUNT(*) FROM sample"]).output().expect("run whit");
    let report =
        whit().args(["report", "--stats", "-i"]).arg(cut.path()).output().expect("run whit");
    let report = said(&report);
    let first = report.lines().next().expect("a warning of the report");
    assert!(said(&output).contains(first), "{}\n{report}", said(&output));
}
