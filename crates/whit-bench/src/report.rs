//! The comparison behind `whit bench report`: who reads the same recording how fast.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::Error;
use crate::compare::{DATASET, PeerResult, Rounds, count_printed, interleave};
use crate::peer::{AbsentPeer, Paths, Peer, PeerKind};
use crate::recording::{Cache, Recorder, Recording};
use crate::scratch::Scratch;
use crate::system::System;
use whit_measure::measure::{self, Measurement, Outcome};
use whit_measure::summary::Summary;
use whit_types::ByteSize;

/// Version of the JSON form of [`Comparison`]; a change that readers must know of raises it.
pub const SCHEMA: u32 = 1;

/// Peers and recordings of the comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes of the recordings to make.
    pub sizes: Vec<ByteSize>,
    /// Recordings to use as they are, beside those.
    pub files: Vec<PathBuf>,
    /// Program to record, which takes `--seconds S`.
    pub workload: PathBuf,
    /// Where recordings are kept.
    pub cache: PathBuf,
    /// How recordings are made.
    pub recorder: Recorder,
    /// Peers, in the order of the table.
    pub peers: Vec<PeerKind>,
    /// The function that some of them show.
    pub function: String,
    /// Count the bytes that they print.
    pub counts_printed: bool,
    /// Runs of each peer on each file, and how long each may take.
    pub rounds: usize,
    /// Limit for one run.
    pub limit: Duration,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Version of this document: [`SCHEMA`].
    pub schema: u32,
    /// The machine.
    pub system: System,
    /// Those that took part.
    pub peers: Vec<Peer>,
    /// Those that could not.
    pub absent: Vec<AbsentPeer>,
    /// One entry per recording.
    pub files: Vec<FileResult>,
}

/// All results on one recording.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FileResult {
    /// The recording that all peers read.
    pub recording: Recording,
    /// One entry per peer.
    pub results: Vec<PeerResult>,
}

impl Comparison {
    /// True where whit itself read every recording.
    pub fn whit_succeeded(&self) -> bool {
        let whit = |file: &FileResult| {
            let mut results = file.results.iter().filter(|result| result.peer.is_whit());
            results.all(|result| matches!(result.summary, Summary::Measured { .. }))
        };
        self.files.iter().all(whit)
    }
}

/// Makes the recordings that are missing, runs every peer on every one, smallest first, and reports
/// progress to `say`. A peer that exceeds the limit is left out of larger files.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let (peers, absent) = detect(options, say);
    let recordings = recordings(options, say)?;
    let rounds = Rounds { count: options.rounds, limit: options.limit };
    let mut too_slow = TooSlow::default();
    let mut files = Vec::new();
    for recording in recordings {
        say(&format!("{} ({})", recording.path.display(), ByteSize(recording.size_bytes)));
        warm(&recording.path)?;
        let scratch = Scratch::new(&options.cache)?;
        let no_dataset = make_dataset(&peers, &recording.path, scratch.path(), rounds.limit)?;
        let without = |kind: PeerKind| no_dataset.clone().filter(|_| kind.reads_dataset());
        let mut results = interleave(
            &peers,
            &recording.path,
            scratch.path(),
            rounds,
            &|kind| too_slow.reason(kind).or_else(|| without(kind)),
            &mut |round, kind, run| say(&describe(round, kind, run)),
        )?;
        if options.counts_printed {
            count_printed(&peers, &recording.path, scratch.path(), &mut results)?;
        }
        too_slow.learn(&results);
        files.push(FileResult { recording, results });
    }
    Ok(Comparison { schema: SCHEMA, system: System::detect(), peers, absent, files })
}

