//! No wait that whit calls whole contains a moment at which the thread ran, whatever the recorder lost.
//!
//! The truth is the program's own: each thread `sleeper` logs the moments at which it runs. It moves between the
//! CPUs, beside a storm of context switches that fills rings as soon as the recorder is late. And late it is made: it
//! is stopped, or gets next to no CPU time, or is killed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::tools::{command, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::wait::wait_until;

/// Small rings: 64 KiB hold 2,700 switches at most.
const RING: [&str; 2] = ["-m", "16"];
/// The storm makes some 40,000 switches a second, so that it fills them many times in a stop.
const REST_US: &str = "1000";
const STOP: Duration = Duration::from_millis(250);
const STOPS: usize = 2;
/// Undisturbed, before and behind each stop.
const CALM: Duration = Duration::from_millis(150);
/// How long the program runs: the stops with the calm around them, and some time for each on a busy machine.
const RUN_MS: u64 = 1300;
/// The scheduler's clock is compared at switches. It may be off by 61 ns for each millisecond without one
/// (`CLOCK_DRIFT_SHIFT` of the programs), and a thread of this program rests for a millisecond or a few.
const HIDDEN_NS: u64 = 1000;
/// So many of the sleepers' waits are whole at least: for some half of the time the recorder was not disturbed, but
/// others may do so.
const LEAST_WHOLE: f64 = 0.05;

/// The recorder is stopped for nine tenths of the run. The storm takes a tenth of that to fill a ring, or ten times
/// as long on a busy machine.
const LEAST_PAUSED_NS: u64 = RUN_MS * 1_000_000 / 10;

/// A reason why the recorder is late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    /// Nothing does, and rings are large.
    None,
    /// It is stopped for a while.
    Stopped,
    /// It is stopped until the program has done its work: nothing follows what rings have lost.
    StoppedToTheEnd,
    /// It gets next to no CPU time.
    Starved,
    /// It is stopped and dies.
    Killed,
}

/// A target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Machine,
    Process,
    Threads,
    Command,
}

const ALL_OF: [Of; 4] = [Of::Machine, Of::Process, Of::Threads, Of::Command];
const ENGINES: [&str; 3] = ["--engine=bpf", "--engine=bpf --no-pack", "--engine=ring -k monotonic"];
const TROUBLES: [Trouble; 4] =
    [Trouble::Stopped, Trouble::Starved, Trouble::StoppedToTheEnd, Trouble::Killed];

/// A way to record.
#[derive(Clone, Debug)]
struct Way {
    of: Of,
    trouble: Trouble,
    options: String,
}

impl Way {
    fn new(of: Of, trouble: Trouble, options: &[&str]) -> Way {
        Way { of, trouble, options: options.join(" ") }
    }

    /// SIGUSR2 has the recorder go on in another output, or take a snapshot.
    fn takes_signals(&self) -> bool {
        self.options.contains("--switch-output") || self.is_snapshot()
    }

    fn is_snapshot(&self) -> bool {
        self.options.contains("--overwrite")
    }
}

/// A program that logs when its threads run.
struct Program {
    stdout: BufReader<ChildStdout>,
    /// The line that it prints first.
    threads: String,
}

impl Program {
    fn new(stdout: ChildStdout) -> Program {
        let (mut stdout, mut threads) = (BufReader::new(stdout), String::new());
        stdout.read_line(&mut threads).expect("read what the program says");
        assert!(threads.starts_with("threads "), "{threads}");
        Program { stdout, threads }
    }

    /// The number behind a word of the line.
    fn number(&self, key: &str) -> &str {
        let of_key = |word| str::strip_prefix(word, key)?.strip_prefix('=');
        self.threads.split_whitespace().find_map(of_key).expect("a number")
    }

    /// For each sleeper, the moments at which it ran.
    fn log(mut self) -> HashMap<u64, Vec<u64>> {
        let sleepers = self.number("sleepers").split(',').count();
        let number = |word: &str| word.parse::<u64>().expect("a number");
        // Not to the end of the pipe: a recorder that is stopped has it open, too.
        let of_line = |_| {
            let mut line = String::new();
            self.stdout.read_line(&mut line).expect("read the log");
            let line = line.strip_prefix("ran tid=").expect("a line of the log");
            let mut words = line.split_whitespace().map(number);
            (words.next().expect("a thread"), words.collect())
        };
        (0..sleepers).map(of_line).collect()
    }
}

/// A recorder at work.
struct Recorder {
    child: Child,
    stderr: PathBuf,
    /// A recorder without a command of its own records as long as this is open.
    gate: Option<ChildStdin>,
    /// The program that is recorded, if the recorder did not start it. It ends when the pipe is closed.
    recorded: Option<(Child, ChildStdin)>,
}

