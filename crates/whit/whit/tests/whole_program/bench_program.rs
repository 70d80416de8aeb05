//! `whit bench` where its program is, and where it is not.

use std::process::Command;

use whit_testing::run::{copy_program, write_program};

#[test]
fn bench_hands_everything_on_to_its_program_or_says_where_that_comes_from() {
    let directory = tempfile::tempdir().unwrap();
    let whit = directory.path().join("whit");
    copy_program(env!("CARGO_BIN_EXE_whit"), &whit);
    let output = Command::new(&whit).args(["bench", "pmi", "--json", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cargo build --release -p whit-bench"), "{said}");

    let program = directory.path().join("whit-bench");
    write_program(&program, "#!/bin/sh\necho \"$@\"\nexit 7\n");
    let output = Command::new(&whit).args(["bench", "--help", "-x", "stat"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--help -x stat\n");
    assert_eq!(output.status.code(), Some(7));
}
