//! Recordings that another recorder makes meanwhile are as they would be alone.

mod live;
mod others;

use std::path::Path;
use std::process::Command;

use crate::support::tools::{command, newest_perf, perf, record, text, whit, workload};
use crate::support::{Skip, check, probe};
use others::OTHERS;
use whit_testing::wait::Busy;

/// The fields of these events differ, so a sample that has the id of no event of the recording cannot be read. The second
/// one is pinned: when its thread comes, the kernel counts it behind those events of the CPU that are not.
const EVENTS: &str = "cpu-clock,software/period=1,name=cs,config=0x3/kD";
/// Each of them is a switch at least.
const SLEEPS: usize = 20;

#[test]
fn perfs_samples_of_switches_keep_their_ids_with_the_bpf_engine() {
    check("perfs_samples_of_switches_keep_their_ids_with_the_bpf_engine", || {
        probe::bpf_stacks()?;
        let place = tempfile::tempdir().expect("make a directory");
        let (ours, theirs) = (place.path().join("ours.data"), place.path().join("theirs.data"));
        // The engine has its event of switches where it saw no switch out of the idle thread. No CPU is idle here.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let busy: Vec<_> = (0..cpus).map(|_| Busy::start()).collect();
        busy.iter().for_each(Busy::wait_for_work);
        let perfs = perf()?;
        let mut recorder = whit();
        recorder.args(["record", "-a", "--engine=bpf", "--switch-events", "-o"]).arg(&ours);
        recorder.arg("--").arg(perfs.get_program()).args(["record", "-q", "-F", "1000", "-o"]);
        let sleeps = "sleep 0.005; ".repeat(SLEEPS);
        recorder.arg(&theirs).args(["-e", EVENTS, "--", "sh", "-c", &sleeps]);
        record(&mut recorder)?;
        let events = text(perf()?.args(["script", "-F", "event", "-i"]).arg(&theirs));
        let switches = events.lines().filter(|line| line.trim().starts_with("cs")).count();
        assert!(switches >= SLEEPS, "{switches} switches\n{events}");
        Ok(())
    });
}

/// A recorder of a command.
fn around(mut recorder: Command, options: &[&str], command: &Command) -> Command {
    recorder.args(["record", "-q", "-e", "cpu-clock"]).args(options).arg("--");
    recorder.arg(command.get_program()).args(command.get_args());
    recorder
}

/// Recorders of the whole machine that ask for build ids make stock perf end with a smashed stack, so the other one
/// follows the program alone. The kernel writes a record for the newest event first.
#[test]
fn names_are_those_of_a_run_alone_with_recorders_that_ask_for_build_ids() {
    check("names_are_those_of_a_run_alone_with_recorders_that_ask_for_build_ids", || {
        probe::bpf_stacks()?;
        let (place, program) =
            (tempfile::tempdir().expect("make a directory"), workload("matrix")?);
        let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
        let (ours, theirs) = (path("ours.data"), path("theirs.data"));
        for engine in ["ring", "bpf"] {
            let others: [fn() -> Result<Command, Skip>; 3] = [perf, newest_perf, || Ok(whit())];
            for other in others {
                let other = match other() {
                    Ok(other) => other,
                    Err(Skip(reason)) => {
                        whit_testing::skip("names beside newer recorders", &reason);
                        continue;
                    }
                };
                let inner = around(other, &["--buildid-mmap", "-o", &theirs], &command(&program));
                let engine_is = format!("--engine={engine}");
                record(&mut around(whit(), &["-g", "-F", "999", &engine_is, "-o", &ours], &inner))?;
                let script =
                    |options: &[&str]| text(whit().args(["script", "-i", &ours]).args(options));
                let mappings = script(&["--show-mmap-events"]);
                let of_program = mappings.lines().find(|line| line.ends_with("/matrix"));
                assert!(
                    of_program.is_some_and(|line| !line.contains('<')),
                    "{engine}: {of_program:?}"
                );
                let frames = script(&["-F", "ip,sym,dso"]);
                let frames = || frames.lines().filter(|line| line.ends_with("/matrix)"));
                let count = |name: &str| frames().filter(|line| line.contains(name)).count();
                assert!(
                    count(" multiply_block ") > 20,
                    "{engine}: {:?}",
                    frames().collect::<Vec<_>>()
                );
                assert_eq!(count("[unknown]"), 0, "{engine}");
                // The program keeps no frame pointers.
                let (row, block) = (count(" multiply_row "), count(" multiply_block "));
                assert!(engine == "ring" || row * 10 >= block * 9, "{row} of {block}");
            }
        }
        Ok(())
    });
}

