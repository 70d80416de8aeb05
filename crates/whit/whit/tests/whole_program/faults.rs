//! Failures while recording: the recorder dies, the disk is full, limits are low, the target does
//! everything at once.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::support::stats::Stats;
use crate::support::tools::{command, perf, record, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::run::stderr;
use whit_testing::wait::{signal, wait_until};

/// Every way of writing that has something of its own to lose.
const MODES: [&str; 5] = ["", "--aio=2", "-z", "-z --aio=4", "--threads --aio -z --affinity=cpu"];

fn whit_record(mode: &str, path: &Path) -> Command {
    let mut whit = whit();
    whit.args(["record", "--engine=ring", "-e", "cpu-clock", "-F", "999"])
        .args(mode.split_ascii_whitespace());
    whit.arg("-o").arg(path);
    whit
}

fn whit_stats(path: &Path) -> Stats {
    Stats::parse(&text(whit().args(["report", "--stats", "-i"]).arg(path)))
}

/// Size of a file, or of all files of a directory.
fn size(path: &Path) -> u64 {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().filter_map(|e| Some(e.metadata().ok()?.len())).sum(),
        Err(_) => path.metadata().map_or(0, |metadata| metadata.len()),
    }
}

#[test]
fn a_killed_recorder_leaves_all_flushed_records() {
    check("a_killed_recorder_leaves_all_flushed_records", || {
        let directory = tempfile::tempdir().expect("make a directory");
        record(whit_record("", &directory.path().join("perf.data")).args(["--", "true"]))?;
        for mode in MODES {
            let path = directory.path().join("killed.data");
            let mut whit_record = whit_record(mode, &path);
            whit_record.args(["--call-graph", "dwarf,8192", "--"]);
            whit_record.args(["sh", "-c", "while :; do :; done"]).stderr(Stdio::null());
            let ended = killed_behind(&mut whit_record, &path, 200_000);
            assert_eq!(ended, None, "{mode}: whit ended by itself");
            let output = whit().args(["report", "--stats", "-i"]).arg(&path).output();
            let output = output.expect("run whit");
            assert!(output.status.success(), "{mode}: {}", stderr(&output));
            let stats = Stats::parse(&String::from_utf8_lossy(&output.stdout));
            assert!(stats.samples() > 0, "{mode}: {} bytes: {output:?}", size(&path));
            assert!(
                stderr(&output).contains("did not end properly"),
                "{mode}: {}",
                stderr(&output)
            );
            // The next recorder is killed behind its own records.
            let _ = std::fs::remove_dir_all(&path);
            let _ = std::fs::remove_file(&path);
        }
        Ok(())
    });
}

/// Forms of output that perf has, with the records that engines put into them.
const KILLED: [&str; 8] = [
    "",
    "--aio=2",
    "-z --aio=4",
    "--dir",
    "--threads -z",
    "--threads --aio -z --affinity=cpu",
    "--engine=bpf --switch-events -g",
    "--engine=bpf --switch-events -g --threads -z",
];

#[test]
fn perf_reads_an_export_of_a_killed_recorders_file() {
    check("perf_reads_an_export_of_a_killed_recorders_file", || {
        let directory = tempfile::tempdir().expect("make a directory");
        for mode in KILLED {
            if mode.contains("bpf")
                && let Err(Skip(reason)) = probe::bpf_stacks()
            {
                whit_testing::skip("an export of a killed recorder with the BPF engine", &reason);
                continue;
            }
            let [path, out] =
                ["killed.data", "exported.data"].map(|name| directory.path().join(name));
            let mut whit_record = whit_record(mode, &path);
            whit_record.env("XDG_CACHE_HOME", directory.path().join("cache"));
            whit_record.args(["-m", "64K", "--", "sh", "-c", "while :; do :; done"]);
            whit_record.stderr(Stdio::null());
            let ended = killed_behind(&mut whit_record, &path, 50_000);
            assert_eq!(ended, None, "{mode}: whit ended by itself");
            let ours = whit_stats(&path);
            let exported =
                whit().args(["export", "--perf", "-i"]).arg(&path).arg("-o").arg(&out).output();
            let said = stderr(&exported.expect("run whit"));
            assert!(said.contains("did not end properly"), "{mode}: {said}");
            assert!(said.contains("(for stock perf: whit export --perf)"), "{mode}: {said}");
            let theirs = Stats::parse(&text(perf()?.args(["report", "--stats", "-i"]).arg(&out)));
            assert!(ours.samples() > 0, "{mode}: {said}");
            assert_eq!(theirs.samples_by_event, ours.samples_by_event, "{mode}: {said}");
            for path in [path, out] {
                let _ = std::fs::remove_dir_all(&path);
                let _ = std::fs::remove_file(&path);
            }
        }
        Ok(())
    });
}

/// Whether a recording that is still written has samples by now. BPF programs that other tests load are records, too.
fn has_samples(path: &Path) -> bool {
    let output = whit().args(["report", "--stats", "-i"]).arg(path).output().expect("run whit");
    output.status.success() && Stats::parse(&String::from_utf8_lossy(&output.stdout)).samples() > 0
}

