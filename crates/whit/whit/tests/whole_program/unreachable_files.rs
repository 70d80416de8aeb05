//! Programs whose files do not lie where their mappings say: deleted and replaced ones, those of a process below
//! another root in another mount namespace, and those on an overlay over several file systems.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::script::{self, Sample};
use crate::support::tools::{command, text, whit, workload};
use crate::support::{Skip, check};

/// `_start`, two functions of the C library, `main`, `serve_request`, six times `serve_inner`, seven times
/// `work_recurse`, and `work_burn`; from the clock's functions that `main` calls it is less.
const STACK_FRAMES: usize = 19;
/// Chains that must be whole, once the tables are there. Some samples lie in the C library.
const LEAST_WHOLE: f64 = 0.99;
/// Fewer samples than this in a recording of more than a second are none of a busy program.
const LEAST_SAMPLES: usize = 50;
/// All of them are in each whole chain.
const FUNCTIONS: [&str; 5] = ["main", "serve_request", "serve_inner", "work_recurse", "work_burn"];
/// Names of the functions of `impostor`.
const IMPOSTOR: &str = "impostor_";
/// How long is recorded, and how often sampled.
const SECONDS: &str = "1.5";
const HZ: &str = "499";

/// The mounts of a container: what `$1/app` holds is below `$1/root` of a file system of its own, together with
/// the libraries that it needs.
const BELOW_ANOTHER_ROOT: &str = r#"
mount --make-rprivate /
mount -t tmpfs whit "$1/root"
cp -L --parents $(ldd "$1/app/service" | grep -o '/[^ )]*') "$1/root"
mkdir "$1/root/app"
cp "$1/app/service" "$1/app/libwork.so" "$1/root/app"
LD_LIBRARY_PATH=/app exec chroot "$1/root" /app/service
"#;

/// Layers of an overlay on two file systems.
const ON_AN_OVERLAY: &str = r#"
mount --make-rprivate /
mount -t tmpfs whit "$1/root"
mkdir "$1/root/upper" "$1/root/work" "$1/root/first" "$1/root/second" "$1/root/app"
mount -t tmpfs whit "$1/root/second"
cp "$1/app/service" "$1/app/libwork.so" "$1/root/second"
mount -t overlay whit -o "lowerdir=$1/root/first:$1/root/second,upperdir=$1/root/upper,workdir=$1/root/work" "$1/root/app"
exec "$1/root/app/service"
"#;

/// Processes there that live for milliseconds, one after the other.
const SHORT_LIVED: &str = r#"
for i in $(seq 150); do "$1/root/app/service" --seconds 0.002 >/dev/null; done
"#;
/// This share of the walks at most may end because the process was not known yet. 7 to 8 % lie within `execve`,
/// between two programs; where the kernel's programs do not know the files, there are 18 to 26 %.
const MOST_UNKNOWN: f64 = 0.13;
/// And this share at least must be whole: 90 % were; without the files' tables 38 % were, on a busy machine some
/// tables come late.
const LEAST_WHOLE_OF_SHORT_LIVED: f64 = 0.6;

/// A running `service`, and a place for its recordings.
struct Service {
    process: Child,
    place: TempDir,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end();
    }
}

/// Puts a program and its library at a path.
fn install(make: &str, directory: &Path) -> Result<(), Skip> {
    let program = workload(make)?;
    std::fs::create_dir_all(directory).expect("make a directory");
    // As packages are installed: a running program keeps its files.
    let put = |from: &Path, name: &str| {
        let (new, path) = (directory.join("new"), directory.join(name));
        whit_testing::run::copy_program(from, &new);
        std::fs::rename(new, path).expect("rename a program");
    };
    put(&program, "service");
    put(&program.with_file_name(format!("lib{make}.so")), "libwork.so");
    Ok(())
}

impl Service {
    /// Starts it, and waits until it works.
    fn start(mut starter: Command, place: TempDir) -> Result<Service, Skip> {
        let starter = starter.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = starter.spawn().map_err(|error| Skip(format!("{starter:?}: {error}")))?;
        let mut line = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("read its output");
        let service = Service { process, place };
        std::fs::create_dir(service.place.path().join("home")).expect("make a directory");
        match line.trim() {
            "serving" => Ok(service),
            _ => Err(Skip(format!("this machine cannot set it up: {}", service.complaint()))),
        }
    }

    fn complaint(mut self) -> String {
        let errors = self.process.stderr.take().map(std::io::read_to_string);
        errors.and_then(Result::ok).unwrap_or_default()
    }

