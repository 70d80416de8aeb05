//! `whit watch`: windows in files, status, faults, other settings while it runs.

mod memory;
mod push;
pub(crate) mod storms;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use whit_testing::run::{needs_of_line, stdout};
use whit_testing::wait::{Load, is_soon, signal, wait_until};

use crate::support::tools::{perf, repository, sibling, succeed, whit, whole_files, workload};
use crate::support::{Skip, check};

/// The program of the service.
fn program() -> PathBuf {
    sibling("whit-watch")
}

/// A service with its folder.
pub(crate) struct Service {
    child: Child,
    place: tempfile::TempDir,
}

impl Service {
    pub(crate) fn start(config: &str) -> Result<Service, Skip> {
        Service::start_with(config, &[], |_| ())
    }

    fn start_with(
        config: &str,
        options: &[&str],
        prepare: impl FnOnce(&Path),
    ) -> Result<Service, Skip> {
        needs_of_line(["record", "-a"])?;
        program();
        let place = tempfile::tempdir().unwrap();
        prepare(place.path());
        let mut service = Service { child: Command::new("true").spawn().unwrap(), place };
        service.configure(config);
        service.launch(options);
        Ok(service)
    }

    fn launch(&mut self, options: &[&str]) {
        self.launch_by(whit(), options);
    }

