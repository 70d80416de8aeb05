//! Names of Python's functions in recordings that have no proper end: of a killed recorder, in a pipe, in one output of
//! several.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use whit_testing::wait::{Load, signal, wait_until};

use crate::support::tools::{perf, text, whit};
use crate::support::{Skip, check, probe};

/// Functions that run by turns, until the program is killed.
const ENDLESS: &str = "\
import time
def inner(n):
    return sum(i * i for i in range(n))
def outer():
    while True:
        inner(2000)
outer()
";
/// The same for a second, in a function that is new at its end.
const ENDING: &str = "\
import time
def inner(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
def last(end):
    while time.monotonic() < end:
        inner(2000)
def outer(end):
    while time.monotonic() < end:
        inner(2000)
begin = time.monotonic()
outer(begin + 0.6)
last(begin + 1)
";
/// Samples of functions, at 499 Hz; on a busy machine there are fewer.
const LEAST_SAMPLES: usize = 50;

/// Least share of them with all names. Functions that run once, at the beginning, may be gone before they are read.
const LEAST_NAMED: f64 = 0.95;

struct Place {
    folder: tempfile::TempDir,
    python: PathBuf,
    program: PathBuf,
}

impl Place {
    fn new(program: &str) -> Result<Place, Skip> {
        probe::own_events()?;
        probe::bpf_stacks()?;
        let python = crate::python_stacks::python(&[], "3.12")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let path = folder.path().join("program.py");
        std::fs::write(&path, program).expect("write a program");
        Ok(Place { folder, python, program: path })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn recorder(&self, options: &str) -> Command {
        let mut recorder = whit();
        recorder.current_dir(self.folder.path());
        recorder.args(["record", "-N", "--engine=bpf", "-e", "cpu-clock:u", "-F", "499"]);
        recorder.args(options.split_ascii_whitespace());
        recorder
    }

    fn load(&self) -> Load {
        Load::start(Command::new(&self.python).arg(&self.program))
    }
}

/// Samples with frames of interpreted functions, and those with all of these named.
fn named(data: &Path, printer: &mut Command) -> (usize, usize) {
    printer.args(["script", "-F", "comm,ip,sym,srcline", "-i"]).arg(data);
    let printed = text(printer);
    let samples = printed.split("\n\n").filter(|sample| {
        sample.lines().any(|line| is_interpreted(line.trim()) || line.contains(" py::"))
    });
    let is_named = |sample: &&str| {
        let frames = sample.lines().filter(|line| is_interpreted(line.trim()));
        frames.clone().all(|line| line.contains(" py::"))
    };
    (samples.clone().count(), samples.filter(is_named).count())
}

/// Whether a line is that of a frame with the mark of interpreted functions.
fn is_interpreted(line: &str) -> bool {
    let address = line.split(' ').next().and_then(|word| u64::from_str_radix(word, 16).ok());
    address.is_some_and(|address| address >> 61 == 2)
}

/// Frames of functions have names, and the innermost function has its line.
fn assert_named(data: &Path, what: &str) {
    let (all, with_names) = named(data, &mut whit());
    println!("{what}: {with_names} of {all} samples");
    assert!(all >= LEAST_SAMPLES, "{what}: {all}");
    assert!(with_names as f64 >= all as f64 * LEAST_NAMED, "{what}: {with_names} of {all}");
    let printed = text(whit().args(["script", "-F", "ip,sym,srcline", "-i"]).arg(data));
    assert!(printed.contains("py::__main__.inner") && printed.contains("program.py:"), "{what}");
}

/// Waits until a recording that goes on has more than enough samples, however small the program's part of the CPUs is.
fn wait_for_samples(data: &Path) {
    wait_until("samples are written", || {
        let output = whit().args(["script", "-F", "ip,sym", "-i"]).arg(data).output();
        let printed = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&printed).matches("py::__main__.inner").count() > 200
    });
}

#[test]
fn a_killed_recorder_leaves_names() {
    check("python_killed", || {
        for options in ["", "--threads", "-z"] {
            let place = Place::new(ENDLESS)?;
            let program = place.load();
            let data = place.path("data");
            let mut recorder = place.recorder(options);
            recorder.arg("-o").arg(&data).arg("-p").arg(program.id().to_string());
            let recorder = recorder.stdout(Stdio::null()).stderr(Stdio::null());
            let mut recorder = recorder.spawn().expect("run whit");
            wait_for_samples(&data);
            recorder.kill().expect("kill whit");
            recorder.wait().expect("it ends");
            let report = whit().args(["report", "-i"]).arg(&data).output().expect("run whit");
            let said = String::from_utf8_lossy(&report.stdout).into_owned();
            assert!(said.contains("did not end properly"), "{options}: {said}");
            assert_named(&data, &format!("killed {options}"));
        }
        Ok(())
    });
}

#[test]
fn a_pipe_has_names_to_its_end() {
    check("python_pipe", || {
        let place = Place::new(ENDING)?;
        let piped = place.path("piped");
        let file = std::fs::File::create(&piped).expect("make a file");
        let mut recorder = place.recorder("-o - --");
        recorder.arg(&place.python).arg(&place.program).stdout(file);
        let output = whit_testing::run::record(&mut recorder)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("have no names"), "{said}");
        assert_named(&piped, "pipe");
        let printed = text(whit().args(["script", "-F", "ip,sym", "-i"]).arg(&piped));
        assert!(printed.contains("py::__main__.last"), "{said}");
        Ok(())
    });
}

#[test]
fn each_output_of_several_has_all_names() {
    check("python_switched", || {
        let place = Place::new(ENDLESS)?;
        let program = place.load();
        let mut recorder = place.recorder("--switch-output -o data");
        recorder.arg("-p").arg(program.id().to_string());
        let mut recorder = recorder.stderr(Stdio::null()).spawn().expect("run whit");
        let outputs = || {
            let found = std::fs::read_dir(place.folder.path()).into_iter().flatten().flatten();
            let names = found.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut outputs: Vec<_> = names.filter(|name| name.starts_with("data.")).collect();
            outputs.sort();
            outputs
        };
        // The output that is being written has the name alone.
        let current = place.path("data");
        for _ in 0..2 {
            wait_for_samples(&current);
            let before = outputs().len();
            signal(&recorder, "-USR2");
            wait_until("another output", || outputs().len() > before);
        }
        wait_for_samples(&current);
        signal(&recorder, "-INT");
        recorder.wait().expect("it ends");
        let outputs = outputs();
        assert_eq!(outputs.len(), 3, "{outputs:?}");
        outputs.iter().for_each(|output| assert_named(&place.path(output), output));
        Ok(())
    });
}

/// Stock perf passes over the records of functions.
#[test]
fn stock_perf_says_nothing_of_functions() {
    check("python_stock_perf", || {
        let place = Place::new(ENDING)?;
        let data = place.path("data");
        let mut recorder = place.recorder("-o data --");
        recorder.arg(&place.python).arg(&place.program);
        whit_testing::run::record(&mut recorder)?;
        assert_named(&data, "file");
        let mut report = perf()?;
        report.args(["report", "--stdio", "-i"]).arg(&data);
        let output = report.output().expect("run perf");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        for word in ["unknown", "out of order", "bpf", "failed"] {
            assert!(!said.to_lowercase().contains(word), "{said}");
        }
        let samples = |printer: &mut Command| named(&data, printer).0;
        assert_eq!(samples(&mut perf()?), samples(&mut whit()));
        Ok(())
    });
}
