//! A running `whit serve`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Error;

/// A server, which ends with this.
pub(super) struct Served {
    child: Child,
    address: String,
    path: String,
}

impl Served {
    /// Waits until it has read the recording.
    pub(super) fn start(whit: &Path, recording: &Path) -> Result<Served, Error> {
        let mut command = Command::new(whit);
        command.args(["serve", "--quiet", "--input"]).arg(recording);
        // No server of symbols is asked.
        command.env_remove("DEBUGINFOD_URLS").stdin(Stdio::null()).stdout(Stdio::piped());
        let failed = |source| Error::Run { program: whit.to_owned(), source };
        let mut child = command.spawn().map_err(failed)?;
        let mut line = String::new();
        let read = child.stdout.as_mut().map(|out| BufReader::new(out).read_line(&mut line));
        let mut served = Served { child, address: String::new(), path: String::new() };
        read.transpose().map_err(failed)?;
        let url = line.trim_end().strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        let Some((address, path)) = url else {
            return Err(Error::Server { reason: "it ended before it had an address".to_owned() });
        };
        (served.address, served.path) = (address.to_owned(), format!("/{path}"));
        Ok(served)
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The path of the page, with the slash at its end.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A number of `/proc/PID/status`.
    pub(super) fn memory_bytes(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = whit_sys::system::terminate(self.child.id() as i32);
        let _ = self.child.wait();
    }
}
