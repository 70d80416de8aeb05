//! Text whose language `scripts/prose.pl` accepts.

use crate::run::repository;
use std::io::Write;
use std::process::{Command, Stdio};

/// Text for people, as `--help` prints it, without a finding of `scripts/prose.pl`.
///
/// # Panics
///
/// With the findings; or if there is no perl, which the repository's own checks need anyway.
#[track_caller]
pub fn assert_prose(what: &str, text: &str) {
    let findings = findings(text);
    assert!(findings.is_empty(), "{what}: {findings}");
}

/// The findings, one a line, and their counts; empty without any.
fn findings(text: &str) -> String {
    let mut command = Command::new("perl");
    command.arg(repository().join("scripts/prose.pl")).args(["-v", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run perl");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("write to prose.pl");
    drop(input);
    let output = child.wait_with_output().expect("read from prose.pl");
    match output.status.success() {
        true => String::new(),
        false => String::from_utf8_lossy(&output.stdout).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_listed_with_their_lines() {
        assert_eq!(findings("Usage: whit\n\n  -a, --all  All CPUs\n"), "");
        let found = findings("Usage: whit\n\n  -a, --all  What is recorded\n");
        assert!(found.contains("standard input:3: opening: What is recorded"), "{found}");
    }
}
