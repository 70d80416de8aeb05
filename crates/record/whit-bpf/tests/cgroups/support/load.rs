//! Tasks that are counted.

use std::process::{Child, Command, Stdio};

use super::group::Group;

/// A shell that runs in a cgroup from its first command on.
pub(crate) fn shell(group: &Group, script: &str) -> Load {
    let script = format!("echo $$ > {}; {script}", group.procs().display());
    Load(Command::new("/bin/sh").args(["-c", &script]).stdin(Stdio::null()).spawn().expect("sh"))
}

/// Works in user mode for so many rounds.
pub(crate) fn busy(rounds: u32) -> String {
    format!("i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done")
}

/// Forks, faults and switches for so many rounds.
pub(crate) fn forks(rounds: u32) -> String {
    format!("i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); /bin/true; done")
}

/// A task, ended with its scope.
#[derive(Debug)]
pub(crate) struct Load(pub(crate) Child);

impl Load {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) {
        let status = self.0.wait().expect("wait for a shell");
        assert!(status.success(), "the shell ended with {status}");
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a process is a member.
pub(crate) fn wait_for_member(group: &Group, pid: u32) {
    whit_testing::wait::wait_until(&format!("{pid} is in {:?}", group.directory()), || {
        let members = std::fs::read_to_string(group.procs()).expect("read the members");
        members.lines().any(|line| line == pid.to_string())
    });
}
