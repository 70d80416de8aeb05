//! Recordings of a wanted size, made once and kept.
//!
//! A recording goes stale with the program that it shows, so the cache keeps a copy of the
//! workload under a key made from its bytes, and records that copy.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;
use serde::Serialize;

use crate::disk;
use crate::error::{self, Error};
use crate::named::named;
use crate::peer::perf;
use whit_measure::measure::{self, Outcome, command_line};
use whit_types::ByteSize;

/// Sampling frequency of the recordings.
pub(crate) const FREQUENCY_HZ: u32 = 5000;
/// Bytes of stack in each sample.
pub(crate) const STACK_SIZE_BYTES: u32 = 8192;
/// A recording takes longer than this only where something is wrong.
const RECORDING_LIMIT: Duration = Duration::from_secs(1800);
/// For how long whit records to learn how fast the recording grows.
const CALIBRATION_S: f64 = 2.0;
/// A recording may miss the size that was asked for by so much of it.
const SIZE_TOLERANCE: f64 = 0.25;
/// Longer than any recording: the recorder ends the workload.
const ENDLESS_S: &str = "100000";

/// The program that makes the recordings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum RecorderKind {
    /// The installed `perf record`.
    Perf,
    /// The whit that is compared.
    Whit,
}

named!(RecorderKind);

/// How recordings are made.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(crate) kind: RecorderKind,
    pub(crate) whit: PathBuf,
    /// The event, or none for the recorder's default.
    pub(crate) event: Option<String>,
}

/// One recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Recording {
    /// File or directory of the recording.
    pub(crate) path: PathBuf,
    pub(crate) size_bytes: u64,
    /// Names of the recorded events, where perf is here to tell them.
    pub(crate) events: Vec<String>,
    /// The command that made it; empty for a recording that was there before.
    pub(crate) command: String,
}

impl Recording {
    /// Description of an existing file.
    pub(crate) fn existing(path: &Path) -> Result<Recording, Error> {
        let metadata = fs::metadata(path).map_err(error::file("open", path))?;
        let (path, size_bytes) = (path.to_owned(), metadata.len());
        Ok(Recording { events: events(&path), path, size_bytes, command: String::new() })
    }
}

/// The recordings of one workload by one recorder.
pub(crate) struct Cache {
    directory: PathBuf,
    workload: PathBuf,
    recorder: Recorder,
}

