//! Recordings of context switches with wake-ups: two threads that wake each other, so that a critical path has a piece
//! for nearly each switch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use whit_types::ByteSize;

use crate::bench::Say;
use crate::disk;
use crate::error::{self, Error, output_of};

/// In a round, each of the two threads leaves its CPU once.
const SWITCHES_OF_ROUND: u64 = 2;

/// Bytes of a switch with its wake-up in a recording, about.
const SWITCH_BYTES: u64 = 250;

/// The recording of about so many context switches below `directory`, made unless it is there; `say` gets a message
/// before. A thread that finds its turn does not wait, and one that is taken off leaves its CPU once more.
pub(crate) fn recording(
    directory: &Path,
    whit: &Path,
    workload: &Path,
    switches: u64,
    say: Say<'_>,
) -> Result<PathBuf, Error> {
    fs::create_dir_all(directory).map_err(error::file("create", directory))?;
    let path = directory.join(format!("switches-{switches}.data"));
    if path.exists() {
        return Ok(path);
    }
    ensure!(
        workload.exists(),
        "there is no {} to record: build it with `make -C bench/workloads` in whit's repository, or name recordings \
         with --file",
        workload.display()
    );
    let size = ByteSize(switches.saturating_mul(SWITCH_BYTES));
    disk::require(directory, size, "choose fewer --switches, or another --cache")?;
    say(&format!("recording {switches} switches of {}", workload.display()));
    let partial = path.with_extension("partial");
    let mut command = Command::new(whit);
    command.args(["record", "-q", "--engine=bpf", "--wakeups", "-o"]).arg(&partial).arg("--");
    command.arg(workload).args(["--threads", "2", "--iterations"]);
    command.arg((switches / SWITCHES_OF_ROUND).max(1).to_string());
    output_of(command)?;
    fs::rename(&partial, &path).map_err(error::file("rename to", &path))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_testing::run::write_program;

    #[test]
    fn a_recording_is_made_once_by_half_as_many_rounds() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let recorder = r#"#!/bin/sh
            while [ "$1" != -- ]; do [ "$1" = -o ] && output=$2; shift; done
            echo "$@" > "$output""#;
        write_program(at("whit"), recorder);
        let make = |workload: &str| {
            let mut said = Vec::new();
            let say = &mut |text: &str| said.push(text.to_owned());
            let path = recording(root.path(), &at("whit"), &at(workload), 1000, say);
            (path, said)
        };
        let error = make("missing").0.unwrap_err().to_string();
        assert!(error.contains("make -C bench/workloads"), "{error}");
        write_program(at("pingpong"), "");
        let (path, said) = make("pingpong");
        let line = fs::read_to_string(path.unwrap()).unwrap();
        assert!(line.ends_with("pingpong --threads 2 --iterations 500\n"), "{line}");
        assert_eq!((said.len(), make("pingpong").1.len()), (1, 0));
    }
}
