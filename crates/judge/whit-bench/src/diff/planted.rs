//! Proofs for waits, locks and requests on a program that exists: `planted`, whose waits have the lengths that it is given.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use serde_json::Value;

use super::FalseCalls;
use super::measures::Found;
use crate::error::Error;
use crate::scratch::Scratch;
use crate::setup::Setup;

/// Its waits have the lengths of the command line.
pub(super) const PROGRAM: &str = "planted";

/// A wait of 1 ms, 5 % longer.
const LONGER_US: &str = "1050";

/// Planted changes; for each the comparison and its first row.
const CASES: [Case; 3] = [
    Case { of: "one lock", option: "--lock", diff: &["--locks"], row: "want_lock (planted)" },
    Case {
        of: "one read",
        option: "--read",
        // The chain of callers waits as long: the function of the program counts.
        diff: &["--waits", "-d", "planted"],
        row: "read_answer",
    },
    Case { of: "one query", option: "--query", diff: &["--requests"], row: "query" },
];

struct Case {
    of: &'static str,
    option: &'static str,
    diff: &'static [&'static str],
    row: &'static str,
}

/// Comparisons of equal runs, each with its options.
const EQUAL: [&[&str]; 4] = [&["--locks"], &["--waits"], &["--wall"], &["--requests"]];

/// All comparisons.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Planted {
    /// Recordings on each side.
    pub(crate) runs: usize,
    /// Seconds of each.
    pub(crate) seconds: usize,
    /// Equal runs, by comparison.
    pub(crate) equal: Vec<(String, FalseCalls)>,
    /// Longer waits, by the planted change.
    pub(crate) longer: Vec<(String, Found)>,
    /// Pairs in which a mutex that became a spin lock waits less and spins more.
    pub(crate) swapped: Found,
}

struct Sides<'a> {
    setup: &'a Setup,
    folder: &'a Path,
    runs: usize,
    seconds: usize,
}

/// Records the programs in turn, and compares them.
pub(super) fn planted(
    pairs: usize,
    runs: usize,
    seconds: usize,
    setup: &Setup,
    say: &mut dyn FnMut(&str),
) -> Result<Planted, Error> {
    let scratch = Scratch::new(&setup.directory)?;
    let sides = Sides { setup, folder: scratch.path(), runs, seconds };
    let mut all = Planted { runs, seconds, ..Planted::default() };
    all.equal = EQUAL.iter().map(|of| (of.join(" "), FalseCalls::default())).collect();
    all.longer = CASES.iter().map(|case| (case.of.to_owned(), Found::default())).collect();
    for pair in 1..=pairs {
        say(&format!("{PROGRAM}: pair {pair} of {pairs}"));
        sides.record()?;
        for (of, (_, calls)) in EQUAL.iter().zip(&mut all.equal) {
            let found = sides.diff(of, "equal")?;
            calls.pairs += 1;
            calls.tests += found["tests"].as_u64().unwrap_or_default() as usize;
            calls.wrong += usize::from(rows(&found).any(differs));
        }
        for (case, (_, counts)) in CASES.iter().zip(&mut all.longer) {
            let found = sides.diff(case.diff, case.option)?;
            let is_planted = |row: &&Value| row["name"][0] == case.row;
            count(counts, rows(&found), |row| is_planted(&row) && differs(row));
        }
        let found = sides.diff(&["--locks"], "--spin")?;
        count(&mut all.swapped, rows(&found), |row| {
            let verdict = row["verdict"].as_str().unwrap_or_default();
            let of_lock = row["name"][0] == "want_lock (planted)";
            of_lock && verdict.starts_with("waits less") && verdict.ends_with("spins more")
        });
    }
    Ok(all)
}

fn rows(found: &Value) -> impl Iterator<Item = &Value> {
    found["rows"].as_array().into_iter().flatten()
}

fn differs(row: &Value) -> bool {
    row["verdict"] != "cannot be told"
}

fn count<'a>(
    counts: &mut Found,
    mut rows: impl Iterator<Item = &'a Value>,
    is_found: impl Fn(&Value) -> bool,
) {
    let first = rows.next();
    counts.pairs += 1;
    counts.first += usize::from(first.is_some_and(&is_found));
    counts.found += usize::from(first.is_some_and(&is_found) || rows.any(is_found));
}

impl Sides<'_> {
    fn path(&self, side: &str, run: usize) -> PathBuf {
        self.folder.join(format!("{}-{run}.data", side.trim_start_matches('-')))
    }

    /// Records all sides in turn, so that a slow minute of the machine meets each.
    fn record(&self) -> Result<(), Error> {
        for run in 0..self.runs {
            self.run("before", &[], run)?;
            self.run("equal", &[], run)?;
            for case in &CASES {
                self.run(case.option, &[case.option, LONGER_US], run)?;
            }
            self.run("--spin", &["--spin"], run)?;
        }
        Ok(())
    }

    fn run(&self, side: &str, options: &[&str], run: usize) -> Result<(), Error> {
        let program = self.setup.workloads.join(PROGRAM);
        let request = format!("query={}:handle_query", program.display());
        let mut command = Command::new(&self.setup.whit);
        command.args(["record", "-q", "--engine=bpf", "--wakeups", "-F", "999", "--request"]);
        command.arg(request).arg("-o").arg(self.path(side, run)).arg("--").arg(program);
        command.args(["--seconds", &self.seconds.to_string()]).args(options);
        crate::error::output_of(command).map(drop)
    }

    fn diff(&self, options: &[&str], side: &str) -> Result<Value, Error> {
        let mut command = Command::new(&self.setup.whit);
        command.args(["diff", "--json"]).args(options);
        command.args((0..self.runs).map(|run| self.path("before", run))).arg("--");
        command.args((0..self.runs).map(|run| self.path(side, run)));
        let text = crate::error::output_of(command)?;
        Ok(serde_json::from_str(&text)?)
    }
}