    /// Deleted and replaced while it runs.
    fn replaced(make: &str, by: &str) -> Result<Service, Skip> {
        let place = tempfile::tempdir().expect("make a directory");
        let app = place.path().join("app");
        install(make, &app)?;
        let service = Service::start(command(app.join("service")), place)?;
        install(by, &app)?;
        std::fs::remove_file(app.join("libwork.so")).expect("delete the library");
        Ok(service)
    }

    /// In mounts of its own, while this machine has others under the same paths.
    fn contained(make: &str, others: &str, script: &str) -> Result<Service, Skip> {
        let place = tempfile::tempdir().expect("make a directory");
        install(make, &place.path().join("app"))?;
        install(others, &place.path().join("root/app"))?;
        let mut starter = command("unshare");
        starter.args(["--mount", "sh", "-ec", script, "sh"]).arg(place.path());
        let service = Service::start(starter, place)?;
        // Where it was copied from.
        std::fs::remove_dir_all(service.place.path().join("app")).expect("remove the original");
        Ok(service)
    }

    /// Its program in a file that is in no directory at all.
    fn in_memory(make: &str) -> Result<Service, Skip> {
        let place = tempfile::tempdir().expect("make a directory");
        let app = place.path().join("app");
        install(make, &app)?;
        let mut starter = command(app.join("service"));
        starter.arg("--from-memory").env("LD_LIBRARY_PATH", &app);
        let service = Service::start(starter, place)?;
        std::fs::remove_dir_all(app).expect("remove the original");
        Ok(service)
    }

    fn pid(&self) -> String {
        self.process.id().to_string()
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("perf.data")
    }

    /// whit, with caches of its own.
    fn whit(&self) -> Command {
        let mut whit = whit();
        whit.env("HOME", self.place.path().join("home"));
        whit.env("XDG_CACHE_HOME", self.place.path().join("cache"));
        whit
    }

    /// Records; gives whit's messages.
    fn record(&self, options: &[&str]) -> String {
        let mut recorder = self.whit();
        recorder
            .args(["record", "--engine=ring", "-e", "cpu-clock", "-F", HZ, "-o"])
            .arg(self.data());
        recorder.args(options).args(["--", "sleep", SECONDS]);
        let output = recorder.output().expect("run whit");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{recorder:?}: {said}");
        said
    }

