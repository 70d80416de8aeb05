//! Processes with very many mappings: all of them are recorded, or it is said that some are missing.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::script;
use crate::support::stats::Stats;
use crate::support::tools::{record, text, whit, workload};
use crate::support::{Skip, check};

/// Below `vm.max_map_count` as Linux has it by default (65530).
const MAPPINGS: u64 = 60_000;

/// Works until its standard input is closed.
struct Mapped(Child);

impl Mapped {
    fn start() -> Result<Mapped, Skip> {
        let mut child = Command::new(workload("mappings")?)
            .args(["--mappings", &MAPPINGS.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("run mappings");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, format!("mapped {MAPPINGS}\n"));
        Ok(Mapped(child))
    }

    /// Records it for a while; gives the recorder's messages.
    fn record(&self, data: &Path, arguments: &[&str]) -> Result<String, Skip> {
        let said = data.with_extension("said");
        let mut recorder = whit();
        let fixed = [
            "record",
            "--engine=ring",
            "-e",
            "cpu-clock:u",
            "-F",
            "999",
            "-p",
            &self.0.id().to_string(),
        ];
        recorder.args(fixed).args(arguments).arg("-o").arg(data).args(["--", "sleep", "0.5"]);
        recorder.stderr(std::fs::File::create(&said).expect("a file"));
        record(&mut recorder)?;
        Ok(std::fs::read_to_string(said).expect("text"))
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn report(data: &Path, arguments: &[&str]) -> String {
    text(whit().args(["report", "--kallsyms", "/dev/null", "-i"]).arg(data).args(arguments))
}

fn json(data: &Path) -> Value {
    serde_json::from_str(&report(data, &["--json"])).expect("JSON")
}

/// The library that calls `main` is mapped behind all the others.
#[test]
fn stacks_are_complete_in_processes_with_many_mappings() {
    check("stacks_are_complete_in_processes_with_many_mappings", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let mapped = Mapped::start()?;
        for engine in [&["--engine=bpf"][..], &["--call-graph", "dwarf"]] {
            let said = mapped.record(&data, engine)?;
            assert!(!said.contains("are missing"), "{said}");
            let stats = Stats::parse(&report(&data, &["--stats"]));
            assert!(stats.by_type["MMAP2"] >= MAPPINGS, "{engine:?}: {stats:?}");
            let json = json(&data);
            assert_eq!(json["ledger"]["cut_processes"], 0);
            let script = ["script", "-F", "comm,pid,tid,ip,sym", "--kallsyms", "/dev/null", "-i"];
            let samples = script::parse(&text(whit().args(script).arg(&data)));
            let complete = samples.iter().filter(|sample| sample.passes("_start")).count();
            // The first walk through a library may come before its table.
            assert!(
                complete > 0 && complete * 100 >= samples.len() * 99,
                "{engine:?}: {samples:?}"
            );
        }
        Ok(())
    });
}

#[test]
fn every_face_says_that_mappings_are_missing() {
    check("every_face_says_that_mappings_are_missing", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let mapped = Mapped::start()?;
        let said = mapped.record(&data, &["--proc-map-timeout", "0"])?;
        let pid = mapped.0.id().to_string();
        let wanted = format!("mappings of process {pid} are missing");
        assert!(said.contains(&wanted) && said.contains("--proc-map-timeout 10000"), "{said}");
        assert!(report(&data, &[]).contains(&wanted));
        let json = json(&data);
        assert_eq!(json["ledger"]["cut_processes"], 1);
        assert!(json["warnings"].to_string().contains(&wanted), "{json}");
        assert!(report(&data, &["--ledger"]).contains("mappings missing"));
        let stats = whit().args(["report", "--stats", "-i"]).arg(&data).output().expect("run whit");
        assert!(String::from_utf8_lossy(&stats.stderr).contains(&wanted), "{stats:?}");
        Ok(())
    });
}
