//! A process whose names hold control characters is recorded: no face of whit's prints one raw.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::support::tools::{command, record, succeed, text, tracefs, whit};
use crate::support::{Skip, check};
use whit_testing::assert_plain;

/// A terminal command, a line end, a mark of direction and a C1 control. A thread's name holds 15 bytes.
const THREAD: &str = "t\x1b[2J\nx\u{202e}\u{9b}";
const PROGRAM: &str = "p\x1b]0;owned\x07\n\u{202e}\u{9b}am";
const FUNCTION: &str = "f\x1b[31m\n\u{202e}\u{9b}_spin";

/// The escaped form.
const SHOWN_THREAD: &str = "t\\x1b[2J\\x0ax\\u{202e}\\u{9b}";
const SHOWN_PROGRAM: &str = "p\\x1b]0;owned\\x07\\x0a\\u{202e}\\u{9b}am";
const SHOWN_FUNCTION: &str = "f\\x1b[31m\\x0a\\u{202e}\\u{9b}_spin";

/// Takes a name for itself and runs, with pauses, for so many seconds of the clock, and the rest of the first one.
const SOURCE: &str = r#"
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) void spin(void) {
    for (volatile int i = 0; i < 200000; i++) {}
}

int main(int argc, char **argv) {
    time_t end = time(NULL) + 1 + atoi(argv[argc - 1]);
    prctl(PR_SET_NAME, argv[1]);
    while (time(NULL) < end) {
        spin();
        usleep(100);
    }
    return 0;
}
"#;

/// The program under its hostile name, in a directory of its own.
fn program(directory: &Path) -> Result<PathBuf, Skip> {
    program_with(directory, FUNCTION)
}