/// Kills a recorder with its command when samples and so much are in its file; gives the status of one that ended by
/// itself.
fn killed_behind(recorder: &mut Command, path: &Path, bytes: u64) -> Option<ExitStatus> {
    let recorder = recorder.process_group(0).spawn().expect("run whit");
    let mut recorder = EndedWithGroup(recorder);
    let has_data = || size(path) > bytes && has_samples(path);
    wait_until("data is in the file", || has_data() || exited(&mut recorder.0));
    recorder.0.try_wait().expect("look at whit")
}

fn exited(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|status| status.is_some())
}

/// The recorder and its command: an orphan would run on for ever.
fn kill_group(leader: &Child) {
    let group = format!("-{}", leader.id());
    let _ = command("kill").args(["-KILL", "--", &group]).status();
}

/// A small disk of its own.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(directory: &Path, size: &str) -> Result<SmallDisk, Skip> {
        let path = directory.join("disk");
        std::fs::create_dir_all(&path).expect("make a directory");
        let mut mount = command("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path);
        let output = mount.output().map_err(|error| Skip(format!("no mount here: {error}")))?;
        if !output.status.success() {
            return Err(Skip(format!("a tmpfs cannot be mounted: {}", stderr(&output).trim())));
        }
        Ok(SmallDisk(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = command("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_the_recording_and_not_the_command() {
    check("a_full_disk_stops_the_recording_and_not_the_command", || {
        let deep = workload("deep")?;
        let directory = tempfile::tempdir().expect("make a directory");
        for mode in MODES {
            let disk = SmallDisk::mount(directory.path(), "1M")?;
            let path = disk.0.join("perf.data");
            let mut whit_record = whit_record(mode, &path);
            // Noise that compresses badly, so that compressed recordings fill the disk too.
            whit_record.args(["-F", "9999", "--call-graph", "dwarf,32768", "--"]);
            let script =
                format!("{} --iterations 100000 >&2; echo finished; exit 3", deep.display());
            let output = whit_record.args(["sh", "-c", &script]).output().expect("run whit");
            let said = stderr(&output);
            if !said.contains("No space left") {
                assert!(mode.contains("-z"), "{mode}: {said}");
                continue;
            }
            assert!(said.contains("perf.data"), "{mode}: {said}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "finished\n", "{mode}: {said}");
            assert_eq!(output.status.code(), Some(3), "{mode}: {said}");
            let line = said.lines().last().unwrap_or_default();
            assert!(line.contains(" and everything since recording stopped, "), "{mode}: {said}");
            let samples: u64 = line
                .split_once("record: ")
                .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
                .unwrap_or_else(|| panic!("{mode}: {said}"));
            assert_eq!(whit_stats(&path).samples(), samples, "{mode}: {said}");
            let theirs = text(perf()?.args(["report", "--stats", "-i"]).arg(&path));
            assert_eq!(Stats::parse(&theirs).samples(), samples, "{mode}: {said}");
        }
        Ok(())
    });
}

/// Opening a pipe takes until somebody reads it.
#[test]
fn a_signal_ends_the_set_up() {
    check("a_signal_ends_the_set_up", || {
        probe::own_events()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let (pipe, marker) = (directory.path().join("pipe"), directory.path().join("ran"));
        assert!(command("mkfifo").arg(&pipe).status().expect("run mkfifo").success());
        for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
            let mut whit_record = whit_record("", &pipe);
            whit_record.arg("touch").arg(&marker).process_group(0);
            let recorder = whit_record.stderr(Stdio::null()).spawn().expect("run whit");
            let mut recorder = EndedWithGroup(recorder);
            wait_until("the recorder takes signals itself", || blocks(&recorder.0, number));
            signal(&recorder.0, name);
            wait_until("the recorder has ended", || exited(&mut recorder.0));
            let status = recorder.0.wait().expect("wait for whit");
            assert_eq!(status.code(), Some(128 + number), "{name}");
        }
        assert!(!marker.exists(), "the command must not run unrecorded");
        Ok(())
    });
}

/// A process group that ends with the test.
struct EndedWithGroup(Child);

impl Drop for EndedWithGroup {
    fn drop(&mut self) {
        kill_group(&self.0);
        let _ = self.0.wait();
    }
}

/// Whether a process has blocked a signal.
fn blocks(process: &Child, number: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()));
    let status = status.unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (number - 1)) != 0)
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    check("a_directory_that_cannot_be_written_is_named", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let disk = SmallDisk::mount(directory.path(), "1M")?;
        let remount = command("mount").args(["-o", "remount,ro"]).arg(&disk.0).status();
        assert!(remount.expect("run mount").success());
        for mode in ["", "--threads"] {
            let path = disk.0.join("perf.data");
            let marker = directory.path().join("ran");
            let output = whit_record(mode, &path).arg("touch").arg(&marker).output();
            let output = output.expect("run whit");
            assert_eq!(output.status.code(), Some(1));
            let said = stderr(&output);
            assert!(said.contains("perf.data") && said.contains("Read-only file system"), "{said}");
            assert!(!marker.exists(), "the command must not run unrecorded");
        }
        Ok(())
    });
}