    /// The command becomes whit.
    fn launch_by(&mut self, mut watch: Command, options: &[&str]) {
        let _ = self.child.wait();
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        watch.arg("watch").arg("--config").arg(self.path("watch.toml")).args(options);
        watch.env("HOME", self.place.path()).env("NOTIFY_SOCKET", self.path("notify"));
        self.child = watch.stderr(log).spawn().unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn configure(&self, config: &str) {
        let (folder, socket) = (self.path("files"), self.path("watch.sock"));
        // The machine may have nothing to do.
        let own = format!(
            "folder = {folder:?}\nsocket = {socket:?}\nevent = \"cpu-clock\"\nidle = true\n"
        );
        fs::write(self.path("watch.toml"), own + config).unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        whole_files(&self.path("files"))
    }

    fn manifest(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("files/manifest.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn wait_for_files(&self, number: usize) {
        if !is_soon(|| self.files().len() >= number) {
            panic!("{} files: {}", self.files().len(), self.log());
        }
    }

    /// In a file behind so many. A window may be too short for a sample, or have lost all to switches.
    fn wait_for_samples(&self, behind: usize) {
        let has_samples = || self.files().iter().skip(behind).any(|file| samples(file) > 0);
        assert!(is_soon(has_samples), "no samples: {}", self.log());
    }

    fn ask(&self, options: &[&str]) -> Output {
        let mut ask = whit();
        ask.args(["watch", "status", "--socket"]).arg(self.path("watch.sock")).args(options);
        ask.output().unwrap()
    }

    fn status(&self) -> Value {
        serde_json::from_slice(&self.ask(&["--json"]).stdout).unwrap_or_default()
    }

    fn counted(&self, name: &str) -> u64 {
        self.status()["counted"][name].as_u64().unwrap_or(0)
    }

    fn recorder(&self) -> Option<u64> {
        self.status()["recorder_pid"].as_u64()
    }

    /// Ends it in an orderly way; gives its log.
    pub(crate) fn end(&mut self) -> String {
        signal(&self.child, "-TERM");
        let code = self.child.wait().unwrap();
        assert_eq!(code.code(), Some(0), "{}", self.log());
        self.log()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(pid: u64, name: &str) {
    succeed(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]));
}

/// Samples of all commands in a file.
fn samples(file: &Path) -> u64 {
    samples_with(&[], file)
}

/// Samples of a process in a file. Other tests run programs of the same name.
fn samples_of(pid: u32, file: &Path) -> u64 {
    samples_with(&["--pid", &pid.to_string()], file)
}

fn samples_with(options: &[&str], file: &Path) -> u64 {
    let mut report = whit();
    report.args(["report", "--json", "--sort", "comm", "--no-children"]).args(options);
    let report: Value = serde_json::from_slice(&succeed(report.arg("-i").arg(file))).unwrap();
    let events = report["events"].as_array().unwrap();
    let rows = events.iter().flat_map(|event| event["rows"].as_array().into_iter().flatten());
    rows.filter_map(|row| row["self"]["samples"].as_u64()).sum()
}

#[test]
fn each_window_is_a_recording_that_readers_open() {
    check("watch::each_window_is_a_recording_that_readers_open", || {
        let busy = Load::start(Command::new(workload("shares")?).args(["flat", "120"]));
        let launched = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let mut service = Service::start("freq = 199\nwindow = \"1s\"\n")?;
        service.wait_for_files(4);
        let log = service.end();
        assert!(log.contains("whit watch: recording: a window ends every "), "{log}");
        let files = service.files();
        let lines = service.manifest();
        assert_eq!(lines.len(), files.len());
        // A starved recorder gives samples to a later window, but none before they are taken.
        let mut samples = 0;
        let in_files: Vec<_> = files.iter().map(|file| samples_of(busy.id(), file)).collect();
        for (more, line) in in_files.iter().zip(&lines) {
            samples += more;
            let length = line["end_s"].as_f64().unwrap() - launched;
            assert!(samples as f64 <= 199.0 * length + 1.0, "{samples} by {line}");
        }
        assert!(samples >= 20, "{samples}");
        if let Ok(mut perf) = perf() {
            let most = in_files.iter().zip(&files).max_by_key(|(samples, _)| **samples);
            let file = most.expect("a file").1;
            let report = perf.args(["report", "--stdio", "-i"]).arg(file).output().unwrap();
            assert!(stdout(&report).contains("shares"), "{}", stdout(&report));
        }
        for two in lines.windows(2) {
            let time = |line: &Value, name: &str| line[name].as_f64().unwrap();
            let next = time(&two[1], "start_s");
            // Two clocks are read one after the other, and a busy machine may run others between.
            assert!((time(&two[0], "end_s") - next).abs() < 0.5, "{two:?}");
        }
        // The signal ends the last one; the others are half as long as `window` says at least.
        for line in &lines[1..lines.len() - 1] {
            let length = line["end_s"].as_f64().unwrap() - line["start_s"].as_f64().unwrap();
            assert!(length > 0.49, "{line}");
        }
        drop(busy);
        Ok(())
    });
}

#[test]
fn a_killed_recorder_is_started_again_and_the_gap_is_counted() {
    check("watch::a_killed_recorder_is_started_again_and_the_gap_is_counted", || {
        let mut service = Service::start("window = \"1s\"\n")?;
        service.wait_for_files(1);
        let first = service.recorder().expect("a recorder");
        kill(first, "KILL");
        let is_other = || service.recorder().is_some_and(|pid| pid != first);
        assert!(is_soon(is_other), "{}", service.log());
        assert!(is_soon(|| service.counted("gap_ms") > 0), "{}", service.log());
        assert_eq!(service.counted("recorder_ends"), 1);
        let number = service.files().len();
        service.wait_for_files(number + 2);
        let text = stdout(&service.ask(&[]));
        assert!(text.contains("  recorder_ends: 1 ("), "{text}");
        let log = service.end();
        assert!(
            log.contains("the recorder ended (signal: 9 (SIGKILL)): it is started again"),
            "{log}"
        );
        assert!(log.contains("recording goes on: for "), "{log}");
        Ok(())
    });
}

#[test]
fn a_stopped_recorder_is_noticed_and_another_one_starts() {
    check("watch::a_stopped_recorder_is_noticed_and_another_one_starts", || {
        let mut service = Service::start("window = \"1s\"\n")?;
        service.wait_for_files(2);
        let first = service.recorder().expect("a recorder");
        assert_eq!(service.counted("recorder_hangs"), 0);
        kill(first, "STOP");
        assert!(is_soon(|| service.counted("recorder_hangs") == 1), "{}", service.log());
        let is_other = || service.recorder().is_some_and(|pid| pid != first);
        assert!(is_soon(is_other), "{}", service.log());
        let number = service.files().len();
        service.wait_for_files(number + 2);
        // It is said once, and the new one does not hang.
        assert_eq!(service.counted("recorder_hangs"), 1);
        let log = service.end();
        assert_eq!(
            log.matches("the recorder hangs: it has written nothing for ").count(),
            1,
            "{log}"
        );
        assert!(log.contains("recording goes on: for "), "{log}");
        Ok(())
    });
}

#[test]
fn a_quiet_target_is_no_recorder_that_hangs() {
    check("watch::a_quiet_target_is_no_recorder_that_hangs", || {
        let group = memory::perf_cgroup()?;
        let config = format!("window = \"1s\"\ncgroup = [{:?}]\n", group.name());
        let mut service = Service::start(&config)?;
        let begun = || service.log().contains("whit watch: recording: a window ends");
        assert!(is_soon(begun), "{}", service.log());
        // Longer than a silence and the time for an answer.
        let is_old = || service.status()["up_s"].as_f64() > Some(35.0);
        assert!(is_soon(is_old), "{}", service.log());
        assert_eq!(service.counted("recorder_hangs"), 0, "{}", service.log());
        assert_eq!(service.counted("recorder_ends"), 0, "{}", service.log());
        service.end();
        Ok(())
    });
}

#[test]
fn no_windows_are_made_that_no_sink_takes() {
    check("watch::no_windows_are_made_that_no_sink_takes", || {
        let mut service = Service::start("window = \"1s\"\nformat = \"none\"\n")?;
        let is_old = || service.status()["up_s"].as_f64() > Some(6.0);
        assert!(is_soon(is_old), "{}", service.log());
        let counted = |name| service.counted(name);
        assert_eq!((counted("windows"), counted("window_bytes")), (0, 0));
        assert_eq!(counted("records_lost_by_window_bytes"), 0);
        assert!(service.recorder().is_some(), "{}", service.log());
        // A sink that comes later gets windows.
        service.configure("window = \"1s\"\n");
        signal(&service.child, "-HUP");
        service.wait_for_files(2);
        service.wait_for_samples(0);
        service.end();
        Ok(())
    });
}

#[test]
fn idle_cpus_have_no_samples() {
    check("watch::idle_cpus_have_no_samples", || {
        let busy = Load::start(Command::new(workload("shares")?).args(["flat", "120"]));
        let config = "freq = 199\nwindow = \"1s\"\n";
        let mut service = Service::start_with(config, &["--idle=false"], |_| ())?;
        service.wait_for_files(4);
        service.end();
        let files = service.files();
        let sum_of = |pid| files.iter().map(|file| samples_of(pid, file)).sum::<u64>();
        assert!(sum_of(busy.id()) >= 20, "{}", service.log());
        // The idle threads of all CPUs.
        assert_eq!(sum_of(0), 0);
        drop(busy);
        Ok(())
    });
}

#[test]
fn windows_become_a_dataset_that_drops_its_oldest_ones() {
    check("watch::windows_become_a_dataset_that_drops_its_oldest_ones", || {
        let busy = Load::start(Command::new(workload("shares")?).args(["flat", "120"]));
        let config = "freq = 199\nwindow = \"1s\"\nformat = \"parquet\"\n";
        let mut service = Service::start(config)?;
        let detail =
            |name: &str| service.status()["sinks"][0]["detail"][name].as_u64().unwrap_or(0);
        assert!(is_soon(|| detail("files") >= 3), "{}", service.log());
        let bytes = detail("bytes");
        let dataset = service.path("files/dataset");
        let asked = |sql: &str| -> Value {
            let mut query = whit();
            query.args(["query", "--json", "--dataset"]).arg(&dataset).args(["-c", sql]);
            serde_json::from_slice(&succeed(&mut query)).unwrap()
        };
        let found = asked(
            "SELECT COUNT(*) AS samples, COUNT(DISTINCT s.recording_id) AS recordings FROM sample s \
             JOIN thread t ON t.utid = s.utid WHERE t.name = 'shares'",
        );
        let number = |name: &str| found[0][name].as_u64().unwrap_or_else(|| panic!("{found}"));
        assert!(number("samples") > 10 && number("recordings") >= 2, "{found}");
        // As small as can be: one window stays.
        service.configure(&format!("{config}keep-bytes = \"1K\"\n"));
        signal(&service.child, "-HUP");
        assert!(is_soon(|| detail("removed_by_age_or_bytes") >= 3), "{}", service.log());
        assert!(detail("bytes") < bytes, "{}", service.log());
        service.end();
        let left = asked("SELECT COUNT(*) AS recordings FROM recording");
        assert_eq!(left[0]["recordings"].as_u64(), Some(1), "{left}");
        drop(busy);
        Ok(())
    });
}

#[test]
fn a_killed_service_starts_again_in_its_folder() {
    check("watch::a_killed_service_starts_again_in_its_folder", || {
        let mut service = Service::start("window = \"1s\"\n")?;
        service.wait_for_files(2);
        let recorder = service.recorder().expect("a recorder");
        service.child.kill().unwrap();
        let proc = PathBuf::from(format!("/proc/{recorder}"));
        wait_until("the recorder ends at its next write", || !proc.exists());
        let half = service.path("files/.writing-whit-20200101T000000Z.data");
        fs::write(&half, "half").unwrap();
        let before = service.files().len();
        service.launch(&[]);
        service.wait_for_files(before + 2);
        assert!(!half.exists());
        for file in service.files() {
            succeed(whit().args(["report", "--stdio", "-i"]).arg(&file));
        }
        assert!(
            service.status()["sinks"][0]["detail"]["files"].as_u64() >= Some(before as u64 + 2)
        );
        service.end();
        Ok(())
    });
}

#[test]
fn old_files_go_and_a_full_disk_ends_nothing() {
    check("watch::old_files_go_and_a_full_disk_ends_nothing", || {
        // A file system of 1 MiB, filled by others.
        let disk = tempfile::tempdir().unwrap();
        let mount =
            |options: &[&str]| Command::new("mount").args(options).arg(disk.path()).output();
        let mounted = mount(&["-t", "tmpfs", "-o", "size=16m", "tmpfs"]);
        if !mounted.is_ok_and(|it| it.status.success()) {
            return Err(Skip("this user cannot mount a small file system".to_owned()));
        }
        let unmount = Unmount(disk.path().to_owned());
        let folder = disk.path().join("files");
        let mut service = Service::start_with(
            "window = \"1s\"\n",
            &["--folder", folder.to_str().unwrap()],
            |_| (),
        )?;
        let number = || fs::read_dir(&folder).into_iter().flatten().count();
        wait_until("two files", || number() >= 4);
        let mut filler = fs::File::create(disk.path().join("filler")).unwrap();
        while filler.write_all(&[1; 4096]).is_ok() {}
        let lost =
            || service.status()["sinks"][0]["detail"]["windows_lost_by_disk"].as_u64().unwrap_or(0);
        assert!(is_soon(|| lost() >= 2), "{}", service.log());
        assert!(service.log().matches("No space left on device").count() >= 1, "{}", service.log());
        drop(filler);
        fs::remove_file(disk.path().join("filler")).unwrap();
        let before = number();
        wait_until("files again", || number() >= before + 2);
        // As small as can be: one file stays.
        fs::write(
            service.path("watch.toml"),
            format!(
                "keep-bytes = \"1K\"\nwindow = \"1s\"\nevent = \"cpu-clock\"\nsocket = {:?}\n",
                service.path("watch.sock")
            ),
        )
        .unwrap();
        signal(&service.child, "-HUP");
        wait_until("old files go", || number() <= 4);
        let log = service.end();
        assert!(log.contains("the configuration was read again"), "{log}");
        drop(unmount);
        Ok(())
    });
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn settings_change_while_it_runs_and_bad_ones_do_not() {
    check("watch::settings_change_while_it_runs_and_bad_ones_do_not", || {
        let mut service = Service::start("window = \"1s\"\n")?;
        service.wait_for_files(1);
        let first = service.recorder().expect("a recorder");
        let refused = |number| is_soon(|| service.counted("reloads_refused") == number);
        service.configure("window = \"1s\"\nfreqq = 99\n");
        signal(&service.child, "-HUP");
        assert!(refused(1), "{}", service.log());
        assert!(
            service.log().contains("there is no key 'freqq': did you mean 'freq'?"),
            "{}",
            service.log()
        );
        assert_eq!(service.recorder(), Some(first));
        // A recorder that refuses its options: the old settings come back.
        service.configure("window = \"1s\"\nrecord-options = [\"--no-such-option\"]\n");
        signal(&service.child, "-HUP");
        assert!(refused(2), "{}", service.log());
        let number = service.files().len();
        service.wait_for_files(number + 1);
        assert!(service.log().contains("the recorder refuses the new ones"), "{}", service.log());
        service.configure("window = \"1s\"\nfreq = 97\n");
        signal(&service.child, "-HUP");
        assert!(is_soon(|| service.counted("reloads") >= 2), "{}", service.log());
        let number = service.files().len();
        service.wait_for_files(number + 2);
        service.end();
        let last = service.files().pop().unwrap();
        let header = succeed(whit().args(["report", "--header-only", "-i"]).arg(last));
        assert!(
            String::from_utf8_lossy(&header).contains("97"),
            "{}",
            String::from_utf8_lossy(&header)
        );
        Ok(())
    });
}

#[test]
fn systemd_and_prometheus_get_what_they_ask_for() {
    check("watch::systemd_and_prometheus_get_what_they_ask_for", || {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).unwrap().port();
        let mut notify = None;
        let bind = |place: &Path| notify = UnixDatagram::bind(place.join("notify")).ok();
        let config = format!("window = \"1s\"\nmetrics = \"127.0.0.1:{port}\"\n");
        let mut service = Service::start_with(&config, &[], bind)?;
        let notify = notify.unwrap();
        notify.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let next = || {
            let mut bytes = [0; 500];
            let received = loop {
                match notify.recv(&mut bytes) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    received => break received,
                }
            };
            let size = received.expect("a message to systemd");
            String::from_utf8_lossy(&bytes[..size]).into_owned()
        };
        while next() != "READY=1" {}
        service.wait_for_files(2);
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut page = String::new();
        client.read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
        assert!(page.contains("\nwhit_watch_recorder_runs 1\n"), "{page}");
        let own = page
            .lines()
            .find_map(|line| line.strip_prefix("whit_watch_memory_bytes{part=\"recorder\"} "));
        assert!(own.and_then(|it| it.parse::<f64>().ok()).is_some_and(|it| it > 1e6), "{page}");
        signal(&service.child, "-TERM");
        while next() != "STOPPING=1" {}
        assert_eq!(service.child.wait().unwrap().code(), Some(0));
        assert_eq!(service.ask(&[]).status.code(), Some(1));
        Ok(())
    });
}

#[test]
fn a_wrong_start_says_why_and_ends_with_the_code_of_its_cause() {
    program();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s.sock");
    let ended = |options: &[&str]| {
        let mut watch = whit();
        watch.args(["watch", "--socket"]).arg(&socket).arg("--folder").arg(folder.path().join("f"));
        let output = watch.args(options).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (options, wanted) in [
        (["--window", "x"], "whit watch: "),
        (["--fre", "1"], "--freq"),
        (["--metrics", "0.0.0.0:1"], "everyone in the network"),
        (["--config", "/nowhere.toml"], "/nowhere.toml"),
        (["--folder", "/proc/no"], "--folder names another one"),
        (["--set", "freq"], "write KEY=VALUE"),
    ] {
        let (code, text) = ended(&options);
        assert!(code == Some(2) && text.contains(wanted), "{options:?}: {code:?} {text}");
    }
    let (code, text) = ended(&["--event", "no-such-event"]);
    assert!(code == Some(2) || code == Some(1), "{code:?} {text}");
    assert!(text.contains("no-such-event"), "{text}");
}

/// The unit of systemd, which has the program at another place here.
fn unit() -> String {
    fs::read_to_string(repository().join("deploy/whit-watch.service")).unwrap()
}

#[test]
fn systemd_takes_the_unit() {
    check("watch::systemd_takes_the_unit", || {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("whit-watch.service");
        fs::write(&path, unit().replace("/usr/bin/whit", env!("CARGO_BIN_EXE_whit"))).unwrap();
        let analyze = |options: &[&str]| {
            let output = Command::new("systemd-analyze").args(options).arg(&path).output();
            output
                .map_err(|_| Skip("systemd-analyze is not installed (apt install systemd)".into()))
        };
        let verified = analyze(&["verify", "--man=no"])?;
        let text = String::from_utf8_lossy(&verified.stderr).into_owned() + &stdout(&verified);
        assert!(verified.status.success() && !text.contains("whit-watch.service"), "{text}");
        // The worst level is 10: a service without any limits has 9.6.
        let judged = stdout(&analyze(&["security", "--offline=true", "--threshold=30"])?);
        let level = judged.lines().last().unwrap_or_default().split(' ').nth(6).map(str::to_owned);
        let level: f64 = level.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{judged}"));
        assert!(level <= 3.0, "{judged}");
        Ok(())
    });
}

#[test]
fn the_capabilities_of_the_unit_are_enough() {
    check("watch::the_capabilities_of_the_unit_are_enough", || {
        needs_of_line(["record", "-a"])?;
        let unit = unit();
        let list = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=")).unwrap();
        let names = list.split(' ').map(|name| name.trim_start_matches("CAP_").to_lowercase());
        let set = names.fold("-all".to_owned(), |set, name| format!("{set},+{name}"));
        // Folders of the build may be closed to other users.
        let place = tempfile::tempdir().unwrap();
        succeed(Command::new("chmod").arg("777").arg(place.path()));
        for built in [PathBuf::from(env!("CARGO_BIN_EXE_whit")), program()] {
            whit_testing::run::copy_program(&built, place.path().join(built.file_name().unwrap()));
        }
        let mut watch = Command::new("setpriv");
        watch.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
        watch.args(["--inh-caps", &set, "--ambient-caps", &set, "--bounding-set", &set]);
        watch.arg(place.path().join("whit")).args([
            "watch",
            "--window",
            "1s",
            "--idle",
            "--event",
            "cpu-clock",
        ]);
        watch.arg("--folder").arg(place.path().join("files"));
        watch.arg("--socket").arg(place.path().join("s.sock")).env("HOME", place.path());
        let log = fs::File::create(place.path().join("log")).unwrap();
        let started = watch.stderr(log).spawn();
        let child =
            started.map_err(|_| Skip("setpriv is not installed (util-linux)".to_owned()))?;
        let mut service = Service { child, place };
        let log = || fs::read_to_string(service.path("log")).unwrap_or_default();
        if log().contains("setpriv: ") {
            return Err(Skip(format!("this user cannot give capabilities: {}", log().trim())));
        }
        assert!(is_soon(|| service.files().len() >= 3), "{}", log());
        service.wait_for_samples(0);
        service.end();
        Ok(())
    });
}
