//! A PostgreSQL server for tests.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use whit_testing::wait::{Load, wait_until};

use crate::support::tools::command;
use crate::support::{Skip, probe};

/// A PostgreSQL server of its own, under pgbench or not.
pub(crate) struct Postgres {
    programs: PathBuf,
    place: tempfile::TempDir,
    server: Option<Load>,
    clients: Option<Load>,
}

impl Postgres {
    pub(crate) fn programs() -> Result<PathBuf, Skip> {
        let folders = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut all: Vec<_> = folders.map(|version| version.path().join("bin")).collect();
        all.retain(|bin| bin.join("pgbench").exists());
        all.sort();
        all.pop().ok_or_else(|| Skip("there is no PostgreSQL with pgbench here".to_owned()))
    }

    /// A program of PostgreSQL, which refuses to work for root.
    pub(crate) fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        let mut program = match probe::root() {
            Ok(()) => {
                let mut program = command("runuser");
                program.args(["-u", "postgres", "--"]).arg(path);
                program
            }
            Err(_) => command(path),
        };
        program.current_dir(self.place.path()).stderr(Stdio::null());
        program
    }

    /// A server with the tables of pgbench, without clients.
    pub(crate) fn idle() -> Result<Postgres, Skip> {
        let place = tempfile::tempdir().expect("a folder");
        let mut postgres =
            Postgres { programs: Postgres::programs()?, place, server: None, clients: None };
        let folder = postgres.place.path().to_owned();
        if probe::root().is_ok() {
            let owned = Command::new("chown").arg("postgres").arg(&folder).status();
            assert!(owned.expect("run chown").success());
        }
        let data = folder.join("data");
        let run = |mut command: Command| {
            command.stdout(Stdio::null()).status().expect("run a program of PostgreSQL").success()
        };
        let mut initdb = postgres.program("initdb");
        initdb.args(["--auth=trust", "--no-sync", "-D"]).arg(&data);
        assert!(run(initdb), "initdb");
        let mut server = postgres.program("postgres");
        server.arg("-D").arg(&data).arg("-k").arg(&folder);
        postgres.server = Some(Load::start(server.args(["-c", "listen_addresses=", "-F"])));
        let tables = || run(postgres.client("pgbench", &["-i", "-q", "postgres"]));
        wait_until("PostgreSQL answers", tables);
        Ok(postgres)
    }

    /// A server with four clients of pgbench.
    pub(crate) fn start() -> Result<Postgres, Skip> {
        let mut postgres = Postgres::idle()?;
        let mut clients = postgres.client("pgbench", &["-c", "4", "-T", "1000", "postgres"]);
        postgres.clients = Some(Load::start(&mut clients));
        wait_until("clients are connected", || postgres.backends().len() == 4);
        Ok(postgres)
    }

    /// A client of the server.
    pub(crate) fn client(&self, name: &str, arguments: &[&str]) -> Command {
        let mut client = self.program(name);
        client.arg("-h").arg(self.place.path()).args(arguments);
        client
    }

    /// The first process that `postgres` runs as.
    pub(crate) fn postmaster(&self) -> u32 {
        let path = self.place.path().join("data/postmaster.pid");
        let text = std::fs::read_to_string(path).expect("read postmaster.pid");
        text.lines().next().and_then(|line| line.parse().ok()).expect("a process id")
    }

    /// The processes that serve the clients.
    pub(crate) fn backends(&self) -> Vec<u32> {
        let id = self.postmaster();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.unwrap_or_default();
        let serves = |pid: &u32| {
            let title = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
            title.is_ok_and(|title| title.contains("[local]"))
        };
        children.split_ascii_whitespace().flat_map(str::parse).filter(serves).collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.clients = None;
        // `runuser` passes no SIGKILL on.
        if self.server.is_some() {
            let server = self.postmaster().to_string();
            let sent = Command::new("kill").args(["-INT", &server]).status();
            sent.expect("run kill");
        }
        self.server = None;
    }
}
