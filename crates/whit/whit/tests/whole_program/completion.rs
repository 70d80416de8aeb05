//! Completion, asked for as shells ask.

use std::path::Path;
use std::process::Command;
use whit_testing::{Skip, check, run};

const WHIT: &str = env!("CARGO_BIN_EXE_whit");

/// Lets bash complete the last one of `words`, with the script of `whit completions bash`.
fn completed(directory: &Path, words: &[&str]) -> Vec<String> {
    let script = r#"
        source <(whit completions bash)
        complete -p whit | grep -q _clap_complete_whit || exit 9
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        _clap_complete_whit whit "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let path = Path::new(WHIT).parent().unwrap().to_str().unwrap().to_owned();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let mut bash = run::command("bash");
    bash.args(["--norc", "-c", script, "bash", "whit"]).args(words);
    let output = bash.current_dir(directory).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_events() {
    let here = tempfile::tempdir().unwrap();
    assert_eq!(completed(here.path(), &["swi"]), ["switches"]);
    assert_eq!(completed(here.path(), &["record", "--call-g"]), ["--call-graph"]);
    assert_eq!(completed(here.path(), &["record", "-e", "page-fau"]), ["page-faults"]);
    let second = completed(here.path(), &["stat", "-e", "page-faults,context-s"]);
    assert_eq!(second, ["page-faults,context-switches"]);
    assert_eq!(completed(here.path(), &["stat", "-e", "no-such-event-"]), [""; 1]);
}

#[test]
fn bash_completes_options_and_keys_of_the_service() {
    if !Path::new(WHIT).with_file_name("whit-watch").exists() {
        let mut build = run::command(env!("CARGO"));
        build.args(["build", "--quiet", "-p", "whit-watch"]).current_dir(run::repository());
        run::succeed(&mut build);
    }
    let here = tempfile::tempdir().unwrap();
    assert_eq!(completed(here.path(), &["watch", "--keep-a"]), ["--keep-age"]);
    assert_eq!(completed(here.path(), &["watch", "--set", "window"]), ["window=", "window-bytes="]);
    assert_eq!(completed(here.path(), &["watch", "status", "--js"]), ["--json"]);
}

/// A recording of the repository.
#[test]
fn bash_completes_names_of_the_recording() {
    let golden = run::repository().join("tests/recordings/golden");
    let data = std::fs::read_dir(&golden).unwrap().map(|entry| entry.unwrap().path());
    let data = data.into_iter().map(|path| path.join("recording.data")).find(|path| path.exists());
    let data = data.expect("a recording in tests/recordings/golden");
    let here = tempfile::tempdir().unwrap();
    let input = data.to_str().unwrap();
    let comms = completed(here.path(), &["report", "-i", input, "-c", ""]);
    let report =
        run::whit(WHIT).args(["report", "-i", input, "-q", "-g", "none", "-s", "comm"]).output();
    let report = String::from_utf8(report.unwrap().stdout).unwrap();
    assert!(!comms.is_empty() && comms.iter().all(|comm| !comm.is_empty()), "{comms:?}");
    let shown = comms.iter().filter(|comm| report.contains(comm.as_str())).count();
    assert!(shown > 0, "{comms:?}\n{report}");
    assert_eq!(completed(here.path(), &["report", "-c", ""]), [""; 1], "without a recording");
}

#[test]
fn scripts_of_other_shells_are_read_by_them() {
    check("scripts_of_other_shells_are_read_by_them", || {
        let mut missing = Vec::new();
        for shell in ["zsh", "fish"] {
            let script = run::succeed(run::whit(WHIT).args(["completions", shell]));
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("COMPLETE"), "{script}");
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("script");
            std::fs::write(&file, &script).unwrap();
            match Command::new(shell).arg("-n").arg(&file).output() {
                Ok(output) => assert!(output.status.success(), "{shell}: {output:?}"),
                Err(_) => missing.push(shell),
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Skip(format!("{} not installed", missing.join(", "))))
        }
    });
}