impl Cache {
    /// Opens the cache below `root`, made if need be, for the program `workload`, which takes
    /// `--seconds S`.
    pub(crate) fn open(root: &Path, workload: &Path, recorder: Recorder) -> Result<Cache, Error> {
        let program = fs::read(workload).map_err(error::file("read the workload", workload))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&program);
        let directory = root.join(format!("workload-{:016x}", hasher.finish()));
        fs::create_dir_all(&directory).map_err(error::file("create", &directory))?;
        // The recording names the program by its path: that has to be an absolute one.
        let directory = fs::canonicalize(&directory).map_err(error::file("find", &directory))?;
        let copy = directory.join(file_name(workload));
        if !copy.exists() {
            let partial = copy.with_extension("partial");
            fs::copy(workload, &partial).map_err(error::file("copy the workload to", &partial))?;
            fs::rename(&partial, &copy).map_err(error::file("rename to", &copy))?;
        }
        Ok(Cache { directory, workload: copy, recorder })
    }

    /// Fails where those of `sizes` that are not there yet would not fit on the disk.
    pub(crate) fn require_space(&self, sizes: &[ByteSize]) -> Result<(), Error> {
        let missing = sizes.iter().filter(|size| !self.path(**size).exists());
        let needed = missing.fold(0u64, |sum, size| sum.saturating_add(size.0));
        disk::require(
            &self.directory,
            ByteSize(needed),
            "choose smaller --sizes, or another --cache",
        )
    }

    /// The recording of `size`, made unless it is there; `say` gets a message before one is made.
    pub(crate) fn recording(
        &self,
        size: ByteSize,
        say: &mut dyn FnMut(&str),
    ) -> Result<Recording, Error> {
        let path = self.path(size);
        let command_path = path.with_extension("command");
        if !path.exists() {
            say(&format!("recording {size} of {}", self.workload.display()));
            let command = self.make(size, &path)?;
            fs::write(&command_path, command).map_err(error::file("write", &command_path))?;
        }
        let command = fs::read_to_string(&command_path).unwrap_or_default();
        Ok(Recording { command, ..Recording::existing(&path)? })
    }

    fn path(&self, size: ByteSize) -> PathBuf {
        let recorder = self.recorder.kind;
        let event = self.recorder.event.as_deref().unwrap_or("default");
        let event: String =
            event.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let stack = STACK_SIZE_BYTES;
        let name = format!("{recorder}-{event}-{FREQUENCY_HZ}Hz-dwarf{stack}-{size}.data");
        self.directory.join(name)
    }

    /// Records under another name first: a file with the final name is a whole one.
    fn make(&self, size: ByteSize, path: &Path) -> Result<String, Error> {
        let partial = path.with_extension("partial");
        let command = match self.recorder.kind {
            RecorderKind::Perf => {
                let limit = ["--no-buildid-cache".to_owned(), format!("--max-size={}B", size.0)];
                self.record(&partial, perf(), &limit, ENDLESS_S)?
            }
            RecorderKind::Whit => {
                let whit = &self.recorder.whit;
                self.record(&partial, whit.clone(), &[], &CALIBRATION_S.to_string())?;
                let bytes = file_size(&partial)?.max(1);
                let seconds = CALIBRATION_S * size.0 as f64 / bytes as f64;
                self.record(&partial, whit.clone(), &[], &format!("{seconds:.1}"))?
            }
        };
        let actual = file_size(&partial)?;
        if (actual as f64) < (1.0 - SIZE_TOLERANCE) * size.0 as f64 {
            bail!(
                "recording the workload gave {} instead of {size} (`{command}`): is the sampling rate \
                 limited (/proc/sys/kernel/perf_event_max_sample_rate)?",
                ByteSize(actual)
            );
        }
        fs::rename(&partial, path).map_err(error::file("rename to", path))?;
        remove_those_that_begin_with(&self.directory, &file_name(&partial))?;
        Ok(command)
    }

    fn record(
        &self,
        output: &Path,
        program: PathBuf,
        options: &[String],
        seconds: &str,
    ) -> Result<String, Error> {
        let mut words = vec!["record".to_owned(), "-F".into(), FREQUENCY_HZ.to_string()];
        words.extend(["--call-graph".into(), format!("dwarf,{STACK_SIZE_BYTES}")]);
        words.extend(self.recorder.event.iter().flat_map(|e| ["-e".to_owned(), e.clone()]));
        words.extend(options.iter().cloned());
        words.extend(["-o".into(), output.display().to_string(), "--".into()]);
        words.push(self.workload.display().to_string());
        words.extend(["--seconds".into(), seconds.to_owned()]);
        let line = command_line(&program, &words);
        let mut command = Command::new(&program);
        command.args(&words).env("PERF_CONFIG", "/dev/null");
        let run = measure::run(command, RECORDING_LIMIT).map_err(error::run(&program))?;
        // perf passes on that it has ended the workload at --max-size; the size tells whether it
        // went well.
        match run.outcome {
            Outcome::Success => Ok(line),
            Outcome::Failed { .. }
                if self.recorder.kind == RecorderKind::Perf && output.exists() =>
            {
                Ok(line)
            }
            Outcome::Failed { status, stderr } => {
                Err(error::recording(&line, format_args!("ended with {status}"), &stderr))
            }
            Outcome::TimedOut { limit_s } => {
                Err(error::recording(&line, format_args!("ran for more than {limit_s} s"), ""))
            }
        }
    }
}