fn sleeper(way: &Way) -> Result<Command, Skip> {
    let mut sleeper = command(workload("sleeper")?);
    let run_ms = RUN_MS.to_string();
    sleeper.args(["--milliseconds", &run_ms, "--sleepers", "2", "--rest-us", REST_US]);
    if way.trouble == Trouble::Starved {
        sleeper.args(["--busy", "2"]);
    }
    Ok(sleeper)
}

fn whit_record(way: &Way, directory: &Path) -> Command {
    let mut whit = whit();
    whit.args(["record", "--engine=ring", "-F", "999", "-o"]).arg(directory.join("perf.data"));
    whit.args(way.options.split_whitespace());
    if !way.options.contains("-e ") {
        whit.args(["-e", "cpu-clock", "--switch-events"]);
    }
    match way.trouble {
        Trouble::None => whit.args(["-v", "-m", "16M"]),
        _ => whit.args(RING),
    };
    whit
}

impl Recorder {
    /// Starts both. The program is on its way when this returns, and recorded.
    fn start(way: &Way, directory: &Path) -> Result<(Recorder, Program), Skip> {
        let stderr = directory.join("said");
        let mut whit = whit_record(way, directory);
        whit.stderr(std::fs::File::create(&stderr).expect("make a file")).stdout(Stdio::piped());
        let program = sleeper(way)?;
        if matches!(way.of, Of::Machine | Of::Command) {
            whit.args((way.of == Of::Machine).then_some("-a")).arg("--");
            whit.arg(program.get_program()).args(program.get_args());
            let mut child = whit.spawn().expect("run whit");
            let program = Program::new(child.stdout.take().expect("a pipe"));
            return Ok((Recorder { child, stderr, gate: None, recorded: None }, program));
        }
        let mut spawn = program;
        spawn.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut recorded = spawn.spawn().expect("run the program");
        let mut begin = recorded.stdin.take().expect("a pipe");
        let program = Program::new(recorded.stdout.take().expect("a pipe"));
        match way.of {
            Of::Process => whit.args(["-p", program.number("pid")]),
            _ => whit.args(["-t", program.number("sleepers"), "-t", program.number("storm")]),
        };
        // A command that runs until its input ends; its output shows that recording has begun.
        let mut child = whit.args(["--", "sh", "-c", "echo begun; read -r line; exit 0"]);
        child = child.stdin(Stdio::piped());
        let mut child = child.spawn().expect("run whit");
        let mut begun = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        stdout.read_line(&mut begun).expect("read what the command says");
        assert_eq!(begun, "begun\n", "{}", std::fs::read_to_string(&stderr).unwrap_or_default());
        writeln!(begin).expect("have the program begin");
        let gate = child.stdin.take();
        Ok((Recorder { child, stderr, gate, recorded: Some((recorded, begin)) }, program))
    }

    fn signal(&self, signal: &str) {
        succeed("kill", &[&format!("-{signal}"), &self.child.id().to_string()]);
    }

    /// All its threads run only where nobody else wants to, or like all others.
    fn has_low_priority(&self, is_low: bool) {
        let policy = if is_low { "--idle" } else { "--other" };
        let pid = self.child.id().to_string();
        // Helper threads of the recorder may end while chrt goes through them, which it takes for an error.
        wait_until("chrt has reached all threads of the recorder", || {
            let mut chrt = command("chrt");
            let output = chrt.args(["--all-tasks", policy, "--pid", "0", &pid]).output();
            output.expect("run chrt").status.success()
        });
    }

    fn suffer(&self, way: &Way) {
        match way.trouble {
            Trouble::None => {}
            // For as long as the program runs.
            Trouble::Starved => self.has_low_priority(true),
            Trouble::StoppedToTheEnd => {
                std::thread::sleep(CALM);
                self.signal("STOP");
            }
            Trouble::Stopped | Trouble::Killed => {
                for _ in 0..STOPS {
                    std::thread::sleep(CALM);
                    if way.takes_signals() {
                        self.signal("USR2");
                    }
                    self.signal("STOP");
                    std::thread::sleep(STOP);
                    self.signal("CONT");
                }
                std::thread::sleep(CALM);
            }
        }
        if way.trouble == Trouble::Killed {
            self.signal("KILL");
        }
    }

