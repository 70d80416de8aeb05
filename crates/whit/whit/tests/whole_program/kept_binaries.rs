//! A recording has its names and chains when its programs have changed or are gone: the recorder keeps copies of
//! binaries where perf keeps them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::script::{self, Sample};
use crate::support::tools::{command, perf, text, whit, workload};
use crate::support::{Skip, check};

/// All of them are in each chain of `service` that is whole.
const FUNCTIONS: [&str; 5] = ["main", "serve_request", "serve_inner", "work_recurse", "work_burn"];
/// Names of the functions of `impostor`, which stand at the same places.
const IMPOSTOR: &str = "impostor_";
/// This share of the chains at least is whole. The others lie in the C library or in the vdso.
const LEAST_WHOLE: f64 = 0.8;
/// A busy program has more in a second at 499 Hz, on a busy machine too.
const LEAST_SAMPLES: usize = 30;
const SECONDS: &str = "1";
/// Ways of recording.
const DUMPS: &[&str] = &["--call-graph", "dwarf,4096"];
const BPF: &[&str] = &["--engine=bpf"];

/// How a program is built anew.
#[derive(Clone, Copy)]
enum Rebuild {
    /// Into the file that is there, as some linkers and every copy do.
    InPlace,
    /// As a new file, as packages are installed.
    NewFile,
    /// Not at all: the files are gone.
    Deleted,
}

/// A directory with a program, a home and a recording.
struct Place {
    directory: TempDir,
}

impl Place {
    fn with(make: &str) -> Result<Place, Skip> {
        let directory = tempfile::tempdir().expect("make a directory");
        for name in ["app", "home"] {
            std::fs::create_dir(directory.path().join(name)).expect("make a directory");
        }
        let place = Place { directory };
        place.rebuild(make, Rebuild::NewFile)?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn rebuild(&self, make: &str, how: Rebuild) -> Result<(), Skip> {
        let program = workload(make)?;
        let library = program.with_file_name(format!("lib{make}.so"));
        for (from, name) in [(program, "app/service"), (library, "app/libwork.so")] {
            let to = self.path(name);
            match how {
                Rebuild::InPlace => {}
                Rebuild::NewFile if !to.exists() => {}
                Rebuild::NewFile | Rebuild::Deleted => {
                    std::fs::remove_file(&to).expect("remove a file");
                }
            }
            if !matches!(how, Rebuild::Deleted) {
                whit_testing::run::copy_program(from, &to);
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&to, mode).expect("set the mode");
            }
        }
        Ok(())
    }

    fn at_home(&self, mut command: Command) -> Command {
        command.env("HOME", self.path("home"));
        command.env("XDG_CACHE_HOME", self.path("tables"));
        command
    }

