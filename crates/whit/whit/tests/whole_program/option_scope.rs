//! Each option of a subcommand that reads acts on each answer and output, or is refused: the whole product, on stored
//! recordings.

mod samples;

use samples::{COMMANDS, Cell, HOW, NOT_STORED, NOWHERE, Sample, Walk};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;

/// The word that stands for the path of a page.
const PAGE: &str = "PAGE";

/// The printed and written result of a run.
#[derive(Clone, PartialEq, Eq)]
struct Shown {
    code: i32,
    output: Vec<u8>,
    message: String,
}

impl Shown {
    /// The command line is refused since an option would be dropped.
    fn is_refusal(&self) -> bool {
        let words = ["has no effect", "has an effect with", "are two answers"];
        self.code == 2 && self.output.is_empty() && words.iter().any(|it| self.message.contains(it))
    }

    /// Another check refuses the command line: two options contradict each other.
    fn is_conflict(&self) -> bool {
        self.code == 2 && self.output.is_empty()
    }
}

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/recordings").canonicalize().unwrap()
}

fn path_of(recording: &str) -> PathBuf {
    match recording {
        "waits" => recordings().join("waits/waits.data"),
        "demo" => recordings().join("demo/demo.data"),
        "requests" => recordings().join("requests/requests.data"),
        name => recordings().join("golden").join(name).join("recording.data"),
    }
}

/// Where the stored programs are; `None` for a recording that has all names itself.
fn root_of(recording: &str) -> Option<PathBuf> {
    static DEMO: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let root = tempfile::tempdir().unwrap();
        let unpack = recordings().join("demo/unpack.sh");
        assert!(Command::new(unpack).arg(root.path()).status().unwrap().success());
        root
    });
    match recording {
        "demo" => Some(DEMO.path().to_owned()),
        "waits" | "requests" => None,
        _ => Some(recordings().join("golden/root")),
    }
}

fn without(text: &[u8], path: &str) -> Vec<u8> {
    String::from_utf8_lossy(text).replace(path, "").into_bytes()
}

