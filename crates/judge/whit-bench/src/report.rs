//! The comparison behind `whit bench report`: who reads the same recording how fast.

mod render;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::args::{heading, rounds, seconds};
use crate::bench::Say;
use crate::compare::{DATASET, PeerResult, Rounds, count_printed, interleave};
use crate::error::{self, Error, come_through};
use crate::installed::{Absent, apart};
use crate::peer::{Paths, Peer, PeerKind};
use crate::recording::{RecorderKind, Recording};
use crate::recordings::RecordingArgs;
use crate::scratch::Scratch;
use whit_measure::measure::{self, Measurement, Outcome};
use whit_measure::summary::Summary;
use whit_types::ByteSize;

/// Recordings, the recorder that makes them, and runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct Readers {
    #[command(flatten)]
    pub(crate) recordings: RecordingArgs,

    /// Runs of each peer on each recording
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds(),
          help_heading = heading::RUNS)]
    rounds: usize,

    /// Seconds after which a run is killed
    #[arg(long = "timeout", value_name = "SECONDS", default_value = "600",
          value_parser = seconds(1..=86_400), help_heading = heading::SETUP)]
    limit: Duration,

    /// Recorder that makes the recordings
    #[arg(long, value_name = "perf|whit", default_value = "perf",
          hide_possible_values = true, help_heading = heading::COMPARED)]
    recorder: RecorderKind,
}

/// Peers with the function that they show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// Sizes of the recordings to make, where none is named.
    pub(crate) sizes: &'a [ByteSize],
    /// Peers, in the order of the table.
    pub(crate) peers: &'a [PeerKind],
    /// The function that some of them show.
    pub(crate) function: &'a str,
    /// Count the bytes that they print.
    pub(crate) counts_printed: bool,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// Those that took part.
    pub(crate) peers: Vec<Peer>,
    /// Those that could not.
    pub(crate) absent: Vec<Absent<PeerKind>>,
    /// One entry per recording.
    pub(crate) files: Vec<FileResult>,
}

/// All results on one recording.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct FileResult {
    /// The recording that all peers read.
    pub(crate) recording: Recording,
    /// One entry per peer.
    pub(crate) results: Vec<PeerResult>,
}

impl Readers {
    /// Makes the recordings that are missing, and runs every peer on every one, smallest first. A peer that exceeds
    /// the limit is left out of larger files.
    pub(crate) fn compare(
        &self,
        question: Question<'_>,
        say: Say<'_>,
    ) -> Result<Comparison, Error> {
        let mut recordings = self.recordings.make(self.recorder, question.sizes, say)?;
        recordings.sort_by_key(|recording| recording.size_bytes);
        let (peers, absent) = detect(&self.recordings.whit, question, say);
        let mut too_slow = TooSlow::default();
        let mut files = Vec::new();
        for recording in recordings {
            say(&format!("{} ({})", recording.path.display(), ByteSize(recording.size_bytes)));
            warm(&recording.path)?;
            let results = self.read(&recording.path, &peers, question, &too_slow, say)?;
            too_slow.learn(&results);
            files.push(FileResult { recording, results });
        }
        Ok(Comparison { peers, absent, files })
    }

