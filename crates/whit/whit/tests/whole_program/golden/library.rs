//! Loading recordings without starting a program for each, and showing them in every way.

use std::collections::BTreeMap;
use std::io::{Seek, Write, sink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use whit_page::{HtmlOptions, write_html};
use whit_perfdata::reader::Recording;
use whit_profile::model::{EventId, NodeId, Profile};
use whit_profile::script::{Format, Script, ScriptedFrame, ScriptedSample};
use whit_profile::{ReadOptions, Reading, Samples};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_view::hists::HistsOptions;
use whit_view::stdio::{self, StdioOptions};

use whit_testing::assert_plain;

/// Name under which recordings in memory are opened.
pub(crate) const NAME: &str = "some/perf.data";

/// Far more than any recording here takes, also on a busy machine. Not a measure of speed: without
/// it an endless loop would hold up all tests and not say which recording it is.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Putting a page together takes ten times as long as everything else, and most of it is the same
/// for every profile: one in so many recordings gets one.
const SHOWN_PER_PAGE: u64 = 20;
static WITHOUT_PAGE: AtomicU64 = AtomicU64::new(0);

/// The folder of the kept recordings.
pub(crate) fn folder() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/recordings/golden"))
        .canonicalize()
        .expect("tests/recordings/golden")
}

/// The result of loading a recording.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It could not be opened or loaded, and why.
    Refused(String),
    /// The recording loaded, and was shown.
    Shown(Box<Profile>),
}

impl Outcome {
    /// The profile of a recording that is expected to be readable at least in part.
    pub(crate) fn profile(self) -> Profile {
        match self {
            Outcome::Shown(profile) => *profile,
            Outcome::Refused(error) => panic!("refused: {error}"),
        }
    }

    /// The error of one that is not.
    pub(crate) fn error(self) -> String {
        match self {
            Outcome::Refused(error) => error,
            Outcome::Shown(profile) => panic!("shown, with warnings {:?}", profile.warnings),
        }
    }
}

/// Symbols of the kept programs and of no others.
pub(crate) fn options(threads: usize) -> ReadOptions {
    let mut symbols = SymbolizerConfig::new(DebugDirs {
        symfs: Some(folder().join("root")),
        ..DebugDirs::none()
    });
    symbols.kernel.kallsyms = Some(folder().join("kallsyms"));
    symbols.perf_map_dirs.clear();
    ReadOptions::new(threads, symbols)
}

/// Opens, loads and shows a recording in every way; a panic is one of the test that names `what`.
pub(crate) fn show(what: &str, bytes: &[u8]) -> Outcome {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).and_then(|()| file.rewind()).expect("fill a temporary file");
    guarded(what, || show_opened(Recording::from_file(Path::new(NAME), file)))
}

/// The same for a recording on disk.
pub(crate) fn show_path(what: &str, path: &Path) -> Outcome {
    guarded(what, || show_opened(Recording::open(path)))
}

fn guarded(what: &str, body: impl FnOnce() -> Outcome) -> Outcome {
    watch(Some(what));
    let outcome = catch_unwind(AssertUnwindSafe(body));
    watch(None);
    outcome.unwrap_or_else(|_| panic!("{what}: see the panic above"))
}

/// Text of samples that touches all that is said of them.
struct Numbers;

impl Format for Numbers {
    fn wants_chain(&self, _event: usize) -> bool {
        true
    }

    fn frame(&self, _event: usize, frame: &ScriptedFrame<'_>, out: &mut Vec<u8>) {
        out.extend(frame.function_offset.to_le_bytes());
    }

    fn sample(&self, sample: &ScriptedSample<'_>, out: &mut Vec<u8>) {
        out.extend(sample.start.time.0.to_le_bytes());
        sample.chain.append(out);
    }
}

pub(crate) fn show_opened(opened: Result<Recording, whit_perfdata::reader::OpenError>) -> Outcome {
    let recording = match opened {
        Ok(recording) => recording,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let options = options(1);
    let reading = Reading::open(&recording, &options);
    let profile = match reading.answer(Samples::default()) {
        Ok(profile) => profile,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let written = "into memory";
    let mut out = Vec::new();
    stdio::write_header(&mut out, &profile).expect(written);
    stdio::write_stats(&mut out, &profile).expect(written);
    stdio::write_report(&mut out, &profile, &StdioOptions::default()).expect(written);
    whit_view::json::write_json(&mut out, &profile, &HistsOptions::default()).expect(written);
    if WITHOUT_PAGE.fetch_add(1, Ordering::Relaxed).is_multiple_of(SHOWN_PER_PAGE) {
        write_html(&profile, &HtmlOptions::default(), &mut out).expect(written);
    }
    assert_plain("a view", &out);
    let script = Script { format: &Numbers, out: &mut sink() };
    let summary = reading.answer(script).expect(written);
    let counted: u64 = profile.events.iter().map(|event| event.samples).sum();
    assert_eq!(summary.samples, counted, "script and report disagree");
    Outcome::Shown(Box::new(profile))
}

/// Function names from the root to the leaf, with event and command: samples and periods.
pub(crate) type Stacks = BTreeMap<String, (u64, u64)>;

/// The content of a profile, without the numbers of its tables.
pub(crate) fn stacks(profile: &Profile) -> Stacks {
    let mut stacks = Stacks::new();
    for row in &profile.rows {
        let mut names = Vec::new();
        let mut node = row.node;
        while node != NodeId::NONE {
            let call = profile.nodes[node.index()];
            let function = &profile.functions[profile.frames[call.frame.index()].function.index()];
            names.push(function.name.exact());
            node = call.parent;
        }
        names.reverse();
        let EventId(event) = row.event;
        let event = &profile.events[event as usize].name;
        let comm = &profile.comms[row.comm.index()];
        let sum = stacks.entry(format!("{event} {comm} {}", names.join(";"))).or_default();
        *sum = (sum.0 + row.samples, sum.1 + row.period);
    }
    stacks
}

/// Notes that this thread has begun or ended something.
fn watch(what: Option<&str>) {
    static RUNNING: Mutex<BTreeMap<String, (Instant, String)>> = Mutex::new(BTreeMap::new());
    static WATCHER: Once = Once::new();
    WATCHER.call_once(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((_, what)) = running.values().find(|(at, _)| at.elapsed() > HANGS_AFTER)
                {
                    let _ = writeln!(std::io::stderr(), "{what}: no end after {HANGS_AFTER:?}");
                    std::process::abort();
                }
            }
        });
    });
    let id: ThreadId = std::thread::current().id();
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    match what {
        Some(what) => running.insert(format!("{id:?}"), (Instant::now(), what.to_owned())),
        None => running.remove(&format!("{id:?}")),
    };
}

/// Largest memory that this process has had, in bytes; absent where `/proc` does not say.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
