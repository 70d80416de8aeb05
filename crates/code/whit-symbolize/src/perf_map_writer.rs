//! The process that is said to have written a perf-map. Anybody may leave a file at its path.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use whit_sys::process_files::{FileFacts, may_be_written_for};
use whit_sys::system;
use whit_types::Pid;

use crate::reason::Reason;

/// Ticks of a second in `/proc` (`USER_HZ`), on all architectures that whit knows.
const TICKS_PER_SECOND: u64 = 100;
/// Times of files, of processes and of recordings are of different clocks, some of them coarse.
const SLACK: Duration = Duration::from_secs(2);
const ROOT: u32 = 0;

/// A process, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PerfMapWriter {
    /// The user that it runs as; `None` where it has ended.
    user: Option<u32>,
    began: Option<SystemTime>,
    /// The user of whit.
    reader: u32,
}

impl PerfMapWriter {
    /// The process of a recording, which may have ended since. `began` is when the recording saw it, or its program,
    /// begin, and `recorded_until_ns` when the recording was written: a process that began later only has the same
    /// number.
    pub(crate) fn of(
        pid: Pid,
        began: Option<SystemTime>,
        recorded_until_ns: Option<u64>,
    ) -> PerfMapWriter {
        let recorded_until = recorded_until_ns.map(|ns| UNIX_EPOCH + Duration::from_nanos(ns));
        let running = began_in_proc(pid)
            .filter(|began| recorded_until.is_none_or(|until| *began <= until + SLACK));
        PerfMapWriter {
            user: running.and_then(|_| user_in_proc(pid)),
            // A process that runs may have begun another program since.
            began: running.max(began),
            reader: system::effective_uid(),
        }
    }

    /// Whether the process still runs.
    pub(crate) fn runs(&self) -> bool {
        self.user.is_some()
    }

    /// Refuses a file that the process did not write.
    pub(crate) fn check(&self, path: &Path, facts: &FileFacts) -> Result<(), Reason> {
        if !self.may_own(facts) {
            return Err(Reason::ForeignPerfMap { path: Arc::from(path), owner: facts.user });
        }
        let is_stale = self.began.is_some_and(|began| {
            facts.modified().checked_add(SLACK).is_some_and(|modified| modified < began)
        });
        if is_stale { Err(Reason::StalePerfMap { path: Arc::from(path) }) } else { Ok(()) }
    }

    /// Where the process has ended, nobody knows its user any more: then the file has to be the reader's own or
    /// root's. Root reads those of all.
    fn may_own(&self, facts: &FileFacts) -> bool {
        match self.user {
            Some(user) => may_be_written_for(user, facts),
            None => self.reader == ROOT || may_be_written_for(self.reader, facts),
        }
    }
}

/// When a running process began.
fn began_in_proc(pid: Pid) -> Option<SystemTime> {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.0)).ok()?;
    // The name may hold anything; field 3 begins behind its last parenthesis, field 22 is the start.
    let behind_name = stat.get(stat.iter().rposition(|byte| *byte == b')')? + 1..)?;
    let ticks: u64 =
        std::str::from_utf8(behind_name).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let age_s = uptime - ticks as f64 / TICKS_PER_SECOND as f64;
    SystemTime::now().checked_sub(Duration::try_from_secs_f64(age_s.max(0.0)).ok()?)
}

/// With whose rights it runs.
fn user_in_proc(pid: Pid) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.0)).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_sys::process_files::open_foreign;

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("perf-7.map");
        std::fs::write(&path, "1000 10 f\n").unwrap();
        (directory, path)
    }

    #[test]
    fn a_map_that_is_older_than_the_process_is_refused() {
        let (_directory, path) = file();
        let file = *open_foreign(&path).unwrap().facts();
        let now = SystemTime::now();
        let began = |began| PerfMapWriter { user: None, began, reader: system::effective_uid() };
        let refused = began(Some(now + Duration::from_secs(60))).check(&path, &file);
        assert_eq!(refused, Err(Reason::StalePerfMap { path: Arc::from(&*path) }));
        assert!(refused.unwrap_err().to_string().contains("older than the process"));
        assert_eq!(began(Some(now - Duration::from_secs(60))).check(&path, &file), Ok(()));
        assert_eq!(began(None).check(&path, &file), Ok(()));
    }

    #[test]
    fn a_map_of_another_user_is_refused() {
        let (_directory, path) = file();
        let facts = *open_foreign(&path).unwrap().facts();
        let owner = facts.user;
        let (other, third) = (owner + 1, owner + 2);
        let may_own = |user, reader| PerfMapWriter { user, began: None, reader }.may_own(&facts);
        assert!(may_own(Some(owner), other));
        // Root's files are taken from everybody.
        assert_eq!(may_own(Some(other), owner), owner == ROOT);
        assert!(may_own(None, owner) && may_own(None, ROOT));
        assert_eq!(may_own(None, third), owner == ROOT);
    }

    #[test]
    fn this_process_began_before_now_and_runs_as_its_user() {
        let pid = Pid(std::process::id() as i32);
        let writer = PerfMapWriter::of(pid, None, None);
        let age = writer.began.unwrap().elapsed().unwrap();
        assert!(age < Duration::from_secs(3600), "{age:?}");
        assert_eq!(writer.user, Some(system::effective_uid()));
        // A recording from before this process began is of another one.
        let earlier = PerfMapWriter::of(pid, None, Some(1));
        assert_eq!((earlier.user, earlier.began), (None, None));
    }
}
