//! `whit watch`, `whit top` and `whit locks` beside other recorders.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use whit_perfdata::record::SideBand;

use super::others::OTHERS;
use super::{FORK_EVENT, FORKS};
use crate::locks;
use crate::support::tools::{succeed, text, whit, workload};
use crate::support::{Skip, check, number, probe};
use crate::watch::Service;
use crate::watch::storms::side_band;
use whit_testing::run::copy_program;
use whit_testing::wait::Load;

/// Runs a program `times` times, alone and then beside each recorder.
fn alone_and_with_others(
    test: &str,
    times: impl Fn(&str, &Path) -> Result<(), Skip>,
) -> Result<(), Skip> {
    probe::bpf_stacks()?;
    probe::tracepoints()?;
    let place = tempfile::tempdir().expect("make a directory");
    times("nothing", place.path())?;
    for other in OTHERS {
        let Some(_other) = other.start(test, place.path()) else { continue };
        times(other.name, place.path())?;
    }
    Ok(())
}

/// Begins of processes by one process, and lost records.
fn begins_by(parent: u32, files: &[PathBuf]) -> (usize, u64) {
    let (mut begins, mut losses) = (0, 0);
    side_band(files, |record| match record {
        SideBand::Fork(fork) if fork.parent_pid.0 as u32 == parent => begins += 1,
        SideBand::Lost { lost, .. } => losses += lost,
        _ => {}
    });
    (begins, losses)
}

/// A program that is run to its end; gives its number.
fn run(program: &mut Command) -> u32 {
    let mut child = program.stdout(Stdio::null()).spawn().expect("run it");
    assert!(child.wait().expect("wait for it").success(), "{program:?}");
    child.id()
}

#[test]
fn a_service_counts_and_names_as_alone() {
    check("a_service_counts_and_names_as_alone", || {
        let (storm, matrix) = (workload("storm")?, workload("matrix")?);
        alone_and_with_others("a_service", |other, _| {
            let config = "window = \"1s\"\nfreq = 499\nengine = \"bpf\"\n";
            let mut service = Service::start(config)?;
            service.wait_for_files(1);
            let forks = run(Command::new(&storm).args(["--forks", &FORKS.to_string()]));
            run(&mut Command::new(&matrix));
            service.wait_for_files(service.files().len() + 1);
            service.end();
            let files = service.files();
            let (begins, losses) = begins_by(forks, &files);
            if begins < FORKS && losses > 0 {
                return Err(Skip(format!("too busy to judge: {losses} lost records")));
            }
            assert_eq!(begins, FORKS, "beside {other}: {losses} lost records");
            let frames = |file| {
                text(
                    whit().args(["script", "-F", "ip,sym,dso", "--comm", "matrix", "-i"]).arg(file),
                )
            };
            let frames: String = files.iter().map(frames).collect();
            let of_program = || frames.lines().filter(|line| line.ends_with("/matrix)"));
            let count = |name: &str| of_program().filter(|line| line.contains(name)).count();
            let (row, block) = (count(" multiply_row "), count(" multiply_block "));
            assert!(block > 20 && row * 10 >= block * 9, "{row} of {block} beside {other}");
            assert_eq!(count("[unknown]"), 0, "beside {other}");
            Ok(())
        })
    });
}

/// How long pictures are waited for.
const PATIENCE: Duration = Duration::from_secs(50);

#[test]
fn pictures_of_top_count_and_name_as_alone() {
    check("pictures_of_top_count_and_name_as_alone", || {
        let storm = workload("storm")?;
        alone_and_with_others("pictures_of_top", |other, place| {
            // Other programs of the machine have other names.
            let forker = place.join("forker");
            copy_program(&storm, &forker);
            let mut top = whit();
            top.args(["top", "--json", "-d", "1", "-n", "60", "--sort", "comm"]);
            let (_top, pictures) = Load::with_output(top.args(["-e", FORK_EVENT, "-c", "1"]));
            let mut pictures = BufReader::new(pictures).lines();
            let mut of_forker = || {
                let line = pictures.next().expect("another picture").expect("read it");
                let picture: Value = serde_json::from_str(&line).expect("JSON");
                let rows = picture["events"][0]["rows"].as_array().cloned().unwrap_or_default();
                rows.into_iter().find(|row| row["comm"] == "forker").unwrap_or_default()
            };
            assert!(of_forker().is_null());
            run(Command::new(&forker).args(["--forks", &FORKS.to_string()]));
            let (begin, samples) =
                (Instant::now(), |row: &Value| row["self"]["samples"].as_u64().unwrap_or(0));
            let mut row = of_forker();
            while samples(&row) < FORKS as u64 && begin.elapsed() < PATIENCE {
                row = of_forker();
            }
            // The next one would have those that are too many.
            row = of_forker();
            assert_eq!(samples(&row), FORKS as u64, "beside {other}");
            let names = row["chains"].to_string();
            for name in ["\"main\"", "\"forks\"", "fork\"", "\"kernel_clone\""] {
                assert!(names.contains(name), "{name} beside {other}: {names}");
            }
            assert!(!names.contains("unknown"), "beside {other}: {names}");
            Ok(())
        })
    });
}

#[test]
fn waits_for_locks_are_those_of_the_program_with_other_recorders() {
    check("waits_for_locks_are_those_of_the_program_with_other_recorders", || {
        alone_and_with_others("waits_for_locks", |other, place| {
            let data = place.join("ours.data");
            let all = locks::with_wakeups(&data)?;
            let json = locks::locks(&data, &[]);
            eprintln!("waits beside {other}");
            locks::agree(&json, &all);
            let slow = locks::row(&json, "slow_lock");
            let certain = number(&slow["sums"], "contended");
            let sites =
                locks::waits_by(&json, slow, |wait| locks::function(&json, &wait["call_site"]));
            assert_eq!(sites, [("take_slow".to_owned(), certain)].into(), "beside {other}");
            drop(succeed(whit().args(["locks", "--by", "holder", "-i"]).arg(&data)));
            Ok(())
        })
    });
}
