//! A process that waits all the time has no samples and no switches, and everybody says so.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::tools::{command, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::run;
use whit_testing::wait::{Load, wait_until};

const NEVER_RAN: &str = "the thread that was recorded never ran meanwhile: it waited all the time";

/// Records the process while a command runs, and gives the recorder's messages.
fn recorded(arguments: &[&str], pid: u32, meanwhile: &str, out: &Path) -> Result<String, Skip> {
    let mut recorder = whit();
    recorder.args(["record", "--engine=ring"]).args(arguments).args([
        "-e",
        "cpu-clock",
        "-p",
        &pid.to_string(),
        "-o",
    ]);
    recorder.arg(out).args(["--", "sh", "-c", meanwhile]).stdout(Stdio::null());
    run::record(&mut recorder).map(|output| run::stderr(&output))
}

/// Kernels may leave out the statistics that tell who ran.
fn run_statistics() -> Result<(), Skip> {
    let own = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    if matches!(own.split(' ').next(), None | Some("" | "0")) {
        return Err(Skip("this kernel does not tell how long a thread has run".to_owned()));
    }
    Ok(())
}

/// A process that waits, and has reached that place.
fn sleeper() -> Load {
    let sleeper = Load::start(command("sleep").arg("1000"));
    let stat = format!("/proc/{}/stat", sleeper.id());
    wait_until("sleep sleeps", || {
        std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains("(sleep) S "))
    });
    sleeper
}

fn assert_said(engine: &str) -> Result<(), Skip> {
    let (place, sleeper) = (tempfile::tempdir().expect("make a directory"), sleeper());
    let out = place.path().join("perf.data");
    let said = recorded(&[engine, "-g", "--switch-events"], sleeper.id(), "sleep 0.2", &out)?;
    assert!(said.contains("[ whit record: 0 samples (no thread ran), "), "{said}");
    assert!(said.contains(NEVER_RAN), "{said}");
    let advice = match engine {
        "--engine=bpf" => "(whit switches shows where)".to_owned(),
        _ => format!("(gdb -p {} ", sleeper.id()),
    };
    assert!(said.contains(&advice), "{said}");
    let read = |subcommand: &[&str]| text(whit().args(subcommand).arg("-i").arg(&out));
    for face in [&["report"][..], &["report", "--json"], &["switches", "--json"]] {
        assert!(read(face).contains(NEVER_RAN), "{engine} {face:?}");
    }
    let switches = read(&["switches"]);
    assert!(switches.contains("Context switches: 0 (0 sync, 0 preemption)"), "{switches}");
    assert!(switches.contains("# No thread was seen to leave its CPU\n"), "{switches}");
    assert!(switches.contains(NEVER_RAN), "{switches}");
    // Stacks of a blocked thread are no samples of CPU time, and more of them tell nothing.
    let brief = read(&["report", "--brief"]);
    assert!(brief.contains("\nsamples: none\n") && !brief.contains(" self "), "{brief}");
    assert!(!brief.contains("too few") && !brief.contains("-F "), "{brief}");
    if engine == "--engine=bpf" {
        assert!(brief.contains(" until its end in "), "{brief}");
    }
    // To record it again as it was recorded is no advice.
    assert!(!switches.contains("add -e"), "{switches}");
    Ok(())
}

#[test]
fn a_process_that_waits_all_the_time_is_said_to() {
    check("hangs_ring", || {
        probe::own_events()?;
        run_statistics()?;
        assert_said("--engine=ring")
    });
}

#[test]
fn a_process_that_waits_all_the_time_is_said_to_with_programs() {
    check("hangs_bpf", || {
        probe::bpf_stacks()?;
        run_statistics()?;
        assert_said("--engine=bpf")
    });
}

#[test]
fn a_process_that_runs_now_and_then_is_not_said_to_wait_all_the_time() {
    check("hangs_runs", || {
        probe::own_events()?;
        run_statistics()?;
        let place = tempfile::tempdir().expect("make a directory");
        let out = place.path().join("perf.data");
        let now_and_then = "while :; do sleep 0.02; done";
        let runs = Load::start(Command::new("sh").args(["-c", now_and_then]));
        // Until it has come onto a CPU three times more.
        let meanwhile = format!(
            "came() {{ cut -d ' ' -f 3 /proc/{}/schedstat; }}; \
             was=$(came); while [ $(came) -lt $((was + 3)) ]; do sleep 0.02; done",
            runs.id()
        );
        let said = recorded(&["--engine=ring", "--switch-events"], runs.id(), &meanwhile, &out)?;
        assert!(!said.contains("ran meanwhile") && !said.contains("no thread ran"), "{said}");
        let report = text(whit().args(["report", "-i"]).arg(&out));
        assert!(!report.contains("ran meanwhile"), "{report}");
        let switches = text(whit().args(["switches", "-i"]).arg(&out));
        assert!(!switches.contains("No thread was seen to leave its CPU"), "{switches}");
        Ok(())
    });
}

/// Until all three threads wait at a mutex.
fn wait_for_futexes(pid: u32, tids: &[&str]) {
    let status = |tid: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat"));
    wait_until("all wait", || {
        tids.iter().all(|tid| status(tid).is_ok_and(|stat| stat.contains(") S ")))
    });
}

#[test]
fn a_deadlock_from_before_the_recording_names_its_locks_and_threads() {
    check("hangs_deadlock", || {
        probe::bpf_stacks()?;
        let place = tempfile::tempdir().expect("make a directory");
        let out = place.path().join("perf.data");
        let ready = place.path().join("ready");
        let shell = ["-c", "exec \"$0\" > \"$1\""].map(OsStr::new);
        let program = workload("deadlock")?;
        let mut program =
            Load::start(Command::new("sh").args(shell).arg(program).arg(ready.as_os_str()));
        let line = || std::fs::read_to_string(&ready).unwrap_or_default();
        wait_until("two threads hold a mutex each", || line().ends_with('\n'));
        let line = line();
        let tids: Vec<_> = line.trim().split(' ').filter_map(|word| word.split_once('=')).collect();
        let [one, two, three] = [0, 1, 2].map(|at| tids[at].1);
        wait_for_futexes(program.id(), &[one, two, three]);
        let said = recorded(&["--engine=bpf", "--switch-events"], program.id(), "sleep 0.2", &out);
        program.end();
        said?;
        let read = |subcommand: &[&str]| text(whit().args(subcommand).arg("-i").arg(&out));
        let circle =
            format!("Deadlock: one/{one} waits for two/{two}, two/{two} waits for one/{one}");
        let holds = [
            format!("one/{one} waits all the time for second (deadlock), which two/{two} holds"),
            format!("two/{two} waits all the time for first (deadlock), which one/{one} holds"),
            format!("three/{three} waits all the time for first (deadlock), which one/{one} holds"),
        ];
        for answer in [&["locks"][..], &["report", "--brief"]] {
            let text = read(answer);
            assert_eq!(text.matches("Deadlock: ").count(), 1, "{answer:?} {text}");
            assert!(text.contains(&circle), "{answer:?} {text}");
            for held in &holds {
                assert!(text.contains(held), "{answer:?}: {held} in {text}");
            }
        }
        Ok(())
    });
}