/// Names of the events of a recording; empty where perf cannot tell.
fn events(path: &Path) -> Vec<String> {
    let output = Command::new(perf()).arg("evlist").arg("-i").arg(path).output();
    let Ok(output) = output else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    // Dummy events, which only carry sideband records, and advice stand there too.
    let is_event =
        |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("dummy");
    text.lines().map(str::trim).filter(is_event).map(str::to_owned).collect()
}

fn file_size(path: &Path) -> Result<u64, Error> {
    Ok(fs::metadata(path).map_err(error::file("find the recording", path))?.len())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Removes the files and folders in `directory` whose names begin with `prefix`.
pub(crate) fn remove_those_that_begin_with(directory: &Path, prefix: &str) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(error::file("read", directory))? {
        let path = entry.map_err(error::file("read", directory))?.path();
        if file_name(&path).starts_with(prefix) {
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            removed.map_err(error::file("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_testing::run::write_script;

    /// Stands in for whit: "records" 1000 bytes per second of workload into the file after -o,
    /// and counts its runs.
    const RECORDER: &str = r#"
        echo run >> "$(dirname "$0")/runs"
        while [ $# -gt 0 ]; do
            case $1 in -o) out=$2; shift;; --seconds) seconds=$2; shift;; esac; shift
        done
        bytes=$(awk "BEGIN { print int($seconds * 1000) }")
        head -c "$bytes" /dev/zero > "$out""#;

    fn cache(root: &Path, recorder: &str) -> Cache {
        let (whit, workload) = (root.join("whit"), root.join("program"));
        write_script(&whit, recorder);
        write_script(&workload, "exit 0");
        let recorder = Recorder { kind: RecorderKind::Whit, whit, event: Some("cycles:u".into()) };
        Cache::open(&root.join("cache"), &workload, recorder).unwrap()
    }

    #[test]
    fn a_recording_is_made_to_measure_once_and_reused() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), RECORDER);
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let first = cache.recording(ByteSize(50_000), &mut say).unwrap();
        assert_eq!(first.size_bytes, 50_000);
        assert!(first.command.contains("-e cycles:u"), "{first:?}");
        let second = cache.recording(ByteSize(50_000), &mut say).unwrap();
        assert_eq!(first, second);
        assert_eq!(said.len(), 1);
        let runs = fs::read_to_string(root.path().join("runs")).unwrap();
        assert_eq!(runs.lines().count(), 2, "one to calibrate, one for good");
        cache.require_space(&[ByteSize(50_000)]).unwrap();
    }

    #[test]
    fn another_workload_has_another_place() {
        let root = tempfile::tempdir().unwrap();
        let before = cache(root.path(), RECORDER);
        write_script(root.path().join("program"), "exit 1");
        let recorder = before.recorder.clone();
        let after = Cache::open(&root.path().join("cache"), &root.path().join("program"), recorder);
        assert_ne!(before.directory, after.unwrap().directory);
    }

    #[test]
    fn a_recorder_that_fails_is_quoted() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), "echo no permission >&2; exit 1");
        let error = cache.recording(ByteSize(1), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("no permission") && error.contains("exit code 1"), "{error}");
    }

    #[test]
    fn a_recording_that_comes_out_too_small_is_refused_and_not_kept() {
        let root = tempfile::tempdir().unwrap();
        // Grows fast while calibrated, and not at all afterwards.
        let recorder = r#"
            for word; do case $previous in -o) out=$word;; esac; previous=$word; done
            [ -e "$out" ] && bytes=10 || bytes=100000
            head -c $bytes /dev/zero > "$out""#;
        let cache = cache(root.path(), recorder);
        let size = ByteSize(50_000);
        let error = cache.recording(size, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("recording the workload gave"), "{error}");
        assert!(!cache.path(size).exists());
    }

    #[test]
    fn too_much_for_the_disk_is_refused_before_it_is_written() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), RECORDER);
        let error = cache.require_space(&[ByteSize(u64::MAX)]).unwrap_err();
        assert!(error.to_string().contains("the benchmark needs"), "{error}");
    }
}
