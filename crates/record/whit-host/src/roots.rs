//! Where the kernel's file systems are, as a value.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use whit_sys::process_files;
use whit_types::{Pid, Tid};

/// The mount points that the recorder reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// The mount of procfs: `/proc`, or a folder of a test.
    pub proc: PathBuf,
    /// The mount of sysfs: `/sys`, or a folder of a test.
    pub sys: PathBuf,
    /// Where kernel modules are installed, `/lib/modules`.
    pub modules: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { proc: "/proc".into(), sys: "/sys".into(), modules: "/lib/modules".into() }
    }
}

impl Roots {
    /// A file of one process.
    pub fn process(&self, pid: Pid, file: &str) -> PathBuf {
        self.proc.join(pid.0.to_string()).join(file)
    }

    /// A file of one process about its memory or its files: that of a thread that has not ended.
    pub fn living(&self, pid: Pid, file: &str) -> PathBuf {
        process_files::living(&self.proc, pid.0).join(file)
    }

    /// The directory of a thread, which `/proc` lists for main threads only and has for all.
    pub fn thread(&self, tid: Tid) -> PathBuf {
        self.proc.join(tid.0.to_string())
    }

    /// A kernel setting under `/proc/sys/kernel`, as a number.
    pub fn kernel_setting(&self, name: &str) -> Option<i64> {
        read_number(&self.proc.join("sys/kernel").join(name))
    }

    /// Whether the kernel takes the time of all BPF programs anyway.
    pub fn times_bpf_programs(&self) -> bool {
        self.kernel_setting("bpf_stats_enabled") == Some(1)
    }

    /// The tracing file system, where it is mounted. This user need not have the right to read it.
    pub fn tracefs(&self) -> Option<PathBuf> {
        let is_there = |path: &PathBuf| match path.join("events").metadata() {
            Ok(events) => events.is_dir(),
            Err(error) => error.kind() == ErrorKind::PermissionDenied,
        };
        let places = ["kernel/tracing", "kernel/debug/tracing"].iter();
        places.map(|path| self.sys.join(path)).find(is_there)
    }
}

/// The number that a one-line file holds.
pub fn read_number(path: &Path) -> Option<i64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_tracefs_are_read_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().join("proc"),
            sys: dir.path().join("sys"),
            modules: dir.path().join("modules"),
        };
        assert_eq!(roots.kernel_setting("perf_event_paranoid"), None);
        assert_eq!(roots.tracefs(), None);
        std::fs::create_dir_all(roots.proc.join("sys/kernel")).unwrap();
        std::fs::write(roots.proc.join("sys/kernel/perf_event_paranoid"), "-1\n").unwrap();
        assert!(!roots.times_bpf_programs());
        for (text, is_on) in [("0\n", false), ("1\n", true)] {
            std::fs::write(roots.proc.join("sys/kernel/bpf_stats_enabled"), text).unwrap();
            assert_eq!(roots.times_bpf_programs(), is_on);
        }
        std::fs::create_dir_all(roots.sys.join("kernel/debug/tracing/events")).unwrap();
        assert_eq!(roots.kernel_setting("perf_event_paranoid"), Some(-1));
        assert!(roots.tracefs().unwrap().ends_with("kernel/debug/tracing"));
    }
}
