//! The programs that people run: OpenTelemetry's collector and Parca, where `scripts/setup.sh test` has built them.

mod collector;
mod parca;

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use whit_testing::Skip;

use crate::support::repository;

/// A command of an installed receiver.
fn program(name: &str, missing: &str) -> Result<Command, Skip> {
    let path = repository().join("target/setup/receivers/bin").join(name);
    if !path.exists() {
        return Err(Skip(format!("{missing} is not installed here")));
    }
    Ok(Command::new(path))
}

/// A receiver that runs; it is killed with this value.
struct Running(Child);

impl Running {
    /// Its messages go to a file beside its data.
    fn start(command: &mut Command, folder: &Path) -> Running {
        let log = File::options().append(true).create(true).open(folder.join("log"));
        let log = log.expect("make a log");
        let copy = log.try_clone().expect("copy a descriptor");
        command.current_dir(folder).stdin(Stdio::null()).stdout(log).stderr(copy);
        Running(command.spawn().expect("start a receiver"))
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    listener.local_addr().expect("an address").port()
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}
