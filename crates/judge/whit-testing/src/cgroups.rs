//! Busy programs in cgroups under a limit, and a hierarchy of version 1 for perf events.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Skip;

/// A program that never waits, in a cgroup and under a limit. All of them end with it.
pub struct Limited {
    program: Child,
    /// The cgroup that perf events see.
    pub cgroup: PathBuf,
    /// The one that limits the program, which may be the same, and others that it is in.
    others: Vec<PathBuf>,
}

/// The kernel's own period of a limit. The program runs at its beginning.
const PERIOD_US: u32 = 100_000;
/// A short one.
const SHORT_PERIOD_US: u32 = 10_000;

impl Limited {
    /// In a new cgroup `name` below `mount`. May take so many percent of one CPU.
    ///
    /// # Errors
    ///
    /// This machine limits no CPU time.
    pub fn start(mount: &Path, name: &str, percent: u32) -> Result<Limited, Skip> {
        Limited::in_periods(mount, name, percent, PERIOD_US)
    }

    /// The same with a limit that holds for each 10 ms: times that begin or end a moment apart have nearly the same parts
    /// of two such programs.
    ///
    /// # Errors
    ///
    /// This machine limits no CPU time.
    pub fn start_even(mount: &Path, name: &str, percent: u32) -> Result<Limited, Skip> {
        Limited::in_periods(mount, name, percent, SHORT_PERIOD_US)
    }

    fn in_periods(mount: &Path, name: &str, percent: u32, period_us: u32) -> Result<Limited, Skip> {
        let cgroup = mount.join(name);
        fs::create_dir(&cgroup).expect("make a cgroup");
        let limit = match limit_by_version_1(name, percent, period_us) {
            Some(limit) => limit,
            None => limit_by_version_2(&cgroup, percent, period_us)?,
        };
        let mut program = Command::new("sh");
        program.args(["-c", "while :; do :; done"]).stdout(Stdio::null());
        let program = program.spawn().expect("start a shell");
        let mut limited = Limited { program, cgroup, others: Vec::new() };
        limited.enter(&limited.cgroup);
        limited.enter(&limit);
        limited.others.push(limit);
        Ok(limited)
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// The file with the kernel's counts of the limit: `cpu.stat`.
    pub fn counts(&self) -> PathBuf {
        self.others[0].join("cpu.stat")
    }

    /// Moves the program into a new cgroup of the same name below another mount.
    pub fn join(&mut self, mount: &Path) -> PathBuf {
        let group = mount.join(self.cgroup.file_name().expect("a name"));
        fs::create_dir(&group).expect("make a cgroup");
        self.enter(&group);
        self.others.push(group.clone());
        group
    }

    fn enter(&self, group: &Path) {
        fs::write(group.join("cgroup.procs"), self.program.id().to_string()).expect("move it");
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        for group in self.others.iter().chain([&self.cgroup]) {
            let _ = fs::remove_dir(group);
        }
    }
}

fn limit_by_version_1(name: &str, percent: u32, period_us: u32) -> Option<PathBuf> {
    let group = Path::new("/sys/fs/cgroup/cpu").join(name);
    fs::create_dir(&group).ok()?;
    let set = |file, us: u32| fs::write(group.join(file), us.to_string());
    let quota = set("cpu.cfs_period_us", period_us)
        .and_then(|()| set("cpu.cfs_quota_us", period_us / 100 * percent));
    quota.map_err(|_| fs::remove_dir(&group)).ok()?;
    Some(group)
}

fn limit_by_version_2(cgroup: &Path, percent: u32, period_us: u32) -> Result<PathBuf, Skip> {
    let limit = format!("{} {period_us}", period_us / 100 * percent);
    let written = fs::write(cgroup.join("cpu.max"), limit);
    written.map_err(|error| {
        let _ = fs::remove_dir(cgroup);
        Skip(format!("no limit of CPU time: {error}"))
    })?;
    Ok(cgroup.to_owned())
}

/// A hierarchy of version 1 with the controller `perf_event`, which goes back to version 2 when this is dropped.
pub struct OldHierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
}

/// The line of `/proc/cgroups` on perf_event: its hierarchy (0 is that of version 2), and its number of cgroups, which
/// includes those that are removed and not yet forgotten.
pub fn perf_event_controller() -> (u32, u32) {
    let text = fs::read_to_string("/proc/cgroups").expect("read /proc/cgroups");
    let line = text.lines().find(|line| line.starts_with("perf_event\t")).expect("perf_event");
    let mut numbers = line.split('\t').skip(1).map(|number| number.parse().expect("a number"));
    (numbers.next().expect("a hierarchy"), numbers.next().expect("a count"))
}

/// Waits in a destructor, which must not panic.
fn wait_for(what: &str, is_true: impl FnMut() -> bool) {
    if !crate::wait::is_soon(is_true) {
        let _ = writeln!(std::io::stderr(), "waited in vain until {what}");
    }
}

impl OldHierarchy {
    /// Mounts it. Changes the whole machine: see [`crate::probe::may_change_the_machine`].
    ///
    /// # Errors
    ///
    /// perf_event has a hierarchy of version 1 already, or cannot leave version 2.
    pub fn of_perf_event() -> Result<OldHierarchy, Skip> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("read mountinfo");
        if mounts.lines().any(|line| line.contains("perf_event")) {
            return Err(Skip("perf_event is mounted already; the other tests use that".to_owned()));
        }
        let mount = std::env::temp_dir().join(format!("whit-v1-{}", std::process::id()));
        fs::create_dir(&mount).expect("make a directory");
        let mut command = Command::new("mount");
        command.args(["-t", "cgroup", "-o", "perf_event", "none"]).arg(&mount);
        let output = command.output().expect("run mount");
        if output.status.success() {
            return Ok(OldHierarchy { mount });
        }
        let _ = fs::remove_dir(&mount);
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Skip(format!("perf_event cannot be mounted as version 1: {reason}")))
    }
}

impl Drop for OldHierarchy {
    /// A hierarchy outlives its mount as long as it has cgroups, and would keep the controller.
    fn drop(&mut self) {
        wait_for("version 1 has no cgroup left", || perf_event_controller().1 == 1);
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = fs::remove_dir(&self.mount);
        wait_for("perf_event is back on version 2", || perf_event_controller().0 == 0);
    }
}
