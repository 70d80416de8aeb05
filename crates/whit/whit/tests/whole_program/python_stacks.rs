//! CPython's frames beside native ones (`--engine=bpf`), compared with stacks that a program knows of itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::tools::{text, whit};
use crate::support::{Skip, check, probe};

const KNOWN_STACKS: &str = include_str!("known_stacks.py");
/// How long the program runs.
const SECONDS: &str = "3.5";
/// Least share of frames that are as the program says. A sample may fall where a frame is linked, and its last
/// instruction not yet noted: CPython orders these writes for itself alone.
const LEAST_EQUAL: f64 = 0.999;
/// Least share of samples within the interpreter's loop that have functions in its place. Others enter or leave it.
const LEAST_WALKED: f64 = 0.99;
/// Samples of the program's functions, at 1999 Hz; on a busy machine there are fewer.
const LEAST_SAMPLES: usize = 300;
const LOOP: &str = "_PyEval_EvalFrameDefault";

/// Threads that take the interpreter's lock from each other, and one that sleeps meanwhile.
const LOCKED: &str = "\
import threading
import time
def burn(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
def work():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        burn(2000)
def sleep_long(n):
    return sleep_long(n - 1) if n else time.sleep(1.7)
threads = [threading.Thread(target=work) for _ in range(3)]
threads.append(threading.Thread(target=sleep_long, args=(30,)))
[thread.start() for thread in threads]
[thread.join() for thread in threads]
";
/// Least share of waits with functions. Threads also wait before their first function.
const LEAST_NAMED_WAITS: f64 = 0.9;
/// Waits at the lock of three threads in one and a half seconds: there are some hundred.
const LEAST_WAITS: usize = 50;

/// Functions that live one after another, most of them where the one before was. Their numbers ascend.
const PASSING: &str = "\
import time
SOURCE = '''
def inner_{0}(end):
    while time.monotonic() < end:
        pass
def outer_{0}(end):
    inner_{0}(end)
class Body_{0}:
    outer_{0}(time.monotonic() + 0.003)
'''
for i in range(400):
    exec(compile(SOURCE.format(i), f'made_{i}.py', 'exec'), {'time': time, '__name__': f'made_{i}'})
";
/// Functions of the program that have a sample at least; at 1999 Hz nearly all have some.
const LEAST_PASSING: usize = 200;

/// A frame: its function, and its file and line where it has some.
#[derive(Clone, Debug, Default)]
struct Frame {
    symbol: String,
    line: Option<u32>,
}

/// An interpreter that is here.
pub(crate) fn python(candidates: &[&str], version: &str) -> Result<PathBuf, Skip> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let versions = home.join(".pyenv/versions");
    let built = std::fs::read_dir(&versions).into_iter().flatten().filter_map(Result::ok);
    let name = format!("python{version}");
    let built = built.map(|entry| entry.path().join("bin").join(&name));
    let check = format!("import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')");
    let runs = |program: &PathBuf| probe::need_program(program, &["-c", &check]).is_ok();
    let mut all: Vec<PathBuf> = match candidates.is_empty() {
        true => built.chain([PathBuf::from(&name)]).collect(),
        false => candidates.iter().map(PathBuf::from).collect(),
    };
    all.retain(runs);
    all.into_iter().next().ok_or_else(|| Skip(format!("there is no {name} here")))
}

/// Records the program that knows its stacks; gives whit's messages.
fn record(place: &Path, python: &Path, options: &[&str]) -> Result<String, Skip> {
    std::fs::write(place.join("known_stacks.py"), KNOWN_STACKS).expect("write a program");
    record_program(place, python, options, &["known_stacks.py", "known.json", SECONDS])
}

