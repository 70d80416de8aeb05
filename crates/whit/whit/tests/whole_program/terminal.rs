//! Pager and colours, on a terminal that `script` (util-linux) makes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use whit_testing::{Skip, check, run};

const WHIT: &str = env!("CARGO_BIN_EXE_whit");
/// Marks each line that goes through it.
const PAGER: &str = "sed s/^/paged:/";

fn golden() -> String {
    let path = run::repository().join("tests/recordings/golden/perf-pipe/recording.data");
    path.to_str().unwrap().to_owned()
}

/// A file beside the kept recordings.
fn symbols(name: &str) -> String {
    let path = run::repository().join("tests/recordings/golden").join(name);
    path.to_str().unwrap().to_owned()
}

/// The output of a command on a terminal.
fn on_terminal(arguments: &str, variables: &[(&str, &str)]) -> Result<String, Skip> {
    run_on_terminal(&format!("{WHIT} {arguments} -i {}", golden()), variables)
}

/// The output of a line of the shell on a terminal.
fn run_on_terminal(line: &str, variables: &[(&str, &str)]) -> Result<String, Skip> {
    let mut script = run::command("script");
    script.args(["-qec", line, "/dev/null"]).env_remove("PAGER").env_remove("WHIT_PAGER");
    script.env_remove("NO_COLOR").env("TERM", "xterm").envs(variables.iter().copied());
    let output = script.output().map_err(|_| Skip("there is no script(1)".to_owned()))?;
    assert!(output.status.success(), "{output:?}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_terminal_gets_a_pager_and_a_pipe_does_not() {
    check("a_terminal_gets_a_pager_and_a_pipe_does_not", || {
        for command in ["report --stdio", "script"] {
            let paged = on_terminal(command, &[("PAGER", PAGER)])?;
            assert!(paged.lines().count() > 3, "{paged}");
            assert!(paged.lines().all(|line| line.starts_with("paged:")), "{paged}");
            let own = on_terminal(command, &[("PAGER", "false"), ("WHIT_PAGER", PAGER)])?;
            assert_eq!(own, paged);
            for variables in [&[("PAGER", "")][..], &[("PAGER", "cat")]] {
                assert!(!on_terminal(command, variables)?.contains("paged:"));
            }
            let not = on_terminal(&format!("{command} --no-pager"), &[("PAGER", PAGER)])?;
            assert!(!not.contains("paged:") && not.lines().count() > 3, "{not}");
            let mut piped: Command = run::whit(WHIT);
            piped.args(command.split(' ')).args(["-i", &golden()]).env("PAGER", PAGER);
            let piped = String::from_utf8(run::succeed(&mut piped)).unwrap();
            assert!(!piped.contains("paged:") && piped.lines().count() > 3, "{piped}");
        }
        Ok(())
    });
}

/// A pager that ends at once is a reader that has seen enough.
#[test]
fn a_pager_that_ends_early_is_no_error() {
    check("a_pager_that_ends_early_is_no_error", || {
        on_terminal("script", &[("PAGER", "true")]).map(drop)
    });
}

/// Columns of a line without colours.
fn columns(line: &str) -> usize {
    line.chars().fold(0, |column, c| if c == '\t' { (column / 8 + 1) * 8 } else { column + 1 })
}

#[test]
fn lines_are_as_wide_as_the_terminal_unless_all_of_them_is_asked_for() {
    check("lines_are_as_wide_as_the_terminal_unless_all_of_them_is_asked_for", || {
        let data = golden();
        for command in [
            format!("script -F comm,tid,time,event,ip,sym,dso -i {data}"),
            format!("annotate --skip-missing --color=never -i {data} --symfs {}", symbols("root")),
            "list sw tracepoint --no-check".to_owned(),
        ] {
            let shown = |options: &str| {
                let line = format!("stty rows 24 cols 40; {WHIT} {command} {options} 2>/dev/null");
                run_on_terminal(&line, &[("PAGER", "")])
            };
            let widest = |text: &str| text.lines().map(columns).max().unwrap_or(0);
            let (cut, whole) = (shown("")?, shown("-w")?);
            assert!(cut.lines().count() > 2, "{command}: {cut}");
            assert!(widest(&cut) <= 40 && cut.contains('…'), "{command}: {cut}");
            assert!(widest(&whole) > 40 && !whole.contains('…'), "{command}: {whole}");
            assert_eq!(shown("--width 0")?, whole);
            assert!((41..=60).contains(&widest(&shown("--width 60")?)), "{command}");
        }
        Ok(())
    });
}

#[test]
fn colours_are_for_terminals_unless_they_are_asked_for() {
    check("colours_are_for_terminals_unless_they_are_asked_for", || {
        let has_colours = |text: &str| text.contains("\x1b[3");
        let none = [("PAGER", "")];
        assert!(has_colours(&on_terminal("report --stdio", &none)?));
        assert!(!has_colours(&on_terminal("report --stdio --color=never", &none)?));
        assert!(!has_colours(&on_terminal("report --stdio", &[("PAGER", ""), ("NO_COLOR", "1")])?));
        let both = [("PAGER", ""), ("NO_COLOR", "1")];
        assert!(has_colours(&on_terminal("report --stdio --color", &both)?));
        let piped = |when: &str| {
            let mut whit: Command = run::whit(WHIT);
            let text = run::succeed(whit.args(["report", when, "-i", &golden()]));
            has_colours(&String::from_utf8(text).unwrap())
        };
        assert_eq!((piped("--color=auto"), piped("--color=always")), (false, true));
        Ok(())
    });
}

/// A pipe without a reader keeps the recorder from beginning.
#[test]
fn a_recorder_that_cannot_begin_yet_says_that_it_prepares() {
    check("a_recorder_that_cannot_begin_yet_says_that_it_prepares", || {
        let options = ["record", "--engine=ring", "-e", "cpu-clock:u"];
        run::needs_of_line(options)?;
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        run::succeed(run::command("mkfifo").arg(&pipe));
        let line = format!("timeout 60 {WHIT} {} -o {} -- true", options.join(" "), pipe.display());
        let mut script = run::command("script");
        script.args(["-qec", &line, "/dev/null"]).stdout(Stdio::piped());
        let mut script = script.spawn().map_err(|_| Skip("there is no script(1)".to_owned()))?;
        let mut lines = BufReader::new(script.stdout.take().unwrap()).lines().map(Result::unwrap);
        let first = lines.next().unwrap();
        assert!(first.contains("preparing; Ctrl-C ends it"), "{first}");
        let recorded = std::fs::read(&pipe).unwrap();
        assert!(recorded.starts_with(b"PERFILE2"));
        let rest: Vec<String> = lines.collect();
        assert!(script.wait().unwrap().success(), "{rest:?}");
        assert!(!rest.iter().any(|line| line.contains("preparing")), "{rest:?}");
        Ok(())
    });
}
