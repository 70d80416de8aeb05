//! Programs on a file system that another program serves (FUSE), while that answers and when it stops to.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::tools::{text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::run::{needs_of, stderr, stdout};
use whit_testing::wait::{Load, is_within, signal, wait_for_command};

/// Recorders wait ten seconds in vain at most, and these programs are built without optimization.
const DEADLINE: Duration = Duration::from_secs(40);
/// How long is recorded before and behind the silence, at least.
const RECORDED: Duration = Duration::from_millis(700);
/// The program's CPU time that is recorded, in ticks of 10 ms: 200 samples. A busy machine takes a while for that. Where the
/// program hangs, it is given up.
const BURNT_TICKS: u64 = 40;
const BURNT_WITHIN: Duration = Duration::from_secs(8);
/// Fewer samples of a busy program are none.
const LEAST_SAMPLES: usize = 50;
/// The program's functions.
const FUNCTION: &str = "burn_inner";

/// The file system and the program on it. All waits for it end with it.
struct Served {
    daemon: Child,
    lines: Lines<BufReader<ChildStdout>>,
    place: TempDir,
}

impl Served {
    /// Serves, up to a word to it. `silent` are the requests that it does not answer from then on.
    fn start(silent: &str) -> Result<Served, Skip> {
        if !Path::new("/dev/fuse").exists() {
            return Err(Skip("this kernel serves no file systems by programs (/dev/fuse)".into()));
        }
        // Built before the file system's time begins.
        let _ = whit();
        let (program, place) =
            (workload("silent")?, tempfile::tempdir().expect("make a directory"));
        let mut daemon = Command::new(program);
        daemon.arg(place.path()).arg(silent).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut daemon = daemon.spawn().expect("run the file system");
        let lines = BufReader::new(daemon.stdout.take().expect("its output")).lines();
        let mut served = Served { daemon, lines, place };
        assert!(served.line().starts_with("ready "));
        Ok(served)
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("the file system runs").expect("its output can be read")
    }

    /// It answers no more.
    fn be_silent(&mut self) {
        let input = self.daemon.stdin.as_mut().expect("its input");
        input.write_all(b"\n").expect("tell it");
        assert_eq!(self.line(), "silent");
    }

    fn program(&self) -> String {
        self.place.path().join("burn").to_string_lossy().into_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // By the end of its input, it unmounts itself. Killed, all requests end as well.
        drop(self.daemon.stdin.take());
        if !is_within(Duration::from_secs(2), || matches!(self.daemon.try_wait(), Ok(Some(_)))) {
            let _ = self.daemon.kill();
            let _ = self.daemon.wait();
            let _ = Command::new("umount").arg("-l").arg(self.place.path()).status();
        }
    }
}

/// A program that is killed where its test fails. One that hangs ends with the file system.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// Runs a program to its end.
fn run(command: &mut Command, meanwhile: impl FnOnce(&Child)) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = Program(command.spawn().expect("run whit"));
    let child = &mut program.0;
    let read = |mut stream: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("read the output");
            bytes
        })
    };
    let stdout = read(Box::new(child.stdout.take().expect("its output")));
    let stderr = read(Box::new(child.stderr.take().expect("its messages")));
    meanwhile(child);
    let mut status = None;
    is_within(DEADLINE, || {
        status = child.try_wait().expect("ask for its state");
        status.is_some()
    });
    let Some(status) = status else {
        panic!("{command:?} hangs");
    };
    let join = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().expect("read its output");
    Output { status, stdout: join(stdout), stderr: join(stderr) }
}

/// Records the whole machine until SIGINT.
/// CPU time of the program, in ticks.
fn burnt() -> u64 {
    let processes = std::fs::read_dir("/proc").expect("list processes").flatten();
    let of_program = |stat: String| {
        let (_, fields) = stat.split_once("(burn) ")?;
        let mut times = fields.split(' ').skip(11).map(|field| field.parse::<u64>().ok());
        Some(times.next()?? + times.next()??)
    };
    let stats = processes.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    stats.filter_map(of_program).sum()
}

fn record(options: &[&str], out: &Path, meanwhile: impl FnOnce()) -> Result<String, Skip> {
    let mut recorder = whit();
    recorder
        .args(["record", "-a", "-e", "cpu-clock", "-F", "499"])
        .args(options)
        .arg("-o")
        .arg(out)
        .args(["--", "sleep", "1000"]);
    needs_of(&recorder)?;
    let recorded = run(&mut recorder, |recorder| {
        // It begins: only then does it start the command.
        wait_for_command(recorder, "sleep");
        let before = burnt();
        std::thread::sleep(RECORDED);
        meanwhile();
        std::thread::sleep(RECORDED);
        is_within(BURNT_WITHIN, || burnt() >= before + BURNT_TICKS);
        signal(recorder, "-INT");
    });
    let said = stderr(&recorded);
    assert_eq!(recorded.status.code(), Some(130), "{options:?}: {said}");
    // Other tests may begin more programs than a busy machine records.
    match said.contains("; lost 0 ") {
        true => Ok(said),
        false => Err(Skip(format!("too busy to judge: {options:?}: {said}"))),
    }
}

