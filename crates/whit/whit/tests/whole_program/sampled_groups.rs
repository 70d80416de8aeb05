//! Groups with the modifier `:S`, where only the leader samples: the samples of all members are those of the installed
//! perf for the same recording, and reports have their columns.

use std::path::Path;
use std::process::Command;

use crate::perf_reports::assert_same_lines;
use crate::perf_rows::in_directory;
use crate::support::Skip;
use crate::support::tools::{perf, record, text, whit, workload};

/// Records a program of a single thread, with a recorder's own options.
fn record_group(mut recorder: Command, path: &Path, options: &[&str]) -> Result<(), Skip> {
    recorder.args(["record", "-q", "-e"]);
    recorder.args(["{cpu-clock:u,page-faults:u,context-switches:u}:S"]).args(options);
    recorder.arg("-o").arg(path).arg("--").arg(workload("deep-fp")?);
    record(recorder.args(["--iterations", "30000"]))?;
    Ok(())
}

/// The samples that a script lists.
fn listed(mut tool: Command, path: &Path, options: &[&str]) -> Vec<String> {
    tool.args(["script", "-G", "-i"]).arg(path).args(options);
    let script = text(tool.args(["-F", "comm,tid,time,event,period,ip"]));
    let lines = script.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

#[track_caller]
fn assert_same_samples(path: &Path) -> Result<(), Skip> {
    let ours = listed(whit(), path, &[]);
    // The program's first pages come in before its first sample.
    assert!(ours.iter().any(|line| line.contains("page-faults")), "{}: {ours:?}", path.display());
    assert_eq!(ours, listed(perf()?, path, &[]), "{}", path.display());
    // Counts from before a part of the time are in none of its periods.
    let time = |word: &str| Some(word.strip_suffix(':')?.parse::<f64>().ok()?.to_string());
    let middle = ours[ours.len() / 2].split(' ').find_map(time).expect("a time");
    let later = ["--time", &format!("{middle},")];
    let part = listed(whit(), path, &later);
    assert!(!part.is_empty() && part.len() < ours.len(), "{} of {}", part.len(), ours.len());
    assert_eq!(part, listed(perf()?, path, &later), "{}", path.display());
    Ok(())
}

#[track_caller]
fn assert_same_reports(path: &Path) -> Result<(), Skip> {
    let periods = ["--no-children", "-g", "none", "-n", "--show-total-period"];
    // perf prints addresses where whit names a function by its unwind information, so that other code is left out.
    let theirs = [&["-d", "deep-fp", "--no-inline"], &periods[..]].concat();
    assert_same_lines(path, &[&theirs[..], &["--self-time", "outer"]].concat(), &theirs)?;
    let of_all = [&["-s", "comm,dso"], &periods[..]].concat();
    assert_same_lines(path, &of_all, &of_all)
}

fn compare(name: &str, recorder: impl Fn() -> Result<Command, Skip>) {
    in_directory(name, |directory| {
        let forms: [&[&str]; 4] = [
            &["-F", "4000"],
            &["-F", "4000", "-z"],
            // Without a period in the samples.
            &["-c", "200000"],
            &["-F", "1000", "--call-graph", "dwarf"],
        ];
        for (index, options) in forms.into_iter().enumerate() {
            let path = directory.join(format!("{index}.data"));
            record_group(recorder()?, &path, options)?;
            assert_same_samples(&path)?;
            assert_same_reports(&path)?;
        }
        Ok(())
    });
}

#[test]
fn groups_that_perf_sampled_have_perfs_samples() {
    compare("groups_that_perf_sampled_have_perfs_samples", perf);
}

#[test]
fn groups_that_whit_sampled_have_perfs_samples() {
    compare("groups_that_whit_sampled_have_perfs_samples", || Ok(whit()));
}

/// Each CPU counts for itself, and its ids are in its own stream.
#[test]
fn directories_of_all_cpus_have_perfs_samples() {
    in_directory("directories_of_all_cpus_have_perfs_samples", |directory| {
        let path = directory.join("threads.data");
        record_group(perf()?, &path, &["-F", "4000", "-a", "--threads"])?;
        assert_same_samples(&path)
    });
}