/// Exports the recording for those that read datasets; gives the reason for which there is none.
fn make_dataset(
    peers: &[Peer],
    recording: &Path,
    scratch: &Path,
    limit: Duration,
) -> Result<Option<String>, Error> {
    if !peers.iter().any(|peer| peer.kind.reads_dataset()) {
        return Ok(None);
    }
    let Some(export) = peers.iter().find(|peer| peer.kind == PeerKind::WhitParquet) else {
        return Ok(Some("nothing makes the dataset".to_owned()));
    };
    let dataset = scratch.join(DATASET);
    let run = measure::run(export.command(&Paths::new(recording, &dataset, &dataset)), limit)
        .map_err(|source| Error::Run { program: export.program.clone(), source })?;
    Ok(match run.outcome {
        Outcome::Success => None,
        Outcome::TimedOut { limit_s } => Some(format!("the export took more than {limit_s} s")),
        Outcome::Failed { status, stderr } => Some(format!("the export: {status}: {stderr}")),
    })
}

/// Peers that need not be tried on a larger file.
#[derive(Default)]
struct TooSlow(HashMap<PeerKind, u64>);

impl TooSlow {
    fn learn(&mut self, results: &[PeerResult]) {
        for result in results {
            if let Summary::TimedOut { limit_s, .. } = result.summary {
                self.0.insert(result.peer, limit_s);
            }
        }
    }

    fn reason(&self, kind: PeerKind) -> Option<String> {
        let limit_s = self.0.get(&kind)?;
        Some(format!("took more than {limit_s} s for a smaller file"))
    }
}

fn detect(options: &Options, say: &mut dyn FnMut(&str)) -> (Vec<Peer>, Vec<AbsentPeer>) {
    let (mut peers, mut absent) = (Vec::new(), Vec::new());
    for kind in &options.peers {
        match Peer::detect(*kind, &options.recorder.whit, &options.function) {
            Ok(peer) => peers.push(peer),
            Err(missing) => {
                say(&format!("{} does not take part: {}", missing.kind, missing.reason));
                absent.push(missing);
            }
        }
    }
    (peers, absent)
}

