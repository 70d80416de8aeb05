//! Language runtimes: names on demand, the way to them where they are missing, and whole stacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::script::{self, Sample};
use crate::support::tools::{number, text, whit};
use crate::support::{Skip, check, probe};
use whit_testing::wait::{Load, wait_until};

/// Calls two functions for a second and a half.
const BUSY: &str = "\
import time
def leaf(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
def middle(n):
    return leaf(n) + sum(sorted([leaf(5), leaf(6), n]))
end = time.monotonic() + 1.5
while time.monotonic() < end:
    middle(200)
";
/// Least share of whole stacks. Without trampolines it was 4 %; with them, all but those of the first milliseconds.
const LEAST_WHOLE: f64 = 0.97;
/// Samples of a second and a half at 499 Hz; there are 200 to 700.
const LEAST_SAMPLES: usize = 50;

/// A Python of this version, which can make trampolines.
fn python(version: &str, option: &str) -> Result<PathBuf, Skip> {
    let name = format!("python{version}");
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let built = std::fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten();
    let built = built.filter_map(Result::ok).map(|entry| entry.path().join("bin").join(&name));
    let mut candidates = built.chain([PathBuf::from(&name)]);
    let runs = |program: &PathBuf| {
        probe::need_program(
            program,
            &["-X", option, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"],
        )
        .is_ok()
    };
    candidates
        .find(runs)
        .ok_or_else(|| Skip(format!("there is no {name} that takes -X {option} here")))
}

/// Records a program in `place`; gives the messages.
fn record(
    place: &Path,
    options: &[&str],
    program: &Path,
    arguments: &[&str],
) -> Result<String, Skip> {
    std::fs::write(place.join("busy.py"), BUSY).expect("write a program");
    let mut recorder = whit();
    recorder.current_dir(place);
    recorder
        .args(["record", "--engine=ring", "-e", "cpu-clock:u", "-F", "499", "-o", "perf.data"])
        .args(options);
    recorder.arg("--").arg(program).args(arguments).arg("busy.py");
    Ok(String::from_utf8_lossy(&whit_testing::run::record(&mut recorder)?.stderr).into_owned())
}

fn samples(place: &Path) -> Vec<Sample> {
    let mut printer = whit();
    printer.current_dir(place).args(["script", "-F", "comm,ip,sym", "-i", "perf.data"]);
    script::parse(&text(&mut printer))
}

fn assert_whole_and_named(samples: &[Sample]) {
    let passes = |sample: &&Sample, name: &str| {
        sample.frames.iter().any(|frame| frame.symbol.starts_with(name))
    };
    let working: Vec<_> = samples.iter().filter(|sample| passes(sample, "py::")).collect();
    assert!(working.len() >= LEAST_SAMPLES, "{} of {} are named", working.len(), samples.len());
    let share = |name: &str| {
        let those = samples.iter().filter(|sample| passes(sample, name)).count();
        those as f64 / samples.len() as f64
    };
    assert!(share("_start") >= LEAST_WHOLE, "{} are whole", share("_start"));
    assert!(share("py::middle") > 0.8, "{} pass the function", share("py::middle"));
}

fn trampolines(name: &str, version: &str, option: &str, options: &[&str]) {
    check(name, || {
        probe::own_events()?;
        if options.contains(&"--engine=bpf") {
            probe::bpf_stacks()?;
        }
        let (python, place) =
            (python(version, option)?, tempfile::tempdir().expect("make a directory"));
        let messages = record(place.path(), options, &python, &["-X", option])?;
        assert!(!messages.contains("have no names"), "{messages}");
        assert_whole_and_named(&samples(place.path()));
        Ok(())
    });
}

const DUMPS: [&str; 3] = ["--engine=ring", "--call-graph", "dwarf"];
const BPF: [&str; 1] = ["--engine=bpf"];

#[test]
fn dumps_go_through_the_trampolines_of_a_perf_map() {
    trampolines("runtimes_python_3_12_perf_dumps", "3.12", "perf", &DUMPS);
}

#[test]
fn dumps_go_through_the_trampolines_of_a_jitdump_file() {
    trampolines("runtimes_python_3_13_perf_jit_dumps", "3.13", "perf_jit", &DUMPS);
}

#[test]
fn the_bpf_engine_unwinds_the_trampolines_of_a_perf_map() {
    trampolines("runtimes_python_3_12_perf_bpf", "3.12", "perf", &BPF);
}

#[test]
fn the_bpf_engine_unwinds_the_trampolines_of_a_jitdump_file() {
    trampolines("runtimes_python_3_13_perf_jit_bpf", "3.13", "perf_jit", &BPF);
}

#[test]
fn recorder_and_report_say_what_gives_names_to_python() {
    check("runtimes_python_hint", || {
        probe::own_events()?;
        let (python, place) =
            (python("3.12", "perf")?, tempfile::tempdir().expect("make a directory"));
        let messages = record(place.path(), &["--engine=ring"], &python, &[])?;
        let hint = "functions of Python 3.12 have no names";
        assert_eq!(messages.matches(hint).count(), 1, "{messages}");
        let mut reporter = whit();
        reporter.current_dir(place.path()).args(["report", "--stdio", "-i", "perf.data"]);
        let output = reporter.output().expect("run whit");
        let all = [output.stdout, output.stderr].concat();
        let all = String::from_utf8_lossy(&all);
        assert!(all.contains(hint) && all.contains("python3 -X perf"), "{all}");
        Ok(())
    });
}

#[test]
fn node_gets_names_by_the_way_that_the_recorder_says() {
    check("runtimes_node", || {
        probe::own_events()?;
        probe::program("node")?;
        let place = tempfile::tempdir().expect("make a directory");
        let busy = "const end = Date.now() + 1000; function leaf(n) { let s = 0; \
                    for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s } while (Date.now() < end) leaf(20000)";
        std::fs::write(place.path().join("busy.js"), busy).expect("write a program");
        let said = |options: &[&str]| -> Result<(String, String), Skip> {
            let mut recorder: Command = whit();
            recorder.current_dir(place.path());
            recorder.args([
                "record",
                "-e",
                "cpu-clock:u",
                "-F",
                "499",
                "-g",
                "--engine=ring",
                "-o",
                "perf.data",
            ]);
            recorder.args(["--", "node"]).args(options).arg("busy.js");
            let messages = whit_testing::run::record(&mut recorder)?.stderr;
            let mut reporter = whit();
            reporter.current_dir(place.path()).args([
                "report",
                "--stdio",
                "--no-children",
                "-g",
                "none",
            ]);
            Ok((String::from_utf8_lossy(&messages).into_owned(), text(&mut reporter)))
        };
        let (messages, report) = said(&[])?;
        assert!(messages.contains("node --perf-basic-prof"), "{messages}");
        assert!(!report.contains("leaf"), "{report}");
        let (messages, report) = said(&["--perf-basic-prof"])?;
        assert!(!messages.contains("have no names"), "{messages}");
        assert!(report.contains("leaf"), "{report}");
        Ok(())
    });
}

/// Calls one function until it is killed, and says when that is compiled.
const BUSY_JAVA: &str = "\
public class Busy {
    static int leaf(int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + i; return s; }
    public static void main(String[] arguments) throws Exception {
        long begin = System.nanoTime(); int sum = 0; boolean said = false;
        while (System.nanoTime() - begin < 120_000_000_000L) {
            sum += leaf(20000);
            if (!said && System.nanoTime() - begin > 500_000_000L) {
                said = new java.io.File(\"ready\").createNewFile();
            }
        }
        System.exit(sum & 1);
    }
}
";

/// Skips without Java 17, whose virtual machine knows this option, and its compiler.
fn java_17() -> Result<(), Skip> {
    let options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-DumpPerfMapAtExit"];
    let with_compiler = ["--describe-module", "jdk.compiler"];
    probe::need_program("java", &[options, with_compiler].concat())
}

/// A Java virtual machine in `place` that runs compiled code.
fn busy_java(place: &Path, options: &[&str]) -> Load {
    std::fs::write(place.join("Busy.java"), BUSY_JAVA).expect("write a program");
    let mut java = Command::new("java");
    // Where the compiler takes the function into its caller, no sample has its name.
    java.arg("-XX:CompileCommand=dontinline,Busy.leaf");
    java.current_dir(place).args(options).arg("Busy.java");
    let load = Load::start(&mut java);
    wait_until("the program runs compiled code", || place.join("ready").exists());
    load
}

/// Records a second of a process; gives the messages, and the table of functions.
fn record_process(place: &Path, pid: u32, options: &[&str]) -> Result<(String, String), Skip> {
    let mut recorder = whit();
    recorder.current_dir(place).args(["record", "--engine=ring", "-e", "cpu-clock:u"]);
    recorder.args(["-F", "499", "-g", "--engine=ring", "-o", "perf.data"]).args(options);
    recorder.args(["-p", &pid.to_string(), "--", "sleep", "1"]);
    let messages = whit_testing::run::record(&mut recorder)?.stderr;
    let mut reporter = whit();
    reporter.current_dir(place).args(["report", "--stdio", "--no-children", "-g", "none"]);
    Ok((String::from_utf8_lossy(&messages).into_owned(), text(&mut reporter)))
}

#[test]
fn java_writes_its_names_when_the_recorder_asks() {
    check("runtimes_java_map", || {
        probe::own_events()?;
        java_17()?;
        let place = tempfile::tempdir().expect("make a directory");
        let java = busy_java(place.path(), &[]);
        let (messages, report) = record_process(place.path(), java.id(), &[])?;
        assert!(messages.contains("or whit record --perf-map"), "{messages}");
        assert!(!report.contains("Busy.leaf"), "{report}");
        let (messages, report) = record_process(place.path(), java.id(), &["--perf-map"])?;
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", java.id()));
        assert!(!messages.contains("have no names"), "{messages}");
        assert!(report.contains("Busy.leaf"), "{messages}{report}");
        Ok(())
    });
}

#[test]
fn java_that_a_signal_would_end_is_left_alone() {
    check("runtimes_java_without_signals", || {
        probe::own_events()?;
        java_17()?;
        let place = tempfile::tempdir().expect("make a directory");
        let java = busy_java(place.path(), &["-Xrs", "-XX:+DisableAttachMechanism"]);
        let (messages, _) = record_process(place.path(), java.id(), &["--perf-map"])?;
        assert!(messages.contains("it neither listens nor handles SIGQUIT"), "{messages}");
        let state =
            std::fs::read_to_string(format!("/proc/{}/stat", java.id())).expect("its state");
        assert!(!state.contains(") Z "), "{state}");
        Ok(())
    });
}

/// A thread that parks for a lock ten times, for a hundred milliseconds each.
const PARKED_JAVA: &str = "\
import java.util.concurrent.locks.ReentrantLock;
public class Parked {
    static final ReentrantLock lock = new ReentrantLock();
    public static void main(String[] arguments) throws Exception {
        lock.lock();
        Thread wants = new Thread(() -> {
            for (int i = 0; i < 10; i++) { lock.lock(); lock.unlock(); while (!lock.isLocked()) Thread.onSpinWait(); }
        });
        wants.start();
        for (int i = 0; i < 10; i++) {
            while (wants.getState() != Thread.State.WAITING) Thread.onSpinWait();
            Thread.sleep(100);
            lock.unlock();
            while (lock.getQueueLength() > 0 || lock.isLocked()) Thread.onSpinWait();
            lock.lock();
        }
        wants.join();
    }
}
";

#[test]
fn parked_threads_of_java_without_names_are_counted() {
    check("runtimes_java_parked", || {
        probe::bpf_stacks()?;
        java_17()?;
        let place = tempfile::tempdir().expect("make a directory");
        std::fs::write(place.path().join("Parked.java"), PARKED_JAVA).expect("write a program");
        let mut recorder = whit();
        recorder.current_dir(place.path());
        recorder.args(["record", "--engine=bpf", "--wakeups", "-o", "perf.data", "--"]);
        whit_testing::run::record(recorder.args(["java", "Parked.java"]))?;
        let locks = |options: &[&str]| {
            let mut reader = whit();
            text(reader.current_dir(place.path()).arg("locks").args(options))
        };
        let json: Value = serde_json::from_str(&locks(&["--json"])).expect("JSON");
        let parked = &json["parked"];
        // A kernel that hides switches makes some uncertain.
        let uncertain = number(parked, "uncertain").min(10);
        assert!(number(parked, "count") + uncertain >= 10, "{parked}");
        assert!(number(parked, "total_ns") >= (10 - uncertain) * 100_000_000, "{parked}");
        assert!(locks(&[]).contains(" of parked threads of Java, "), "{}", locks(&[]));
        Ok(())
    });
}

#[test]
fn a_recording_without_java_says_that_no_process_was_asked() {
    check("runtimes_no_java", || {
        probe::own_events()?;
        let place = tempfile::tempdir().expect("make a directory");
        let load = Load::start(Command::new("sleep").arg("100"));
        let (messages, _) = record_process(place.path(), load.id(), &["--perf-map"])?;
        assert!(
            messages.contains("no Java virtual machine of this recording runs any more"),
            "{messages}"
        );
        Ok(())
    });
}
