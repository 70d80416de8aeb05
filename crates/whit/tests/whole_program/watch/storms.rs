//! Cgroups by the thousand beside a service: it goes on, and its files stay whole.

use std::fs;
use std::process::Command;

use whit_testing::wait::is_soon;

use super::Service;
use super::memory::perf_cgroup;
use crate::support::check;
use crate::support::tools::{succeed, whit};

/// The newest files are read: those of the storm.
const READ: usize = 4;
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
