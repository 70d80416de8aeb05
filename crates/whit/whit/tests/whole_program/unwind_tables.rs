//! Unwind tables of the BPF engine: which are made again, and who makes them when the machine is busy.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::tools::{command, text, whit, workload};
use crate::support::{check, probe};
use whit_testing::run::record;
use whit_testing::wait::{Load, wait_until};

/// The nice value of threads that stacks wait for.
const HURRIED: i64 = -20;

/// A recorder with a cache of its own.
fn recorder(place: &Path) -> Command {
    let mut recorder = whit();
    recorder.env("XDG_CACHE_HOME", place.join("cache"));
    recorder.args(["record", "--engine=bpf", "-e", "cpu-clock", "-o"]).arg(place.join("perf.data"));
    recorder
}

/// Loaded tables, and of these, those of the cache.
fn tables(place: &Path) -> (u64, u64) {
    let mut report = whit();
    let json = text(report.args(["report", "--json", "-i"]).arg(place.join("perf.data")));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let count = |name: &str| json["ledger"]["stacks"][name].as_u64().expect("a count");
    (count("tables"), count("cached_tables"))
}

#[test]
fn a_binary_without_a_build_id_has_its_table_in_the_cache() {
    check("bpf_no_build_id", || {
        probe::need_program("objcopy", &["--version"])?;
        let directory = tempfile::tempdir().expect("make a directory");
        let (place, program) = (directory.path(), directory.path().join("deep"));
        let mut objcopy = command("objcopy");
        objcopy.args(["--remove-section", ".note.gnu.build-id"]).arg(workload("deep")?);
        text(objcopy.arg(&program));
        // A file that was changed a moment ago is not kept.
        wait_until("the program is old enough", || age_seconds(&program) > 3.0);
        let run = || record(recorder(place).arg("--").arg(&program).args(["--iterations", "10"]));
        run()?;
        let (loaded, cached) = tables(place);
        assert!(loaded > 1 && cached == 0, "{cached} of {loaded}");
        run()?;
        assert_eq!(tables(place), (loaded, loaded));
        // The same bytes, written again.
        whit_testing::run::copy_program(&program, place.join("copy"));
        std::fs::rename(place.join("copy"), &program).expect("replace the program");
        run()?;
        assert_eq!(tables(place), (loaded, loaded - 1));
        Ok(())
    });
}

/// As builds make them. A file that is mapped takes its place on the disk until the recording ends.
#[test]
fn deleted_binaries_that_no_process_maps_are_let_go() {
    check("bpf_deleted_binaries", || {
        probe::bpf_stacks()?;
        probe::whole_cpus()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let (place, program) = (directory.path(), directory.path().join("built"));
        let load = Load::start(recorder(place).args(["-a", "-F", "99", "-N"]));
        let is_mapped = || {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", load.id()));
            maps.expect("the recorder runs").contains(&*program.to_string_lossy())
        };
        for _ in 0..2 {
            whit_testing::run::copy_program(workload("deep")?, &program);
            wait_until("the recorder has opened the program", || {
                text(command(&program).args(["--iterations", "10"]));
                is_mapped()
            });
            std::fs::remove_file(&program).expect("remove the program");
            wait_until("the recorder has let the program go", || !is_mapped());
        }
        Ok(())
    });
}

fn age_seconds(path: &Path) -> f64 {
    let modified = path.metadata().and_then(|metadata| metadata.modified()).expect("a time");
    modified.elapsed().map_or(0.0, |age| age.as_secs_f64())
}

#[test]
fn threads_that_stacks_wait_for_run_before_others() {
    check("bpf_hurry", || {
        probe::bpf_stacks()?;
        probe::nice()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let own = std::process::id();
        let load = Load::start(recorder(directory.path()).args(["-p", &own.to_string()]));
        for name in ["whit-follow", "whit-tables"] {
            wait_until("the threads hurry", || {
                nice_values(load.id(), |other| other == name) == [HURRIED]
            });
        }
        // All others do not.
        assert_eq!(nice_values(load.id(), |name| name == "whit"), nice_values(own, |_| true));
        Ok(())
    });
}

/// Nice values of the threads with such a name, each once.
fn nice_values(pid: u32, is_wanted: impl Fn(&str) -> bool) -> Vec<i64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    let stat = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("stat")).ok();
    let nice = |stat: String| {
        let (before, after) = stat.rsplit_once(')')?;
        let is_named = is_wanted(before.split_once('(')?.1);
        // Behind the name, the first is the third field of proc(5), and nice the nineteenth.
        let nice = after.split_whitespace().nth(16)?.parse().ok()?;
        is_named.then_some(nice)
    };
    let mut values: Vec<i64> = tasks.flatten().filter_map(stat).filter_map(nice).collect();
    values.sort_unstable();
    values.dedup();
    values
}