#[test]
fn records_of_bpf_programs_have_their_own_time_with_other_recorders() {
    check("records_of_bpf_programs_have_their_own_time_with_other_recorders", || {
        probe::bpf_stacks()?;
        probe::whole_cpus()?;
        let place = tempfile::tempdir().expect("make a directory");
        let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
        let (older, newer, loader) = (path("older.data"), path("newer.data"), path("loader.data"));
        // Its engine loads BPF programs, and unloads them when it ends.
        let mut loads = whit();
        loads.args(["record", "-q", "--engine=bpf", "-o", &loader, "--", "true"]);
        // The kernel writes such a record for the newest event first.
        let inner = around(whit(), &["-a", "-F", "9", "--engine=ring", "-o", &newer], &loads);
        record(&mut around(whit(), &["-a", "-F", "9", "--engine=ring", "-o", &older], &inner))?;
        let times = |path: &str| {
            let lines =
                text(whit().args(["script", "--show-bpf-events", "-F", "time,event", "-i", path]));
            let is_of_program =
                |line: &&str| line.contains("KSYMBOL") || line.contains("BPF_EVENT");
            let time =
                |line: &str| line.split(':').next().and_then(|time| time.trim().parse().ok());
            let of_programs =
                lines.lines().filter(is_of_program).filter(|line| !line.contains(" 0.000000:"));
            of_programs.map(|line| time(line).expect(line)).collect::<Vec<f64>>()
        };
        let (in_newer, in_older) = (times(&newer), times(&older));
        assert!(in_newer.len() > 4, "{in_newer:?}");
        let (first, last) = (in_newer[0], in_newer[in_newer.len() - 1]);
        let during =
            in_older.iter().filter(|time| (first - 0.5..last + 0.5).contains(*time)).count();
        assert!(during >= in_newer.len(), "{in_newer:?}\n{in_older:?}");
        Ok(())
    });
}

/// Such records grow for each recorder, and older memory of the ring follows their own contents. Stock perf reads no
/// recording that has an id of no event there.
#[test]
fn stock_perf_reads_records_of_bpf_programs_with_other_recorders() {
    check("stock_perf_reads_records_of_bpf_programs_with_other_recorders", || {
        probe::bpf_stacks()?;
        probe::whole_cpus()?;
        let place = tempfile::tempdir().expect("make a directory");
        let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
        let (older, newer, loader) = (path("older.data"), path("newer.data"), path("loader.data"));
        let whit_path = whit().get_program().to_string_lossy().into_owned();
        let load = format!("'{whit_path}' record -q --engine=bpf -o '{loader}' -- true;");
        let mut loads = command("sh");
        loads.args(["-c", &load.repeat(4)]);
        // Rings that are used again and again, and two events: with one alone, perf needs no id.
        let second = "software/config=0x0,period=10000000,name=second/";
        let ring = ["-a", "-F", "9999", "-g", "-m", "64K", "--engine=ring", "-e", second, "-o"];
        let options = |out| [&ring[..], &[out]].concat();
        let inner = around(whit(), &options(&newer), &loads);
        record(&mut around(whit(), &options(&older), &inner))?;
        for path in [&older, &newer] {
            let count = |mut reader: Command| {
                let lines = text(reader.args(["script", "--show-bpf-events", "-i", path]));
                let is_of_program =
                    |line: &&str| line.contains("KSYMBOL") || line.contains("BPF_EVENT");
                lines.lines().filter(is_of_program).count()
            };
            let (ours, perfs) = (count(whit()), count(perf()?));
            assert!(ours > 100, "{path}: {ours}");
            assert_eq!(ours, perfs, "{path}");
        }
        Ok(())
    });
}

/// Processes that a program begins, each a sample of the event.
const FORKS: usize = 200;
const FORK_EVENT: &str = "sched:sched_process_fork";

/// The counts of a recording of the program, which are its own alone: samples, begins and ends of processes.
fn counts(mode: &[&str], out: &Path) -> Result<[usize; 3], Skip> {
    let (forks, number) = (workload("storm")?, FORKS.to_string());
    let mut recorder = whit();
    recorder.args(["record", "-e", FORK_EVENT, "-c", "1"]).args(mode).arg("-o").arg(out);
    record(recorder.arg("--").arg(forks).args(["--forks", &number]))?;
    let options = ["script", "-G", "--show-task-events", "-F", "event", "-i"];
    let printed = text(whit().args(options).arg(out));
    let of = |word| printed.lines().filter(|line| line.contains(word)).count();
    Ok([FORK_EVENT, "PERF_RECORD_FORK", "PERF_RECORD_EXIT"].map(of))
}

#[test]
fn counts_of_each_mode_are_those_of_a_run_alone() {
    check("counts_of_each_mode_are_those_of_a_run_alone", || {
        probe::bpf_stacks()?;
        probe::tracepoints()?;
        let place = tempfile::tempdir().expect("make a directory");
        let ours = place.path().join("ours.data");
        let modes: [&[&str]; 5] = [
            &["--engine=ring"],
            // The dumps of all samples fit in.
            &["--engine=ring", "--call-graph=dwarf", "-m", "4M"],
            &["--engine=ring", "--threads", "--switch-events"],
            &["--engine=bpf"],
            &["--engine=bpf", "--switch-events"],
        ];
        let alone = [FORKS, FORKS, FORKS + 1];
        for mode in modes {
            assert_eq!(counts(mode, &ours)?, alone, "{mode:?} alone");
        }
        for other in OTHERS {
            let Some(_other) = other.start("counts", place.path()) else { continue };
            for mode in modes {
                assert_eq!(counts(mode, &ours)?, alone, "{mode:?} beside {}", other.name);
            }
            let mut counter = whit();
            counter.args(["stat", "-x", ",", "-e", FORK_EVENT, "--"]).arg(workload("storm")?);
            let counted = whit_testing::run::run(counter.args(["--forks", &FORKS.to_string()]));
            let said = whit_testing::run::stderr(&counted);
            assert!(said.contains(&format!("{FORKS},,{FORK_EVENT}")), "{}: {said}", other.name);
        }
        Ok(())
    });
}
