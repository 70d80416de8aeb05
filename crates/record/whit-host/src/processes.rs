//! Processes and threads in `/proc`. A process may vanish between any two reads: every reader
//! here gives `None` or an empty list then, which is no error.

use std::io::{self, BufRead, BufReader};

use whit_sys::capability::Capability;
use whit_sys::privilege::{self, Raised};
use whit_sys::process_files::{MAPS_BYTES, ProcessFile};
use whit_types::{Pid, Tid};

use crate::error::HostError;
use crate::roots::Roots;

/// `PROC_PID_INIT_INO` (`include/linux/proc_ns.h`).
const FIRST_NAMESPACE: u32 = 0xEFFF_FFFC;

/// A thread as `/proc/PID/status` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Name, with the kernel's escapes undone.
    pub name: Vec<u8>,
    /// Process.
    pub tgid: Pid,
    /// Parent process.
    pub parent: Pid,
    /// A kernel thread: it has no address space.
    pub is_kernel_thread: bool,
}

impl Status {
    /// Reads the status of a thread of process `pid`.
    pub fn read(roots: &Roots, pid: Pid, tid: Tid) -> Option<Status> {
        let path = roots.process(pid, "task").join(tid.0.to_string()).join("status");
        Status::parse(&std::fs::read(path).ok()?)
    }

    /// Reads the status of a thread whose process is not known.
    pub fn of_thread(roots: &Roots, tid: Tid) -> Option<Status> {
        let _in_force = see_others();
        Status::parse(&std::fs::read(roots.thread(tid).join("status")).ok()?)
    }

    fn parse(text: &[u8]) -> Option<Status> {
        let field = |name: &[u8]| {
            let mut lines = text.split(|b| *b == b'\n');
            lines.find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii_start)
        };
        let number = |name| std::str::from_utf8(field(name)?).ok()?.trim().parse().ok();
        Some(Status {
            name: unescape(field(b"Name:")?),
            tgid: Pid(number(b"Tgid:")?),
            parent: Pid(number(b"PPid:")?),
            is_kernel_thread: field(b"VmPeak:").is_none() && field(b"VmSize:").is_none(),
        })
    }
}

/// Lets this thread see processes of other users while the result lives, where whit was lent the
/// right to: their maps, and with `hidepid` that they are there at all. Only for files that the
/// kernel makes.
pub fn see_others() -> Raised {
    privilege::raise(&[Capability::SysPtrace])
}

/// The number of the PID namespace that this process is in; `None` for the first one of the machine, or
/// where it is not said.
pub fn namespace(roots: &Roots) -> Option<u32> {
    let link = std::fs::read_link(roots.proc.join("self/ns/pid")).ok()?;
    let number = link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()?;
    Some(number).filter(|number| *number != FIRST_NAMESPACE)
}

/// The ids of all processes, ascending.
///
/// # Errors
///
/// Where `/proc` cannot be read.
pub fn all(roots: &Roots) -> Result<Vec<Pid>, HostError> {
    let _in_force = see_others();
    let entries = std::fs::read_dir(&roots.proc).map_err(|source| HostError::Read {
        what: "the list of processes",
        path: roots.proc.clone(),
        source,
    })?;
    Ok(numbered(entries).into_iter().map(Pid).collect())
}

/// The ids of the threads of a process, that of the main thread first, the others ascending; empty when it is gone.
///
/// Ids begin anew at the kernel's largest, so a main thread may have the larger one. Readers of recordings (perf) give a
/// thread the mappings of its process as they are when its fork is read.
pub fn threads(roots: &Roots, pid: Pid) -> Vec<Tid> {
    let _in_force = see_others();
    let mut ids = std::fs::read_dir(roots.process(pid, "task")).map(numbered).unwrap_or_default();
    ids.sort_by_key(|tid| *tid != pid.main_thread().0);
    ids.into_iter().map(Tid).collect()
}

/// Opens a file of a process about its memory, with the right to see others.
///
/// # Errors
///
/// Those of the kernel: for kernel threads, processes that are gone, and those of others.
pub fn open_living(roots: &Roots, pid: Pid, file: &str) -> io::Result<ProcessFile> {
    let _in_force = see_others();
    ProcessFile::open(&roots.living(pid, file), pid.0)
}

/// The mappings of a process, line by line.
///
/// # Errors
///
/// Those of [`open_living`].
pub fn mappings(roots: &Roots, pid: Pid) -> io::Result<impl Iterator<Item = io::Result<Vec<u8>>>> {
    let file = open_living(roots, pid, "maps")?;
    Ok(BufReader::with_capacity(MAPS_BYTES, file).split(b'\n'))
}

/// The user who owns a process.
pub fn owner(roots: &Roots, pid: Pid) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(roots.proc.join(pid.0.to_string())).ok().map(|m| m.uid())
}

