//! A limit of memory on the service and its recorder.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use whit_testing::run::needs_of_line;
use whit_testing::wait::{is_soon, wait_until};

use super::storms::begins_and_losses;
use super::{Service, program};
use crate::support::tools::{command, whit, workload};
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
fn limited(name: &str, bytes: u64) -> Result<Group, Skip> {
    let old = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    let (mount, file) = match old {
        true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        false => ("/sys/fs/cgroup", "memory.max"),
    };
    let group = Group::make(mount, name)?;
    match fs::write(group.0.join(file), bytes.to_string()) {
        Ok(()) => Ok(group),
        Err(error) => Err(Skip(format!("no cgroup limits memory here: {error}"))),
    }
}

/// A service with its recorder in such a cgroup.
fn start_in(group: &Group, config: &str) -> Result<Service, Skip> {
    needs_of_line(["record", "-a"])?;
    needs_of_line(["record", "--engine=bpf"])?;
    program();
    let place = tempfile::tempdir().unwrap();
    let mut service = Service { child: Command::new("true").spawn().unwrap(), place };
    service.configure(config);
    let mut shell = command("sh");
    let line = "echo $$ >\"$1/cgroup.procs\" && shift && exec \"$@\"";
    shell.args(["-c", line, "sh"]).arg(&group.0).arg(whit().get_program());
    service.launch_by(shell, &[]);
    Ok(service)
}

/// A process with very many mappings, which works until this is dropped.
struct Mapped(Child);

impl Mapped {
    fn start(number: u64) -> Result<Mapped, Skip> {
        let most = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
        let number = (most.trim().parse::<u64>().unwrap() - 1000).min(number);
        let mut mappings = Command::new(workload("mappings")?);
        mappings.args(["--mappings", &number.to_string()]);
        let mut child = mappings.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("mapped {number}\n"));
        Ok(Mapped(child))
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn processes_with_a_hundred_thousand_mappings_fit_into_128_mib() {
    check("watch::processes_with_a_hundred_thousand_mappings_fit_into_128_mib", || {
        let group = limited("mappings", 128 << 20)?;
        let before = Mapped::start(100_000)?;
        let mut service = start_in(&group, "window = \"1s\"\nfreq = 997\nswitches = true\n")?;
        service.wait_for_files(2);
        let recorder = service.recorder();
        // Its mappings come while it is recorded.
        let meanwhile = Mapped::start(20_000)?;
        let number = service.files().len();
        service.wait_for_files(number + 3);
        assert!(service.counted("mappings_lost") > 45_000, "{}", service.log());
        drop((before, meanwhile));
        let number = service.files().len();
        service.wait_for_files(number + 2);
        let ended = ["recorder_ends", "recorder_hangs", "windows_lost_by_memory"];
        assert_eq!(ended.map(|name| service.counted(name)), [0; 3], "{}", service.log());
        assert!(recorder.is_some() && service.recorder() == recorder, "{}", service.log());
        service.wait_for_samples(number);
        let log = service.end();

        assert!(log.contains("window-bytes is 4M, queue-bytes is 8M\n"), "{log}");
        Ok(())
    });
}

/// Sides of a storm, which run at the same time.
const STORM: [(&str, u64); 3] = [("--threads", 10_000), ("--forks", 10_000), ("--dlopens", 2_000)];
const STORMS: u64 = 3;
/// Descriptors that the recorder holds of mapped files at most (`HELD_MAX` of `whit-capture`), and others that come and
/// go while files are read.
const DESCRIPTORS_MORE: usize = 192 + 64;

/// Runs the storm; gives the most descriptors that a process had meanwhile.
fn storm(process: u64) -> usize {
    let program = workload("storm").expect("it was built");
    let start = |(side, number): (&str, u64)| {
        let mut storm = Command::new(&program);
        storm.args([side, &number.to_string()]).stdout(Stdio::null());
        storm.spawn().unwrap()
    };
    let mut storms: Vec<_> = STORM.map(start).into();
    let mut most = 0;
    wait_until("the storms end", || {
        most = most.max(descriptors(process));
        storms.retain_mut(|storm| match storm.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                false
            }
            None => true,
        });
        storms.is_empty()
    });
    most
}

fn descriptors(process: u64) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

#[test]
fn storms_of_threads_processes_and_libraries_fit_into_128_mib() {
    check("watch::storms_of_threads_processes_and_libraries_fit_into_128_mib", || {
        workload("storm")?;
        let group = limited("storms", 128 << 20)?;
        let config = "window = \"1s\"\nfreq = 997\nswitches = true\nengine = \"bpf\"\n";
        let mut service = start_in(&group, config)?;
        service.wait_for_files(2);
        let recorder = service.recorder().expect("a recorder");
        let (before, watch) = (descriptors(recorder), u64::from(service.child.id()));
        let of_watch = descriptors(watch);
        let most = (0..STORMS).map(|_| storm(recorder)).max().expect("storms");
        let number = service.files().len();
        service.wait_for_files(number + 2);
        let ended = ["recorder_ends", "recorder_hangs", "windows_lost_by_memory"];
        assert_eq!(ended.map(|name| service.counted(name)), [0; 3], "{}", service.log());
        assert_eq!(service.recorder(), Some(recorder), "{}", service.log());
        assert!(most <= before + DESCRIPTORS_MORE, "{before} descriptors, then {most}");
        assert!(descriptors(watch) <= of_watch + 8, "{of_watch} descriptors, then more");
        service.wait_for_samples(number);
        service.end();
        // All begins of processes and threads are there, or lost with a number.
        let (begins, losses) = begins_and_losses(&service.files());
        let begun: u64 = STORM[..2].iter().map(|(_, number)| number * STORMS).sum();
        assert!(begins + losses >= begun, "{begins} of {begun}, {losses} lost: {}", service.log());
        // Few of them are lost only because the window is full.
        assert!(begins > begun / 10, "{begins} of {begun}, {losses} lost: {}", service.log());
        Ok(())
    });
}

#[test]
fn a_recorder_without_memory_continues_with_less() {
    check("watch::a_recorder_without_memory_continues_with_less", || {
        // Programs and tables of the kernel alone take more.
        let group = limited("memory", 36 << 20)?;
        let mut service = start_in(&group, "window = \"1s\"\nswitches = true\n")?;
        service.wait_for_files(3);
        assert_eq!(service.counted("recorder_out_of_memory"), 2, "{}", service.log());
        service.wait_for_samples(0);
        let log = service.end();
        let said = |text: &str| log.matches(text).count();
        assert_eq!(said("the kernel ended the recorder: memory has a limit of "), 1, "{log}");
        assert_eq!(said("(engine = \"ring\"), which need no unwind tables"), 1, "{log}");
        assert!(log.contains("lower window-bytes, queue-bytes or flight-bytes"), "{log}");
        Ok(())
    });
}
