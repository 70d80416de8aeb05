//! `whit bench cgroup` leaves nothing behind.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::support::{Skip, check, probe, signal, wait_until, workload};

/// A benchmark that would take minutes.
fn start(directory: &Path) -> Result<Child, Skip> {
    let workloads = workload("token")?;
    let mut whit = Command::new(env!("CARGO_BIN_EXE_whit"));
    whit.args(["bench", "cgroup", "--cgroups", "2", "--work", "0", "--rounds", "1000"]);
    whit.arg("--workloads").arg(workloads.parent().expect("a directory"));
    whit.arg("--dir").arg(directory).stdin(Stdio::null()).stdout(Stdio::null());
    Ok(whit.stderr(Stdio::null()).spawn().expect("run whit"))
}

#[test]
fn a_benchmark_that_is_interrupted_leaves_no_cgroups() {
    check("interrupted_bench_cgroup", || {
        probe::whole_cpus()?;
        probe::cgroups()?;
        let mount = probe::cgroup_hierarchy()?.mount;
        let scratch = tempfile::tempdir().unwrap();
        for name in ["-INT", "-TERM"] {
            let mut bench = start(scratch.path())?;
            let child = mount.join(format!("whit-bench-{}-0/c1/cgroup.procs", bench.id()));
            let has_member = || fs::read_to_string(&child).is_ok_and(|pids| !pids.is_empty());
            wait_until("the token goes around", has_member);
            signal(&bench, name);
            assert_eq!(bench.wait().expect("wait").code(), Some(1), "{name}");
            let group = child.parent().and_then(Path::parent).expect("a parent");
            assert!(!group.exists(), "{name} leaves {}", group.display());
        }
        // The next run removes the cgroups of a killed one, with the processes in them.
        let mut killed = start(scratch.path())?;
        let left = mount.join(format!("whit-bench-{}-0", killed.id()));
        wait_until("cgroups are there", || left.join("c1").exists());
        killed.kill().expect("kill");
        killed.wait().expect("wait");
        let mut next = start(scratch.path())?;
        wait_until("they are gone", || !left.exists());
        signal(&next, "-TERM");
        next.wait().expect("wait");
        Ok(())
    });
}