fn run(subcommand: &str, cell: &Cell, more: &[&str], recording: &str) -> Shown {
    let arguments: Vec<&str> = cell.arguments.iter().chain(more).copied().collect();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let input = folder.path().join("perf.data");
    std::os::unix::fs::symlink(path_of(recording), &input).unwrap();
    let mut whit = Command::new(env!("CARGO_BIN_EXE_whit"));
    whit.arg(subcommand).current_dir(folder.path()).stdin(Stdio::null());
    // Without names from this machine.
    if let Some(root) = root_of(recording) {
        whit.arg("--symfs").arg(root);
        whit.arg("--kallsyms").arg(recordings().join("golden/kallsyms"));
    }
    for argument in arguments {
        if argument == PAGE {
            whit.arg(&page)
        } else {
            whit.arg(argument)
        };
    }
    let output = whit.output().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let place = place.to_str().unwrap();
    let mut shown = without(&output.stdout, place);
    let mut written: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
    written.sort();
    for file in written.iter().filter(|file| **file != input) {
        shown.extend(without(&fs::read(file).unwrap(), place));
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Shown { code: output.status.code().unwrap_or(-1), output: shown, message }
}

/// Cell, options and recording of a run without the option.
type BaseKey = (usize, Vec<&'static str>, &'static str);

/// Runs without the option, which many samples share.
#[derive(Default)]
struct Bases(Mutex<BTreeMap<BaseKey, Shown>>);

impl Bases {
    fn get(&self, walk: &Walk, cell: usize, sample: &Sample, recording: &'static str) -> Shown {
        let key = (cell, sample.base.to_vec(), recording);
        if let Some(shown) = self.0.lock().unwrap().get(&key) {
            return shown.clone();
        }
        let shown = run(walk.subcommand, &walk.cells[cell], sample.base, recording);
        self.0.lock().unwrap().insert(key, shown.clone());
        shown
    }
}

/// The result of a sample in a cell.
#[derive(PartialEq, Eq)]
enum Outcome {
    Refused,
    Acts,
    /// Neither, with all that was seen.
    Dropped(String),
}

fn outcome(walk: &Walk, cell: usize, sample: &Sample, bases: &Bases) -> Outcome {
    let shown_cell = &walk.cells[cell];
    let both: Vec<&str> = sample.base.iter().chain(sample.args).copied().collect();
    let mut seen = Vec::new();
    let is_stored = |(answer, options): &(&str, &[&str])| {
        !(shown_cell.arguments.contains(answer) && options.contains(&sample.option))
    };
    let is_unseen = sample.is_accepted_alone || !NOT_STORED.iter().all(is_stored);
    for recording in sample.recordings.iter().chain(&shown_cell.recording) {
        let shown = run(walk.subcommand, shown_cell, &both, recording);
        if shown.is_refusal() || shown.is_conflict() {
            return Outcome::Refused;
        }
        if is_unseen {
            // Where it fails, the recording has no such answer, or not the code of its functions.
            if shown.code == 0 {
                return Outcome::Acts;
            }
            continue;
        }
        let base = bases.get(walk, cell, sample, recording);
        // Without the option, the recording has no such answer, or the other options are refused.
        if base.code != 0 && shown.code != 0 {
            seen.push(format!("{recording}: without it {}", base.message.trim()));
            continue;
        }
        if shown.output != base.output {
            return Outcome::Acts;
        }
        seen.push(format!("{recording}: no effect (code {})", shown.code));
    }
    if is_unseen {
        return Outcome::Refused;
    }
    let all = [&[walk.subcommand][..], shown_cell.arguments, &both].concat().join(" ");
    Outcome::Dropped(format!("whit {all}: {}", seen.join("; ")))
}

/// Walks all samples through all cells of a subcommand, with as many workers as there are CPUs. Samples that are dropped
/// in a cell, and samples that act in none: their values may be wrong, so that each refusal says nothing of the table.
fn offences(walk: &Walk) -> Vec<String> {
    let samples: Vec<&Sample> = walk.samples().collect();
    let jobs: Vec<(usize, usize)> = (0..walk.cells.len())
        .flat_map(|cell| (0..samples.len()).map(move |sample| (cell, sample)))
        .collect();
    let (bases, next, found) = (Bases::default(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((cell, sample)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = outcome(walk, *cell, samples[*sample], &bases);
            found.lock().unwrap().push((*sample, outcome));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().unwrap();
    let acts = |sample: usize| found.contains(&(sample, Outcome::Acts));
    let acts_nowhere = (0..samples.len())
        .filter(|sample| !acts(*sample))
        .map(|sample| samples[sample])
        .filter(|sample| !NOWHERE.contains(&(walk.subcommand, sample.option)))
        .map(|sample| format!("whit {} {}: acts nowhere", walk.subcommand, sample.args.join(" ")));
    let mut offences: Vec<String> = acts_nowhere.collect();
    offences.extend(found.into_iter().filter_map(|(_, outcome)| match outcome {
        Outcome::Dropped(seen) => Some(seen),
        Outcome::Refused | Outcome::Acts => None,
    }));
    offences.sort();
    offences
}

#[test]
fn each_option_acts_on_each_answer_or_is_refused() {
    for walk in COMMANDS {
        let found = offences(walk);
        assert!(
            found.is_empty(),
            "{} options are dropped or act nowhere:\n{}",
            found.len(),
            found.join("\n")
        );
    }
}

/// Hidden options are those of perf that are refused with their replacement.
#[test]
fn each_option_has_a_sample() {
    let command = whit_cli::command();
    for walk in COMMANDS {
        let subcommand = command.find_subcommand(walk.subcommand).unwrap();
        let walked: BTreeSet<&str> = walk.samples().map(|sample| sample.option).collect();
        let options = subcommand.get_arguments().filter(|argument| !argument.is_hide_set());
        for option in options.filter_map(|argument| argument.get_long()) {
            let is_walked = walked.contains(option) || HOW.contains(&option);
            assert!(is_walked, "whit {} --{option} has no sample", walk.subcommand);
        }
    }
}

#[test]
fn options_that_say_how_to_read_are_accepted_everywhere() {
    for walk in COMMANDS {
        for cell in walk.cells {
            if run(walk.subcommand, cell, &[], "waits").code != 0 {
                continue;
            }
            let more =
                ["--threads", "1", "--color=never", "--no-pager", "--demangle", "--no-debuginfod"];
            let shown = run(walk.subcommand, cell, &more, "waits");
            assert_eq!(
                shown.code, 0,
                "{} {:?}: {}",
                walk.subcommand, cell.arguments, shown.message
            );
        }
    }
}
