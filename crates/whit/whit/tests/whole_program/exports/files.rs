//! Where exports go: whole or not at all, into files and pipes.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::tools::{repository, whit};

const FORMATS: [&str; 7] =
    ["pprof", "firefox", "perfetto", "perfetto-v57", "speedscope", "otlp", "folded"];

fn losses() -> std::path::PathBuf {
    repository().join("tests/recordings/golden/losses/recording.data")
}

fn export(format: &str, output: &Path, more: &[&str]) -> Output {
    let mut export = whit();
    // The numbers of locations depend on the thread that met them first.
    export
        .args(["export", "--threads", "1", "--format", format, "-i"])
        .arg(losses())
        .arg("-o")
        .arg(output);
    export.args(more).output().expect("run whit")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_pipe_gets_the_bytes_of_the_file() {
    let folder = tempfile::tempdir().expect("make a directory");
    for format in FORMATS {
        let file = folder.path().join(format);
        let output = export(format, &file, &[]);
        assert!(output.status.success(), "{}", said(&output));
        let piped = export(format, Path::new("-"), &[]);
        assert!(piped.status.success(), "{}", said(&piped));
        assert!(!piped.stdout.is_empty() && piped.stdout == fs::read(&file).unwrap(), "{format}");
    }
}

#[test]
fn an_existing_file_stays_without_force() {
    let folder = tempfile::tempdir().expect("make a directory");
    let file = folder.path().join("out");
    fs::write(&file, "mine").unwrap();
    let refused = export("pprof", &file, &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("replace it with -f"), "{}", said(&refused));
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert!(export("pprof", &file, &["-f"]).status.success());
    assert_ne!(fs::read(&file).unwrap(), b"mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing temporary is left");
}

#[test]
fn a_full_disk_is_an_error_with_a_way_out() {
    for format in FORMATS {
        let mut export = whit();
        export.args(["export", "--format", format, "-o", "-", "-i"]).arg(losses());
        let full = File::options().write(true).open("/dev/full").expect("open /dev/full");
        let output = export.stdout(full).stderr(Stdio::piped()).output().expect("run whit");
        assert_eq!(output.status.code(), Some(1), "{format}");
        assert!(said(&output).contains("was not written (make room"), "{}", said(&output));
    }
}

#[test]
fn a_wrong_format_names_those_that_there_are() {
    let output = export("pdf", Path::new("-"), &[]);
    assert_eq!(output.status.code(), Some(2));
    for format in FORMATS {
        assert!(said(&output).contains(format), "{}", said(&output));
    }
}

#[test]
fn options_of_profiles_are_refused_where_records_are_copied() {
    let folder = tempfile::tempdir().expect("make a directory");
    let file = folder.path().join("out");
    for options in [&["--pid", "1"][..], &["--time", "10%-20%"], &["--samples", "each"]] {
        let mut export = whit();
        export.args(["export", "--perf", "-i"]).arg(losses()).arg("-o").arg(&file).args(options);
        let output = export.output().expect("run whit");
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(said(&output).contains("cannot be used with"), "{}", said(&output));
        assert!(!file.exists());
    }
}
