//! What the tests share.

pub(crate) mod counting;
pub(crate) mod group;
pub(crate) mod load;

use std::fs::OpenOptions;
use std::io::Write;

/// What this machine lacks.
#[derive(Debug)]
pub(crate) struct Skip(pub(crate) String);

/// Runs the body of the test `name`; where it says that something is missing, that is announced.
pub(crate) fn check(name: &str, body: impl FnOnce() -> Result<(), Skip>) {
    let Err(Skip(reason)) = body() else { return };
    let line = format!("{name}: {}\n", reason.replace('\n', " "));
    // Straight to standard error: what goes through eprintln! is captured and not shown.
    let _ = std::io::stderr().write_all(format!("\nskipped {line}").as_bytes());
    if let Some(path) = std::env::var_os("WHIT_SKIP_LOG") {
        let log = OpenOptions::new().append(true).create(true).open(&path);
        log.and_then(|mut log| log.write_all(line.as_bytes())).expect("write WHIT_SKIP_LOG");
    }
}

/// Whether two counts are the same but for this share of the larger one, and for `slack`.
pub(crate) fn assert_close(what: &str, a: u64, b: u64, share: f64, slack: u64) {
    let allowed = (a.max(b) as f64 * share) as u64 + slack;
    assert!(a.abs_diff(b) <= allowed, "{what}: {a} and {b} differ by more than {allowed}");
}
