//! `whit bench` where its program is, and where it is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// One test: a second thread that starts a process while a program is being copied would hold that open, and
/// the kernel executes no file that is open for writing.
#[test]
fn bench_hands_everything_on_to_its_program_or_says_where_that_comes_from() {
    let directory = tempfile::tempdir().unwrap();
    let whit = directory.path().join("whit");
    fs::copy(env!("CARGO_BIN_EXE_whit"), &whit).unwrap();
    let output = Command::new(&whit).args(["bench", "pmi", "--json", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cargo build --release -p whit-bench"), "{said}");

    let program = directory.path().join("whit-bench");
    fs::write(&program, "#!/bin/sh\necho \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&whit).args(["bench", "--help", "-x", "stat"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--help -x stat\n");
    assert_eq!(output.status.code(), Some(7));
}
