//! A terminal that tmux makes, its keys and its screen.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use whit_testing::wait::is_soon;
use whit_testing::{Skip, probe, run};

/// A session of tmux with one command in it.
pub(crate) struct Screen {
    socket: String,
}

/// The whit under test.
pub(crate) fn whit() -> String {
    let built = env!("CARGO_BIN_EXE_whit");
    run::sibling(built, "whit-terminal");
    std::env::var("WHIT").unwrap_or_else(|_| built.to_owned())
}

impl Screen {
    /// Starts a line of the shell on a terminal of this size.
    pub(crate) fn start(line: &str, width: u16, height: u16) -> Result<Screen, Skip> {
        probe::need_program("tmux", &["-V"])?;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let screen = Screen { socket: format!("whit-{}-{number}", std::process::id()) };
        let (width, height) = (width.to_string(), height.to_string());
        // It stays when the line has ended, so that its last screen can be read.
        let line = format!("{line}; echo ended with $?; sleep 600");
        let mut command = screen.tmux();
        command.args(["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height]);
        for name in ["NO_COLOR", "PAGER", "WHIT_PAGER"] {
            command.env_remove(name);
        }
        run::succeed(command.args(["sh", "-c", &line]));
        Ok(screen)
    }

    fn tmux(&self) -> Command {
        let mut tmux = run::command("tmux");
        tmux.env("LC_ALL", "C.UTF-8").env_remove("TMUX").env_remove("TMUX_PANE");
        tmux.args(["-u", "-L", &self.socket]);
        tmux
    }

    /// Presses keys by tmux's names; letters are their own.
    pub(crate) fn press<K: AsRef<OsStr>>(&self, keys: impl IntoIterator<Item = K>) {
        let mut tmux = self.tmux();
        run::succeed(tmux.args(["send-keys", "--"]).args(keys));
    }

    /// Sends bytes as a terminal does: the mouse.
    pub(crate) fn send(&self, bytes: &str) {
        run::succeed(self.tmux().args(["send-keys", "-l", "--", bytes]));
    }

    pub(crate) fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        run::succeed(self.tmux().args(["resize-window", "-x", &width, "-y", &height]));
    }

    /// The screen without blanks at the ends of lines.
    pub(crate) fn text(&self) -> String {
        let text = run::succeed(self.tmux().args(["capture-pane", "-p"]));
        String::from_utf8(text).expect("the screen is UTF-8")
    }

    /// The screen with its colours.
    pub(crate) fn painted(&self) -> String {
        let text = run::succeed(self.tmux().args(["capture-pane", "-p", "-e"]));
        String::from_utf8(text).expect("the screen is UTF-8")
    }

    /// Waits until the screen has a text; gives the screen.
    pub(crate) fn shows(&self, wanted: &str) -> String {
        let mut text = String::new();
        let has_it = is_soon(|| {
            text = self.text();
            text.contains(wanted)
        });
        assert!(has_it, "never shows {wanted:?}:\n{text}");
        text
    }

    /// Presses keys, and waits until the screen has a text.
    pub(crate) fn after(&self, keys: &str, wanted: &str) -> String {
        self.press(keys.split(' '));
        self.shows(wanted)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The server of this session alone.
        let _ = self.tmux().arg("kill-server").output();
    }
}
