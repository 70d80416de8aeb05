//! The shell, and Ctrl-C, on a terminal that `script` (util-linux) makes.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::golden;
use crate::support::tools::command;
use crate::support::{Skip, check};

/// Goes on until somebody ends it.
const ENDLESS: &str =
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n";

/// A program on a terminal.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    seen: String,
}

impl Terminal {
    fn start(arguments: &str, home: &std::path::Path) -> Result<Terminal, Skip> {
        let whit = env!("CARGO_BIN_EXE_whit");
        // A shell that stays has Ctrl-C too, and gives it as its own exit code (dash does).
        let line = format!("exec {whit} query -i {} {arguments}", golden("losses").display());
        // Nothing on the screen is a failure, and no wait for ever.
        let mut script = command("timeout");
        script
            .args(["60", "script", "-qec", &line, "/dev/null"])
            .env("TERM", "xterm")
            .env("XDG_STATE_HOME", home);
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().map_err(|_| Skip("there is no script(1)".to_owned()))?;
        let keys = child.stdin.take().expect("a pipe");
        let screen = child.stdout.take().expect("a pipe");
        Ok(Terminal { child, keys, screen, seen: String::new() })
    }

    fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("type");
        self.keys.flush().expect("type");
    }

    /// Reads the screen until it shows a text behind all that was seen before.
    fn wait_for(&mut self, text: &str) {
        let mut bytes = [0; 4096];
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let size = self.screen.read(&mut bytes).expect("read the screen");
            assert!(size > 0, "the terminal ended without {text:?}: {:?}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..size]));
        }
    }

    /// The exit code of the program.
    fn end(mut self) -> Option<i32> {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).expect("read the screen");
        self.child.wait().expect("wait").code()
    }
}

#[test]
fn the_shell_completes_names_and_continues_after_ctrl_c() {
    check("the_shell_completes_names_and_continues_after_ctrl_c", || {
        let home = tempfile::tempdir().expect("make a directory");
        let mut terminal = Terminal::start("--csv", home.path())?;
        terminal.wait_for("whit> ");
        // The name of the column is completed, and the result is no echo.
        terminal.type_keys("SELECT 10 * SUM(weig\t) FROM sample;\r");
        terminal.wait_for("\n30000");
        terminal.wait_for("whit> ");
        terminal.type_keys(&format!("SELECT 'be' || 'gin'; {ENDLESS};\r"));
        terminal.wait_for("\nbegin");
        terminal.type_keys("\x03");
        terminal.wait_for("interrupted");
        terminal.wait_for("whit> ");
        terminal.type_keys("SELECT 6 * 7;\r");
        terminal.wait_for("\n42");
        terminal.wait_for("whit> ");
        // The line before comes back.
        terminal.type_keys("\x1b[A\r");
        terminal.wait_for("\n42");
        terminal.wait_for("whit> ");
        terminal.type_keys(".schema sampl\r");
        terminal.wait_for("the nearest is sample");
        terminal.wait_for("whit> ");
        terminal.type_keys(".quit\r");
        assert_eq!(terminal.end(), Some(0));
        let history = std::fs::read_to_string(home.path().join("whit/query_history"));
        assert!(history.expect("a history").contains("SELECT 6 * 7;"));
        Ok(())
    });
}

#[test]
fn ctrl_c_ends_a_query_of_the_command_line() {
    check("ctrl_c_ends_a_query_of_the_command_line", || {
        let home = tempfile::tempdir().expect("make a directory");
        let mut terminal =
            Terminal::start(&format!("--csv -c \"SELECT 'be' || 'gin'; {ENDLESS}\""), home.path())?;
        terminal.wait_for("begin");
        terminal.type_keys("\x03");
        terminal.wait_for("the query was interrupted");
        assert_eq!(terminal.end(), Some(130));
        Ok(())
    });
}

/// The reader stops too, not only SQLite.
#[test]
fn ctrl_c_ends_the_reading_of_a_table() {
    check("ctrl_c_ends_the_reading_of_a_table", || {
        let home = tempfile::tempdir().expect("make a directory");
        // Each row of samples is joined with all others, which are read again each time.
        let many = "FROM sample a, sample b, sample c, sample d, sample e, sample f, sample g, sample h, sample i, sample j";
        let mut terminal = Terminal::start(
            &format!("--csv -c \"SELECT 'be' || 'gin'; SELECT COUNT(*) {many}\""),
            home.path(),
        )?;
        terminal.wait_for("begin");
        terminal.type_keys("\x03");
        terminal.wait_for("the query was interrupted");
        assert_eq!(terminal.end(), Some(130));
        Ok(())
    });
}
