//! `-G`, `--all-cgroups`, `--namespaces`.

use super::support::{Skip, TestFolder, count, has, has_perf, perf, probe, samples, stderr};
use std::path::PathBuf;
use std::process::Command;

/// A cgroup of version 2 that is removed again.
struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn cgroup(test: &str) -> Option<(Cgroup, String)> {
    let mount = match probe::cgroups_v2() {
        Ok(mount) => mount,
        Err(Skip(reason)) => {
            whit_testing::skip(test, &reason);
            return None;
        }
    };
    let name = format!("whit-test-{}-{}", std::process::id(), test.len());
    let path = mount.join(&name);
    std::fs::create_dir(&path).expect("make a cgroup");
    Some((Cgroup(path), name))
}

/// A shell command that burns CPU in a cgroup, then outside of it under another name.
fn inside_and_outside(group: &Cgroup) -> String {
    let busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    format!(
        "cp /bin/sh inside; cp /bin/sh outside; \
         ./inside -c 'echo $$ > {0}/cgroup.procs; {busy}; echo $$ > {0}/../cgroup.procs'; \
         ./outside -c '{busy}'",
        group.0.display()
    )
}

#[test]
fn events_are_counted_in_their_cgroup_alone() {
    if !has("cgroups", probe::whole_cpus().and_then(|()| probe::cgroup_events()))
        || !has_perf("cgroups")
    {
        return;
    }
    let Some((group, name)) = cgroup("events are counted in their cgroup") else { return };
    for modes in [&[][..], &["--threads", "--aio", "-z", "--affinity=cpu"]] {
        let place = TestFolder::new();
        let fixed = ["-a", "-o", "out", "-e", "cpu-clock:u", "-G", &name, "-e", "task-clock:u"];
        let script = inside_and_outside(&group);
        let output = place.run(&[&fixed[..], modes, &["--", "sh", "-c", &script]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let script = perf(&["script", "-F", "comm,event"], &place.path("out"));
        let has = |comm: &str, event: &str| {
            script.lines().any(|line| line.trim().starts_with(comm) && line.contains(event))
        };
        assert!(has("inside", "cpu-clock") && has("outside", "task-clock"), "{script}");
        assert!(!has("outside", "cpu-clock"), "{script}");
    }
}

#[test]
fn cgroups_that_cannot_be_are_named_with_the_way_out() {
    let place = TestFolder::new();
    let refused = |line: &[&str], wanted: &str| {
        let output = place.run(&[line, &["--", "true"]].concat());
        assert!(!output.status.success());
        assert!(stderr(&output).contains(wanted), "{wanted} in {}", stderr(&output));
    };
    refused(&["-e", "cs", "-G", "whatever"], "no such cgroup here");
    refused(&["-a", "-e", "cs", "-G", "no/such/group"], "/no/such/group");
    refused(&["-a", "-e", "{cs,faults}", "-G", "a,b"], "the group of 'cs'");
    refused(&["-a", "-e", "cs", "-G", "a,b"], "cgroup 'b' has no event");
}

#[test]
fn cgroups_and_namespaces_are_recorded() {
    if !has("cgroups and namespaces", probe::whole_cpus()) || !has_perf("cgroups and namespaces") {
        return;
    }
    let Some((group, name)) = cgroup("cgroups and namespaces are recorded") else { return };
    let place = TestFolder::new();
    let fixed = ["-a", "-o", "out", "-e", "cpu-clock:u", "--all-cgroups", "--namespaces"];
    let script = inside_and_outside(&group);
    let output = place.run(&[&fixed[..], &["--", "sh", "-c", &script]].concat());
    assert!(samples(&output)[0] > 0, "{}", stderr(&output));
    let file = place.path("out");
    assert!(count(&file, "CGROUP events") > 0 && count(&file, "NAMESPACES events") > 0);
    let report = perf(&["report", "--stdio", "-s", "cgroup,comm"], &file);
    let line = report.lines().find(|line| line.contains(&format!("/{name}")));
    assert!(line.is_some_and(|line| line.contains("inside")), "{report}");
}

#[test]
fn processes_of_a_user_are_recorded() {
    let place = TestFolder::new();
    let mut target = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let uid = Command::new("id").arg("-u").output().unwrap();
    let uid = String::from_utf8(uid.stdout).unwrap();
    let output = place.run(&["-e", "cpu-clock:u", "-u", uid.trim(), "-o", "out", "sleep", "0.1"]);
    target.kill().unwrap();
    target.wait().unwrap();
    assert!(samples(&output)[0] > 0, "{}", stderr(&output));
    let unknown_user = place.run(&["-u", "no-such-user", "-e", "cpu-clock:u", "true"]);
    assert!(stderr(&unknown_user).contains("no-such-user"), "{}", stderr(&unknown_user));
}