    /// Ends the recording of a program that has logged all; gives the recorder's messages.
    fn end(mut self, trouble: Trouble) -> String {
        match trouble {
            Trouble::Starved => self.has_low_priority(false),
            Trouble::StoppedToTheEnd => self.signal("CONT"),
            _ => {}
        }
        drop(self.gate.take());
        let status = self.child.wait().expect("wait for whit");
        if let Some((mut recorded, gate)) = self.recorded.take() {
            drop(gate);
            assert!(recorded.wait().expect("wait for the program").success());
        }
        let said = std::fs::read_to_string(&self.stderr).expect("read what whit said");
        assert_eq!(status.success(), trouble != Trouble::Killed, "{said}");
        said
    }
}

fn succeed(program: &str, arguments: &[&str]) {
    let output = command(program).args(arguments).output().expect("run a program");
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

/// Waits of the sleepers, by whit.
#[derive(Default, Debug)]
struct Waits {
    /// By the log.
    sleeps: usize,
    whole: usize,
    lossy: usize,
    /// Whole ones, with a moment in each at which the thread ran.
    /// Waits in which the thread ran, and for how long at their end.
    untrue: Vec<(String, u64)>,
    loss_windows: usize,
}

impl Waits {
    /// Asks whit for the waits of all outputs, and looks at each in the log.
    fn of(directory: &Path, log: &HashMap<u64, Vec<u64>>) -> Waits {
        let mut waits = Waits::default();
        for moments in log.values() {
            assert!(moments.is_sorted() && !moments.is_empty(), "{moments:?}");
            waits.sleeps += moments.len() / 2;
        }
        for entry in std::fs::read_dir(directory).expect("read the directory") {
            let path = entry.expect("read the directory").path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("perf.data"))
            {
                waits.add(&path, log);
            }
        }
        waits
    }

    fn add(&mut self, data: &Path, log: &HashMap<u64, Vec<u64>>) {
        let tids: Vec<_> = log.keys().map(u64::to_string).collect();
        let arguments = ["switches", "--json", "--worst", "100000", "--kallsyms", "/dev/null"];
        let json = text(whit().args(arguments).args(["--tid", &tids.join(","), "-i"]).arg(data));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let number = |value: &Value| value.as_u64().expect("a number");
        self.loss_windows += json["loss_windows_ns"].as_array().expect("windows").len();
        for wait in json["worst"].as_array().expect("waits") {
            let tid = number(&json["threads"][number(&wait["thread"]) as usize]["tid"]);
            let start = number(&wait["start_ns"]);
            let end = start + number(&wait["duration_ns"]);
            if wait["open"] == true {
                continue;
            }
            if wait["lossy"] == true {
                self.lossy += 1;
                continue;
            }
            self.whole += 1;
            let moments = &log[&tid];
            let next = moments.partition_point(|moment| *moment <= start);
            if let Some(moment) = moments.get(next).filter(|moment| **moment < end) {
                let text = format!("{tid} from {start} to {end}, but it ran at {moment}");
                self.untrue.push((text, end - moment));
            }
        }
    }
}

/// How long rings were full, by the ledger.
fn paused_ns(directory: &Path) -> u64 {
    let mut report = whit();
    report.args(["report", "--json", "--kallsyms", "/dev/null", "-i"]);
    let json = text(report.arg(directory.join("perf.data")));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let paused_ns = json["ledger"]["paused_ns"].as_u64().expect("a ledger");
    assert_eq!(json["losses"]["paused_ns"], paused_ns);
    assert!(json["losses"]["data_loss"].as_f64().is_some_and(|loss| loss > 0.0), "{json:.500}");
    paused_ns
}