/// The recordings, smallest first.
fn recordings(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Vec<Recording>, Error> {
    let mut recordings = Vec::new();
    for path in &options.files {
        recordings.push(Recording::existing(path)?);
    }
    std::fs::create_dir_all(&options.cache).map_err(Error::file("create", &options.cache))?;
    if !options.sizes.is_empty() {
        let recorder = options.recorder.clone();
        let cache = Cache::open(&options.cache, &options.workload, recorder)?;
        cache.require_space(&options.sizes)?;
        for size in &options.sizes {
            recordings.push(cache.recording(*size, say)?);
        }
    }
    recordings.sort_by_key(|recording| recording.size_bytes);
    Ok(recordings)
}

/// Reads the file once, so that the first peer is not the one that waits for the disk.
fn warm(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let read = || io::copy(&mut File::open(path)?, &mut io::sink());
    read().map(drop).map_err(Error::file("read", path))
}

fn describe(round: usize, kind: PeerKind, run: &Measurement) -> String {
    let outcome = match &run.outcome {
        Outcome::Success => String::new(),
        Outcome::TimedOut { limit_s } => format!(", killed after {limit_s} s"),
        Outcome::Failed { status, stderr } => format!(", {status}: {stderr}"),
    };
    let memory = ByteSize(run.max_rss_bytes);
    format!("  round {}: {kind:<22} {:8.2} s {memory:>8}{outcome}", round + 1, run.wall_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Question;
    use crate::recording::RecorderKind;
    use std::os::unix::fs::PermissionsExt;

    /// A whit that says its version, and fails on files of more than ten bytes.
    const WHIT: &str = r#"#!/bin/sh
        [ "$1" = --version ] && { echo whit 0; exit 0; }
        [ $(wc -c < "$4") -le 10 ]"#;

    fn options(root: &Path, sizes_of_files: &[usize]) -> Options {
        let whit = root.join("whit");
        std::fs::write(&whit, WHIT).unwrap();
        std::fs::set_permissions(&whit, std::fs::Permissions::from_mode(0o755)).unwrap();
        let files = sizes_of_files.iter().map(|size| {
            let path = root.join(format!("{size}.data"));
            std::fs::write(&path, vec![0; *size]).unwrap();
            path
        });
        Options {
            sizes: Vec::new(),
            files: files.collect(),
            workload: root.join("none"),
            cache: root.join("cache"),
            recorder: Recorder { kind: RecorderKind::Perf, whit, event: None },
            peers: vec![PeerKind::Whit],
            function: String::new(),
            counts_printed: false,
            rounds: 2,
            limit: Duration::from_secs(600),
        }
    }

    #[test]
    fn smallest_first_each_on_its_own_and_nothing_left_behind() {
        let root = tempfile::tempdir().unwrap();
        let options = options(root.path(), &[300, 5]);
        let mut said = Vec::new();
        let comparison = compare(&options, &mut |text| said.push(text.to_owned())).unwrap();
        let summaries: Vec<_> = comparison.files.iter().map(|f| &f.results[0].summary).collect();
        assert!(matches!(summaries[0], Summary::Measured { runs: 2, .. }), "{summaries:?}");
        assert!(matches!(summaries[1], Summary::Failed { .. }), "{summaries:?}");
        assert!(!comparison.whit_succeeded());
        let left = std::fs::read_dir(root.path().join("cache")).unwrap().count();
        assert_eq!(left, 0, "the scratch directory is gone");
    }

    /// A whit that makes folders of exports, and asks only whole ones.
    const EXPORTER: &str = r#"#!/bin/sh
        [ "$1" = --version ] && { echo whit 0; exit 0; }
        [ "$1" = query ] && { test -e "$3/recording"; exit; }
        [ $(wc -c < "$5") -le 10 ] && mkdir -p "$3" && touch "$3/recording""#;

    #[test]
    fn a_dataset_is_made_before_it_is_asked() {
        let root = tempfile::tempdir().unwrap();
        let mut options = options(root.path(), &[300, 5]);
        std::fs::write(root.path().join("whit"), EXPORTER).unwrap();
        let of_dataset = PeerKind::WhitDataset(Question::Commands);
        options.peers = vec![of_dataset, PeerKind::WhitParquet];
        let comparison = compare(&options, &mut |_| {}).unwrap();
        let summaries = |file: usize| {
            let results = comparison.files[file].results.iter();
            results.map(|result| result.summary.clone()).collect::<Vec<_>>()
        };
        let both = summaries(0);
        assert!(both.iter().all(|it| matches!(it, Summary::Measured { runs: 2, .. })), "{both:?}");
        let [asked, exported] = &summaries(1)[..] else { panic!("two peers") };
        assert!(matches!(asked, Summary::NotRun { reason } if reason.contains("the export")));
        assert!(matches!(exported, Summary::Failed { .. }), "{exported:?}");
        assert_eq!(std::fs::read_dir(root.path().join("cache")).unwrap().count(), 0);
    }

    #[test]
    fn tools_that_were_too_slow_skip_larger_files() {
        let result =
            |peer, summary| PeerResult { peer, summary, printed_bytes: None, runs: Vec::new() };
        let mut too_slow = TooSlow::default();
        too_slow.learn(&[
            result(PeerKind::PerfScript, Summary::TimedOut { limit_s: 60, max_rss_bytes: 1 }),
            result(PeerKind::Samply, Summary::Failed { reason: "no".into() }),
        ]);
        assert!(too_slow.reason(PeerKind::PerfScript).unwrap().contains("60 s"));
        assert_eq!(too_slow.reason(PeerKind::Samply), None);
    }

    #[test]
    fn absent_peers_are_said_aloud() {
        let root = tempfile::tempdir().unwrap();
        let mut options = options(root.path(), &[5]);
        options.recorder.whit = "/nonexistent/whit".into();
        let mut said = String::new();
        let comparison = compare(&options, &mut |text| said.push_str(text)).unwrap();
        assert_eq!(comparison.absent.len(), 1);
        assert!(said.contains("whit does not take part"), "{said}");
    }
}
