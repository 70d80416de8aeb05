//! A limit of memory on the service and its recorder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use whit_testing::run::needs_of_line;
use whit_testing::wait::is_soon;

use super::{Service, program, samples};
use crate::support::tools::{command, whit};
use crate::support::{Skip, check};

/// A cgroup, which goes when this is dropped.
pub(super) struct Group(PathBuf);

impl Group {
    fn make(mount: &str, name: &str) -> Result<Group, Skip> {
        let path = Path::new(mount).join(format!("whit-{name}-{}", std::process::id()));
        let refused = |error| Skip(format!("this user cannot make {}: {error}", path.display()));
        fs::create_dir(&path).map_err(refused)?;
        Ok(Group(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn name(&self) -> String {
        self.0.file_name().unwrap().to_string_lossy().into_owned()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        is_soon(|| fs::remove_dir(&self.0).is_ok());
    }
}

/// One without processes, which can be recorded.
pub(super) fn perf_cgroup() -> Result<Group, Skip> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let find = |wanted: &dyn Fn(&[&str]) -> bool| {
        let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines.find(|words| wanted(words)).map(|words| words[1].to_owned())
    };
    let old =
        find(&|words| words[2] == "cgroup" && words[3].split(',').any(|it| it == "perf_event"));
    let mount = old.or_else(|| find(&|words| words[2] == "cgroup2"));
    Group::make(&mount.ok_or_else(|| Skip("no cgroups are mounted".to_owned()))?, "quiet")
}

/// One that limits memory.
fn limited(bytes: u64) -> Result<Group, Skip> {
    let old = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    let (mount, file) = match old {
        true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        false => ("/sys/fs/cgroup", "memory.max"),
    };
    let group = Group::make(mount, "memory")?;
    match fs::write(group.0.join(file), bytes.to_string()) {
        Ok(()) => Ok(group),
        Err(error) => Err(Skip(format!("no cgroup limits memory here: {error}"))),
    }
}

#[test]
fn a_recorder_that_finds_no_memory_goes_on_with_less() {
    check("watch::a_recorder_that_finds_no_memory_goes_on_with_less", || {
        needs_of_line(["record", "-a"])?;
        needs_of_line(["record", "--engine=bpf"])?;
        program();
        let place = tempfile::tempdir().unwrap();
        // Programs and tables of the kernel alone take more.
        let group = limited(36 << 20)?;
        let mut service = Service { child: Command::new("true").spawn().unwrap(), place };
        service.configure("window = \"1s\"\nswitches = true\n");
        let mut shell = command("sh");
        let line = "echo $$ >\"$1/cgroup.procs\" && shift && exec \"$@\"";
        shell.args(["-c", line, "sh"]).arg(&group.0).arg(whit().get_program());
        service.launch_by(shell, &[]);
        service.wait_for_files(3);
        assert_eq!(service.counted("recorder_out_of_memory"), 2, "{}", service.log());
        let file = service.files().pop().unwrap();
        assert!(samples(&file) > 0, "{}", service.log());
        let log = service.end();
        let said = |text: &str| log.matches(text).count();
        assert_eq!(said("the kernel ended the recorder: memory has a limit of "), 1, "{log}");
        assert_eq!(said("(engine = \"ring\"), which need no unwind tables"), 1, "{log}");
        assert!(log.contains("lower window-bytes, queue-bytes or flight-bytes"), "{log}");
        Ok(())
    });
}
