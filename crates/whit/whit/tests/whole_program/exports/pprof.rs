//! `go tool pprof` reads whit's sums.

use std::collections::BTreeMap;
use std::path::Path;

use super::consumers;
use super::recordings::{self, Example};
use super::sums::{column, events, of_event};
use crate::support::tools::text;
use crate::support::{Skip, check};

/// Lines of `-top` have five figures in front of the name.
const FIGURES: usize = 5;

/// The flat sums of one of the file's values.
fn top(file: &Path, value: &str, unit: &str) -> Result<BTreeMap<String, u64>, Skip> {
    let mut pprof = consumers::pprof()?;
    pprof.args(["-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0"]);
    pprof.arg(format!("-sample_index={value}")).arg(format!("-unit={unit}")).arg(file);
    let printed = text(&mut pprof);
    let (_, table) = printed.split_once("cum%").expect("a table");
    let mut sums = BTreeMap::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() <= FIGURES {
            continue;
        }
        let digits: String = words[0].chars().take_while(char::is_ascii_digit).collect();
        let name = words[FIGURES..].join(" ");
        let name = name.trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)");
        let sum: u64 = digits.parse().unwrap_or_else(|_| panic!("{line}"));
        *sums.entry(name.to_owned()).or_insert(0) += sum;
    }
    sums.retain(|_, sum| *sum > 0);
    Ok(sums)
}

fn assert_same_sums(example: &Example, file: &Path) -> Result<(), Skip> {
    let events = events(example);
    for event in &events {
        let (name, sums) = (event["name"].as_str().unwrap(), of_event(event));
        let samples = if events.len() == 1 { "samples" } else { &format!("samples:{name}") };
        let read = top(file, samples, "count")?;
        assert_eq!(read, column(&sums, |sum| sum.0), "{} {samples}", example.name);
        let unit = if name.contains("clock") { "nanoseconds" } else { "count" };
        let read = top(file, name, unit)?;
        assert_eq!(read, column(&sums, |sum| sum.1), "{} {name}", example.name);
    }
    Ok(())
}

#[test]
fn pprof_reads_the_sums_of_the_report() {
    check("exports_pprof", || {
        consumers::pprof()?;
        let folder = tempfile::tempdir().expect("make a directory");
        for example in recordings::all(&folder) {
            let file = example.export("pprof", folder.path());
            assert_same_sums(&example, &file)?;
            let difference =
                text(consumers::pprof()?.args(["-top", "-diff_base"]).arg(&file).arg(&file));
            assert!(difference.contains("accounting for 0, "), "{difference}");
            let traces = text(consumers::pprof()?.arg("-traces").arg(&file));
            assert!(traces.contains("comm:"), "{traces}");
        }
        Ok(())
    });
}

#[test]
fn comments_of_pprof_state_losses_and_cost() {
    check("exports_pprof_comments", || {
        let folder = tempfile::tempdir().expect("make a directory");
        for example in recordings::all(&folder) {
            let file = example.export("pprof", folder.path());
            let comments = text(consumers::pprof()?.arg("-comments").arg(&file));
            assert!(comments.contains("Lost: "), "{comments}");
            assert_eq!(comments.contains("Lost: nothing"), example.name != "losses", "{comments}");
            assert_eq!(comments.contains("Ledger: "), !example.path.ends_with("recording.data"));
        }
        Ok(())
    });
}