    /// The service's samples as whit shows them.
    fn samples(&self) -> Vec<Sample> {
        let mut script = self.whit();
        script.args(["script", "--pid", &self.pid(), "-F", "comm,ip,sym", "-i"]);
        script::parse(&text(script.arg(self.data())))
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Whether this machine and user may open files through mappings.
    fn may_be_looked_into(&self) -> Result<(), Skip> {
        let links = PathBuf::from(format!("/proc/{}/map_files", self.pid()));
        let links = std::fs::read_dir(links).map_err(|error| Skip(error.to_string()))?;
        let first = links.filter_map(Result::ok).next();
        let opened = first.map(|link| File::open(link.path()));
        match opened {
            Some(Ok(_)) => Ok(()),
            _ => Err(Skip("this user may not open files through mappings".to_owned())),
        }
    }
}

fn bpf_is_allowed() -> Result<(), Skip> {
    whit_sys::bpf::try_load().map_err(|error| Skip(format!("no BPF programs here: {error}")))
}

/// From the first whole chain on, chains are whole, by the names of their functions: the tables are there. No
/// name is one of the file that has the path here.
fn assert_whole(samples: &[Sample], said: &str) {
    let is_whole = |sample: &&Sample| {
        sample.physical_frames() >= STACK_FRAMES
            && sample.root() == "_start"
            && FUNCTIONS.iter().all(|function| sample.passes(function))
    };
    // With its version, or that of the vdso.
    let is_clock = |symbol: &str| symbol.contains("clock_gettime");
    // The program is on its way into the stack, or out of it: as large a share as the machine makes of that.
    let is_passed = |sample: &Sample| {
        let innermost = sample.frames.first().map_or("", |frame| &frame.symbol);
        FUNCTIONS[..4].contains(&innermost)
    };
    let burning = |sample: &&Sample| {
        !is_passed(sample) && !sample.frames.iter().any(|frame| is_clock(&frame.symbol))
    };
    let first = samples.iter().position(|sample| is_whole(&sample)).unwrap_or(samples.len());
    let then: Vec<_> = samples[first..].iter().filter(burning).collect();
    assert!(then.len() > LEAST_SAMPLES, "{} samples after {first}: {said}", then.len());
    let whole = then.iter().filter(|sample| is_whole(sample)).count();
    let cut = then.iter().find(|sample| !is_whole(sample));
    let share = whole as f64 / then.len() as f64;
    assert!(share >= LEAST_WHOLE, "{whole} of {} are whole; not {cut:#?}: {said}", then.len());
    assert_no_impostor(samples);
}

/// Names of the file that has the path by now would be a lie.
fn assert_no_impostor(samples: &[Sample]) {
    let lies = |sample: &&Sample| sample.frames.iter().any(|f| f.symbol.starts_with(IMPOSTOR));
    assert!(!samples.is_empty());
    let lie = samples.iter().find(lies);
    assert!(lie.is_none(), "a name of another file: {lie:#?}");
}

/// Dumps of the stack that hold all of it.
const DUMPS: [&str; 2] = ["--call-graph", "dwarf,4096"];

fn assert_known(
    name: &str,
    options: &[&str],
    is_system_wide: bool,
    service: impl FnOnce() -> Result<Service, Skip>,
) {
    check(name, || {
        let mut service = service()?;
        service.may_be_looked_into()?;
        let pid = service.pid();
        let target = if is_system_wide { vec!["-a"] } else { vec!["-p", &pid] };
        let said = service.record(&[options, &target].concat());
        assert!(!said.contains("could not be opened"), "{said}");
        assert_whole(&service.samples(), &said);
        // The files that the recorder kept are enough.
        service.end();
        assert_whole(&service.samples(), &said);
        Ok(())
    });
}

fn assert_walked_by_bpf(name: &str, service: impl FnOnce() -> Result<Service, Skip>) {
    assert_known(name, &["--engine=bpf"], false, || bpf_is_allowed().and_then(|()| service()));
}

#[test]
fn the_bpf_engine_walks_through_deleted_files() {
    let deleted = || Service::replaced("service", "impostor");
    assert_walked_by_bpf("bpf_deleted_files", deleted);
}

#[test]
fn the_bpf_engine_walks_through_files_below_another_root() {
    let contained = || Service::contained("service", "impostor", BELOW_ANOTHER_ROOT);
    assert_walked_by_bpf("bpf_another_root", contained);
}

#[test]
fn the_bpf_engine_walks_through_files_on_an_overlay() {
    let overlaid = || Service::contained("service", "impostor", ON_AN_OVERLAY);
    assert_walked_by_bpf("bpf_overlay", overlaid);
}

#[test]
fn the_bpf_engine_walks_through_a_program_in_memory() {
    assert_walked_by_bpf("bpf_memory_file", || Service::in_memory("service"));
}

#[test]
fn dumps_are_unwound_through_deleted_files() {
    let deleted = || Service::replaced("service", "impostor");
    assert_known("dumps_deleted_files", &DUMPS, false, deleted);
}

#[test]
fn dumps_of_the_whole_machine_are_unwound_through_deleted_files() {
    let deleted = || Service::replaced("service", "impostor");
    assert_known("dumps_deleted_files_system_wide", &DUMPS, true, deleted);
}

#[test]
fn dumps_are_unwound_through_deleted_files_without_build_ids() {
    let deleted = || Service::replaced("service-no-id", "impostor-no-id");
    assert_known("dumps_deleted_files_without_build_ids", &DUMPS, false, deleted);
}

#[test]
fn dumps_are_unwound_through_files_below_another_root() {
    let contained = || Service::contained("service", "impostor", BELOW_ANOTHER_ROOT);
    assert_known("dumps_another_root", &DUMPS, false, contained);
}

#[test]
fn dumps_are_unwound_through_files_below_another_root_without_build_ids() {
    let contained = || Service::contained("service-no-id", "impostor-no-id", BELOW_ANOTHER_ROOT);
    assert_known("dumps_another_root_without_build_ids", &DUMPS, false, contained);
}

#[test]
fn dumps_are_unwound_through_files_on_an_overlay() {
    let overlaid = || Service::contained("service", "impostor", ON_AN_OVERLAY);
    assert_known("dumps_overlay", &DUMPS, false, overlaid);
}

#[test]
fn dumps_are_unwound_through_files_on_an_overlay_without_build_ids() {
    let overlaid = || Service::contained("service-no-id", "impostor-no-id", ON_AN_OVERLAY);
    assert_known("dumps_overlay_without_build_ids", &DUMPS, false, overlaid);
}

#[test]
fn dumps_are_unwound_through_a_program_in_memory() {
    assert_known("dumps_memory_file", &DUMPS, false, || Service::in_memory("service"));
}

/// Nobody kept a copy and the service has ended: there are no names and no chains, and the report says why.
fn assert_honest(name: &str, service: impl FnOnce() -> Result<Service, Skip>, reason: &str) {
    check(name, || {
        let mut service = service()?;
        let said = service.record(&[&DUMPS[..], &["-N", "-p", &service.pid()]].concat());
        service.end();
        assert_no_impostor(&service.samples());
        let mut report = service.whit();
        let report = report.args(["report", "--stats", "-i"]).arg(service.data());
        let output = report.output().expect("run whit");
        let stats = String::from_utf8_lossy(&output.stdout);
        let warnings = String::from_utf8_lossy(&output.stderr);
        let ends = stats.split_once("Unwinding ended:").expect("ends of chains").1;
        let count = |line: &str| line.split_whitespace().next()?.parse::<f64>().ok();
        let all: f64 = ends.lines().filter_map(count).sum();
        let unopened = ends.lines().find(|line| line.contains("the binary could not be opened"));
        let share = unopened.and_then(count).unwrap_or(0.0) / all;
        // A few lie in the kernel's code for user mode.
        assert!(share >= LEAST_WHOLE, "{share}: {stats} {warnings} {said}");
        assert!(warnings.contains(reason), "{warnings}");
        Ok(())
    });
}

#[test]
fn deleted_files_that_were_not_kept_are_reported() {
    let deleted = || Service::replaced("service", "impostor");
    assert_honest("honest_deleted_files", deleted, "deleted, and no process leads to it");
    let deleted = || Service::replaced("service-no-id", "impostor-no-id");
    assert_honest("honest_deleted_files_no_id", deleted, "deleted, and no process leads to it");
}

#[test]
fn another_file_at_the_path_is_reported() {
    let contained = |make, by| move || Service::contained(make, by, BELOW_ANOTHER_ROOT);
    let ids = contained("service", "impostor");
    assert_honest("honest_another_root", ids, "is another build");
    let no_ids = contained("service-no-id", "impostor-no-id");
    assert_honest("honest_another_root_no_id", no_ids, "another file than the recorded one");
}

/// The programs in the kernel know files of an overlay before anybody has told them of the mappings.
#[test]
fn the_bpf_engine_finds_mappings_on_an_overlay() {
    check("bpf_finds_mappings_on_an_overlay", || {
        bpf_is_allowed()?;
        let place = tempfile::tempdir().expect("make a directory");
        install("service", &place.path().join("app"))?;
        std::fs::create_dir(place.path().join("root")).expect("make a directory");
        let script = ON_AN_OVERLAY.replace("exec \"$1/root/app/service\"", SHORT_LIVED);
        let run = |program: &str| {
            let mut run = command(program);
            let data = place.path().join("perf.data");
            if program != "unshare" {
                run.env("HOME", place.path()).env_remove("XDG_CACHE_HOME");
                run.args(["record", "--engine=bpf", "-e", "cpu-clock", "-F", "2000", "-o"]);
                run.arg(data).args(["--", "unshare"]);
            }
            let run = run.args(["--mount", "sh", "-ec", &script, "sh"]).arg(place.path());
            run.output().map_err(|error| Skip(format!("{program}: {error}")))
        };
        let alone = run("unshare")?;
        if !alone.status.success() {
            return Err(Skip(String::from_utf8_lossy(&alone.stderr).into_owned()));
        }
        let program = whit().get_program().to_owned();
        let recorded = run(program.to_str().expect("a path"))?;
        let said = String::from_utf8_lossy(&recorded.stderr);
        assert!(recorded.status.success(), "{said}");
        let mut report = whit();
        report.args(["report", "--json", "-i"]).arg(place.path().join("perf.data"));
        let report: Value = serde_json::from_str(&text(&mut report)).expect("JSON");
        let stacks = &report["ledger"]["stacks"];
        let unknown = stacks["ended"]["no_process"].as_u64().unwrap_or(0);
        let walks = stacks["walks"].as_u64().expect("walks");
        assert!(walks as usize > LEAST_SAMPLES, "{walks} walks: {said}");
        let whole = stacks["ended"]["end_of_stack"].as_u64().unwrap_or(0);
        assert!((unknown as f64) < MOST_UNKNOWN * walks as f64, "{unknown} of {walks}: {said}");
        let least = LEAST_WHOLE_OF_SHORT_LIVED * walks as f64;
        assert!(whole as f64 > least, "{whole} of {walks}: {said}");
        Ok(())
    });
}
