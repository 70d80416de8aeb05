//! Interleaved runs of peers on one file.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;

use crate::error::{self, Error};
use crate::peer::{Paths, Peer, PeerKind};
use whit_measure::measure::{self, Measurement, Outcome};
use whit_measure::summary::Summary;

/// The dataset of the recording, in the directory for output.
pub(crate) const DATASET: &str = "dataset";

/// How often, and how long at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// Runs of each peer.
    pub(crate) count: usize,
    pub(crate) limit: Duration,
}

/// All runs of one peer on one file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct PeerResult {
    pub(crate) peer: PeerKind,
    pub(crate) summary: Summary,
    /// Bytes of its standard output, where they were counted, in a run that is not timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) printed_bytes: Option<u64>,
    pub(crate) runs: Vec<Measurement>,
}

/// A peer with the reason for which it is to be left out.
pub(crate) type LeftOut<'a> = &'a dyn Fn(PeerKind) -> Option<String>;

/// Runs every peer once per round on `recording`, beginning each round with another one. A peer
/// that fails or exceeds the limit is not run again. `scratch` is a directory for the peers'
/// output; `on_run` is called for each run.
pub(crate) fn interleave(
    peers: &[Peer],
    recording: &Path,
    scratch: &Path,
    rounds: Rounds,
    left_out: LeftOut<'_>,
    on_run: &mut dyn FnMut(usize, PeerKind, &Measurement),
) -> Result<Vec<PeerResult>, Error> {
    let mut runs: Vec<Vec<Measurement>> = vec![Vec::new(); peers.len()];
    let reasons: Vec<Option<String>> = peers.iter().map(|peer| left_out(peer.kind)).collect();
    for round in 0..rounds.count {
        for turn in 0..peers.len() {
            let index = (round + turn) % peers.len();
            let out = |run: &Measurement| run.outcome != Outcome::Success;
            if reasons[index].is_some() || runs[index].last().is_some_and(out) {
                continue;
            }
            let run = run_once(&peers[index], recording, scratch, rounds.limit)?;
            on_run(round, peers[index].kind, &run);
            runs[index].push(run);
        }
    }
    let results = peers.iter().zip(runs).zip(reasons).map(|((peer, runs), reason)| PeerResult {
        peer: peer.kind,
        summary: match reason {
            Some(reason) => Summary::NotRun { reason },
            None => Summary::of(&runs),
        },
        printed_bytes: None,
        runs,
    });
    Ok(results.collect())
}

/// Counts the bytes that each peer prints that went through its runs.
pub(crate) fn count_printed(
    peers: &[Peer],
    recording: &Path,
    scratch: &Path,
    results: &mut [PeerResult],
) -> Result<(), Error> {
    for (peer, result) in peers.iter().zip(results) {
        if matches!(result.summary, Summary::Measured { .. }) {
            let (dataset, output) = files(peer.kind, scratch);
            let paths = Paths { recording, dataset: &dataset, output: &output };
            let run = peer.command(&paths).stdin(Stdio::null()).output();
            let run = run.map_err(error::run(&peer.program))?;
            result.printed_bytes = run.status.success().then_some(run.stdout.len() as u64);
        }
    }
    Ok(())
}

/// The dataset for all peers, and the output of one.
fn files(kind: PeerKind, scratch: &Path) -> (PathBuf, PathBuf) {
    (scratch.join(DATASET), scratch.join(format!("{kind}.out")))
}

fn run_once(
    peer: &Peer,
    recording: &Path,
    scratch: &Path,
    limit: Duration,
) -> Result<Measurement, Error> {
    let (dataset, output) = files(peer.kind, scratch);
    let paths = Paths { recording, dataset: &dataset, output: &output };
    let run = measure::run(peer.command(&paths), limit).map_err(error::run(&peer.program))?;
    crate::recording::remove_those_that_begin_with(scratch, &format!("{}.", peer.kind))?;
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer whose program is a script that gets the usual arguments.
    fn peer(directory: &Path, kind: PeerKind, script: &str) -> Peer {
        let program = directory.join(kind.to_string());
        whit_testing::run::write_script(&program, script);
        Peer {
            kind,
            program,
            version: "1".into(),
            command: "script".into(),
            function: String::new(),
        }
    }

    #[test]
    fn rounds_rotate_and_bad_peers_stop() {
        let directory = tempfile::tempdir().unwrap();
        let peers = [
            peer(directory.path(), PeerKind::Whit, "exit 0"),
            peer(directory.path(), PeerKind::PerfReport, "exit 1"),
            // The fourth argument is the output file.
            peer(directory.path(), PeerKind::Samply, "echo profile > \"$4\""),
            peer(directory.path(), PeerKind::PerfScript, "exit 0"),
        ];
        let rounds = Rounds { count: 3, limit: Duration::from_secs(600) };
        let left_out = |kind| (kind == PeerKind::PerfScript).then(|| "too slow before".to_owned());
        let mut order = Vec::new();
        let results = interleave(
            &peers,
            Path::new("FILE"),
            directory.path(),
            rounds,
            &left_out,
            &mut |round, kind, _| order.push((round, kind)),
        )
        .unwrap();
        use PeerKind::{PerfReport, Samply, Whit};
        let expected = [
            (0, Whit),
            (0, PerfReport),
            (0, Samply),
            (1, Samply),
            (1, Whit),
            (2, Samply),
            (2, Whit),
        ];
        assert_eq!(order, expected);
        assert!(matches!(results[0].summary, Summary::Measured { runs: 3, .. }));
        assert!(matches!(results[1].summary, Summary::Failed { .. }));
        assert!(
            matches!(&results[3].summary, Summary::NotRun { reason } if reason == "too slow before")
        );
        assert!(!directory.path().join("samply.out").exists(), "outputs are removed");
    }

    #[test]
    fn printed_bytes_are_those_of_peers_that_went_through() {
        let directory = tempfile::tempdir().unwrap();
        let peers = [
            peer(directory.path(), PeerKind::WhitBrief, "echo brief; echo noise >&2"),
            peer(directory.path(), PeerKind::PerfReport, "echo half; exit 1"),
        ];
        let rounds = Rounds { count: 1, limit: Duration::from_secs(600) };
        let (file, scratch) = (Path::new("FILE"), directory.path());
        let mut results =
            interleave(&peers, file, scratch, rounds, &|_| None, &mut |_, _, _| {}).unwrap();
        count_printed(&peers, file, scratch, &mut results).unwrap();
        let printed: Vec<_> = results.iter().map(|result| result.printed_bytes).collect();
        assert_eq!(printed, [Some(6), None]);
    }

    #[test]
    fn a_peer_that_vanished_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let mut peer = peer(directory.path(), PeerKind::Whit, "exit 0");
        peer.program = "/nonexistent/whit".into();
        let rounds = Rounds { count: 1, limit: Duration::from_secs(600) };
        let error = interleave(
            &[peer],
            Path::new("FILE"),
            directory.path(),
            rounds,
            &|_| None,
            &mut |_, _, _| {},
        );
        assert!(error.unwrap_err().to_string().contains("/nonexistent/whit"));
    }
}
