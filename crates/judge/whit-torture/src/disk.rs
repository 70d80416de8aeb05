//! Disks that fill up.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::Setting;
use crate::faces::{look, problem};
use crate::recorders::STREAMING;
use crate::verdict::Verdict;

/// Sizes at full effort.
const SIZES: u64 = 50;
/// The smallest, and by how much the next is larger.
const FIRST_KIB: u64 = 4;
const STEP_KIB: u64 = 28;
/// Exits with a code of its own, so that a disturbed command shows.
const WORK: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; exit 7";

/// A small file system in memory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, kib: u64) -> Result<Option<SmallDisk>> {
        std::fs::create_dir_all(at)?;
        let options = format!("size={kib}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "whit-torture"]).arg(at).stderr(Stdio::null());
        Ok(mount.status()?.success().then(|| SmallDisk(at.to_owned())))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let (mut full, mut read) = (0, 0);
    for number in 0..setting.times(SIZES) {
        let mode = STREAMING[number as usize % STREAMING.len()];
        let scratch = tempfile::tempdir().context("cannot make a directory")?;
        let place = scratch.path().join("disk");
        let Some(disk) = SmallDisk::mount(&place, FIRST_KIB + number * STEP_KIB)? else {
            verdict.skipped.push("no file system can be mounted here".to_owned());
            break;
        };
        let data = place.join("perf.data");
        let mut command = Command::new(&setting.whit);
        command.args(["record", "-e", "cpu-clock", "-F", "20000", "--call-graph", "dwarf,16384"]);
        command.args(mode).arg("-o").arg(&data).args(["--", "sh", "-c", WORK]);
        let output = command.stdin(Stdio::null()).output().context("cannot run whit")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let is_full = said.contains("No space left") || said.contains("full");
        full += u64::from(is_full);
        let mut bad = match output.status.code() {
            // The command's own code, whether or not everything was written.
            Some(7) => None,
            Some(code) if is_full && !data.exists() && code == 1 => None,
            code => Some(format!("ended with {code:?}: {}", said.trim())),
        };
        if bad.is_none() && data.exists() {
            let ended = look(&setting.whit, &["report", "--stats"], &data, scratch.path())?;
            read += u64::from(ended.code == Some(0));
            bad = problem(&["report", "--stats"], &ended);
        }
        let case = format!("disk of {} KiB, {}", FIRST_KIB + number * STEP_KIB, mode.join(" "));
        verdict.attempt(bad.map(|why| format!("{case}: {why}")));
        drop(disk);
    }
    verdict.figures.push(format!("{full} disks were full, {read} recordings were read"));
    Ok(verdict)
}