/// The user with whose rights a process runs.
pub fn effective_user(roots: &Roots, pid: Pid) -> Option<u32> {
    let text = std::fs::read(roots.process(pid, "status")).ok()?;
    let users = text.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    // Real, effective, saved, of the file system.
    std::str::from_utf8(users).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The id that a process has in its own, innermost namespace.
pub fn inner_pid(roots: &Roots, pid: Pid) -> Option<Pid> {
    let text = std::fs::read_to_string(roots.process(pid, "status")).ok()?;
    let ids = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(Pid(ids.split_ascii_whitespace().next_back()?.parse().ok()?))
}

/// When a process began, in the kernel's ticks since boot (`proc_pid_stat(5)`, field 22).
pub fn start_ticks(roots: &Roots, pid: Pid) -> Option<u64> {
    let text = std::fs::read(roots.process(pid, "stat")).ok()?;
    // The name may hold anything; field 3 begins behind its last parenthesis.
    let behind_name = &text[text.iter().rposition(|b| *b == b')')? + 1..];
    std::str::from_utf8(behind_name).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Whether there is a thread, or a process with that main thread.
pub fn exists(roots: &Roots, tid: Tid) -> bool {
    let _in_force = see_others();
    roots.thread(tid).exists()
}

fn numbered(entries: std::fs::ReadDir) -> Vec<i32> {
    let name = |e: std::io::Result<std::fs::DirEntry>| e.ok()?.file_name().to_str()?.parse().ok();
    let mut ids: Vec<i32> = entries.filter_map(name).collect();
    ids.sort_unstable();
    ids
}

/// The kernel writes `\n` and `\\` in names as two characters each.
fn unescape(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, tail)) = rest.split_first() {
        match (first, tail.first()) {
            (b'\\', Some(b'n')) => out.push(b'\n'),
            (b'\\', Some(b'\\')) => out.push(b'\\'),
            _ => {
                out.push(first);
                rest = tail;
                continue;
            }
        }
        rest = &tail[1..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        for (pid, tid, text) in [
            (10, 10, "Name:\ta b\\\\c\\nd\nTgid:\t10\nPid:\t10\nPPid:\t1\nVmSize:\t 8 kB\n"),
            (10, 9, "Name:\tlater\nTgid:\t10\nPid:\t9\nPPid:\t1\nVmSize:\t 8 kB\n"),
            (10, 12, "Name:\tworker\nTgid:\t10\nPid:\t12\nPPid:\t1\nVmSize:\t 8 kB\n"),
            (2, 2, "Name:\tkthreadd\nTgid:\t2\nPid:\t2\nPPid:\t0\n"),
        ] {
            let task = dir.path().join(format!("{pid}/task/{tid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("status"), text).unwrap();
        }
        std::fs::create_dir(dir.path().join("sys")).unwrap();
        (dir, roots)
    }

    #[test]
    fn processes_threads_and_their_status() {
        let (_dir, roots) = tree();
        assert_eq!(all(&roots).unwrap(), [2, 10].map(Pid));
        assert_eq!(threads(&roots, Pid(10)), [10, 9, 12].map(Tid));
        let status = Status::read(&roots, Pid(10), Tid(10)).unwrap();
        assert_eq!(status.name, b"a b\\c\nd");
        assert_eq!((status.tgid, status.parent, status.is_kernel_thread), (Pid(10), Pid(1), false));
        assert!(Status::read(&roots, Pid(2), Tid(2)).unwrap().is_kernel_thread);
    }

    #[test]
    fn processes_have_a_time_at_which_they_began() {
        let (dir, roots) = tree();
        let stat = "10 (a) b) S 1 10 10 0 -1 4194560 108 0 0 0 0 0 0 0 20 0 1 0 98765 2985984 250";
        std::fs::write(dir.path().join("10/stat"), stat).unwrap();
        assert_eq!(start_ticks(&roots, Pid(10)), Some(98_765));
        assert_eq!(start_ticks(&roots, Pid(99)), None);
    }

    #[test]
    fn processes_run_with_the_rights_of_their_effective_user() {
        let (dir, roots) = tree();
        std::fs::write(dir.path().join("10/status"), "Name:\tUid:\nUid:\t1\t2\t3\t4\n").unwrap();
        assert_eq!(effective_user(&roots, Pid(10)), Some(2));
        assert_eq!(effective_user(&roots, Pid(99)), None);
    }

    #[test]
    fn ended_processes_are_absent() {
        let (_dir, roots) = tree();
        assert_eq!(threads(&roots, Pid(99)), []);
        assert_eq!(Status::read(&roots, Pid(99), Tid(99)), None);
        assert!(!exists(&roots, Tid(99)) && exists(&roots, Tid(10)));
        assert_eq!(owner(&roots, Pid(99)), None);
    }
}
