//! Recorders of a process that put such things where its code, its perf-map or its jitdump was.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{CPU_MAX, PATIENCE, RECORDERS, things};
use crate::Setting;
use crate::faces::{look, problem_beyond, watch};
use crate::recorders::Mode;
use crate::verdict::Verdict;

/// Longer than the program takes to write its file.
const FILE_MAX: Duration = Duration::from_secs(20);
/// For as long as the recorders need it.
const PROGRAM_SECONDS: &str = "120";

const MODES: [Mode; 6] = [
    &["-g"],
    &["--call-graph", "dwarf,2048"],
    &["-a", "-g"],
    &["--engine=bpf"],
    &["-a", "--engine=bpf"],
    &["--perf-map", "-g"],
];

/// A path that the program chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Binary,
    PerfMap,
    JitDump,
}

const PATHS: [Chosen; 3] = [Chosen::Binary, Chosen::PerfMap, Chosen::JitDump];

pub(super) fn run(setting: &mut Setting, verdict: &mut Verdict) -> Result<()> {
    let program = setting.workloads.join("jit");
    ensure!(program.is_file(), "there is no {}: make -C bench/workloads jit", program.display());
    // Unwind tables of all that runs on the machine are made once.
    let cache = tempfile::tempdir().context("cannot make a directory")?;
    for number in 0..setting.times(RECORDERS) as usize {
        let chosen = PATHS[number % PATHS.len()];
        let mode = MODES[number / PATHS.len() % MODES.len()];
        let thing = things::ALL[setting.random.usize(0..things::ALL.len())];
        let case = format!("recorder {number}: {thing:?} as {chosen:?}, {}", mode.join(" "));
        let scratch = tempfile::tempdir().context("cannot make a directory")?;
        let running = Running::start(&program, chosen, scratch.path())?;
        let placed = thing.place(&running.path, b"1000 10 f\n".repeat(100))?;
        let data = scratch.path().join("perf.data");
        let mut command = recorder(setting, mode, &running, &data);
        command.env("XDG_CACHE_HOME", cache.path());
        let ended = watch(command, PATIENCE, scratch.path())?;
        let face = ["report", "--stdio", "-g"];
        let mut bad = problem_beyond(CPU_MAX, mode, &ended);
        if bad.is_none() && ended.code != Some(0) {
            bad = Some(format!("recorded nothing: {}", String::from_utf8_lossy(&ended.stderr)));
        }
        if bad.is_none() {
            bad =
                problem_beyond(CPU_MAX, &face, &look(&setting.whit, &face, &data, scratch.path())?);
        }
        let opened = placed.was_opened().then(|| "opened it".to_owned());
        drop(placed);
        verdict.attempt(bad.or(opened).map(|why| format!("{case}: {why}")));
    }
    Ok(())
}

fn recorder(setting: &Setting, mode: Mode, running: &Running, data: &Path) -> Command {
    let mut command = Command::new(&setting.whit);
    command
        .args(["record", "--engine=ring", "-e", "cpu-clock", "-k", "mono"])
        .args(mode)
        .arg("-o")
        .arg(data);
    if !mode.contains(&"-a") {
        command.args(["-p", &running.child.id().to_string()]);
    }
    // Copies of binaries and perf-maps are kept there, in a home that exists.
    if let Some(scratch) = data.parent() {
        command.env("HOME", scratch).env_remove("PERF_BUILDID_DIR");
    }
    command.args(["--", "sleep", "0.5"]);
    command
}

/// The program, and the path that is attacked.
struct Running {
    child: Child,
    path: PathBuf,
}

impl Running {
    fn start(program: &Path, chosen: Chosen, scratch: &Path) -> Result<Running> {
        let copy = scratch.join("jit");
        // By another process: a file that a child of ours has open for writing cannot be run.
        ensure!(Command::new("cp").arg(program).arg(&copy).status()?.success(), "cannot copy");
        let mut command = Command::new(&copy);
        command.args(["--seconds", PROGRAM_SECONDS]).stdout(Stdio::null());
        if chosen == Chosen::JitDump {
            command.arg("--jitdump").arg(scratch);
        }
        let child = command.spawn().context("cannot run the program")?;
        let pid = child.id();
        let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        let (written, path) = match chosen {
            Chosen::Binary => (map, copy),
            Chosen::PerfMap => (map.clone(), map),
            Chosen::JitDump => {
                let dump = scratch.join(format!("jit-{pid}.dump"));
                (dump.clone(), dump)
            }
        };
        let running = Running { child, path };
        let start = Instant::now();
        while !written.exists() {
            ensure!(start.elapsed() < FILE_MAX, "the program wrote no {}", written.display());
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let map = PathBuf::from(format!("/tmp/perf-{}.map", self.child.id()));
        let _ = std::fs::remove_file(&map).or_else(|_| std::fs::remove_dir(&map));
    }
}
