//! Privileges that a whit with file capabilities must not give to anybody.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use whit_sys::capability::CapabilitySet;

use crate::privileges::fixture::{
    Busy, Fixture, MEMBER, STRANGER, Skip, check, copy_program, need, set_mode, stderr, stdout,
};

#[test]
fn strangers_cannot_run_it() {
    check("strangers_cannot_run_it", || {
        let fixture = Fixture::set_up()?;
        let error = STRANGER.command(fixture.whit()).arg("--version").output().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        assert!(fixture.by_member(&["--version"]).output().unwrap().status.success());
        Ok(())
    });
}

/// Says in which programs it was loaded: those that run with borrowed rights, and the others.
const INJECTED: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>
static void mark(void) {
    char line[256];
    int size = snprintf(line, sizeof line, "%s secure=%lu\n", program_invocation_short_name,
                        getauxval(AT_SECURE));
    int fd = open(MARKER, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (fd >= 0) { if (write(fd, line, size) != size) abort(); close(fd); }
}
__attribute__((constructor)) static void loaded(void) { mark(); }
unsigned int la_version(unsigned int version) { mark(); return version; }
"#;

#[test]
fn the_loader_brings_nothing_into_whit_and_everything_into_the_command() {
    check("the_loader_brings_nothing_into_whit_and_everything_into_the_command", || {
        need("cc", "--version")?;
        let fixture = Fixture::new()?;
        let marker = fixture.home().join("marker");
        let library = fixture.path().join("injected.so");
        let source = fixture.path().join("injected.c");
        fs::write(&source, INJECTED).unwrap();
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(format!("-DMARKER=\"{}\"", marker.display()))
            .arg(&source)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", stderr(&compiled));
        let marks = |variable: &str| {
            let _ = fs::remove_file(&marker);
            let mut record = fixture.by_member(&["record", "-e", "cpu-clock:u", "--", "/bin/ls"]);
            let output = record.env(variable, &library).output().unwrap();
            assert!(output.status.success(), "{variable}: {}", stderr(&output));
            fs::read_to_string(&marker).unwrap_or_default()
        };
        for variable in ["LD_PRELOAD", "LD_AUDIT"] {
            let text = marks(variable);
            assert!(text.contains("whit secure=0"), "not set up, it is loaded: {text}");
        }
        assert!(fixture.setup(&[]).status.success());
        for variable in ["LD_PRELOAD", "LD_AUDIT"] {
            let text = marks(variable);
            assert!(!text.contains("whit"), "{variable}: {text}");
            assert!(!text.contains("secure=1"), "{variable}: {text}");
            assert!(text.contains("ls secure=0"), "the command is the user's: {text}");
        }
        Ok(())
    });
}

#[test]
fn the_command_gets_the_environment_that_the_user_gave() {
    check("the_command_gets_the_environment_that_the_user_gave", || {
        let fixture = Fixture::set_up()?;
        let mut record = fixture.by_member(&["record", "-q", "-e", "cpu-clock:u", "--", "env"]);
        record.env_clear().env("PATH", "/usr/bin:/bin");
        let given = [
            ("LD_LIBRARY_PATH", "/nonexistent"),
            ("TMPDIR", "/nonexistent/tmp"),
            ("MALLOC_ARENA_MAX", "1"),
            ("RUST_BACKTRACE", "full"),
            ("EMPTY", ""),
            ("LINES_OF", "one\ntwo=2"),
        ];
        let output = record.envs(given).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let shown = stdout(&output);
        for (name, value) in given {
            assert!(format!("\n{shown}").contains(&format!("\n{name}={value}\n")), "{shown}");
        }
        assert_eq!(shown.lines().count(), given.len() + 2, "{shown}");
        Ok(())
    });
}

#[test]
fn output_is_opened_with_the_users_rights() {
    check("output_is_opened_with_the_users_rights", || {
        let fixture = Fixture::set_up()?;
        let shared = fixture.path().join("shared");
        fs::create_dir(&shared).unwrap();
        set_mode(&shared, 0o1777);
        let (owned, link) = (shared.join("owned"), shared.join("link"));
        let secret = fixture.path().join("secret");
        fs::write(&owned, "root's").unwrap();
        fs::write(&secret, "root's").unwrap();
        symlink(&secret, &link).unwrap();
        // The way through another process's root takes a capability that whit has.
        let busy = Busy::of_stranger();
        let through = busy.way_to(&fixture.home().join("through"));
        let closed = fixture.path().join("closed");
        fs::create_dir(&closed).unwrap();
        set_mode(&closed, 0o700);
        for output in [closed.join("x"), fixture.path().join("x"), owned.clone(), link, through] {
            let name = output.display().to_string();
            let said = fixture.record(&["-a", "-o", &name], "exit 0");
            assert_eq!(said.status.code(), Some(1), "{name}: {}", stderr(&said));
            let text = stderr(&said);
            let reasons = ["Permission denied", "Operation not permitted"];
            assert!(text.contains(&name), "{name} in {text}");
            assert!(reasons.iter().any(|reason| text.contains(reason)), "{text}");
        }
        for file in [&owned, &secret] {
            assert_eq!(fs::read(file).unwrap(), b"root's");
        }
        assert_eq!(fs::read_dir(&shared).unwrap().count(), 2);
        assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
        Ok(())
    });
}

/// Variables name directories of caches and configuration. While capabilities are held, they lead nowhere.
#[test]
fn directories_are_made_with_the_users_rights_and_where_options_say() {
    check("directories_are_made_with_the_users_rights_and_where_options_say", || {
        let fixture = Fixture::set_up()?;
        let place = fixture.path().join("place");
        fs::create_dir(&place).unwrap();
        // All may look there; then all may make files, too.
        for (mode, is_allowed) in [(0o755, false), (0o1777, true)] {
            set_mode(&place, mode);
            let variables =
                ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PERF_BUILDID_DIR", "TMPDIR"];
            let mut command = fixture.by_member(&["record", "-e", "cpu-clock", "-a"]);
            command.envs(variables.map(|name| (name, &place)));
            let said = command.args(["-o", "own", "--", "sh", "-c", "exit 0"]).output().unwrap();
            assert!(said.status.success(), "{}", stderr(&said));
            assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "{mode:o}");
            for option in ["--dir", "--switch-output=1M", "--threads"] {
                let name = place.join(option).display().to_string();
                let said = fixture.record(&["-a", option, "-o", &name], "exit 0");
                assert_eq!(said.status.success(), is_allowed, "{name}: {}", stderr(&said));
            }
            for made in fs::read_dir(&place).unwrap() {
                let made = made.unwrap();
                let owner = made.metadata().unwrap().uid();
                assert!(is_allowed && owner == MEMBER.uid, "{mode:o}: {made:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn the_process_that_opens_files_of_others_has_no_capabilities() {
    check("the_process_that_opens_files_of_others_has_no_capabilities", || {
        let fixture = Fixture::set_up()?;
        let script = "for p in $(cat /proc/$PPID/task/$PPID/children); do \
                      grep -hE '^(Name|Cap|Uid)' /proc/$p/status; done";
        let said = fixture.record(&["-a", "-o", "own"], script);
        assert!(said.status.success(), "{}", stderr(&said));
        let shown = stdout(&said);
        let (_, helper) = shown.split_once("whit-helper").unwrap_or_else(|| panic!("{shown}"));
        let helper: Vec<_> = helper.lines().take_while(|line| !line.starts_with("Name")).collect();
        assert!(helper.iter().any(|line| line.split_whitespace().nth(1) == Some("54321")));
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let line = helper.iter().find(|line| line.starts_with(set)).expect("a set");
            assert!(line.ends_with("\t0000000000000000"), "{helper:?}");
        }
        Ok(())
    });
}

#[test]
fn input_is_opened_with_the_users_rights() {
    check("input_is_opened_with_the_users_rights", || {
        let fixture = Fixture::set_up()?;
        assert!(fixture.record(&["-o", "own"], "exit 0").status.success());
        // The member may read the file, but not go to it through another process.
        let busy = Busy::of_stranger();
        let through = busy.way_to(&fixture.home().join("own"));
        let output = fixture.by_member(&["report", "-i"]).arg(through).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("Permission denied"), "{}", stderr(&output));
        assert!(fixture.by_member(&["report", "-i", "own"]).output().unwrap().status.success());
        // The kernel's list under the name of a file that the user gives.
        let mut report = fixture.by_member(&["script", "-i", "own", "--kallsyms"]);
        let names = stdout(&report.args(["/proc/kallsyms", "-F", "ip,sym,dso"]).output().unwrap());
        let hidden = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
            .is_ok_and(|level| level.trim().parse::<i32>().is_ok_and(|level| level > 1));
        let named = names
            .lines()
            .any(|line| line.contains("[kernel.kallsyms]") && !line.contains("[unknown]"));
        assert!(!hidden || !named, "{names}");
        Ok(())
    });
}

/// Rust's runtime takes the size of a new thread's stack from a variable, and synthesizing starts
/// threads: with this size there are none.
#[test]
fn the_environment_of_whit_itself_is_cleared() {
    check("the_environment_of_whit_itself_is_cleared", || {
        let fixture = Fixture::set_up()?;
        let hostile = ("RUST_MIN_STACK", "9000000000000000000");
        let record = ["record", "-a", "-e", "cpu-clock", "-o"];
        let mut by_root = Command::new(fixture.whit());
        by_root.args(record).args(["/dev/null", "--", "true"]).env(hostile.0, hostile.1);
        assert!(!by_root.output().unwrap().status.success(), "it does what it is to do");
        let mut by_member = fixture.by_member(&record);
        by_member.args(["stack", "--", "printenv", hostile.0]).env(hostile.0, hostile.1);
        let output = by_member.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stdout(&output).trim(), hostile.1, "it is for the command");
        Ok(())
    });
}

/// The command's parent is whit: it looks at it.
#[test]
fn nothing_is_in_force_while_the_command_runs_and_no_process_looks_in() {
    check("nothing_is_in_force_while_the_command_runs_and_no_process_looks_in", || {
        let fixture = Fixture::set_up()?;
        let look = "cat /proc/$PPID/status; cat /proc/$PPID/maps; stat -c owner=%u /proc/$PPID/fd";
        let output = fixture.record(&["-a"], look);
        assert!(output.status.success(), "{}", stderr(&output));
        let status = stdout(&output);
        let set = |line| CapabilitySet::from_status(&status, line).unwrap();
        assert!(status.starts_with("Name:\twhit\n"), "{status}");
        assert!(set("CapEff").is_empty() && set("CapInh").is_empty() && set("CapAmb").is_empty());
        assert_eq!(set("CapPrm"), CapabilitySet::for_profiling(true));
        assert!(stderr(&output).contains("maps: Permission denied"), "{}", stderr(&output));
        assert!(status.ends_with("owner=0\n"), "{status}");
        Ok(())
    });
}

#[test]
fn a_subcommand_that_opens_no_event_is_an_ordinary_process() {
    check("a_subcommand_that_opens_no_event_is_an_ordinary_process", || {
        let fixture = Fixture::set_up()?;
        let mut report = fixture.by_member(&["report", "-i", "-"]);
        let report = report.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut report = report.spawn().unwrap();
        // More than a pipe holds: it reads by now, and waits for more.
        report.stdin.as_mut().unwrap().write_all(&vec![b'x'; 1 << 20]).unwrap();
        let directory = PathBuf::from(format!("/proc/{}", report.id()));
        let status = fs::read_to_string(directory.join("status")).unwrap();
        let owner = fs::metadata(directory.join("fd")).unwrap().uid();
        report.wait_with_output().unwrap();
        for set in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
            let set = CapabilitySet::from_status(&status, set);
            assert_eq!(set, Some(CapabilitySet::EMPTY), "{status}");
        }
        assert_eq!(owner, MEMBER.uid, "its user may look into it");
        Ok(())
    });
}

/// Set-uid programs gain the same as without whit.
#[test]
fn set_uid_commands_work() {
    check("set_uid_commands_work", || {
        let fixture = Fixture::set_up()?;
        let id = fixture.path().join("id");
        need("/usr/bin/id", "-u")?;
        copy_program("/usr/bin/id", &id);
        set_mode(&id, 0o4755);
        let output = fixture.record(&["-q"], &format!("{} -u", id.display()));
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stdout(&output).trim(), "0");
        Ok(())
    });
}