const RING: &[&str] = &["--engine=ring"];
const DUMPS: &[&str] = &["--engine=ring", "--call-graph=dwarf"];
const BPF: &[&str] = &["--engine=bpf"];
/// Requests without an answer, the recorder, and whether they have none when it begins.
const CASES: [(&str, &[&str], bool); 6] = [
    ("all", RING, true),
    ("all", DUMPS, false),
    ("all", BPF, true),
    ("all", BPF, false),
    ("closes", BPF, true),
    ("reads", BPF, true),
];

/// The lines of samples of the program.
fn samples(out: &Path) -> Vec<String> {
    let script = run(whit().args(["script", "-G", "-F", "comm,ip,sym", "-i"]).arg(out), |_| ());
    assert!(script.status.success(), "{}", stderr(&script));
    let script = stdout(&script);
    let of_program = script.lines().filter(|line| line.trim_start().starts_with("burn "));
    of_program.map(str::to_owned).collect()
}

#[test]
fn programs_on_a_file_system_that_answers_are_as_others() {
    check("programs_on_a_file_system_that_answers_are_as_others", || {
        let _machine = probe::may_change_the_machine()?;
        let served = Served::start("all")?;
        let place = tempfile::tempdir().expect("make a directory");
        let out = place.path().join("perf.data");
        for engine in [RING, DUMPS, BPF] {
            let said = record(engine, &out, || ())?;
            assert!(!said.contains("does not answer"), "{said}");
            let samples = samples(&out);
            let named = samples.iter().filter(|sample| sample.contains(FUNCTION)).count();
            assert!(named > LEAST_SAMPLES, "{engine:?}: {named} of {}", samples.len());
            let list = text(whit().args(["report", "--json", "-i"]).arg(&out));
            assert!(list.contains(&served.program()), "{engine:?}");
        }
        Ok(())
    });
}

#[test]
fn no_recorder_waits_for_a_file_system_that_stops_to_answer() {
    check("no_recorder_waits_for_a_file_system_that_stops_to_answer", || {
        // Other recorders of the whole machine hang meanwhile.
        let _machine = probe::may_change_the_machine()?;
        for (silent, engine, is_before) in CASES {
            let place = tempfile::tempdir().expect("make a directory");
            let out = place.path().join("perf.data");
            let mut served = Served::start(silent)?;
            if is_before {
                served.be_silent();
            }
            let said = record(engine, &out, || {
                if !is_before {
                    served.be_silent();
                }
            })?;
            let case = format!("{silent} {engine:?} {is_before}");
            let program = served.program();
            let names_it = |said: &str| said.contains(&program) && said.contains("does not answer");
            assert!(!is_before || names_it(&said), "{case}: {said}");
            let report = run(whit().args(["report", "--stdio", "-i"]).arg(&out), |_| ());
            let messages = format!("{}{}", stderr(&report), stdout(&report));
            assert!(report.status.success(), "{case}: {messages}");
            // Opened while it does not give its bytes, the file loses those that the program needs to run.
            if silent != "reads" {
                let samples = samples(&out);
                assert!(samples.len() > LEAST_SAMPLES, "{case}");
                // A file that was read before the silence is kept.
                let is_named = samples.iter().any(|sample| sample.contains(FUNCTION));
                assert!(names_it(&messages) || !is_before && is_named, "{case}: {messages}");
            }
        }
        Ok(())
    });
}

/// Memory that looks like that of code of Python, and is a page of a file by the time that its record is read.
const MAPS_PAGES: &str = "
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
READ, EXEC, PRIVATE, FIXED, ANONYMOUS = 1, 4, 2, 16, 32
page = os.open(sys.argv[1], os.O_RDONLY)
while True:
    code = libc.mmap(None, 1 << 20, READ | EXEC, PRIVATE | ANONYMOUS, -1, 0)
    libc.mmap(code, 4096, READ, PRIVATE | FIXED, page, 0)
    time.sleep(0.05)
";

#[test]
fn no_recorder_waits_for_a_page_of_a_process() {
    check("no_recorder_waits_for_a_page_of_a_process", || {
        probe::program("python3")?;
        // Other recorders of the whole machine hang meanwhile.
        let _machine = probe::may_change_the_machine()?;
        let place = tempfile::tempdir().expect("make a directory");
        let out = place.path().join("perf.data");
        let mut served = Served::start("pages")?;
        served.be_silent();
        let mut python = Command::new("python3");
        let page = served.place.path().join("page");
        let _python = Load::start(python.args(["-c", MAPS_PAGES]).arg(page));
        record(BPF, &out, || ())?;
        let samples = samples(&out);
        let named = samples.iter().filter(|sample| sample.contains(FUNCTION)).count();
        assert!(named > LEAST_SAMPLES, "{named} of {}", samples.len());
        Ok(())
    });
}
