//! The counts that an ordinary user may take, and those that a whit with file capabilities allows a
//! member.

use super::support::{Busy, Skip, check, fields, probe, said};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A user that is in no list.
const UNPRIVILEGED: u32 = 54_323;
/// The kernel's default: own processes in user mode.
const USUAL_PARANOID: i64 = 2;

/// A copy of whit that everybody may run.
pub(crate) fn copy() -> Result<(tempfile::TempDir, PathBuf), Skip> {
    probe::root()?;
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if paranoid.trim().parse() != Ok(USUAL_PARANOID) {
        return Err(Skip(format!("perf_event_paranoid is {}, not 2", paranoid.trim())));
    }
    let dir = tempfile::Builder::new().prefix("whit-stat-").tempdir_in("/tmp").unwrap();
    open_to_all(dir.path());
    let whit = dir.path().join("whit");
    whit_testing::run::copy_program(env!("CARGO_BIN_EXE_whit"), &whit);
    open_to_all(&whit);
    Ok((dir, whit))
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn by_unprivileged(whit: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(whit);
    command.arg("stat").args(arguments).uid(UNPRIVILEGED).gid(UNPRIVILEGED).current_dir("/");
    command.output().unwrap()
}

#[test]
fn a_user_counts_user_mode_and_hears_of_it_once() {
    check("a_user_counts_user_mode_and_hears_of_it_once", || {
        let (_dir, whit) = copy()?;
        let output =
            by_unprivileged(&whit, &["-e", "page-faults,task-clock,minor-faults:u", "true"]);
        let text = said(&output);
        assert!(output.status.success(), "{text}");
        let warning = "kernel mode left out of page-faults, task-clock: \
                       kernel.perf_event_paranoid is 2";
        assert!(text.contains(warning), "{text}");
        assert_eq!(text.matches("whit: warning").count(), 1, "{text}");
        for event in ["page-faults:u", "task-clock:u", "minor-faults:u"] {
            assert!(text.contains(event), "{text}");
        }
        let csv = by_unprivileged(&whit, &["-x;", "-e", "page-faults:u,minor-faults:u", "true"]);
        let lines = fields(&said(&csv));
        assert!(lines.iter().all(|line| line[0].parse::<u64>().unwrap() > 0), "{lines:?}");
        Ok(())
    });
}

#[test]
fn refused_counts_have_the_command_that_allows_them() {
    check("refused_counts_have_the_command_that_allows_them", || {
        let (_dir, whit) = copy()?;
        let all = by_unprivileged(&whit, &["-a", "sleep", "1000"]);
        assert!(!all.status.success());
        let text = said(&all);
        assert!(text.contains("counting whole CPUs needs kernel.perf_event_paranoid 0"), "{text}");
        assert!(text.contains("sysctl kernel.perf_event_paranoid=0"), "{text}");
        assert!(text.contains("setup --group perf_users"), "{text}");
        let busy = Busy::start();
        let others = by_unprivileged(&whit, &["-e", "page-faults:u", "-p", &busy.id().to_string()]);
        assert!(!others.status.success());
        assert!(said(&others).contains("belongs to another user"), "{}", said(&others));
        // One of two is allowed: it is counted, the other named.
        let mixed = by_unprivileged(&whit, &["-x;", "-e", "page-faults:u,2:1", "true"]);
        let text = said(&mixed);
        assert!(mixed.status.success(), "{text}");
        assert!(text.contains("not counted: 2:1: tracepoints need"), "{text}");
        assert!(text.contains("<not counted>;;2:1"), "{text}");
        Ok(())
    });
}

#[test]
fn a_command_that_gains_rights_is_said_to_have_lost_its_events() {
    check("a_command_that_gains_rights_is_said_to_have_lost_its_events", || {
        let (dir, whit) = copy()?;
        if whit_sys::system::is_nosuid(std::fs::File::open(dir.path()).unwrap()) != Ok(false) {
            return Err(Skip("/tmp is mounted nosuid".to_owned()));
        }
        let shell = dir.path().join("shell");
        whit_testing::run::copy_program("/bin/sh", &shell);
        std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let run = |program: &str| {
            said(&by_unprivileged(&whit, &["-e", "task-clock:u", program, "-c", work]))
        };
        let text = run(shell.to_str().unwrap());
        assert!(text.contains("took the events off the command"), "{text}");
        assert!(!run("/bin/sh").contains("took the events off"));
        Ok(())
    });
}

#[test]
fn a_member_counts_the_whole_machine_and_the_command_gains_nothing() {
    check("a_member_counts_the_whole_machine_and_the_command_gains_nothing", || {
        let (dir, whit) = copy()?;
        let setup = Command::new(&whit)
            .args(["setup", "--group", &UNPRIVILEGED.to_string(), "--binary"])
            .arg(&whit)
            .output()
            .unwrap();
        assert!(setup.status.success(), "{}", said(&setup));
        let output =
            by_unprivileged(&whit, &["-a", "-x;", "-e", "cpu-clock", "cat", "/proc/self/status"]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(fields(&said(&output))[0][0].parse::<f64>().unwrap() > 0.0);
        let status = String::from_utf8_lossy(&output.stdout).into_owned();
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let line = status.lines().find(|line| line.starts_with(set)).expect(set);
            assert!(line.trim_end().ends_with("0000000000000000"), "{line}");
        }
        // A file of root's stays root's.
        let file = dir.path().join("roots");
        std::fs::write(&file, "kept").unwrap();
        let refused = by_unprivileged(&whit, &["-o", file.to_str().unwrap(), "--null", "true"]);
        assert!(!refused.status.success());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
        Ok(())
    });
}