/// The number in front of some words; 0 where they are not said.
fn number_before(said: &str, words: &str) -> usize {
    let before = said.split_once(words).map_or("", |(before, _)| before);
    before.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Records in a way and judges the waits in the recording.
fn judge(way: &Way) -> Result<(), Skip> {
    let mut directory = tempfile::tempdir().expect("make a directory");
    let (recorder, program) = Recorder::start(way, directory.path())?;
    recorder.suffer(way);
    let log = program.log();
    let said = recorder.end(way.trouble);
    let mut waits = Waits::of(directory.path(), &log);
    // Each coming that the kernel hid has its time from another clock, whose distance is known to this.
    let mut hidden = number_before(&said, " threads whose coming the kernel hid");
    waits.untrue.retain(|(_, by_ns)| {
        let is_of_hidden = hidden > 0 && *by_ns < HIDDEN_NS;
        hidden -= usize::from(is_of_hidden);
        !is_of_hidden
    });
    // A recording with a false wait is rare: it is kept for finding the cause.
    directory.disable_cleanup(!waits.untrue.is_empty());
    let directory = &directory;
    assert_eq!(waits.untrue, [], "{way:?}: {waits:?} {said}");
    if way.is_snapshot() {
        // Gaps are no losses. There is one in front of the first snapshot, and one between two where the rings were
        // filled meanwhile: on a busy machine, the program may be too slow for that.
        assert!(waits.loss_windows > 0 && waits.whole > 0, "{way:?}: {waits:?} {said}");
        return Ok(());
    }
    if way.trouble == Trouble::None {
        assert!(said.contains("; lost 0 ("), "{way:?}: {said}");
        // Where the kernel hid that a thread came, and that was noticed too late, it is uncertain how long it waited.
        let hidden = number_before(&said, " threads whose coming the kernel hid");
        assert!(waits.loss_windows <= hidden, "{way:?}: {waits:?} {said}");
        assert!(waits.loss_windows > 0 || waits.lossy == 0, "{way:?}: {waits:?} {said}");
        let closed = waits.whole + waits.lossy + 2 * log.len();
        assert!(closed >= waits.sleeps, "{way:?}: {waits:?} {said}");
        return Ok(());
    }
    // Otherwise the test says nothing.
    assert!(waits.loss_windows > 0, "{way:?}: {waits:?} {said}");
    if way.trouble != Trouble::Killed {
        assert!(!said.contains("; lost 0 ("), "{way:?}: {said}");
        // That long no ring was read.
        assert!(!said.contains("data loss 0.00%") && !said.contains("time unknown"), "{said}");
    }
    if way.trouble == Trouble::StoppedToTheEnd {
        let paused_ns = paused_ns(directory.path());
        assert!(paused_ns >= LEAST_PAUSED_NS, "{way:?}: {paused_ns} {waits:?} {said}");
    }
    if way.trouble == Trouble::Stopped {
        let least = (waits.sleeps as f64 * LEAST_WHOLE) as usize;
        assert!(waits.whole >= least, "{way:?}: {waits:?} {said}");
    }
    Ok(())
}

/// Whether this machine can do what these tests need.
fn need_machine() -> Result<(), Skip> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        return Err(Skip("this machine has one CPU, and the threads need two to move".to_owned()));
    }
    probe::need_program("chrt", &["--idle", "0", "true"])
}

/// The engines that this machine has.
fn engines() -> Result<&'static [&'static str], Skip> {
    need_machine()?;
    if let Err(Skip(reason)) = probe::bpf_stacks() {
        whit_testing::skip("false waits of the BPF engine", &reason);
        return Ok(&ENGINES[2..]);
    }
    Ok(&ENGINES)
}

/// Each two choices meet in one of these recordings.
#[test]
fn no_whole_wait_contains_a_run() {
    check("no_whole_wait_contains_a_run", || {
        let engines = engines()?;
        for (number, trouble) in TROUBLES.into_iter().enumerate() {
            for (index, of) in ALL_OF.into_iter().enumerate() {
                let engine = engines[(index + number) % engines.len()];
                let cpu = ["", "--sample-cpu"][(index + number) % 2];
                let readers = ["", "--threads"][(index / 2 + number) % 2];
                judge(&Way::new(of, trouble, &[engine, cpu, readers]))?;
            }
        }
        Ok(())
    });
}

/// Rings that keep the newest samples only: samples that were overwritten between two snapshots are
/// in neither.
#[test]
fn between_snapshots_nothing_is_certain() {
    check("between_snapshots_nothing_is_certain", || {
        need_machine()?;
        probe::tracepoints()?;
        let options = "-k monotonic --overwrite -e sched:sched_switch/period=1/";
        judge(&Way::new(Of::Machine, Trouble::Stopped, &[options]))
    });
}

/// Where nothing is lost, nothing is uncertain.
#[test]
fn without_a_loss_all_waits_are_whole() {
    check("without_a_loss_all_waits_are_whole", || {
        for (number, engine) in engines()?.iter().enumerate() {
            let of = ALL_OF[number];
            judge(&Way::new(of, Trouble::None, &[engine]))?;
        }
        Ok(())
    });
}

/// All ways together, for hours: `WHIT_ROUNDS` times each.
#[test]
#[ignore = "takes ten minutes for each round"]
fn no_whole_wait_contains_a_run_in_any_combination() {
    check("no_whole_wait_contains_a_run_in_any_combination", || {
        let rounds = std::env::var("WHIT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
        let engines = engines()?;
        for round in 0..rounds.unwrap_or(1) {
            for engine in engines {
                for of in ALL_OF {
                    for trouble in TROUBLES {
                        for cpu in ["", "--sample-cpu"] {
                            let more = ["", "--threads", "-z --aio", "--threads --switch-output"];
                            for more in more {
                                let way = Way::new(of, trouble, &[engine, cpu, more]);
                                eprintln!("round {round}: {way:?}");
                                judge(&way)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    });
}