/// The kernel takes events off a task that gains rights; the command runs on, and that is said.
#[test]
fn a_command_that_gains_rights_runs_to_its_end() {
    check("a_command_that_gains_rights_runs_to_its_end", || {
        need("/usr/bin/sleep", "0")?;
        let fixture = Fixture::set_up()?;
        let sleep = fixture.path().join("sleep");
        copy_program("/usr/bin/sleep", &sleep);
        let record = |mode| {
            set_mode(&sleep, mode);
            let mut record = fixture.by_member(&["record", "-e", "cpu-clock", "--"]);
            let output = record.arg(&sleep).arg("0.5").output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            stderr(&output)
        };
        assert!(!record(0o755).contains("took the events off"));
        let text = record(0o4755);
        assert!(text.contains("took the events off the command"), "{text}");
        Ok(())
    });
}

#[test]
fn a_set_id_whit_refuses_to_run() {
    check("a_set_id_whit_refuses_to_run", || {
        let fixture = Fixture::new()?;
        for mode in [0o4755, 0o2755] {
            set_mode(&fixture.whit(), mode);
            let output = fixture.record(&[], "exit 0");
            assert_eq!(output.status.code(), Some(1));
            let text = stderr(&output);
            assert!(text.contains("chmod u-s,g-s") && text.contains("whit setup"), "{text}");
        }
        Ok(())
    });
}

/// The user's own capabilities are not borrowed: the command inherits them as without whit.
#[test]
fn ambient_capabilities_of_the_user_are_left_alone() {
    check("ambient_capabilities_of_the_user_are_left_alone", || {
        need("setpriv", "--version")?;
        let fixture = Fixture::new()?;
        let id = MEMBER.uid.to_string();
        let mut setpriv = Command::new("setpriv");
        let output = setpriv
            .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
            .args(["--inh-caps", "+perfmon", "--ambient-caps", "+perfmon"])
            .arg(fixture.whit())
            .args(["record", "-a", "-e", "cpu-clock", "-o"])
            .arg(fixture.home().join("ambient"))
            .args(["--", "cat", "/proc/self/status"])
            .output()
            .unwrap();
        if stderr(&output).contains("unknown capability") {
            return Err(Skip("setpriv does not know cap_perfmon".into()));
        }
        assert!(output.status.success(), "{}", stderr(&output));
        let perfmon = CapabilitySet::of(&[whit_sys::capability::Capability::PerfMon]);
        for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
            assert_eq!(CapabilitySet::from_status(&stdout(&output), set), Some(perfmon), "{set}");
        }
        Ok(())
    });
}
