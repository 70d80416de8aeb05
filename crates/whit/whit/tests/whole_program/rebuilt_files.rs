//! Programs without build ids that are built anew between the recording and its report, into the same inodes.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::script::{self, Sample};
use crate::support::tools::{perf, text, whit, workload};
use crate::support::{Skip, check, record};

/// Functions of the program that is recorded; `impostor` calls its own otherwise.
const RECORDED: &str = "work_burn";
const REBUILT: &str = "impostor_";
/// A program that gets a tenth of a CPU has more in a second at 4999 Hz.
const LEAST_SAMPLES: usize = 100;
/// This share at least lies in its hottest function before it is built anew.
const LEAST_NAMED: f64 = 0.5;

/// Writes a program and its library into the files that are there, as some linkers and every copy do.
fn write(make: &str, directory: &Path) -> Result<(), Skip> {
    let program = workload(make)?;
    whit_testing::run::copy_program(&program, directory.join("service"));
    let library = program.with_file_name(format!("lib{make}.so"));
    std::fs::copy(library, directory.join("libwork.so")).expect("copy a library");
    Ok(())
}

fn whit_in(place: &TempDir) -> Command {
    let mut whit = whit();
    whit.env("HOME", place.path()).env_remove("XDG_CACHE_HOME");
    whit
}

/// The output of `whit script` and its warnings.
fn read(place: &TempDir) -> (Vec<Sample>, String) {
    let mut script = whit_in(place);
    script.args(["script", "-F", "comm,ip,sym", "-i"]).arg(place.path().join("perf.data"));
    let samples = script::parse(&text(&mut script));
    let mut report = whit_in(place);
    report.args(["report", "--stats", "-i"]).arg(place.path().join("perf.data"));
    let output = report.output().expect("run whit");
    (samples, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn with(samples: &[Sample], name: &str) -> usize {
    samples.iter().filter(|s| s.frames.iter().any(|f| f.symbol.starts_with(name))).count()
}

/// Before the program is built anew there are names; afterwards there are none of the new one, and a warning says
/// why.
fn assert_refused(
    recorder: Result<Command, Skip>,
    options: &[&str],
    reason: &str,
) -> Result<(), Skip> {
    let place = tempfile::tempdir().expect("make a directory");
    write("service-no-id", place.path())?;
    let mut recorder = recorder?;
    recorder.env("HOME", place.path()).args(["record", "-e", "cpu-clock", "-F", "4999"]);
    recorder.args(options).arg("-o").arg(place.path().join("perf.data"));
    record(recorder.arg(place.path().join("service")).args(["--seconds", "1"]))?;
    let (samples, said) = read(&place);
    assert!(samples.len() > LEAST_SAMPLES, "{}: {said}", samples.len());
    let named = with(&samples, RECORDED);
    assert!(named as f64 > LEAST_NAMED * samples.len() as f64, "{named}: {said}");
    assert!(!said.contains(reason), "{said}");
    write("impostor-no-id", place.path())?;
    let (samples, said) = read(&place);
    assert!(samples.len() > LEAST_SAMPLES);
    assert_eq!(with(&samples, REBUILT), 0, "names of another program: {said}");
    assert!(said.contains(reason), "{said}");
    Ok(())
}

const CHANGED_SINCE: &str = "libwork.so: changed after the recording was made";
const REPLACED: &str = "libwork.so: another file than the recorded one";

#[test]
fn names_and_tables_of_a_rebuilt_program_are_refused_for_recordings_of_perf() {
    check("rebuilt_perf", || assert_refused(perf(), &["-g"], CHANGED_SINCE));
    let dumps = ["--call-graph", "dwarf,4096"];
    check("rebuilt_perf_dumps", || assert_refused(perf(), &dumps, CHANGED_SINCE));
}

#[test]
fn names_and_tables_of_a_rebuilt_program_are_refused_for_recordings_of_whit() {
    let dumps = ["--call-graph", "dwarf,4096"];
    for options in [&["-g"][..], &dumps, &["--engine=bpf"]] {
        let options = [&["-N"], options].concat();
        check("rebuilt_whit", || assert_refused(Ok(whit()), &options, REPLACED));
    }
}

/// As `cp -p` and `install -p` leave it.
#[test]
fn a_time_that_is_set_back_hides_nothing() {
    check("rebuilt_time_set_back", || {
        let place = tempfile::tempdir().expect("make a directory");
        write("service-no-id", place.path())?;
        let files = ["service", "libwork.so"].map(|name| place.path().join(name));
        let time = |file: &PathBuf| file.metadata().and_then(|m| m.modified()).expect("a time");
        let times = files.each_ref().map(time);
        let mut recorder = perf()?;
        recorder.env("HOME", place.path()).args([
            "record",
            "-g",
            "-e",
            "cpu-clock",
            "-F",
            "499",
            "-o",
        ]);
        recorder.arg(place.path().join("perf.data"));
        record(recorder.arg(&files[0]).args(["--seconds", "0.3"]))?;
        write("impostor-no-id", place.path())?;
        for (file, time) in files.iter().zip(times) {
            let file = std::fs::File::options().write(true).open(file).expect("open a file");
            file.set_modified(time).expect("set a time");
        }
        let (samples, said) = read(&place);
        assert_eq!(with(&samples, REBUILT), 0, "names of another program: {said}");
        assert!(said.contains(CHANGED_SINCE), "{said}");
        Ok(())
    });
}
