//! Processes and cgroups by the thousand beside a service: it goes on, its files stay whole, and nothing is lost in silence.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand};
use whit_perfdata::stream::StreamReader;
use whit_testing::wait::is_soon;

use super::Service;
use super::memory::perf_cgroup;
use crate::support::check;
use crate::support::tools::{succeed, whit, workload};

/// The newest files are read: those of the storm.
const READ: usize = 4;
/// Processes of a storm that only begin and end, and executions of others. A machine does some 5,000 in a second.
const FORKS: u64 = 6000;
const EXECS: u64 = 300;
/// Far more than a service with windows of a second takes.
const WATCH_BYTES_MAX: u64 = 160 << 20;

impl Service {
    /// Runs the storm; then the recorder is still the same, and windows come.
    fn survives(&self, storm: impl FnOnce()) {
        self.wait_for_files(2);
        let recorder = self.recorder().expect("a recorder");
        storm();
        let number = self.files().len();
        self.wait_for_files(number + 2);
        assert_eq!(self.recorder(), Some(recorder), "{}", self.log());
        let ended = ["recorder_ends", "recorder_hangs", "windows_lost_by_memory"];
        assert_eq!(ended.map(|name| self.counted(name)), [0; 3], "{}", self.log());
        let memory = self.status()["cost"]["watch_memory_bytes"].as_u64().expect("a size");
        assert!(memory < WATCH_BYTES_MAX, "{memory}");
        for file in self.files().iter().rev().take(READ) {
            succeed(whit().args(["report", "--stats", "-i"]).arg(file));
        }
    }
}

/// Passes on the records about processes, mappings and losses in files.
pub(crate) fn side_band(files: &[PathBuf], mut pass: impl FnMut(SideBand<'_>)) {
    for file in files {
        let recording = Recording::open(file).unwrap();
        for stream in &recording.streams {
            let (mut reader, mut block) = (StreamReader::new(stream.clone()), Vec::new());
            while reader.next_block(&mut block).unwrap().is_some() {
                let mut rest = &block[..];
                while let Some((record, behind)) = RawRecord::split(rest) {
                    rest = behind;
                    SideBand::parse(record).into_iter().for_each(&mut pass);
                }
            }
        }
    }
}

/// Records of the begins of processes and threads in files, and records that files say are missing.
pub(super) fn begins_and_losses(files: &[PathBuf]) -> (u64, u64) {
    let (mut begins, mut losses) = (0, 0);
    side_band(files, |record| match record {
        SideBand::Fork(_) => begins += 1,
        SideBand::Lost { lost, .. } => losses += lost,
        _ => {}
    });
    (begins, losses)
}

#[test]
fn short_processes_come_and_go_by_the_thousand() {
    check("watch::short_processes_come_and_go_by_the_thousand", || {
        let storm = workload("storm")?;
        let mut service = Service::start("window = \"1s\"\nfreq = 997\n")?;
        service.survives(|| {
            let start = |_| {
                let mut command = Command::new(&storm);
                command.args(["--forks", &FORKS.to_string(), "--execs", &EXECS.to_string()]);
                command.stdout(Stdio::null());
                command.spawn().unwrap()
            };
            let mut storms = [0, 1].map(start);
            assert!(storms.iter_mut().all(|storm| storm.wait().unwrap().success()));
        });
        service.end();
        let (begins, losses) = begins_and_losses(&service.files());
        assert!(begins + losses >= 2 * FORKS, "{begins} and {losses} lost: {}", service.log());
        Ok(())
    });
}

#[test]
fn cgroups_come_and_go_by_the_thousand() {
    check("watch::cgroups_come_and_go_by_the_thousand", || {
        let outer = perf_cgroup()?;
        let mut service = Service::start("window = \"1s\"\nfreq = 199\n")?;
        service.survives(|| {
            for number in 0..1000 {
                let group = outer.path().join(format!("job-{number}"));
                fs::create_dir(&group).unwrap();
                // Some of them have a process for a moment.
                if number % 20 == 0 {
                    let mut shell = Command::new("sh");
                    let line = "echo $$ >\"$1/cgroup.procs\" && exec true";
                    succeed(shell.args(["-c", line, "sh"]).arg(&group));
                }
                assert!(is_soon(|| fs::remove_dir(&group).is_ok()));
            }
        });
        service.end();
        Ok(())
    });
}