    /// Records a command; gives the recorder's messages.
    fn record(&self, recorder: Command, options: &[&str], of: &[&str]) -> Result<String, Skip> {
        let mut recorder = self.at_home(recorder);
        recorder.args(["record", "-e", "cpu-clock", "-F", "499", "-o"]).arg(self.path("perf.data"));
        let recorder = recorder.args(options).arg("--").args(of);
        let output = whit_testing::run::record(recorder)?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn record_service(&self, recorder: Command, options: &[&str]) -> Result<String, Skip> {
        let program = self.path("app/service");
        self.record(recorder, options, &[program.to_str().expect("a path"), "--seconds", SECONDS])
    }

    fn read(&self, mut command: Command, arguments: &[&str]) -> String {
        command = self.at_home(command);
        text(command.args(arguments).arg("-i").arg(self.path("perf.data")))
    }

    fn report(&self) -> String {
        self.read(whit(), &["report", "--stdio"])
    }

    fn samples(&self) -> Vec<Sample> {
        let samples = script::parse(
            &self.read(whit(), &["script", "--comms", "service", "-F", "comm,ip,sym"]),
        );
        assert!(samples.len() > LEAST_SAMPLES, "{}", samples.len());
        samples
    }

    fn warnings(&self) -> String {
        let mut report = self.at_home(whit());
        report.args(["report", "--stats", "-i"]).arg(self.path("perf.data"));
        String::from_utf8_lossy(&report.output().expect("run whit").stderr).into_owned()
    }
}

/// The names are those of the program that ran, and no other.
fn assert_named(samples: &[Sample], said: &str) {
    let is_whole = |sample: &&Sample| FUNCTIONS.iter().all(|function| sample.passes(function));
    let whole = samples.iter().filter(is_whole).count();
    assert!(
        whole as f64 >= LEAST_WHOLE * samples.len() as f64,
        "{whole} of {}: {said}",
        samples.len()
    );
    assert_no_impostor(samples);
}

fn assert_no_impostor(samples: &[Sample]) {
    let lies = |sample: &&Sample| sample.frames.iter().any(|f| f.symbol.starts_with(IMPOSTOR));
    let lie = samples.iter().find(lies);
    assert!(lie.is_none(), "a name of another program: {lie:#?}");
}

/// The same report before and after, and perf's rows have the same names.
fn assert_kept(name: &str, make: &'static str, by: &'static str, options: &'static [&str]) {
    check(name, || {
        for how in [Rebuild::InPlace, Rebuild::NewFile, Rebuild::Deleted] {
            let place = Place::with(make)?;
            let said = place.record_service(whit(), options)?;
            assert_named(&place.samples(), &said);
            let before = place.report();
            place.rebuild(by, how)?;
            assert_eq!(place.report(), before, "{said}");
            assert_named(&place.samples(), &said);
            if let Ok(perf) = perf()
                && !make.ends_with("no-id")
            {
                let rows = place.read(perf, &["report", "--stdio", "--no-children", "-g", "none"]);
                assert!(rows.contains("work_burn") && !rows.contains(IMPOSTOR), "{rows}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_rebuilt_program_has_its_rows_and_chains() {
    assert_kept("kept_bpf", "service", "impostor", BPF);
    assert_kept("kept_dumps", "service", "impostor", DUMPS);
}

#[test]
fn a_rebuilt_program_without_build_id_has_its_rows_and_chains() {
    assert_kept("kept_bpf_no_id", "service-no-id", "impostor-no-id", BPF);
    assert_kept("kept_dumps_no_id", "service-no-id", "impostor-no-id", DUMPS);
}

/// Frame pointers lead nowhere in this program, but the innermost functions have their names.
#[test]
fn a_rebuilt_program_has_its_names_with_frame_pointers() {
    check("kept_frame_pointers", || {
        let place = Place::with("service")?;
        place.record_service(whit(), &["--engine=ring", "-g"])?;
        let before = place.report();
        assert!(before.contains("work_burn"), "{before}");
        place.rebuild("impostor", Rebuild::InPlace)?;
        assert_eq!(place.report(), before);
        Ok(())
    });
}

#[test]
fn the_copies_that_perf_made_are_used() {
    check("kept_by_perf", || {
        let place = Place::with("service")?;
        // Without the option, perf 6.1 copies the binaries of innermost addresses alone.
        place.record_service(perf()?, &[DUMPS, &["--buildid-all"]].concat())?;
        let before = place.report();
        assert_named(&place.samples(), &before);
        // perf's copies may be hard links, which change with a file that is written in place.
        place.rebuild("impostor", Rebuild::NewFile)?;
        assert_eq!(place.report(), before);
        Ok(())
    });
}

#[test]
fn a_damaged_copy_is_not_used() {
    check("kept_damaged", || {
        let place = Place::with("service")?;
        let said = place.record_service(whit(), BPF)?;
        place.rebuild("impostor", Rebuild::NewFile)?;
        let copies = place.path("home/.debug");
        let below = place.directory.path().strip_prefix("/").expect("an absolute path");
        let copies = copies.join(below).join("app/libwork.so");
        let copy = std::fs::read_dir(copies).expect("a copy").next().expect("one").expect("one");
        std::fs::copy(place.path("app/libwork.so"), copy.path().join("elf")).expect("damage it");
        assert_no_impostor(&place.samples());
        assert!(place.warnings().contains("libwork.so: is another build"), "{said}");
        // The next recording of the program puts it right.
        place.rebuild("service", Rebuild::NewFile)?;
        let said = place.record_service(whit(), BPF)?;
        place.rebuild("impostor", Rebuild::NewFile)?;
        assert_named(&place.samples(), &said);
        Ok(())
    });
}

#[test]
fn every_way_of_streaming_keeps_binaries() {
    check("kept_streaming", || {
        for options in [&["--threads", "-z"][..], &["--aio", "--dir"]] {
            let place = Place::with("service")?;
            let said = place.record_service(whit(), &[DUMPS, options].concat())?;
            let before = place.report();
            place.rebuild("impostor", Rebuild::InPlace)?;
            assert_eq!(place.report(), before);
            assert_named(&place.samples(), &said);
        }
        Ok(())
    });
}

#[test]
fn without_copies_the_reason_is_said() {
    check("kept_not", || {
        let place = Place::with("service")?;
        place.record_service(whit(), &[DUMPS, &["-N"]].concat())?;
        assert!(!place.path("home/.debug").exists());
        place.rebuild("impostor", Rebuild::NewFile)?;
        assert_no_impostor(&place.samples());
        let said = place.warnings();
        assert!(said.contains("is another build") && said.contains("without -N"), "{said}");
        Ok(())
    });
}

#[test]
fn a_cache_of_another_place_is_used() {
    check("kept_elsewhere", || {
        let place = Place::with("service")?;
        let cache = place.path("cache");
        let with_cache = |mut command: Command| {
            command.env("PERF_BUILDID_DIR", &cache);
            command
        };
        let config = place.path("config");
        let text = format!("[buildid]\ndir = {}\n", cache.display());
        std::fs::write(&config, text).expect("write a configuration");
        let configured = || {
            let mut whit = whit();
            whit.env("PERF_CONFIG", &config);
            whit
        };
        place.record_service(configured(), BPF)?;
        assert!(cache.join(".build-id").is_dir() && !place.path("home/.debug").exists());
        let before = place.report();
        place.rebuild("impostor", Rebuild::InPlace)?;
        assert_eq!(place.read(configured(), &["report", "--stdio"]), before);
        let mut named = with_cache(place.at_home(whit()));
        named.env("PERF_BUILDID_DIR", &cache).args(["report", "--stdio", "-i"]);
        assert_eq!(crate::support::tools::text(named.arg(place.path("perf.data"))), before);
        Ok(())
    });
}

#[test]
fn a_recording_succeeds_where_nothing_can_be_kept() {
    check("kept_nowhere", || {
        let place = Place::with("service")?;
        let nowhere = place.path("home/file");
        std::fs::write(&nowhere, "no directory").expect("write a file");
        // A service may have an empty home.
        for (home, is_said) in [(nowhere.as_path(), true), (Path::new(""), false)] {
            let mut recorder = place.at_home(whit());
            recorder.env("HOME", home).current_dir(place.path("app"));
            recorder
                .args(["record", "--engine=ring", "-e", "cpu-clock", "-o"])
                .arg(place.path("perf.data"));
            recorder.arg("--").arg(place.path("app/service")).args(["--seconds", "0.2"]);
            let output = whit_testing::run::record(&mut recorder)?;
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(said.contains("binaries are not copied to"), is_said, "{said}");
            assert!(!place.path("app/.debug").exists());
        }
        // More than there may be.
        let said = place.record_service(whit(), &["--buildid-cache-size", "1K"])?;
        assert!(said.contains("not copied to"), "{said}");
        Ok(())
    });
}

/// A mount namespace of its own, which ends with the command; `$2` is how long that runs.
const IN_A_NAMESPACE: &str = r#"
mount --make-rprivate /
mount -t tmpfs whit "$1/app"
cp "$1/original/service" "$1/original/libwork.so" "$1/app"
"$1/app/service" --seconds "$2"
"#;

/// While the program runs: rings are drained at least once a second.
const LONG: &str = "2.5";

#[test]
fn a_container_that_has_ended_keeps_its_names() {
    for (name, options) in [("kept_container_bpf", BPF), ("kept_container_dumps", DUMPS)] {
        check(name, || {
            let place = Place::with("service")?;
            std::fs::rename(place.path("app"), place.path("original")).expect("rename");
            std::fs::create_dir(place.path("app")).expect("make a directory");
            // This machine has another program at the same path.
            place.rebuild("impostor", Rebuild::NewFile)?;
            let mut alone = command("unshare");
            let directory = place.directory.path().to_str().expect("a path").to_owned();
            let script = ["--mount", "sh", "-ec", IN_A_NAMESPACE, "sh", &directory];
            let output = alone.args(script).arg("0.1").output().map_err(|e| Skip(e.to_string()))?;
            if !output.status.success() {
                return Err(Skip(String::from_utf8_lossy(&output.stderr).into_owned()));
            }
            let of = [&["unshare"][..], &script, &[LONG]].concat();
            let said = place.record(whit(), options, &of)?;
            std::fs::remove_dir_all(place.path("original")).expect("remove the original");
            assert_named(&place.samples(), &said);
            Ok(())
        });
    }
}

#[test]
fn a_container_without_access_has_no_names_of_the_host() {
    check("kept_container_not", || {
        let place = Place::with("service")?;
        std::fs::rename(place.path("app"), place.path("original")).expect("rename");
        std::fs::create_dir(place.path("app")).expect("make a directory");
        place.rebuild("impostor", Rebuild::NewFile)?;
        let directory = place.directory.path().to_str().expect("a path").to_owned();
        let script = ["unshare", "--mount", "sh", "-ec", IN_A_NAMESPACE, "sh", &directory, LONG];
        place.record(whit(), &[DUMPS, &["-N"]].concat(), &script)?;
        let samples = place.samples();
        assert_no_impostor(&samples);
        let said = place.warnings();
        assert!(said.contains("libwork.so") && said.contains("without -N"), "{said}");
        Ok(())
    });
}

#[test]
fn a_program_that_was_deleted_and_has_ended_keeps_its_names() {
    check("kept_deleted", || {
        let place = Place::with("service")?;
        let app = place.path("app");
        let script = r#""$1/service" --seconds 2.5 & sleep 1.8; rm -r "$1"; wait; sleep 0.2"#;
        let of = ["sh", "-ec", script, "sh", app.to_str().expect("a path")];
        let said = place.record(whit(), DUMPS, &of)?;
        assert!(!Path::new(&app).exists());
        assert_named(&place.samples(), &said);
        Ok(())
    });
}

#[test]
fn copies_of_processes_without_samples_are_not_made() {
    check("kept_sampled_only", || {
        let place = Place::with("service")?;
        // It maps its binaries, and then waits for its input.
        let waiting = place.path("app/waiting");
        whit_testing::run::copy_program("/bin/cat", &waiting);
        let mut asleep = command(&waiting);
        let mut asleep = asleep.stdin(Stdio::piped()).spawn().expect("start a program");
        let said = place.record(whit(), &["-a", "-e", "cpu-clock:u"], &["sleep", "1"]);
        asleep.kill().expect("end it");
        asleep.wait().expect("wait for it");
        said?;
        let below = place.directory.path().strip_prefix("/").expect("an absolute path");
        assert!(place.path("home/.debug").is_dir());
        assert!(!place.path("home/.debug").join(below).join("app/waiting").exists());
        Ok(())
    });
}