/// Records a program of Python; gives whit's messages.
fn record_program(
    place: &Path,
    python: &Path,
    options: &[&str],
    program: &[&str],
) -> Result<String, Skip> {
    let mut recorder: Command = whit();
    recorder.current_dir(place);
    recorder.args(["record", "-v", "--engine=bpf", "-o", "perf.data"]).args(options);
    recorder.arg("--").arg(python).args(program);
    let output = whit_testing::run::record(&mut recorder)?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The call chains, innermost frame first.
fn chains(place: &Path) -> Vec<Vec<Frame>> {
    let mut printer = whit();
    printer.current_dir(place).args(["script", "-F", "comm,ip,sym,srcline", "-i", "perf.data"]);
    let printed = text(&mut printer);
    printed.split("\n\n").filter(|sample| !sample.trim().is_empty()).map(frames).collect()
}

/// Below the head, a line for each frame, and one with its source line below some.
fn frames(sample: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in sample.trim_start_matches('\n').lines().skip(1) {
        let line = line.trim();
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        if u64::from_str_radix(first, 16).is_ok() {
            frames.push(Frame { symbol: rest.to_owned(), line: None });
        } else if let Some(frame) = frames.last_mut() {
            frame.line = line.rsplit_once(':').and_then(|(_, line)| line.parse().ok());
        }
    }
    frames
}

/// The stacks that the program said, by their innermost function: functions and lines, innermost first.
fn known(place: &Path) -> BTreeMap<String, Vec<(String, u32)>> {
    let bytes = std::fs::read(place.join("known.json")).expect("the program's stacks");
    let known: BTreeMap<String, Vec<(String, u32)>> = serde_json::from_slice(&bytes).expect("JSON");
    let python = |name: String| format!("py::{name}");
    let frames = |frames: Vec<(String, u32)>| {
        frames.into_iter().map(|(name, line)| (python(name), line)).collect()
    };
    known.into_iter().map(|(leaf, stack)| (python(leaf), frames(stack))).collect()
}

/// Frames that are as the program says, and all; samples of its leaves.
#[derive(Default, Debug)]
struct Agreement {
    equal: usize,
    all: usize,
    samples: BTreeMap<String, usize>,
    unequal: Vec<String>,
}

/// Compares the chains whose innermost interpreted function is a leaf. Leaves have loops: their own line may be any.
fn compare(chains: &[Vec<Frame>], known: &BTreeMap<String, Vec<(String, u32)>>) -> Agreement {
    let mut agreement = Agreement::default();
    for chain in chains {
        let python: Vec<_> =
            chain.iter().filter(|frame| frame.symbol.starts_with("py::")).collect();
        let Some(expected) = python.first().and_then(|leaf| known.get(&leaf.symbol)) else {
            continue;
        };
        *agreement.samples.entry(expected[0].0.clone()).or_default() += 1;
        agreement.all += python.len().max(expected.len());
        let callers = python.iter().zip(expected).skip(1);
        let equal = callers
            .filter(|(frame, (name, line))| frame.symbol == *name && frame.line == Some(*line));
        let equal = 1 + equal.count();
        agreement.equal += equal;
        if equal < python.len().max(expected.len()) && agreement.unequal.len() < 3 {
            agreement.unequal.push(format!("{chain:#?} is not {expected:#?}"));
        }
    }
    agreement
}

fn check_version(name: &str, candidates: &[&str], version: &str) {
    check(name, || {
        probe::own_events()?;
        probe::bpf_stacks()?;
        let python = python(candidates, version)?;
        let place = tempfile::tempdir().expect("make a directory");
        let said = record(place.path(), &python, &["-e", "cpu-clock:u", "-F", "1999"])?;
        assert!(said.contains(" interpreted frames"), "{said}");
        assert!(!said.contains("have no names"), "{said}");
        assert!(!said.contains("without a name"), "{said}");
        let (chains, known) = (chains(place.path()), known(place.path()));
        let agreement = compare(&chains, &known);
        let share = agreement.equal as f64 / agreement.all.max(1) as f64;
        println!(
            "{name}: {} of {} frames, {:?}",
            agreement.equal, agreement.all, agreement.samples
        );
        assert!(share >= LEAST_EQUAL, "{share}: {agreement:#?}\n{said}");
        let samples: usize = agreement.samples.values().sum();
        assert!(samples >= LEAST_SAMPLES, "{samples}\n{said}");
        let missing = known.keys().filter(|leaf| !agreement.samples.contains_key(*leaf));
        assert_eq!(missing.count(), 0, "{agreement:#?}\n{said}");
        let walked = |chain: &&Vec<Frame>| {
            chain.iter().any(|frame| frame.symbol.starts_with("py::"))
                && !chain.iter().any(|frame| frame.symbol == LOOP)
        };
        let within = chains.iter().filter(|chain| {
            chain.iter().any(|frame| frame.symbol == LOOP || frame.symbol.starts_with("py::"))
        });
        let (within, walked) = (within.clone().count(), within.filter(walked).count());
        println!("{name}: {walked} of {within} samples in the loop have functions in its place");
        assert!(walked as f64 >= within as f64 * LEAST_WALKED, "{walked} of {within}\n{said}");
        Ok(())
    });
}

/// Functions that have an address one after another keep their own names, and those of bodies that run once have one.
fn check_passing(name: &str, version: &str) {
    check(name, || {
        probe::own_events()?;
        probe::bpf_stacks()?;
        let python = python(&[], version)?;
        let place = tempfile::tempdir().expect("make a directory");
        std::fs::write(place.path().join("passing.py"), PASSING).expect("write a program");
        let options = ["-e", "cpu-clock:u", "-F", "1999"];
        let said = record_program(place.path(), &python, &options, &["passing.py"])?;
        assert!(!said.contains("without a name"), "{said}");
        let number = |chain: &[Frame], kind: &str| -> Option<(usize, u32)> {
            chain.iter().enumerate().find_map(|(at, frame)| {
                let (module, number) = frame.symbol.strip_prefix("py::made_")?.split_once(kind)?;
                assert_eq!(module, number, "{chain:#?}");
                Some((at, number.parse().expect("a number")))
            })
        };
        let (mut before, mut seen) = (0, 0);
        for chain in &chains(place.path()) {
            let Some((at, inner)) = number(chain, ".inner_") else { continue };
            assert!(inner >= before, "{inner} after {before}: {chain:#?}");
            seen += usize::from(inner > before || seen == 0);
            before = inner;
            assert_eq!(number(chain, ".outer_"), Some((at + 1, inner)), "{chain:#?}");
            assert_eq!(number(chain, ".Body_"), Some((at + 2, inner)), "{chain:#?}");
        }
        println!("{name}: {seen} functions");
        assert!(seen >= LEAST_PASSING, "{seen}\n{said}");
        Ok(())
    });
}

#[test]
fn functions_of_python_3_11_that_pass_have_their_own_names() {
    check_passing("passing_functions_3_11", "3.11");
}

#[test]
fn functions_of_python_3_12_that_pass_have_their_own_names() {
    check_passing("passing_functions_3_12", "3.12");
}

/// Waits for the interpreter's lock, and a thread that never runs, have functions of Python.
#[test]
fn waits_have_pythons_functions() {
    check("python_waits", || {
        probe::own_events()?;
        probe::bpf_stacks()?;
        let python = python(&[], "3.12")?;
        let place = tempfile::tempdir().expect("make a directory");
        std::fs::write(place.path().join("locked.py"), LOCKED).expect("write a program");
        let mut recorder: Command = whit();
        recorder.current_dir(place.path());
        recorder.args(["record", "-v", "--engine=bpf", "--switch-events", "-e", "cpu-clock"]);
        recorder.args(["-F", "99", "-o", "perf.data", "--"]).arg(python).arg("locked.py");
        let output = whit_testing::run::record(&mut recorder)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let chains = chains(place.path());
        let waits: Vec<_> = chains
            .iter()
            .filter(|chain| chain.iter().any(|frame| frame.symbol.contains("futex_wait")))
            .collect();
        let passes =
            |chain: &[Frame], name: &str| chain.iter().filter(|frame| frame.symbol == name).count();
        let of_burn = waits.iter().filter(|chain| passes(chain, "py::__main__.burn") == 1).count();
        let named =
            waits.iter().filter(|chain| chain.iter().any(|frame| frame.symbol.starts_with("py::")));
        let named = named.count();
        println!("python_waits: {named} of {} waits, {of_burn} of burn", waits.len());
        assert!(of_burn >= LEAST_WAITS, "{of_burn} of {}\n{said}", waits.len());
        assert!(named as f64 >= waits.len() as f64 * LEAST_NAMED_WAITS, "{named}\n{said}");
        let asleep = chains.iter().filter(|chain| passes(chain, "py::__main__.sleep_long") == 31);
        assert!(asleep.count() >= 1, "{said}");
        Ok(())
    });
}

#[test]
fn python_3_11_has_the_stacks_that_it_says() {
    check_version("python_stacks_3_11", &[], "3.11");
}

#[test]
fn python_3_11_of_the_distribution_has_the_stacks_that_it_says() {
    check_version("python_stacks_3_11_static", &["/usr/bin/python3.11"], "3.11");
}

#[test]
fn python_3_12_has_the_stacks_that_it_says() {
    check_version("python_stacks_3_12", &[], "3.12");
}

#[test]
fn python_3_13_has_the_stacks_that_it_says() {
    check_version("python_stacks_3_13", &[], "3.13");
}

#[test]
fn python_3_14_has_the_stacks_that_it_says() {
    check_version("python_stacks_3_14", &[], "3.14");
}