/// The same with another name of its function.
fn program_with(directory: &Path, function: &str) -> Result<PathBuf, Skip> {
    let (source, plain) = (directory.join("spin.c"), directory.join("plain"));
    std::fs::write(&source, SOURCE).expect("write a program");
    for tool in ["cc", "objcopy"] {
        if command(tool).arg("--version").output().is_err() {
            return Err(Skip(format!("there is no {tool} here to make a program with")));
        }
    }
    let mut cc = command("cc");
    succeed(cc.args(["-O1", "-g", "-fno-omit-frame-pointer", "-o"]).arg(&plain).arg(&source));
    let hostile = directory.join(PROGRAM);
    let mut objcopy = command("objcopy");
    // Neither the assembler nor the linker minds what symbols hold.
    objcopy.arg(format!("--redefine-sym=spin={function}"));
    succeed(objcopy.arg(plain).arg(&hostile));
    Ok(hostile)
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Standard output and standard error, without any raw control character.
#[track_caller]
fn plain(whit: &mut Command) -> (String, String) {
    let output = whit.output().expect("run whit");
    let what = format!("{whit:?}");
    assert_plain(&what, &output.stdout);
    assert_plain(&format!("{what}, messages"), &output.stderr);
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

fn recorded(directory: &Path, events: &[&str]) -> Result<PathBuf, Skip> {
    recorded_of(directory, &program(directory)?, events)
}

fn recorded_of(directory: &Path, program: &Path, events: &[&str]) -> Result<PathBuf, Skip> {
    let data = directory.join(format!("{PROGRAM}.data"));
    let mut recorder = whit();
    recorder
        .args(["record", "--engine=ring", "-g", "-F", "499", "--switch-events", "-v"])
        .args(events);
    record(recorder.arg("-o").arg(&data).arg("--").arg(program).args([THREAD, "1"]))?;
    Ok(data)
}

#[test]
fn a_hostile_process_is_shown_in_letters() {
    check("a_hostile_process_is_shown_in_letters", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let data = recorded(directory.path(), &["-e", "cpu-clock"])?;
        let shown = |arguments: &[&str]| plain(whit().args(arguments).arg("-i").arg(&data)).0;
        let report = ["report", "--stdio", "--header", "--sort", "comm,dso,symbol,tid,srcline"];
        let report = shown(&report);
        for name in [SHOWN_THREAD, SHOWN_PROGRAM, SHOWN_FUNCTION] {
            assert!(report.contains(name), "{name} in {report}");
        }
        // Columns are as wide as the printed form.
        let table: Vec<_> = report.lines().skip_while(|line| !line.contains("Command")).collect();
        let dso = table[0].find("Shared Object").expect("a heading");
        let rows: Vec<_> = table.iter().filter(|line| line.contains(SHOWN_THREAD)).collect();
        let aligned = |row: &&&str| row.chars().nth(dso - 1) == Some(' ');
        assert!(rows.len() > 2 && rows.iter().all(aligned), "{report}");
        let script = shown(&["script", "-F", "+symoff,+srcline"]);
        for name in [SHOWN_THREAD, SHOWN_PROGRAM, SHOWN_FUNCTION] {
            assert!(script.contains(name), "{name} in {script}");
        }
        let views = ["switches", "--tree", "--flat", "--per-thread", "--worst", "--wakers"];
        let switches = shown(&views);
        assert!(switches.contains(SHOWN_THREAD), "{switches}");
        shown(&["report", "--stats", "--ledger"]);
        let folded = succeed(whit().args(["script", "--folded", "-i"]).arg(&data));
        let folded = String::from_utf8(folded).expect("text");
        assert!(folded.contains(&FUNCTION.replace('\n', "\\x0a")), "{folded}");
        let is_folded =
            |line: &str| line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok());
        assert!(folded.lines().all(is_folded), "{folded}");
        let json = shown(&["report", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let name =
            |row: &serde_json::Value| row["symbol"]["name"] == FUNCTION && row["comm"] == THREAD;
        let rows = json["events"][0]["rows"].as_array().expect("rows");
        assert!(rows.iter().any(name), "{rows:?}");
        let annotated = shown(&["annotate", "-P", "-l", FUNCTION]);
        assert!(annotated.contains(&format!("<{SHOWN_FUNCTION}>:")), "{annotated}");
        shown(&["annotate", "--json"]);
        shown(&["switches", "--json"]);
        let sql = "SELECT s.comm, f.name, m.name FROM sample s JOIN callsite c ON c.id = s.callsite_id
            JOIN frame f ON f.id = c.frame_id JOIN mapping m ON m.id = f.mapping WHERE m.name LIKE '%\u{9b}am'
            GROUP BY 1, 2, 3";
        for form in [&[][..], &["--csv"]] {
            let rows = shown(&[&["query", "-c", sql], form].concat());
            for name in [SHOWN_THREAD, SHOWN_PROGRAM, SHOWN_FUNCTION] {
                assert!(rows.contains(name), "{name} in {rows}");
            }
        }
        let rows = succeed(whit().args(["query", "--json", "-c", sql, "-i"]).arg(&data));
        let rows: serde_json::Value = serde_json::from_slice(&rows).expect("JSON");
        let rows = rows.as_array().expect("rows");
        assert!(rows.iter().any(|row| row["comm"] == THREAD), "{rows:?}");
        let export = directory.path().join("exported");
        let (said, _) =
            plain(whit().args(["export", "--perf", "-i"]).arg(&data).arg("-o").arg(export));
        assert!(said.contains("records"), "{said}");
        Ok(())
    });
}

/// Columns of a line on a terminal.
fn columns(line: &str) -> usize {
    line.chars().fold(0, |column, c| if c == '\t' { (column / 8 + 1) * 8 } else { column + 1 })
}

/// Templates make names of this length.
#[test]
fn names_of_ten_kilobytes_fit_any_width() {
    check("names_of_ten_kilobytes_fit_any_width", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let arguments = "\u{202e}x\x1b[2J, ".repeat(1000);
        let function = format!("long::Tree<{arguments}int>::{FUNCTION}");
        assert!(function.len() > 10_000);
        let program = program_with(directory.path(), &function)?;
        let data = recorded_of(directory.path(), &program, &["-e", "cpu-clock"])?;
        let shown = |arguments: &[&str]| plain(whit().args(arguments).arg("-i").arg(&data)).0;
        for face in [
            &["report", "--stdio", "--sort", "comm,dso,symbol"][..],
            &["report", "--stdio", "-g", "caller"],
            &["report", "--stdio", "--wall"],
            &["report", "--stdio", "--hierarchy"],
            &["script"],
            &["script", "-F", "comm,ip,sym,dso,srcline"],
            &["annotate", "-l", "-P"],
            &["switches", "--tree", "--flat", "--per-thread", "--worst", "--wakers"],
        ] {
            for width in ["20", "60", "132"] {
                let text = shown(&[face, &["--width", width]].concat());
                let most = width.parse().expect("a number");
                let wide: Vec<_> = text.lines().filter(|line| columns(line) > most).collect();
                assert!(wide.is_empty(), "{face:?} {width}: {wide:?}");
                assert!(text.lines().count() > 3, "{face:?} {width}: {text}");
            }
        }
        let report = shown(&["report", "--stdio", "--width", "60"]);
        assert!(report.contains("_spin"), "the method stays: {report}");
        for budget in ["400", "4096"] {
            let brief = shown(&["report", &format!("--brief={budget}")]);
            assert!(brief.len() <= budget.parse().expect("a number"), "{brief}");
        }
        let whole = shown(&["script"]);
        assert!(whole.lines().any(|line| columns(line) > 10_000), "nothing is cut in a pipe");
        let json = shown(&["report", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let rows = json["events"][0]["rows"].as_array().expect("rows");
        assert!(rows.iter().any(|row| row["symbol"]["name"] == function.as_str()));
        Ok(())
    });
}

#[test]
fn strings_in_tracepoints_are_shown_in_letters() {
    check("strings_in_tracepoints_are_shown_in_letters", || {
        tracefs()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let data = recorded(directory.path(), &["-e", "sched:sched_switch/period=1/"])?;
        let (script, _) = plain(whit().args(["script", "-i"]).arg(&data));
        let field = format!("prev_comm={SHOWN_THREAD} prev_pid=");
        assert!(script.contains(&field), "{script}");
        Ok(())
    });
}

/// Messages of whit about a hostile process while it runs.
#[test]
fn a_hostile_process_is_watched() {
    check("a_hostile_process_is_watched", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let program = program(directory.path())?;
        let child = Command::new(program).args([THREAD, "600"]).spawn().expect("run a program");
        let running = Running(child);
        let pid = running.0.id().to_string();
        for form in [&[][..], &["-x", ";"], &["-j"]] {
            let mut stat = whit();
            stat.args(["stat", "-e", "cpu-clock,context-switches", "--per-thread", "-p", &pid]);
            let (_, table) = plain(stat.args(form).args(["--", "sleep", "0.2"]));
            let shown = if form == ["-j"] { "t\\u001b[2J\\nx\\u202e\\u009b" } else { SHOWN_THREAD };
            assert!(table.contains(shown), "{table}");
        }
        let data = directory.path().join("watched.data");
        let mut recorder = whit();
        recorder
            .args(["record", "-vv", "-g", "--call-graph", "dwarf", "-p", &pid, "-o"])
            .arg(&data);
        plain(recorder.args(["--", "sleep", "0.2"]));
        plain(whit().arg("doctor"));
        plain(whit().args(["list", "sw"]));
        let missing = directory.path().join("\x1b[2J\nwhit: all is well");
        let output = whit().args(["report", "-i"]).arg(missing).output().expect("run whit");
        assert_plain("an error", &output.stderr);
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(error.contains("\\x1b[2J") && !error.contains("\nwhit: all"), "{error}");
        Ok(())
    });
}

/// Names without such characters are printed as they are.
#[test]
fn other_names_stay_as_they_are() {
    check("other_names_stay_as_they_are", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let program = program(directory.path())?;
        let renamed = directory.path().join("größe-日本\\x1b");
        std::fs::rename(program, &renamed).expect("rename a program");
        let data = directory.path().join("plain.data");
        let mut recorder = whit();
        recorder
            .args(["record", "--engine=ring", "-e", "cpu-clock", "-o"])
            .arg(&data)
            .arg("--")
            .arg(&renamed);
        record(recorder.args(["ü\\n", "1"]))?;
        let report = text(whit().args(["report", "--stdio", "-i"]).arg(&data));
        assert!(report.contains("ü\\n ") && report.contains("größe-日本\\x1b"), "{report}");
        Ok(())
    });
}
