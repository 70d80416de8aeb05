//! Skips: a test that this machine cannot run says so by name.
//!
//! A test that lacks something (a PMU, a right, `perf`) must not look as if it had passed. It is named with the
//! reason on standard error, past what the test harness captures, and in the file that `WHIT_SKIP_LOG`
//! names.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// The ability that this machine lacks: ends the body of a test.
#[derive(Debug)]
pub struct Skip(pub String);

/// Runs the body of the test `name`; where it says that something is missing, that is announced.
///
/// # Panics
///
/// Where the body does.
pub fn check(name: &str, body: impl FnOnce() -> Result<(), Skip>) {
    if let Err(Skip(reason)) = body() {
        skip(name, &reason);
    }
}

/// Announces that the test `name`, or a part of it, is not run, and why.
///
/// # Panics
///
/// Where `WHIT_SKIP_LOG` cannot be written: a skip that nobody hears of would be a lie.
pub fn skip(name: &str, reason: &str) {
    let line = line(name, reason);
    // Straight to standard error: the test harness captures the output of eprintln! and does not
    // show it.
    let _ = io::stderr().write_all(format!("\nskipped {line}").as_bytes());
    if let Some(log) = std::env::var_os("WHIT_SKIP_LOG") {
        append(Path::new(&log), &line).expect("write WHIT_SKIP_LOG");
    }
}

fn line(name: &str, reason: &str) -> String {
    format!("{name}: {}\n", reason.trim_end().replace('\n', " "))
}

/// In one piece, since tests of several processes write at the same time.
fn append(log: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(log)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skip_is_a_line_of_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("skipped");
        append(&log, &line("one", "no\nPMU\n")).unwrap();
        append(&log, &line("two", "no perf")).unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(text, "one: no PMU\ntwo: no perf\n");
        assert!(append(&directory.path().join("missing/skipped"), "three: \n").is_err());
    }

    #[test]
    fn a_body_that_lacks_nothing_is_no_skip() {
        let mut has_run = false;
        check("never announced", || {
            has_run = true;
            Ok(())
        });
        assert!(has_run);
    }
}