    /// Runs every peer on one recording.
    fn read(
        &self,
        recording: &Path,
        peers: &[Peer],
        question: Question<'_>,
        too_slow: &TooSlow,
        say: Say<'_>,
    ) -> Result<Vec<PeerResult>, Error> {
        let scratch = Scratch::new(&self.recordings.cache)?;
        let no_dataset = make_dataset(peers, recording, scratch.path(), self.limit)?;
        let without = |kind: PeerKind| no_dataset.clone().filter(|_| kind.reads_dataset());
        let mut results = interleave(
            peers,
            recording,
            scratch.path(),
            Rounds { count: self.rounds, limit: self.limit },
            &|kind| too_slow.reason(kind).or_else(|| without(kind)),
            &mut |round, kind, run| say(&describe(round, kind, run)),
        )?;
        if question.counts_printed {
            count_printed(peers, recording, scratch.path(), &mut results)?;
        }
        Ok(results)
    }
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
    let Some(export) = peers.iter().find(|peer| peer.kind == PeerKind::WhitExportParquet) else {
        return Ok(Some("nothing makes the dataset".to_owned()));
    };
    let dataset = scratch.join(DATASET);
    let run = measure::run(
        export.command(&Paths { recording, dataset: &dataset, output: &dataset }),
        limit,
    )
    .map_err(error::run(&export.program))?;
    Ok(come_through(&run).err().map(|reason| format!("the export: {reason}")))
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

fn detect(whit: &Path, question: Question<'_>, say: Say<'_>) -> (Vec<Peer>, Vec<Absent<PeerKind>>) {
    let kinds = question.peers.iter();
    let (peers, absent) = apart(kinds.map(|kind| Peer::detect(*kind, whit, question.function)));
    for missing in &absent {
        say(&format!("{} does not take part: {}", missing.kind, missing.reason));
    }
    (peers, absent)
}

/// Reads the file once, so that the first peer is not the one that waits for the disk.
fn warm(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let read = || io::copy(&mut File::open(path)?, &mut io::sink());
    read().map(drop).map_err(error::file("read", path))
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
    use crate::bench::{Figures, parsed};
    use whit_testing::run::write_program;

    /// A whit that says its version, and fails on files of more than ten bytes.
    const WHIT: &str = r#"#!/bin/sh
        [ "$1" = --version ] && { echo whit 0; exit 0; }
        [ $(wc -c < "$4") -le 10 ]"#;

    fn compare(
        root: &Path,
        peers: &[PeerKind],
        more: &[&str],
        say: Say<'_>,
    ) -> Result<Comparison, Error> {
        let at = |name: &str| root.join(name).display().to_string();
        let (whit, cache) = (at("whit"), at("cache"));
        let words = ["--whit", &whit, "--cache", &cache, "--rounds", "2"];
        let readers: Readers = parsed(&[&words[..], more].concat());
        let question = Question { sizes: &[], peers, function: "", counts_printed: false };
        readers.compare(question, say)
    }

    /// The options that name a small file and a large one.
    fn files(root: &Path) -> [String; 2] {
        [300, 5].map(|size| {
            let path = root.join(format!("{size}.data"));
            std::fs::write(&path, vec![0; size]).unwrap();
            format!("--file={}", path.display())
        })
    }

    #[test]
    fn smallest_first_each_on_its_own_and_nothing_left_behind() {
        let root = tempfile::tempdir().unwrap();
        write_program(root.path().join("whit"), WHIT);
        let [large, small] = files(root.path());
        let peers = [PeerKind::Whit];
        let comparison = compare(root.path(), &peers, &[&large, &small], &mut |_| {}).unwrap();
        let summaries: Vec<_> = comparison.files.iter().map(|f| &f.results[0].summary).collect();
        assert!(matches!(summaries[0], Summary::Measured { runs: 2, .. }), "{summaries:?}");
        assert!(matches!(summaries[1], Summary::Failed { .. }), "{summaries:?}");
        assert!(!comparison.succeeded());
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
        write_program(root.path().join("whit"), EXPORTER);
        let [large, small] = files(root.path());
        let of_dataset = PeerKind::WhitDatasetCommands;
        let peers = [of_dataset, PeerKind::WhitExportParquet];
        let comparison = compare(root.path(), &peers, &[&large, &small], &mut |_| {}).unwrap();
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
        let [_, small] = files(root.path());
        let mut said = String::new();
        let say = &mut |text: &str| said.push_str(text);
        let comparison = compare(root.path(), &[PeerKind::Whit], &[&small], say).unwrap();
        assert_eq!(comparison.absent.len(), 1);
        assert!(said.contains("whit does not take part"), "{said}");
    }
}
