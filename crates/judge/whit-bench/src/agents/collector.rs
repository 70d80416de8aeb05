//! OpenTelemetry's collector: it takes what an agent sends over gRPC, and writes it into a file.
//!
//! It is not a part of the agent: its CPU time and its memory are counted nowhere.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::otlp::end_ns;
use crate::error::{self, Error};
use crate::running::{Running, last_line};

/// Profiles are not yet taken by default.
const GATE: &str = "--feature-gates=+service.profilesSupport";
/// It listens after less than a second on a quiet machine.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks at it.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A collector that listens; it is killed with this value.
pub(super) struct Collector {
    _running: Running,
    file: PathBuf,
    address: SocketAddr,
}

impl Collector {
    /// Starts it in `folder`. `Err(text)` in the result: it does not listen, with the reason.
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Result<Collector, String>, Error> {
        let address = free_address().map_err(error::file("listen at", "127.0.0.1"))?;
        let file = folder.join("sent.json");
        let path = folder.join("collector.yaml");
        fs::write(&path, config(address, &file)).map_err(error::file("write", &path))?;
        let mut command = Command::new(program);
        command.arg("--config").arg(path).arg(GATE).current_dir(folder);
        let log = folder.join("collector.log");
        let mut running = Running::start(command, &log)?;
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            if running.has_ended()? || begin.elapsed() > START_LIMIT {
                return Ok(Err(format!("the collector does not listen: {}", last_line(&log))));
            }
            sleep(LOOK_INTERVAL);
        }
        Ok(Ok(Collector { _running: running, file, address }))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// All that it has taken until now, one request a line.
    pub(super) fn taken(&self) -> String {
        fs::read_to_string(&self.file).unwrap_or_default()
    }

    /// Waits until a report reaches `until_ns` (since 1970). Says whether there was one within the limit.
    pub(super) fn wait_for(&self, until_ns: u64, limit: Duration) -> bool {
        let (begin, mut seen) = (Instant::now(), 0);
        while begin.elapsed() < limit {
            let text = self.taken();
            if text.len() > seen && end_ns(&text) >= until_ns {
                return true;
            }
            seen = text.len();
            sleep(LOOK_INTERVAL);
        }
        false
    }
}

/// Nobody listens there at the moment.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A path is in quotation marks, since it may have any letter.
fn config(address: SocketAddr, file: &Path) -> String {
    let quoted = format!("'{}'", file.display().to_string().replace('\'', "''"));
    format!(
        "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '{address}'}}}}}}}}\n\
         exporters: {{file: {{path: {quoted}, append: true, flush_interval: 100ms}}}}\n\
         service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
         pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use whit_testing::{Skip, check};

    use super::*;

    #[test]
    fn the_collector_listens_and_ends_with_its_value() {
        check("the_collector_listens_and_ends_with_its_value", || {
            let program = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../../target/setup/receivers/bin/collector");
            if !program.exists() {
                return Err(Skip("OpenTelemetry's collector is not installed here".to_owned()));
            }
            let folder = tempfile::Builder::new().prefix("it's a '").tempdir().unwrap();
            let collector = Collector::start(&program, folder.path()).unwrap().unwrap();
            assert!(TcpStream::connect(collector.address()).is_ok());
            assert!(collector.file.is_file(), "the file is where the configuration says");
            let address = collector.address();
            drop(collector);
            assert!(TcpStream::connect(address).is_err());
            Ok(())
        });
    }

    #[test]
    fn a_program_that_does_not_listen_is_named_with_its_last_message() {
        let folder = tempfile::tempdir().unwrap();
        let why = Collector::start(Path::new("false"), folder.path()).unwrap().err().unwrap();
        assert_eq!(why, "the collector does not listen: it says nothing");
        let why = Collector::start(Path::new("cat"), folder.path()).unwrap().err().unwrap();
        assert!(why.contains("cat --help"), "{why}");
        assert!(Collector::start(Path::new("/nowhere/collector"), folder.path()).is_err());
    }

    #[test]
    fn a_report_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("1000");
        let running = Running::start(command, &folder.path().join("log")).unwrap();
        let (file, address) = (folder.path().join("sent.json"), free_address().unwrap());
        let collector = Collector { _running: running, file: file.clone(), address };
        let is_there = |until_ns| collector.wait_for(until_ns, Duration::from_millis(300));
        assert!(!is_there(1), "nothing is sent");
        let profile = r#"{"timeUnixNano": "100", "durationNano": "7"}"#;
        let line = format!(
            "{{\"resourceProfiles\": [{{\"scopeProfiles\": [{{\"profiles\": [{profile}]}}]}}]}}"
        );
        fs::write(&file, &line).unwrap();
        assert!(!is_there(1), "its line is not whole");
        fs::write(&file, line + "\n").unwrap();
        assert!(is_there(1) && is_there(107) && !is_there(108));
    }
}
