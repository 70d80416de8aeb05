//! The program by itself: its help, and the answer where there is no whit beside it.

use std::fs;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_whit-bench");

fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().expect("run whit-bench")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_names_every_comparison_and_a_missing_whit_has_a_way_out() {
    let output = run(PROGRAM, &["--help"]);
    let help = text(&output.stdout);
    assert!(output.status.success() && help.contains("Usage: whit bench <COMPARISON>"), "{help}");
    let comparisons = [
        "accuracy", "agents", "brief", "budget", "cgroup", "diff", "export", "forms", "lbr", "pmi",
        "query", "record", "report", "sched", "stacks", "stat", "switches", "top", "vpmu", "watch",
    ];
    for comparison in comparisons {
        assert!(help.contains(&format!("  {comparison} ")), "{comparison} in {help}");
    }
    let directory = tempfile::tempdir().unwrap();
    let alone = directory.path().join("whit-bench");
    whit_testing::run::copy_program(PROGRAM, &alone);
    fs::write(directory.path().join("matrix"), "").unwrap();
    let workloads = directory.path().to_str().unwrap();
    let output = run(&alone, &["stat", "--workloads", workloads, "--dir", workloads]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("whit: there is no ") && said.contains("--whit"), "{said}");
}