#[test]
fn storms_of_processes_and_mappings_are_recorded_whole() {
    check("storms_of_processes_and_mappings_are_recorded_whole", || {
        let storm = workload("storm")?;
        probe::own_events()?;
        let directory = tempfile::tempdir().expect("make a directory");
        for mode in ["", "--threads --aio -z --affinity=cpu"] {
            let path = directory.path().join("storm.data");
            let mut whit_record = whit_record(mode, &path);
            whit_record.args(["-m", "8M", "--"]).arg(&storm);
            let amounts = ["--forks", "10000", "--maps", "100000", "--threads", "500"];
            let output = whit_record.args(amounts).args(["--execs", "200"]).output();
            let output = output.expect("run whit");
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{said}");
            assert!(said.contains("lost 0 "), "{mode}: {said}");
            let stats = whit_stats(&path);
            let count = |kind: &str| stats.by_type.get(kind).copied().unwrap_or(0);
            assert_eq!(count("FORK"), 10_000 + 500, "{mode}");
            // The program itself exits as well.
            assert_eq!(count("EXIT"), 10_000 + 500 + 1, "{mode}");
            assert!(count("MMAP2") >= 100_000 && count("COMM") >= 200, "{mode}: {stats:?}");
        }
        Ok(())
    });
}

#[test]
fn a_command_that_exits_at_once_leaves_a_whole_recording() {
    check("a_command_that_exits_at_once_leaves_a_whole_recording", || {
        let directory = tempfile::tempdir().expect("make a directory");
        for mode in MODES {
            let path = directory.path().join("short.data");
            let output = whit_record(mode, &path).arg("true").output().expect("run whit");
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{mode}: {said}");
            let stats = whit_stats(&path);
            assert!(stats.by_type["COMM"] > 0, "{mode}");
            let theirs = text(perf()?.args(["report", "--stats", "-i"]).arg(&path));
            assert_eq!(Stats::parse(&theirs), stats, "{mode}");
        }
        Ok(())
    });
}

#[test]
fn few_descriptors_are_enough_or_the_limit_is_named() {
    check("few_descriptors_are_enough_or_the_limit_is_named", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("few.data");
        let limited = |limit: &str, options: &str| {
            let whit = whit().get_program().to_string_lossy().into_owned();
            let path = path.display();
            let record = format!("'{whit}' record -e cpu-clock -o '{path}' {options}");
            let script = format!("ulimit -n {limit}; exec {record} -- sh -c 'exit 5'");
            command("sh").args(["-c", &script]).output().expect("run sh")
        };
        for mode in MODES {
            let output = limited("64", mode);
            assert_eq!(output.status.code(), Some(5), "{mode}: {}", stderr(&output));
            assert!(whit_stats(&path).by_type["COMM"] > 0, "{mode}");
        }
        // A soft limit is raised by itself.
        let output = limited("-S 16", "--threads --aio");
        assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
        let output = limited("16", "--threads --aio");
        let said = stderr(&output);
        assert!(output.status.code() == Some(5) || said.contains("ulimit -n"), "{said}");
        Ok(())
    });
}

/// By the kernel's own rule: up to 2, everybody may count their own processes in user mode.
pub(crate) fn ordinary_users_may_record() -> Result<(), Skip> {
    let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let setting = setting.map_err(|error| Skip(format!("no perf events here: {error}")))?;
    match setting.trim().parse::<i32>().expect("a number") {
        ..=2 => Ok(()),
        level => Err(Skip(format!("perf_event_paranoid is {level}: users may record nothing"))),
    }
}

#[test]
fn without_locked_memory_an_ordinary_user_records_with_smaller_rings() {
    check("without_locked_memory_an_ordinary_user_records_with_smaller_rings", || {
        probe::root()?;
        ordinary_users_may_record()?;
        let setting = Path::new("/proc/sys/kernel/perf_event_mlock_kb");
        if std::fs::read_to_string(setting).is_err() {
            return Err(Skip("there is no kernel.perf_event_mlock_kb here".into()));
        }
        let directory = tempfile::tempdir_in("/tmp").expect("make a directory");
        let open = |path: &Path| {
            let status = command("chmod").arg("777").arg(path).status();
            assert!(status.expect("run chmod").success());
        };
        open(directory.path());
        let program = directory.path().join("whit");
        whit_testing::run::copy_program(whit().get_program(), &program);
        let path = directory.path().join("user.data");
        let record = format!(
            "ulimit -l 0; exec {} record -e cpu-clock:u -m 4M --threads -z -o {} -- sh -c 'exit 6'",
            program.display(),
            path.display()
        );
        let mut user = command("setpriv");
        user.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", &record]);
        let output = user.current_dir(directory.path()).output();
        let output = output.map_err(|error| Skip(format!("no setpriv here: {error}")))?;
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(6), "{said}");
        assert!(said.contains("rings of") && said.contains("ulimit -l"), "{said}");
        assert!(whit_stats(&path).by_type["COMM"] > 0);
        Ok(())
    });
}
